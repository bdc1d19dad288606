//! Errors of a node as a whole. Errors of one peer are logged, and the node goes on.

use std::io;

use libp2p::Multiaddr;

use crate::config::Transport;

/// Error of an application that could not make records durable.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a text is no address for a service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is no multiaddress.
    #[error(transparent)]
    Malformed(#[from] libp2p::multiaddr::Error),
    /// It is an address for QUIC, which this build does not have.
    #[error("this build has no QUIC (`cargo services --features quic` makes one that has it, for both ends)")]
    NoQuic,
    /// Nothing can ever be reached there.
    #[error("nothing can be reached there: {0}")]
    Undialable(&'static str),
    /// No service can ever listen there.
    #[error("nothing can listen there: {0}")]
    Unlistenable(&'static str),
}

/// Reason why nothing can listen on an address, for people.
fn listen_reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have the address: give one of its own, or 0.0.0.0 for all".into()
        }
        io::ErrorKind::PermissionDenied => {
            format!("{source}: ports below 1024 are root's; choose another port")
        }
        _ => source.to_string(),
    }
}

/// Reason why a driver could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket listens on the address.
    #[error("the address {address} is in use: stop the other process or choose another port")]
    AddressInUse {
        /// The configured address.
        address: Multiaddr,
    },
    /// Listening on the address failed for another reason.
    #[error("cannot listen on {address}: {}", listen_reason(.source))]
    Listen {
        /// The configured address.
        address: Multiaddr,
        /// The reason.
        source: io::Error,
    },
    /// The address does not belong to the chosen transport.
    #[error("the transport {transport} cannot use the address {address}: write {example}")]
    UnsupportedAddress {
        /// The configured address.
        address: Multiaddr,
        /// The configured transport.
        transport: Transport,
        /// An address it could use.
        example: &'static str,
    },
    /// A listener stopped while the driver ran.
    #[error("the listener on {addresses} stopped: {source}")]
    ListenerClosed {
        /// The addresses it served, separated by commas.
        addresses: String,
        /// The reason.
        source: io::Error,
    },
    /// The process may not open as many files as the sockets need.
    #[error(
        "{needed} open files are needed but only {allowed} are allowed: run `ulimit -n {needed}` (or raise LimitNOFILE), or use fewer drones or the memory transport"
    )]
    FileLimit {
        /// Number of descriptors needed.
        needed: u64,
        /// Maximum number of descriptors that the process may open.
        allowed: u64,
    },
    /// The limit of open files could not be read or raised.
    #[error("cannot read or raise the limit of open files: {0}")]
    FileLimitUnknown(#[source] io::Error),
    /// Another process answers with this node's key.
    #[error(
        "another process answers at {address} with this one's transport key: it has a copy of this data directory; end one of the two"
    )]
    DuplicateIdentity {
        /// The address.
        address: Multiaddr,
    },
    /// The 32 bytes are no Ed25519 secret key.
    #[error("the transport key is not a valid Ed25519 secret key")]
    InvalidKey,
    /// libp2p refuses the configuration.
    #[error("the network configuration is invalid: {0}")]
    Configuration(String),
}
