//! How many CPU cycles a drone's operations take on an Arm Cortex-M4.

/// An operation that a drone's CPU time consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A secret scalar times a variable point.
    Multiplication,
    /// A secret scalar times the base point.
    BaseMultiplication,
    /// A signature check's a·P + b·B, in variable time.
    DoubleMultiplication,
    /// Decoding a point.
    Decoding,
    /// SHA-256 of one block of 64 bytes.
    Sha256Block,
    /// ChaCha20 over one block of 64 bytes.
    ChaCha20Block,
    /// Poly1305 over one block of 16 bytes.
    Poly1305Block,
}
