//! Ports of this machine: finds those that are busy, and some that are free.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use rand::Rng;
use rand::rngs::OsRng;

use crate::error::{Error, Result};

/// Range in which free ports are looked for: below those that the system gives connections, so that no
/// connection takes one while its deployment is down.
const SEARCHED: std::ops::Range<u16> = 20_000..32_000;
/// Number of attempts to find free ports.
const TRIES: usize = 500;

/// The kind of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A port that a service listens on.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// The service, and what it is for.
    pub(crate) purpose: String,
    /// Kind of the port.
    pub(crate) transport: Transport,
    /// Number of the port.
    pub(crate) number: u16,
}

impl Port {
    fn is_free(&self) -> bool {
        is_free(self.transport, self.number)
    }

    fn describe(&self) -> String {
        let transport = match self.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        format!("{transport} port {} for {}", self.number, self.purpose)
    }
}

fn is_free(transport: Transport, number: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, number);
    match transport {
        Transport::Tcp => TcpListener::bind(address).is_ok(),
        Transport::Udp => UdpSocket::bind(address).is_ok(),
    }
}

/// Refuses ports that other programs have.
///
/// # Errors
/// [`Error::PortsBusy`] with all of them.
pub(crate) fn refuse_busy(ports: &[Port]) -> Result<()> {
    let busy: Vec<_> = ports.iter().filter(|port| !port.is_free()).collect();
    if busy.is_empty() {
        return Ok(());
    }
    let of_drones = busy.iter().all(|port| port.purpose.starts_with("edge-"));
    let flag = if of_drones { "--mavlink-port any" } else { "--port any" };
    Err(Error::PortsBusy { ports: busy.into_iter().map(Port::describe).collect(), flag })
}

/// The first of `count` ports in a row that are free for TCP and UDP.
///
/// # Errors
/// [`Error::NoPorts`].
pub(crate) fn free(count: u16, flag: &'static str) -> Result<u16> {
    for _ in 0..TRIES {
        let first = OsRng.gen_range(SEARCHED.start..SEARCHED.end - count);
        let mut row = first..first + count;
        if row.all(|port| is_free(Transport::Tcp, port) && is_free(Transport::Udp, port)) {
            return Ok(first);
        }
    }
    Err(Error::NoPorts { count, flag })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_port_is_refused_with_its_number_and_purpose() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let number = held.local_addr().expect("address").port();
        let port = Port { purpose: "kgc".into(), transport: Transport::Tcp, number };
        let error = refuse_busy(std::slice::from_ref(&port)).expect_err("busy").to_string();
        assert!(error.contains(&format!("TCP port {number} for kgc")), "{error}");
        assert!(error.contains("--port any"), "{error}");
    }

    #[test]
    fn busy_port_of_a_drone_names_the_flag_of_drones() {
        let held = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let number = held.local_addr().expect("address").port();
        let port = Port { purpose: "edge-1".into(), transport: Transport::Udp, number };
        let error = refuse_busy(&[port]).expect_err("busy").to_string();
        assert!(error.contains("UDP port") && error.contains("--mavlink-port any"), "{error}");
    }

    #[test]
    fn free_ports_are_a_row_outside_of_what_connections_get() {
        let first = free(5, "--port").expect("free");
        assert!(SEARCHED.contains(&first) && first + 5 <= SEARCHED.end, "{first}");
    }
}
