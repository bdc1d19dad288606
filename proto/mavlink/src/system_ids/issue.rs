//! Messages by which a leader spreads the table of system ids.
//!
//! | message | version, kind | for |
//! |---|---|---|
//! | narrow table | 2 | every change, and now and then; what ends read that know no wide ids |
//! | announcement | 3, 0 | tells in 30 bytes which table holds; whoever has another asks |
//! | difference | 3, 1 | a change of a table that is not narrow |
//! | part | 3, 2 | such a table, whole, in parts: when somebody asked, or too much changed |
//!
//! All but the first name the table by term, number, and digest: the first 16 bytes of SHA-256 over its
//! encoding. So what was put together from parts and differences is the leader's table, or is not used.

use alloc::{borrow::ToOwned as _, string::String, vec::Vec};

use quiver_crypto::sha256::{Digest as _, Sha256};

use super::{
    Grant, MAX_SYSTEM_IDS, MAX_TABLE_LEN, SHORT, SystemIds, decode_grant, decode_name, encode_grant,
    encode_name, take_u16, take_u32,
};
use crate::error::MavlinkError;

/// Version of an issued narrow table.
const ISSUE_VERSION: u8 = 2;
/// Version of all other messages.
const WIDE_ISSUE_VERSION: u8 = 3;
const KIND_ANNOUNCEMENT: u8 = 0;
const KIND_DIFFERENCE: u8 = 1;
const KIND_PART: u8 = 2;
/// Bytes of a table in each part but the last, which has at least one.
pub(super) const PART_LEN: usize = 48 * 1024;
/// Parts of the longest table.
pub(super) const MAX_PARTS: usize = MAX_TABLE_LEN.div_ceil(PART_LEN);
/// Bytes of the longest difference; a longer one is spread as the whole.
pub(super) const MAX_DIFFERENCE_LEN: usize = PART_LEN;

/// A table as a leader spreads it: the later one of a term holds, in that term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedSystemIds {
    /// The leader's term.
    pub term: u64,
    /// Grows with every table that a leader spreads.
    pub number: u32,
    /// The table.
    pub table: SystemIds,
}

impl IssuedSystemIds {
    /// Version (1), term (8), number (4), all big-endian, and the table as [`SystemIds::encode`] writes it: for
    /// a narrow one.
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
    /// Other bytes; those of [`SystemIds::decode`]; a table that is not narrow.
    pub fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        let (version, left) = bytes.split_first().ok_or(SHORT)?;
        if *version != ISSUE_VERSION {
            return Err(MavlinkError::Table("it is of another version"));
        }
        let (term, left) = left.split_first_chunk().ok_or(SHORT)?;
        let (number, left) = take_u32(left)?;
        let table = SystemIds::decode(left)?;
        if !table.is_narrow() {
            return Err(MavlinkError::Table("it is not of the version that its system ids need"));
        }
        Ok(Self { term: u64::from_be_bytes(*term), number, table })
    }
}

/// Digest that distinguishes a table from every other: the first 16 bytes of SHA-256 over its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDigest(pub [u8; 16]);

impl TableDigest {
    pub(super) fn of(encoded: &[u8]) -> Self {
        let mut digest = [0; 16];
        for (to, from) in digest.iter_mut().zip(Sha256::digest(encoded)) {
            *to = from;
        }
        Self(digest)
    }
}

/// Names a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableId {
    pub(super) term: u64,
    pub(super) number: u32,
    pub(super) digest: TableDigest,
}

/// A message about a table that is not narrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMessage {
    pub(super) id: TableId,
    pub(super) content: TableContent,
}

/// Content of such a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TableContent {
    /// Announcement that this table holds.
    Announcement,
    /// Difference that makes it out of another table of the term.
    Difference(TableDifference),
    /// A part of its encoding: which, of how many, and its bytes.
    Part(u16, u16, Vec<u8>),
}

/// Difference of one table from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableDifference {
    /// Number of the table that it changes.
    pub(super) base: u32,
    /// Names without a system id now, in order.
    pub(super) withdrawn: Vec<String>,
    /// Names with another system id or slot than before, in order.
    pub(super) granted: Vec<(String, Grant)>,
}

impl TableDifference {
    /// Difference that makes `to` out of `from`, whose number is `base`.
    pub(super) fn between(base: u32, from: &SystemIds, to: &SystemIds) -> Self {
        let withdrawn = from.iter().filter(|(name, _)| to.of_name(name).is_none());
        let granted = to.iter().filter(|(name, grant)| from.of_name(name) != Some(*grant));
        Self {
            base,
            withdrawn: withdrawn.map(|(name, _)| name.to_owned()).collect(),
            granted: granted.map(|(name, grant)| (name.to_owned(), grant)).collect(),
        }
    }

    /// The changed table.
    ///
    /// # Errors
    /// A system id or slot would have two names.
    pub(super) fn apply(&self, from: &SystemIds) -> Result<SystemIds, MavlinkError> {
        let mut table = from.clone();
        // First all that goes, because ids and slots may change hands.
        for name in self.withdrawn.iter().chain(self.granted.iter().map(|(name, _)| name)) {
            table.withdraw(name);
        }
        for (name, grant) in &self.granted {
            table.insert(name, *grant)?;
        }
        Ok(table)
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let count = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
        bytes.extend_from_slice(&self.base.to_be_bytes());
        bytes.extend_from_slice(&count(self.withdrawn.len()));
        for name in &self.withdrawn {
            encode_name(bytes, name);
        }
        bytes.extend_from_slice(&count(self.granted.len()));
        for (name, grant) in &self.granted {
            encode_grant(bytes, name, *grant, false);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        const DISORDER: MavlinkError = MavlinkError::Table("its names are out of order");
        let (base, left) = take_u32(bytes)?;
        let (count, mut left) = take_count(left)?;
        let mut difference = Self { base, ..Self::default() };
        for _ in 0..count {
            let (name, rest) = decode_name(left)?;
            if difference.withdrawn.last().is_some_and(|last| last.as_str() >= name) {
                return Err(DISORDER);
            }
            difference.withdrawn.push(name.to_owned());
            left = rest;
        }
        let (count, mut left) = take_count(left)?;
        for _ in 0..count {
            let (name, grant, rest) = decode_grant(left, false)?;
            if difference.granted.last().is_some_and(|(last, _)| last.as_str() >= name) {
                return Err(DISORDER);
            }
            difference.granted.push((name.to_owned(), grant));
            left = rest;
        }
        if left.is_empty() { Ok(difference) } else { Err(MavlinkError::Table("bytes follow it")) }
    }
}

fn take_count(bytes: &[u8]) -> Result<(usize, &[u8]), MavlinkError> {
    let (count, left) = take_u16(bytes)?;
    let count = usize::from(count);
    if count > MAX_SYSTEM_IDS { Err(MavlinkError::Table("it grants too many")) } else { Ok((count, left)) }
}

impl TableMessage {
    /// Version (1), kind (1), term (8), number (4), digest (16); then nothing, or the number of the changed table
    /// (4), how many names lose their system ids (2) and these, how many grants are new (2) and these as in a
    /// table, or a part's index (2), how many there are (2) and its bytes. Numbers are big-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = match &self.content {
            TableContent::Announcement => KIND_ANNOUNCEMENT,
            TableContent::Difference(_) => KIND_DIFFERENCE,
            TableContent::Part(..) => KIND_PART,
        };
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[WIDE_ISSUE_VERSION, kind]);
        bytes.extend_from_slice(&self.id.term.to_be_bytes());
        bytes.extend_from_slice(&self.id.number.to_be_bytes());
        bytes.extend_from_slice(&self.id.digest.0);
        match &self.content {
            TableContent::Announcement => {}
            TableContent::Difference(difference) => difference.encode(&mut bytes),
            TableContent::Part(index, parts, part) => {
                bytes.extend_from_slice(&index.to_be_bytes());
                bytes.extend_from_slice(&parts.to_be_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// Reads what [`TableMessage::encode`] wrote.
    ///
    /// # Errors
    /// Other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, MavlinkError> {
        let (&[version, kind], left) = bytes.split_first_chunk().ok_or(SHORT)?;
        if version != WIDE_ISSUE_VERSION {
            return Err(MavlinkError::Table("it is of another version"));
        }
        let (term, left) = left.split_first_chunk().ok_or(SHORT)?;
        let (number, left) = take_u32(left)?;
        let (digest, left) = left.split_first_chunk().ok_or(SHORT)?;
        let id = TableId { term: u64::from_be_bytes(*term), number, digest: TableDigest(*digest) };
        let content = match kind {
            KIND_ANNOUNCEMENT if left.is_empty() => TableContent::Announcement,
            KIND_DIFFERENCE => TableContent::Difference(TableDifference::decode(left)?),
            KIND_PART => {
                let (index, left) = take_u16(left)?;
                let (parts, part) = take_u16(left)?;
                check_part(index, parts, part)?;
                TableContent::Part(index, parts, part.to_owned())
            }
            _ => return Err(MavlinkError::Table("it is of no kind that is known")),
        };
        Ok(Self { id, content })
    }
}

/// Checks that all parts but the last are full, so that a table is divided in one way.
fn check_part(index: u16, parts: u16, part: &[u8]) -> Result<(), MavlinkError> {
    let is_last = u32::from(index) + 1 == u32::from(parts);
    let fits = if is_last { (1..=PART_LEN).contains(&part.len()) } else { part.len() == PART_LEN };
    if index < parts && usize::from(parts) <= MAX_PARTS && fits {
        Ok(())
    } else {
        Err(MavlinkError::Table("a part of it is none"))
    }
}
