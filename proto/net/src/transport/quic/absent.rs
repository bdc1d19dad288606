//! Refusal of connections over QUIC, in a build without it.

use super::Connections;
use crate::config::NodeConfig;
use crate::error::NetError;

/// QUIC alone.
///
/// # Errors
/// [`NetError::Configuration`] in any case.
pub(super) fn alone(_: &NodeConfig) -> Result<Connections, NetError> {
    Err(NetError::Configuration("this build has no QUIC: build it with the feature `quic`".into()))
}

/// QUIC beside another transport.
///
/// # Errors
/// [`NetError::Configuration`] in any case.
pub(super) fn beside(_: Connections, config: &NodeConfig) -> Result<Connections, NetError> {
    alone(config)
}
