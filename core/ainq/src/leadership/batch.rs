//! The changes of one epoch: joins, admissions, removals and evictions.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::kem::TermKeys;
use crate::roster::RosterMember;
use crate::slots::Slot;
use crate::{Admission, Deployment, DronePublicKey, Element, Error, KemKey, Roster, Serial, Suite};

/// A drone that joins with the ephemeral point of its request.
#[derive(Clone, derive_more::Debug)]
#[debug("Join {{ public: {public:?}, .. }}")]
pub struct Join<S: Suite> {
    public: DronePublicKey<S>,
    ephemeral: Element<S>,
    implicit: Element<S>,
    /// Y + E_now.
    target: S::Point,
    /// κ of the drone, where there is a second factor.
    kem: Option<KemKey<S>>,
}

impl<S: Suite> Join<S> {
    /// A join, whose Y is computed here and kept for the drone's time as a member.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`] if Y, or its sum with the ephemeral point, is the identity: the secret would
    /// be public.
    pub fn new(
        deployment: &Deployment<S>,
        public: DronePublicKey<S>,
        ephemeral: Element<S>,
    ) -> Result<Self, Error> {
        let implicit = public.implicit(deployment)?;
        Self::with_implicit(public, implicit, ephemeral)
    }

    /// Makes a join as [`new`](Self::new) does, with `public`'s Y, computed before to check the join's
    /// signature.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`].
    pub fn with_implicit(
        public: DronePublicKey<S>,
        implicit: Element<S>,
        ephemeral: Element<S>,
    ) -> Result<Self, Error> {
        // §1.2: T = l·(Y + E); the leader multiplies this sum.
        let target = sum(implicit.point(), &ephemeral).ok_or(Error::IdentityPoint)?;
        Ok(Self { public, ephemeral, implicit, target, kem: None })
    }

    /// The same with κ of the drone, of the term's set and count.
    #[must_use]
    pub fn with_kem(self, kem: KemKey<S>) -> Self {
        Self { kem: Some(kem), ..self }
    }

    /// The joining drone.
    #[must_use]
    pub const fn public(&self) -> &DronePublicKey<S> {
        &self.public
    }

    /// Y, computed once.
    #[must_use]
    pub const fn implicit(&self) -> &Element<S> {
        &self.implicit
    }

    /// E_now.
    #[must_use]
    pub const fn ephemeral(&self) -> &Element<S> {
        &self.ephemeral
    }
}

/// Changes of one epoch.
#[derive(Default, Debug)]
pub struct Batch<S: Suite> {
    /// Joins by name.
    pub joins: Vec<Join<S>>,
    /// Anonymous joins.
    pub admissions: Vec<Admission<S>>,
    /// Slots of members to remove.
    pub removals: Vec<Slot>,
    /// Drones barred from the group for good, members or not.
    pub evictions: Vec<Serial>,
    /// True if newcomers are to follow by wraps under `tree`, as over a medium that all share, and so need no
    /// path message. They get none of the slots that are freed with them.
    pub by_wraps: bool,
}

impl<S: Suite> Batch<S> {
    /// Returns true if the epoch only renews the key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.joins.is_empty()
            && self.admissions.is_empty()
            && self.removals.is_empty()
            && self.evictions.is_empty()
    }

    /// Returns true if newcomers follow by wraps, if the strategy has any.
    pub(super) const fn adds_by_wraps(&self) -> bool {
        self.by_wraps && !(self.joins.is_empty() && self.admissions.is_empty())
    }

    /// The slots that become free: removals, evicted members, and members that join again.
    pub(super) fn freed(&self, roster: &Roster<S>) -> Result<BTreeSet<Slot>, Error> {
        if self.removals.iter().any(|slot| !roster.holds(*slot)) {
            return Err(Error::WrongSlot);
        }
        // §6.2: a join by a current member is a leave and a join.
        let again = self.joins.iter().map(|join| &join.public.identity.serial);
        let leaving = self.evictions.iter().chain(again).filter_map(|serial| roster.find(serial));
        Ok(self.removals.iter().copied().chain(leaving).collect())
    }

    /// The joins with their slots, the lowest ones that are free or reusable, in the batch's order, and the slots
    /// after them for the admissions.
    pub(super) fn placed<'a>(
        &'a self,
        roster: &'a Roster<S>,
        reusable: &'a BTreeSet<Slot>,
    ) -> Result<(Vec<Newcomer<'a, S>>, Vec<Slot>), Error> {
        let mut seen = BTreeSet::new();
        // §6.2: no evicted drone joins.
        for join in &self.joins {
            let serial = &join.public.identity.serial;
            if roster.is_evicted(serial) || self.evictions.contains(serial) {
                return Err(Error::Revoked);
            }
            if !seen.insert(serial) {
                return Err(Error::Malformed("a drone joins twice in one batch"));
            }
        }
        // §8.1: a slot stays with its member; newcomers get free ones, the lowest first.
        let mut places = roster.vacancies(reusable);
        // The joins first: zip would take a place more than it uses.
        let placed: Vec<_> =
            self.joins.iter().map_while(|join| Some(Newcomer::with_join(places.next()?, join))).collect();
        let admitted: Vec<_> = places.take(self.admissions.len()).collect();
        if placed.len() == self.joins.len() && admitted.len() == self.admissions.len() {
            Ok((placed, admitted))
        } else {
            Err(Error::Exhausted)
        }
    }

    /// Changes the roster as planned.
    pub(super) fn apply(
        self,
        roster: &mut Roster<S>,
        freed: &BTreeSet<Slot>,
        assigned: &[Slot],
        admitted: &[Slot],
    ) -> Result<(), Error> {
        freed.iter().for_each(|slot| roster.vacate(*slot));
        // §12.2: the serials stay in the eviction set, which the roster hash covers.
        roster.evict_all(self.evictions);
        for (join, slot) in self.joins.into_iter().zip(assigned) {
            roster.admit(*slot, join.public, Some(*join.implicit.point()))?;
        }
        // §6.5: anonymous members hold slots, but are not in the roster hash.
        for (admission, slot) in self.admissions.iter().zip(admitted) {
            roster.admit_anonymous(*slot, admission.member)?;
        }
        Ok(())
    }
}

/// A member of the epoch that needs a pairwise key.
pub(super) struct Newcomer<'a, S: Suite> {
    pub(super) slot: Slot,
    pub(super) q: u64,
    pub(super) public: &'a DronePublicKey<S>,
    /// E, encoded.
    pub(super) one_time: S::Encoding,
    /// Y + E.
    pub(super) target: S::Point,
    /// κ, where there is a second factor.
    pub(super) kem: Option<&'a KemKey<S>>,
}

impl<'a, S: Suite> Newcomer<'a, S> {
    fn with_join(slot: Slot, join: &'a Join<S>) -> Self {
        let (one_time, kem) = (*join.ephemeral.encoding(), join.kem.as_ref());
        Self { slot, q: 0, public: &join.public, one_time, target: join.target, kem }
    }

    /// A member with its spare point; `None` if the two cancel out, which only the member itself can have
    /// caused.
    pub(super) fn with_spare(
        slot: Slot,
        member: &'a RosterMember<S>,
        (q, spare): &(u64, Element<S>),
    ) -> Option<Self> {
        // §6.6: Y + E_q, without a round trip to the member.
        let target = sum(member.implicit.as_ref()?, spare)?;
        Some(Self { slot, q: *q, public: &member.public, one_time: *spare.encoding(), target, kem: None })
    }
}

impl<'a, S: Suite> Newcomer<'a, S> {
    /// The same with κ of the term, if it has a second factor; `None` if the member has no such κ.
    pub(super) fn with_key(self, keys: Option<&'a TermKeys<S>>) -> Option<Self> {
        match keys {
            None => Some(self),
            // §24.7: without κ it is absent, and joins again.
            Some(keys) => Some(Self { kem: Some(keys.key(self.slot)?), ..self }),
        }
    }
}

fn sum<S: Suite>(implicit: &S::Point, one_time: &Element<S>) -> Option<S::Point> {
    let target = *implicit + *one_time.point();
    // §1.3: the identity in place of Y + E would make T public.
    (!S::is_identity(&target)).then_some(target)
}
