//! The master key of encryption to conditions as the registry has it, which every build can name.

use quiver_ainq::UnixTime;
use rusqlite::{OptionalExtension, Row};

use super::RegistryReader;
use crate::error::Result;

/// The master key as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IbeRow {
    /// Name of the authority.
    pub(crate) name: String,
    /// Version of the shares.
    pub(crate) version: u32,
    /// Fingerprint of the master public key.
    pub(crate) master: [u8; 32],
    /// The signed statement.
    pub(crate) statement: Vec<u8>,
    /// Time of the change.
    pub(crate) at: UnixTime,
}

/// Queries of the master key's versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MasterKeyTable<'a>(pub(super) RegistryReader<'a>);

impl MasterKeyTable<'_> {
    /// The newest version of the master key's shares.
    pub(crate) fn newest(&self) -> Result<Option<IbeRow>> {
        let query = "SELECT name, version, master, statement, at FROM ibe_authority
                     ORDER BY version DESC LIMIT 1";
        let read = |row: &Row<'_>| {
            Ok(IbeRow {
                name: row.get(0)?,
                version: row.get(1)?,
                master: row.get(2)?,
                statement: row.get(3)?,
                at: row.get(4)?,
            })
        };
        self.0.read(|db| db.query_row(query, [], read).optional())
    }
}
