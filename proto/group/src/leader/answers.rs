//! What a leader answers a deputy: who is believed to be there, and what changed.

use core::time::Duration;

use quiver_ainq::{Error, Header, Label, Suite};
use quiver_message::{Message, Refusal, Rekey, Replica, ReplicaChunk};
use rand_core::CryptoRngCore;

use super::Leader;
use super::clocks::RanOut;
use super::replica::Staged;
use crate::statements;
use quiver_machine::{Now, Offence, Peer};

/// The pause between two questions while there is more to fetch.
const SOON: Duration = Duration::from_millis(10);

impl<S: Suite> Leader<S> {
    /// A leader will not have us, or leads no more: try another, or the same one later. A refusal is not authenticated, so
    /// it sets no pace but this one.
    pub(super) fn not_served(&mut self, now: Now, from: Peer, refusal: &Refusal) {
        let pause = self.asking_pause() / 2;
        if let Some(session) = &mut self.standby.session
            && session.peer == from
            && refusal.reference == session.nonce
        {
            session.opened = None;
            self.standby.next = Some(now.monotonic + pause);
        }
    }

    /// The leader's answer. Only one to the question under way says that it is there now.
    pub(super) fn replicated(
        &mut self,
        now: Now,
        from: Peer,
        replica: &Replica<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let digest = replica.header.digest(&self.config.deployment);
        let asked = match self.answered(from, replica, &digest) {
            None => return,
            Some(Err(error)) => return self.blame(from, error),
            Some(Ok(asked)) => asked,
        };
        self.standby.ran_out = RanOut::of(&replica.header.core, now.unix);
        match self.hear_of(now, &replica.header) {
            Ok(()) => {}
            // It answers, so it is there: perhaps it is our clock that is wrong. Its members have the same key.
            Err(Offence::Protocol(Error::Expired)) if self.may_be_of_our_clock(now, &replica.header) => {}
            Err(offence) => return self.part_with(now, from, offence),
        }
        self.standby.alive = asked;
        self.standby.overruled = 0;
        self.standby.void = false;
        match self.take_answer(from, replica, digest, rng) {
            Err(offence) => self.part_with(now, from, offence),
            Ok(more) => {
                let pause = if more { SOON } else { self.asking_pause() };
                self.standby.next = Some(now.monotonic + pause);
            }
        }
    }

    /// Whether it may be our clock alone by which a key has run out.
    fn may_be_of_our_clock(&self, now: Now, header: &Header<S>) -> bool {
        !self.standby.clock_confirmed && now.unix < header.core.leader.identity.not_after
    }

    /// When the question was asked that this answers, if the leader that was asked signed it; none if none waits for it.
    fn answered(
        &mut self,
        from: Peer,
        replica: &Replica<S>,
        digest: &[u8; 32],
    ) -> Option<Result<Duration, Error>> {
        let stands_by = self.stands_by();
        let session = self.standby.session.as_mut().filter(|_| stands_by)?;
        if session.peer != from || session.nonce != replica.nonce {
            return None;
        }
        let place = session.asked.iter().position(|(number, _)| *number == replica.number)?;
        let ((_, asked), own) = (session.asked.get(place).copied()?, self.memory.keypair.as_ref()?);
        let (leader, _) = session.opened.as_ref()?;
        let about = (&self.config.group, &replica.nonce, replica.number);
        let statement = statements::replica(about, own.public(), leader, digest, &replica.chunk);
        let signed = replica.signature.verify(&self.config.deployment, leader, Label::Replica, &statement);
        if let Err(error) = signed {
            return Some(Err(error));
        }
        if replica.header.core.leader != *leader {
            return Some(Err(Error::NotALeader));
        }
        // What was asked before will not be answered any more, and need not be.
        session.asked.drain(..=place);
        Some(Ok(asked))
    }

    /// Blames a leader and asks it anew, from the beginning and not at once.
    fn part_with(&mut self, now: Now, from: Peer, offence: Offence) {
        if offence == Offence::Protocol(Error::Stale)
            && let Some(seen) = &self.standby.seen
        {
            // It leads, but a term that is past: it steps down when it sees that.
            let rekey = Rekey { header: seen.clone(), part: None };
            self.out.send(&self.config.deployment, from, &Message::Rekey(rekey));
        }
        if let Some(session) = &mut self.standby.session {
            session.opened = None;
        }
        self.standby.next = Some(now.monotonic + self.asking_pause());
        self.blame(from, offence);
    }

    /// Whether there is more to fetch or to confirm.
    fn take_answer(
        &mut self,
        from: Peer,
        replica: &Replica<S>,
        digest: [u8; 32],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<bool, Offence> {
        let Some(session) = &mut self.standby.session else { return Ok(false) };
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
            let (deployment, group) = (&self.config.deployment, &self.config.group);
            session.staged.take(deployment, group, self.config.max_members, chunk, rng)?;
            session.received += 1;
            last
        };
        let epoch = replica.header.core.epoch;
        let news = !replica.chunk.is_empty() || self.memory.held != Some((epoch, digest));
        if last && news {
            let staged = core::mem::replace(&mut session.staged, Staged::next());
            self.commit(&staged, &replica.header, digest, rng)?;
            self.show_notices(from);
        }
        Ok(news)
    }

    /// Somebody opened a term just now, so there is a leader again: perhaps the one that says so.
    pub(super) fn turn_to(&mut self, now: Now, from: Peer) {
        self.standby.alive = now.monotonic;
        self.standby.void = false;
        self.standby.session = None;
        self.standby.next = Some(now.monotonic);
        self.standby.prefer = Some(from);
    }

    /// A newer epoch was announced: ask for what changed, if the leader asked is the one that announced it.
    pub(super) fn ask_soon(&mut self, now: Now, from: Peer) {
        if let Some(session) = &self.standby.session
            && session.peer == from
            && session.opened.is_some()
            && session.asked.is_empty()
        {
            self.standby.next = Some(now.monotonic);
        }
    }
}
