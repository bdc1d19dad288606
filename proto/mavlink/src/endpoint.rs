//! Endpoints at which MAVLink programs are connected, spelled as pymavlink and MAVSDK spell them.
//!
//! | spelling | what it is |
//! |---|---|
//! | `udpin:HOST:PORT` | listens on UDP and answers whoever sent; without port 14550 |
//! | `udpout:HOST:PORT` | sends to a UDP address and takes what comes back; without port 14550 |
//! | `udpbcast:HOST:PORT` | sends to a UDP broadcast address |
//! | `tcp:HOST:PORT`, `tcpout:…` | connects to a TCP server; without port 5760 |
//! | `tcpin:HOST:PORT` | listens on TCP, several clients; without port 5760 |
//! | `serial:DEVICE:BAUD` | a serial device; without rate 57600 |
//!
//! `//` behind the colon, as MAVSDK writes it, changes nothing. A listener without a host (`udpin::14550`)
//! listens on every interface. IPv6 addresses stand in brackets.

use alloc::{
    borrow::ToOwned as _,
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use crate::error::MavlinkError;

/// Port on which ground stations listen for UDP.
pub const GCS_UDP_PORT: u16 = 14550;
/// Port on which mavlink-router and ArduPilot's simulator serve TCP.
pub const TCP_PORT: u16 = 5760;
/// Rate of a telemetry radio's serial line unless set otherwise, bits a second.
pub const DEFAULT_BAUD: u32 = 57_600;

/// Bytes of the longest device path or host name.
const MAX_NAME_LEN: usize = 255;
/// Rates beyond these are no serial line's.
const BAUDS: core::ops::RangeInclusive<u32> = 1_200..=4_000_000;
/// Shown where an endpoint is not understood.
const EXAMPLES: &str = "write udpin:127.0.0.1:14550, udpout:127.0.0.1:14550, tcp:127.0.0.1:5760, \
                        tcpin:127.0.0.1:5760 or serial:/dev/ttyACM0:57600";

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A host name or an address; IPv6 without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

/// Endpoint at which a MAVLink program is connected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Listens on UDP; answers go to whoever sent.
    UdpIn(HostPort),
    /// Sends to a UDP address.
    UdpOut(HostPort),
    /// Sends to a UDP broadcast address.
    UdpBroadcast(HostPort),
    /// Connects to a TCP server.
    Tcp(HostPort),
    /// Listens on TCP.
    TcpIn(HostPort),
    /// A serial device.
    Serial {
        /// Path of the device.
        device: String,
        /// Bits a second.
        baud: u32,
    },
}

/// Resource that no two endpoints of one process can share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A UDP port to listen on.
    UdpPort(HostPort),
    /// A TCP port to listen on.
    TcpPort(HostPort),
    /// A serial device.
    Device(String),
}

impl Endpoint {
    /// Resource of the machine that the endpoint needs for itself; `None` if it only sends to or connects
    /// elsewhere.
    #[must_use]
    pub fn resource(&self) -> Option<Resource> {
        match self {
            Self::UdpIn(at) => Some(Resource::UdpPort(at.clone())),
            Self::TcpIn(at) => Some(Resource::TcpPort(at.clone())),
            Self::Serial { device, .. } => Some(Resource::Device(device.clone())),
            Self::UdpOut(_) | Self::UdpBroadcast(_) | Self::Tcp(_) => None,
        }
    }

    /// Place that it sends to, if it is one that a listener of this machine could have: over UDP, or over TCP.
    #[must_use]
    pub fn destination(&self) -> Option<Resource> {
        match self {
            Self::UdpOut(to) => Some(Resource::UdpPort(to.clone())),
            Self::Tcp(to) => Some(Resource::TcpPort(to.clone())),
            _ => None,
        }
    }

    /// Checks that no two endpoints need the same port or device.
    ///
    /// # Errors
    /// [`MavlinkError::EndpointConflict`] names the first two that do.
    pub fn check_conflicts<'a>(endpoints: impl IntoIterator<Item = &'a Self>) -> Result<(), MavlinkError> {
        let mut taken: Vec<(&Self, Resource)> = Vec::new();
        for endpoint in endpoints {
            let Some(resource) = endpoint.resource() else { continue };
            if let Some((first, _)) = taken.iter().find(|(_, held)| held.overlaps(&resource)) {
                return Err(MavlinkError::EndpointConflict {
                    first: first.to_string(),
                    second: endpoint.to_string(),
                    what: resource.to_string(),
                });
            }
            taken.push((endpoint, resource));
        }
        Ok(())
    }
}

impl Resource {
    /// Returns true if both cannot be held at once.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::UdpPort(a), Self::UdpPort(b)) | (Self::TcpPort(a), Self::TcpPort(b)) => {
                a.port == b.port && (a.host == b.host || a.is_everywhere() || b.is_everywhere())
            }
            (Self::Device(a), Self::Device(b)) => a == b,
            _ => false,
        }
    }
}

impl Resource {
    /// Returns true if what is sent to this port arrives at that one, as far as the addresses tell.
    #[must_use]
    pub fn reaches(&self, listener: &Self) -> bool {
        match (self, listener) {
            (Self::UdpPort(to), Self::UdpPort(at)) | (Self::TcpPort(to), Self::TcpPort(at)) => to.reaches(at),
            _ => false,
        }
    }
}

impl HostPort {
    /// Returns true if a listener here listens on every interface.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
    }

    /// Reads `HOST:PORT`, `[IPv6]:PORT`, or a host alone if there is a default port. Without a host it is
    /// `empty`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(text: &str, empty: Option<&str>, default_port: Option<u16>) -> Result<Self, String> {
        let (host, port) = split_host(text)?;
        let port = match (port, default_port) {
            (Some(port), _) => parse_port(port)?,
            (None, Some(port)) => port,
            (None, None) => return Err("a port is missing".to_owned()),
        };
        let host = match (host, empty) {
            ("", Some(empty)) => empty,
            ("", None) => return Err("a host is missing".to_owned()),
            (host, _) => host,
        };
        check_host(host)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl HostPort {
    /// Refuses what no connection can be made to, by what it is.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn of_one_machine(self) -> Result<Self, String> {
        let is_of_many = match self.host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            Ok(IpAddr::V4(ip)) => ip.is_multicast() || ip.is_broadcast(),
            Ok(IpAddr::V6(ip)) => ip.is_multicast(),
            Err(_) => false,
        };
        if is_of_many {
            let host = self.host;
            return Err(format!("no connection can be made to `{host}`, which is no address of one machine"));
        }
        self.of_somebody()
    }

    /// Refuses addresses to which nothing can be sent: those that stand for this machine, at which programs only listen,
    /// and those that need an interface besides.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn of_somebody(self) -> Result<Self, String> {
        let host = &self.host;
        let nobody = |this| {
            Err(format!(
                "nothing can be sent to `{host}`, at which programs only listen; this machine is {this}"
            ))
        };
        match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            // RFC 1122 §3.2.1.3: network 0 is this one, and never a destination.
            Ok(IpAddr::V4(ip)) if ip.octets()[0] == 0 => nobody("127.0.0.1"),
            Ok(IpAddr::V6(ip)) if ip.is_unspecified() => nobody("[::1]"),
            Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => Err(format!(
                "`{host}` is an address of a link, which needs an interface, for which there is no place: give another of that machine"
            )),
            _ => Ok(self),
        }
    }

    /// Returns true if what is sent here arrives at this listener of the same machine, as far as the addresses tell.
    #[must_use]
    pub fn reaches(&self, listener: &Self) -> bool {
        let is_own = self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.port == listener.port && (self.host == listener.host || (is_own && listener.is_everywhere()))
    }
}

/// A port, 1 to 65535.
pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port != 0 && is_digits(text) => Ok(port),
        _ => Err(format!("`{}` is not a port from 1 to 65535", shown(text))),
    }
}

/// A serial line's rate.
pub(crate) fn parse_baud(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(baud) if BAUDS.contains(&baud) && is_digits(text) => Ok(baud),
        _ => Err(format!(
            "`{}` is not a rate from {} to {} bits a second",
            shown(text),
            BAUDS.start(),
            BAUDS.end()
        )),
    }
}

/// The path of a serial device.
pub(crate) fn check_device(device: &str) -> Result<(), String> {
    if device.is_empty() {
        Err("a device is missing".to_owned())
    } else if device.len() > MAX_NAME_LEN {
        Err(format!("a device's path has at most {MAX_NAME_LEN} bytes"))
    } else if device.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Err("a device's path has no white space".to_owned())
    } else {
        Ok(())
    }
}

/// A host's name or address, IPv6 without brackets.
pub(crate) fn check_host(host: &str) -> Result<(), String> {
    if host.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let looks_numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    if host.is_empty() || host.len() > MAX_NAME_LEN || !host.chars().all(is_name) || looks_numeric {
        return Err(format!("`{}` is neither an address nor a host's name", shown(host)));
    }
    Ok(())
}

/// The beginning of what somebody wrote, for an error.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut beginning: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if text.chars().count() > SHOWN {
        beginning.push('…');
    }
    beginning
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Cuts the port off; a host in brackets may have colons of its own.
fn split_host(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) = inner.split_once(']').ok_or("`[` without `]`")?;
        host.parse::<Ipv6Addr>().map_err(|_| format!("`{}` is not an IPv6 address", shown(host)))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("`:PORT` is expected behind `]`".to_owned()),
        };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            Err("write an IPv6 address in brackets, as in [::1]:14550".to_owned())
        }
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

impl FromStr for Endpoint {
    type Err = MavlinkError;

    fn from_str(text: &str) -> Result<Self, MavlinkError> {
        parse(text).map_err(|reason| MavlinkError::Endpoint { given: shown(text), reason })
    }
}

fn parse(text: &str) -> Result<Endpoint, String> {
    let Some((scheme, rest)) = text.split_once(':') else {
        if text.starts_with('/') {
            return Err(format!("write a serial device as serial:{}:{DEFAULT_BAUD}", shown(text)));
        }
        return Err(EXAMPLES.to_owned());
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let listen = |port| HostPort::parse(rest, Some("0.0.0.0"), Some(port));
    let connect = |port| HostPort::parse(rest, None, Some(port));
    match scheme {
        "udpin" => listen(GCS_UDP_PORT).map(Endpoint::UdpIn),
        "udpout" => connect(GCS_UDP_PORT).and_then(HostPort::of_somebody).map(Endpoint::UdpOut),
        "udpbcast" => connect(GCS_UDP_PORT).and_then(HostPort::of_somebody).map(Endpoint::UdpBroadcast),
        "tcp" | "tcpout" => connect(TCP_PORT).and_then(HostPort::of_one_machine).map(Endpoint::Tcp),
        "tcpin" => listen(TCP_PORT).map(Endpoint::TcpIn),
        "serial" => parse_serial(rest),
        // pymavlink listens on it, mavlink-router sends to it: nobody should have to guess.
        "udp" => Err("say which way: udpin: listens, udpout: sends".to_owned()),
        _ if text.starts_with('/') => Err(format!("write a serial device as serial:{}", shown(text))),
        _ => Err(EXAMPLES.to_owned()),
    }
}

fn parse_serial(rest: &str) -> Result<Endpoint, String> {
    // The rate stands behind the last colon; names under /dev/serial/by-path have colons too.
    let (device, baud) = match rest.rsplit_once(':') {
        Some((device, baud)) if is_digits(baud) && !baud.is_empty() => (device, parse_baud(baud)?),
        Some((_, baud)) if !baud.contains('/') && !baud.contains('-') => {
            return Err(format!("`{}` is not a rate in bits a second", shown(baud)));
        }
        _ => (rest, DEFAULT_BAUD),
    };
    check_device(device)?;
    Ok(Endpoint::Serial { device: device.to_owned(), baud })
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UdpIn(at) => write!(f, "udpin:{at}"),
            Self::UdpOut(to) => write!(f, "udpout:{to}"),
            Self::UdpBroadcast(to) => write!(f, "udpbcast:{to}"),
            Self::Tcp(to) => write!(f, "tcp:{to}"),
            Self::TcpIn(at) => write!(f, "tcpin:{at}"),
            Self::Serial { device, baud } => {
                // Two slashes that a device begins with would be taken for those that may follow the scheme.
                let slashes = if device.starts_with("//") { "//" } else { "" };
                write!(f, "serial:{slashes}{device}:{baud}")
            }
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UdpPort(at) => write!(f, "UDP port {}", at.port),
            Self::TcpPort(at) => write!(f, "TCP port {}", at.port),
            Self::Device(device) => write!(f, "the device {device}"),
        }
    }
}
