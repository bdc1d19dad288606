//! Canonical encoding of headers and entries (§7.1).

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};

use super::{Entry, Epoch, EpochKind, Header, HeaderCore, StrategyKind};
use crate::slots::{MAX_SLOTS, SlotSet};
use crate::{Deployment, DronePublicKey, Element, Error, KemTerm, Name, Signature, Suite};

/// Room for a header that names few slots, in bytes.
pub(super) const USUAL_LEN: usize = 512;

/// Start of a core's canonical bytes, the same in all headers of a leader: lp(suite) ‖ fingerprint ‖
/// lp(group) ‖ leader.
pub(super) fn encode_start<S: Suite>(
    deployment: &Deployment<S>,
    group: &Name,
    leader: &DronePublicKey<S>,
) -> Writer {
    let mut writer = Writer::with_capacity(USUAL_LEN);
    writer.lp(S::ID.as_bytes()).fixed(&deployment.fingerprint());
    writer.lp(group.as_bytes());
    leader.write(&mut writer);
    writer
}

impl EpochKind {
    /// Byte of the kind in the encoding.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Rekey => 2,
        }
    }

    /// The value of a byte in the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`] if there is none.
    pub const fn from_code(code: u8) -> Result<Self, Error> {
        match code {
            1 => Ok(Self::Open),
            2 => Ok(Self::Rekey),
            _ => Err(Error::Malformed("kind of epoch")),
        }
    }
}

impl StrategyKind {
    /// Byte of the strategy in the encoding.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Flat => 1,
            Self::Tree => 4,
        }
    }

    /// The value of a byte in the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`] if there is none.
    pub const fn from_code(code: u8) -> Result<Self, Error> {
        match code {
            1 => Ok(Self::Flat),
            // 2 was a tree each of whose keys was drawn afresh, 3 one whose terms opened without wraps.
            4 => Ok(Self::Tree),
            _ => Err(Error::Malformed("strategy")),
        }
    }
}

impl<S: Suite> HeaderCore<S> {
    /// Rest of a core's canonical bytes, after its leader: term ‖ counter ‖ prev ‖ nonce ‖ issued_at ‖ t_g ‖
    /// strategy ‖ kind ‖ 1 if there is a V, 2 more if there are changes, 4 more if there is a second factor ‖
    /// V ‖ changes ‖ parameter set ‖ g ‖ height ‖ removed ‖ added ‖ absent ‖ roster_hash ‖ list number.
    pub(super) fn write_rest(&self, writer: &mut Writer) {
        // §7.1: the core, in its order.
        writer.u64(self.epoch.term).u64(self.epoch.counter).fixed(&self.prev).fixed(&self.nonce);
        writer.u64(self.issued_at).u64(self.valid_until);
        let there = u8::from(self.point.is_some())
            | u8::from(self.changes.is_some()) << 1
            | u8::from(self.kem.is_some()) << 2;
        writer.u8(self.strategy.code()).u8(self.kind.code()).u8(there);
        if let Some(point) = &self.point {
            writer.fixed(point.as_bytes());
        }
        if let Some(changes) = &self.changes {
            writer.fixed(changes);
        }
        // §24.4: set (1) and g (8).
        if let Some(kem) = &self.kem {
            kem.write(writer);
        }
        writer.u8(self.height);
        for set in [&self.removed, &self.added, &self.absent] {
            set.encode(writer);
        }
        writer.fixed(&self.roster_hash).u64(self.revocation_number);
    }

    /// Reads the core off the front of what [`Header::encode`] wrote. Points of the leader's key are not decoded again
    /// if it is the expected one.
    ///
    /// # Errors
    /// Reads a header as [`Header::decode`] does. The fields are not checked against each other.
    pub fn decode_expecting(
        bytes: &[u8],
        deployment: &Deployment<S>,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, Error> {
        Self::read(&mut Reader::new(bytes), deployment, leader)
    }

    fn read(
        reader: &mut Reader<'_>,
        deployment: &Deployment<S>,
        expected: Option<&DronePublicKey<S>>,
    ) -> Result<Self, Error> {
        // §1.1: distinguishes another suite or deployment from a broken header.
        if reader.lp(255)? != S::ID.as_bytes() {
            return Err(Error::WrongSuite);
        }
        if reader.array::<32>()? != deployment.fingerprint() {
            return Err(Error::WrongDeployment);
        }
        let (there, kem);
        Ok(Self {
            group: Name::from_bytes(reader.lp(Name::MAX_LEN)?)?,
            leader: DronePublicKey::read_expecting(reader, expected)?,
            epoch: Epoch { term: reader.u64()?, counter: reader.u64()? },
            prev: reader.array()?,
            nonce: reader.array()?,
            issued_at: reader.u64()?,
            valid_until: reader.u64()?,
            strategy: StrategyKind::from_code(reader.u8()?)?,
            kind: EpochKind::from_code(reader.u8()?)?,
            point: {
                there = reader.u8()?;
                if there > 7 {
                    return Err(Error::Malformed("header"));
                }
                if there & 1 > 0 { Some(Element::decode(reader.take(S::POINT_LEN)?)?) } else { None }
            },
            changes: if there & 2 > 0 { Some(reader.array()?) } else { None },
            height: {
                kem = if there & 4 > 0 { Some(KemTerm::read(reader)?) } else { None };
                reader.u8()?
            },
            removed: SlotSet::decode(reader)?,
            added: SlotSet::decode(reader)?,
            absent: SlotSet::decode(reader)?,
            roster_hash: reader.array()?,
            revocation_number: reader.u64()?,
            kem,
        })
    }
}

impl<S: Suite> Header<S> {
    /// Canonical bytes: the core's, then entries_root (32), tag (32), signature.
    #[must_use]
    pub fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        let mut writer = encode_start(deployment, &self.core.group, &self.core.leader);
        self.core.write_rest(&mut writer);
        // §7.1: what follows the core: entries_root, tag, the signature over D.
        writer.fixed(&self.entries_root).fixed(&self.tag);
        self.signature.write(&mut writer);
        writer.finish()
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::WrongSuite`], [`Error::WrongDeployment`], and whatever is wrong with a
    /// point, a scalar or the form.
    pub fn decode(bytes: &[u8], deployment: &Deployment<S>) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let core = HeaderCore::read(&mut reader, deployment, None)?;
        let (entries_root, tag) = (reader.array()?, reader.array()?);
        // §7.3, 1: the shape is checked before the signature.
        core.check_shape(&entries_root)?;
        let signature = Signature::decode(reader.take(S::POINT_LEN + S::SCALAR_LEN)?)?;
        reader.end()?;
        Ok(Self { core, entries_root, tag, signature })
    }
}

impl Entry {
    /// Canonical bytes: slot (4), whether there is a q (1), q (8), wrap (32).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u32(self.slot).u8(u8::from(self.q.is_some()));
        // §9.1: q names the spare point that an opening used.
        if let Some(q) = self.q {
            writer.u64(q);
        }
        writer.fixed(&self.wrap);
        writer.finish()
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::WrongSlot`] for a slot no group has.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let slot = reader.u32()?;
        if slot >= MAX_SLOTS {
            return Err(Error::WrongSlot);
        }
        let q = match reader.u8()? {
            0 => None,
            1 => Some(reader.u64()?),
            _ => return Err(Error::Malformed("entry")),
        };
        let wrap = reader.array()?;
        reader.end()?;
        Ok(Self { slot, q, wrap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_tree_that_opens_by_wraps_and_no_former_one() {
        assert!(StrategyKind::ALL.into_iter().all(|kind| StrategyKind::from_code(kind.code()) == Ok(kind)));
        for code in [0, 2, 3, 5] {
            assert_eq!(StrategyKind::from_code(code), Err(Error::Malformed("strategy")));
        }
    }
}
