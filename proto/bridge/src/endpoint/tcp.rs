//! MAVLink over TCP: connecting (`tcp`) and listening (`tcpin`).

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::time::Duration;

use quiver_mavlink::HostPort;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{CHUNK, EndpointPort, Gone, LinkHalves};
use crate::pause::{Pause, closed};

/// Clients of one listening endpoint.
const MAX_CLIENTS: usize = 32;
/// Those of one address, as it is [`counted`], unless it is this machine's own.
const MAX_OF_ADDRESS: usize = 16;
/// Time after which a client that sends nothing makes room for another. Programs send a heartbeat every
/// second.
const SILENT: Duration = Duration::from_secs(5);
/// Time limit for a server's answer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time limit for a program to take what is sent: one that hangs is disconnected.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Pause after an error of the listener.
const AFTER_ERROR: Duration = Duration::from_millis(100);

pub(super) async fn listen(at: &HostPort) -> io::Result<TcpListener> {
    TcpListener::bind((at.host.as_str(), at.port)).await
}

/// Address that stands for all that one machine may have: of IPv6 those with the same first 64 bits.
fn counted(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Clients that are connected. A client that connects and sends nothing keeps no program out.
#[derive(Debug, Default)]
struct Clients {
    clients: BTreeMap<u64, Client>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    from: IpAddr,
    /// When it sent something last, or came.
    heard: watch::Receiver<Instant>,
    /// Dropped to disconnect it.
    _end: oneshot::Sender<()>,
}

/// A client's side of its place.
struct ClientSlot {
    number: u64,
    heard: watch::Sender<Instant>,
    end: oneshot::Receiver<()>,
}

impl Clients {
    /// Finds a place for a client, at the cost of one that was silent for long if there is none; `None`
    /// without any.
    fn admit(&mut self, now: Instant, from: IpAddr) -> Option<ClientSlot> {
        // Programs of this machine share one address, and are no strangers that could take all places.
        let most = if from.to_canonical().is_loopback() { MAX_CLIENTS } else { MAX_OF_ADDRESS };
        let from = counted(from);
        let of_address = self.clients.values().filter(|client| client.from == from).count();
        let full = self.clients.len() >= MAX_CLIENTS;
        if full || of_address >= most {
            // If its address alone has too many, one from there goes: an address must not push out others.
            let within = self.clients.iter().filter(|(_, client)| full || client.from == from);
            let silent = within.map(|(number, client)| (*client.heard.borrow(), *number)).min();
            let (_, number) = silent.filter(|(heard, _)| now.duration_since(*heard) >= SILENT)?;
            self.clients.remove(&number);
        }
        // A newcomer counts as heard, so that it has as long to speak as others may be silent.
        let (heard, hears) = watch::channel(now);
        let (end, ends) = oneshot::channel();
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.clients.insert(number, Client { from, heard: hears, _end: end });
        Some(ClientSlot { number, heard, end: ends })
    }
}

/// Serves clients, each a link.
pub(super) async fn serve_in(port: EndpointPort, listener: TcpListener) {
    let mut clients = Clients::default();
    let mut served = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = served.join_next() => {
                if let Ok(number) = ended {
                    clients.clients.remove(&number);
                }
                continue;
            }
        };
        let Ok((stream, from)) = accepted else {
            // Without descriptors every attempt fails at once: the loop must not spin.
            sleep(AFTER_ERROR).await;
            continue;
        };
        let Some(ClientSlot { number, heard, end }) = clients.admit(Instant::now(), from.ip()) else {
            tracing::warn!(
                %from,
                "refused: {MAX_CLIENTS} programs are connected there already, or {MAX_OF_ADDRESS} from that address or IPv6 \
                 network"
            );
            continue;
        };
        let port = port.clone();
        served.spawn(async move {
            // An error costs a delay at most; a stream that is broken says so when it is read.
            let _ = stream.set_nodelay(true);
            if let Ok(link) = port.open().await {
                exchange(link, stream, Some(&heard), end).await;
            }
            number
        });
    }
}

/// Connects again and again; once only without `retry_after`.
pub(super) async fn serve_out(port: EndpointPort, to: HostPort, retry_after: Option<Duration>) {
    let mut pause = Pause::new(format!("tcp:{to}"), retry_after.unwrap_or_default());
    loop {
        pause.wait().await;
        match connect(&to).await {
            Ok(stream) => {
                pause.opened();
                let Ok(link) = port.open().await else { return };
                pause.failed(&exchange(link, stream, None, pending::<()>()).await);
            }
            Err(error) => pause.failed(&error),
        }
        // mavlink-router's RetryTimeout of 0: one attempt.
        if retry_after.is_none() || port.events.is_closed() {
            return;
        }
    }
}

async fn connect(to: &HostPort) -> io::Result<TcpStream> {
    let connecting = timeout(CONNECT_TIME, TcpStream::connect((to.host.as_str(), to.port)));
    let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads and writes a stream until it ends, or is to end; says why. Notes when something came.
async fn exchange<E>(
    mut link: LinkHalves,
    mut stream: TcpStream,
    heard: Option<&watch::Sender<Instant>>,
    end: impl Future<Output = E>,
) -> io::Error {
    let (mut reading, mut writing) = stream.split();
    let mut buffer = [0; CHUNK];
    let mut end = pin!(end);
    let ended = loop {
        tokio::select! {
            _ = &mut end => break closed(),
            read = reading.read(&mut buffer) => match read {
                // The program has closed its side.
                Ok(0) => break closed(),
                Ok(len) => {
                    if let Some(heard) = heard {
                        heard.send_replace(Instant::now());
                    }
                    if let Err(Gone) = link.receive(buffer.get(..len).unwrap_or_default()).await {
                        break closed();
                    }
                }
                Err(error) => break error,
            },
            frame = link.next_frame() => {
                let Some(frame) = frame else { break closed() };
                // Within the arm, because a write that is cancelled would leave half a frame on the stream.
                match timeout(WRITE_TIME, writing.write_all(&frame)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => break error,
                    // A client that takes nothing would hold its place for ever.
                    Err(_) => break io::Error::new(io::ErrorKind::TimedOut, "it takes nothing"),
                }
            }
        }
    };
    link.close().await;
    ended
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    #[test]
    fn clients_that_send_nothing_make_room_for_programs_and_programs_for_nobody() {
        let (mut clients, start) = (Clients::default(), Instant::now());
        let mut idle: Vec<_> = (0..100).filter_map(|number| clients.admit(start, host(number))).collect();
        assert_eq!(idle.len(), MAX_CLIENTS);
        let later = start + SILENT;
        // A client that sends keeps its place.
        idle[0].heard.send_replace(later);
        let mut station = clients.admit(later, host(200)).expect("one of them goes");
        let is_over =
            |place: &mut ClientSlot| place.end.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        assert!(!is_over(&mut idle[0]) && is_over(&mut idle[1]));
        for program in [&station, &idle[0]] {
            program.heard.send_replace(later + SILENT);
        }
        let others = (100..200).filter(|number| clients.admit(later + SILENT, host(*number)).is_some());
        assert_eq!(others.count(), MAX_CLIENTS - 2, "in place of those that are silent");
        assert!(!is_over(&mut station) && !is_over(&mut idle[0]));
        assert!(idle.iter_mut().skip(1).all(is_over));
    }

    #[test]
    fn clients_of_one_address_leave_room_for_others() {
        let (mut clients, now) = (Clients::default(), Instant::now());
        let places: Vec<_> = (0..100).filter_map(|_| clients.admit(now, host(1))).collect();
        assert_eq!(places.len(), MAX_OF_ADDRESS);
        assert!(clients.admit(now, host(2)).is_some());
        // Of its own address, when that is due.
        assert!(clients.admit(now + SILENT, host(1)).is_some());
        let of_address = clients.clients.values().filter(|client| client.from == host(1)).count();
        assert_eq!(of_address, MAX_OF_ADDRESS);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address_and_programs_of_this_machine_have_all_places() {
        let now = Instant::now();
        let of_network = |number: u128, host: u128| -> IpAddr {
            Ipv6Addr::from((0x2001_0db8_u128 << 96) | (number << 64) | host).into()
        };
        let mut clients = Clients::default();
        let places: Vec<_> = (1..100).filter_map(|host| clients.admit(now, of_network(1, host))).collect();
        assert_eq!(places.len(), MAX_OF_ADDRESS);
        assert!(clients.admit(now, of_network(2, 1)).is_some());
        for own in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
            Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
        ] {
            let mut clients = Clients::default();
            let places: Vec<_> = (0..100).filter_map(|_| clients.admit(now, own)).collect();
            assert_eq!(places.len(), MAX_CLIENTS, "{own}");
        }
    }
}
