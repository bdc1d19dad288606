//! Errors of a gateway's settings, in words that tell the user what to write.

/// An error of a gateway's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Not a line's address.
    #[error(
        "neither the path of a device, such as /dev/ttyACM0, nor tcp:HOST:PORT, such as tcp:127.0.0.1:5555"
    )]
    InvalidLine,
}
