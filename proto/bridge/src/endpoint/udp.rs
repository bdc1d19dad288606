//! MAVLink over UDP: listening (`udpin`), sending (`udpout`), broadcasting (`udpbcast`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use quiver_mavlink::HostPort;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, sleep};

use super::cut_frames::CutFrames;
use super::{CHUNK, EndpointPort, Gone, LinkHalves};
use crate::carrier::connect;
use crate::pause::Pause;

/// Programs behind one listening endpoint. More are not answered before one has been silent for a while.
const MAX_PEERS: usize = 16;
/// Maximum of programs at one address.
const MAX_OF_ADDRESS: usize = 8;
/// Time after which a program that is silent is answered no more.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Time after which a program that is silent makes room for another, and for which one is new. Programs send a heartbeat
/// every second.
const SILENT: Duration = Duration::from_secs(3);
/// Time between two lines in the log about programs that are not answered.
const TOLD: Duration = Duration::from_secs(60);
/// The longest wait before a name is looked up again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Pause after an error of the socket, so that one that lasts does not spin.
const AFTER_ERROR: Duration = Duration::from_millis(20);

/// Programs that sent to a listening endpoint, and are answered.
///
/// A sender of one byte is no program, and must not be sent a stream of frames: a sender's address may be
/// forged. So programs alone are answered that send frames, and go on to; and a crowd of new ones displaces
/// none that has been there for a while.
#[derive(Debug, Default)]
struct ProgramPeers(Vec<ProgramPeer>);

#[derive(Debug)]
struct ProgramPeer {
    at: SocketAddr,
    since: Instant,
    heard: Instant,
}

impl ProgramPeers {
    /// A datagram came; `is_program`: with a frame whose check sum proves it. Returns who is not answered for want of
    /// room, if that begins with it: this program, or one that made room for it.
    fn hear(&mut self, now: Instant, from: SocketAddr, is_program: bool) -> Option<SocketAddr> {
        self.0.retain(|peer| now.duration_since(peer.heard) < REMEMBERED);
        // A source that sends no frame with a right check sum gets no answer: addresses are easily made up.
        if !is_program {
            return None;
        }
        // A program that goes on sending keeps its place.
        if let Some(peer) = self.0.iter_mut().find(|peer| peer.at == from) {
            peer.heard = now;
            return None;
        }
        let of_address = |ip: IpAddr| self.0.iter().filter(|peer| peer.at.ip() == ip).count();
        let mut displaced = None;
        let full = self.0.len() >= MAX_PEERS;
        // Bounded for one address as well, so that one machine cannot take all places.
        if full || of_address(from.ip()) >= MAX_OF_ADDRESS {
            // The one that was silent for longest, or else the newest.
            let within = |peer: &&(usize, &ProgramPeer)| full || peer.1.at.ip() == from.ip();
            let silent = |peer: &&(usize, &ProgramPeer)| now.duration_since(peer.1.heard) >= SILENT;
            let new = |peer: &&(usize, &ProgramPeer)| now.duration_since(peer.1.since) < SILENT;
            let peers: Vec<_> = self.0.iter().enumerate().filter(|peer| within(&peer)).collect();
            let loser = peers.iter().filter(silent).min_by_key(|(_, peer)| peer.heard);
            let loser = loser.or_else(|| peers.iter().filter(new).max_by_key(|(_, peer)| peer.since));
            let Some((place, _)) = loser.copied() else { return Some(from) };
            displaced = Some(self.0.remove(place).at);
        }
        self.0.push(ProgramPeer { at: from, since: now, heard: now });
        displaced
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|peer| peer.at)
    }
}

/// Receives from anybody and answers those who sent.
pub(super) async fn serve_in(port: EndpointPort, socket: UdpSocket) {
    let Ok(mut link) = port.open().await else { return };
    // The bridge is gone, and with it whom this is for.
    let _ = exchange(&mut link, &socket, None).await;
}

/// Sends to a broadcast address, and receives from anybody.
pub(super) async fn serve_broadcast(port: EndpointPort, to: HostPort) {
    let mut pause = Pause::new(format!("udpbcast:{to}"), LONGEST_WAIT);
    loop {
        pause.wait().await;
        match broadcast(&to).await {
            Ok((socket, address)) => {
                pause.opened();
                let Ok(mut link) = port.open().await else { return };
                let _ = exchange(&mut link, &socket, Some(address)).await;
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

/// The multicast group that is sent to, if it is one. A connected socket would hear nobody of it: whoever
/// answers does so from an address of its own.
fn multicast_group(to: &HostPort) -> Option<SocketAddr> {
    let group: IpAddr = to.host.parse().ok()?;
    group.is_multicast().then(|| SocketAddr::new(group, to.port))
}

/// A socket that sends to this group, and receives from anybody.
async fn unconnected(group: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if group.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).await
}

/// Exchanges datagrams; without an address, those who sent are answered.
async fn exchange(link: &mut LinkHalves, socket: &UdpSocket, to: Option<SocketAddr>) -> Result<(), Gone> {
    let (mut peers, mut told, mut cut) = (ProgramPeers::default(), None, CutFrames::default());
    let mut buffer = [0; CHUNK];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((len, from)) => {
                    let datagram = buffer.get(..len).unwrap_or_default();
                    let now = Instant::now();
                    let frames = cut.join(now, from, datagram);
                    let unanswered = peers.hear(now, from, to.is_none() && frames.is_proven);
                    if let Some(program) = unanswered && told.is_none_or(|told| now.duration_since(told) >= TOLD) {
                        told = Some(now);
                        tracing::warn!(
                            "{program} is not answered: a listening endpoint answers {MAX_PEERS} programs, {MAX_OF_ADDRESS} of \
                             one address; end some, give them endpoints of their own, or wait until one was silent for {} s",
                            SILENT.as_secs()
                        );
                    }
                    link.receive_whole(frames).await?;
                }
                Err(_) => sleep(AFTER_ERROR).await,
            },
            frame = link.next_frame() => {
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
    // UDP loses frames anyhow, and a program that is gone is forgotten by its silence.
    if let Err(error) = socket.send_to(frame, to).await {
        tracing::debug!(%to, "a frame was not sent: {error}");
    }
}

/// Sends to one address, and receives from it alone. A broadcast address of one of the machine's networks is one as any
/// other: what is sent there goes to all, and anybody may answer, as with `udpbcast`.
pub(super) async fn serve_out(port: EndpointPort, to: HostPort) {
    let mut pause = Pause::new(format!("udpout:{to}"), LONGEST_WAIT);
    let Ok(mut link) = port.open().await else { return };
    loop {
        tokio::select! {
            // Frames of before the first attempt wait for it.
            biased;
            () = pause.wait() => {}
            frame = link.next_frame() => match frame {
                // Nobody is there to receive it.
                Some(_) => continue,
                None => return,
            },
        }
        if let Some(group) = multicast_group(&to) {
            match unconnected(group).await {
                Ok(socket) => {
                    pause.opened();
                    let _ = exchange(&mut link, &socket, Some(group)).await;
                    return;
                }
                Err(error) => pause.failed(&error),
            }
            continue;
        }
        let socket = match connect(&to).await {
            Ok(socket) => socket,
            // Only the system knows that it is a broadcast address, and says so by this.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => match broadcast(&to).await {
                Ok((socket, address)) => {
                    pause.opened();
                    let _ = exchange(&mut link, &socket, Some(address)).await;
                    return;
                }
                Err(error) => {
                    pause.failed(&error);
                    continue;
                }
            },
            Err(error) => {
                pause.failed(&error);
                continue;
            }
        };
        pause.opened();
        let Ok(peer) = socket.peer_addr() else { continue };
        match exchange_with(&mut link, &socket, peer).await {
            Ok(error) => pause.failed(&error),
            Err(Gone) => return,
        }
    }
}

/// Exchanges datagrams with one peer until the socket is of no more use.
async fn exchange_with(
    link: &mut LinkHalves,
    socket: &UdpSocket,
    peer: SocketAddr,
) -> Result<io::Error, Gone> {
    let (mut buffer, mut cut) = ([0; CHUNK], CutFrames::default());
    loop {
        tokio::select! {
            received = socket.recv(&mut buffer) => match received {
                Ok(len) => {
                    let datagram = buffer.get(..len).unwrap_or_default();
                    link.receive_whole(cut.join(Instant::now(), peer, datagram)).await?;
                }
                // A program that does not run yet refuses; the next frame may find it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => sleep(AFTER_ERROR).await,
                Err(error) => return Ok(error),
            },
            frame = link.next_frame() => match socket.send(&frame.ok_or(Gone)?).await {
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => return Ok(error),
                _ => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_answers_a_multicast_group_is_heard() {
        let to = |host: &str| HostPort { host: host.into(), port: 14550 };
        assert_eq!(multicast_group(&to("127.0.0.1")), None);
        let group = multicast_group(&to("224.1.2.34")).expect("a group");
        let socket = unconnected(group).await.expect("a socket");
        let port = socket.local_addr().expect("address").port();
        let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        other.send_to(b"answer", (Ipv4Addr::LOCALHOST, port)).expect("send");
        let (mut buffer, limit) = ([0; 16], Duration::from_secs(10));
        let received = tokio::time::timeout(limit, socket.recv_from(&mut buffer)).await.expect("in time");
        assert_eq!(received.expect("received").0, 6);
    }

    #[test]
    fn those_who_sent_lately_are_answered_and_no_more_than_there_is_room_for() {
        let (mut peers, now) = (ProgramPeers::default(), Instant::now());
        for host in 1..=20 {
            peers.hear(now, at(host, 1), true);
        }
        assert_eq!(peers.addresses().count(), MAX_PEERS);
        peers.hear(now + REMEMBERED / 2, at(1, 1), true);
        peers.hear(now + REMEMBERED + SECOND, at(20, 1), true);
        assert_eq!(peers.addresses().collect::<Vec<_>>(), [at(1, 1), at(20, 1)]);
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn at(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn whoever_sends_no_frame_is_not_answered() {
        let (mut peers, now) = (ProgramPeers::default(), Instant::now());
        // A heartbeat of MAVLink 1, and the same with another check sum.
        let heartbeat = [0xfe, 9, 0, 1, 1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 3];
        let sum = heartbeat.iter().skip(1).chain(&[50]).fold(0xffff_u16, |crc, byte| {
            (0..8).fold(
                crc ^ u16::from(*byte),
                |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 },
            )
        });
        let whole = [&heartbeat[..], &sum.to_le_bytes()].concat();
        let wrong = [&heartbeat[..], &(!sum).to_le_bytes()].concat();
        let has_frame = |datagram: &[u8]| CutFrames::default().join(now, at(1, 1), datagram).is_proven;
        assert!(has_frame(&whole) && has_frame(&[&[7], &whole[..]].concat()));
        for datagram in [&[0][..], &[], &wrong, &whole[..10]] {
            assert!(!has_frame(datagram));
            peers.hear(now, at(1, 1), has_frame(datagram));
        }
        assert_eq!(peers.addresses().count(), 0);
        // A program that has sent frames keeps its place by nothing else.
        peers.hear(now, at(1, 1), true);
        peers.hear(now + REMEMBERED, at(1, 1), false);
        assert_eq!(peers.addresses().count(), 0);
    }

    #[test]
    fn a_crowd_of_forged_senders_keeps_no_program_unanswered() {
        let (mut peers, start) = (ProgramPeers::default(), Instant::now());
        let station = at(200, 14_550);
        // They are there first, each with one frame.
        for host in 0..40 {
            peers.hear(start, at(host, 1), true);
        }
        for second in 0..60_u32 {
            let now = start + SECOND * second;
            peers.hear(now, station, true);
            assert!(peers.addresses().any(|peer| peer == station), "{second}");
            // Again, when it has been there for a while, and each goes on for a second.
            for host in 0..if second > 3 { 40_u8 } else { 0 } {
                peers.hear(now + SECOND / 2, at(host, u16::try_from(second).unwrap()), true);
                assert!(peers.addresses().any(|peer| peer == station), "{second}");
            }
        }
        assert_eq!(peers.addresses().count(), MAX_PEERS);
    }

    #[test]
    fn programs_of_one_address_leave_room_for_others() {
        let (mut peers, now) = (ProgramPeers::default(), Instant::now());
        for port in 1..=100 {
            peers.hear(now, at(1, port), true);
        }
        assert_eq!(peers.addresses().count(), MAX_OF_ADDRESS);
        peers.hear(now, at(2, 1), true);
        assert!(peers.addresses().any(|peer| peer == at(2, 1)));
    }

    #[test]
    fn program_that_is_not_answered_for_want_of_room_is_named() {
        let (mut peers, start) = (ProgramPeers::default(), Instant::now());
        let everybody = 1..=u8::try_from(MAX_PEERS).unwrap();
        for host in everybody.clone() {
            assert_eq!(peers.hear(start, at(host, 1), true), None);
        }
        let later = start + SILENT;
        for host in everybody {
            assert_eq!(peers.hear(later, at(host, 1), true), None, "it is known");
        }
        assert_eq!(peers.hear(later, at(99, 1), true), Some(at(99, 1)), "nobody makes room");
        assert_eq!(peers.hear(later, at(99, 1), false), None, "it is no program");
        assert_eq!(peers.hear(later + SILENT, at(99, 1), true), Some(at(1, 1)), "that one made room");
    }
}
