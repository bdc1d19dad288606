//! The registry: a SQLite file with the records of a KGC, and tables for its operator's queries.
//!
//! It holds nothing secret in clear: sealed replies open only for the drone they were made for. WAL with
//! `synchronous=FULL`: a transaction that returned is on the disk. Several processes may use it at once (the
//! command line beside the running service); every change is one immediate transaction together with its line
//! in the audit table and the line's MAC, for which it takes the key in the encrypted file, or the KGC that runs
//! and holds it. A registry that is opened without is read only.
//!
//! Each group of tables has a type for its queries (`drones::DroneTable`), and one for changes within a transaction
//! (`drones::DroneWriter`).

mod attributes;
pub(crate) mod audit;
pub(crate) mod authentication;
mod drones;
pub(crate) mod master_key;
mod pinned;
pub(crate) mod policies;
mod revocation_lists;
mod revocation_requests;
mod schema;
#[cfg(test)]
mod tests;
mod tokens;

use std::cell::Cell;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::UnixTime;
use quiver_delivery::kgc::DeliveryRecord;
use quiver_enrolment::KgcRecord;
use quiver_machine::Either;
use quiver_service::private_file;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::attributes::{AttributeTable, AttributeWriter};
pub(crate) use self::attributes::{AuthorityRow, GrantRow, KeyRow};
pub(crate) use self::audit::{AuditLine, Checked, NextLine};
use self::audit::{AuditTable, AuditWriter};
#[cfg(test)]
pub(crate) use self::authentication::RegistryFinding;
pub(crate) use self::authentication::{
    AuthenticatedLine, Authenticator, KeptKey, Position, RegistryFindings, RegistryKey,
};
use self::authentication::{MacTable, MacWriter, Written};
pub(crate) use self::drones::EnrolledDrone;
use self::drones::{DroneTable, DroneWriter};
use self::master_key::MasterKeyTable;
use self::pinned::{PinnedTable, PinnedWriter};
use self::policies::{AdmissionTable, AdmissionWriter};
use self::revocation_lists::{RevocationListTable, RevocationListWriter};
use self::revocation_requests::{RevocationRequestTable, RevocationRequestWriter};
pub(crate) use self::tokens::Leads;
use self::tokens::{Ordinals, TokenTable, TokenWriter};
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
    /// Ordinals of the group that a leader's token was last issued for; `None` after a change that failed, because
    /// its tokens were not issued.
    ordinals: Option<Ordinals>,
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
            change.macs().authenticate_all("initialised", &hex::encode(fingerprint), "")
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
            change.macs().authenticate_all("registry upgraded", "", &detail)
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
        let (path, authenticator) = (self.path.as_path(), &self.authenticator);
        let ordinals = Cell::new(self.ordinals.take());
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| Error::registry(path, error))?;
        let change = RegistryTransaction { transaction, path, authenticator, at, ordinals };
        let result = body(&change)?;
        let RegistryTransaction { transaction, ordinals, .. } = change;
        transaction.commit().map_err(|error| Error::registry(path, error))?;
        self.ordinals = ordinals.into_inner();
        Ok(result)
    }

    /// Reads what is in the registry.
    pub(crate) fn reader(&self) -> RegistryReader<'_> {
        RegistryReader { db: &self.connection, path: &self.path }
    }

    /// Audit table.
    pub(crate) fn audit(&self) -> AuditTable<'_> {
        AuditTable(self.reader())
    }

    /// MACs of the audit table's lines.
    pub(crate) fn macs(&self) -> MacTable<'_> {
        MacTable(self.reader())
    }

    /// Enrolled drones.
    pub(crate) fn drones(&self) -> DroneTable<'_> {
        DroneTable(self.reader())
    }

    /// Enrolments in which this KGC took part as one of a quorum.
    pub(crate) fn pinned(&self) -> PinnedTable<'_> {
        PinnedTable(self.reader())
    }

    /// Tokens known here.
    pub(crate) fn tokens(&self) -> TokenTable<'_> {
        TokenTable(self.reader())
    }

    /// Attribute authorities, grants and keys issued.
    pub(crate) fn attributes(&self) -> AttributeTable<'_> {
        AttributeTable(self.reader())
    }

    /// Policies of admission that were signed.
    pub(crate) fn admission(&self) -> AdmissionTable<'_> {
        AdmissionTable(self.reader())
    }

    /// Versions of the master key of encryption to conditions.
    pub(crate) fn master_key(&self) -> MasterKeyTable<'_> {
        MasterKeyTable(self.reader())
    }

    /// Revocation lists that were signed.
    pub(crate) fn revocation_lists(&self) -> RevocationListTable<'_> {
        RevocationListTable(self.reader())
    }

    /// Revocations that the operator of a quorum's KGC requested.
    pub(crate) fn revocation_requests(&self) -> RevocationRequestTable<'_> {
        RevocationRequestTable(self.reader())
    }

    /// Makes a batch of a KGC node's records durable.
    pub(crate) fn persist(&mut self, records: &[ServingRecord], at: UnixTime) -> Result<()> {
        self.change(at, |change| records.iter().try_for_each(|record| change.record(record)))
    }

    /// Records from which a KGC's machine is rebuilt.
    pub(crate) fn records(&self) -> Result<Vec<KgcRecord>> {
        let mut records = self.drones().issued_records()?;
        records.extend(self.pinned().records()?);
        records.extend(self.revocation_lists().newest()?);
        let revoked = self.tokens().revoked()?;
        records.extend(revoked.into_iter().map(|token_id| KgcRecord::TokenRevoked { token_id }));
        Ok(records)
    }

    /// Adds a line to the audit table about something that is not in the registry.
    pub(crate) fn note(&mut self, at: UnixTime, action: &str, subject: &str, detail: &str) -> Result<()> {
        self.change(at, |change| change.audit(action, subject, detail, &[]))
    }
}

/// A registry that is read, as it is or with what a change in progress has written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegistryReader<'a> {
    db: &'a Connection,
    path: &'a Path,
}

impl RegistryReader<'_> {
    /// Reads from the registry; an error names it.
    pub(crate) fn read<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        body(self.db).map_err(|error| Error::registry(self.path, error))
    }

    /// Runs reads that see one state of the registry, whatever others write meanwhile.
    pub(crate) fn snapshot<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let transaction = self.db.unchecked_transaction();
        let _ended_at_return = transaction.map_err(|error| Error::registry(self.path, error))?;
        body()
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
    /// Ordinals that the [`Store`] knew, and knows again once the change is durable.
    ordinals: Cell<Option<Ordinals>>,
}

impl RegistryTransaction<'_> {
    /// The result of SQL; an error names the registry.
    pub(crate) fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| Error::registry(self.path, error))
    }

    /// Reads the registry with what this change has written.
    pub(crate) fn reader(&self) -> RegistryReader<'_> {
        RegistryReader { db: &self.transaction, path: self.path }
    }

    /// Adds a line to the audit table about rows that were just written, each by its table and number, which it
    /// authenticates.
    pub(crate) fn audit(&self, action: &str, subject: &str, detail: &str, rows: &[Written]) -> Result<()> {
        let line = AuditWriter(self).add_line(action, subject, detail)?;
        self.macs().authenticate(&line, rows)
    }

    /// The row that the last INSERT wrote, into this table.
    pub(crate) fn written(&self, table: &'static str) -> Written {
        Written { table, row: self.transaction.last_insert_rowid() }
    }

    /// Writes MACs of the audit table's lines.
    pub(crate) fn macs(&self) -> MacWriter<'_> {
        MacWriter(self)
    }

    /// Changes enrolled drones.
    pub(crate) fn drones(&self) -> DroneWriter<'_> {
        DroneWriter(self)
    }

    /// Changes enrolments in which this KGC takes part as one of a quorum.
    pub(crate) fn pinned(&self) -> PinnedWriter<'_> {
        PinnedWriter(self)
    }

    /// Changes tokens.
    pub(crate) fn tokens(&self) -> TokenWriter<'_> {
        TokenWriter(self)
    }

    /// Changes attribute authorities, grants and keys issued.
    pub(crate) fn attributes(&self) -> AttributeWriter<'_> {
        AttributeWriter(self)
    }

    /// Adds policies of admission.
    pub(crate) fn admission(&self) -> AdmissionWriter<'_> {
        AdmissionWriter(self)
    }

    /// Adds revocation lists.
    pub(crate) fn revocation_lists(&self) -> RevocationListWriter<'_> {
        RevocationListWriter(self)
    }

    /// Adds revocations that the operator of a quorum's KGC requests.
    pub(crate) fn revocation_requests(&self) -> RevocationRequestWriter<'_> {
        RevocationRequestWriter(self)
    }

    fn record(&self, record: &ServingRecord) -> Result<()> {
        match record {
            Either::Left(record) => self.record_of_kgc(record),
            Either::Right(DeliveryRecord::Keys(record)) => self.attributes().count_key(record),
            Either::Right(DeliveryRecord::Shares(record)) => record.write(self),
        }
    }

    fn record_of_kgc(&self, record: &KgcRecord) -> Result<()> {
        match record {
            KgcRecord::Issued { .. } => self.drones().issue(record),
            KgcRecord::Pinned { .. } => self.pinned().bind(record),
            KgcRecord::Contributed { token_id, handle, at } => {
                self.pinned().contribute(token_id, handle, *at)
            }
            KgcRecord::Enrolled { token_id, handle, at } => self.pinned().prove(token_id, handle, *at),
            KgcRecord::RevocationList { number, list } => self.revocation_lists().add(*number, list),
            KgcRecord::TokenRevoked { token_id } => self.tokens().revoke(token_id, ""),
        }
    }
}
