//! Other leaders of the same group: assesses their headers, and proofs against them. docs/protocol.md §10.6,
//! §10.7, §10.8.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    DronePublicKey, Epoch, EquivocationProof, Error, Header, Roster, Slot, SlotChanges, Suite,
};
use quiver_machine::{Now, Offence, Peer};
use quiver_message::{Message, Rekey};

use super::Failover;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::store::{LeaderStore, departed_change, epoch_change, refused_change};
use crate::leader::term::Term;
use crate::refused::encode_proof;

/// First pause before another term is opened above the term of a leader that must not lead. It doubles each
/// time.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// Longest pause; after as long without, the pause is the first one again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Limits the rate of terms that are opened because a leader that must not lead opened one above ours.
#[derive(Debug, Default)]
pub(super) struct TermPacer {
    next: Duration,
    pause: Duration,
}

impl TermPacer {
    fn allows(&self, now: Now) -> bool {
        now.monotonic >= self.next
    }

    fn note(&mut self, now: Now) {
        let quiet = now.monotonic >= self.next.saturating_add(LONGEST_PAUSE);
        let pause = if quiet { FIRST_PAUSE } else { self.pause * 2 };
        self.pause = pause.clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.next = now.monotonic.saturating_add(self.pause);
    }
}

/// Number of past headers that are remembered.
const MAX_STALE: usize = 256;

/// Digests of past headers that were verified, each with or without its slots, the oldest first: whoever plays them again
/// tells nothing new, as long as the roster is of the same epoch.
#[derive(Debug, Default)]
pub(super) struct StaleHeaders {
    seen: VecDeque<([u8; 32], bool)>,
    /// The term in office, and the epoch of the roster that it was opened with, or that is held.
    rosters: Option<(Option<u64>, Option<Epoch>)>,
}

impl StaleHeaders {
    /// Term and epoch on which it depends which departures a header shows.
    fn rosters<S: Suite>(term: Option<&Term<S>>, store: &LeaderStore<S>) -> (Option<u64>, Option<Epoch>) {
        match term {
            // In office the roster follows the term's own epochs.
            Some(term) => (Some(term.epoch().term), term.members.opened_with),
            None => (None, store.held.map(|(epoch, _)| epoch)),
        }
    }

    fn knows<S: Suite>(
        &self,
        term: Option<&Term<S>>,
        store: &LeaderStore<S>,
        header: &([u8; 32], bool),
    ) -> bool {
        self.rosters == Some(Self::rosters(term, store)) && self.seen.contains(header)
    }

    fn note<S: Suite>(&mut self, term: Option<&Term<S>>, store: &LeaderStore<S>, header: ([u8; 32], bool)) {
        let rosters = Some(Self::rosters(term, store));
        if self.rosters != rosters {
            (self.rosters, self.seen) = (rosters, VecDeque::new());
        }
        // §10.9: 256 of them.
        if self.seen.len() >= MAX_STALE {
            self.seen.pop_front();
        }
        self.seen.push_back(header);
    }
}

/// Meaning of a received header for this leader.
#[derive(Debug)]
pub(in crate::leader) enum Assessment<S: Suite> {
    /// No news, or no more than was acted on already.
    Ignored,
    /// A leader that must not lead may have opened a term above ours. With the proof against it, or empty.
    WentAhead { proof: Vec<u8> },
    /// The header's signer contradicts itself.
    Contradiction(Box<EquivocationProof<S>>),
    /// The header is this leader's own: its stored state is older than its group, or another process leads
    /// with a copy of it.
    Own,
    /// Another leader's term is higher.
    Higher {
        /// True if the term is higher than any known before.
        news: bool,
        /// True if this very epoch was known.
        known: bool,
    },
}

impl<S: Suite> Failover<S> {
    /// Assesses a received header, which may come with the slots that it changes.
    pub(in crate::leader) fn assess(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: Option<&mut Term<S>>,
        from: Peer,
        (header, changes): (&Header<S>, Option<&SlotChanges>),
    ) -> Assessment<S> {
        let stale = (header.digest(&cx.config.deployment), changes.is_some());
        if self.stale.knows(term.as_deref(), cx.store, &stale) {
            self.answer_leader(cx, term.as_deref(), from);
            return Assessment::Ignored;
        }
        // §10.9: what is known costs no arithmetic, and anything else is verified at a bounded rate.
        let is_seen = self.seen.as_ref().is_some_and(|seen| seen.core.epoch == header.core.epoch);
        let is_free = is_known(cx, header) && (term.is_some() || is_seen);
        if !is_free && !cx.affords_check(from) {
            return Assessment::Ignored;
        }
        // §10.8: a leader that is refused or revoked is not followed.
        if let Some(offence) = discredited(cx.store, &header.core.leader) {
            return self.assess_discredited(cx, term.as_deref(), from, header, offence);
        }
        // §10.7: two headers for one epoch, under any keys of one serial.
        if let Some(proof) = self.contradiction(cx, term.as_deref(), header) {
            return Assessment::Contradiction(Box::new(proof));
        }
        let before = cx.store.newest.map_or(0, |(epoch, _)| epoch.term);
        // Its own last header, from before a start, is no news.
        let known = is_known(cx, header);
        match self.note_header(cx, term.is_some(), header, changes) {
            Err(Offence::Protocol(Error::Stale)) if is_known(cx, header) => Assessment::Ignored,
            Err(offence) => {
                // Keys that have run out, which is checked last, are no offence: the header proves that they
                // existed.
                let ran_out = cx.now.unix < header.core.leader.identity.not_after;
                let answers = offence != Offence::Protocol(Error::Expired) || !ran_out;
                if answers && self.answer_stale(cx, term, from, (header, changes), offence) {
                    cx.event(LeaderEvent::OwnHeader { epoch: header.core.epoch });
                    return Assessment::Own;
                }
                Assessment::WentAhead { proof: Vec::new() }
            }
            // §9.2: our memory is older than our group.
            Ok(()) if is_own(cx.store, &header.core.leader) => {
                if !known {
                    cx.event(LeaderEvent::OwnHeader { epoch: header.core.epoch });
                }
                learn_count(cx, header);
                Assessment::Own
            }
            // §10.6: a validly signed header of a higher term.
            Ok(()) => Assessment::Higher { news: header.core.epoch.term > before, known },
        }
    }

    /// A header of a leader that is refused or revoked. It changes nothing, and its sender is blamed.
    ///
    /// But a member that followed it before it received the proof or the list follows nothing that is not
    /// above (§10.8). So a header over a member's connection counts, at most at the rate of [`TermPacer`]:
    /// the term is opened above, once for all that strayed so far, and the group is sent the proof, after
    /// which no member strays again.
    fn assess_discredited(
        &self,
        cx: &mut LeaderContext<'_, S>,
        term: Option<&Term<S>>,
        from: Peer,
        header: &Header<S>,
        offence: Offence,
    ) -> Assessment<S> {
        if term.is_none_or(|term| !term.acknowledgements.carries(from)) {
            cx.blame(from, offence);
            return Assessment::Ignored;
        }
        let newest = cx.store.newest.map(|(epoch, _)| epoch);
        if !self.pacer.allows(cx.now) || newest >= Some(header.core.epoch) {
            return Assessment::Ignored;
        }
        let (deployment, list) = (&cx.config.deployment, cx.store.revocations.list());
        match header.clone().verify(deployment, &cx.config.group, newest, list, cx.now.unix) {
            // Everything else about it holds.
            Ok(_) | Err(Error::Revoked | Error::Expired) => {}
            Err(error) => {
                cx.blame(from, error);
                return Assessment::Ignored;
            }
        }
        remember_epoch(cx, header);
        let proof = cx.store.refused.proof(&header.core.leader).map(<[u8]>::to_vec);
        Assessment::WentAhead { proof: proof.unwrap_or_default() }
    }

    /// Another term is to be opened above that of a leader that must not lead.
    pub(in crate::leader) fn pace_term(&mut self, now: Now) {
        self.pacer.note(now);
    }

    /// Verifies a header of a newer epoch than any known, or of the newest one, and remembers it.
    ///
    /// An epoch whose keys have run out is remembered too: the next term has to be above it, or its holders
    /// would not follow. A leader in office remembers it, and so opens the next term, at most at the rate of
    /// [`TermPacer`].
    pub(super) fn note_header(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        leading: bool,
        header: &Header<S>,
        changes: Option<&SlotChanges>,
    ) -> Result<(), Offence> {
        if cx.store.refused.names(&header.core.leader) {
            return Err(Offence::RefusedLeader);
        }
        let (deployment, list) = (&cx.config.deployment, cx.store.revocations.list());
        let newest = cx.store.newest;
        if !leading && newest == Some((header.core.epoch, header.digest(deployment))) {
            // Known, perhaps from before a start, or as one that had run out: then it is verified here, so
            // that it can be sent on.
            if self.seen.as_ref().is_none_or(|seen| seen.core.epoch != header.core.epoch) {
                header.clone().verify(deployment, &cx.config.group, None, list, cx.now.unix)?;
                self.seen = Some(header.clone());
            }
            return Ok(());
        }
        let newest = newest.map(|(epoch, _)| epoch);
        let verified = match header.clone().verify(deployment, &cx.config.group, newest, list, cx.now.unix) {
            Err(Error::Expired) if leading && !self.pacer.allows(cx.now) => {
                return Err(Error::Expired.into());
            }
            // Looked at last: everything else about it holds.
            Err(Error::Expired) if cx.now.unix < header.core.leader.identity.not_after => None,
            verified => Some(verified?),
        };
        remember_epoch(cx, header);
        if !leading {
            note_departures(cx, header, changes);
        }
        self.seen = Some(verified.ok_or(Error::Expired)?.into_header());
        Ok(())
    }

    /// The newest header known, of any leader.
    pub(in crate::leader) fn newest_header<'a>(&'a self, term: Option<&'a Term<S>>) -> Option<&'a Header<S>> {
        term.map_or(self.seen.as_ref(), |term| Some(term.header()))
    }

    /// A leader that sends us a term that is past is sent the present one. A member may well know no newer
    /// header; anybody is blamed for one that does not hold. Returns whether the header shows that this
    /// leader's memory was put back.
    fn answer_stale(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: Option<&mut Term<S>>,
        from: Peer,
        (header, changes): (&Header<S>, Option<&SlotChanges>),
        offence: Offence,
    ) -> bool {
        if offence != Offence::Protocol(Error::Stale) {
            cx.blame(from, offence);
            return false;
        }
        let (deployment, list) = (&cx.config.deployment, cx.store.revocations.list());
        let held = header.clone().verify(deployment, &cx.config.group, None, list, cx.now.unix);
        let is_leader = self.answer_leader(cx, term.as_deref(), from);
        if let Ok(_) | Err(Error::Expired | Error::Revoked) = held {
            let stale = (header.digest(&cx.config.deployment), changes.is_some());
            self.stale.note(term.as_deref(), cx.store, stale);
        }
        match held {
            Ok(_) | Err(Error::Expired) => match term {
                Some(term) => term.note_departures(header, changes),
                None => note_departures(cx, header, changes),
            },
            Err(Error::Revoked) => {}
            Err(_) if is_leader => return false,
            Err(error) => {
                cx.blame(from, error);
                return false;
            }
        }
        learn_count(cx, header)
    }

    /// Sends another leader that fell behind the newest header. Returns whether the peer is one.
    fn answer_leader(&self, cx: &mut LeaderContext<'_, S>, term: Option<&Term<S>>, from: Peer) -> bool {
        let is_deputy = term.is_some_and(|term| term.replication.peers().any(|peer| peer == from));
        let is_leader = cx.peers.leaders.contains(&from) || is_deputy;
        if is_leader && !cx.published() {
            let deployment = &cx.config.deployment;
            let announcement = |term: &Term<S>| term.epochs.current.announcement(deployment);
            let seen = || {
                self.seen.clone().map(|header| Message::Rekey(Rekey::new(header, None)).encode(deployment))
            };
            if let Some(newest) = term.map(announcement).or_else(seen) {
                cx.out.send_encoded(from, newest);
            }
        }
        is_leader
    }

    /// Another leader leads: asks it soon for what changed.
    pub(in crate::leader) fn follow(
        &mut self,
        cx: &LeaderContext<'_, S>,
        from: Peer,
        header: &Header<S>,
        news: bool,
        known: bool,
    ) {
        self.await_vacancy(cx.config, cx.now, header);
        if news {
            self.turn_to(cx.now, from);
        } else if !cx.published() || !known {
            self.ask_soon(cx.now, from);
        }
    }

    /// Another header for the newest epoch, by the same leader, under whichever of its keys.
    fn contradiction(
        &self,
        cx: &LeaderContext<'_, S>,
        term: Option<&Term<S>>,
        header: &Header<S>,
    ) -> Option<EquivocationProof<S>> {
        let known = self.newest_header(term)?;
        let same = known.core.epoch == header.core.epoch
            && known.core.leader.identity.serial == header.core.leader.identity.serial;
        let deployment = &cx.config.deployment;
        (same && known.digest(deployment) != header.digest(deployment))
            .then(|| EquivocationProof { first: known.clone(), second: header.clone() })
    }

    /// Takes a proof that a leader contradicted itself, found or received (§10.7). It is refused for good,
    /// and the proof is sent to KGCs, leaders and the group. Returns the leader if that is news.
    pub(in crate::leader) fn refuse_leader(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        from: Peer,
        proof: EquivocationProof<S>,
    ) -> Option<DronePublicKey<S>> {
        // §10.7: known long since: no curve arithmetic for it.
        if cx.store.refused.names(&proof.first.core.leader) || !cx.affords_check(from) {
            return None;
        }
        let encoded = encode_proof(&cx.config.deployment, &proof).unwrap_or_default();
        let epoch = proof.first.core.epoch;
        let leader = match proof.verify(&cx.config.deployment, &cx.config.group) {
            Ok(leader) => leader,
            Err(error) => {
                cx.blame(from, error);
                return None;
            }
        };
        // §10.7: refused for good, durably, with every key that it has or makes.
        if !cx.store.refused.insert(leader.identity.serial, encoded.clone()) {
            return None;
        }
        cx.persist(&[refused_change(&leader.identity.serial, &encoded)]);
        cx.event(LeaderEvent::Equivocation { leader: leader.identity.name.clone(), epoch });
        publish_proof(cx, &encoded);
        Some(leader)
    }

    /// A leader that does not lead: whether the one that is refused was the active one, so that a deputy
    /// takes over.
    pub(in crate::leader) fn lost_leader(&mut self, now: Now, refused: &DronePublicKey<S>) -> bool {
        let active = self.seen.as_ref().map(|seen| seen.core.leader.identity.serial);
        let lost = active == Some(refused.identity.serial);
        if lost {
            self.leader_is_void(now);
        }
        lost
    }
}

/// Sends the proof against a leader, as a message, to KGCs, leaders and the group; nothing if there is none.
pub(in crate::leader) fn publish_proof<S: Suite>(cx: &mut LeaderContext<'_, S>, proof: &[u8]) {
    if proof.is_empty() {
        return;
    }
    for peer in cx.peers.kgcs.iter().chain(&cx.peers.leaders) {
        cx.out.send_encoded(*peer, proof.to_vec());
    }
    cx.out.send_encoded_to_group(proof.to_vec());
}

/// The reason why this leader must not be followed; `None` if there is none.
fn discredited<S: Suite>(store: &LeaderStore<S>, leader: &DronePublicKey<S>) -> Option<Offence> {
    let revoked = store.revocations.names(leader).then_some(Offence::Protocol(Error::Revoked));
    if store.refused.names(leader) { Some(Offence::RefusedLeader) } else { revoked }
}

/// A verified header may be this leader's own, under the key that it has, and count more terms than it
/// remembers. Returns whether it does.
fn learn_count<S: Suite>(cx: &mut LeaderContext<'_, S>, header: &Header<S>) -> bool {
    let own = cx.store.keypair.as_ref().is_some_and(|own| *own.public() == header.core.leader);
    own && cx.store.kem.learn(header.core.kem)
}

fn remember_epoch<S: Suite>(cx: &mut LeaderContext<'_, S>, header: &Header<S>) {
    let (epoch, digest) = (header.core.epoch, header.digest(&cx.config.deployment));
    cx.store.newest = Some((epoch, digest));
    cx.persist(&[epoch_change(epoch, digest)]);
}

/// Returns true if it is the newest header known here.
fn is_known<S: Suite>(cx: &LeaderContext<'_, S>, header: &Header<S>) -> bool {
    cx.store.newest == Some((header.core.epoch, header.digest(&cx.config.deployment)))
}

/// Returns true if this is the leader's own identity, under whichever key.
pub(in crate::leader) fn is_own<S: Suite>(store: &LeaderStore<S>, leader: &DronePublicKey<S>) -> bool {
    let own = store.keypair.as_ref().map(|own| own.public().identity.serial);
    own == Some(leader.identity.serial)
}

/// The members of a roster that are out by a verified header: those with a slot that was removed, or that was
/// given to another drone since. Empty if the header is not newer than the roster, or if it does not list its
/// slots and came without them.
pub(in crate::leader) fn departed<S: Suite>(
    roster: &Roster<S>,
    copied_at: Option<Epoch>,
    header: &Header<S>,
    changes: Option<&SlotChanges>,
) -> Vec<Slot> {
    let core = &header.core;
    if copied_at.is_none_or(|at| core.epoch <= at) {
        return Vec::new();
    }
    // §7.1: those that came beside the header are those whose digest it has.
    let (removed, added) =
        changes.map_or((&core.removed, &core.added), |changes| (&changes.removed, &changes.added));
    // As many steps as there are of the fewer, members or slots.
    if removed.len() + added.len() < roster.len() {
        let slots = removed.iter().chain(added.iter().filter(|slot| !removed.contains(*slot)));
        return slots.filter(|slot| roster.get(*slot).is_some()).collect();
    }
    let slots = roster.iter().map(|(slot, _)| slot);
    slots.filter(|slot| removed.contains(*slot) || added.contains(*slot)).collect()
}

/// A leader that does not lead notes removals since the roster was copied. So a leave that a leader
/// acknowledged, with a header, holds against its deputy too, if that header reaches it by any way: members
/// send theirs to leaders that do not lead.
pub(in crate::leader) fn note_departures<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    header: &Header<S>,
    changes: Option<&SlotChanges>,
) {
    let (store, epoch) = (&*cx.store, header.core.epoch);
    let mut out = departed(&store.roster, store.held.map(|(epoch, _)| epoch), header, changes);
    out.retain(|slot| !store.is_departed(*slot, epoch));
    if !out.is_empty() {
        cx.store.departed(&out, epoch);
        cx.persist(&[departed_change(epoch, out)]);
    }
}
