//! Making files.

use std::io::{self, BufWriter, Read, Write};

use age::armor::ArmoredWriter;
use age::stream::StreamWriter;
use age::{EncryptError, Encryptor};
use quiver_crypto::Zeroizing;

use crate::recipient::{RECIPIENTS_LIMIT, Recipient};
use crate::{Error, Result};

/// Bytes copied at once: a chunk of age's.
const COPIED: usize = 64 * 1024;

/// Format of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Bytes.
    #[default]
    Binary,
    /// Lines of base64 between a first and a last line, a third longer.
    Armoured,
}

impl From<Format> for age::armor::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Binary => Self::Binary,
            Format::Armoured => Self::AsciiArmor,
        }
    }
}

/// Encrypts the bytes written to it. Without [`Self::finish`] the file is truncated, which is detected on
/// opening.
#[derive(derive_more::Debug)]
#[debug("EncryptingWriter(..)")]
pub struct EncryptingWriter<W: Write> {
    inner: StreamWriter<ArmoredWriter<BufWriter<W>>>,
}

impl<W: Write> EncryptingWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// [`Error::NoRecipients`], [`Error::TooManyRecipients`], [`Error::Write`].
    pub fn new(recipients: &[Recipient], format: Format, to: W) -> Result<Self> {
        if recipients.len() > RECIPIENTS_LIMIT {
            return Err(Error::TooManyRecipients);
        }
        let encryptor = Encryptor::with_recipients(recipients.iter().map(|recipient| recipient as _));
        let encryptor = encryptor.map_err(|error| match error {
            EncryptError::MissingRecipients => Error::NoRecipients,
            error => Error::Age(error.to_string()),
        })?;
        let armour = ArmoredWriter::wrap_output(BufWriter::new(to), format.into()).map_err(Error::Write)?;
        Ok(Self { inner: encryptor.wrap_output(armour).map_err(Error::Write)? })
    }

    /// Writes the last chunk.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(self) -> Result<W> {
        let buffered = self.inner.finish().and_then(ArmoredWriter::finish).map_err(Error::Write)?;
        buffered.into_inner().map_err(|error| Error::Write(error.into_error()))
    }
}

impl<W: Write> Write for EncryptingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Encrypts all that can be read to these recipients. Returns how many bytes that were.
///
/// # Errors
/// [`Error::NoRecipients`], [`Error::TooManyRecipients`], [`Error::Read`], [`Error::Write`].
pub fn encrypt(recipients: &[Recipient], format: Format, from: impl Read, to: impl Write) -> Result<u64> {
    let mut writer = EncryptingWriter::new(recipients, format, to)?;
    let copied = copy(from, &mut writer, |error, _| Error::Read(error))?;
    writer.finish()?;
    Ok(copied)
}

/// Copies, and distinguishes an error of reading (after how many bytes) from one of writing. Copied bytes are
/// erased behind.
pub(crate) fn copy(
    mut from: impl Read,
    mut to: impl Write,
    unread: impl Fn(io::Error, u64) -> Error,
) -> Result<u64> {
    let mut buffer = Zeroizing::new(vec![0; COPIED]);
    let mut copied = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unread(error, copied)),
        };
        to.write_all(buffer.get(..count).unwrap_or_default()).map_err(Error::Write)?;
        copied += count as u64;
    }
}
