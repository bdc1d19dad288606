//! Opening files.

use std::cell::{Cell, RefCell};
use std::io::{self, Chain, Cursor, Read, Write};

use age::stream::StreamReader;
use age::{DecryptError, Decryptor};
use age_core::format::{FileKey, Stanza};
use quiver_crypto::Hex;

use crate::encrypt::copy;
use crate::header::AgeReader;
use crate::identity::Identity;
use crate::stanza::WrappedKey;
use crate::{Error, Result};

/// Length of the payload's nonce, in bytes; it follows the header.
const NONCE_LENGTH: usize = 16;

/// A file whose header was read. Nothing about it is verified until it is opened.
#[derive(derive_more::Debug)]
#[debug("SealedFile {{ keys: {keys:?}, .. }}")]
pub struct SealedFile<R: Read> {
    header: Vec<u8>,
    keys: Vec<WrappedKey>,
    rest: AgeReader<R>,
}

impl<R: Read> SealedFile<R> {
    /// Reads the header of a file, armoured or not.
    ///
    /// # Errors
    /// [`Error::NotAnAgeFile`], [`Error::DamagedHeader`], [`Error::HeaderTooLong`], [`Error::NotToConditions`],
    /// [`Error::Read`].
    pub fn read(input: R) -> Result<Self> {
        let mut rest = AgeReader::new(input)?;
        let header = rest.read_header()?;
        let keys = wrapped_keys(&header)?;
        if keys.is_empty() {
            return Err(Error::NotToConditions);
        }
        Ok(Self { header, keys, rest })
    }

    /// The file key as encrypted to each of the file's conditions, in the order of the header.
    pub fn keys(&self) -> &[WrappedKey] {
        &self.keys
    }

    /// Opens the file with the first key that fits, after the header's MAC was verified.
    ///
    /// # Errors
    /// [`Error::OtherMaster`], [`Error::NoKey`], [`Error::AlteredHeader`], [`Error::Damaged`],
    /// [`Error::Read`].
    pub fn open(self, identity: &Identity) -> Result<Plaintext<R>> {
        self.refuse_without_key(identity)?;
        let whole = Cursor::new(self.header).chain(self.rest);
        let decryptor = Decryptor::new_buffered(whole).map_err(|error| match error {
            DecryptError::Io(error) => unreadable(error, 0),
            _ => Error::DamagedHeader,
        })?;
        let opened = decryptor.decrypt(std::iter::once(identity as &dyn age::Identity));
        let inner = opened.map_err(|error| match error {
            DecryptError::Io(error) => unreadable(error, 0),
            DecryptError::InvalidHeader => Error::DamagedHeader,
            _ => Error::AlteredHeader,
        })?;
        Ok(Plaintext { inner })
    }

    fn refuse_without_key(&self, identity: &Identity) -> Result<()> {
        if self.keys.iter().any(|key| identity.opens(key)) {
            return Ok(());
        }
        let own = identity.master().fingerprint();
        let ours: Vec<_> = self.keys.iter().filter(|key| key.master == own).collect();
        if ours.is_empty() {
            let mut found: Vec<_> = self.keys.iter().map(|key| Hex(&key.master).to_string()).collect();
            found.sort();
            found.dedup();
            return Err(Error::OtherMaster { found, own: Hex(&own).to_string() });
        }
        Err(Error::NoKey { conditions: ours.iter().map(|key| key.condition.clone()).collect() })
    }
}

/// An identity that opens nothing and records the stanzas that it is asked to open.
#[derive(Default)]
struct Onlooker {
    seen: RefCell<Vec<WrappedKey>>,
    malformed: Cell<bool>,
}

impl age::Identity for Onlooker {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        match WrappedKey::from_stanza(stanza)? {
            Ok(key) => self.seen.borrow_mut().push(key),
            Err(_) => self.malformed.set(true),
        }
        None
    }
}

/// The stanzas of our type in a header.
fn wrapped_keys(header: &[u8]) -> Result<Vec<WrappedKey>> {
    // The nonce that follows a header is not looked at for this.
    let decryptor = Decryptor::new_buffered(header.chain(&[0; NONCE_LENGTH][..]));
    let decryptor = decryptor.map_err(|_| Error::DamagedHeader)?;
    let onlooker = Onlooker::default();
    match decryptor.decrypt(std::iter::once(&onlooker as &dyn age::Identity)) {
        Err(DecryptError::NoMatchingKeys) if !onlooker.malformed.get() => Ok(onlooker.seen.into_inner()),
        _ => Err(Error::DamagedHeader),
    }
}

/// The content of an opened file. Every byte that can be read is authentic; after an error no more bytes
/// follow.
#[derive(derive_more::Debug)]
#[debug("Plaintext(..)")]
pub struct Plaintext<R: Read> {
    inner: StreamReader<Chain<Cursor<Vec<u8>>, AgeReader<R>>>,
}

impl<R: Read> Plaintext<R> {
    /// Writes all of it, and returns how many bytes that were.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the number of bytes that were written, [`Error::Read`], [`Error::Write`].
    pub fn copy_to(self, to: impl Write) -> Result<u64> {
        copy(self, to, unreadable)
    }
}

impl<R: Read> Read for Plaintext<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

/// The error of the `age` crate after so many bytes.
fn unreadable(error: io::Error, genuine: u64) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Error::Damaged { genuine },
        _ => Error::Read(error),
    }
}
