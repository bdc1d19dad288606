//! Replicates the group to deputies: public data, in answers to their signed questions. docs/protocol.md
//! §10.2.
//!
//! Per deputy the leader keeps which slots changed since they were last sent, not their former content: a
//! chunk has the slots as they are *now*. One chunk is under way at a time; the deputy's next question shows
//! whether it was taken.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    DronePublicKey, Epoch, EpochOutput, Error, Label, Name, Role, Roster, Serial, Slot, Suite,
};
use quiver_machine::{Offence, Peer};
use quiver_message::{
    MAX_REPLICA_EVICTED, MAX_SEATS, Message, Nonce, RefusalReason, Replica, ReplicaChunk, Seat, StandBy,
};

use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::statements;
use crate::leader::store::{LeaderStore, Spare};
use crate::leader::term::epochs::TermEpochs;

/// Maximum number of deputies that a leader serves; an operator names two or three.
const MAX_DEPUTIES: usize = 8;
/// Approximate length to which a chunk grows, in bytes. A message may have twice that.
const CHUNK_LEN: usize = 1 << 19;
/// Maximum number of epochs with evictions that wait to be confirmed.
const MAX_UNCONFIRMED: usize = 64;

/// The deputies that stand by for this leader.
#[derive(Debug)]
pub(in crate::leader) struct Replication<S: Suite> {
    sessions: Vec<ReplicationSession<S>>,
    /// Evictions that no deputy has confirmed yet.
    unconfirmed: VecDeque<(Epoch, Vec<Name>)>,
}

/// A deputy, and how far its copy is.
#[derive(Debug)]
struct ReplicationSession<S: Suite> {
    deputy: DronePublicKey<S>,
    peer: Peer,
    nonce: Nonce,
    /// Number of the last question answered.
    number: u64,
    /// Number of the last chunk sent, 0 before the first.
    sent: u64,
    /// True if that chunk completed the copy.
    complete: bool,
    /// Slots and serials of the last chunk, until it is confirmed.
    flight: (Vec<Slot>, Vec<Serial>),
    /// The next slot of the first pass over the roster; `None` once it is complete.
    scan: Option<Slot>,
    /// Slots to send (again).
    changed: BTreeSet<Slot>,
    /// Evicted drones to send.
    barred: BTreeSet<Serial>,
}

impl<S: Suite> Replication<S> {
    pub(in crate::leader) fn new() -> Self {
        Self { sessions: Vec::new(), unconfirmed: VecDeque::new() }
    }

    pub(in crate::leader) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The deputies' connections.
    pub(in crate::leader) fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        self.sessions.iter().map(|session| session.peer)
    }

    /// The deputy behind this connection.
    pub(in crate::leader) fn deputy_behind(&self, peer: Peer) -> Option<&DronePublicKey<S>> {
        self.sessions.iter().find(|session| session.peer == peer).map(|session| &session.deputy)
    }

    /// Marks slots whose holder or spare point changed.
    pub(in crate::leader) fn changed(&mut self, slots: &[Slot]) {
        for session in &mut self.sessions {
            // The first pass reads slots that it has not reached yet in their newest state.
            let reached = |slot: &Slot| session.scan.is_none_or(|next| *slot < next);
            session.changed.extend(slots.iter().copied().filter(reached));
        }
    }

    /// Notes the changes of an epoch in force, which are still to be replicated.
    pub(in crate::leader) fn note_epoch(
        &mut self,
        output: &EpochOutput<S>,
        evicted: &[Serial],
        names: Vec<Name>,
    ) {
        self.evicted(output.header.core.epoch, evicted, names);
        let changed: Vec<Slot> = output.dropped.iter().chain(&output.assigned).copied().collect();
        self.changed(&changed);
    }

    /// Notes that these drones were evicted with this epoch.
    fn evicted(&mut self, epoch: Epoch, serials: &[Serial], names: Vec<Name>) {
        if serials.is_empty() {
            return;
        }
        for session in &mut self.sessions {
            session.barred.extend(serials);
        }
        if self.unconfirmed.len() >= MAX_UNCONFIRMED {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((epoch, names));
    }

    pub(in crate::leader) fn disconnected(&mut self, peer: Peer) {
        self.sessions.retain(|session| session.peer != peer);
    }

    /// A deputy has this epoch's roster on its disk: drones evicted until then are out in its terms, too.
    fn confirmed(&mut self, held: Epoch) -> Vec<(Epoch, Vec<Name>)> {
        // §10.2: an eviction up to there is replicated.
        let covered = self.unconfirmed.iter().take_while(|(epoch, _)| *epoch <= held).count();
        self.unconfirmed.drain(..covered).collect()
    }
}

impl<S: Suite> ReplicationSession<S> {
    fn new(deputy: DronePublicKey<S>, peer: Peer, nonce: Nonce, roster: &Roster<S>) -> Self {
        Self {
            deputy,
            peer,
            nonce,
            number: 0,
            sent: 0,
            complete: false,
            flight: (Vec::new(), Vec::new()),
            scan: Some(0),
            changed: BTreeSet::new(),
            barred: roster.evicted().copied().collect(),
        }
    }

    /// The next chunk, the last one again if it was not taken, or `None` if nothing changed.
    fn chunk(
        &mut self,
        received: u64,
        roster: &Roster<S>,
        store: &LeaderStore<S>,
    ) -> Option<ReplicaChunk<S>> {
        // §10.2: one chunk is under way at a time, and is sent until it is taken.
        let again = received != self.sent;
        if !again {
            self.flight = self.pick(roster, store);
            if self.flight.0.is_empty() && self.flight.1.is_empty() && self.complete {
                return None;
            }
            self.sent += 1;
        }
        let (slots, evicted) = &self.flight;
        self.complete = self.scan.is_none() && self.changed.is_empty() && self.barred.is_empty();
        Some(ReplicaChunk {
            number: self.sent,
            first: self.sent == 1,
            last: self.complete,
            seats: slots.iter().map(|slot| seat(*slot, roster, store)).collect(),
            evicted: evicted.clone(),
        })
    }

    /// Picks the content of the next chunk.
    fn pick(&mut self, roster: &Roster<S>, store: &LeaderStore<S>) -> (Vec<Slot>, Vec<Serial>) {
        let mut barred = Vec::new();
        while let Some(serial) =
            (barred.len() < MAX_REPLICA_EVICTED).then(|| self.barred.pop_first()).flatten()
        {
            barred.push(serial);
        }
        let (mut slots, mut len) = (BTreeSet::new(), 16 * barred.len());
        // §10.2: at most 2,048 slots; §10.9: about 512 KiB.
        while slots.len() < MAX_SEATS && len < CHUNK_LEN {
            let Some(slot) = self.changed.pop_first() else { break };
            len += seat(slot, roster, store).holder.map_or(8, |holder| holder.encode().len() + 128);
            slots.insert(slot);
        }
        if let Some(first) = self.scan {
            let mut rest = roster.iter_from(first);
            self.scan = loop {
                let Some((slot, public)) = rest.next() else { break None };
                if slots.len() >= MAX_SEATS || len >= CHUNK_LEN {
                    break Some(slot);
                }
                len += public.encode().len() + 128;
                slots.insert(slot);
            };
        }
        (slots.into_iter().collect(), barred)
    }
}

fn seat<S: Suite>(slot: Slot, roster: &Roster<S>, store: &LeaderStore<S>) -> Seat<S> {
    let holder = roster.get(slot).cloned();
    let spare = store.spare(slot).filter(|_| holder.is_some());
    let unused = spare.and_then(Spare::statement);
    let spent = spare.filter(|_| unused.is_none()).map_or(0, |spare| spare.q);
    Seat { slot, holder, spare: unused, spent }
}

impl<S: Suite> Replication<S> {
    /// Answers a deputy's question. A peer that does not prove that it may lead this group learns nothing.
    pub(in crate::leader) fn stand_by(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        from: Peer,
        question: &StandBy,
    ) {
        if let Err((reason, offence)) = self.admit_question(cx, epochs, from, question) {
            if offence == Error::Replay.into() {
                // Perhaps it only came late; the session stands.
                return cx.blame(from, offence);
            }
            cx.refuse(from, reason, &question.nonce, Duration::ZERO);
            return cx.blame(from, offence);
        }
        if let Some(replica) = self.answer(cx, epochs, from, question) {
            cx.send(from, &Message::Replica(replica));
        }
        // §10.2: what it holds, it has on its disk.
        let epoch = epochs.epoch();
        if epoch.term == question.held.term && question.held <= epoch {
            let deputy = self.sessions.iter().find(|session| session.nonce == question.nonce);
            let deputy = deputy.map(|session| session.deputy.identity.name.clone());
            for (epoch, names) in self.confirmed(question.held) {
                cx.event(LeaderEvent::Replicated { epoch, names, deputy: deputy.clone() });
            }
        }
    }

    /// Cookie or session, role, lifetime, revocation, signature; then the question's session stands.
    fn admit_question(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        from: Peer,
        question: &StandBy,
    ) -> Result<(), (RefusalReason, Offence)> {
        let session = self.sessions.iter().find(|s| s.peer == from && s.nonce == question.nonce);
        let last = session.map(|session| session.number);
        let parts: [&[u8]; 2] = [&question.nonce, &question.deputy];
        // §10.1: cookie or session.
        if last.is_none() && !cx.cookies.recognises(cx.now.monotonic, from, &parts, &question.challenge) {
            return Err((RefusalReason::BadCookie, Offence::Cookie));
        }
        // §10.1: a rising number.
        if last.is_some_and(|last| question.number <= last) {
            return Err((RefusalReason::BadCookie, Error::Replay.into()));
        }
        let Some(keypair) = &cx.store.keypair else {
            return Err((RefusalReason::NotReady, Offence::OutOfPlace("StandBy")));
        };
        let (deputy, signature) =
            question.decode::<S>().map_err(|error| (RefusalReason::Malformed, error.into()))?;
        may_stand_by(cx, &deputy).map_err(|(reason, error)| (reason, error.into()))?;
        // §10.1: signed by a leader of this group under another ordinal.
        let statement = statements::stand_by(question, keypair.public());
        signature
            .verify(&cx.config.deployment, &deputy, Label::StandBy, &statement)
            .map_err(|error| (RefusalReason::BadSignature, error.into()))?;
        if last.is_none() {
            self.begin_session(cx, epochs.roster(), from, question, deputy)?;
        }
        Ok(())
    }

    fn begin_session(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        roster: &Roster<S>,
        from: Peer,
        question: &StandBy,
        deputy: DronePublicKey<S>,
    ) -> Result<(), (RefusalReason, Offence)> {
        // §2.2: its newest session is the one that counts, whatever other key it came under: a drone takes
        // one place.
        cx.peers.relays_changed(self.peers().chain([from]));
        let serial = deputy.identity.serial;
        self.sessions.retain(|session| session.deputy.identity.serial != serial);
        // §10.9: at most 8 deputies.
        if self.sessions.len() >= MAX_DEPUTIES {
            return Err((RefusalReason::Busy, Offence::OutOfPlace("StandBy")));
        }
        let session = ReplicationSession::new(deputy, from, question.nonce, roster);
        self.sessions.push(session);
        Ok(())
    }

    fn answer(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        from: Peer,
        question: &StandBy,
    ) -> Option<Replica<S>> {
        let session = self.sessions.iter_mut().find(|s| s.peer == from && s.nonce == question.nonce)?;
        session.number = question.number;
        // The deputy cannot have taken a chunk that was not sent, nor have lost one that it confirmed: it
        // lost count.
        let fits = [Some(session.sent), session.sent.checked_sub(1)].contains(&Some(question.received));
        if !fits {
            self.disconnected(from);
            cx.peers.relays_changed([from]);
            cx.refuse(from, RefusalReason::BadCookie, &question.nonce, Duration::ZERO);
            return None;
        }
        // §10.2: how slots are now; one chunk is under way at a time.
        let chunk = session.chunk(question.received, epochs.roster(), cx.store);
        let chunk = chunk.map(|chunk| chunk.encode()).unwrap_or_default();
        let about = (&question.group, &question.nonce, question.number);
        let keypair = cx.store.keypair.as_ref()?;
        let digest = epochs.leadership.digest();
        let statement = statements::replica(about, &session.deputy, keypair.public(), digest, &chunk);
        // §10.3: signed over the question's number.
        let signature = keypair.sign(&cx.config.deployment, Label::Replica, &statement, cx.rng);
        let (nonce, number) = (question.nonce, question.number);
        Some(Replica { nonce, number, header: epochs.current.header.clone(), chunk, signature })
    }
}

/// Leads this group under another ordinal, and is neither out of time, revoked nor refused.
fn may_stand_by<S: Suite>(
    cx: &LeaderContext<'_, S>,
    deputy: &DronePublicKey<S>,
) -> Result<(), (RefusalReason, Error)> {
    let own = cx.store.keypair.as_ref().map(|keypair| &keypair.public().identity.role);
    let leads = matches!(&deputy.identity.role, Role::Leader { group, .. } if *group == cx.config.group);
    // §10.1: it may lead this group under another ordinal, and is not out of time, revoked or refused.
    if !leads || own == Some(&deputy.identity.role) || cx.store.refused.names(deputy) {
        Err((RefusalReason::NotAuthorised, Error::NotALeader))
    } else if cx.now.unix >= deputy.identity.not_after {
        Err((RefusalReason::Expired, Error::Expired))
    } else if cx.store.revocations.names(deputy) {
        Err((RefusalReason::Revoked, Error::Revoked))
    } else {
        Ok(())
    }
}
