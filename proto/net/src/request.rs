//! Ids of requests, by which log lines of both sides are correlated.
//!
//! An id is sixteen random bytes, drawn anew for every message that does not answer another. It is sent to no
//! peer but the one that it came from, so it reveals no more than the connection on which it travels:
//! messages of a drone to two peers, or on two connections, have nothing in common. The protocol above
//! neither authenticates it nor depends on it; a false id confuses only a log.

use std::fmt;

/// The id of a request and of everything that answers it.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("{self}")]
pub(crate) struct RequestId([u8; Self::LEN]);

impl RequestId {
    /// Length in bytes.
    pub(crate) const LEN: usize = 16;

    /// A fresh id.
    pub(crate) fn random() -> Self {
        Self(rand::random())
    }

    pub(crate) const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Span of all log lines of the request.
    pub(crate) fn span(&self) -> tracing::Span {
        tracing::info_span!("request", id = %self)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_apart_and_written_in_hexadecimal_digits() {
        assert_ne!(RequestId::random(), RequestId::random());
        let id = RequestId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0eff");
    }
}
