//! Configuration of a node.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use libp2p::multiaddr::{self, Protocol};
use libp2p::{Multiaddr, PeerId};
use quiver_machine::{KgcId, MAX_MESSAGE_LEN, Route};
use tokio::sync::Semaphore;

use crate::clock_sync::Clocks;
use crate::error::AddressError;
use crate::introduction::Introduction;
use crate::key::NodeKey;
use crate::rate::Rate;
use crate::transport::quic;

/// Transport protocol of the connections. Noise authenticates and encrypts TCP; QUIC has TLS 1.3 for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Transport {
    /// TCP: `/ip4/…/tcp/…`.
    #[display("tcp")]
    Tcp,
    /// QUIC version 1: `/ip4/…/udp/…/quic-v1`.
    #[display("quic")]
    Quic,
    /// TCP and QUIC.
    #[display("tcp+quic")]
    TcpAndQuic,
    /// Channels within the process: `/memory/…`.
    #[display("memory")]
    Memory,
    /// The same without Noise, which has nothing to hide within one process's memory. Saves half of the time
    /// to connect and a quarter of the memory; the two ends believe each other's names. For simulators.
    #[display("plain memory")]
    PlainMemory,
}

impl Transport {
    /// Transport of services: TCP, and QUIC beside it in a build that has it.
    pub const SERVICE: Self = if quic::IS_BUILT_IN { Self::TcpAndQuic } else { Self::Tcp };

    /// Returns true if this build has the transport: QUIC needs the feature `quic`.
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        quic::IS_BUILT_IN || !matches!(self, Self::Quic | Self::TcpAndQuic)
    }

    /// Returns true if an address of this transport can be listened on or dialled.
    pub(crate) fn supports(self, address: &Multiaddr) -> bool {
        let has = |wanted: fn(&Protocol<'_>) -> bool| address.iter().any(|part| wanted(&part));
        let tcp = has(|part| matches!(part, Protocol::Tcp(_)));
        let quic = has(|part| matches!(part, Protocol::QuicV1));
        let memory = has(|part| matches!(part, Protocol::Memory(_)));
        match self {
            Self::Tcp => tcp,
            Self::Quic => quic,
            Self::TcpAndQuic => tcp || quic,
            Self::Memory | Self::PlainMemory => memory,
        }
    }

    /// An address of this transport, for messages to people.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Tcp => "/ip4/127.0.0.1/tcp/7000",
            Self::Quic => "/ip4/127.0.0.1/udp/7000/quic-v1",
            Self::TcpAndQuic => "/ip4/127.0.0.1/tcp/7000 or /ip4/127.0.0.1/udp/7000/quic-v1",
            Self::Memory | Self::PlainMemory => "/memory/7000",
        }
    }
}

/// Reads an address: a multiaddress, or `HOST:PORT` for TCP.
fn parse_address(text: &str) -> Result<Multiaddr, AddressError> {
    let address = match host_and_port(text) {
        Some((host, port)) => Multiaddr::from_iter([host, Protocol::Tcp(port)]),
        None if text.starts_with('[') && text.contains('%') => {
            return Err(AddressError::Undialable(LINK_LOCAL));
        }
        // Nothing is a multiaddress, too.
        None if text.is_empty() => return Err(multiaddr::Error::InvalidMultiaddr.into()),
        None => text.parse()?,
    };
    let quic = Transport::Quic;
    if quic.supports(&address) && !quic.is_built_in() { Err(AddressError::NoQuic) } else { Ok(address) }
}

/// Reads an address that a service listens on: a multiaddress, or `ADDRESS:PORT` for TCP. One at which no
/// service can ever listen is refused, before a token is used.
///
/// # Errors
/// [`AddressError`]
pub fn parse_listened_address(text: &str) -> Result<Multiaddr, AddressError> {
    let address = parse_address(text)?;
    let refused = |why| Err(AddressError::Unlistenable(why));
    let mut parts = address.iter();
    match parts.next() {
        // `0.0.0.0` is for listening alone: it stands for all of this machine's addresses.
        Some(Protocol::Ip4(ip)) if !ip.is_unspecified() && !is_of_one_machine(ip) => {
            return refused(NOT_ONE_MACHINE);
        }
        Some(Protocol::Ip6(ip)) if ip.is_multicast() => return refused(NOT_ONE_MACHINE),
        // libp2p's sockets of IPv6 take IPv6 alone, so that they cannot be bound to such an address.
        Some(Protocol::Ip6(ip)) if ip.to_ipv4_mapped().is_some() => {
            return refused("this is an IPv4 address in IPv6's spelling: give it as it is");
        }
        Some(Protocol::Ip6(ip)) if ip.is_unicast_link_local() => return refused(LINK_LOCAL),
        Some(Protocol::Ip4(_) | Protocol::Ip6(_)) => {}
        Some(Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_)) => {
            return refused(
                "a service listens on an address of its machine, such as 127.0.0.1, and on no name",
            );
        }
        _ => return refused("it does not begin with an address of this machine"),
    }
    let is_complete = match parts.next() {
        Some(Protocol::Tcp(_)) => true,
        Some(Protocol::Udp(_)) => matches!(parts.next(), Some(Protocol::QuicV1)),
        _ => false,
    };
    match (is_complete, parts.next()) {
        (false, _) => refused("neither TCP nor QUIC stands behind the address"),
        (true, Some(Protocol::P2p(_))) => {
            refused("the identity behind /p2p/ is this service's own, and not to be given")
        }
        (true, Some(_)) => refused("what stands behind the port is not supported"),
        (true, None) => Ok(address),
    }
}

/// Reads an address that a service dials: a multiaddress, or `HOST:PORT` for TCP. One at which nothing can
/// ever be reached is refused.
///
/// # Errors
/// [`AddressError`]
pub fn parse_dialled_address(text: &str) -> Result<Multiaddr, AddressError> {
    let address = parse_address(text)?;
    let refused = |why| Err(AddressError::Undialable(why));
    let mut parts = address.iter().filter(|part| !matches!(part, Protocol::P2p(_)));
    match parts.next() {
        Some(Protocol::Ip4(ip)) if !is_of_one_machine(ip) => return refused(NOT_ONE_MACHINE),
        Some(Protocol::Ip6(ip)) if ip.is_unspecified() || ip.is_multicast() => {
            return refused(NOT_ONE_MACHINE);
        }
        Some(Protocol::Ip6(ip)) if ip.to_ipv4_mapped().is_some_and(|ip| !is_of_one_machine(ip)) => {
            return refused(NOT_ONE_MACHINE);
        }
        Some(Protocol::Ip6(ip)) if ip.is_unicast_link_local() => return refused(LINK_LOCAL),
        Some(Protocol::Ip4(_) | Protocol::Ip6(_)) => {}
        Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name)) if !is_name(&name) => {
            return refused("no machine can have this name");
        }
        Some(Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_)) => {}
        _ => return refused("it does not begin with an address or a name of a machine"),
    }
    let port = match parts.next() {
        Some(Protocol::Tcp(port)) => port,
        Some(Protocol::Udp(port)) if matches!(parts.next(), Some(Protocol::QuicV1)) => port,
        _ => return refused("neither TCP nor QUIC stands behind the machine"),
    };
    // A listener may leave the choice to the system; a dialler cannot.
    if port == 0 {
        return refused("port 0 is no port to connect to");
    }
    if parts.next().is_some() { refused("what stands behind the port is not supported") } else { Ok(address) }
}

const NOT_ONE_MACHINE: &str = "this is no address of one machine";
const LINK_LOCAL: &str = "an address of a link (fe80::…) needs an interface, for which there is no place: give another of that machine";

/// Returns false for what no machine has as its address: `0.0.0.0` and its network, broadcast, multicast.
fn is_of_one_machine(ip: Ipv4Addr) -> bool {
    // RFC 1122 §3.2.1.3: network 0 is this one, and never a destination.
    ip.octets()[0] != 0 && !ip.is_broadcast() && !ip.is_multicast()
}

/// Returns true if a machine can have this name (RFC 1123 §2.1), a full stop at its end included; underscores,
/// which engines of containers put into names, are let through.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_letter);
    // An address of another spelling, as `127.1` and `0x7f.1`, is no name: no last label is a number.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    name.len() <= 253 && name.split('.').all(is_label) && !is_number
}

/// The parts of `HOST:PORT`, with an IPv6 address in brackets.
fn host_and_port(text: &str) -> Option<(Protocol<'_>, u16)> {
    let (host, port) = text.rsplit_once(':').filter(|(host, _)| !host.contains('/'))?;
    let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())??;
    // IPv6 in brackets, because its own colons would be taken for the port's.
    if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return Some((Protocol::Ip6(ip.parse().ok()?), port));
    }
    if let Ok(ip) = host.parse() {
        return Some((Protocol::Ip4(ip), port));
    }
    is_name(host).then(|| (Protocol::Dns(host.into()), port))
}

/// The node's place in the star of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// The centre: it relays each group message to all other subscribers at once.
    Hub {
        /// Maximum number of members of the group.
        members: usize,
    },
    /// A point: it sends to the centres it is connected to and relays nothing.
    Spoke,
}

/// Strangers from one address that a node has room for at least.
const FEWEST_STRANGERS: u32 = 16;
/// Time in which a drone joins or enrols many times over.
const STRANGER_LIFETIME: Duration = Duration::from_secs(60);
/// Connections that are being closed to make room for others, at a time.
pub(crate) const CLOSING: u32 = 64;

/// Limits of a node. Everything beyond is refused or dropped, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// Connections they opened.
    pub inbound: u32,
    /// Connections we opened.
    pub outbound: u32,
    /// Connections still in their handshake, for each direction. One address has a quarter of them, and the last
    /// quarter is kept for addresses from which proven peers came.
    pub pending: u32,
    /// Connections with one peer.
    pub per_peer: u32,
    /// Connections of strangers, peers that have not proven who they are, from one address.
    pub strangers_per_address: u32,
    /// Time after which a stranger's connection is closed, counted from its beginning and from each of its messages
    /// that the machine answers. `None` for nodes whose machines prove nobody.
    pub stranger_lifetime: Option<Duration>,
    /// Concurrent message streams of one connection, both directions together.
    pub streams: usize,
    /// Messages on their way to one peer at a time. With 1, a message leaves after its predecessor was taken.
    pub in_flight: usize,
    /// Messages waiting for their turn to one peer; beyond, the oldest is dropped.
    pub queued: usize,
    /// Group messages waiting for one peer's connection.
    pub group_queued: usize,
    /// Blocked peers remembered, and addresses that penalised peers came from; beyond, the oldest peer is
    /// forgotten, and the address that had fewest.
    pub blocked: usize,
    /// Maximum number of peers remembered as proven; beyond, the oldest is forgotten. They are admitted from
    /// every address.
    pub proven: usize,
    /// Inputs handed to the machine before its records are persisted and its outputs carried out.
    pub batch: usize,
    /// Commands waiting for the machine.
    pub commands: usize,
    /// Rate of one peer's messages that a hub relays to the group.
    pub group_rate: Rate,
    /// Maximum number of bytes of group messages, of all peers, that gossipsub remembers at a time, what it keeps
    /// beside each of them included; beyond, messages are not relayed.
    pub group_memory: usize,
    /// Bytes of group messages that wait for strangers, at a node where [they may
    /// listen](NodeConfig::strangers_listen).
    pub listening: ListeningLimits,
    /// Bytes that came and that nobody has read yet.
    pub unread: UnreadLimits,
    /// Bytes of messages that wait for strangers to take them.
    pub unsent: UnsentLimits,
}

/// Limits of bytes of messages to strangers, those in their turn, on their way and answers. Messages beyond
/// them are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentLimits {
    /// Bytes for one stranger that need no room: short messages are sent whatever others do not take.
    pub free: usize,
    /// Bytes for one stranger.
    pub each: usize,
    /// Bytes for all of them together, beyond which only what is free is sent.
    pub strangers: usize,
}

impl UnsentLimits {
    /// Limits of every node.
    const STANDARD: Self = Self {
        free: 16 << 10,
        // The longest message, and as much again.
        each: 2 << 20,
        strangers: 32 << 20,
    };
}

/// Limits of bytes of group messages that wait for strangers that listen. When the next message finds no room,
/// strangers are disconnected until it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListeningLimits {
    /// Bytes that wait for one stranger.
    pub each: usize,
    /// Bytes that wait for all of them together: a message of n bytes reaches at most `all` / n strangers.
    /// Beyond, whoever has most waiting is disconnected first, and then others. For those that are being
    /// disconnected as much again may wait.
    pub all: usize,
}

impl ListeningLimits {
    /// Limits of every node.
    const STANDARD: Self = Self {
        // The longest message, and as much again.
        each: 2 << 20,
        all: 48 << 20,
    };
}

/// Limits of bytes that came and that nobody has read yet: streams that wait, and messages of which the end is
/// missing. A connection beyond them is not read from until some are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadLimits {
    /// Bytes of one connection.
    pub connection: usize,
    /// Bytes of one connection that count against no other limit: short messages pass whatever others do.
    pub free: usize,
    /// Bytes of all strangers together, beyond those that are free.
    pub strangers: usize,
    /// The same for peers that have proven who they are, or that this node dialled.
    pub proven: usize,
}

impl UnreadLimits {
    /// Limits of every node: with 6,160 connections, those of 4,096 peers, 136 MiB.
    const STANDARD: Self = Self {
        // Two of the longest messages, one each way, and the streams beside them.
        connection: 2 * MAX_MESSAGE_LEN + (128 << 10),
        free: 16 << 10,
        strangers: 8 << 20,
        proven: 32 << 20,
    };
}

impl NodeLimits {
    /// Limits of a node that `peers` others connect to.
    pub fn served(peers: usize) -> Self {
        let proven = peers.saturating_mul(2).saturating_add(64);
        let peers = u32::try_from(peers).unwrap_or(u32::MAX);
        Self {
            // Half as many again, so that a peer that reconnects is not refused because of its own dead
            // connection.
            inbound: peers.saturating_add(peers / 2).saturating_add(16),
            outbound: 64,
            // So that all may come at once from one address, which has a quarter: 1,024 of 4,096.
            pending: peers.saturating_mul(8).clamp(512, 4096),
            per_peer: 4,
            // §13.8: a sixteenth, so that one address cannot take the places of all others' strangers.
            strangers_per_address: (peers / 16).max(FEWEST_STRANGERS),
            stranger_lifetime: Some(STRANGER_LIFETIME),
            // §16: the multiplexer permits twice as many, 64.
            streams: 32,
            // §16: one, so that a peer takes messages in the order in which the machine sends them.
            in_flight: 1,
            queued: 64,
            group_queued: 1024,
            blocked: 4096,
            proven,
            // Records of a batch are stored together, so that a crowd costs one write and not many.
            batch: 256,
            commands: 64,
            group_rate: Rate { messages: 64, bytes: 1 << 18, burst: 8 },
            group_memory: 16 << 20,
            listening: ListeningLimits::STANDARD,
            unread: UnreadLimits::STANDARD,
            unsent: UnsentLimits::STANDARD,
        }
    }

    /// Limits of a node that connects to a few others.
    pub fn client() -> Self {
        Self { pending: 64, group_queued: 256, blocked: 64, commands: 16, ..Self::served(32) }
    }

    /// Removes the limits of strangers: for machines that prove nobody, and for simulators, whose nodes all
    /// have one address.
    #[must_use]
    pub fn with_any_strangers(self) -> Self {
        let unsent = UnsentLimits { free: usize::MAX, ..self.unsent };
        Self { strangers_per_address: u32::MAX, stranger_lifetime: None, unsent, ..self }
    }

    /// Maximum number of descriptors of the node's sockets.
    pub(crate) fn sockets(&self) -> u64 {
        let connections = [self.inbound, self.outbound, self.pending, self.pending, CLOSING];
        connections.into_iter().map(u64::from).sum()
    }
}

/// The set-up of a node. The constructors give every field a value; fields are then changed as needed.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The transport key.
    pub key: NodeKey,
    /// Transport protocol of the connections.
    pub transport: Transport,
    /// Addresses to listen on. A port 0 is chosen by the system.
    pub listen: Vec<Multiaddr>,
    /// Addresses to keep a connection to, and what they are. A `/dns4/…`, `/dns6/…` or `/dns/…` name is
    /// looked up at every attempt. A `/p2p/…` at the end pins the peer.
    pub dial: Vec<(Route, Multiaddr)>,
    /// The other KGCs of this node's quorum, by their transport identities. Connections with them, whichever
    /// end dialled, have [`Route::Member`], no others have, and strangers' connections, however many,
    /// displace none of them.
    pub members: Vec<(KgcId, PeerId)>,
    /// The relays of this node, by their transport identities: their connections have [`Route::Relay`], and
    /// strangers' displace none of them.
    pub relays: Vec<PeerId>,
    /// The group's topic ([`group_topic`](crate::group_topic)), or none for a node outside any group.
    pub topic: Option<String>,
    /// True if peers that have not proven who they are receive the group's messages, as members without a
    /// name must at a deputy, which cannot know them (docs/admission.md, A5.4). So much then waits for those
    /// that read nothing as [`NodeLimits::listening`] allows.
    pub strangers_listen: bool,
    /// The node's place in its group.
    pub tuning: Tuning,
    /// Limits of the node.
    pub limits: NodeLimits,
    /// Shared by the nodes of one process, it bounds how many of them are in a handshake at a time.
    pub dial_permits: Option<Arc<Semaphore>>,
    /// Maximum time until a message's receiver has taken it, after at most half as long to negotiate a
    /// stream's protocol.
    pub request_timeout: Duration,
    /// Maximum time to set up a connection, from the first packet to the last of the handshake.
    pub handshake_timeout: Duration,
    /// Time for which a connection without any stream is kept.
    pub idle_timeout: Duration,
    /// The longest wait between two attempts to reach a configured address.
    pub redial_ceiling: Duration,
    /// Time after which a dialled leader that has not asked for the group's messages is dialled anew; `None`: never.
    /// While two processes have one identity, a leader asks the one that connected first alone.
    pub subscription_timeout: Option<Duration>,
    /// Time between two pings; `None` leaves liveness to the transport. A connection whose ping fails is
    /// closed.
    pub ping: Option<Duration>,
    /// True if the node answers libp2p's identify. Quiver does not need it; operators' tools do.
    pub identify: bool,
    /// Introduction that the node sends there, and compares with those of nodes that it dials and that dial
    /// it: a wrong address is told at both ends.
    pub introduction: Option<Introduction>,
    /// Peers that it asks for the time.
    pub clocks: Clocks,
    /// True if the node asks the peers that it dialled if another process uses its identity (§16.2), and
    /// answers the same question. Off for nodes that must not be linkable: the number that the process draws
    /// at its start is sent to others.
    pub detect_duplicates: bool,
}

impl NodeConfig {
    /// Maximum time to negotiate a stream's protocol.
    pub(crate) fn negotiation(&self) -> Duration {
        self.request_timeout / 2
    }

    /// A leader of at most `members` drones.
    pub fn hub(key: NodeKey, transport: Transport, members: usize) -> Self {
        Self {
            tuning: Tuning::Hub { members },
            limits: NodeLimits::served(members),
            ping: Some(Duration::from_secs(60)),
            ..Self::spoke(key, transport)
        }
    }

    /// A drone.
    pub fn spoke(key: NodeKey, transport: Transport) -> Self {
        Self {
            key,
            transport,
            listen: Vec::new(),
            dial: Vec::new(),
            members: Vec::new(),
            relays: Vec::new(),
            topic: None,
            strangers_listen: false,
            tuning: Tuning::Spoke,
            limits: NodeLimits::client(),
            dial_permits: None,
            request_timeout: Duration::from_secs(20),
            handshake_timeout: Duration::from_secs(10),
            // A connection may be silent for hours between two epochs. Pings find dead ones.
            idle_timeout: Duration::from_secs(24 * 3600),
            redial_ceiling: Duration::from_secs(30),
            subscription_timeout: None,
            ping: Some(Duration::from_secs(20)),
            identify: true,
            introduction: None,
            clocks: Clocks::Off,
            detect_duplicates: false,
        }
    }

    /// A KGC that serves at most `peers` leaders and drones at a time.
    pub fn registry(key: NodeKey, transport: Transport, peers: usize) -> Self {
        Self {
            limits: NodeLimits::served(peers),
            ping: Some(Duration::from_secs(60)),
            ..Self::spoke(key, transport)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_knows_its_own_addresses() {
        let tcp: Multiaddr = "/dns4/leader/tcp/7000".parse().unwrap();
        let quic: Multiaddr = "/ip4/127.0.0.1/udp/7000/quic-v1".parse().unwrap();
        let memory: Multiaddr = "/memory/9".parse().unwrap();
        let supported =
            |transport: Transport| [&tcp, &quic, &memory].map(|address| transport.supports(address));
        assert_eq!(supported(Transport::Tcp), [true, false, false]);
        assert_eq!(supported(Transport::Quic), [false, true, false]);
        assert_eq!(supported(Transport::TcpAndQuic), [true, true, false]);
        assert_eq!(supported(Transport::Memory), [false, false, true]);
    }

    #[test]
    fn quic_address_is_read_exactly_if_the_build_has_quic() {
        let read = |text: &str| parse_address(text).map_err(|error| error.to_string());
        let tcp = "/dns4/leader/tcp/7000";
        assert_eq!(read(tcp), Ok(tcp.parse().unwrap()));
        assert!(read("127.0.0.1").is_err());
        let quic = "/ip4/127.0.0.1/udp/7000/quic-v1";
        let read = read(quic);
        if Transport::Quic.is_built_in() {
            assert_eq!(read, Ok(quic.parse().unwrap()));
            assert!(Transport::SERVICE.supports(&quic.parse().unwrap()));
        } else {
            let error = read.expect_err("no QUIC");
            assert!(error.contains("no QUIC") && error.contains("--features quic"), "{error}");
            assert!(!Transport::SERVICE.supports(&quic.parse().unwrap()));
        }
        assert!(Transport::SERVICE.supports(&tcp.parse().unwrap()));
    }

    #[test]
    fn host_and_port_is_taken_wherever_a_multiaddress_is() {
        for (text, address) in [
            ("127.0.0.1:7302", "/ip4/127.0.0.1/tcp/7302"),
            ("[::1]:7302", "/ip6/::1/tcp/7302"),
            ("leader.example:7302", "/dns/leader.example/tcp/7302"),
            ("localhost:1", "/dns/localhost/tcp/1"),
            ("localhost.:1", "/dns/localhost./tcp/1"),
            ("edge_1:07001", "/dns/edge_1/tcp/7001"),
            ("[::ffff:127.0.0.1]:1", "/ip6/::ffff:127.0.0.1/tcp/1"),
            ("/ip4/10.0.0.1/tcp/7001", "/ip4/10.0.0.1/tcp/7001"),
        ] {
            let read = parse_address(text).expect("an address").to_string();
            assert_eq!(read, address, "{text}");
            assert_eq!(parse_dialled_address(text).expect("an address").to_string(), address);
        }
        for text in [
            "",
            "7302",
            ":7302",
            "leader:",
            "leader:70000",
            "leader:-1",
            "leader:+1",
            "::1:7302",
            "[::1:7302",
            "[leader]:1",
            "1.2.3.4.5:6",
            "127.1:6",
            "0x7f.1:6",
            "a..b:6",
            ".:6",
            "[fe80::1%eth0]:7302",
            "a b:1",
            "tcp://a:1",
            "a:1:2",
            "a/b:1",
        ] {
            assert!(parse_address(text).is_err(), "{text}");
        }
        assert!(parse_address(&format!("{}:1", "a".repeat(254))).is_err());
    }

    #[test]
    fn address_on_which_no_service_can_ever_listen_is_refused() {
        for text in [
            "127.0.0.1:7001",
            "0.0.0.0:0",
            "[::]:7001",
            "[::1]:0",
            "/ip4/10.0.0.1/tcp/7001",
            "/ip6/::1/tcp/1",
        ] {
            assert!(parse_listened_address(text).is_ok(), "{text}");
        }
        let own = NodeKey::from_seed([1; 32]).unwrap().peer_id();
        for (text, why) in [
            ("localhost:7001", "no name"),
            ("/dns4/localhost/tcp/7001", "no name"),
            ("224.0.0.1:7001", "one machine"),
            ("255.255.255.255:7001", "one machine"),
            ("0.1.2.3:7001", "one machine"),
            ("[ff02::1]:7001", "one machine"),
            ("[::ffff:127.0.0.1]:7001", "as it is"),
            ("/ip6/fe80::1/tcp/7001", "interface"),
            ("/memory/7", "address of this machine"),
            ("/ip4/127.0.0.1", "neither TCP nor QUIC"),
            ("/ip4/127.0.0.1/udp/7001", "neither TCP nor QUIC"),
            ("/ip4/127.0.0.1/tcp/7001/ws", "behind the port"),
            (&format!("/ip4/127.0.0.1/tcp/7001/p2p/{own}"), "own"),
        ] {
            let refused = parse_listened_address(text).expect_err(text).to_string();
            assert!(refused.starts_with("nothing can listen there: ") && refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn address_that_can_never_be_dialled_is_refused_for_dialling_alone() {
        for text in [
            "/ip4/0.0.0.0/tcp/7001",
            "/ip6/::/tcp/7001",
            "/ip4/127.0.0.1/tcp/0",
            "0.0.0.0:7001",
            "127.0.0.1:0",
        ] {
            assert!(parse_listened_address(text).is_ok(), "{text} can be listened on");
            assert!(matches!(parse_dialled_address(text), Err(AddressError::Undialable(_))), "{text}");
        }
        for text in [
            "/ip4/127.0.0.1/tcp/1/ws",
            "/dnsaddr/example",
            "/ip4/127.0.0.1",
            "/ip4/127.0.0.1/udp/1",
            "/memory/7",
            "/ip4/224.0.0.1/tcp/1",
            "/ip4/255.255.255.255/tcp/1",
            "/ip6/ff02::1/tcp/1",
            "0.1.2.3:7001",
            "[::ffff:0.0.0.0]:7001",
            "/ip6/::ffff:224.0.0.1/tcp/1",
            "/ip6/fe80::1/tcp/1",
            "/dns4//tcp/1",
            "/dns/a..b/tcp/1",
            "/dns/127.1/tcp/1",
        ] {
            assert!(matches!(parse_dialled_address(text), Err(AddressError::Undialable(_))), "{text}");
        }
        let pinned =
            format!("/ip4/127.0.0.1/tcp/7001/p2p/{}", NodeKey::from_seed([1; 32]).unwrap().peer_id());
        assert_eq!(parse_dialled_address(&pinned).expect("an address").to_string(), pinned);
    }
}
