//! The leader's relay: forwards datagrams of members to all others that send through it.
//!
//! Whether a datagram is a member's the bridge finds out, which opens it as any member does. The relay holds
//! no key. It forwards from an address that has proven itself under the present key in the last seconds, at
//! a bounded rate, and sends to those that have proven themselves in the last half minute. So nobody outside
//! the group can make it send, and whoever was evicted is forwarded no more as soon as the key has changed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::{CarrierCommand, CarrierPort, LONGEST};

/// Senders that are forwarded to: as many as a ground station tells apart, and some that come back elsewhere.
const MAX_SENDERS: usize = 1_024;
/// Time for which a datagram proves its sender's address.
const PROVEN_FOR: Duration = Duration::from_secs(10);
/// Time for which is sent to an address from which nothing came.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Bytes per second that are forwarded of one sender, and at once after a pause.
const RATE: f64 = 64_000.0;

/// An address that a member sends from.
#[derive(Debug)]
struct ForwardedSender {
    heard: Instant,
    /// Time at which it last proved itself under the present key.
    proven: Option<Instant>,
    /// Bytes that may be forwarded now, and since when.
    tokens: f64,
    filled: Instant,
}

#[derive(Debug, Default)]
struct ForwardedSenders(HashMap<SocketAddr, ForwardedSender>);

impl ForwardedSenders {
    /// Returns true if a datagram of this address is forwarded.
    fn admit(&mut self, now: Instant, from: SocketAddr, bytes: usize, proven: bool) -> bool {
        // Only members take room here, so that a flood of made-up addresses takes none.
        if proven && !self.0.contains_key(&from) {
            self.make_room(now);
            self.0.insert(from, ForwardedSender { heard: now, proven: None, tokens: RATE, filled: now });
        }
        let Some(sender) = self.0.get_mut(&from) else { return false };
        if proven {
            (sender.heard, sender.proven) = (now, Some(now));
        }
        // An address that proved itself a moment ago may send datagrams that this member cannot open yet
        // (§20.8).
        if sender.proven.is_none_or(|at| now.duration_since(at) > PROVEN_FOR) {
            return false;
        }
        let since = now.duration_since(sender.filled).as_secs_f64();
        sender.tokens = (sender.tokens + since * RATE).min(RATE);
        sender.filled = now;
        let bytes = bytes as f64;
        // Bounded, because a member's datagrams are multiplied by the number of all others.
        let admitted = sender.tokens >= bytes;
        if admitted {
            sender.tokens -= bytes;
        }
        admitted
    }

    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, sender| now.duration_since(sender.heard) < REMEMBERED);
        // The one that was silent for longest most likely sends from another address by now.
        if self.0.len() >= MAX_SENDERS
            && let Some(oldest) = self.0.iter().min_by_key(|(_, sender)| sender.heard).map(|(at, _)| *at)
        {
            self.0.remove(&oldest);
        }
    }

    fn key_changed(&mut self) {
        // An evicted drone has no datagram that opens under the new key.
        self.0.values_mut().for_each(|sender| sender.proven = None);
    }

    /// Addresses of all senders but `from`.
    fn others(&self, now: Instant, from: Option<SocketAddr>) -> Vec<SocketAddr> {
        let heard = |sender: &ForwardedSender| now.duration_since(sender.heard) < REMEMBERED;
        let others = self.0.iter().filter(|(at, sender)| Some(**at) != from && heard(sender));
        others.map(|(at, _)| *at).collect()
    }
}

/// Receives, sends and forwards until the bridge is gone.
pub(super) async fn serve(mut port: CarrierPort, socket: UdpSocket) {
    let mut senders = ForwardedSenders::default();
    let mut buffer = [0; LONGEST];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((len, from)) => port.receive(Some(from), buffer.get(..len).unwrap_or_default()),
                Err(error) => tracing::trace!("the relay's socket: {error}"),
            },
            order = port.order() => {
                let now = Instant::now();
                match order {
                    Some(CarrierCommand::Send(datagram)) => {
                        for to in senders.others(now, None) {
                            send(&port, &socket, &datagram, to).await;
                        }
                    }
                    Some(CarrierCommand::Forward { from, datagram, proven }) => {
                        if !senders.admit(now, from, datagram.len(), proven) {
                            port.counters.refused.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                        port.counters.forwarded.fetch_add(1, Ordering::Relaxed);
                        for to in senders.others(now, Some(from)) {
                            send(&port, &socket, &datagram, to).await;
                        }
                    }
                    Some(CarrierCommand::KeyChanged) => senders.key_changed(),
                    None => return,
                }
            }
        }
    }
}

async fn send(port: &CarrierPort, socket: &UdpSocket, datagram: &[u8], to: SocketAddr) {
    match socket.send_to(datagram, to).await {
        Ok(_) => port.counters.sent(datagram.len()),
        Err(_) => port.counters.dropped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn only_proven_senders_are_forwarded_and_a_new_key_is_to_be_proven_again() {
        let (mut senders, now) = (ForwardedSenders::default(), Instant::now());
        assert!(!senders.admit(now, at(1), 50, false), "a stranger");
        assert!(senders.others(now, None).is_empty(), "nothing is sent to a stranger");
        assert!(senders.admit(now, at(1), 50, true));
        assert!(senders.admit(now, at(1), 50, false), "held for its sender's announcement perhaps");
        assert_eq!(senders.others(now, Some(at(2))), [at(1)]);
        assert!(senders.others(now, Some(at(1))).is_empty(), "never back to its sender");
        senders.key_changed();
        assert!(!senders.admit(now, at(1), 50, false), "perhaps evicted");
        assert!(senders.admit(now, at(1), 50, true));
        assert!(!senders.admit(now + PROVEN_FOR * 2, at(1), 50, false), "long ago");
    }

    #[test]
    fn one_sender_has_its_rate_and_no_more() {
        let (mut senders, now) = (ForwardedSenders::default(), Instant::now());
        let admitted = (0..1_000).filter(|_| senders.admit(now, at(1), 1_000, true)).count();
        assert_eq!(admitted, 64);
        assert!(senders.admit(now, at(2), 1_000, true), "another has its own");
        let later = now + Duration::from_secs(1);
        let admitted = (0..1_000).filter(|_| senders.admit(later, at(1), 1_000, true)).count();
        assert_eq!(admitted, 64);
    }

    #[test]
    fn no_more_senders_are_remembered_than_there_is_room_for() {
        let (mut senders, now) = (ForwardedSenders::default(), Instant::now());
        for port in 1..=2_000 {
            senders.admit(now + Duration::from_millis(port.into()), at(port), 10, true);
        }
        assert_eq!(senders.0.len(), MAX_SENDERS);
        assert!(senders.0.contains_key(&at(2_000)) && !senders.0.contains_key(&at(1)));
    }
}
