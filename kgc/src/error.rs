//! Errors of a KGC: messages that say what to do, each with its exit code.

use std::path::{Path, PathBuf};

use quiver_delivery::attributes::IssuerError;
use quiver_enrolment::kgc::RestoreError;
use quiver_net::NetError;
use quiver_service::Exit;
use rusqlite::ErrorCode;

use crate::audit_head::Cut;
use crate::store::RegistryFindings;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Error of a KGC.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// Files, secrets, configuration.
    #[error(transparent)]
    Service(quiver_service::Error),
    /// The secret that opened the operator's key does not open the state of the KGC that is here.
    #[error(
        "{0}. It was taken for the operator's key as well: give the operator's own by --operator-passphrase-file or \
         --operator-key-file; or start `kgc serve`, which records the token without its passphrase or key"
    )]
    OtherThanOperators(quiver_service::Error),
    /// A state file of a KGC is damaged.
    #[error("{path} is damaged at byte {offset} ({what}); {}", remedy(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage shows.
        offset: u64,
        /// The part that is damaged.
        what: &'static str,
    },
    /// The data directory has no registry.
    #[error(
        "{0} is not the data directory of a KGC: it has no registry.sqlite; give --data-dir, or restore it from a backup"
    )]
    NoRegistry(PathBuf),
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Something does not hold cryptographically.
    #[error("{0}")]
    Protocol(#[from] quiver_ainq::Error),
    /// Standard output, or the runtime.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The registry's records are not what the machine wrote.
    #[error("registry: {0}; restore it from a backup")]
    Restore(#[from] RestoreError),
    /// SQLite refused.
    #[error("registry {path}: {source}")]
    Registry {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rusqlite::Error,
    },
    /// Another process holds the registry for too long.
    #[error("registry {path} is locked by another process; try again")]
    RegistryBusy {
        /// The file.
        path: PathBuf,
    },
    /// The registry's file is damaged or not SQLite.
    #[error("registry {path} is damaged ({source}); restore it from a backup")]
    RegistryDamaged {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The registry belongs to something else.
    #[error("{path} is {found}; point --data-dir elsewhere")]
    ForeignRegistry {
        /// The file.
        path: PathBuf,
        /// The owner found instead.
        found: String,
    },
    /// The audit table was tampered with or is damaged.
    #[error("the audit table is not intact: {0}")]
    Audit(String),
    /// The audit table does not have the line that was noted.
    #[error(
        "the audit table is not the one that {file} knows: {cut}. The registry was cut off, or is an older copy, or was copied \
         without registry.sqlite-wal: restore the whole data directory from one backup. If it was put back on purpose: stop \
         `kgc serve`, revoke the tokens that were open, and run `kgc audit --accept`"
    )]
    AuditCut {
        /// The difference.
        cut: Cut,
        /// The file in which it was noted.
        file: &'static str,
    },
    /// Something in the registry was not written by the holder of its key.
    #[error(
        "the registry is not what this KGC wrote: {0}. Somebody wrote into registry.sqlite, or it is another key's: restore \
         the whole data directory from one backup. Without one: stop `kgc serve`, see `kgc audit`, take out what is foreign, \
         and run `kgc audit --accept-rows`"
    )]
    ForeignRows(Box<RegistryFindings>),
    /// The registry and the file with its key are not of one time.
    #[error(
        "the registry is not the one that {file} authenticates: one of the two was put back from before the registry was \
         authenticated, or from elsewhere: restore the whole data directory from one backup. If it was put back on purpose: \
         stop `kgc serve`, see `kgc audit`, and run `kgc audit --accept-rows`"
    )]
    OtherRegistry {
        /// The file with the key.
        file: &'static str,
    },
    /// The registry is of an earlier build.
    #[error(
        "registry {path} is of an earlier build; start `kgc serve` of this one, which brings it up to date, or give `kgc audit` \
         the passphrase or key"
    )]
    EarlierRegistry {
        /// The file.
        path: PathBuf,
    },
    /// No deployment here yet.
    #[error("no deployment in {0}; run `kgc init` first or give --data-dir")]
    NotInitialised(PathBuf),
    /// A token's terms make no sense.
    #[error("{0}")]
    Terms(String),
    /// Two drones of one name.
    #[error("the name {name} is taken by {by}")]
    NameTaken {
        /// The name.
        name: String,
        /// The holder, and the remedy.
        by: String,
    },
    /// Two leaders of one group under one ordinal: both may open the same term, and neither is the higher
    /// one.
    #[error("ordinal {ordinal} of the group {group} is taken by {by}")]
    OrdinalTaken {
        /// The group.
        group: String,
        /// The ordinal.
        ordinal: u16,
        /// The holder, and the remedy.
        by: String,
    },
    /// No drone of that name or serial.
    #[error(
        "no drone `{which}` has enrolled; see `kgc drone list` (for a token not yet used: `kgc token revoke`)"
    )]
    NoSuchDrone {
        /// The name or id given.
        which: String,
    },
    /// No such token.
    #[error(
        "no open token of a drone `{which}` is recorded here; give the token's id (32 hex digits) instead"
    )]
    NoSuchToken {
        /// The name or id given.
        which: String,
    },
    /// More than one fits.
    #[error("more than one fits `{which}`; give the id instead of the name")]
    Ambiguous {
        /// The name or id given.
        which: String,
    },
    /// Already done.
    #[error("`{which}` is revoked already")]
    AlreadyRevoked {
        /// The name or id given.
        which: String,
    },
    /// The token did its work.
    #[error("drone {drone} has enrolled with this token; to put the drone out: kgc drone revoke {drone}")]
    TokenUsed {
        /// The drone that used it.
        drone: String,
    },
    /// A policy or a list of attributes that cannot be granted: the text with a caret under the place, and
    /// why.
    #[error("this cannot be granted:\n{0}")]
    Policy(String),
    /// A scheme refuses, or its keys do not hold.
    #[error("{0}")]
    Scheme(String),
    /// A schema, values or a policy over fields that cannot be certified or demanded.
    #[error("{what}: {reason}")]
    Fields {
        /// The thing.
        what: String,
        /// The fault, and its place.
        reason: String,
    },
    /// No drone for a grant.
    #[error(
        "no drone `{which}` has enrolled and no open token of that name is recorded here; see `kgc drone list` and `kgc token list`"
    )]
    NoGrantee {
        /// The name or id given.
        which: String,
    },
    /// A drone for a grant that is revoked.
    #[error(
        "drone `{which}` is revoked: it can be granted nothing; issue a token for another drone (or the same name) first: kgc token issue"
    )]
    GranteeRevoked {
        /// The name given.
        which: String,
    },
    /// Nothing to withdraw.
    #[error("nothing is granted to {drone} at {authority}; see `kgc abe list` and `kgc abke list`")]
    NothingGranted {
        /// The drone.
        drone: String,
        /// The authority.
        authority: String,
    },
    /// The registry knows an authority whose secrets are gone.
    #[error("{path} does not have the keys of attribute authority {authority}; restore it from a backup")]
    KeysMissing {
        /// The file.
        path: PathBuf,
        /// The authority.
        authority: String,
    },
    /// The master key is there already.
    #[error("the master key {0} was set up before; a deployment has one, for ever")]
    MasterKeyExists(String),
    /// There is no master key yet.
    #[error("no master key of encryption to conditions yet; run `kgc ibe setup` first")]
    NoMasterKey,
    /// The registry knows a master key whose share is gone.
    #[error(
        "{path} does not have the share of the master key that the registry knows; restore it from a backup"
    )]
    ShareMissing {
        /// The file.
        path: PathBuf,
    },
    /// The share is not the one of the statement.
    #[error("{0}; restore ibe.state and the registry from a backup")]
    Holding(String),
    /// The issuer of attribute keys cannot be set up with what is stored.
    #[error("{0}; restore authorities.state and the registry from a backup")]
    Issuer(#[from] IssuerError),
    /// The init file of a quorum, or what follows from it.
    #[error("quorum: {0}")]
    Quorum(String),
    /// Something is for a KGC of a quorum, and no feature of this build has quorums.
    #[error(
        "{0} is for a KGC that is one of several, and this kgc was built without the feature `quorum`: build it with that"
    )]
    BuiltWithoutQuorum(String),
    /// This KGC is none of a quorum.
    #[error(
        "{0} does not belong to a quorum; set it up with `kgc quorum key` and `kgc quorum init`, or give --data-dir"
    )]
    NoQuorum(PathBuf),
    /// The transport key comes first.
    #[error("no transport key in {0}; run `kgc quorum key` first: the other KGCs pin what it prints")]
    NoTransportKey(PathBuf),
    /// The quorum has no key yet.
    #[error(
        "the quorum has not made its key yet; start `kgc serve` on all its KGCs, and see `kgc quorum status`"
    )]
    NoKeyYet,
    /// A wish that is there already.
    #[error(
        "the revocation of `{which}` is already requested at this KGC; `kgc quorum status` says how many must request it"
    )]
    AlreadyRequested {
        /// The name or id given.
        which: String,
    },
    /// This KGC had no part in that drone's enrolment.
    #[error(
        "no drone `{which}` is known to this KGC of the quorum; give its serial (32 hex digits), which `kgc drone list` shows at a KGC that took part in its enrolment"
    )]
    UnknownToThisKgc {
        /// The name or id given.
        which: String,
    },
    /// The other KGCs did not respond in time.
    #[error("{0}")]
    TimedOut(String),
    /// The machine asked to bind a token twice: a bug, or a registry that was put back to an older state.
    #[error("a token that is bound to one key was to be bound to another")]
    TokenBoundTwice,
}

impl From<quiver_service::Error> for Error {
    fn from(error: quiver_service::Error) -> Self {
        match error {
            quiver_service::Error::Corrupt { path, offset, what } => Self::Damaged { path, offset, what },
            error => Self::Service(error),
        }
    }
}

/// Advice if a state file is damaged.
fn remedy(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("master.state") => {
            "restore it from a backup: the master secret is in no other place, and without it nobody can enrol or be revoked"
        }
        Some("quorum.state") => {
            "restore transport.state into an empty data directory, run `kgc quorum init` and `kgc serve` as before, then \
             `kgc quorum repair`"
        }
        Some("transport.state") => "restore it from its backup: it never changes",
        _ => "restore it from a backup",
    }
}

impl Error {
    /// Wraps an error of a scheme.
    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    pub(crate) fn scheme(error: impl ToString) -> Self {
        Self::Scheme(error.to_string())
    }

    /// Wraps an error of SQLite.
    pub(crate) fn registry(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::RegistryBusy { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::RegistryDamaged { path, source }
            }
            Some(ErrorCode::DiskFull) => quiver_service::Error::DiskFull { path }.into(),
            _ => Self::Registry { path, source },
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            // A file that was named and is not there.
            Self::Service(quiver_service::Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Exit::Usage
            }
            Self::Service(error) | Self::OtherThanOperators(error) => error.exit(),
            Self::Net(NetError::AddressInUse { .. } | NetError::DuplicateIdentity { .. })
            | Self::RegistryBusy { .. } => Exit::Busy,
            Self::RegistryDamaged { .. }
            | Self::ForeignRegistry { .. }
            | Self::Damaged { .. }
            | Self::KeysMissing { .. }
            | Self::ShareMissing { .. }
            | Self::AuditCut { .. }
            | Self::ForeignRows(_)
            | Self::OtherRegistry { .. }
            | Self::EarlierRegistry { .. }
            | Self::Holding(_)
            | Self::Issuer(_) => Exit::BadState,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Quorum(_)
            | Self::BuiltWithoutQuorum(_)
            | Self::NoQuorum(_)
            | Self::NoTransportKey(_)
            | Self::NotInitialised(_)
            | Self::Terms(_)
            | Self::Policy(_)
            | Self::Fields { .. }
            | Self::NoRegistry(_)
            | Self::NoMasterKey => Exit::Usage,
            Self::NoSuchDrone { .. }
            | Self::NoSuchToken { .. }
            | Self::NoGrantee { .. }
            | Self::UnknownToThisKgc { .. }
            | Self::Ambiguous { .. }
            | Self::NameTaken { .. }
            | Self::OrdinalTaken { .. }
            | Self::MasterKeyExists(_)
            | Self::AlreadyRevoked { .. }
            | Self::AlreadyRequested { .. }
            | Self::TokenUsed { .. }
            | Self::GranteeRevoked { .. }
            | Self::NothingGranted { .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}
