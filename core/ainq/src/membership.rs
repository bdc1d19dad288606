//! The group at an edge: joins it, then follows it from epoch to epoch.
//!
//! Every step is pure: it takes the old state and a verified header and gives the new state, or an error and
//! no change. The caller makes the new state durable, then puts it in the old one's place, which erases the
//! old one.

mod advance;
mod state;

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::{Digest, PrfKey, Secret};
use zeroize::Zeroizing;

use self::advance::check_wraps;
use crate::kem::check_term;
use crate::pairwise::{PairContext, Ratchet, ack_tag_under};
use crate::slots::Slot;
use crate::tree::{Delta, EpochPart, HmacXor, Path};
use crate::{
    AgreedSecret, DroneKeypair, Element, Epoch, EpochKind, Error, GroupContext, GroupKey, Handle, KemKey,
    Name, Pseudonym, SecretScalar, SparePair, StrategyKind, Suite, TrafficKey, VerifiedHeader,
};

/// A drone's place in a group and the keys that come with it.
#[derive(derive_more::Debug)]
#[debug("GroupMembership {{ group: {group:?}, slot: {slot:?}, epoch: {epoch:?}, synced: {}, .. }}", self.synced())]
pub struct GroupMembership<S: Suite> {
    group: Name,
    /// The leader of the term, so that no other continues it.
    leader: Handle,
    /// Re-key strategy of the term.
    strategy: StrategyKind,
    slot: Slot,
    epoch: Epoch,
    digest: Digest,
    pair: LeaderKeys<S>,
    path: Option<Path<HmacXor<S>>>,
    key: Option<GroupKey>,
    /// Made with the tag, for who asks first.
    traffic: Option<TrafficKey>,
}

/// Keys that a member shares with the leader of the term.
#[derive(Clone)]
struct LeaderKeys<S: Suite> {
    ratchet: Ratchet<S>,
    /// A, hashed once for the acknowledgements of all epochs.
    auth: Arc<PrfKey>,
}

impl<S: Suite> LeaderKeys<S> {
    fn new(ratchet: Ratchet<S>) -> Self {
        let auth = Arc::new(PrfKey::new(ratchet.auth()));
        Self { ratchet, auth }
    }
}

impl<S: Suite> GroupMembership<S> {
    /// Enters the group by a Welcome: the header of the epoch that adds the drone, and its part: an entry
    /// under `flat`, a path message under `tree`, whose r the caller has found to be its own n_e. The secret
    /// belongs to the E_now of the join request; erase it once the membership is durable.
    ///
    /// Of the context only deployment and group are used; the leader is the one that signed the header.
    ///
    /// # Errors
    /// [`Error::WrongGroup`]; [`Error::MissingEntry`] if the header does not add that slot by a join;
    /// [`Error::UnsupportedStrategy`] for a part of the other strategy; [`Error::WrongTag`] or
    /// [`Error::SealBroken`] if the part is not made for this drone and this ephemeral point.
    pub fn join(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        ephemeral: &SecretScalar<S>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        let one_time = OneTime { q: 0, secret: ephemeral, point: ephemeral.public(), kem: None };
        Self::enter(context, keypair, &one_time, header, part)
    }

    /// Joins as [`join`](Self::join) does, with the one-time pair as [`SparePair::ephemeral`] drew it: its
    /// public point is not computed again.
    ///
    /// # Errors
    /// As [`join`](Self::join); [`Error::WrongSpare`] for a pair that has a number.
    pub fn join_with_pair(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        ephemeral: &SparePair<S>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        Self::join_with_kem(context, keypair, ephemeral, None, header, part)
    }

    /// As [`join_with_pair`](Self::join_with_pair), with κ of this leader if the header demands it.
    ///
    /// # Errors
    /// As [`join_with_pair`](Self::join_with_pair); [`Error::MissingKem`] for a header that names a parameter
    /// set and a count of which this κ is not; [`Error::OtherKem`] for one that names none, if there is κ.
    pub fn join_with_kem(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        ephemeral: &SparePair<S>,
        kem: Option<&KemKey<S>>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        if ephemeral.q() != 0 {
            return Err(Error::WrongSpare);
        }
        let one_time = OneTime { q: 0, secret: ephemeral.secret(), point: *ephemeral.point(), kem };
        Self::enter(context, keypair, &one_time, header, part)
    }

    /// As [`join_with_pair`](Self::join_with_pair), by the wraps of the epoch that adds the drone, or a part
    /// of them. The slot may come from a message that is not authenticated: with a false one the tag does not
    /// verify.
    ///
    /// # Errors
    /// As [`join_with_pair`](Self::join_with_pair); [`Error::WrongWraps`] if the header does not bind the
    /// wraps;
    /// [`Error::Malformed`] or [`Error::Removed`] if these do not lead a newcomer of that slot to the key.
    pub fn join_by_wraps(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        ephemeral: &SparePair<S>,
        header: &VerifiedHeader<S>,
        slot: Slot,
        delta: &Delta,
    ) -> Result<Self, Error> {
        Self::join_by_wraps_with_kem(context, keypair, (ephemeral, None), header, slot, delta)
    }

    /// As [`join_by_wraps`](Self::join_by_wraps), with κ of this leader beside the one-time pair if the
    /// header demands it.
    ///
    /// # Errors
    /// As [`join_by_wraps`](Self::join_by_wraps) and [`join_with_kem`](Self::join_with_kem).
    pub fn join_by_wraps_with_kem(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        (ephemeral, kem): (&SparePair<S>, Option<&KemKey<S>>),
        header: &VerifiedHeader<S>,
        slot: Slot,
        delta: &Delta,
    ) -> Result<Self, Error> {
        if ephemeral.q() != 0 {
            return Err(Error::WrongSpare);
        }
        let core = header.core();
        if core.strategy != StrategyKind::Tree {
            return Err(Error::UnsupportedStrategy);
        }
        if core.kind != EpochKind::Rekey || !core.adds(slot) {
            return Err(Error::MissingEntry);
        }
        // §8.4: what the header does not bind costs no multiplication.
        check_wraps(header, delta)?;
        let one_time = OneTime { q: 0, secret: ephemeral.secret(), point: *ephemeral.point(), kem };
        let pair = agree(context, keypair, &one_time, header, slot)?;
        // §8.2, 2: all nodes above a newcomer that follows have seeds, and it holds none of their keys yet.
        Self::open_wraps(header, delta, (slot, &Path::new(Vec::new())), pair)
    }

    fn enter(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        one_time: &OneTime<'_, S>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        // §6.1: a welcome is a header and this drone's part.
        let slot = added_slot(header, part)?;
        let pair = agree(context, keypair, one_time, header, slot)?;
        Self::open(header, part, pair)
    }

    /// Enters the group as an anonymous member by its Welcome: the header of the epoch that adds it, and its
    /// part, as in [`join`](Self::join). `secret` is W of the exchange, with κ of the same run where there is a
    /// second factor. Such a membership ends with the term.
    ///
    /// # Errors
    /// The errors of [`join_with_kem`](Self::join_with_kem).
    pub fn admitted(
        context: &GroupContext<S>,
        pseudonym: &Pseudonym,
        (secret, kem): (&AgreedSecret, Option<&KemKey<S>>),
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        let core = header.core();
        if core.group != context.group {
            return Err(Error::WrongGroup);
        }
        let slot = added_slot(header, part)?;
        // §24.3: of the set and the count that the header names, or none where it names none.
        check_term(core.kem.as_ref(), kem)?;
        // §7.1: V is there if anybody is added.
        let point = core.point.as_ref().ok_or(Error::MissingEntry)?;
        // §6.5: W of the exchange takes the place of T, and the pseudonym that of the drone's key.
        let pairs = PairContext::new(&context.deployment, &core.group, core.epoch, point, &core.leader);
        let mut ratchet = Ratchet::derive_for(secret, kem, &pairs.anonymous(pseudonym, slot));
        ratchet.count_from(core.epoch.counter);
        Self::open(header, part, LeaderKeys::new(ratchet))
    }

    fn open(header: &VerifiedHeader<S>, part: &EpochPart, pair: LeaderKeys<S>) -> Result<Self, Error> {
        match part {
            EpochPart::Path(path) => Self::open_path(header, path, pair),
            EpochPart::Entry(entry) => Self::open_entry(header, entry, pair),
            EpochPart::Delta(_) => Err(Error::UnsupportedStrategy),
        }
    }

    /// Follows the group to a newer epoch. A term opens by an entry under either strategy, and `spare` must
    /// be the pair whose number the entry names; under `tree` also by wraps or by a path message, and `spare`
    /// must be the pair that the leader used. Otherwise the step costs no curve arithmetic. Within a term
    /// `flat` follows by entries; `tree` by the wraps of the next epoch, or by a path message of any newer
    /// one, or of the epoch held if it lacks the path or the key.
    ///
    /// # Errors
    /// [`Error::WrongGroup`], [`Error::WrongSlot`]; [`Error::Stale`] if the epoch is not newer, or a path of
    /// it is there; [`Error::TermNotOpened`] if it belongs to a term whose opening was missed;
    /// [`Error::NotALeader`] if another leader goes on with this term; [`Error::Removed`] if the header frees
    /// the slot; [`Error::MissingEntry`] if it opens a term without this drone; [`Error::WrongSpare`];
    /// [`Error::Exhausted`] if it is too far ahead; [`Error::UnsupportedStrategy`] for a part or a header of
    /// the other strategy; [`Error::Gap`], [`Error::MissingPath`] and [`Error::WrongWraps`] for wraps;
    /// [`Error::SealBroken`] for a path; [`Error::WrongTag`].
    pub fn advance(
        &self,
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        spare: Option<&SparePair<S>>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        self.advance_with_kem(context, keypair, (spare, None), header, part)
    }

    /// As [`advance`](Self::advance), with κ of the term's leader beside the spare pair if the header of an
    /// opening demands it.
    ///
    /// # Errors
    /// As [`advance`](Self::advance), and as [`join_with_kem`](Self::join_with_kem) of an opening.
    pub fn advance_with_kem(
        &self,
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        spare: (Option<&SparePair<S>>, Option<&KemKey<S>>),
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        self.check_next(header, part)?;
        // §9.1: an opening takes a spare pair; within a term, and for a path of the opening held, the chain
        // suffices.
        match header.core().kind {
            EpochKind::Open if *header.digest() != self.digest => {
                self.follow_to_term(context, keypair, spare, header, part)
            }
            _ => self.follow(header, part),
        }
    }

    /// The same within the term only, for which neither a spare pair nor the drone's own key is needed: an
    /// anonymous member has none.
    ///
    /// # Errors
    /// As [`advance`](Self::advance); [`Error::TermNotOpened`] for every other term.
    pub fn advance_in_term(&self, header: &VerifiedHeader<S>, part: &EpochPart) -> Result<Self, Error> {
        self.check_next(header, part)?;
        // §6.5: an anonymous member has no spare pair, so it follows no opening.
        if header.core().kind == EpochKind::Open {
            return Err(Error::TermNotOpened);
        }
        self.follow(header, part)
    }

    /// Checks that a header is the group's and newer, and that what came with it is this member's.
    fn check_next(&self, header: &VerifiedHeader<S>, part: &EpochPart) -> Result<(), Error> {
        let core = header.core();
        if core.group != self.group {
            return Err(Error::WrongGroup);
        }
        // §8.4: a path of the epoch held is of use after a restart, or when a term has just opened.
        let lacks = self.path.is_none() || self.key.is_none();
        let again = lacks && matches!(part, EpochPart::Path(_)) && *header.digest() == self.digest;
        if core.epoch <= self.epoch && !again {
            return Err(Error::Stale);
        }
        // §7.4: an entry for another slot changes nothing.
        let slot = match part {
            EpochPart::Entry(entry) => entry.slot,
            EpochPart::Path(path) => path.slot,
            EpochPart::Delta(_) => self.slot,
        };
        if slot == self.slot { Ok(()) } else { Err(Error::WrongSlot) }
    }

    fn follow(&self, header: &VerifiedHeader<S>, part: &EpochPart) -> Result<Self, Error> {
        match part {
            EpochPart::Entry(entry) => self.follow_by_entry(header, entry),
            EpochPart::Path(path) => self.follow_by_path(header, path),
            EpochPart::Delta(delta) => self.follow_by_wraps(header, delta),
        }
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> &Name {
        &self.group
    }

    /// The slot, kept as long as the membership lasts.
    #[must_use]
    pub const fn slot(&self) -> Slot {
        self.slot
    }

    /// The newest epoch accepted.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// D of that epoch.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The handle of the term's leader.
    #[must_use]
    pub const fn leader(&self) -> &Handle {
        &self.leader
    }

    /// A, shared with the term's leader.
    #[must_use]
    pub const fn auth_key(&self) -> &Secret<32> {
        self.pair.ratchet.auth()
    }

    /// [`ack_tag`](crate::ack_tag) of the epoch held.
    #[must_use]
    pub fn ack_tag(&self) -> [u8; 32] {
        ack_tag_under::<S>(&self.pair.auth, &self.digest)
    }

    /// Re-key strategy of the term.
    #[must_use]
    pub const fn follows(&self) -> StrategyKind {
        self.strategy
    }

    /// Returns true if the next epoch's wraps are of use. Under `flat` there is no path to be missed.
    #[must_use]
    pub const fn has_path(&self) -> bool {
        matches!(self.strategy, StrategyKind::Flat) || self.path.is_some()
    }

    /// K_g, unless the drone restarted since and waits for the next epoch.
    #[must_use]
    pub const fn group_key(&self) -> Option<&GroupKey> {
        self.key.as_ref()
    }

    /// K_tr of the epoch, if the group key is there. Made when the epoch was entered, and then given away.
    pub fn take_traffic(&mut self) -> Option<TrafficKey> {
        let key = self.key.as_ref()?;
        // §13.1: K_tr = PRF(K_g, "traffic", D).
        Some(self.traffic.take().unwrap_or_else(|| key.traffic(&self.digest)))
    }

    /// Returns true if the group key is there.
    #[must_use]
    pub const fn synced(&self) -> bool {
        self.key.is_some()
    }

    /// Forgets the group key, as after the end of its validity. The next epoch brings another.
    pub fn forget_key(&mut self) {
        self.key = None;
        self.traffic = None;
    }
}

/// The slot of a newcomer that a header adds by this part.
fn added_slot<S: Suite>(header: &VerifiedHeader<S>, part: &EpochPart) -> Result<Slot, Error> {
    let core = header.core();
    // §8.2, 6: a join's part: under `flat` an entry without q, under `tree` a path.
    let slot = match (core.strategy, part) {
        (StrategyKind::Flat, EpochPart::Entry(entry)) if entry.q.is_none() => entry.slot,
        (StrategyKind::Flat, EpochPart::Entry(_)) => return Err(Error::MissingEntry),
        (StrategyKind::Tree, EpochPart::Path(path)) => path.slot,
        _ => return Err(Error::UnsupportedStrategy),
    };
    // §6.1: the header of a welcome adds this slot within a term.
    if core.kind != EpochKind::Rekey || !core.adds(slot) {
        return Err(Error::MissingEntry);
    }
    Ok(slot)
}

/// (q, e, E): the one-time pair that a drone adds to its long-term key.
struct OneTime<'a, S: Suite> {
    q: u64,
    secret: &'a SecretScalar<S>,
    point: Element<S>,
    /// κ of the leader, where there is a second factor.
    kem: Option<&'a KemKey<S>>,
}

/// T = (y + e)·V and what starts with it. The sum and T are erased on return.
fn agree<S: Suite>(
    context: &GroupContext<S>,
    keypair: &DroneKeypair<S>,
    one_time: &OneTime<'_, S>,
    header: &VerifiedHeader<S>,
    slot: Slot,
) -> Result<LeaderKeys<S>, Error> {
    let core = header.core();
    if core.group != context.group {
        return Err(Error::WrongGroup);
    }
    let point = core.point.as_ref().ok_or(Error::MissingEntry)?;
    // §24.3: of the set and the count that the header names, or none where it names none.
    check_term(core.kem.as_ref(), one_time.kem)?;
    // §1.2: T = (y + e)·V, which is the leader's l·(Y + E).
    let sum = Zeroizing::new(*keypair.secret().expose() + *one_time.secret.expose());
    let agreed = S::agree(&sum, point)?;
    // §14: ctx binds deployment, group, epoch, V and leader; then the drone, its slot, q and E.
    let pairs = PairContext::new(&context.deployment, &core.group, core.epoch, point, &core.leader);
    let ctx = pairs.digest(keypair.public(), slot, one_time.q, one_time.point.encoding());
    let mut ratchet = Ratchet::derive_for(&agreed, one_time.kem, &ctx);
    // §14: W[b] belongs to the epoch with counter b that makes the pair.
    ratchet.count_from(core.epoch.counter);
    Ok(LeaderKeys::new(ratchet))
}
