//! MAVLink over UDP: listening (`udpin`), sending (`udpout`), broadcasting (`udpbcast`).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quiver_mavlink::HostPort;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, sleep};

use super::{CHUNK, Gone, Link, Port};
use crate::carrier::connect;
use crate::pause::Pause;

/// Programs behind one listening endpoint. More are not answered before one has been silent for a while.
const MAX_PEERS: usize = 16;
/// Time after which a program that is silent is answered no more.
const REMEMBERED: Duration = Duration::from_secs(30);
/// The longest wait before a name is looked up again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Pause after an error of the socket, so that one that lasts does not spin.
const AFTER_ERROR: Duration = Duration::from_millis(20);

/// Programs that sent to a listening endpoint, and are answered.
#[derive(Debug, Default)]
struct Peers(Vec<(SocketAddr, Instant)>);

impl Peers {
    fn hear(&mut self, now: Instant, from: SocketAddr) {
        self.0.retain(|(_, heard)| now.duration_since(*heard) < REMEMBERED);
        if let Some((_, heard)) = self.0.iter_mut().find(|(peer, _)| *peer == from) {
            *heard = now;
        } else if self.0.len() < MAX_PEERS {
            self.0.push((from, now));
        }
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(peer, _)| *peer)
    }
}

/// Receives from anybody and answers those who sent.
pub(super) async fn serve_in(port: Port, socket: UdpSocket) {
    // The bridge is gone, and with it whom this is for.
    let _ = exchange(&port, &socket, None).await;
}

/// Sends to a broadcast address, and receives from anybody.
pub(super) async fn serve_broadcast(port: Port, to: HostPort) {
    let mut pause = Pause::new(format!("udpbcast:{to}"), LONGEST_WAIT);
    loop {
        pause.wait().await;
        match broadcast(&to).await {
            Ok((socket, address)) => {
                pause.opened();
                let _ = exchange(&port, &socket, Some(address)).await;
                return;
            }
            Err(error) => pause.failed(&error),
        }
    }
}

async fn broadcast(to: &HostPort) -> io::Result<(UdpSocket, SocketAddr)> {
    let address = lookup_host((to.host.as_str(), to.port)).await?.find(SocketAddr::is_ipv4);
    let address =
        address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no IPv4 address has this name"))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.set_broadcast(true)?;
    Ok((socket, address))
}

/// Without an address, those who sent are answered.
async fn exchange(port: &Port, socket: &UdpSocket, to: Option<SocketAddr>) -> Result<(), Gone> {
    let mut link = port.open().await?;
    let mut peers = Peers::default();
    let mut buffer = [0; CHUNK];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((len, from)) => {
                    peers.hear(Instant::now(), from);
                    link.receive(buffer.get(..len).unwrap_or_default(), true).await?;
                }
                Err(_) => sleep(AFTER_ERROR).await,
            },
            frame = link.out.recv() => {
                let frame = frame.ok_or(Gone)?;
                match to {
                    Some(to) => send(socket, &frame, to).await,
                    None => for to in peers.addresses() {
                        send(socket, &frame, to).await;
                    },
                }
            }
        }
    }
}

async fn send(socket: &UdpSocket, frame: &[u8], to: SocketAddr) {
    if let Err(error) = socket.send_to(frame, to).await {
        tracing::debug!(%to, "a frame was not sent: {error}");
    }
}

/// Sends to one address, and receives from it alone.
pub(super) async fn serve_out(port: Port, to: HostPort) {
    let mut pause = Pause::new(format!("udpout:{to}"), LONGEST_WAIT);
    let Ok(mut link) = port.open().await else { return };
    loop {
        tokio::select! {
            // What comes before the first attempt waits for it.
            biased;
            () = pause.wait() => {}
            frame = link.out.recv() => match frame {
                // Nobody is there to receive it.
                Some(_) => continue,
                None => return,
            },
        }
        let socket = match connect(&to).await {
            Ok(socket) => socket,
            Err(error) => {
                pause.failed(&error);
                continue;
            }
        };
        pause.opened();
        match exchange_with(&mut link, &socket).await {
            Ok(error) => pause.failed(&error),
            Err(Gone) => return,
        }
    }
}

/// Until the socket is of no more use.
async fn exchange_with(link: &mut Link, socket: &UdpSocket) -> Result<io::Error, Gone> {
    let mut buffer = [0; CHUNK];
    loop {
        tokio::select! {
            received = socket.recv(&mut buffer) => match received {
                Ok(len) => link.receive(buffer.get(..len).unwrap_or_default(), true).await?,
                // A program that does not run yet refuses; the next frame may find it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => sleep(AFTER_ERROR).await,
                Err(error) => return Ok(error),
            },
            frame = link.out.recv() => match socket.send(&frame.ok_or(Gone)?).await {
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => return Ok(error),
                _ => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_sent_lately_are_answered_and_no_more_than_there_is_room_for() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        for port in 1..=20 {
            peers.hear(now, at(port));
        }
        assert_eq!(peers.addresses().count(), MAX_PEERS);
        peers.hear(now + REMEMBERED / 2, at(1));
        peers.hear(now + REMEMBERED + Duration::from_secs(1), at(20));
        assert_eq!(peers.addresses().collect::<Vec<_>>(), [at(1), at(20)]);
    }
}
