//! Takes the active leader's answers: that it is there, and what changed in its group. docs/protocol.md
//! §10.2, §10.3.

use core::time::Duration;

use quiver_ainq::{Error, Header, Label, Suite};
use quiver_machine::{Now, Offence, Peer};
use quiver_message::{Message, Refusal, Rekey, Replica, ReplicaChunk};

use super::Failover;
use super::eviction_notices::send_unheeded;
use super::replica::{StagedChunks, commit};
use super::standby::{asking_pause, own_ordinal, stands_by};
use crate::leader::clock_check::RanOut;
use crate::leader::context::LeaderContext;
use crate::leader::statements;

/// The pause between two questions while there is more to fetch.
const SOON: Duration = Duration::from_millis(10);

impl<S: Suite> Failover<S> {
    /// A leader will not have us, or leads no more: try another, or the same one later. A refusal is not
    /// authenticated, so it sets no pace but this one.
    pub(in crate::leader) fn refused(&mut self, cx: &LeaderContext<'_, S>, from: Peer, refusal: &Refusal) {
        let pause = asking_pause(cx.config) / 2;
        if let Some(session) = &mut self.session
            && session.peer == from
            && refusal.reference == session.nonce
        {
            session.opened = None;
            self.next = Some(cx.now.monotonic + pause);
        }
    }

    /// The leader's answer. Only an answer to the question under way proves that it is alive now.
    pub(in crate::leader) fn replicated(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        leading: bool,
        from: Peer,
        replica: &Replica<S>,
    ) {
        let digest = replica.header.digest(&cx.config.deployment);
        let asked = match self.answered(cx, leading, from, replica, &digest) {
            None => return,
            Some(Err(error)) => return cx.blame(from, error),
            Some(Ok(asked)) => asked,
        };
        self.ran_out = RanOut::of(&replica.header.core, cx.now.unix);
        match self.note_header(cx, leading, &replica.header, None) {
            Ok(()) => {}
            // It answers, so it is alive: perhaps it is our clock that is wrong. Its members have the same
            // key.
            Err(Offence::Protocol(Error::Expired)) if self.may_be_our_clock(cx.now, &replica.header) => {}
            Err(offence) => return self.part_with(cx, from, offence),
        }
        // §10.3: what counts is when the question was asked.
        self.alive = asked;
        self.overruled = 0;
        self.void = false;
        match self.take_chunk(cx, from, replica, digest) {
            Err(offence) => self.part_with(cx, from, offence),
            Ok(more) => {
                let pause = if more { SOON } else { asking_pause(cx.config) };
                self.next = Some(cx.now.monotonic + pause);
            }
        }
    }

    /// Returns true if it may be this leader's clock alone by which a key has run out.
    fn may_be_our_clock(&self, now: Now, header: &Header<S>) -> bool {
        !self.clock_confirmed && now.unix < header.core.leader.identity.not_after
    }

    /// The time of the question that this answers, if the leader that was asked signed it; `None` if no
    /// question waits for it.
    fn answered(
        &mut self,
        cx: &LeaderContext<'_, S>,
        leading: bool,
        from: Peer,
        replica: &Replica<S>,
        digest: &[u8; 32],
    ) -> Option<Result<Duration, Error>> {
        let stands_by = stands_by(cx.config, cx.store, leading);
        let session = self.session.as_mut().filter(|_| stands_by)?;
        if session.peer != from || session.nonce != replica.nonce {
            return None;
        }
        let place = session.asked.iter().position(|(number, _)| *number == replica.number)?;
        let ((_, asked), own) = (session.asked.get(place).copied()?, cx.store.keypair.as_ref()?);
        let (leader, _) = session.opened.as_ref()?;
        let about = (&cx.config.group, &replica.nonce, replica.number);
        // §10.3: signed over the number of our question: a recording cannot answer for a dead leader.
        let statement = statements::replica(about, own.public(), leader, digest, &replica.chunk);
        let signed = replica.signature.verify(&cx.config.deployment, leader, Label::Replica, &statement);
        if let Err(error) = signed {
            return Some(Err(error));
        }
        if replica.header.core.leader != *leader {
            return Some(Err(Error::NotALeader));
        }
        // Earlier requests will not be answered any more, and need not be.
        session.asked.drain(..=place);
        Some(Ok(asked))
    }

    /// Blames a leader and asks it anew, from the beginning and not at once.
    fn part_with(&mut self, cx: &mut LeaderContext<'_, S>, from: Peer, offence: Offence) {
        if offence == Offence::Protocol(Error::Stale)
            && let Some(seen) = &self.seen
        {
            // §10.6: it leads, but a term that is past: it steps down when it sees that.
            cx.send(from, &Message::Rekey(Rekey::new(seen.clone(), None)));
        }
        if let Some(session) = &mut self.session {
            session.opened = None;
        }
        self.next = Some(cx.now.monotonic + asking_pause(cx.config));
        cx.blame(from, offence);
    }

    /// Takes a chunk; returns true if there is more to fetch or to confirm.
    fn take_chunk(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        from: Peer,
        replica: &Replica<S>,
        digest: [u8; 32],
    ) -> Result<bool, Offence> {
        let Some(session) = &mut self.session else { return Ok(false) };
        let last = if replica.chunk.is_empty() {
            session.received > 0
        } else {
            let chunk = ReplicaChunk::decode(&replica.chunk)?;
            if chunk.number == session.received {
                // Asked for once more before it came.
                return Ok(true);
            }
            if chunk.number != session.received + 1 || chunk.first != (chunk.number == 1) {
                return Err(Error::Replay.into());
            }
            let last = chunk.last;
            let (deployment, group) = (&cx.config.deployment, &cx.config.group);
            session.staged.take(deployment, group, cx.config.max_members, chunk, cx.rng)?;
            session.received += 1;
            last
        };
        let epoch = replica.header.core.epoch;
        let news = !replica.chunk.is_empty() || cx.store.held != Some((epoch, digest));
        // §10.2: chunks are believed as a whole.
        if last && news {
            let staged = core::mem::replace(&mut session.staged, StagedChunks::next());
            let ordinal = own_ordinal(cx.store);
            commit(cx, &staged, &replica.header, digest, ordinal)?;
            send_unheeded(cx, from);
        }
        Ok(news)
    }

    /// A term was opened just now, so there is a leader again: perhaps the sender.
    pub(super) fn turn_to(&mut self, now: Now, from: Peer) {
        self.alive = now.monotonic;
        self.void = false;
        self.session = None;
        self.next = Some(now.monotonic);
        self.prefer = Some(from);
    }

    /// A newer epoch was announced: ask for what changed, if the leader asked is the one that announced it.
    pub(super) fn ask_soon(&mut self, now: Now, from: Peer) {
        if let Some(session) = &self.session
            && session.peer == from
            && session.opened.is_some()
            && session.asked.is_empty()
        {
            self.next = Some(now.monotonic);
        }
    }
}
