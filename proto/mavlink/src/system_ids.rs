//! The table of system ids: which member speaks as which of MAVLink's systems 1 to 255.

use alloc::{borrow::ToOwned as _, collections::BTreeMap, string::String, vec::Vec};

use crate::{endpoint::shown, error::MavlinkError, frame::Frame};

/// System ids that are granted at once: a ground station tells no more vehicles apart.
pub const MAX_SYSTEM_IDS: usize = 250;
/// Bytes of the longest encoded table, as it is spread.
pub const MAX_TABLE_LEN: usize = 13 + 3 + MAX_SYSTEM_IDS * (1 + 5 + 1 + MAX_NAME_LEN);

const MAX_NAME_LEN: usize = 64;
const TABLE_VERSION: u8 = 1;
const ISSUE_VERSION: u8 = 2;
/// Stands for a slot in the encoding of a name that has none.
const NO_SLOT: u32 = u32::MAX;

/// What a frame did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// No system id is granted to its sender.
    NoSystemId,
    /// It says that it comes from another system than the one granted to its sender.
    OtherSystem {
        /// The system id that is granted.
        granted: u8,
        /// The one in the frame.
        claimed: u8,
    },
}

/// Which member speaks as which system.
///
/// The leader grants by name. A slot is a member's place in the group: it changes when the member joins anew,
/// so it is set beside the name whenever the leader knows it, and the table is spread again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemIds {
    by_name: BTreeMap<String, Grant>,
}

/// The system id of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The system id, 1 to 255.
    pub system_id: u8,
    /// The member's slot, once it is one.
    pub slot: Option<u32>,
}

impl SystemIds {
    /// A table without grants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants a system id to a name, in place of the one it had.
    ///
    /// # Errors
    /// Not a name, not a system id, granted to another, or 250 are granted.
    pub fn grant(&mut self, name: &str, system_id: u32) -> Result<(), MavlinkError> {
        check_name(name)?;
        let id = u8::try_from(system_id).ok().filter(|id| *id != 0);
        let id = id.ok_or(MavlinkError::SystemIdRange(system_id))?;
        if let Some((holder, _)) = self.by_name.iter().find(|(_, grant)| grant.system_id == id)
            && holder != name
        {
            return Err(MavlinkError::SystemIdTaken { id, holder: holder.clone() });
        }
        let slot = self.by_name.get(name).and_then(|grant| grant.slot);
        if !self.by_name.contains_key(name) && self.by_name.len() >= MAX_SYSTEM_IDS {
            return Err(MavlinkError::SystemIdsFull(self.by_name.len()));
        }
        self.by_name.insert(name.to_owned(), Grant { system_id: id, slot });
        Ok(())
    }

    /// Grants a name the lowest system id that is free, or leaves it the one it has; returns it.
    ///
    /// # Errors
    /// Not a name, or none is free.
    pub fn grant_next(&mut self, name: &str) -> Result<u8, MavlinkError> {
        if let Some(grant) = self.by_name.get(name) {
            return Ok(grant.system_id);
        }
        let is_free = |id: &u8| self.by_name.values().all(|grant| grant.system_id != *id);
        let id = (1..=u8::MAX).find(is_free).ok_or(MavlinkError::SystemIdsFull(self.by_name.len()))?;
        self.grant(name, id.into())?;
        Ok(id)
    }

    /// Withdraws a name's system id; says whether it had one.
    pub fn withdraw(&mut self, name: &str) -> bool {
        self.by_name.remove(name).is_some()
    }

    /// Says which slot a name has, or that it has none; a slot has one name. Says whether the table changed.
    pub fn set_slot(&mut self, name: &str, slot: Option<u32>) -> bool {
        let slot = slot.filter(|slot| *slot != NO_SLOT);
        let mut changed = false;
        for (other, grant) in &mut self.by_name {
            let wanted = if other == name {
                slot
            } else if slot.is_some() && grant.slot == slot {
                None
            } else {
                continue;
            };
            changed |= grant.slot != wanted;
            grant.slot = wanted;
        }
        changed
    }

    /// The system id that the member in `slot` speaks as.
    #[must_use]
    pub fn of_slot(&self, slot: u32) -> Option<u8> {
        self.by_name.values().find(|grant| grant.slot == Some(slot)).map(|grant| grant.system_id)
    }

    /// The system id and slot of a name.
    #[must_use]
    pub fn of_name(&self, name: &str) -> Option<Grant> {
        self.by_name.get(name).copied()
    }

    /// Who speaks as a system.
    #[must_use]
    pub fn holder(&self, system_id: u8) -> Option<&str> {
        self.by_name.iter().find(|(_, grant)| grant.system_id == system_id).map(|(name, _)| name.as_str())
    }

    /// Every name and what is granted to it, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Grant)> {
        self.by_name.iter().map(|(name, grant)| (name.as_str(), *grant))
    }

    /// How many are granted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether none is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Checks that a frame of the member in `slot` comes from the system granted to it.
    ///
    /// # Errors
    /// Says what it did wrong. Such a frame is dropped and counted.
    pub fn check(&self, slot: u32, frame: Frame<'_>) -> Result<(), Misuse> {
        let granted = self.of_slot(slot).ok_or(Misuse::NoSystemId)?;
        let claimed = frame.system_id();
        if granted == claimed { Ok(()) } else { Err(Misuse::OtherSystem { granted, claimed }) }
    }

    /// The table as it is stored: version (1), number of grants (2), and for each grant by name: system id
    /// (1), slot (4), length (1) and bytes of the name; numbers are big-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.by_name.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::new();
        bytes.push(TABLE_VERSION);
        bytes.extend_from_slice(&count.to_be_bytes());
        for (name, grant) in &self.by_name {
            bytes.push(grant.system_id);
            bytes.extend_from_slice(&grant.slot.unwrap_or(NO_SLOT).to_be_bytes());
            bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    /// Reads a table that [`SystemIds::encode`] wrote.
    ///
    /// # Errors
    /// Other bytes; names out of order or twice; a system id or slot twice.
    pub fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        let (&[version, high, low], mut left) =
            bytes.split_first_chunk().ok_or(MavlinkError::Table("it is cut short"))?;
        if version != TABLE_VERSION {
            return Err(MavlinkError::Table("it is of another version"));
        }
        let count = usize::from(u16::from_be_bytes([high, low]));
        if count > MAX_SYSTEM_IDS {
            return Err(MavlinkError::Table("it grants too many"));
        }
        let mut table = Self::new();
        for _ in 0..count {
            left = table.decode_grant(left)?;
        }
        if left.is_empty() { Ok(table) } else { Err(MavlinkError::Table("bytes follow it")) }
    }

    fn decode_grant<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], MavlinkError> {
        let short = || MavlinkError::Table("it is cut short");
        let (&[id, s0, s1, s2, s3, len], left) = bytes.split_first_chunk().ok_or_else(short)?;
        let (name, left) = left.split_at_checked(usize::from(len)).ok_or_else(short)?;
        let name = core::str::from_utf8(name).map_err(|_| MavlinkError::Table("a name is not text"))?;
        if self.by_name.last_key_value().is_some_and(|(last, _)| last.as_str() >= name) {
            return Err(MavlinkError::Table("its names are out of order"));
        }
        self.grant(name, id.into())?;
        let slot = u32::from_be_bytes([s0, s1, s2, s3]);
        if slot != NO_SLOT {
            if self.of_slot(slot).is_some() {
                return Err(MavlinkError::Table("a slot has two names"));
            }
            self.set_slot(name, Some(slot));
        }
        Ok(left)
    }
}

/// A table as a leader spreads it: the later one of a term holds, in that term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedSystemIds {
    /// The leader's term.
    pub term: u64,
    /// How many other tables the leader spread before this one.
    pub number: u32,
    /// The table.
    pub table: SystemIds,
}

impl IssuedSystemIds {
    /// Version (1), term (8), number (4), all big-endian, and the table as [`SystemIds::encode`] writes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.push(ISSUE_VERSION);
        bytes.extend_from_slice(&self.term.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend(self.table.encode());
        bytes
    }

    /// Reads what [`IssuedSystemIds::encode`] wrote.
    ///
    /// # Errors
    /// Other bytes; those of [`SystemIds::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        let short = || MavlinkError::Table("it is cut short");
        let (version, left) = bytes.split_first().ok_or_else(short)?;
        if *version != ISSUE_VERSION {
            return Err(MavlinkError::Table("it is of another version"));
        }
        let (term, left) = left.split_first_chunk().ok_or_else(short)?;
        let (number, left) = left.split_first_chunk().ok_or_else(short)?;
        let (term, number) = (u64::from_be_bytes(*term), u32::from_be_bytes(*number));
        Ok(Self { term, number, table: SystemIds::decode(left)? })
    }
}

fn check_name(name: &str) -> Result<(), MavlinkError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(())
    } else {
        Err(MavlinkError::Name(shown(name)))
    }
}
