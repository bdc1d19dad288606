//! A configuration file in mavlink-router's format, with the group's datagrams as one more endpoint.
//!
//! ```text
//! [General]
//! DeduplicationPeriod = 1000
//!
//! [UartEndpoint autopilot]
//! Device = /dev/ttyACM0
//! Baud = 57600
//!
//! [UdpEndpoint ground]
//! Mode = Normal
//! Address = 127.0.0.1
//! Port = 14550
//! BlockMsgIdOut = 36,116
//!
//! [QuiverEndpoint group]
//! Carrier = serial:/dev/ttyUSB0:57600
//! ```
//!
//! Names of sections and keys are taken in capitals or not, as mavlink-router takes them. Unlike there, an
//! unknown key is an error, and nothing listens that the file does not name: without `TcpServerPort` there is
//! no TCP server, and with it the server listens on this machine alone.

mod document;

use alloc::{borrow::ToOwned as _, collections::BTreeSet, format, string::String, vec::Vec};
use core::{ops::RangeInclusive, time::Duration};

use self::document::{ConfigValue, Section, sections};
use crate::{
    endpoint::{Endpoint, GCS_UDP_PORT, HostPort, check_device, check_host, parse_baud, parse_port, shown},
    error::MavlinkError,
    filter::{Filter, Filters, List},
    message_ids::SignedMessages,
};

/// Bytes of the longest file.
pub const MAX_CONFIG_LEN: usize = 256 * 1024;
/// Endpoints of one file.
pub const MAX_ENDPOINTS: usize = 64;

/// Numbers in one list.
const MAX_LIST: usize = 1_024;
/// A serial line's rate unless set, as in mavlink-router.
const UART_BAUD: u32 = 115_200;
/// Wait before connecting again, unless set.
const RETRY_AFTER: Duration = Duration::from_secs(5);
const MESSAGE_IDS: RangeInclusive<u32> = 0..=0xff_ffff;
const SYSTEM_IDS: RangeInclusive<u32> = 1..=u32::MAX;
const COMPONENT_IDS: RangeInclusive<u32> = 0..=255;

/// Keys of mavlink-router that mean nothing here: logs of flights are not written, and no dialect is needed.
const IGNORED: [&str; 13] = [
    "ReportStats",
    "MavlinkDialect",
    "Log",
    "LogMode",
    "LogSystemId",
    "LogTelemetry",
    "MinFreeSpace",
    "MaxLogFiles",
    "DebugLogLevel",
    "CoalesceBytes",
    "CoalesceMs",
    "CoalesceNoDelay",
    "MaxPacketAge",
];

/// Content of a configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Time within which the same bytes are a duplicate; zero: never.
    pub deduplication: Duration,
    /// The system whose endpoint receives everything.
    pub sniffer: Option<u32>,
    /// Endpoints at which programs are connected, in the file's order; the TCP server stands first.
    pub endpoints: Vec<EndpointConfig>,
    /// The group's datagrams.
    pub quiver: Option<QuiverConfig>,
    /// Keys of mavlink-router that were read and mean nothing here: place and line, for a log.
    pub ignored: Vec<String>,
}

/// Configuration of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The section's name.
    pub name: String,
    /// The section's line, from 1.
    pub line: usize,
    /// Endpoint at which the program is connected.
    pub endpoint: Endpoint,
    /// Filters of the endpoint.
    pub filters: Filters,
    /// Endpoints of one group are ways to the same systems.
    pub group: Option<String>,
    /// Hardware flow control of a serial line.
    pub flow_control: bool,
    /// Wait before connecting or opening again; `None`: once only.
    pub retry_after: Option<Duration>,
    /// The file with the key for MAVLink signing at this endpoint.
    pub signing_key_file: Option<String>,
    /// True if the program knows system ids of 32 bits; `None` if it is to be found out from what it sends.
    pub wide_system_ids: Option<bool>,
}

/// Configuration of the group's datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuiverConfig {
    /// The section's name.
    pub name: String,
    /// The section's line, from 1.
    pub line: usize,
    /// Carriers of the datagrams, each with its line in the file.
    pub carriers: Vec<(String, usize)>,
    /// Filters of frames to and from the group.
    pub filters: Filters,
    /// Messages that are signed by their sender.
    pub signed: SignedMessages,
    /// True if a signature over everything else is sent once a second.
    pub manifest: bool,
}

impl EndpointConfig {
    /// An endpoint with everything else as it is unless set.
    #[must_use]
    pub fn new(name: String, endpoint: Endpoint) -> Self {
        Self {
            name,
            line: 0,
            endpoint,
            filters: Filters::default(),
            group: None,
            flow_control: false,
            retry_after: Some(RETRY_AFTER),
            signing_key_file: None,
            wide_system_ids: None,
        }
    }
}

impl Config {
    /// Reads a file's text; `path` is for errors.
    ///
    /// # Errors
    /// [`MavlinkError::Config`] names file, line, section and key, and says what to write.
    pub fn parse(text: &str, path: &str) -> Result<Self, MavlinkError> {
        let mut config = Self::default();
        let fault =
            |(line, place, reason)| MavlinkError::Config { path: path.to_owned(), line, place, reason };
        config.read(text).map_err(fault)?;
        config.check_conflicts().map_err(fault)?;
        Ok(config)
    }

    fn read(&mut self, text: &str) -> Result<(), ConfigFault> {
        if text.len() > MAX_CONFIG_LEN {
            return Err((1, "file".to_owned(), format!("it is longer than {MAX_CONFIG_LEN} bytes")));
        }
        let mut next_udp_port = GCS_UDP_PORT;
        for mut section in sections(text)? {
            self.take_ignored(&mut section);
            match section.kind.to_ascii_lowercase().as_str() {
                "general" => self.read_general(&mut section)?,
                "uartendpoint" => self.read_endpoint(&mut section, read_uart)?,
                "udpendpoint" => {
                    self.read_endpoint(&mut section, |section| read_udp(section, &mut next_udp_port))?;
                }
                "tcpendpoint" => self.read_endpoint(&mut section, read_tcp)?,
                "quiverendpoint" => self.read_quiver(&mut section)?,
                _ => {
                    return Err(section.fault(
                        "no such section: write General, UartEndpoint, UdpEndpoint, TcpEndpoint or QuiverEndpoint",
                    ));
                }
            }
            section.finish()?;
        }
        Ok(())
    }

    fn take_ignored(&mut self, section: &mut Section<'_>) {
        for key in IGNORED {
            if let Some(value) = section.take(key) {
                self.ignored.push(format!("line {}: {} has no meaning here", value.line, value.place));
            }
        }
    }

    fn read_general(&mut self, section: &mut Section<'_>) -> Result<(), ConfigFault> {
        if !section.name.is_empty() {
            return Err(section.fault("this section has no name: write [General]"));
        }
        if let Some(value) = section.take("DeduplicationPeriod") {
            self.deduplication =
                Duration::from_millis(value.number(0..=60_000, "number of milliseconds")?.into());
        }
        if let Some(value) = section.take("SnifferSysid") {
            self.sniffer = Some(value.number(0..=u32::MAX, "system id")?).filter(|id| *id != 0);
        }
        if let Some(value) = section.take("TcpServerPort")
            && value.text != "0"
        {
            let port = parse_port(value.text).map_err(|reason| value.fault(reason))?;
            let endpoint = Endpoint::TcpIn(HostPort { host: "127.0.0.1".to_owned(), port });
            let server = EndpointConfig {
                line: value.line,
                ..EndpointConfig::new("TcpServerPort".to_owned(), endpoint)
            };
            self.endpoints.insert(0, server);
        }
        Ok(())
    }

    fn read_endpoint(
        &mut self,
        section: &mut Section<'_>,
        read: impl FnOnce(&mut Section<'_>) -> Result<EndpointConfig, ConfigFault>,
    ) -> Result<(), ConfigFault> {
        section.check_name()?;
        if self.endpoints.len() >= MAX_ENDPOINTS {
            return Err(section.fault(format!("more than {MAX_ENDPOINTS} endpoints")));
        }
        let mut endpoint = read(section)?;
        section.name.clone_into(&mut endpoint.name);
        endpoint.line = section.line;
        endpoint.filters = read_filters(section)?;
        endpoint.group =
            section.take("Group").map(|value| value.text.to_owned()).filter(|group| !group.is_empty());
        endpoint.signing_key_file = section.take("SigningKeyFile").map(|value| value.filled()).transpose()?;
        endpoint.wide_system_ids = section.take("WideSystemIds").map(|value| value.boolean()).transpose()?;
        self.endpoints.push(endpoint);
        Ok(())
    }

    fn read_quiver(&mut self, section: &mut Section<'_>) -> Result<(), ConfigFault> {
        section.check_name()?;
        if let Some(first) = &self.quiver {
            return Err(section
                .fault(format!("there is one already, in line {}: give it several carriers", first.line)));
        }
        let mut carriers = Vec::new();
        while let Some(value) = section.take("Carrier") {
            carriers.push((value.filled()?, value.line));
        }
        if carriers.is_empty() {
            return Err(
                section.fault("Carrier is missing: write for instance Carrier = serial:/dev/ttyUSB0:57600")
            );
        }
        let signed = read_signed(section)?;
        let manifest = section.take("Manifest").map_or(Ok(false), |value| value.boolean())?;
        self.quiver = Some(QuiverConfig {
            name: section.name.to_owned(),
            line: section.line,
            carriers,
            filters: read_filters(section)?,
            signed,
            manifest,
        });
        Ok(())
    }

    /// No two endpoints have the same kind and name, port or device.
    fn check_conflicts(&self) -> Result<(), ConfigFault> {
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let place = || format!("endpoint {}", endpoint.name);
            let before = || self.endpoints.iter().take(index);
            if let Some(first) = before().find(|first| {
                first.name == endpoint.name && kind_of(&first.endpoint) == kind_of(&endpoint.endpoint)
            }) {
                return Err((
                    endpoint.line,
                    place(),
                    format!("the name is taken in line {}: choose another", first.line),
                ));
            }
            let Some(resource) = endpoint.endpoint.resource() else { continue };
            let overlaps = |first: &&EndpointConfig| {
                first.endpoint.resource().is_some_and(|held| held.overlaps(&resource))
            };
            if let Some(first) = before().find(overlaps) {
                let reason = format!(
                    "endpoint {} in line {} needs {resource} too: give each its own",
                    first.name, first.line
                );
                return Err((endpoint.line, place(), reason));
            }
        }
        Ok(())
    }
}

/// Kind of section that an endpoint is written as.
const fn kind_of(endpoint: &Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Serial { .. } => "UartEndpoint",
        Endpoint::UdpIn(_) | Endpoint::UdpOut(_) | Endpoint::UdpBroadcast(_) => "UdpEndpoint",
        Endpoint::Tcp(_) | Endpoint::TcpIn(_) => "TcpEndpoint",
    }
}

/// Line, place, reason.
type ConfigFault = (usize, String, String);

/// Reads which messages are signed: those of a list, or what is signed by default, less those of another.
fn read_signed(section: &mut Section<'_>) -> Result<SignedMessages, ConfigFault> {
    let (signed, unsigned) = (section.take("SignMsgId"), section.take("UnsignedMsgId"));
    let numbers = |value: &ConfigValue<'_>| match value.text.is_empty() {
        true => Ok(BTreeSet::new()),
        false => value.numbers(MESSAGE_IDS, "message id"),
    };
    match (signed, unsigned) {
        (Some(_), Some(unsigned)) => Err(unsigned.fault(
            "SignMsgId names all that is signed: write one of the two, UnsignedMsgId to sign all else",
        )),
        (Some(signed), None) => numbers(&signed).map(SignedMessages::only),
        (None, Some(unsigned)) => numbers(&unsigned).map(SignedMessages::all_but),
        (None, None) => Ok(SignedMessages::default()),
    }
}

fn read_uart(section: &mut Section<'_>) -> Result<EndpointConfig, ConfigFault> {
    let device = section.require("Device", "Device = /dev/ttyACM0")?;
    check_device(device.text).map_err(|reason| device.fault(reason))?;
    let baud = match section.take("Baud") {
        Some(value) if value.text.contains(',') => {
            return Err(value.fault("one rate: rates are not searched for"));
        }
        Some(value) => parse_baud(value.text).map_err(|reason| value.fault(reason))?,
        None => UART_BAUD,
    };
    let endpoint = Endpoint::Serial { device: device.text.to_owned(), baud };
    let mut config = EndpointConfig::new(String::new(), endpoint);
    config.flow_control = section.take("FlowControl").map_or(Ok(false), |value| value.boolean())?;
    Ok(config)
}

fn read_udp(section: &mut Section<'_>, next_port: &mut u16) -> Result<EndpointConfig, ConfigFault> {
    let mode = section.require("Mode", "Mode = Normal to send, or Mode = Server to listen")?;
    let host = read_address(section)?;
    let port = section.take("Port");
    let port = port.map(|value| parse_port(value.text).map_err(|reason| value.fault(reason))).transpose()?;
    let endpoint = match mode.text.to_ascii_lowercase().as_str() {
        "normal" => {
            let port = port.unwrap_or_else(|| {
                let port = *next_port;
                *next_port = next_port.saturating_add(1);
                port
            });
            let place = HostPort { host, port }.of_somebody().map_err(|reason| section.fault(reason))?;
            Endpoint::UdpOut(place)
        }
        "server" | "eavesdropping" => {
            let port = port.ok_or_else(|| section.fault("Port is missing: a server listens on one"))?;
            Endpoint::UdpIn(HostPort { host, port })
        }
        _ => return Err(mode.fault("write Normal or Server")),
    };
    Ok(EndpointConfig::new(String::new(), endpoint))
}

fn read_tcp(section: &mut Section<'_>) -> Result<EndpointConfig, ConfigFault> {
    let host = read_address(section)?;
    let port = section.require("Port", "Port = 5760")?;
    let port = parse_port(port.text).map_err(|reason| port.fault(reason))?;
    let place = HostPort { host, port }.of_one_machine().map_err(|reason| section.fault(reason))?;
    let mut config = EndpointConfig::new(String::new(), Endpoint::Tcp(place));
    if let Some(value) = section.take("RetryTimeout") {
        let seconds = value.number(0..=86_400, "number of seconds")?;
        config.retry_after = (seconds != 0).then(|| Duration::from_secs(seconds.into()));
    }
    Ok(config)
}

fn read_address(section: &mut Section<'_>) -> Result<String, ConfigFault> {
    let address = section.require("Address", "Address = 127.0.0.1")?;
    // IPv6 stands in brackets, as in mavlink-router.
    let bare = address.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if bare.is_none() && address.text.contains(':') {
        return Err(address.fault("write an IPv6 address in brackets, and the port as a key of its own"));
    }
    let host = bare.unwrap_or(address.text);
    check_host(host).map_err(|reason| address.fault(reason))?;
    Ok(host.to_owned())
}

fn read_filters(section: &mut Section<'_>) -> Result<Filters, ConfigFault> {
    Ok(Filters { incoming: read_filter(section, "In")?, outgoing: read_filter(section, "Out")? })
}

fn read_filter(section: &mut Section<'_>, direction: &str) -> Result<Filter, ConfigFault> {
    let mut list = |what: &str, range: RangeInclusive<u32>, noun| -> Result<List, ConfigFault> {
        let mut numbers = |verb: &str| -> Result<Option<BTreeSet<u32>>, ConfigFault> {
            let value =
                section.take(&format!("{verb}{what}{direction}")).filter(|value| !value.text.is_empty());
            value.map(|value| value.numbers(range.clone(), noun)).transpose()
        };
        Ok(List { allow: numbers("Allow")?, block: numbers("Block")?.unwrap_or_default() })
    };
    Ok(Filter {
        messages: list("MsgId", MESSAGE_IDS, "message id")?,
        systems: list("SrcSys", SYSTEM_IDS, "system id")?,
        components: list("SrcComp", COMPONENT_IDS, "component id")?,
    })
}

impl ConfigValue<'_> {
    fn fault(&self, reason: impl Into<String>) -> ConfigFault {
        (self.line, self.place.clone(), reason.into())
    }

    fn filled(&self) -> Result<String, ConfigFault> {
        if self.text.is_empty() { Err(self.fault("a value is missing")) } else { Ok(self.text.to_owned()) }
    }

    fn number(&self, range: RangeInclusive<u32>, noun: &str) -> Result<u32, ConfigFault> {
        self.parse_number(self.text, &range, noun)
    }

    /// Numbers with commas between them.
    fn numbers(&self, range: RangeInclusive<u32>, noun: &str) -> Result<BTreeSet<u32>, ConfigFault> {
        // A comma may stand at the end, as in mavlink-router.
        let items = self.text.strip_suffix(',').unwrap_or(self.text).split(',');
        if items.clone().count() > MAX_LIST {
            return Err(self.fault(format!("more than {MAX_LIST} numbers")));
        }
        items.map(|item| self.parse_number(item.trim(), &range, noun)).collect()
    }

    fn parse_number(&self, text: &str, range: &RangeInclusive<u32>, noun: &str) -> Result<u32, ConfigFault> {
        match text.parse::<u32>() {
            Ok(number) if range.contains(&number) && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(number)
            }
            _ => Err(self.fault(format!(
                "`{}` is not a {noun} from {} to {}",
                shown(text),
                range.start(),
                range.end()
            ))),
        }
    }

    fn boolean(&self) -> Result<bool, ConfigFault> {
        match self.text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(self.fault("write true or false")),
        }
    }
}
