//! Refusal of connections over QUIC, in a build without it.

use super::BoxedTransport;
use crate::config::NodeConfig;
use crate::error::NetError;

/// True if this build has QUIC.
pub(crate) const IS_BUILT_IN: bool = false;

/// QUIC alone.
///
/// # Errors
/// [`NetError::Configuration`] in any case.
pub(super) fn alone(_: &NodeConfig) -> Result<BoxedTransport, NetError> {
    Err(NetError::Configuration("this build has no QUIC: build it with the feature `quic`".into()))
}

/// QUIC beside another transport.
///
/// # Errors
/// [`NetError::Configuration`] in any case.
pub(super) fn beside(_: BoxedTransport, config: &NodeConfig) -> Result<BoxedTransport, NetError> {
    alone(config)
}
