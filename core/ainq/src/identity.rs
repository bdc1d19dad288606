//! Identities (D), which take the place of certificates: H0 hashes them into the public key.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};

use crate::{Error, Name};

/// Seconds since 1970-01-01T00:00:00Z.
pub type UnixTime = u64;

/// Names a drone: the id of the token it was issued for, unique in the deployment.
///
/// A drone of a quorum can make itself several keys, each with a handle of its own, but all under one serial.
/// So whatever is held against a drone, or counted per drone, is held against its serial.
pub type Serial = [u8; 16];

/// Groups one identity may name.
pub const MAX_GROUPS: usize = 16;

/// Bytes the encoding of an identity may have: a leader with sixteen groups, all names at their longest.
pub const MAX_IDENTITY_LEN: usize = 16 + (4 + 64) + (1 + 4 + 64 + 2) + 4 + MAX_GROUPS * (4 + 64) + 8;

/// Room for an identity with short names and a group or two, in bytes.
const USUAL_LEN: usize = 128;

/// Role of a drone in a swarm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A drone that joins groups.
    Edge,
    /// A drone that leads one group.
    Leader {
        /// The group it may lead.
        group: Name,
        /// Ordinal of the leader among the group's. A term carries the ordinal of its leader, so two leaders
        /// never open the same term.
        ordinal: u16,
    },
}

/// D, the identity of a drone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Unique in the deployment: the id of the token it was issued for.
    pub serial: Serial,
    /// Name for people.
    pub name: Name,
    /// Role of the drone.
    pub role: Role,
    /// The groups it may join; at most [`MAX_GROUPS`], ascending, none twice.
    pub groups: Vec<Name>,
    /// End of its validity.
    pub not_after: UnixTime,
}

impl Identity {
    /// The canonical encoding, at most [`MAX_IDENTITY_LEN`] bytes for groups as they must be.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(USUAL_LEN);
        writer.fixed(&self.serial);
        write_grant(&mut writer, &self.name, &self.role, &self.groups, self.not_after);
        writer.finish()
    }

    /// Reads the canonical encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`] or [`Error::InvalidName`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let serial = reader.array()?;
        let (name, role, groups, not_after) = read_grant(&mut reader)?;
        reader.end()?;
        Ok(Self { serial, name, role, groups, not_after })
    }

    /// Checks that the groups are as they must be: ascending, none twice, at most [`MAX_GROUPS`].
    ///
    /// # Errors
    /// [`Error::TooLong`] or [`Error::Malformed`].
    pub fn check(&self) -> Result<(), Error> {
        check_groups(&self.groups)
    }
}

/// Name, role, groups and end, as an identity and a token both have them.
pub(crate) fn write_grant(
    writer: &mut Writer,
    name: &Name,
    role: &Role,
    groups: &[Name],
    not_after: UnixTime,
) {
    writer.lp(name.as_bytes());
    match role {
        Role::Edge => writer.u8(0),
        Role::Leader { group, ordinal } => writer.u8(1).lp(group.as_bytes()).u16(*ordinal),
    };
    writer.count(groups.len());
    for group in groups {
        writer.lp(group.as_bytes());
    }
    writer.u64(not_after);
}

/// Reads the encoding of [`write_grant`].
pub(crate) fn read_grant(reader: &mut Reader<'_>) -> Result<(Name, Role, Vec<Name>, UnixTime), Error> {
    let read_name = |reader: &mut Reader<'_>| Name::from_bytes(reader.lp(Name::MAX_LEN)?);
    let name = read_name(reader)?;
    let role = match reader.u8()? {
        0 => Role::Edge,
        1 => Role::Leader { group: read_name(reader)?, ordinal: reader.u16()? },
        _ => return Err(Error::Malformed("unknown role")),
    };
    let count = reader.count(MAX_GROUPS, 5)?;
    let groups = (0..count).map(|_| read_name(reader)).collect::<Result<Vec<_>, _>>()?;
    check_groups(&groups)?;
    Ok((name, role, groups, reader.u64()?))
}

pub(crate) fn check_groups(groups: &[Name]) -> Result<(), Error> {
    if groups.len() > MAX_GROUPS {
        return Err(Error::TooLong { what: "groups", limit: MAX_GROUPS });
    }
    if !groups.is_sorted_by(|a, b| a < b) {
        return Err(Error::Malformed("groups must ascend"));
    }
    Ok(())
}
