//! The registry: a SQLite file with the records of a KGC, and tables for its operator's queries.
//!
//! It holds nothing secret in clear: sealed replies open only for the drone they were made for. WAL with
//! `synchronous=FULL`: a transaction that returned is on the disk. Several processes may use it at once (the
//! command line beside the running service); every change is one immediate transaction together with its line
//! in the audit table and the line's MAC, for which it takes the key in the encrypted file, or the KGC that runs
//! and holds it. A registry that is opened without is read only.

mod attributes;
pub(crate) mod audit;
pub(crate) mod authentication;
mod drones;
pub(crate) mod master_key;
mod pinned;
pub(crate) mod policies;
mod revocation_requests;
mod schema;
#[cfg(test)]
mod tests;
mod tokens;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::UnixTime;
use quiver_delivery::kgc::DeliveryRecord;
use quiver_enrolment::KgcRecord;
use quiver_machine::Either;
use quiver_service::private_file;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

pub(crate) use self::attributes::{AuthorityRow, GrantRow, KeyRow};
pub(crate) use self::audit::{AuditLine, Checked, NextLine};
#[cfg(test)]
pub(crate) use self::authentication::Finding;
pub(crate) use self::authentication::{
    AuthenticatedLine, Authenticator, Findings, KeptKey, Position, RegistryKey,
};
pub(crate) use self::drones::EnrolledDrone;
pub(crate) use self::tokens::Leads;
use crate::error::{Error, Result};
use crate::kgc_machine::ServingRecord;

/// Time for which one process waits for another's transaction.
const BUSY: Duration = Duration::from_secs(5);

/// The open registry.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    authenticator: Authenticator,
    /// The ordinals of the group that a leader's token was last issued for.
    ordinals: Option<tokens::Ordinals>,
}

impl Store {
    /// Path of the registry of a data directory.
    pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
        data_dir.join("registry.sqlite")
    }

    /// Creates the registry of a deployment. Never overwrites one.
    pub(crate) fn create(
        data_dir: &Path,
        fingerprint: &[u8; 32],
        key: &RegistryKey,
        at: UnixTime,
    ) -> Result<Self> {
        let path = Self::path_in(data_dir);
        // SQLite gives its side files the mode of this one.
        private_file::write_new(&path, b"")?;
        let mut store = Self::connect(path)?.authenticated_by(Authenticator::Key(key.clone()));
        store.change(at, |change| {
            schema::create(&change.transaction, fingerprint)?;
            change.authenticate_all("initialised", &hex::encode(fingerprint), "")
        })?;
        Ok(store)
    }

    /// Opens the registry of a deployment to read it.
    ///
    /// # Errors
    /// [`Error::EarlierRegistry`] if it is of an earlier build, among others.
    pub(crate) fn open(data_dir: &Path, fingerprint: &[u8; 32]) -> Result<Self> {
        let (store, version) = Self::open_any(data_dir, fingerprint)?;
        if schema::is_older(version) {
            return Err(Error::EarlierRegistry { path: store.path });
        }
        Ok(store)
    }

    /// The same of this or an earlier build, for [`Store::upgrade`].
    pub(crate) fn open_of_any_build(data_dir: &Path, fingerprint: &[u8; 32]) -> Result<Self> {
        Ok(Self::open_any(data_dir, fingerprint)?.0)
    }

    /// The same with a source of MACs, so that it can be changed.
    #[must_use]
    pub(crate) fn authenticated_by(self, authenticator: Authenticator) -> Self {
        Self { authenticator, ..self }
    }

    /// Tells a registry of an earlier build.
    pub(crate) fn is_earlier(data_dir: &Path, fingerprint: &[u8; 32]) -> Result<bool> {
        Ok(schema::is_older(Self::open_any(data_dir, fingerprint)?.1))
    }

    fn open_any(data_dir: &Path, fingerprint: &[u8; 32]) -> Result<(Self, i32)> {
        let path = Self::path_in(data_dir);
        let file = std::fs::File::open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NoRegistry(data_dir.into()),
            _ => quiver_service::Error::io("open", &path, source).into(),
        })?;
        private_file::refuse_if_open_to_others(&path, &file)?;
        let store = Self::connect(path)?;
        schema::check(&store.connection, &store.path, fingerprint)?;
        let version = schema::version(&store.connection, &store.path)?;
        Ok((store, version))
    }

    /// Adds the tables that came with later versions, and authenticates all rows as they are, which the audit table
    /// then says: earlier builds did not authenticate them.
    pub(crate) fn upgrade(&mut self) -> Result<()> {
        self.change(quiver_service::clock::unix_now(), |change| {
            // Another process may have been faster.
            let version = schema::version(&change.transaction, change.path)?;
            if !schema::is_older(version) {
                return Ok(());
            }
            change.sql(schema::upgrade(&change.transaction, version))?;
            let detail = format!("from version {version}; all rows authenticated as they were found");
            change.authenticate_all("registry upgraded", "", &detail)
        })
    }

    fn connect(path: PathBuf) -> Result<Self> {
        let connection = Connection::open(&path).map_err(|error| Error::registry(&path, error))?;
        let set_up = || {
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "foreign_keys", "ON")
        };
        set_up().map_err(|error| Error::registry(&path, error))?;
        Ok(Self { connection, path, authenticator: Authenticator::Nobody, ordinals: None })
    }

    /// Runs one change: all of it is durable, or none of it happened.
    pub(crate) fn change<T>(
        &mut self,
        at: UnixTime,
        body: impl FnOnce(&RegistryTransaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let (path, authenticator) = (&self.path, &self.authenticator);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| Error::registry(path, error))?;
        let change = RegistryTransaction { transaction, path, authenticator, at };
        let result = body(&change)?;
        change.transaction.commit().map_err(|error| Error::registry(path, error))?;
        Ok(result)
    }

    /// Runs reads that see one state of the registry, whatever others write meanwhile.
    pub(crate) fn snapshot<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let transaction = self.connection.unchecked_transaction();
        let _ended_at_return = transaction.map_err(|error| Error::registry(&self.path, error))?;
        body()
    }

    /// Reads from the registry.
    pub(crate) fn read<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        body(&self.connection).map_err(|error| Error::registry(&self.path, error))
    }

    /// Makes a batch of a KGC node's records durable.
    pub(crate) fn persist(&mut self, records: &[ServingRecord], at: UnixTime) -> Result<()> {
        self.change(at, |change| records.iter().try_for_each(|record| change.record(record)))
    }

    /// Records from which a KGC's machine is rebuilt.
    pub(crate) fn records(&self) -> Result<Vec<KgcRecord>> {
        let mut records = self.issued_records()?;
        records.extend(self.pinned_records()?);
        records.extend(self.newest_revocation_list()?);
        let revoked = self.revoked_tokens()?;
        records.extend(revoked.into_iter().map(|token_id| KgcRecord::TokenRevoked { token_id }));
        Ok(records)
    }

    /// Adds a line to the audit table about something that is not in the registry.
    pub(crate) fn note(&mut self, at: UnixTime, action: &str, subject: &str, detail: &str) -> Result<()> {
        self.change(at, |change| change.audit(action, subject, detail, &[]))
    }

    pub(crate) fn newest_revocation_list(&self) -> Result<Option<KgcRecord>> {
        use rusqlite::OptionalExtension;
        let query = "SELECT number, list FROM revocation_list ORDER BY number DESC LIMIT 1";
        self.read(|db| {
            let read = |row: &rusqlite::Row<'_>| {
                Ok(KgcRecord::RevocationList { number: row.get(0)?, list: row.get(1)? })
            };
            db.query_row(query, [], read).optional()
        })
    }
}

/// Record of a delivery that can be left out, with tables of its own.
pub(crate) trait DeliveryRow {
    /// Writes it into the registry.
    ///
    /// # Errors
    /// The errors of the registry.
    fn write(&self, change: &RegistryTransaction<'_>) -> Result<()>;
}

impl DeliveryRow for Infallible {
    fn write(&self, _: &RegistryTransaction<'_>) -> Result<()> {
        match *self {}
    }
}

/// A change in progress.
pub(crate) struct RegistryTransaction<'a> {
    pub(crate) transaction: Transaction<'a>,
    path: &'a Path,
    authenticator: &'a Authenticator,
    /// Time of the change.
    pub(crate) at: UnixTime,
}

impl RegistryTransaction<'_> {
    /// The result of SQL; an error names the registry.
    pub(crate) fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| Error::registry(self.path, error))
    }

    fn record(&self, record: &ServingRecord) -> Result<()> {
        match record {
            Either::Left(record) => self.of_the_kgc(record),
            Either::Right(DeliveryRecord::Keys(record)) => self.attribute_key_issued(record),
            Either::Right(DeliveryRecord::Shares(record)) => record.write(self),
        }
    }

    fn of_the_kgc(&self, record: &KgcRecord) -> Result<()> {
        match record {
            KgcRecord::Issued { .. } => self.issued(record),
            KgcRecord::Pinned { .. } => self.pinned(record),
            KgcRecord::Contributed { token_id, handle, at } => self.contributed(token_id, handle, *at),
            KgcRecord::Enrolled { token_id, handle, at } => self.enrolled(token_id, handle, *at),
            KgcRecord::RevocationList { number, list } => {
                let insert = "INSERT OR IGNORE INTO revocation_list (number, list, at) VALUES (?1, ?2, ?3)";
                let new = self.sql(self.transaction.execute(insert, params![number, list, self.at]))? > 0;
                let row = new.then(|| self.written("revocation_list"));
                self.audit("revocation list signed", &number.to_string(), "", row.as_slice())
            }
            KgcRecord::TokenRevoked { token_id } => self.revoke_token(token_id, ""),
        }
    }
}
