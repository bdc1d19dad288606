//! The roster of a group: public keys by slot, and evicted serials.
//!
//! A roster is public and replicated. Its hash stands in every header, so any leader with a roster of that
//! hash can take over the group. It is a Merkle root over the slots, bound to the set of evicted serials; a
//! change costs O(log N). Spare points are not part of it, nor are [anonymous](crate::anonymous) members:
//! they hold slots, but only in the term of the leader that admitted them.

mod merkle;
mod vacancies;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

use self::merkle::MerkleTree;
use self::vacancies::Vacancies;
use crate::slab::Slab;
use crate::slots::Slot;
use crate::{Anonymous, Deployment, DronePublicKey, Element, Error, Serial, Suite};

/// The members of a group, and the drones evicted from it.
#[derive(Clone, Debug)]
pub struct Roster<S: Suite> {
    members: Slab<RosterMember<S>>,
    anonymous: BTreeMap<Slot, Anonymous>,
    /// Each member's slot: a drone holds one, whatever keys it has.
    index: BTreeMap<Serial, Slot>,
    vacancies: Vacancies,
    evicted: BTreeSet<Serial>,
    /// The hash over them, unless it has to be computed anew.
    evictions: Option<Digest>,
    tree: MerkleTree,
}

/// A member and its derived values.
#[derive(Clone, derive_more::Debug)]
#[debug("{public:?}")]
pub(crate) struct RosterMember<S: Suite> {
    pub(crate) public: DronePublicKey<S>,
    /// Y, if anybody has needed it yet.
    pub(crate) implicit: Option<S::Point>,
}

impl<S: Suite> Default for Roster<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Suite> Roster<S> {
    /// A roster without members.
    #[must_use]
    pub fn new() -> Self {
        Self {
            members: Slab::new(),
            anonymous: BTreeMap::new(),
            index: BTreeMap::new(),
            vacancies: Vacancies::all(),
            evicted: BTreeSet::new(),
            evictions: None,
            tree: MerkleTree::new(S::ID),
        }
    }

    /// Puts a member into a slot.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] if the slot is taken or does not exist, or the drone already has one;
    /// [`Error::Revoked`] if it was evicted.
    pub fn insert(&mut self, slot: Slot, public: DronePublicKey<S>) -> Result<(), Error> {
        self.admit(slot, public, None)
    }

    /// Inserts a member as [`insert`](Self::insert) does, with Y if it is known.
    pub(crate) fn admit(
        &mut self,
        slot: Slot,
        mut public: DronePublicKey<S>,
        implicit: Option<S::Point>,
    ) -> Result<(), Error> {
        let serial = public.identity.serial;
        // §6.2: no evicted drone joins.
        if self.evicted.contains(&serial) {
            return Err(Error::Revoked);
        }
        // §2.2: one drone, one slot, whatever keys it has.
        if self.index.contains_key(&serial) || !self.vacancies.take(slot) {
            return Err(Error::WrongSlot);
        }
        // §2.2: the leaves of the roster hash go by the key.
        self.tree.set(slot, Some(hash_leaf(slot, &public)));
        self.index.insert(serial, slot);
        if implicit.is_some() {
            public.forget_points();
        }
        self.members.set(slot, RosterMember { public, implicit });
        Ok(())
    }

    /// Assigns a slot to an anonymous member.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] if the slot is taken or does not exist.
    pub fn admit_anonymous(&mut self, slot: Slot, member: Anonymous) -> Result<(), Error> {
        if !self.vacancies.take(slot) {
            return Err(Error::WrongSlot);
        }
        // §6.5: anonymous members are in no roster hash, so the Merkle tree stays as it is.
        self.anonymous.insert(slot, member);
        Ok(())
    }

    /// The anonymous member in a slot.
    #[must_use]
    pub fn anonymous(&self, slot: Slot) -> Option<&Anonymous> {
        self.anonymous.get(&slot)
    }

    /// The anonymous members, by ascending slot.
    pub fn anonymous_members(&self) -> impl Iterator<Item = (Slot, &Anonymous)> {
        self.anonymous.iter().map(|(slot, member)| (*slot, member))
    }

    /// Frees the slots of all who have no name: as when a term ends.
    pub fn forget_anonymous(&mut self) {
        for slot in core::mem::take(&mut self.anonymous).into_keys() {
            self.vacancies.release(slot);
        }
    }

    /// Returns true if a slot is held, by name or anonymously.
    #[must_use]
    pub fn holds(&self, slot: Slot) -> bool {
        self.members.get(slot).is_some() || self.anonymous.contains_key(&slot)
    }

    /// Frees a slot, whichever drone held it.
    pub(crate) fn vacate(&mut self, slot: Slot) {
        if self.anonymous.remove(&slot).is_some() {
            self.vacancies.release(slot);
        } else {
            self.remove(slot);
        }
    }

    /// Frees a slot of a named member and returns the member.
    pub fn remove(&mut self, slot: Slot) -> Option<DronePublicKey<S>> {
        let member = self.members.take(slot)?;
        self.index.remove(&member.public.identity.serial);
        self.vacancies.release(slot);
        self.tree.set(slot, None);
        Some(member.public)
    }

    /// Bars a drone for good and frees its slot, which is given back if it had one.
    pub fn evict(&mut self, serial: Serial) -> Option<Slot> {
        // §12.2: the serial stays in the eviction set.
        if self.evicted.insert(serial) {
            self.evictions = None;
        }
        let slot = self.find(&serial)?;
        self.remove(slot);
        Some(slot)
    }

    /// Bars several drones; the set is hashed once.
    pub(crate) fn evict_all(&mut self, serials: impl IntoIterator<Item = Serial>) {
        for serial in serials {
            self.evict(serial);
        }
        self.hash_evictions();
    }

    /// Computes the hash over who was evicted, unless it is there.
    fn hash_evictions(&mut self) {
        self.evictions.get_or_insert_with(|| hash_evictions::<S>(&self.evicted));
    }

    /// The lowest free slot, or `None` if all [`MAX_SLOTS`](crate::MAX_SLOTS) are taken.
    #[must_use]
    pub fn vacant(&self) -> Option<Slot> {
        self.vacancies(&BTreeSet::new()).next()
    }

    /// The free slots in ascending order, those of `freed` counted as free.
    pub(crate) fn vacancies<'a>(&'a self, freed: &'a BTreeSet<Slot>) -> impl Iterator<Item = Slot> + 'a {
        self.vacancies.with(freed)
    }

    /// The highest slot that is held.
    #[must_use]
    pub fn highest(&self) -> Option<Slot> {
        self.vacancies.highest_taken()
    }

    /// The highest slot that is held by name: the hash covers up to here.
    fn highest_named(&self) -> Option<Slot> {
        if self.anonymous.is_empty() {
            return self.highest();
        }
        self.members.iter().map(|(slot, _)| slot).last()
    }

    /// The named member in a slot.
    #[must_use]
    pub fn get(&self, slot: Slot) -> Option<&DronePublicKey<S>> {
        self.members.get(slot).map(|member| &member.public)
    }

    /// The slot of a drone.
    #[must_use]
    pub fn find(&self, serial: &Serial) -> Option<Slot> {
        self.index.get(serial).copied()
    }

    /// The members with a name, by ascending slot.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &DronePublicKey<S>)> {
        self.members.iter().map(|(slot, member)| (slot, &member.public))
    }

    /// The members from this slot on, by ascending slot.
    pub fn iter_from(&self, first: Slot) -> impl Iterator<Item = (Slot, &DronePublicKey<S>)> {
        self.members.iter_from(first).map(|(slot, member)| (slot, &member.public))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (Slot, &RosterMember<S>)> {
        self.members.iter()
    }

    /// Number of members, named and anonymous.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len() + self.anonymous.len()
    }

    /// Returns true if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the drone was evicted from this group.
    #[must_use]
    pub fn is_evicted(&self, serial: &Serial) -> bool {
        self.evicted.contains(serial)
    }

    /// The drones evicted from this group, ascending.
    pub fn evicted(&self) -> impl Iterator<Item = &Serial> {
        self.evicted.iter()
    }

    /// A member's implicit public key Y, if it was computed before; [`DronePublicKey::implicit`] takes three
    /// times as long.
    #[must_use]
    pub fn implicit(&self, slot: Slot) -> Option<Element<S>> {
        self.members.get(slot)?.implicit.and_then(|point| Element::from_point(point).ok())
    }

    /// Computes every member's implicit public key Y that was not computed yet: one multiplication each, once
    /// per drone.
    ///
    /// A leader that opens a term needs them. A member whose Y is the identity is taken out of the roster;
    /// its slot is returned.
    pub fn prepare(&mut self, deployment: &Deployment<S>) -> Vec<Slot> {
        let mut impossible = Vec::new();
        for (slot, member) in self.members.iter_mut() {
            if member.implicit.is_none() {
                // §1.2: Y = R + H0·P_pub + P.
                match member.public.implicit_point(deployment) {
                    Ok(implicit) => {
                        member.implicit = Some(implicit);
                        member.public.forget_points();
                    }
                    Err(_) => impossible.push(slot),
                }
            }
        }
        impossible.iter().for_each(|slot| drop(self.remove(*slot)));
        self.hash_evictions();
        impossible
    }

    /// The hash that headers carry: over slots and members that have a name, and over the set of evicted
    /// serials.
    #[must_use]
    pub fn hash(&self) -> Digest {
        // §14: the roster hash covers height, Merkle root and evictions.
        let height = self.highest_named().map_or(0, |slot| u32::BITS - slot.leading_zeros());
        let evictions = self.evictions.unwrap_or_else(|| hash_evictions::<S>(&self.evicted));
        // A slot has 20 bits.
        let height = u8::try_from(height).unwrap_or(u8::MAX);
        Hasher::new("quiver/1 roster")
            .lp(S::ID.as_bytes())
            .u8(height)
            .fixed(&self.tree.root(height))
            .fixed(&evictions)
            .finish()
    }
}

fn hash_leaf<S: Suite>(slot: Slot, public: &DronePublicKey<S>) -> Digest {
    // encode() is lp(D) ‖ R ‖ P.
    Hasher::new("quiver/1 roster leaf").lp(S::ID.as_bytes()).u32(slot).fixed(&public.encode()).finish()
}

fn hash_evictions<S: Suite>(evicted: &BTreeSet<Serial>) -> Digest {
    // §2.2: evictions go by the serial.
    let hasher = Hasher::new("quiver/1 roster evictions").lp(S::ID.as_bytes()).u64(evicted.len() as u64);
    evicted.iter().fold(hasher, |hasher, serial| hasher.fixed(serial)).finish()
}

#[cfg(test)]
mod tests {
    use core::mem::size_of;

    use super::*;
    use crate::pairwise::Ratchet;
    use crate::{Name, Ristretto255};

    /// Bytes that a leader keeps of a member, in this crate, which count a million times.
    #[test]
    fn a_member_costs_a_leader_about_600_bytes() {
        type S = Ristretto255;
        let in_the_roster = size_of::<Option<RosterMember<S>>>();
        // Its name of 16 characters, and one group's.
        let names = 16 + size_of::<Name>() + 8;
        // A set is at least half full.
        let index = 2 * size_of::<(Serial, Slot)>();
        let hashes = 2 * size_of::<Digest>();
        let chain = size_of::<Option<Ratchet<S>>>();
        let node = size_of::<Option<quiver_crypto::Secret<32>>>();
        let bytes = [in_the_roster, names, index, hashes, chain, node];
        assert_eq!(chain, 80);
        assert!(bytes.iter().sum::<usize>() <= 600, "{bytes:?}");
    }
}
