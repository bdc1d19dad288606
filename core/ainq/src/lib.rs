//! AinQ. 
/// Seconds since 1970-01-01T00:00:00Z.
pub type UnixTime = u64;
