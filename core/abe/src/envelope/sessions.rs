//! The sessions of a receiver: a bounded number, in memory only, with protection against replays.
//!
//! A session is remembered until its time is over, so that its opening cannot be played again; after that the
//! opening is [stale](EnvelopeError::Stale). Where there is no room left, the oldest session goes, and with
//! it every opening of the same sender that is not newer is refused from then on: forgetting never makes a
//! replay possible.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

use super::header::{EnvelopeHeader, Lifetime, Opening, SessionId};
use super::{EnvelopeError, MAX_SKIPPED, ReceivingSession};

/// Greatest number of sessions of one sender; unsigned ones count as one sender's. Four times as many as a
/// sender should have open, because a restarted one begins anew.
pub const MAX_SESSIONS_PER_SENDER: usize = 32;
/// The most sessions altogether.
pub const MAX_SESSIONS: usize = 512;
/// The most senders of whom it is remembered what was forgotten.
const MAX_SENDERS: usize = 1024;
/// Greatest lead of a sender's clock, in seconds.
const MAX_SKEW: u64 = 300;

/// Limits of a receiver's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Altogether.
    pub sessions: usize,
    /// Sessions of one sender. A sender of this crate's roles has eight open at most.
    pub per_sender: usize,
    /// Senders of whom it is remembered what was forgotten. Beyond, openings of every sender are refused that
    /// are as old.
    pub senders: usize,
    /// Keys kept for messages of one session that have not come: [`MAX_SKIPPED`] at most.
    pub skipped: u32,
}

impl Default for SessionLimits {
    /// Limits of services: [`MAX_SESSIONS`], [`MAX_SESSIONS_PER_SENDER`].
    fn default() -> Self {
        Self {
            sessions: MAX_SESSIONS,
            per_sender: MAX_SESSIONS_PER_SENDER,
            senders: MAX_SENDERS,
            skipped: MAX_SKIPPED,
        }
    }
}

/// Sessions by their names.
#[derive(Debug, Default)]
pub struct Sessions {
    limits: SessionLimits,
    sessions: Vec<ReceivingSession>,
    /// Floors per sender: openings created up to then are refused; with the time until which that needs to be
    /// remembered.
    floors: Vec<(Digest, CreationFloor)>,
    /// The same for every sender.
    floor: CreationFloor,
}

#[derive(Clone, Copy, Debug, Default)]
struct CreationFloor {
    created: Option<u64>,
}

impl Sessions {
    /// Makes an empty set of sessions with these limits.
    #[must_use]
    pub fn new(limits: SessionLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The session of this name, if its opening was read and its time is not over.
    #[must_use]
    pub fn session(&self, id: &SessionId, now: u64) -> Option<&ReceivingSession> {
        self.sessions.iter().find(|session| session.id() == *id).filter(|session| now < session.ends())
    }

    /// Checks that an opening is worth being opened; costs nothing.
    ///
    /// # Errors
    /// [`EnvelopeError::Replayed`] if it was read, [`EnvelopeError::Stale`] if its time is over, lies ahead,
    /// or might have been forgotten.
    pub fn admits(&self, opening: &Opening, now: u64) -> Result<(), EnvelopeError> {
        // §E4.1: an opening is accepted once.
        if self.sessions.iter().any(|session| session.id() == opening.session()) {
            return Err(EnvelopeError::Replayed(0));
        }
        let created = opening.created();
        let ends = created.saturating_add(opening.lifetime().remembered().into());
        let sender = sender(&opening.prelude.sender);
        let floor =
            self.floors.iter().find(|(of, _)| *of == sender).map(|(_, floor)| *floor).unwrap_or_default();
        // §E4.1: nothing that was forgotten returns: openings not newer than the floor are refused.
        let forgotten = floor.created.max(self.floor.created).is_some_and(|floor| created <= floor);
        if created > now.saturating_add(MAX_SKEW) || now >= ends || forgotten {
            return Err(EnvelopeError::Stale);
        }
        Ok(())
    }

    /// Notes that the message with this header was whole and genuine. `opened` is the session, if the message
    /// is its opening.
    ///
    /// # Errors
    /// [`EnvelopeError::UnknownSession`], or as [`ReceivingSession::took`].
    pub fn took(
        &mut self,
        header: &EnvelopeHeader,
        opened: Option<ReceivingSession>,
        now: u64,
    ) -> Result<(), EnvelopeError> {
        if let (EnvelopeHeader::Opening(opening), Some(mut session)) = (header, opened) {
            // Again, at the time of acceptance: another opening may have come in between.
            self.admits(opening, now)?;
            session.limit_skipped(self.limits.skipped);
            session.took(0)?;
            self.make_room(&session, now);
            self.sessions.push(session);
            return Ok(());
        }
        let session = self.sessions.iter_mut().find(|session| session.id() == header.session());
        let session = session.ok_or(EnvelopeError::UnknownSession)?;
        session.took(header.number())
    }

    /// Forgets the sessions that have ended.
    pub fn tick(&mut self, now: u64) {
        self.sessions.retain(|session| now < session.remembered_until());
        let horizon = now.saturating_sub(Lifetime::MAX_SECONDS.into());
        self.floors.retain(|(_, floor)| floor.created.is_some_and(|created| created >= horizon));
    }

    fn make_room(&mut self, for_: &ReceivingSession, now: u64) {
        self.tick(now);
        let of_sender = |session: &ReceivingSession| session.sender() == for_.sender();
        // §E4.1: where there is no room the sender's own oldest session goes first, then the oldest of all.
        if self.sessions.iter().filter(|session| of_sender(session)).count() >= self.limits.per_sender.max(1)
        {
            self.forget_oldest(of_sender);
        }
        if self.sessions.len() >= self.limits.sessions.max(1) {
            self.forget_oldest(|_| true);
        }
    }

    fn forget_oldest(&mut self, among: impl Fn(&ReceivingSession) -> bool) {
        let candidates = self.sessions.iter().enumerate().filter(|(_, session)| among(session));
        let oldest = candidates.min_by_key(|(_, session)| (session.created(), session.id()));
        if let Some(place) = oldest.map(|(place, _)| place) {
            let session = self.sessions.remove(place);
            self.raise_floor(sender(session.sender()), session.created());
        }
    }

    fn raise_floor(&mut self, sender: Digest, created: u64) {
        match self.floors.iter_mut().find(|(of, _)| *of == sender) {
            Some((_, floor)) => floor.created = floor.created.max(Some(created)),
            None => self.floors.push((sender, CreationFloor { created: Some(created) })),
        }
        if self.floors.len() <= self.limits.senders {
            return;
        }
        // The lowest floor becomes the one of all senders.
        let lowest = self.floors.iter().enumerate().min_by_key(|(_, (_, floor))| floor.created);
        if let Some(place) = lowest.map(|(place, _)| place) {
            let (_, floor) = self.floors.swap_remove(place);
            self.floor.created = self.floor.created.max(floor.created);
        }
    }
}

fn sender(public: &[u8]) -> Digest {
    Hasher::new("quiver/1 envelope sender").lp(public).finish()
}
