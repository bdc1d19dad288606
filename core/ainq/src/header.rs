//! The signed header of an epoch.
//!
//! | protocol | meaning | code |
//! |---|---|---|
//! | (term, counter) | the epoch; ordered, never goes back | [`Epoch`] |
//! | t_g | until when the group key is valid | `valid_until` |
//! | V = l·P | the leader's public point, present iff somebody is added | `point` |
//! | D0 | H("quiver/1 core", core) | [`HeaderCore::digest`] |
//! | tag | PRF(K_g, "confirm", D0 ‖ entries_root) | `tag` |
//! | D | H("quiver/1 header", D0 ‖ entries_root ‖ tag), which the leader signs | [`Header::digest`] |

mod acceptance;
mod encoding;
mod short;

use core::str::FromStr;

use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Hasher};

pub use self::acceptance::VerifiedHeader;
pub(crate) use self::acceptance::check_leader;
use self::encoding::{USUAL_LEN, encode_start};
pub use self::short::{PrevStart, ShortHeader};
use crate::slots::{Slot, SlotSet};
use crate::{Deployment, DronePublicKey, Element, KemTerm, Name, Signature, Suite, UnixTime};

/// Number of an epoch: the term, opened once by one leader, and the counter within it, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}-{}.{counter}", self.round(), self.ordinal())]
pub struct Epoch {
    /// round · 2^16 + the leader's ordinal.
    pub term: u64,
    /// The number of the epoch in its term, 1 for the one that opens it.
    pub counter: u64,
}

impl Epoch {
    /// The highest round that anybody believes: 2^26 of the longest jumps from the first one, since no term
    /// follows one in the last round. Rounds have 48 bits; those above leave room to count on, and terms that
    /// are numbers with a sign elsewhere.
    pub const MAX_ROUND: u64 = 1 << 46;
    /// The highest accepted counter: no honest term comes near it, and no ratchet that starts at one wraps.
    pub const MAX_COUNTER: u64 = 1 << 48;

    /// Returns true if the round and the counter are within their bounds.
    #[must_use]
    pub const fn is_within_bounds(&self) -> bool {
        // §7.3, 1: a round of at most 2^46 and a counter of at most 2^48.
        self.round() <= Self::MAX_ROUND && self.counter <= Self::MAX_COUNTER
    }

    /// The term of a round and a leader's ordinal. A round has 48 bits; those above are cut off.
    #[must_use]
    pub const fn term_of(round: u64, ordinal: u16) -> u64 {
        // §9.1: term = round · 2^16 + ordinal.
        round << 16 | ordinal as u64
    }

    /// The round of terms.
    #[must_use]
    pub const fn round(&self) -> u64 {
        self.term >> 16
    }

    /// The ordinal of the leader that opened the term.
    #[must_use]
    pub const fn ordinal(&self) -> u16 {
        (self.term & 0xffff) as u16
    }
}

/// A group and its leader.
#[derive(Clone, Debug)]
pub struct GroupContext<S: Suite> {
    /// The deployment of its drones.
    pub deployment: Deployment<S>,
    /// The group's name.
    pub group: Name,
    /// The leader of the current term.
    pub leader: DronePublicKey<S>,
}

/// Kind of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochKind {
    /// Opening of a term: every member with an unused spare point is added afresh, nothing of earlier terms
    /// is kept.
    Open,
    /// Change of the group, or merely of its key.
    Rekey,
}

/// Re-key strategy of a term. Its name is `flat` or `tree`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Display)]
#[display(rename_all = "lowercase")]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum StrategyKind {
    /// The group key is wrapped for every member, as in the paper.
    #[default]
    Flat,
    /// A logical key hierarchy (RFC 2627): see [`tree`](crate::tree).
    Tree,
}

impl StrategyKind {
    /// Strategies, all of them.
    pub const ALL: [Self; 2] = [Self::Flat, Self::Tree];
}

impl FromStr for StrategyKind {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "flat" => Ok(Self::Flat),
            "tree" => Ok(Self::Tree),
            _ => Err("`flat` or `tree`"),
        }
    }
}

/// Fields of an epoch's header that do not depend on its key. Their hash D0 enters every wrap.
#[derive(Clone, Debug)]
pub struct HeaderCore<S: Suite> {
    /// The group.
    pub group: Name,
    /// The leader that signs.
    pub leader: DronePublicKey<S>,
    /// The epoch.
    pub epoch: Epoch,
    /// D of the epoch this one builds on; zero if there is none.
    pub prev: Digest,
    /// Fresh and random.
    pub nonce: [u8; 32],
    /// Time at which the leader made it.
    pub issued_at: UnixTime,
    /// t_g: from this moment on the key is void.
    pub valid_until: UnixTime,
    /// Re-key strategy of this term.
    pub strategy: StrategyKind,
    /// Kind of the epoch.
    pub kind: EpochKind,
    /// V, present iff a member is added.
    pub point: Option<Element<S>>,
    /// Height of the key tree; 0 for flat.
    pub height: u8,
    /// Slots of removed members. Empty when a term opens, and if there are `changes`.
    pub removed: SlotSet,
    /// Slots of added members. Empty when a term opens: then every member is new except `absent`; and if there
    /// are `changes`.
    pub added: SlotSet,
    /// Digest of the removed and added slots, in their place if an epoch of a tree changes more than
    /// [`MAX_LISTED`](crate::MAX_LISTED) runs of them: a member finds in its part of the wraps what is done to
    /// its own.
    pub changes: Option<Digest>,
    /// Members of the roster that a term's opening leaves without a key. Empty otherwise.
    pub absent: SlotSet,
    /// The roster's hash after the change.
    pub roster_hash: Digest,
    /// The newest revocation list the leader knew.
    pub revocation_number: u64,
    /// Parameter set and count of the second factor, if the deployment has one.
    pub kem: Option<KemTerm>,
}

impl<S: Suite> HeaderCore<S> {
    /// D0 = H("quiver/1 core", core).
    #[must_use]
    pub fn digest(&self, deployment: &Deployment<S>) -> Digest {
        // §7.1: D0 = H("quiver/1 core", core); the part up to the leader may be hashed already.
        let begun = self.leader.begun_core(deployment, &self.group);
        let begun = begun.unwrap_or_else(|| begin_core(deployment, &self.group, &self.leader));
        let mut rest = Writer::with_capacity(USUAL_LEN);
        self.write_rest(&mut rest);
        begun.fixed(&rest.finish()).finish()
    }

    /// Returns true if this epoch makes a new pairwise key with the holder of a slot, given that the slot is
    /// held. True also if it does not list its slots: then what is sealed with that key, which is of this
    /// epoch alone, shows it.
    #[must_use]
    pub fn adds(&self, slot: Slot) -> bool {
        // §9.1: an opening pairs with the whole roster but those it lists as absent.
        match self.kind {
            EpochKind::Open => !self.absent.contains(slot),
            EpochKind::Rekey => self.changes.is_some() || self.added.contains(slot),
        }
    }

    /// Returns true if it is certain that nobody is removed. Of slots that are not listed nothing is.
    #[must_use]
    pub fn removes_nobody(&self) -> bool {
        self.changes.is_none() && self.removed.is_empty()
    }
}

/// D0 as far as the leader, the same in all headers of that leader.
pub(crate) fn begin_core<S: Suite>(
    deployment: &Deployment<S>,
    group: &Name,
    leader: &DronePublicKey<S>,
) -> Hasher {
    // §7.1: the core begins with suite, deployment, group and leader.
    Hasher::new("quiver/1 core").fixed(&encode_start(deployment, group, leader).finish())
}

/// A received header; [`verify`](Self::verify) makes it a [`VerifiedHeader`].
#[derive(Clone, Debug)]
pub struct Header<S: Suite> {
    /// Fields of the header that do not depend on the epoch's key.
    pub core: HeaderCore<S>,
    /// Digest that binds the wraps of a tree; zero for flat.
    pub entries_root: Digest,
    /// PRF(K_g, "confirm", D0 ‖ entries_root).
    pub tag: [u8; 32],
    /// The leader's signature over D.
    pub signature: Signature<S>,
}

impl<S: Suite> Header<S> {
    /// D = H("quiver/1 header", D0 ‖ entries_root ‖ tag).
    #[must_use]
    pub fn digest(&self, deployment: &Deployment<S>) -> Digest {
        header_digest(&self.core.digest(deployment), &self.entries_root, &self.tag)
    }
}

pub(crate) fn header_digest(d0: &Digest, entries_root: &Digest, tag: &[u8; 32]) -> Digest {
    // §7.1: D = H("quiver/1 header", D0 ‖ entries_root ‖ tag).
    Hasher::new("quiver/1 header").fixed(d0).fixed(entries_root).fixed(tag).finish()
}

/// A member's part of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The member's slot.
    pub slot: Slot,
    /// Number of the spare point used, when a term opens.
    pub q: Option<u64>,
    /// The group key under the member's pad.
    pub wrap: [u8; 32],
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn names_of_strategies_are_read_back_and_others_refused() {
        for strategy in StrategyKind::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("forest".parse::<StrategyKind>().is_err());
    }
}
