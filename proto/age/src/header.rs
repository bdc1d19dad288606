//! Reading as much as a header, and no more: the `age` crate reads one of any length.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use age::armor::ArmoredReader;

use crate::{Error, Result};

/// The longest header, in bytes. 64 recipients with the longest conditions take 30 KiB.
const LIMIT: usize = 64 * 1024;
/// The longest header, in lines: parsing takes the square of that.
const LINES_LIMIT: usize = 1024;
/// Beginning of the header's last line.
const LAST_LINE: &[u8] = b"--- ";
/// Beginning of an armoured file.
const ARMOUR_START: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
/// Beginning of a file without armour: its first line, of whichever version.
const BINARY_START: &[u8] = b"age-encryption.org/";
/// The longest line of armour, its end included: 64 characters, and something for other kinds of line end.
const ARMOUR_LINE: usize = 80;

/// An age file without its armour, if it had one.
pub(crate) enum AgeReader<R: Read> {
    Binary(BufReader<Prefixed<R>>),
    Armoured(Box<Armour<R>>),
}

/// The lines of armour, as bytes.
type Armour<R> = BufReader<ArmoredReader<BufReader<ShortLines<Prefixed<R>>>>>;

/// The bytes read to detect the format, and the rest.
pub(crate) type Prefixed<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> AgeReader<R> {
    /// Looks for armour, and for the beginning of a file without.
    ///
    /// # Errors
    /// [`Error::NotAnAgeFile`], [`Error::Read`].
    pub(crate) fn new(mut input: R) -> Result<Self> {
        let mut first = Vec::with_capacity(ARMOUR_START.len());
        (&mut input).take(ARMOUR_START.len() as u64).read_to_end(&mut first).map_err(Error::Read)?;
        let armoured = first == ARMOUR_START;
        if !armoured && !first.starts_with(BINARY_START) {
            return Err(Error::NotAnAgeFile);
        }
        let all = Cursor::new(first).chain(input);
        if !armoured {
            return Ok(Self::Binary(BufReader::new(all)));
        }
        let lines = ShortLines { inner: all, length: 0 };
        Ok(Self::Armoured(Box::new(BufReader::new(ArmoredReader::new(lines)))))
    }

    /// The header, up to the end of the line that has its MAC.
    pub(crate) fn read_header(&mut self) -> Result<Vec<u8>> {
        let mut header = Vec::new();
        for _ in 0..LINES_LIMIT {
            let start = header.len();
            let room = (LIMIT - start) as u64;
            self.take(room).read_until(b'\n', &mut header).map_err(unreadable)?;
            let line = header.get(start..).unwrap_or_default();
            if line.last() != Some(&b'\n') {
                return Err(if header.len() < LIMIT { Error::DamagedHeader } else { TOO_LONG });
            }
            if line.starts_with(LAST_LINE) {
                return Ok(header);
            }
        }
        Err(TOO_LONG)
    }
}

const TOO_LONG: Error = Error::HeaderTooLong { limit: LIMIT, lines: LINES_LIMIT };

/// Armour that is none is the file's fault, the rest the file system's.
fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Error::DamagedHeader,
        _ => Error::Read(error),
    }
}

impl<R: Read> Read for AgeReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Binary(inner) => inner.read(buffer),
            Self::Armoured(inner) => inner.read(buffer),
        }
    }
}

impl<R: Read> BufRead for AgeReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Binary(inner) => inner.fill_buf(),
            Self::Armoured(inner) => inner.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Binary(inner) => inner.consume(amount),
            Self::Armoured(inner) => inner.consume(amount),
        }
    }
}

/// Passes lines on that are as short as those of armour; the reader of armour keeps one of any length.
pub(crate) struct ShortLines<R> {
    inner: R,
    /// Bytes since the last end of a line.
    length: usize,
}

impl<R: Read> Read for ShortLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for &byte in buffer.iter().take(count) {
            self.length = if byte == b'\n' { 0 } else { self.length + 1 };
            if self.length > ARMOUR_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line too long for armour"));
            }
        }
        Ok(count)
    }
}
