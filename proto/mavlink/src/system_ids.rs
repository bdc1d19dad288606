//! The table of system ids: which member speaks as which of MAVLink's systems.
//!
//! System ids have 32 bits. Those above 255 are *wide*: frames carry them in a longer header, which programs
//! written before it drop. A table with ids up to 255 alone, 250 at most, is *narrow*, and is stored and spread
//! as it was before there were wide ids, so that older ends go on with it.

mod issue;
mod issuer;
mod receiver;

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

pub use self::{
    issue::{IssuedSystemIds, TableDigest, TableMessage},
    issuer::TableIssuer,
    receiver::{TableCounters, TableOutcome, TableReceiver},
};
use crate::{
    endpoint::shown,
    error::MavlinkError,
    frame::{Frame, MAX_NARROW_SYSTEM},
};

/// System ids that are granted at once.
pub const MAX_SYSTEM_IDS: usize = 20_000;
/// System ids of a narrow table: ground stations that know 8 bits tell no more vehicles apart.
pub const MAX_NARROW_SYSTEM_IDS: usize = 250;
/// Bytes of the longest encoded table.
pub const MAX_TABLE_LEN: usize = TABLE_HEAD + MAX_SYSTEM_IDS * (4 + 4 + 1 + MAX_NAME_LEN);

const MAX_NAME_LEN: usize = 64;
/// Version of a narrow table.
const TABLE_VERSION: u8 = 1;
/// Version of every other table. 2 is that of an issued narrow one.
const WIDE_TABLE_VERSION: u8 = 3;
/// Bytes of version and number of grants.
const TABLE_HEAD: usize = 3;
/// Stands for a slot in the encoding of a name that has none.
const NO_SLOT: u32 = u32::MAX;
/// Stands for the slot of a name that was evicted, in a table that is not narrow. In a narrow one it is so far below
/// [`NO_SLOT`] as its system id says, because ends that know no evictions take no slot twice.
const EVICTED: u32 = NO_SLOT - 1;

/// Fault of a frame's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// No system id is granted to its sender.
    NoSystemId,
    /// The frame says that it comes from another system than the one granted to its sender.
    OtherSystem {
        /// The system id that is granted.
        granted: u32,
        /// The one in the frame.
        claimed: u32,
    },
}

/// Table of the members by name and the systems that they speak as. A slot is a member's place in the group:
/// it changes when the member joins anew, so it is set beside the name whenever the leader knows it, and the
/// table is spread again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemIds {
    by_name: BTreeMap<Arc<str>, Grant>,
    /// The names again, to be found by system id and by slot.
    by_id: BTreeMap<u32, Arc<str>>,
    by_slot: BTreeMap<u32, Arc<str>>,
}

/// The system id of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The system id, not 0.
    pub system_id: u32,
    /// The member's slot, once it is one.
    pub slot: Option<u32>,
    /// True if it is no member because it was evicted.
    pub evicted: bool,
}

impl SystemIds {
    /// A table without grants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a system id as somebody wrote it.
    ///
    /// # Errors
    /// It is not a number from 1 to 4294967295.
    pub fn parse_id(text: &str) -> Result<u32, MavlinkError> {
        let number = text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.ok_or_else(|| MavlinkError::SystemId(shown(text)))?;
        u32::try_from(number).ok().filter(|id| *id != 0).ok_or(MavlinkError::SystemIdRange(number))
    }

    /// Grants a system id to a name, in place of the one it had.
    ///
    /// # Errors
    /// Not a name, not a system id, granted to another, or [`MAX_SYSTEM_IDS`] are granted.
    pub fn grant(&mut self, name: &str, system_id: u32) -> Result<(), MavlinkError> {
        check_name(name)?;
        if system_id == 0 {
            return Err(MavlinkError::SystemIdRange(0));
        }
        if let Some(holder) = self.by_id.get(&system_id).filter(|holder| ***holder != *name) {
            return Err(MavlinkError::SystemIdTaken { id: system_id, holder: (**holder).into() });
        }
        let (slot, evicted) = match self.by_name.get(name) {
            Some(before) => {
                self.by_id.remove(&before.system_id);
                (before.slot, before.evicted)
            }
            None if self.by_name.len() >= MAX_SYSTEM_IDS => {
                return Err(MavlinkError::SystemIdsFull(self.by_name.len()));
            }
            None => (None, false),
        };
        let shared =
            self.by_name.get_key_value(name).map_or_else(|| Arc::from(name), |(key, _)| Arc::clone(key));
        self.by_id.insert(system_id, Arc::clone(&shared));
        self.by_name.insert(shared, Grant { system_id, slot, evicted });
        Ok(())
    }

    /// Grants a name the lowest system id that is free, or leaves it the one it has; returns it.
    ///
    /// # Errors
    /// Not a name, or [`MAX_SYSTEM_IDS`] are granted.
    pub fn grant_next(&mut self, name: &str) -> Result<u32, MavlinkError> {
        if let Some(grant) = self.by_name.get(name) {
            return Ok(grant.system_id);
        }
        let taken = (1..).zip(self.by_id.keys()).take_while(|(number, id)| number == *id).count();
        let id = u32::try_from(taken + 1).map_err(|_| MavlinkError::SystemIdsFull(taken))?;
        self.grant(name, id)?;
        Ok(id)
    }

    /// Withdraws a name's system id; says whether it had one.
    pub fn withdraw(&mut self, name: &str) -> bool {
        let Some(grant) = self.by_name.remove(name) else { return false };
        self.by_id.remove(&grant.system_id);
        if let Some(slot) = grant.slot {
            self.by_slot.remove(&slot);
        }
        true
    }

    /// Says which slot a name has, or that it has none; a slot has one name. Says whether the table changed.
    pub fn set_slot(&mut self, name: &str, slot: Option<u32>) -> bool {
        let slot = slot.filter(|slot| *slot != NO_SLOT);
        let mut changed = false;
        if let Some(former) =
            slot.and_then(|slot| self.by_slot.get(&slot)).filter(|former| ***former != *name)
            && let Some(grant) = self.by_name.get_mut(former)
        {
            (grant.slot, changed) = (None, true);
        }
        if changed && let Some(slot) = slot {
            self.by_slot.remove(&slot);
        }
        let Some((shared, before)) = self.by_name.get_key_value(name) else { return changed };
        if before.slot == slot {
            return changed;
        }
        if let Some(before) = before.slot {
            self.by_slot.remove(&before);
        }
        if let Some(slot) = slot {
            self.by_slot.insert(slot, Arc::clone(shared));
        }
        if let Some(grant) = self.by_name.get_mut(name) {
            grant.slot = slot;
            // A member is none that was evicted.
            grant.evicted &= slot.is_none();
        }
        true
    }

    /// Says that a name without a slot was evicted, rather than that it left or is yet to join. Says whether the table changed.
    pub fn set_evicted(&mut self, name: &str) -> bool {
        let grant = self.by_name.get_mut(name).filter(|grant| grant.slot.is_none());
        grant.is_some_and(|grant| !core::mem::replace(&mut grant.evicted, true))
    }

    /// The system id that the member in `slot` speaks as.
    #[must_use]
    pub fn of_slot(&self, slot: u32) -> Option<u32> {
        self.by_slot.get(&slot).and_then(|name| self.by_name.get(name)).map(|grant| grant.system_id)
    }

    /// The system id and slot of a name.
    #[must_use]
    pub fn of_name(&self, name: &str) -> Option<Grant> {
        self.by_name.get(name).copied()
    }

    /// Name of the member that speaks as a system.
    #[must_use]
    pub fn holder(&self, system_id: u32) -> Option<&str> {
        self.by_id.get(&system_id).map(|name| &**name)
    }

    /// Every name and what is granted to it, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Grant)> {
        self.by_name.iter().map(|(name, grant)| (&**name, *grant))
    }

    /// Number of grants.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if there is no grant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Tells whether ends that know system ids of 8 bits alone can take the table.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        let greatest = self.by_id.last_key_value().map_or(0, |(id, _)| *id);
        self.by_name.len() <= MAX_NARROW_SYSTEM_IDS && greatest <= MAX_NARROW_SYSTEM
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
    /// (1), slot (4), length (1) and bytes of the name; numbers are big-endian. In place of a slot stands all ones for none, and
    /// for a name that was evicted so much less as its system id is (1 less in the other version). That of version 3 is for tables
    /// that are not narrow: its system ids have 4 bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let is_narrow = self.is_narrow();
        let count = u16::try_from(self.by_name.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::new();
        bytes.push(if is_narrow { TABLE_VERSION } else { WIDE_TABLE_VERSION });
        bytes.extend_from_slice(&count.to_be_bytes());
        for (name, grant) in self.iter() {
            encode_grant(&mut bytes, name, grant, is_narrow);
        }
        bytes
    }

    /// Reads a table that [`SystemIds::encode`] wrote.
    ///
    /// # Errors
    /// Other bytes; names out of order or twice; a system id or slot twice.
    pub fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        let (&[version, high, low], mut left) = bytes.split_first_chunk().ok_or(SHORT)?;
        let is_narrow = match version {
            TABLE_VERSION => true,
            WIDE_TABLE_VERSION => false,
            _ => return Err(MavlinkError::Table("it is of another version")),
        };
        let count = usize::from(u16::from_be_bytes([high, low]));
        if count > if is_narrow { MAX_NARROW_SYSTEM_IDS } else { MAX_SYSTEM_IDS } {
            return Err(MavlinkError::Table("it grants too many"));
        }
        let mut table = Self::new();
        for _ in 0..count {
            let (name, grant, rest) = decode_grant(left, is_narrow)?;
            if table.by_name.last_key_value().is_some_and(|(last, _)| **last >= *name) {
                return Err(MavlinkError::Table("its names are out of order"));
            }
            table.insert(name, grant)?;
            left = rest;
        }
        if !left.is_empty() {
            return Err(MavlinkError::Table("bytes follow it"));
        }
        if table.is_narrow() != is_narrow {
            return Err(MavlinkError::Table("it is not of the version that its system ids need"));
        }
        Ok(table)
    }

    /// Adds a grant with its slot, which nobody else may have.
    fn insert(&mut self, name: &str, grant: Grant) -> Result<(), MavlinkError> {
        self.grant(name, grant.system_id)?;
        if let Some(slot) = grant.slot {
            if self.by_slot.contains_key(&slot) {
                return Err(MavlinkError::Table("a slot has two names"));
            }
            self.set_slot(name, Some(slot));
        } else if grant.evicted {
            self.set_evicted(name);
        }
        Ok(())
    }
}

const SHORT: MavlinkError = MavlinkError::Table("it is cut short");

/// Appends a grant: system id (1 or 4), slot (4), length (1) and bytes of the name.
fn encode_grant(bytes: &mut Vec<u8>, name: &str, grant: Grant, is_narrow: bool) {
    let id = grant.system_id.to_be_bytes();
    bytes.extend_from_slice(id.get(if is_narrow { 3 } else { 0 }..).unwrap_or_default());
    let absent = if grant.evicted { evicted_slot(grant.system_id, is_narrow) } else { NO_SLOT };
    bytes.extend_from_slice(&grant.slot.unwrap_or(absent).to_be_bytes());
    encode_name(bytes, name);
}

/// Stands for the slot of a name with this system id that was evicted.
const fn evicted_slot(system_id: u32, is_narrow: bool) -> u32 {
    if is_narrow { NO_SLOT.saturating_sub(system_id) } else { EVICTED }
}

fn encode_name(bytes: &mut Vec<u8>, name: &str) {
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(name.as_bytes());
}

/// Reads what [`encode_grant`] wrote, and returns what follows.
fn decode_grant(bytes: &[u8], is_narrow: bool) -> Result<(&str, Grant, &[u8]), MavlinkError> {
    let (system_id, left) = if is_narrow {
        let (id, left) = bytes.split_first().ok_or(SHORT)?;
        (u32::from(*id), left)
    } else {
        take_u32(bytes)?
    };
    let (slot, left) = take_u32(left)?;
    let (name, left) = decode_name(left)?;
    let evicted = slot == evicted_slot(system_id, is_narrow);
    let slot = Some(slot).filter(|slot| *slot != NO_SLOT && !evicted);
    Ok((name, Grant { system_id, slot, evicted }, left))
}

fn decode_name(bytes: &[u8]) -> Result<(&str, &[u8]), MavlinkError> {
    let (len, left) = bytes.split_first().ok_or(SHORT)?;
    let (name, left) = left.split_at_checked(usize::from(*len)).ok_or(SHORT)?;
    let name = core::str::from_utf8(name).map_err(|_| MavlinkError::Table("a name is not text"))?;
    Ok((name, left))
}

fn take_u32(bytes: &[u8]) -> Result<(u32, &[u8]), MavlinkError> {
    let (number, left) = bytes.split_first_chunk().ok_or(SHORT)?;
    Ok((u32::from_be_bytes(*number), left))
}

fn take_u16(bytes: &[u8]) -> Result<(u16, &[u8]), MavlinkError> {
    let (number, left) = bytes.split_first_chunk().ok_or(SHORT)?;
    Ok((u16::from_be_bytes(*number), left))
}

fn check_name(name: &str) -> Result<(), MavlinkError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(())
    } else {
        Err(MavlinkError::Name(shown(name)))
    }
}
