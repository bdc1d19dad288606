//! Carriers of the group's datagrams from machine to machine.
//!
//! | spelling | what it is |
//! |---|---|
//! | `udp:HOST:PORT+HOST:PORT…` | listens on the first address, sends to all others |
//! | `multicast:GROUP:PORT`, `…@INTERFACE` | an IPv4 multicast group, on the interface with that address |
//! | `broadcast:ADDRESS:PORT` | an IPv4 broadcast address |
//! | `serial:DEVICE:BAUD` | a transparent radio modem: SiK, RFD900; COBS marks where datagrams end |
//! | `tunnel:DEVICE:BAUD` | a radio modem that takes nothing but MAVLink: datagrams in `TUNNEL` messages |
//! | `star:HOST:PORT` | the leader, which forwards to everybody: the drone's side |
//! | `relay:HOST:PORT` | listens, and forwards what members send: the leader's side |
//!
//! Carriers know no key. They lose, double and reorder datagrams as networks do; nothing is sent again.

mod memory;
mod relay;
mod serial;
mod tunnel;
mod udp;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_mavlink::{Endpoint, HostPort, MAX_TUNNELLED, Resource, TUNNEL_OVERHEAD};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::memory::{MemoryCarrier, memory};
use self::serial::Cobs;
use self::tunnel::Tunnel;
pub(crate) use self::udp::{bind, connect};
use crate::error::BridgeError;

/// Bytes that UDP takes in one datagram without being cut on any usual way.
const UDP_MTU: usize = 1_200;
/// Bytes of a datagram on a serial line: the longest signed MAVLink frame fits.
const SERIAL_MTU: usize = 512;
/// Bytes of the longest datagram that is read; longer ones are cut, and then do not open.
const LONGEST: usize = 2_048;
/// Datagrams that wait for one carrier.
const WAITING: usize = 64;
/// The same on a line that is slow, beside the one that is next and the one that is being sent: what waits longer
/// does so where it can still be dropped.
const WAITING_FOR_LINE: usize = 1;

/// Carrier of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP to each of a list.
    Udp {
        /// Address to listen on.
        listen: HostPort,
        /// Addresses to send to.
        peers: Vec<HostPort>,
    },
    /// An IPv4 multicast group.
    Multicast {
        /// Address and port of the group.
        group: SocketAddrV4,
        /// Address of the interface; unspecified for the system's choice.
        interface: Ipv4Addr,
    },
    /// An IPv4 broadcast address.
    Broadcast(SocketAddrV4),
    /// A radio modem on a serial line.
    Serial {
        /// Serial device.
        device: String,
        /// Bits per second of the line.
        baud: u32,
    },
    /// A radio modem on a serial line that takes nothing but MAVLink.
    Tunnel {
        /// Serial device.
        device: String,
        /// Bits per second of the line.
        baud: u32,
    },
    /// The leader's relay.
    Star(HostPort),
    /// A relay for everybody's.
    Relay(HostPort),
}

impl Carrier {
    /// Bytes of the longest datagram.
    #[must_use]
    pub const fn mtu(&self) -> usize {
        match self {
            Self::Serial { .. } => SERIAL_MTU,
            Self::Tunnel { .. } => MAX_TUNNELLED,
            _ => UDP_MTU,
        }
    }

    /// Bits of datagrams per second; `None` if it takes what it is given.
    #[must_use]
    pub const fn bit_rate(&self) -> Option<u32> {
        match self {
            // A byte takes ten bits on the line: start and stop besides its own.
            Self::Serial { baud, .. } | Self::Tunnel { baud, .. } => Some(*baud / 10 * 8),
            _ => None,
        }
    }

    /// Bytes that it adds to a datagram on a line whose rate counts.
    #[must_use]
    pub const fn framing(&self) -> usize {
        match self {
            // COBS: a code byte for each 254, and the delimiter.
            Self::Serial { .. } => 4,
            // Of one part. Datagrams of more parts wait in front of the line.
            Self::Tunnel { .. } => TUNNEL_OVERHEAD,
            _ => 0,
        }
    }

    /// Places that it sends to.
    pub(crate) fn destinations(&self) -> Vec<Resource> {
        match self {
            Self::Udp { peers, .. } => peers.iter().cloned().map(Resource::UdpPort).collect(),
            Self::Star(to) => vec![Resource::UdpPort(to.clone())],
            _ => Vec::new(),
        }
    }

    /// Resource of the machine that the carrier needs for itself.
    pub(crate) fn resource(&self) -> Option<Resource> {
        match self {
            Self::Udp { listen: at, .. } | Self::Relay(at) => Some(Resource::UdpPort(at.clone())),
            Self::Serial { device, .. } | Self::Tunnel { device, .. } => {
                Some(Resource::Device(device.clone()))
            }
            Self::Multicast { .. } | Self::Broadcast(_) | Self::Star(_) => None,
        }
    }
}

impl FromStr for Carrier {
    type Err = BridgeError;

    fn from_str(text: &str) -> Result<Self, BridgeError> {
        parse(text).map_err(|reason| BridgeError::Carrier { given: text.chars().take(80).collect(), reason })
    }
}

fn parse(text: &str) -> Result<Carrier, String> {
    const EXAMPLES: &str = "write udp:0.0.0.0:14800+10.0.0.2:14800, multicast:239.255.14.80:14800, \
                            broadcast:10.0.0.255:14800, serial:/dev/ttyUSB0:57600, tunnel:/dev/ttyUSB0:57600, \
                            star:leader.example:14800 or relay:0.0.0.0:14800";
    let (scheme, rest) = text.split_once(':').ok_or(EXAMPLES)?;
    match scheme {
        "udp" => {
            let mut addresses = rest.split('+');
            let listen = HostPort::parse(addresses.next().unwrap_or_default(), Some("0.0.0.0"), None)?;
            // The first address is this machine's own, all others are sent to.
            let peers = addresses
                .map(|peer| sent_to(HostPort::parse(peer, None, None)?))
                .collect::<Result<Vec<_>, _>>()?;
            if let Some(peer) = peers.iter().find(|peer| peer.reaches(&listen)) {
                return Err(format!("{peer} is this end itself: behind + stand the other ends"));
            }
            let twice =
                peers.iter().enumerate().find(|(at, peer)| peers.iter().take(*at).any(|one| one == *peer));
            if let Some((_, peer)) = twice {
                return Err(format!("{peer} is given twice"));
            }
            if peers.is_empty() {
                return Err(format!(
                    "nobody to send to: write udp:{rest}+HOST:PORT, with + before each peer"
                ));
            }
            Ok(Carrier::Udp { listen, peers })
        }
        "multicast" => {
            let (group, interface) = rest.split_once('@').unwrap_or((rest, "0.0.0.0"));
            let group = v4(group)?;
            // Else the system would say no more than that the argument is invalid.
            if !group.ip().is_multicast() {
                return Err("multicast addresses go from 224.0.0.0 to 239.255.255.255".into());
            }
            let interface =
                interface.parse().map_err(|_| "behind @ the interface's IPv4 address is expected")?;
            Ok(Carrier::Multicast { group, interface })
        }
        "broadcast" => {
            let address = v4(rest)?;
            if address.ip().is_multicast() || address.ip().is_unspecified() {
                return Err("this is no broadcast address, such as 10.0.0.255".into());
            }
            Ok(Carrier::Broadcast(address))
        }
        "serial" => line(rest).map(|(device, baud)| Carrier::Serial { device, baud }),
        "tunnel" => line(rest).map(|(device, baud)| Carrier::Tunnel { device, baud }),
        "star" => HostPort::parse(rest, None, None).and_then(sent_to).map(Carrier::Star),
        "relay" => HostPort::parse(rest, Some("0.0.0.0"), None).map(Carrier::Relay),
        _ => Err(EXAMPLES.into()),
    }
}

/// Refuses what is no address of one machine.
fn sent_to(to: HostPort) -> Result<HostPort, String> {
    to.of_one_machine()
        .map_err(|reason| format!("{reason}; multicast: and broadcast: are carriers of their own"))
}

/// A serial line, as endpoints spell it.
fn line(rest: &str) -> Result<(String, u32), String> {
    match format!("serial:{rest}").parse() {
        Ok(Endpoint::Serial { device, baud }) => Ok((device, baud)),
        Ok(_) => Err("a device and its rate are expected".into()),
        Err(quiver_mavlink::MavlinkError::Endpoint { reason, .. }) => Err(reason),
        Err(error) => Err(error.to_string()),
    }
}

fn v4(text: &str) -> Result<SocketAddrV4, String> {
    let address: SocketAddrV4 = text.parse().map_err(|_| "an IPv4 address and a port are expected")?;
    if address.port() == 0 { Err("port 0 is none to send to".into()) } else { Ok(address) }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp { listen, peers } => {
                write!(f, "udp:{listen}")?;
                peers.iter().try_for_each(|peer| write!(f, "+{peer}"))
            }
            Self::Multicast { group, interface } if interface.is_unspecified() => {
                write!(f, "multicast:{group}")
            }
            Self::Multicast { group, interface } => write!(f, "multicast:{group}@{interface}"),
            Self::Broadcast(to) => write!(f, "broadcast:{to}"),
            Self::Serial { device, baud } => write!(f, "serial:{device}:{baud}"),
            Self::Tunnel { device, baud } => write!(f, "tunnel:{device}:{baud}"),
            Self::Star(at) => write!(f, "star:{at}"),
            Self::Relay(at) => write!(f, "relay:{at}"),
        }
    }
}

/// Content that a carrier received.
#[derive(Debug)]
pub(crate) enum Content {
    /// A datagram.
    Datagram(Vec<u8>),
    /// A frame in which the radio at this end says how it is doing.
    RadioStatus(Vec<u8>),
}

/// Arrival at a carrier.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Number of the carrier.
    pub(crate) carrier: usize,
    /// Sender's address, if the carrier is told afterwards whether the datagram proved a member.
    pub(crate) from: Option<SocketAddr>,
    /// Time of the arrival.
    pub(crate) at: Instant,
    /// Content of the arrival.
    pub(crate) content: Content,
}

/// Order to a carrier.
#[derive(Debug)]
pub(crate) enum CarrierCommand {
    /// Send this.
    Send(Vec<u8>),
    /// The relay's answer to [`Arrived`]: forward it if its sender is a member.
    Forward {
        /// Address of the sender.
        from: SocketAddr,
        /// The bytes.
        datagram: Vec<u8>,
        /// True if it opened under the group's key.
        proven: bool,
    },
    /// The group has another key, or none: whoever sends is to prove anew that it is a member.
    KeyChanged,
}

/// Numbers of one carrier.
#[derive(Debug, Default)]
pub(crate) struct CarrierCounters {
    /// Datagrams that left.
    pub(crate) sent: AtomicU64,
    /// Bytes of them.
    pub(crate) sent_bytes: AtomicU64,
    /// Datagrams received.
    pub(crate) received: AtomicU64,
    /// Bytes of them.
    pub(crate) received_bytes: AtomicU64,
    /// Datagrams that it did not take: full, closed, or the system refused.
    pub(crate) dropped: AtomicU64,
    /// Datagrams forwarded.
    pub(crate) forwarded: AtomicU64,
    /// Datagrams not forwarded: not of a member, or too many.
    pub(crate) refused: AtomicU64,
}

impl CarrierCounters {
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn received(&self, bytes: usize) {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// The bridge's side of an open carrier.
#[derive(Debug)]
pub(crate) struct OpenCarrier {
    pub(crate) carrier: String,
    pub(crate) orders: mpsc::Sender<CarrierCommand>,
    pub(crate) counters: Arc<CarrierCounters>,
}

/// A carrier's own side.
#[derive(Debug)]
struct CarrierPort {
    index: usize,
    orders: mpsc::Receiver<CarrierCommand>,
    arrived: mpsc::Sender<Arrived>,
    /// Told after each datagram that left: there is room.
    room: Arc<Notify>,
    counters: Arc<CarrierCounters>,
    /// The system id of this end, 0 while none is granted.
    system: Arc<AtomicU32>,
}

impl CarrierPort {
    /// Hands a received datagram to the bridge, which loses it if it is behind.
    fn receive(&self, from: Option<SocketAddr>, datagram: &[u8]) {
        self.counters.received(datagram.len());
        self.hand_over(from, Content::Datagram(datagram.to_vec()));
    }

    fn hand_over(&self, from: Option<SocketAddr>, content: Content) {
        let arrived = Arrived { carrier: self.index, from, at: Instant::now(), content };
        // Dropped rather than waited for: a bridge that is behind must not hold up the carrier's sending.
        if self.arrived.try_send(arrived).is_err() {
            self.counters.dropped();
        }
    }

    /// The next order; `None` if the bridge is gone.
    async fn order(&mut self) -> Option<CarrierCommand> {
        let order = self.orders.recv().await;
        // The bridge seals the next datagram only when one has left (§20.9).
        self.room.notify_one();
        order
    }
}

/// The bridge's side of all carriers, which they share.
#[derive(Debug)]
pub(crate) struct CarrierContext {
    /// Takes what they receive.
    pub(crate) arrived: mpsc::Sender<Arrived>,
    /// Told after each datagram that left: there is room.
    pub(crate) room: Arc<Notify>,
    /// The system id of this end, 0 while none is granted.
    pub(crate) system: Arc<AtomicU32>,
}

impl CarrierContext {
    /// A port for a carrier with room for so many orders, and the bridge's side of it.
    fn port(&self, index: usize, carrier: String, waiting: usize) -> (CarrierPort, OpenCarrier) {
        let (orders, port) = mpsc::channel(waiting);
        let counters = Arc::new(CarrierCounters::default());
        let port = CarrierPort {
            index,
            orders: port,
            arrived: self.arrived.clone(),
            room: Arc::clone(&self.room),
            counters: Arc::clone(&counters),
            system: Arc::clone(&self.system),
        };
        (port, OpenCarrier { carrier, orders, counters })
    }
}

/// Takes the port that a carrier listens at alone, and gives it back.
pub(crate) async fn check(carrier: &Carrier) -> Result<(), BridgeError> {
    match carrier {
        Carrier::Udp { listen: at, .. } | Carrier::Relay(at) => {
            let taken = bind(at).await.map(drop);
            taken.map_err(|source| BridgeError::Open { place: carrier.to_string(), source })
        }
        // Others share their port, have one of the system's choice, or wait for a device.
        _ => Ok(()),
    }
}

/// Opens a carrier; its task ends with `tasks`, or when the bridge is gone.
pub(crate) async fn open(
    carrier: &Carrier,
    index: usize,
    shared: &CarrierContext,
    tasks: &mut JoinSet<()>,
) -> Result<OpenCarrier, BridgeError> {
    // §20.9: on a slow line payloads wait in the queue, where commands can overtake and old ones be dropped.
    let waiting = if carrier.bit_rate().is_some() { WAITING_FOR_LINE } else { WAITING };
    let (port, opened) = shared.port(index, carrier.to_string(), waiting);
    let failed = |source| BridgeError::Open { place: carrier.to_string(), source };
    match carrier {
        Carrier::Udp { listen, peers } => {
            let socket = bind(listen).await.map_err(failed)?;
            tasks.spawn(udp::serve(port, socket, peers.clone()));
        }
        Carrier::Multicast { group, interface } => {
            let socket = udp::join(*group, *interface).map_err(failed)?;
            tasks.spawn(udp::serve_one(port, socket, SocketAddr::V4(*group)));
        }
        Carrier::Broadcast(to) => {
            let socket = udp::broadcast(*to).map_err(failed)?;
            tasks.spawn(udp::serve_one(port, socket, SocketAddr::V4(*to)));
        }
        // Devices may come later, so that none is an error of the start; a port that is taken is.
        Carrier::Serial { device, baud } => {
            tasks.spawn(serial::serve(port, device.clone(), *baud, Cobs::default()));
        }
        Carrier::Tunnel { device, baud } => {
            let framing = Tunnel::new(Arc::clone(&port.system));
            tasks.spawn(serial::serve(port, device.clone(), *baud, framing));
        }
        // A relay that is not found yet is looked for, so that drones may start before their leader.
        Carrier::Star(at) => {
            tasks.spawn(udp::serve_star(port, at.clone()));
        }
        Carrier::Relay(at) => {
            let socket = bind(at).await.map_err(failed)?;
            tasks.spawn(relay::serve(port, socket));
        }
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_read_as_they_are_shown() {
        for text in [
            "udp:0.0.0.0:14800+10.0.0.2:14800",
            "udp:[::1]:1+[::1]:2+host.example:3",
            "multicast:239.255.14.80:14800",
            "multicast:239.255.14.80:14800@127.0.0.1",
            "broadcast:10.0.0.255:14800",
            "serial:/dev/ttyUSB0:57600",
            "tunnel:/dev/ttyUSB0:57600",
            "star:leader.example:14800",
            "relay:0.0.0.0:14800",
        ] {
            assert_eq!(text.parse::<Carrier>().unwrap().to_string(), text);
        }
        assert_eq!("udp::1+h:2".parse::<Carrier>().unwrap().to_string(), "udp:0.0.0.0:1+h:2");
    }

    #[test]
    fn what_is_no_carrier_is_refused_and_said_how_to_write_it() {
        for (text, part) in [
            ("", "write udp:"),
            ("air", "write udp:"),
            ("udp:0.0.0.0:14800", "nobody to send to"),
            ("udp:0.0.0.0:14800+", "a port is missing"),
            ("udp:h:0+h:1", "not a port"),
            ("multicast:10.0.0.1:14800", "224.0.0.0"),
            ("multicast:239.0.0.1:14800@eth0", "interface"),
            ("broadcast:10.0.0.255", "an IPv4 address and a port"),
            ("serial:", "device is missing"),
            ("serial:/dev/ttyUSB0:fast", "rate"),
            ("tunnel:", "device is missing"),
            ("star:", "a port is missing"),
            ("star:0.0.0.0:14800", "this machine is 127.0.0.1"),
            ("star:224.0.0.1:14800", "carriers of their own"),
            ("udp:127.0.0.1:1+127.0.0.1:1", "127.0.0.1:1 is this end itself"),
            ("udp:0.0.0.0:1+h:2+localhost:1", "localhost:1 is this end itself"),
            ("udp:[::]:1+[::1]:1", "[::1]:1 is this end itself"),
            ("udp:0.0.0.0:1+h:2+h:2", "h:2 is given twice"),
            ("udp:127.0.0.1:1+255.255.255.255:1", "no address of one machine"),
            ("broadcast:224.0.0.1:1", "no broadcast address"),
        ] {
            let error = text.parse::<Carrier>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn serial_line_takes_eight_of_its_ten_bits() {
        let carrier: Carrier = "serial:/dev/ttyUSB0:57600".parse().unwrap();
        assert_eq!(carrier.bit_rate(), Some(46_080));
    }
}
