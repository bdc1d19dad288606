//! The edge's side of a group: joining it, then following it from epoch to epoch.
//!
//! Every step is pure: it takes the old state and a verified header and gives the new state, or an error and no change.
//! The caller makes the new state durable, then puts it in the old one's place, which erases the old one.

mod state;

use core::fmt;

use quiver_crypto::{Digest, Secret, ct_eq};
use zeroize::Zeroizing;

use crate::pairwise::{PairContext, Ratchet};
use crate::slots::Slot;
use crate::{
    DroneKeypair, Element, Entry, Epoch, Error, GroupContext, GroupKey, Handle, Kind, Name, SecretScalar,
    SparePair, Suite, VerifiedHeader,
};

/// A drone's place in a group and the keys that come with it.
pub struct Membership<S: Suite> {
    group: Name,
    /// Who leads the term, so that nobody else goes on with it.
    leader: Handle,
    slot: Slot,
    /// The counter of the epoch that made the pairwise key: u = counter − birth.
    birth: u64,
    epoch: Epoch,
    digest: Digest,
    ratchet: Ratchet,
    key: Option<GroupKey>,
    suite: core::marker::PhantomData<S>,
}

impl<S: Suite> Membership<S> {
    /// Enters the group by a Welcome: the header of the epoch that adds the drone, and its entry. The secret belongs to
    /// the E_now of the join request; erase it once the membership is durable.
    ///
    /// Of the context only deployment and group matter; the leader is the one that signed the header.
    ///
    /// # Errors
    /// [`Error::WrongGroup`]; [`Error::MissingEntry`] if the header does not add that slot by a join;
    /// [`Error::WrongTag`] if the entry is not made for this drone and this ephemeral point.
    pub fn join(
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        ephemeral: &SecretScalar<S>,
        header: &VerifiedHeader<S>,
        entry: &Entry,
    ) -> Result<Self, Error> {
        let core = header.core();
        if core.kind != Kind::Rekey || entry.q.is_some() || !core.adds(entry.slot) {
            return Err(Error::MissingEntry);
        }
        let one_time = OneTime { q: 0, secret: ephemeral, point: ephemeral.public() };
        let ratchet = agree(context, keypair, &one_time, header, entry.slot)?;
        Self::activate(header, entry, ratchet, core.epoch.counter)
    }

    /// Follows the group to a newer epoch. `spare` is needed when a term opens, and must be the pair whose number the
    /// entry names; otherwise the step costs no curve arithmetic.
    ///
    /// # Errors
    /// [`Error::WrongGroup`], [`Error::WrongSlot`]; [`Error::Stale`] if the epoch is not newer; [`Error::TermNotOpened`] if
    /// it belongs to a term whose opening was missed; [`Error::NotALeader`] if another leader goes on with this term;
    /// [`Error::Removed`] if the header frees the slot; [`Error::MissingEntry`] if it opens a term without this drone;
    /// [`Error::WrongSpare`]; [`Error::Exhausted`] if it is too far ahead; [`Error::WrongTag`].
    pub fn advance(
        &self,
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        spare: Option<&SparePair<S>>,
        header: &VerifiedHeader<S>,
        entry: &Entry,
    ) -> Result<Self, Error> {
        let core = header.core();
        if core.group != self.group {
            return Err(Error::WrongGroup);
        }
        if core.epoch <= self.epoch {
            return Err(Error::Stale);
        }
        if entry.slot != self.slot {
            return Err(Error::WrongSlot);
        }
        match core.kind {
            Kind::Open => self.follow_to_term(context, keypair, spare, header, entry),
            Kind::Rekey => self.follow_in_term(header, entry),
        }
    }

    fn follow_to_term(
        &self,
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        spare: Option<&SparePair<S>>,
        header: &VerifiedHeader<S>,
        entry: &Entry,
    ) -> Result<Self, Error> {
        let core = header.core();
        if core.epoch.term <= self.epoch.term {
            return Err(Error::Stale);
        }
        if !core.adds(self.slot) {
            return Err(Error::MissingEntry);
        }
        let q = entry.q.ok_or(Error::WrongSpare)?;
        let spare = spare.filter(|spare| spare.q() == q).ok_or(Error::WrongSpare)?;
        let one_time = OneTime { q, secret: spare.secret(), point: *spare.point() };
        let ratchet = agree(context, keypair, &one_time, header, self.slot)?;
        Self::activate(header, entry, ratchet, core.epoch.counter)
    }

    fn follow_in_term(&self, header: &VerifiedHeader<S>, entry: &Entry) -> Result<Self, Error> {
        let core = header.core();
        if core.epoch.term != self.epoch.term {
            return Err(Error::TermNotOpened);
        }
        if core.leader.handle() != self.leader {
            return Err(Error::NotALeader);
        }
        if core.removed.contains(self.slot) || core.added.contains(self.slot) {
            return Err(Error::Removed);
        }
        if entry.q.is_some() {
            return Err(Error::Malformed("entry"));
        }
        // u = counter − birth; never back, and at most 2^16 forward
        let u = core.epoch.counter.checked_sub(self.birth).ok_or(Error::Stale)?;
        let mut ratchet = self.ratchet.clone();
        ratchet.skip_to(u)?;
        Self::activate(header, entry, ratchet, self.birth)
    }

    /// Unwrap and step, tag. The ratchet is a copy: it is kept only if the tag verified.
    fn activate(
        header: &VerifiedHeader<S>,
        entry: &Entry,
        mut ratchet: Ratchet,
        birth: u64,
    ) -> Result<Self, Error> {
        let key = GroupKey::unwrap(S::ID, &entry.wrap, &ratchet.take_pad(header.d0(), entry.slot));
        let tag = key.tag(header.d0(), &header.header().entries_root);
        if !ct_eq(tag.expose(), &header.header().tag) {
            return Err(Error::WrongTag);
        }
        let core = header.core();
        Ok(Self {
            group: core.group.clone(),
            leader: core.leader.handle(),
            slot: entry.slot,
            birth,
            epoch: core.epoch,
            digest: *header.digest(),
            ratchet,
            key: Some(key),
            suite: core::marker::PhantomData,
        })
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
        self.ratchet.auth()
    }

    /// K_g, unless the drone restarted since and waits for the next epoch.
    #[must_use]
    pub const fn group_key(&self) -> Option<&GroupKey> {
        self.key.as_ref()
    }

    /// Whether the group key is there.
    #[must_use]
    pub const fn synced(&self) -> bool {
        self.key.is_some()
    }

    /// Forgets the group key, as after the end of its validity. The next epoch brings another.
    pub fn forget_key(&mut self) {
        self.key = None;
    }
}

/// (q, e, E): what a drone adds to its long-term key once.
struct OneTime<'a, S: Suite> {
    q: u64,
    secret: &'a SecretScalar<S>,
    point: Element<S>,
}

/// T = (y + e)·V and the chain that starts with it. The sum and T are erased on return.
fn agree<S: Suite>(
    context: &GroupContext<S>,
    keypair: &DroneKeypair<S>,
    one_time: &OneTime<'_, S>,
    header: &VerifiedHeader<S>,
    slot: Slot,
) -> Result<Ratchet, Error> {
    let core = header.core();
    if core.group != context.group {
        return Err(Error::WrongGroup);
    }
    let point = core.point.as_ref().ok_or(Error::MissingEntry)?;
    let sum = Zeroizing::new(*keypair.secret().expose() + *one_time.secret.expose());
    let secret = if S::STRICT_PAPER { keypair.secret().expose() } else { &*sum };
    let agreed = S::agree(secret, point)?;
    let pairs = PairContext::new(&context.deployment, &core.group, core.epoch, point, &core.leader);
    let ctx = pairs.digest(keypair.public(), slot, one_time.q, one_time.point.encoding());
    Ok(Ratchet::derive::<S>(&agreed, &ctx))
}

impl<S: Suite> fmt::Debug for Membership<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Membership");
        debug.field("group", &self.group).field("slot", &self.slot).field("epoch", &self.epoch);
        debug.field("synced", &self.synced()).finish_non_exhaustive()
    }
}
