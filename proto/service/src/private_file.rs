//! Files and directories that hold secrets: created for their owner alone, refused when others may look, and
//! written so that a crash leaves either the old content or the new.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, FileType, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use zeroize::Zeroizing;

use crate::{Error, Result, armour, state_file};

/// Permission bits of group and others.
const NOT_THE_OWNER: u32 = 0o077;
/// Length of a relay's seed, and of a key that opens state files.
const SEED_LEN: usize = 32;
const KEY_LEN: usize = 32;
/// The longest file in whose place another is published.
const PUBLISHED_LIMIT: u64 = 1024 * 1024;
/// The group may read.
const GROUP_READS: u32 = 0o040;

/// Creates a directory for the owner alone (mode 0700), with its parents, unless it is there. One that is
/// there must neither belong to another user than root nor be writable by others: they could swap the files in it.
///
/// # Errors
/// [`Error::NotADirectory`], [`Error::OpenDirectory`], [`Error::OfAnother`], [`Error::Io`].
pub fn create_directory(path: &Path) -> Result<()> {
    if let Err(source) = DirBuilder::new().recursive(true).mode(0o700).create(path) {
        return Err(match found_in_place_of_a_directory(path) {
            Some(found) => Error::NotADirectory { path: path.into(), found },
            None => Error::io("create the directory", path, source),
        });
    }
    let metadata = fs::metadata(path).map_err(|source| Error::io("look at", path, source))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Error::OpenDirectory { path: path.into(), mode });
    }
    refuse_of_another(path, metadata.uid(), own_user())
}

/// Refuses what belongs to another user, who may change its content and its mode at any time. Root may anyway.
fn refuse_of_another(path: &Path, owner: u32, user: u32) -> Result<()> {
    if owner == user || owner == ROOT {
        return Ok(());
    }
    Err(Error::OfAnother { path: path.into(), owner, user })
}

/// Tells whether a file is there. A directory that this user may not look into is an error, and no place without the file.
///
/// # Errors
/// [`Error::Io`].
pub fn exists(path: &Path) -> Result<bool> {
    match fs::exists(path) {
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        found => found.map_err(|source| Error::io("look for", path, source)),
    }
}

/// Refuses a path at which there is something else than a directory, so that none can be made there.
///
/// # Errors
/// [`Error::NotADirectory`].
pub fn refuse_if_no_directory(path: &Path) -> Result<()> {
    match found_in_place_of_a_directory(path) {
        Some(found) => Err(Error::NotADirectory { path: path.into(), found }),
        None => Ok(()),
    }
}

fn found_in_place_of_a_directory(path: &Path) -> Option<&'static str> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(metadata) => Some(describe(metadata.file_type())),
        Err(_) => fs::symlink_metadata(path).ok().map(|_| LOOP),
    }
}

const LOOP: &str = "a symbolic link that leads nowhere";

/// The type of what a path names.
fn describe(found: FileType) -> &'static str {
    match found {
        _ if found.is_file() => "a file",
        _ if found.is_dir() => "a directory",
        _ if found.is_fifo() => "a named pipe",
        _ if found.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Refuses a file that group or others may read or write, or that belongs to another user than root.
///
/// # Errors
/// [`Error::TooOpen`], [`Error::OfAnother`], [`Error::Io`].
pub fn refuse_if_open_to_others(path: &Path, file: &File) -> Result<()> {
    let metadata = file.metadata().map_err(|source| Error::io("look at", path, source))?;
    let mode = metadata.permissions().mode() & 0o7777;
    let others = if is_handed_over(&metadata) { NOT_THE_OWNER & !GROUP_READS } else { NOT_THE_OWNER };
    if mode & others != 0 {
        return Err(Error::TooOpen { path: path.into(), mode, ours: metadata.uid() == own_user() });
    }
    // A pipe belongs to whose shell has made it: `sudo` leaves it its user.
    if metadata.is_file() { refuse_of_another(path, metadata.uid(), own_user()) } else { Ok(()) }
}

const ROOT: u32 = 0;

/// The user that this process runs as.
fn own_user() -> u32 {
    geteuid().as_raw()
}

/// Returns true if root handed the file over by its group, as Kubernetes does with secrets for processes that
/// are not root: the group is this process's access then, and no right of others.
fn is_handed_over(metadata: &fs::Metadata) -> bool {
    metadata.uid() == ROOT && own_user() != ROOT
}

/// Opens what is to be read: a file, or a pipe that the shell made for it (`<(…)`), which has no name of its
/// own. A path that names something else is refused before anything is waited for or said about permissions.
fn open(path: &Path) -> Result<File> {
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoFile { path: path.into() },
        _ if source.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            Error::NotAFile { path: path.into(), found: LOOP }
        }
        _ => Error::io("open", path, source),
    })?;
    let shell_pipe = || metadata.file_type().is_fifo() && path.canonicalize().is_err();
    if !metadata.is_file() && !shell_pipe() {
        return Err(Error::NotAFile { path: path.into(), found: describe(metadata.file_type()) });
    }
    File::open(path).map_err(|source| Error::io("open", path, source))
}

/// Opens a file of any length, or whatever else can be read from its beginning to its end.
///
/// # Errors
/// [`Error::NoFile`], [`Error::NotAFile`] for a directory or a socket, [`Error::Io`].
pub fn open_input(path: &Path) -> Result<File> {
    match fs::metadata(path).map(|metadata| metadata.file_type()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::NoFile { path: path.into() }),
        Ok(found) if found.is_dir() || found.is_socket() => {
            Err(Error::NotAFile { path: path.into(), found: describe(found) })
        }
        _ => File::open(path).map_err(|source| Error::io("open", path, source)),
    }
}

/// Reads a secret file of at most `limit` bytes that only its owner may read.
///
/// # Errors
/// [`Error::NoFile`], [`Error::NotAFile`], [`Error::TooOpen`], [`Error::TooLarge`], [`Error::Io`].
pub fn read(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>> {
    let file = open(path)?;
    refuse_if_open_to_others(path, &file)?;
    read_bounded(path, &file, limit)
}

/// The same, decoded; what does not decode is refused as that, whoever may read it.
///
/// # Errors
/// Those of [`read`] and of `decode`.
pub fn read_decoded<T>(path: &Path, limit: u64, decode: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let file = open(path)?;
    let decoded = decode(&read_bounded(path, &file, limit)?)?;
    refuse_if_open_to_others(path, &file)?;
    Ok(decoded)
}

/// Reads a file of at most `limit` bytes that anybody may read. One that holds a secret of Quiver's was given by
/// mistake: it is refused by what it is, and no error repeats what stands in it. `wanted`: what is expected there, in
/// words.
///
/// # Errors
/// [`Error::NoFile`], [`Error::NotAFile`], [`Error::TooLarge`], [`Error::Garbled`], [`Error::Io`].
pub fn read_public(path: &Path, limit: u64, wanted: &str) -> Result<PublicFile> {
    let file = open(path)?;
    let bytes = read_bounded(path, &file, limit).map_err(|error| of_another_kind(error, wanted))?;
    if let Some(found) = secret_kind(&bytes) {
        return Err(Error::Garbled { path: path.into(), what: format!("this is {found}, not {wanted}") });
    }
    let metadata = file.metadata().map_err(|source| Error::io("look at", path, source))?;
    let is_private = metadata.is_file() && metadata.permissions().mode() & NOT_THE_OWNER == 0;
    Ok(PublicFile { bytes, is_private })
}

/// The error about a file that was given by mistake, where it is longer than any that belongs there.
pub(crate) fn of_another_kind(error: Error, wanted: &str) -> Error {
    match error {
        Error::TooLarge { path, limit } => {
            Error::Garbled { path, what: format!("this is not {wanted}: it is longer than {limit} bytes") }
        }
        error => error,
    }
}

/// A file that was read as one that anybody may read.
pub struct PublicFile {
    bytes: Zeroizing<Vec<u8>>,
    /// True if its owner alone may read it.
    is_private: bool,
}

impl std::fmt::Debug for PublicFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublicFile").field("is_private", &self.is_private).finish_non_exhaustive()
    }
}

impl PublicFile {
    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Text of the file, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// Returns true if its owner alone may read it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// An error about its content, which may repeat some of that; without the repetition if the file is its owner's
    /// alone, because it may hold a secret then, such as a passphrase, that nothing else tells.
    #[must_use]
    pub fn explain(&self, error: impl std::fmt::Display) -> String {
        if self.is_private {
            return "it is not of the form expected; why is not told, because it is for its owner alone and may be a \
                    secret (chmod 644 it to be told, if it is none)"
                .into();
        }
        error.to_string()
    }

    /// An error of reading it as TOML: the place and the reason, which may name keys, but not the line that stands
    /// there.
    #[must_use]
    pub fn explain_toml(&self, error: &toml::de::Error) -> String {
        let Some(span) = error.span() else { return error.message().into() };
        let before = self.bytes.get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        format!("line {line}, column {column}: {}", error.message())
    }
}

/// Names the secret that a file of Quiver's holds, in words; `None` for any other file.
#[must_use]
pub fn secret_kind(bytes: &[u8]) -> Option<&'static str> {
    const IDENTITIES: [&str; 2] = ["AGE-SECRET-KEY-", "AGE-PLUGIN-QUIVER-"];
    if let Some(found) = armour::secret_kind(bytes) {
        return Some(found);
    }
    if bytes.starts_with(state_file::MAGIC) {
        return Some("a state file");
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return (bytes.len() == SEED_LEN).then_some("a relay's seed");
    };
    let digits = text.trim();
    if digits.len() == 2 * KEY_LEN && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some("a key of 64 hex digits");
    }
    let is_identity = |line: &str| IDENTITIES.iter().any(|identity| line.trim_start().starts_with(identity));
    text.lines().any(is_identity).then_some("a file of keys for age")
}

/// Reads a file of at most `limit` bytes that anybody may read, for a reader that tells kinds apart itself.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>> {
    read_bounded(path, &open(path)?, limit)
}

fn read_bounded(path: &Path, file: &File, limit: u64) -> Result<Zeroizing<Vec<u8>>> {
    let length = file.metadata().map_err(|source| Error::io("look at", path, source))?.len();
    // Room for all of it from the start: a growing vector would leave copies behind.
    let room = usize::try_from(length.min(limit)).unwrap_or_default().saturating_add(1);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    let bounded = &mut file.take(limit.saturating_add(1));
    bounded.read_to_end(&mut bytes).map_err(|source| Error::io("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { path: path.into(), limit });
    }
    Ok(bytes)
}

/// Writes a new file (mode 0600) and makes it durable. Never overwrites.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    write_new_with_mode(path, bytes, 0o600)
}

/// Writes a new file that anybody may read (mode 0644) and makes it durable. Never overwrites.
pub fn write_new_public(path: &Path, bytes: &[u8]) -> Result<()> {
    write_new_with_mode(path, bytes, 0o644)
}

fn write_new_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let mut file = create(path, mode)?;
    if let Err(error) = write_and_sync(path, &mut file, bytes) {
        // Half a token or key is of no use and would only block the next attempt.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    sync_directory_of(path)
}

/// Publishes a file that anybody may read (mode 0644) where a process or person looks for it, in the place of an
/// earlier one, of which `is_earlier` returns true. Nothing else is overwritten, and what is there already stays as it
/// is if it is the same.
///
/// # Errors
/// [`Error::Exists`] for any other file; [`Error::NotAFile`], [`Error::Io`].
pub fn publish(path: &Path, bytes: &[u8], is_earlier: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    if earlier(path, is_earlier)?.is_some_and(|there| there.as_slice() == bytes) {
        return Ok(());
    }
    replace_public(path, bytes)
}

/// Returns the file in whose place another may be published, if there is one.
///
/// # Errors
/// The errors of [`publish`].
pub fn earlier(path: &Path, is_earlier: impl FnOnce(&[u8]) -> bool) -> Result<Option<Zeroizing<Vec<u8>>>> {
    match read_bytes(path, PUBLISHED_LIMIT) {
        Err(Error::NoFile { .. }) => Ok(None),
        Err(Error::TooLarge { path, .. }) => Err(Error::Exists { path }),
        // An empty file is a name that somebody made for it.
        Ok(there) if there.is_empty() || is_earlier(&there) => Ok(Some(there)),
        Ok(_) => Err(Error::Exists { path: path.into() }),
        Err(error) => Err(error),
    }
}

/// Replaces a file (mode 0600) atomically: temporary file beside it, sync, rename, sync of the directory. The
/// caller holds a lock, so nobody else uses the temporary name.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    swap_in(path, bytes)?;
    sync_directory_of(path)
}

/// The same for a file that anybody may read (mode 0644).
pub fn replace_public(path: &Path, bytes: &[u8]) -> Result<()> {
    swap_in_with_mode(path, bytes, 0o644)?;
    sync_directory_of(path)
}

/// Replaces a file but for the last step: until [`sync_directory_of`] a crash may bring the old file back. If
/// this fails, the old file is in place. Returns the new file, open for reading and writing.
pub(crate) fn swap_in(path: &Path, bytes: &[u8]) -> Result<File> {
    swap_in_with_mode(path, bytes, 0o600)
}

fn swap_in_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<File> {
    let temporary = beside(path, ".new");
    // A leftover of a process that died in here; it was never the state.
    match fs::remove_file(&temporary) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove", &temporary, source));
        }
        _ => {}
    }
    let mut file = create(&temporary, mode)?;
    let written = write_and_sync(path, &mut file, bytes)
        .and_then(|()| fs::rename(&temporary, path).map_err(|source| Error::io("replace", path, source)));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(file)
}

fn create(path: &Path, mode: u32) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|source| Error::io("create", path, source))
}

/// Writes and syncs, blaming `path`, which may be the final name of a temporary file.
fn write_and_sync(path: &Path, file: &mut File, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|source| Error::io("write", path, source))?;
    file.sync_all().map_err(|source| Error::io("sync", path, source))
}

/// Makes the creation or renaming of a file durable: that is recorded in its directory.
pub(crate) fn sync_directory_of(path: &Path) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| Error::io("sync the directory", directory, source))
}

/// The path with something appended to the file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// An exclusive lock, held as long as this value (and so the process) lives. The kernel releases it even
/// after `kill -9`. It is a file of its own because an atomically replaced file is a new file each time.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that was forked and has not called exec yet has the file open, too: closing it would leave
        // the lock with that one.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Locks `path`, through the file `path.lock` beside it.
    pub fn acquire(path: &Path) -> Result<Self> {
        let lock = beside(path, ".lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(|source| Error::io("open", &lock, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", &lock, source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }

    #[test]
    fn place_that_cannot_be_looked_at_is_no_place_without_a_file() {
        let directory = tempfile::tempdir().expect("tempdir");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("write");
        assert!(exists(&file).expect("there"));
        for missing in [directory.path().join("none"), file.join("below")] {
            assert!(!exists(&missing).expect("not there"), "{}", missing.display());
        }
        // As root no permission is missing; the system refuses such a name to everybody.
        let refused = exists(&directory.path().join("x".repeat(300))).expect_err("refused").to_string();
        assert!(refused.starts_with("cannot look for "), "{refused}");
    }

    #[test]
    fn new_file_is_for_its_owner_alone_and_is_never_overwritten() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("secret");
        write_new(&path, b"one").expect("write");
        assert_eq!(fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
        assert!(matches!(write_new(&path, b"two"), Err(Error::Exists { .. })));
        assert_eq!(read(&path, 10).expect("read").as_slice(), b"one");
    }

    #[test]
    fn secrets_in_place_of_public_files_are_named_and_never_repeated() {
        let directory = tempfile::tempdir().expect("tempdir");
        let seed = [0xee; 32];
        let secrets: [(&str, &[u8]); 9] = [
            ("a token", b"QUIVER-TOKEN SUITE c0ffee 00"),
            ("the operator's secret key", b"QUIVER-OPERATOR-SECRET-KEY SUITE c0ffee 00"),
            ("the operator's secret key, encrypted", b"QUIVER-OPERATOR-ENCRYPTED-KEY SUITE c0ffee 00"),
            ("an attribute key", b"\n QUIVER-ATTRIBUTE-KEY SUITE c0ffee 00"),
            ("a state file", b"QUIVERST\0\x01c0ffee"),
            ("a relay's seed", &seed),
            ("a key of 64 hex digits", b"c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ffee0000\n"),
            ("a file of keys for age", b"# public key: age1c0ffee\nAGE-SECRET-KEY-1C0FFEE\n"),
            ("a file of keys for age", b"AGE-PLUGIN-QUIVER-1C0FFEE"),
        ];
        for (number, (name, content)) in secrets.into_iter().enumerate() {
            let path = directory.path().join(number.to_string());
            // Also one that others may read: it is a secret all the same.
            write_new_public(&path, content).expect("write");
            let told = read_public(&path, 1000, "a deployment file").expect_err("refused").to_string();
            assert!(told.ends_with(&format!("this is {name}, not a deployment file")), "{told}");
            assert!(!told.to_ascii_lowercase().contains("c0ffee"), "{told}");
        }
    }

    #[test]
    fn errors_of_a_file_that_is_its_owners_alone_repeat_nothing_of_it() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("passphrase");
        write_new(&path, b"correct = horse\n").expect("write");
        for (mode, is_told) in [(0o600, false), (0o400, false), (0o644, true)] {
            set_mode(&path, mode);
            let file = read_public(&path, 100, "a policy").expect("read");
            assert_eq!(file.explain("horse is not declared").contains("horse"), is_told);
            let error = toml::from_str::<toml::Table>(file.text().expect("text")).expect_err("no TOML");
            let told = file.explain_toml(&error);
            assert!(told.starts_with("line 1, column ") && !told.contains("horse"), "{told}");
        }
    }

    #[test]
    fn file_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("secret");
        write_new(&path, b"one").expect("write");
        for mode in [0o640, 0o604, 0o620, 0o644] {
            set_mode(&path, mode);
            assert!(
                matches!(read(&path, 10), Err(Error::TooOpen { mode: found, ours: true, .. }) if found == mode)
            );
        }
    }

    #[test]
    fn directory_that_others_may_write_is_refused() {
        let directory = tempfile::tempdir().expect("tempdir");
        set_mode(directory.path(), 0o777);
        let refused = create_directory(directory.path()).expect_err("refused");
        assert!(matches!(refused, Error::OpenDirectory { mode: 0o777, .. }), "{refused}");
        assert!(!refused.to_string().contains("chmod"), "{refused}");
        set_mode(directory.path(), 0o755);
        create_directory(directory.path()).expect("readable by others is fine");
    }

    #[test]
    fn file_or_directory_of_another_user_is_refused_whatever_its_mode() {
        let path = Path::new("data");
        for (owner, user, refused) in
            [(0, 0, false), (1000, 1000, false), (0, 1000, false), (1001, 1000, true), (1000, 0, true)]
        {
            assert_eq!(refuse_of_another(path, owner, user).is_err(), refused, "{owner} {user}");
        }
        let told = refuse_of_another(path, 1001, 1000).expect_err("refused").to_string();
        assert!(told.contains("data belongs to user 1001") && told.contains("chown 1000 data"), "{told}");
        if own_user() != ROOT {
            // Only root gives files away.
            return;
        }
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("secret");
        write_new(&path, b"one").expect("write");
        std::os::unix::fs::chown(&path, Some(12_345), None).expect("chown");
        assert!(matches!(read(&path, 10), Err(Error::OfAnother { owner: 12_345, .. })));
        assert!(matches!(read_decoded(&path, 10, |_| Ok(())), Err(Error::OfAnother { .. })));
        std::os::unix::fs::chown(directory.path(), Some(12_345), None).expect("chown");
        assert!(matches!(create_directory(directory.path()), Err(Error::OfAnother { .. })));
    }

    #[test]
    fn what_is_no_file_is_refused_at_once_as_what_it_is() {
        let directory = tempfile::tempdir().expect("tempdir");
        let within = |name: &str| directory.path().join(name);
        let _socket = UnixListener::bind(within("socket")).expect("bind");
        assert!(Command::new("mkfifo").arg(within("fifo")).status().expect("mkfifo").success());
        let (device, missing) = (PathBuf::from("/dev/zero"), within("missing"));
        for (path, told) in [
            (directory.path().to_path_buf(), "is a directory, not a file"),
            (within("socket"), "is a socket, not a file"),
            (within("fifo"), "is a named pipe, not a file"),
            (device, "is a device, not a file"),
            (missing, "there is no file"),
        ] {
            for refused in [read(&path, 10).map(drop), read_public(&path, 10, "a list").map(drop)] {
                let refused = refused.expect_err("refused").to_string();
                assert!(refused.contains(told) && !refused.contains("chmod"), "{refused}");
            }
        }
    }

    #[test]
    fn pipe_without_a_name_is_read_to_its_end() {
        let (reader, mut writer) = std::io::pipe().expect("pipe");
        writer.write_all(b"one").expect("write");
        drop(writer);
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert_eq!(read(&path, 10).expect("read").as_slice(), b"one");
    }

    #[test]
    fn directory_is_not_made_where_something_else_is() {
        let directory = tempfile::tempdir().expect("tempdir");
        let within = |name: &str| directory.path().join(name);
        fs::write(within("file"), "").expect("write");
        std::os::unix::fs::symlink(within("loop"), within("loop")).expect("symlink");
        for (name, told) in
            [("file", "is a file, not a directory"), ("loop", "leads nowhere, not a directory")]
        {
            let refused = create_directory(&within(name)).expect_err("refused").to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn what_does_not_decode_is_told_before_its_permissions() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("public");
        write_new_public(&path, b"one").expect("write");
        let wrong = |_: &[u8]| Err::<(), _>(Error::Config("another kind".into()));
        assert!(matches!(read_decoded(&path, 10, wrong), Err(Error::Config(_))));
        assert!(matches!(read_decoded(&path, 10, |_| Ok(())), Err(Error::TooOpen { .. })));
    }

    #[test]
    fn oversized_file_is_refused_without_reading_it_all() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("secret");
        write_new(&path, &[7; 11]).expect("write");
        assert!(matches!(read(&path, 10), Err(Error::TooLarge { limit: 10, .. })));
        assert_eq!(read(&path, 11).expect("read").len(), 11);
    }

    #[test]
    fn replacing_keeps_the_mode_and_ignores_what_a_dead_process_left() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("secret");
        write_new(&path, b"old").expect("write");
        fs::write(beside(&path, ".new"), b"half a st").expect("write");
        replace(&path, b"new").expect("replace");
        assert_eq!(read(&path, 10).expect("read").as_slice(), b"new");
        assert!(!beside(&path, ".new").exists());
    }

    #[test]
    fn what_is_published_takes_the_place_of_its_like_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("list");
        let publish = |bytes: &[u8]| publish(&path, bytes, |there| there.starts_with(b"list"));
        publish(b"list 1").expect("nothing is there");
        publish(b"list 2").expect("an earlier one is there");
        assert_eq!(fs::read(&path).expect("read"), b"list 2");
        fs::write(&path, "").expect("write");
        publish(b"list 3").expect("a name that was made for it");
        for other in [&b"a key"[..], &[0; 2 << 20]] {
            fs::write(&path, other).expect("write");
            assert!(matches!(publish(b"list 4"), Err(Error::Exists { .. })));
            assert_eq!(fs::read(&path).expect("read"), other, "it is as it was");
        }
        fs::remove_file(&path).expect("remove");
        fs::create_dir(&path).expect("mkdir");
        assert!(matches!(publish(b"list 5"), Err(Error::NotAFile { .. })));
    }

    #[test]
    fn second_lock_is_refused_until_the_first_is_gone() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("state");
        let first = Lock::acquire(&path).expect("lock");
        assert!(matches!(Lock::acquire(&path), Err(Error::InUse { .. })));
        drop(first);
        Lock::acquire(&path).expect("lock again");
    }
}
