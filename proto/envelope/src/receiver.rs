//! Opens what others sealed: their sessions, and the messages that wait for an opening.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abe::envelope::{
    AnyScheme, EnvelopeError, EnvelopeHeader, MAX_SKIPPED, Opener, Opening, ReceivingSession, SessionId,
    Sessions as Followed, Verifier, named_authority, open_bytes,
};
use quiver_ainq::Name;
use quiver_machine::Now;

use super::budget::WorkBudget;
use super::keys::AttributeKeys;
use super::part::Sessions;
use super::{EnvelopeLimits, REPEAT};
use crate::{Author, EnvelopeEvent};

/// Greatest number of sessions whose requested opening is remembered, by this drone or another.
const MAX_ASKED: usize = 64;

/// Result of a message.
#[derive(Debug)]
pub(crate) enum ReceivedEnvelope {
    /// The envelope opened.
    Opened(EnvelopeEvent),
    /// The keys do not satisfy it.
    NotSatisfied(SessionId),
    /// The envelope's encapsulated key is longer than this drone opens.
    TooLarge(SessionId),
    /// The opening of the envelope's session is missing, and to be requested.
    NoOpening(SessionId),
    /// The envelope is invalid.
    Invalid(EnvelopeError),
}

/// State of other senders' sessions.
#[derive(Debug)]
pub(super) struct EnvelopeReceiver {
    limits: EnvelopeLimits,
    sessions: Followed,
    /// Sessions that are known to be for others, or too large, newest last.
    unfit: VecDeque<SessionId>,
    asked: Vec<(SessionId, Duration)>,
    early: VecDeque<(SessionId, Vec<u8>)>,
    openings: WorkBudget,
    jumps: WorkBudget,
    asks: WorkBudget,
}

impl EnvelopeReceiver {
    pub(super) fn new(limits: EnvelopeLimits) -> Self {
        Self {
            limits,
            sessions: Followed::new(limits.sessions),
            unfit: VecDeque::new(),
            asked: Vec::new(),
            early: VecDeque::new(),
            openings: WorkBudget::new(limits.openings),
            jumps: WorkBudget::new(limits.jumps),
            asks: WorkBudget::of_broadcasts(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.asked.is_empty()
    }

    pub(super) fn reconsider(&mut self) {
        self.unfit.clear();
    }

    pub(super) fn forget_old(&mut self, now: Now) {
        self.sessions.tick(now.unix);
        self.asked.retain(|(_, at)| now.monotonic < at.saturating_add(super::TIDYING));
        let asked = &self.asked;
        self.early.retain(|(session, _)| asked.iter().any(|(asked, _)| asked == session));
    }

    fn note_unfit(&mut self, session: SessionId) {
        if self.unfit.len() >= self.limits.unfit {
            self.unfit.pop_front();
        }
        self.unfit.push_back(session);
        self.no_longer_ask(session);
        self.early.retain(|(waiting, _)| *waiting != session);
    }

    /// Opens the key in an opening, with whichever of our keys fits.
    fn open_key(
        &mut self,
        keys: &AttributeKeys,
        now: Now,
        group: Option<&Name>,
        opening: &Opening,
    ) -> Result<Option<ReceivingSession>, EnvelopeError> {
        // §E5: a file, or a message to another group: its forwarder brought it here, not its sender.
        if opening.group() != group.map(Name::as_str) || group.is_none() {
            return Ok(None);
        }
        match self.sessions.admits(opening, now.unix) {
            Ok(()) => {}
            // §E4.1: said again, or out of its time: neither is anybody's fault.
            Err(EnvelopeError::Replayed(_) | EnvelopeError::Stale) => return Ok(None),
            Err(error) => return Err(error),
        }
        let authority = named_authority(opening.ciphertext()).ok_or(EnvelopeError::NotSatisfied)?;
        // §E2: the session's name, H(sender, C), does not cover the scheme's: a wrong one beside a genuine
        // ciphertext proves nothing about it.
        if keys.of(&authority).any(|access| access.parameters().scheme() != opening.scheme()) {
            return Err(EnvelopeError::WrongScheme(opening.scheme().into()));
        }
        for (access, key) in keys.of(&authority).filter_map(|access| Some((access, access.key()?))) {
            // §E4.2: openings cost pairings: a burst of 64, and eight a second after that.
            if !self.openings.take_opening(now.monotonic, opening.ciphertext().len()) {
                return Ok(None);
            }
            match ReceivingSession::open::<AnyScheme>(access.parameters(), key, opening) {
                Err(EnvelopeError::NotSatisfied) => {}
                other => return other.map(Some),
            }
        }
        Err(EnvelopeError::NotSatisfied)
    }

    /// A message of a session that is not known: kept for a while, and its opening asked for.
    fn await_opening(&mut self, now: Now, session: SessionId, sealed: &[u8]) -> Option<ReceivedEnvelope> {
        self.early.push_back((session, sealed.to_vec()));
        // §E4.2: 16 messages are kept meanwhile.
        let (most, bytes) = self.limits.early;
        while self.early.len() > most || self.early_bytes() > bytes {
            self.early.pop_front();
        }
        let asked = self.asked_at(session);
        let again = asked.is_none_or(|at| at.saturating_add(REPEAT) <= now.monotonic);
        // §E4.2: anybody can name sessions that do not exist: they neither make a drone flood its group nor
        // shut it up.
        if !again || !self.asks.take(now.monotonic, 1) {
            return None;
        }
        self.no_longer_ask(session);
        if self.asked.len() >= MAX_ASKED {
            self.forget_oldest_question();
        }
        self.asked.push((session, now.monotonic));
        Some(ReceivedEnvelope::NoOpening(session))
    }

    fn forget_oldest_question(&mut self) {
        let oldest = self.asked.iter().min_by_key(|(_, at)| *at).map(|(session, _)| *session);
        if let Some(session) = oldest {
            self.no_longer_ask(session);
        }
    }

    /// Another drone asks for an opening: the answer goes to the group, so this one need not ask for a
    /// moment. Only its first question counts, because who asks again and again could otherwise keep this one
    /// quiet.
    pub(super) fn overhear(&mut self, now: Now, session: SessionId) {
        let known = self.sessions.session(&session, now.unix).is_some() || self.unfit.contains(&session);
        // §E4.2: an opening that another has just asked for is not asked for again.
        if !known && self.asked.len() < MAX_ASKED && self.asked_at(session).is_none() {
            self.asked.push((session, now.monotonic));
        }
    }

    /// Time at which this session's opening was requested.
    fn asked_at(&self, session: SessionId) -> Option<Duration> {
        self.asked.iter().find(|(asked, _)| *asked == session).map(|(_, at)| *at)
    }

    fn no_longer_ask(&mut self, session: SessionId) {
        self.asked.retain(|(asked, _)| *asked != session);
    }

    fn early_bytes(&self) -> usize {
        self.early.iter().map(|(_, sealed)| sealed.len()).sum()
    }

    /// Messages that waited for this session.
    fn waiting_for(&mut self, session: SessionId) -> Vec<Vec<u8>> {
        self.no_longer_ask(session);
        let (ready, early) = self.early.drain(..).partition(|(waiting, _)| *waiting == session);
        self.early = early;
        let ready: VecDeque<(SessionId, Vec<u8>)> = ready;
        ready.into_iter().map(|(_, sealed)| sealed).collect()
    }
}

impl Sessions {
    /// Takes an envelope that was sent to the drone's group, and whatever waited for it.
    pub(crate) fn receive(
        &mut self,
        now: Now,
        group: Option<&Name>,
        sealed: &[u8],
        verifier: &impl Verifier<Sender = Author>,
    ) -> Vec<ReceivedEnvelope> {
        let (first, opened) = match self.take(now, group, sealed, verifier) {
            Ok((heard, opened)) => (heard, opened),
            Err(error) => (Some(ReceivedEnvelope::Invalid(error)), None),
        };
        let mut heard: Vec<ReceivedEnvelope> = first.into_iter().collect();
        for later in opened.map(|session| self.receiver.waiting_for(session)).into_iter().flatten() {
            match self.take(now, group, &later, verifier) {
                Ok((next, _)) => heard.extend(next),
                Err(error) => heard.push(ReceivedEnvelope::Invalid(error)),
            }
        }
        heard
    }

    /// Takes one envelope; the session's name if it was opened by it.
    fn take(
        &mut self,
        now: Now,
        group: Option<&Name>,
        sealed: &[u8],
        verifier: &impl Verifier<Sender = Author>,
    ) -> Result<(Option<ReceivedEnvelope>, Option<SessionId>), EnvelopeError> {
        let (header, chunks) = EnvelopeHeader::decode(sealed)?;
        let id = header.session();
        if self.receiver.unfit.contains(&id) {
            return Ok((None, None));
        }
        let opened = match &header {
            // §E5: boards open small policies, and report what is too large for them.
            EnvelopeHeader::Opening(opening)
                if opening.ciphertext().len() > self.receiver.limits.ciphertext =>
            {
                self.receiver.note_unfit(id);
                return Ok((Some(ReceivedEnvelope::TooLarge(id)), None));
            }
            EnvelopeHeader::Opening(opening) => match self.receiver.open_key(&self.keys, now, group, opening)
            {
                Ok(Some(session)) => Some(session),
                Ok(None) => return Ok((None, None)),
                Err(EnvelopeError::NotSatisfied) => {
                    self.receiver.note_unfit(id);
                    return Ok((Some(ReceivedEnvelope::NotSatisfied(id)), None));
                }
                Err(error) => return Err(error),
            },
            EnvelopeHeader::Following(_) => None,
        };
        // §E4.2: the session's opening is missing.
        let Some(session) = opened.as_ref().or_else(|| self.receiver.sessions.session(&id, now.unix)) else {
            return Ok((self.receiver.await_opening(now, id, sealed), None));
        };
        let jumps = &mut self.receiver.jumps;
        let Some(opener) = opener((&self.keys, group), jumps, now.monotonic, session, &header)? else {
            return Ok((None, None));
        };
        let begun = session.created();
        // §E3: nothing is shown before the whole has verified.
        let (data, author) = open_bytes(opener, chunks, verifier)?;
        let first = opened.is_some().then_some(id);
        // §E4.1: the chain moves when a message has verified: a forged one changes nothing.
        self.receiver.sessions.took(&header, opened, now.unix)?;
        let (session, number) = (id.0, header.number());
        let event = EnvelopeEvent::Opened { session, number, begun, data, author };
        Ok((Some(ReceivedEnvelope::Opened(event)), first))
    }
}

/// The opener of this message of a session, if it is to be tried.
fn opener(
    (keys, group): (&AttributeKeys, Option<&Name>),
    jumps: &mut WorkBudget,
    now: Duration,
    session: &ReceivingSession,
    header: &EnvelopeHeader,
) -> Result<Option<Opener>, EnvelopeError> {
    // §E5: a session opened with a key that has been withdrawn, or exchanged for a narrower one, is not
    // continued.
    if !session.authority().is_some_and(|authority| keys.open(authority, session.target())) {
        return Ok(None);
    }
    // §E5: the drone has gone to another group since.
    if session.group() != group.map(Name::as_str) {
        return Ok(None);
    }
    let ahead = session.ahead(header.number());
    // §E4.2: messages more than 64 ahead have an allowance of their own.
    if ahead > MAX_SKIPPED && !jumps.take_jump(now, ahead) {
        return Ok(None);
    }
    match session.opener(header) {
        Ok(opener) => Ok(Some(opener)),
        // §E4.1: gossip brings some messages twice, and some after their time.
        Err(EnvelopeError::Replayed(_) | EnvelopeError::TooFarAhead(_) | EnvelopeError::SessionOver) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_questions_are_remembered_and_no_more_than_a_drone_has_room_for() {
        const ASKED: u8 = 100;
        let mut receiver = EnvelopeReceiver::new(EnvelopeLimits::default());
        for second in 0..ASKED {
            let time = Duration::from_secs(second.into());
            let now = Now { monotonic: time, unix: 1_000_000 + time.as_secs() };
            let session = SessionId([second; 32]);
            let received = receiver.await_opening(now, session, b"sealed");
            assert!(matches!(received, Some(ReceivedEnvelope::NoOpening(asked)) if asked == session));
        }
        assert_eq!(receiver.asked.len(), MAX_ASKED);
        let is_remembered = |session: u8| receiver.asked_at(SessionId([session; 32])).is_some();
        let first = ASKED - MAX_ASKED as u8;
        assert!(!(0..first).any(is_remembered) && (first..ASKED).all(is_remembered));
    }
}
