//! Errors around a service. Every message names the file and what to do next; none contains a secret.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use quiver_arguments::quoted;

use crate::Exit;
use crate::control::with_article;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action tried, as a verb.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The reason given.
        source: io::Error,
    },
    /// The file system is full, or the user's quota on it or limit on a file's size is reached.
    #[error(
        "no space left to write {path}; free some on that file system: a service then goes on by itself, and a command is \
         given again (nothing acknowledged was lost)"
    )]
    DiskFull {
        /// The file being written.
        path: PathBuf,
    },
    /// There is nothing of this name.
    #[error("there is no file {path}")]
    NoFile {
        /// The path given.
        path: PathBuf,
    },
    /// A file was expected, and something else is there.
    #[error("{path} is {found}, not a file")]
    NotAFile {
        /// The path given.
        path: PathBuf,
        /// The type.
        found: &'static str,
    },
    /// A directory was expected, and something else is there.
    #[error("{path} is {found}, not a directory")]
    NotADirectory {
        /// The path given.
        path: PathBuf,
        /// The type.
        found: &'static str,
    },
    /// Others may read or write a file that holds secrets.
    #[error("{path} can be read or written by other users (mode {mode:04o}); {}", remedy(.path, *.ours))]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
        /// True if it belongs to the user that this process runs as.
        ours: bool,
    },
    /// Others may replace the files of a directory that is to hold secrets.
    #[error(
        "other users may write to the directory {path} (mode {mode:04o}); give one that is yours alone: one that does not exist is created so"
    )]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
    },
    /// A file or directory for secrets belongs to another user, who may change it.
    #[error(
        "{path} belongs to user {owner}, and this runs as user {user}: `chown {user} {}` if nobody else shall change it, or run \
         this as its owner", quoted(.path)
    )]
    OfAnother {
        /// The file or directory.
        path: PathBuf,
        /// Number of the user that owns it.
        owner: u32,
        /// Number of the user that this process runs as.
        user: u32,
    },
    /// Another process holds the lock.
    #[error("{path} is in use by another process; stop that one first, or give this one its own --data-dir")]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// A file is already there and must not be overwritten.
    #[error("{path} exists already and will not be overwritten; move it away or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A state file that has no room for what is to be appended.
    #[error(
        "{path} would become longer than the {limit} bytes that are read at a start, so nothing was appended to it; it has room again once a \
         snapshot has taken the place of its journal, which needs room for a second file in the same directory"
    )]
    JournalFull {
        /// The file.
        path: PathBuf,
        /// The bound in bytes.
        limit: u64,
    },
    /// A file larger than anything that belongs there.
    #[error("{path} is larger than {}, the most that a file of its kind may have", size(*.limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound in bytes.
        limit: u64,
    },
    /// The key derived from what was given does not fit the file.
    #[error(
        "wrong passphrase or key for {path}; give the one it was created with (--passphrase-file, QUIVER_PASSPHRASE or --key-file)"
    )]
    WrongKey {
        /// The state file.
        path: PathBuf,
    },
    /// A passphrase was given for a file sealed by a key file, or the other way round.
    #[error("{path} is protected by a {sealed_by}, but a {given} was given; use {flag}")]
    WrongProtection {
        /// The state file.
        path: PathBuf,
        /// The protection of the file.
        sealed_by: &'static str,
        /// The protection offered.
        given: &'static str,
        /// The flag that is right.
        flag: &'static str,
    },
    /// A state file of another role or deployment.
    #[error(
        "{path} holds the state of {found}, but this is {expected}; point --data-dir or --deployment elsewhere"
    )]
    Foreign {
        /// The state file.
        path: PathBuf,
        /// The owner found.
        found: String,
        /// The owner expected.
        expected: String,
    },
    /// Not a state file at all.
    #[error("{path} is not a Quiver state file; point --data-dir elsewhere or move the file away")]
    NotAStateFile {
        /// The file.
        path: PathBuf,
    },
    /// A state file of a later format.
    #[error("{path} has format version {version}, newer than this program reads; use a newer program")]
    NewerFormat {
        /// The state file.
        path: PathBuf,
        /// The version.
        version: u16,
    },
    /// Bytes that were acknowledged are no longer what they were.
    #[error(
        "{path} is damaged at byte {offset} ({what}); restore it from a backup, or move it away and enrol anew"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damage shows.
        offset: u64,
        /// The part that is damaged.
        what: &'static str,
    },
    /// A token or key file that does not decode.
    #[error("{path}: {what}")]
    Garbled {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// Nothing opens the state file: no flag, no environment variable, no terminal.
    #[error("no passphrase: give --passphrase-file FILE, --key-file FILE or the variable QUIVER_PASSPHRASE")]
    NoProtection,
    /// The passphrase or key cannot be used.
    #[error("{origin}: {reason}")]
    BadProtection {
        /// Where it came from.
        origin: String,
        /// The fault (never the secret).
        reason: String,
    },
    /// The configuration does not make sense.
    #[error("configuration: {0}")]
    Config(String),
    /// A log filter that does not parse.
    #[error("RUST_LOG: {0}")]
    LogFilter(String),
    /// All tokens of a directory are taken.
    #[error("no token is left in {directory}: issue more (`kgc token issue --count N --out {}`)", quoted(.directory))]
    NoTokenLeft {
        /// The directory.
        directory: PathBuf,
    },
    /// Nobody listens on the control socket.
    #[error(
        "no {role} is running with the data directory {directory} (nothing answers on {socket}); start it with `{role} {verb}`"
    )]
    NotRunning {
        /// Role of the service.
        role: String,
        /// The data directory.
        directory: PathBuf,
        /// The socket that was tried.
        socket: PathBuf,
        /// The subcommand that starts it.
        verb: &'static str,
    },
    /// The running service did not answer in time.
    #[error(
        "the running service on {place} did not answer within {seconds} s; it may hang: see its log, and start it anew"
    )]
    Hangs {
        /// The socket or address.
        place: String,
        /// Time that it had.
        seconds: u64,
    },
    /// The running service did not answer properly.
    #[error("the running service on {socket} did not answer: {reason}")]
    Control {
        /// The socket.
        socket: PathBuf,
        /// The failure.
        reason: String,
    },
    /// The address for metrics and health is another process's.
    #[error("the address {0} for --metrics is in use: stop the other process or choose another port")]
    MetricsInUse(SocketAddr),
    /// The address for metrics and health cannot be listened on.
    #[error("metrics: cannot listen on {address}: {}", listen_reason(.source))]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The reason given.
        source: io::Error,
    },
    /// Nothing answers on the address or socket for metrics and health.
    #[error("no {role} answers on {address}: {reason}; check that it runs, and {flag}")]
    NoAnswer {
        /// Role of the service.
        role: String,
        /// The address or socket that was asked.
        address: String,
        /// The failure.
        reason: String,
        /// The flag that names the address or the directory of the socket.
        flag: &'static str,
    },
    /// A service of another role answers on the address or socket for metrics and health.
    #[error("{} answers on {address}, and not {}: check {flag}", with_article(.found), with_article(.role))]
    OtherRole {
        /// Role of the service that was asked for.
        role: String,
        /// Role of the service that answers.
        found: String,
        /// The address or socket that was asked.
        address: String,
        /// The flag that names the address or the directory of the socket.
        flag: &'static str,
    },
    /// The service runs and does not do its work.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The running service understood and refused.
    #[error("{0}")]
    Refused(String),
}

/// Advice about a secret file that others may read.
fn remedy(path: &Path, ours: bool) -> String {
    if ours {
        return format!("if you still trust it: chmod 600 {}", quoted(path));
    }
    "it belongs to another user: give a copy that is yours alone".into()
}

/// Reason why nothing can listen on an address, with what to do.
fn listen_reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have the address: give --metrics one of its own, such as 127.0.0.1:9464"
                .into()
        }
        io::ErrorKind::PermissionDenied => {
            format!("{source}: ports below 1024 are root's; choose another port")
        }
        _ => source.to_string(),
    }
}

/// Bytes, for people.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

impl Error {
    /// Wraps an I/O error, telling a full disk apart from the rest.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::WriteZero => Self::DiskFull { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Io { action, path, source },
        }
    }

    /// The exit code a process ends with after this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Io { .. }
            | Self::DiskFull { .. }
            | Self::Control { .. }
            | Self::Metrics { .. }
            | Self::NoTokenLeft { .. }
            | Self::NotReady(_) => Exit::Failed,
            Self::Exists { .. }
            | Self::NoFile { .. }
            | Self::NotAFile { .. }
            | Self::NotADirectory { .. }
            | Self::Garbled { .. }
            | Self::Config(_)
            | Self::LogFilter(_) => Exit::Usage,
            Self::InUse { .. } | Self::MetricsInUse(_) => Exit::Busy,
            Self::TooOpen { .. }
            | Self::OpenDirectory { .. }
            | Self::OfAnother { .. }
            | Self::WrongKey { .. }
            | Self::WrongProtection { .. }
            | Self::NoProtection
            | Self::BadProtection { .. } => Exit::Locked,
            Self::Foreign { .. }
            | Self::NotAStateFile { .. }
            | Self::NewerFormat { .. }
            | Self::TooLarge { .. }
            | Self::JournalFull { .. }
            | Self::Corrupt { .. } => Exit::BadState,
            Self::NotRunning { .. } | Self::NoAnswer { .. } | Self::OtherRole { .. } => Exit::NotRunning,
            Self::Refused(_) => Exit::Refused,
            Self::Hangs { .. } => Exit::TimedOut,
        }
    }
}
