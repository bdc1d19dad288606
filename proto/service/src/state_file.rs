//! The encrypted file of a service's records: a snapshot and a journal.
//!
//! ```text
//! file   = header ‖ SHA-256(header) ‖ key check ‖ frame 0 (the snapshot) ‖ frame 1 ‖ …   (the journal)
//! frame  = length u32 ‖ nonce 12 B ‖ mark 16 B ‖ ChaCha20-Poly1305 ciphertext
//! ```
//!
//! * The key of a file is PRF(K, file id): K comes from the passphrase (Argon2id) or the key file, the file
//!   id is drawn anew whenever the file is replaced, so no two files share a key.
//! * A frame's associated data is the header's hash, the frame's index and the tag of the frame before it, so
//!   frames cannot be reordered, left out in the middle, or taken from another file. The mark authenticates
//!   the length and the nonce: without it a flipped bit in a length would look like an interrupted write and
//!   silently hide what follows.
//! * [`StateFile::replace`] writes a new file beside the old one, syncs, renames and syncs the directory.
//! * [`StateFile::append`] adds one frame with any number of records and syncs once. A leader needs it: it
//!   records a few hundred bytes per drone that joins, and rewriting megabytes of roster for each would make
//!   joining quadratic. When the journal has outgrown the snapshot ([`StateFile::journal_outgrown`]) the
//!   owner replaces both by a new snapshot. A file is read back whole, and none larger than 1 GiB is: an
//!   append that would lead there is refused ([`Error::JournalFull`]), so that what was acknowledged can
//!   always be read. **A secret that must be forgotten must not be appended**: a superseded secret stays
//!   readable in the journal until the next replacement. So an edge, whose state holds ratchets and one-time
//!   points, replaces each time; a leader's records hold no group secret.
//! * An interrupted append (`kill -9`, power) leaves a short last frame, or one of which parts were not written and read
//!   as zeros, at its end, its beginning or in its middle: a file system writes blocks in any order. It was never
//!   acknowledged, so nothing that depends on it left this machine, and opening drops it. Any other damage is an error,
//!   never a guess, and so is a frame with unwritten parts behind which another stands.
//!
//! Not protected: an attacker that can write the disk can put back an older file. Nothing on the same disk
//! can prevent that; the protocol is built so that an old state repeats no nonce and accepts no old epoch
//! from others.

mod frame;
mod header;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use quiver_crypto::Secret;
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::private_file::{self, Lock};
use crate::secrets::{Protection, Stretching};
use crate::{Error, Result};
use frame::{FrameChain, Next};
pub(crate) use header::MAGIC;
use header::{Seal, StateFileHeader};

/// The largest state file, in bytes: what is larger is not read, so nothing makes it larger.
const FILE_LIMIT: u64 = 1 << 30;
/// A journal below this size, in bytes, is never called outgrown.
const SMALL_JOURNAL: u64 = 1 << 20;

/// Owner of a state file. Written in clear in its header, and authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The role: `kgc`, `leader`, `edge`.
    pub role: String,
    /// The deployment's name, for people.
    pub deployment: String,
    /// The deployment's fingerprint.
    pub fingerprint: [u8; 32],
}

impl Owner {
    fn describe(&self) -> String {
        let short = hex::encode(self.fingerprint.get(..4).unwrap_or_default());
        format!("the {} of deployment {} ({short}…)", self.role, self.deployment)
    }
}

/// The records of a state file, oldest first.
pub type Records = Vec<Zeroizing<Vec<u8>>>;

/// A record that begins with what kind it is of.
pub fn tagged(tag: u8, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut record = Zeroizing::new(Vec::with_capacity(1 + bytes.len()));
    record.push(tag);
    record.extend_from_slice(bytes);
    record
}

/// An open, locked state file.
pub struct StateFile {
    path: PathBuf,
    file: File,
    header: StateFileHeader,
    /// K: what the keys of this file and its successors are derived from.
    root: Secret<32>,
    chain: FrameChain,
    /// Bytes acknowledged; anything behind them is the rest of a failed append.
    acknowledged: u64,
    snapshot: u64,
    /// Maximum length of the file, in bytes.
    limit: u64,
    /// The file was replaced, but the directory may not know it for good yet.
    directory_unsynced: bool,
    _lock: Lock,
}

impl std::fmt::Debug for StateFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StateFile({}, {} bytes)", self.path.display(), self.acknowledged)
    }
}

impl StateFile {
    /// Creates the file with `records` as its snapshot. Never overwrites one.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::InUse`], [`Error::DiskFull`], [`Error::Io`].
    pub fn create<R: AsRef<[u8]>>(
        path: &Path,
        owner: &Owner,
        by: &Protection,
        records: &[R],
    ) -> Result<Self> {
        let lock = Lock::acquire(path)?;
        if path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.into() });
        }
        let seal = Seal::of(by);
        let root = root_key(path, &seal, by)?;
        let header = StateFileHeader { owner: owner.clone(), seal, file_id: random() };
        let (file, chain, length) = write_snapshot(path, &header, &root, records)?;
        let mut state = Self::over(path, file, header, root, chain, lock);
        (state.acknowledged, state.snapshot, state.directory_unsynced) = (length, length, true);
        state.sync_directory()?;
        Ok(state)
    }

    /// Opens the file and reads its records.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::TooOpen`], [`Error::NotAStateFile`], [`Error::NewerFormat`],
    /// [`Error::Foreign`], [`Error::WrongProtection`], [`Error::WrongKey`], [`Error::Corrupt`],
    /// [`Error::TooLarge`], [`Error::Io`].
    pub fn open(path: &Path, owner: &Owner, by: &Protection) -> Result<(Self, Records)> {
        let lock = Lock::acquire(path)?;
        let bytes = private_file::read(path, FILE_LIMIT)?;
        let (header, start, root) = unlock(path, owner, by, &bytes)?;
        let mut chain = FrameChain::new(&header, &root);
        let read = read_frames(path, &mut chain, &bytes, start)?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| Error::io("open for writing", path, source))?;
        let mut state = Self::over(path, file, header, root, chain, lock);
        (state.acknowledged, state.snapshot) = (read.acknowledged as u64, read.snapshot as u64);
        Ok((state, read.records))
    }

    /// Checks that `by` opens the file, also while another process has it open.
    ///
    /// # Errors
    /// As [`Self::open`], but for [`Error::InUse`].
    pub fn check_key(path: &Path, owner: &Owner, by: &Protection) -> Result<()> {
        unlock(path, owner, by, &private_file::read(path, FILE_LIMIT)?).map(drop)
    }

    fn over(
        path: &Path,
        file: File,
        header: StateFileHeader,
        root: Secret<32>,
        chain: FrameChain,
        lock: Lock,
    ) -> Self {
        let (acknowledged, snapshot, directory_unsynced) = (0, 0, false);
        let (path, limit) = (path.into(), FILE_LIMIT);
        Self {
            path,
            file,
            header,
            root,
            chain,
            acknowledged,
            snapshot,
            limit,
            directory_unsynced,
            _lock: lock,
        }
    }

    /// Replaces everything by `records`, atomically and durably. If it fails, the file is what it was, or
    /// holds `records` already but might not after a crash; either way it may be tried again.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`], [`Error::TooLarge`].
    pub fn replace<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<()> {
        let header = StateFileHeader { file_id: random(), ..self.header.clone() };
        let (file, chain, acknowledged) = write_snapshot(&self.path, &header, &self.root, records)?;
        (self.file, self.header, self.chain) = (file, header, chain);
        (self.acknowledged, self.snapshot, self.directory_unsynced) = (acknowledged, acknowledged, true);
        self.sync_directory()
    }

    fn sync_directory(&mut self) -> Result<()> {
        if self.directory_unsynced {
            private_file::sync_directory_of(&self.path)?;
            self.directory_unsynced = false;
        }
        Ok(())
    }

    /// Appends `records` in one frame and makes them durable. If it fails, they are not in the file, and it
    /// may be tried again.
    ///
    /// # Errors
    /// [`Error::JournalFull`] if the file would become longer than [`Self::open`] reads: [`Self::replace`]
    /// makes room; [`Error::DiskFull`], [`Error::Io`], [`Error::TooLarge`].
    pub fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        // Records appended to a file that the directory forgets would be lost with it.
        self.sync_directory()?;
        let (frame, chain) = self.chain.seal(&self.path, records, random())?;
        if self.acknowledged.saturating_add(frame.len() as u64) > self.limit {
            return Err(Error::JournalFull { path: self.path.clone(), limit: self.limit });
        }
        if let Err(source) = self.write_frame(&frame) {
            // The part of it that arrived is cut off now or, if even that fails, before the next attempt or
            // by `open`.
            let _ = self.file.set_len(self.acknowledged);
            return Err(Error::io("append to", &self.path, source));
        }
        self.acknowledged += frame.len() as u64;
        self.chain = chain;
        Ok(())
    }

    fn write_frame(&mut self, frame: &[u8]) -> std::io::Result<()> {
        if self.file.metadata()?.len() != self.acknowledged {
            self.file.set_len(self.acknowledged)?;
        }
        self.file.seek(SeekFrom::Start(self.acknowledged))?;
        self.file.write_all(frame)?;
        self.file.sync_data()
    }

    /// Reads back all records, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if somebody else changed the file meanwhile, [`Error::Io`].
    pub fn records(&mut self) -> Result<Records> {
        let length = self.acknowledged;
        let mut bytes = Vec::new();
        let read = |file: &mut File, bytes: &mut Vec<u8>| {
            file.seek(SeekFrom::Start(0))?;
            file.take(length).read_to_end(bytes)
        };
        read(&mut self.file, &mut bytes).map_err(|source| Error::io("read", &self.path, source))?;
        let (header, start, _) = StateFileHeader::decode(&self.path, &bytes)?;
        let mut chain = FrameChain::new(&header, &self.root);
        let read = read_frames(&self.path, &mut chain, &bytes, start)?;
        if read.acknowledged as u64 != length {
            let (path, offset) = (self.path.clone(), read.acknowledged as u64);
            return Err(Error::Corrupt { path, offset, what: "what was written is gone" });
        }
        Ok(read.records)
    }

    /// Returns true if the journal is larger than the snapshot (and a megabyte), so that replacing both pays.
    pub fn journal_outgrown(&self) -> bool {
        self.acknowledged.saturating_sub(self.snapshot) > self.snapshot.max(SMALL_JOURNAL)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Encrypts one record that is kept elsewhere than in a state file, in the same format. `path` names it in errors.
///
/// # Errors
/// [`Error::TooLarge`], [`Error::BadProtection`].
pub fn seal_once(path: &Path, owner: &Owner, by: &Protection, record: &[u8]) -> Result<Vec<u8>> {
    let seal = Seal::of(by);
    let root = root_key(path, &seal, by)?;
    let header = StateFileHeader { owner: owner.clone(), seal, file_id: random() };
    let (frame, _) = FrameChain::new(&header, &root).seal(path, &[record], random())?;
    let mut bytes = header.encode(&root);
    bytes.extend_from_slice(&frame);
    Ok(bytes)
}

/// Decrypts what [`seal_once`] made.
///
/// # Errors
/// Those of [`StateFile::open`] but for [`Error::InUse`].
pub fn open_once(path: &Path, owner: &Owner, by: &Protection, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let (header, start, root) = unlock(path, owner, by, bytes)?;
    let corrupt = |what| Error::Corrupt { path: path.into(), offset: start as u64, what };
    let frame = bytes.get(start..).unwrap_or_default();
    match FrameChain::new(&header, &root).open(frame, start).map_err(corrupt)? {
        Next::Frame { length, mut records } if length == frame.len() && records.len() == 1 => {
            records.pop().ok_or_else(|| corrupt("it is empty"))
        }
        _ => Err(corrupt("it was cut")),
    }
}

/// The header of a file, where its frames begin, and K.
fn unlock(
    path: &Path,
    owner: &Owner,
    by: &Protection,
    bytes: &[u8],
) -> Result<(StateFileHeader, usize, Secret<32>)> {
    let (header, start, check) = StateFileHeader::decode(path, bytes)?;
    if header.owner != *owner {
        let (found, expected) = (header.owner.describe(), owner.describe());
        return Err(Error::Foreign { path: path.into(), found, expected });
    }
    let root = root_key(path, &header.seal, by)?;
    if !quiver_crypto::ct_eq(&header.key_check(&root), &check) {
        return Err(Error::WrongKey { path: path.into() });
    }
    Ok((header, start, root))
}

/// Content of a file's frames.
struct ReadFrames {
    records: Records,
    acknowledged: usize,
    snapshot: usize,
}

fn read_frames(path: &Path, chain: &mut FrameChain, bytes: &[u8], start: usize) -> Result<ReadFrames> {
    let mut read = ReadFrames { records: Vec::new(), acknowledged: start, snapshot: 0 };
    loop {
        let rest = bytes.get(read.acknowledged..).unwrap_or_default();
        let corrupt = |what| Error::Corrupt { path: path.into(), offset: read.acknowledged as u64, what };
        match chain.open(rest, read.acknowledged).map_err(corrupt)? {
            Next::Frame { length, mut records } => {
                read.records.append(&mut records);
                read.acknowledged += length;
                if read.snapshot == 0 {
                    read.snapshot = read.acknowledged;
                }
            }
            // The snapshot was synced before the file got its name, so without it something else happened.
            Next::End | Next::Interrupted if read.snapshot == 0 => {
                return Err(corrupt("the snapshot is cut short"));
            }
            Next::End => return Ok(read),
            Next::Interrupted => {
                tracing::warn!(
                    path = %path.display(),
                    bytes = rest.len(),
                    "the last write was interrupted and never acknowledged; dropping it"
                );
                return Ok(read);
            }
        }
    }
}

fn write_snapshot<R: AsRef<[u8]>>(
    path: &Path,
    header: &StateFileHeader,
    root: &Secret<32>,
    records: &[R],
) -> Result<(File, FrameChain, u64)> {
    let mut bytes = header.encode(root);
    let (frame, chain) = FrameChain::new(header, root).seal(path, records, random())?;
    bytes.extend_from_slice(&frame);
    let file = private_file::swap_in(path, &bytes)?;
    Ok((file, chain, bytes.len() as u64))
}

/// K, from what was given and what the header says.
fn root_key(path: &Path, seal: &Seal, by: &Protection) -> Result<Secret<32>> {
    let wrong = |sealed_by, flag| {
        Err(Error::WrongProtection { path: path.into(), sealed_by, given: by.describe(), flag })
    };
    match (seal, by) {
        (Seal::Key, Protection::Key(key)) => Ok(key.clone()),
        (Seal::Passphrase(stretching), Protection::Passphrase(passphrase)) => {
            stretching.stretch(passphrase).ok_or_else(|| Error::BadProtection {
                origin: path.display().to_string(),
                reason: "the passphrase could not be stretched (not enough memory?)".into(),
            })
        }
        (Seal::Key, Protection::Passphrase(_)) => wrong("key file", "--key-file"),
        (Seal::Passphrase(_), Protection::Key(_)) => wrong("passphrase", "--passphrase-file"),
    }
}

impl Seal {
    /// The seal of a new file.
    fn of(by: &Protection) -> Self {
        match by {
            Protection::Passphrase(_) => Self::Passphrase(Stretching::recommended(random())),
            Protection::Key(_) => Self::Key,
        }
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    OsRng.fill_bytes(&mut bytes);
    bytes
}
