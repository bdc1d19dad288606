//! The sessions that a receiver follows: bounded, in memory alone, and closed to replays.
//!
//! A session is remembered until its time is over, so that its opening cannot be played again; after that the opening is
//! [stale](EnvelopeError::Stale). Where there is no room left, the oldest session goes, and with it every opening of the same
//! sender that is not newer is refused from then on: forgetting never makes a replay possible.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

use super::header::{Header, Lifetime, Opening, SessionId};
use super::{EnvelopeError, ReceivingSession};

/// The most sessions that one sender may have; those nobody signs count as one sender's. Four times as many as a sender
/// should have open, because a restarted one begins anew.
pub const MAX_SESSIONS_PER_SENDER: usize = 32;
/// The most sessions altogether.
pub const MAX_SESSIONS: usize = 512;
/// The most senders of whom it is remembered what was forgotten.
const MAX_FLOORS: usize = 1024;
/// How far a sender's clock may be ahead, in seconds.
const MAX_SKEW: u64 = 300;

/// Sessions by their names.
#[derive(Debug, Default)]
pub struct Sessions {
    sessions: BTreeMap<SessionId, ReceivingSession>,
    /// Per sender: openings created up to then are refused, and until when that needs to be remembered.
    floors: BTreeMap<Digest, Floor>,
    /// The same for every sender.
    floor: Floor,
}

#[derive(Clone, Copy, Debug, Default)]
struct Floor {
    created: Option<u64>,
}

impl Sessions {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The session of this name, if its opening was read and its time is not over.
    #[must_use]
    pub fn session(&self, id: &SessionId, now: u64) -> Option<&ReceivingSession> {
        self.sessions.get(id).filter(|session| now < session.ends())
    }

    /// Whether an opening is worth being opened; costs nothing.
    ///
    /// # Errors
    /// [`EnvelopeError::Replayed`] if it was read, [`EnvelopeError::Stale`] if its time is over, lies ahead, or might have
    /// been forgotten.
    pub fn admits(&self, opening: &Opening, now: u64) -> Result<(), EnvelopeError> {
        if self.sessions.contains_key(&opening.session()) {
            return Err(EnvelopeError::Replayed(0));
        }
        let created = opening.created();
        let ends = created.saturating_add(opening.lifetime().remembered().into());
        let floor = self.floors.get(&sender(&opening.prelude.sender)).copied().unwrap_or_default();
        let forgotten = floor.created.max(self.floor.created).is_some_and(|floor| created <= floor);
        if created > now.saturating_add(MAX_SKEW) || now >= ends || forgotten {
            return Err(EnvelopeError::Stale);
        }
        Ok(())
    }

    /// Notes that the message with this header was whole and genuine. `opened` is the session, if the message is its
    /// opening.
    ///
    /// # Errors
    /// [`EnvelopeError::UnknownSession`], or as [`ReceivingSession::took`].
    pub fn took(
        &mut self,
        header: &Header,
        opened: Option<ReceivingSession>,
        now: u64,
    ) -> Result<(), EnvelopeError> {
        if let (Header::Opening(opening), Some(mut session)) = (header, opened) {
            self.admits(opening, now)?;
            session.took(0)?;
            self.make_room(&session, now);
            self.sessions.insert(session.id(), session);
            return Ok(());
        }
        let session = self.sessions.get_mut(&header.session()).ok_or(EnvelopeError::UnknownSession)?;
        session.took(header.number())
    }

    /// Forgets the sessions whose time is over.
    pub fn tick(&mut self, now: u64) {
        self.sessions.retain(|_, session| now < session.remembered_until());
        let horizon = now.saturating_sub(Lifetime::MAX_SECONDS.into());
        self.floors.retain(|_, floor| floor.created.is_some_and(|created| created >= horizon));
    }

    fn make_room(&mut self, for_: &ReceivingSession, now: u64) {
        self.tick(now);
        let same: Vec<SessionId> = self.of(for_.sender()).collect();
        if same.len() >= MAX_SESSIONS_PER_SENDER {
            self.forget_oldest(&same);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let all: Vec<SessionId> = self.sessions.keys().copied().collect();
            self.forget_oldest(&all);
        }
    }

    fn of<'a>(&'a self, sender: &'a [u8]) -> impl Iterator<Item = SessionId> + 'a {
        self.sessions.iter().filter(move |(_, session)| session.sender() == sender).map(|(id, _)| *id)
    }

    fn forget_oldest(&mut self, among: &[SessionId]) {
        let created = |id: &SessionId| self.sessions.get(id).map(ReceivingSession::created);
        let Some(oldest) = among.iter().min_by_key(|id| (created(id), **id)).copied() else {
            return;
        };
        if let Some(session) = self.sessions.remove(&oldest) {
            self.raise_floor(sender(session.sender()), session.created());
        }
    }

    fn raise_floor(&mut self, sender: Digest, created: u64) {
        let floor = self.floors.entry(sender).or_default();
        floor.created = floor.created.max(Some(created));
        if self.floors.len() <= MAX_FLOORS {
            return;
        }
        let lowest =
            self.floors.iter().min_by_key(|(_, floor)| floor.created).map(|(key, floor)| (*key, *floor));
        if let Some((key, floor)) = lowest {
            self.floors.remove(&key);
            self.floor.created = self.floor.created.max(floor.created);
        }
    }
}

fn sender(public: &[u8]) -> Digest {
    Hasher::new("quiver/1 envelope sender").lp(public).finish()
}
