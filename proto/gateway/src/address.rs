//! Address of a line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use quiver_net::parse_dialled_address;

use crate::GatewayError;

/// Address of a line: `/dev/ttyACM0`, `tcp:127.0.0.1:5555`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LineAddress {
    /// A device.
    Device(PathBuf),
    /// A TCP server that passes bytes on to a board: an emulator, or a machine that shares its device.
    Tcp {
        /// Name or address of the host.
        host: String,
        /// Port of the host.
        port: u16,
    },
}

impl FromStr for LineAddress {
    type Err = GatewayError;

    fn from_str(text: &str) -> Result<Self, GatewayError> {
        let invalid = GatewayError::InvalidLine;
        if let Some(place) = text.strip_prefix("tcp:") {
            let (host, port) = place.rsplit_once(':').ok_or(invalid)?;
            // An IPv6 address has colons of its own and is in brackets.
            let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let host = bracketed.unwrap_or(host);
            let port = port.parse().ok().filter(|port| *port != 0).ok_or(invalid)?;
            if host.is_empty() || host.contains(['/', ' ']) || (host.contains(':') && bracketed.is_none()) {
                return Err(invalid);
            }
            return Ok(Self::Tcp { host: host.into(), port });
        }
        if text.starts_with('/') && !text.ends_with('/') {
            return Ok(Self::Device(text.into()));
        }
        Err(invalid)
    }
}

impl LineAddress {
    /// Refuses what is there and is no line, and never will be one.
    ///
    /// # Errors
    /// In words, with what to write.
    pub fn check(&self) -> Result<(), String> {
        let path = match self {
            Self::Device(path) => path,
            Self::Tcp { host, port } if host.contains(':') => {
                return check_server(&format!("[{host}]:{port}"));
            }
            Self::Tcp { host, port } => return check_server(&format!("{host}:{port}")),
        };
        if let Some((device, rate)) = path.to_str().and_then(|path| path.rsplit_once(':'))
            && !rate.is_empty()
            && rate.bytes().all(|byte| byte.is_ascii_digit())
            && !path.exists()
        {
            return Err(format!("write {device}, and the rate as --baud {rate}"));
        }
        quiver_serial::check_path(path)
    }
}

/// Refuses a server that can never be reached.
fn check_server(place: &str) -> Result<(), String> {
    parse_dialled_address(place).map(drop).map_err(|error| format!("tcp:{place}: {error}"))
}

impl fmt::Display for LineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_is_refused_and_what_may_come_is_not() {
        let check = |text: &str| text.parse::<LineAddress>().expect("an address").check();
        for good in
            ["/dev/tty", "/dev/none-of-these", "tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:bench_1.local:1"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let told = |text: &str| check(text).expect_err(text);
        assert!(told("/etc").contains("/etc is a directory, and no serial line"));
        assert!(told("/etc/passwd").contains("/etc/passwd is a file, and no serial line"));
        assert!(told("/dev/null").contains("a device of the kernel, which has no other end"));
        for nobody in ["tcp:0.0.0.0:1", "tcp:224.0.0.1:1", "tcp:999.1.1.1:1", "tcp:[::]:1"] {
            assert!(told(nobody).starts_with(nobody), "{}", told(nobody));
        }
        assert_eq!(told("/dev/none:115200"), "write /dev/none, and the rate as --baud 115200");
    }

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        for text in ["/dev/ttyACM0", "tcp:127.0.0.1:5555", "tcp:bench.local:1", "tcp:[::1]:5555"] {
            assert_eq!(text.parse::<LineAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in
            ["", "ttyACM0", "/", "/dev/", "tcp:", "tcp:host", "tcp::1", "tcp:h:0", "tcp:h:65536", "tcp:::1:5"]
        {
            assert_eq!(text.parse::<LineAddress>(), Err(GatewayError::InvalidLine), "{text}");
        }
    }
}
