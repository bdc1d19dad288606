//! Writing to streams that do not block.

use std::io::{ErrorKind, Write};
use std::thread::sleep;
use std::time::Duration;

/// Writes everything, however long the other end takes.
pub(crate) fn write_patiently(line: &mut impl Write, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match line.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
