//! Fields of the queries and responses of all payloads: what travels signed and sealed begins with a version
//! (docs/protocol.md §4).

use quiver_ainq::Error;
use quiver_crypto::canonical::Reader;

/// First byte of every query and response.
pub const QUERY_VERSION: u8 = 1;

/// Reads the first byte.
///
/// # Errors
/// [`Error::Malformed`] for another version.
pub fn read_version(reader: &mut Reader<'_>) -> Result<(), Error> {
    if reader.u8()? == QUERY_VERSION { Ok(()) } else { Err(Error::Malformed("of another version")) }
}

/// Reads a byte that is 0 or 1.
///
/// # Errors
/// [`Error::Malformed`] for any other, so that no two encodings say the same.
pub fn read_flag(reader: &mut Reader<'_>) -> Result<bool, Error> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Malformed("neither yes nor no")),
    }
}
