//! The stored form of a membership. Without K_g and without a path: a drone that restarts is unsynced until
//! the next epoch reaches it, or a path message of the current one.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

use super::{GroupMembership, LeaderKeys};
use crate::pairwise::Ratchet;
use crate::slots::MAX_SLOTS;
use crate::{Epoch, Error, Handle, Name, StrategyKind, Suite};

/// Bytes of the public fields, without the names.
const PUBLIC_LEN: usize = 4 + 4 + 32 + 1 + 4 + 8 + 8 + 32;

impl<S: Suite> GroupMembership<S> {
    /// Encodes the membership for the edge's encrypted state: lp(suite) ‖ lp(group) ‖ leader's handle (32) ‖
    /// strategy (1) ‖ slot (4) ‖ term (8) ‖ counter (8) ‖ D (32) ‖ u (8) ‖ W\[u\] (32) ‖ A (32).
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let names = S::ID.len() + self.group.as_bytes().len();
        // Allocated once, so that no copy of the secrets stays behind in memory that was outgrown.
        let mut writer = Writer::with_capacity(names + PUBLIC_LEN + Ratchet::<S>::ENCODED_LEN);
        writer.lp(S::ID.as_bytes()).lp(self.group.as_bytes()).fixed(self.leader.as_bytes());
        writer
            .u8(self.strategy.code())
            .u32(self.slot)
            .u64(self.epoch.term)
            .u64(self.epoch.counter)
            .fixed(&self.digest);
        self.pair.ratchet.write(&mut writer);
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote. The membership has no group key.
    ///
    /// # Errors
    /// [`Error::WrongSuite`], [`Error::WrongSlot`] and whatever is wrong with the form.
    pub fn restore(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        if reader.lp(255)? != S::ID.as_bytes() {
            return Err(Error::WrongSuite);
        }
        let group = Name::from_bytes(reader.lp(Name::MAX_LEN)?)?;
        let leader = Handle(reader.array()?);
        let strategy = match reader.u8()? {
            // A tree of a version before. Its stored form has not changed; its term goes on no more.
            2 | 3 => StrategyKind::Tree,
            code => StrategyKind::from_code(code)?,
        };
        let slot = reader.u32()?;
        if slot >= MAX_SLOTS {
            return Err(Error::WrongSlot);
        }
        let epoch = Epoch { term: reader.u64()?, counter: reader.u64()? };
        let digest = reader.array()?;
        let ratchet = Ratchet::decode(reader.take(Ratchet::<S>::ENCODED_LEN)?)?;
        reader.end()?;
        // Under tree the chain is where the epoch is, under flat one step further.
        let ahead = u64::from(strategy == StrategyKind::Flat);
        if epoch.counter.checked_add(ahead) != Some(ratchet.u()) {
            return Err(Error::Malformed("membership"));
        }
        Ok(Self {
            group,
            leader,
            strategy,
            slot,
            epoch,
            digest,
            pair: LeaderKeys::new(ratchet),
            path: None,
            key: None,
            traffic: None,
        })
    }
}
