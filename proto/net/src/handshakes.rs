//! Handshakes that peers have begun, any of which can be ended to make room for another.
//!
//! The handshake tells who comes. Until then a drone and a stranger from its address look alike,
//! and whoever opens connections and says nothing could keep out all who share its address for as long as a
//! handshake may take. So of too many handshakes one goes of which nothing has come for a while: at random,
//! so that whoever has most loses most.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable};
use libp2p::Multiaddr;
use libp2p::core::transport::{DialOpts, ListenerId, Transport, TransportError, TransportEvent};
use rand::Rng as _;
use rand::rngs::OsRng;
use tokio::time::Instant;

use crate::addresses::Prefix;

/// Time for which nothing came of a handshake that may be ended. One that goes on, however slowly on a busy
/// machine, is not: a crowd of drones that come at once would end each other's.
const SILENCE: Duration = Duration::from_secs(1);
/// Handshakes that were ended, and whose sockets are not closed yet, at a time.
const ENDING: usize = 64;

/// The handshakes of a node's listeners.
#[derive(Clone, Default)]
pub(crate) struct Handshakes(Arc<Mutex<UnderWay>>);

#[derive(Default)]
struct UnderWay {
    next: u64,
    /// In no order.
    entries: Vec<PendingHandshake>,
    ending: usize,
}

struct PendingHandshake {
    number: u64,
    from: Option<Prefix>,
    progress: HandshakeProgress,
    end: AbortHandle,
    ended: bool,
}

/// Time at which a handshake was woken last: only what comes from the peer wakes it.
#[derive(Clone)]
struct HandshakeProgress(Arc<Mutex<Instant>>);

impl HandshakeProgress {
    fn start() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a handshake, until it is over.
struct Registered(Handshakes, u64);

impl Drop for Registered {
    fn drop(&mut self) {
        let mut all = self.0.lock();
        if let Some(place) = all.entries.iter().position(|entry| entry.number == self.1)
            && all.entries.swap_remove(place).ended
        {
            all.ending = all.ending.saturating_sub(1);
        }
    }
}

impl Handshakes {
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        // A list, which a panic leaves as it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a handshake with a peer at this address, which [`end_one`](Self::end_one) may end.
    fn begin<F, T>(
        &self,
        from: Option<Prefix>,
        handshake: F,
    ) -> impl Future<Output = io::Result<T>> + use<F, T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let (end, registration) = AbortHandle::new_pair();
        let mut all = self.lock();
        let number = all.next;
        // 2^64 connections do not come.
        all.next = all.next.wrapping_add(1);
        let progress = HandshakeProgress::start();
        all.entries.push(PendingHandshake { number, from, progress: progress.clone(), end, ended: false });
        drop(all);
        let registered = Registered(self.clone(), number);
        async move {
            let mut handshake = pin!(Abortable::new(handshake, registration));
            let done = poll_fn(|cx| {
                progress.note();
                handshake.as_mut().poll(cx)
            });
            let done = done.await;
            drop(registered);
            done.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "others wait for its room")))
        }
    }

    /// Ends a handshake, with a peer at this address if one is named, to make room for the one that began
    /// last. Returns false if there is none that has had its time.
    pub(crate) fn end_one(&self, from: Option<Prefix>, now: Instant) -> bool {
        let mut all = self.lock();
        // §13.8: an ended handshake counts as pending no longer, and holds its socket until it is dropped.
        // Without a bound a flood would take all descriptors.
        if all.ending >= ENDING {
            return false;
        }
        // The swarm asks for room once the transport has announced the newest handshake. That one is
        // registered by then, and must not end itself.
        let newest = all.next.wrapping_sub(1);
        // §13.8: nothing has come of it for 1 s.
        let old = |entry: &PendingHandshake| {
            let of = from.is_none() || entry.from == from;
            of && !entry.ended && entry.number != newest && now >= entry.progress.last() + SILENCE
        };
        let count = all.entries.iter().filter(|entry| old(entry)).count();
        if count == 0 {
            return false;
        }
        // The system's randomness, because whoever foresees the choice can have others' handshakes ended.
        let chosen = OsRng.gen_range(0..count);
        let Some(entry) = all.entries.iter_mut().filter(|entry| old(entry)).nth(chosen) else { return false };
        entry.ended = true;
        entry.end.abort();
        all.ending += 1;
        true
    }

    /// Number of handshakes that were ended and are not over yet.
    pub(crate) fn ending(&self) -> usize {
        self.lock().ending
    }
}

/// A transport whose listeners' handshakes are registered.
pub(crate) struct Interruptible<T> {
    within: T,
    handshakes: Handshakes,
}

impl<T> Interruptible<T> {
    pub(crate) const fn new(within: T, handshakes: Handshakes) -> Self {
        Self { within, handshakes }
    }
}

impl<T> Transport for Interruptible<T>
where
    T: Transport<Error = io::Error> + Unpin,
    T::ListenerUpgrade: Send + 'static,
    T::Output: 'static,
{
    type Output = T::Output;
    type Error = io::Error;
    type ListenerUpgrade = Pin<Box<dyn Future<Output = io::Result<T::Output>> + Send>>;
    type Dial = T::Dial;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<io::Error>> {
        self.within.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.within.remove_listener(id)
    }

    fn dial(&mut self, address: Multiaddr, options: DialOpts) -> Result<T::Dial, TransportError<io::Error>> {
        // Not registered: this node wants the connections that it dials, so that no peer may end them.
        self.within.dial(address, options)
    }

    fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let Self { within, handshakes } = self.get_mut();
        Pin::new(within).poll(cx).map(|event| {
            let from = match &event {
                TransportEvent::Incoming { send_back_addr, .. } => Prefix::of(send_back_addr),
                _ => None,
            };
            event.map_upgrade(|upgrade| Box::pin(handshakes.begin(from, upgrade)) as Self::ListenerUpgrade)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(host: u8) -> Option<Prefix> {
        Prefix::of(&format!("/ip4/192.0.2.{host}/tcp/1").parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_of_which_nothing_comes_is_ended_for_another_and_the_newest_never() {
        let handshakes = Handshakes::default();
        let silent = || std::future::pending::<io::Result<()>>();
        let mut all: Vec<_> =
            [1, 1, 2, 1].map(|host| tokio::spawn(handshakes.begin(from(host), silent()))).into();
        assert!(!handshakes.end_one(from(1), Instant::now()), "all have just begun");
        tokio::time::sleep(SILENCE).await;
        let now = Instant::now();
        assert!(handshakes.end_one(from(1), now) && handshakes.end_one(from(1), now));
        assert!(!handshakes.end_one(from(1), now), "the newest of them is the one that wants room");
        assert_eq!(handshakes.ending(), 2);
        let newest = all.pop().unwrap();
        let other = all.pop().unwrap();
        for ended in all {
            assert_eq!(ended.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(handshakes.ending(), 0);
        assert!(handshakes.end_one(None, now), "wherever it comes from");
        assert!(other.await.unwrap().is_err());
        assert!(!newest.is_finished());
        newest.abort();
        assert!(newest.await.unwrap_err().is_cancelled());
        assert!(handshakes.lock().entries.is_empty(), "nothing is remembered");
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_goes_on_is_not_ended_however_long_it_takes() {
        let handshakes = Handshakes::default();
        let slow = handshakes.begin(from(1), async {
            for _ in 0..20 {
                tokio::time::sleep(SILENCE / 2).await;
            }
            Ok(())
        });
        let slow = tokio::spawn(slow);
        let other = tokio::spawn(handshakes.begin(from(1), std::future::pending::<io::Result<()>>()));
        for _ in 0..8 {
            tokio::time::sleep(SILENCE).await;
            assert!(!handshakes.end_one(from(1), Instant::now()));
        }
        slow.await.unwrap().unwrap();
        other.abort();
    }

    #[tokio::test]
    async fn a_handshake_that_is_over_in_time_gives_what_it_gave() {
        let handshakes = Handshakes::default();
        let given = handshakes.begin(from(1), async { Ok(7) });
        assert_eq!(given.await.unwrap(), 7);
        assert!(handshakes.lock().entries.is_empty());
    }
}
