//! What an edge holds as a member.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::time::Duration;

use quiver_ainq::{Deployment, Epoch, Header, Membership, Suite, UnixTime};
use quiver_message::CatchUpNumber;

use super::holding::HeldBack;
use crate::speech::Voice;
use quiver_machine::Now;
use quiver_machine::{Backoff, earlier};

/// A membership and what hangs on it.
#[derive(Debug)]
pub(super) struct Member<S: Suite> {
    pub(super) membership: Membership<S>,
    /// The header of the epoch held: what to show to a leader that fell behind.
    pub(super) header: KeptHeader<S>,
    /// Whether, since the last start, an answer to our own nonce showed that the epoch held was current.
    pub(super) anchored: bool,
    pub(super) voice: Option<Voice>,
    pub(super) valid_until: Option<UnixTime>,
    /// In a box, because most of the time there is none.
    pub(super) question: Option<Box<Question>>,
    /// How many questions in a row brought nothing that is of use to us.
    pub(super) fruitless: u32,
    /// How many catch-up requests were sent since the start.
    pub(super) questions: u32,
    pub(super) backoff: Backoff,
    /// From when on hearsay may make it ask again.
    pub(super) listens: Duration,
    /// On the monotonic clock: when to ask because nothing newer came although the key runs out.
    pub(super) runs_out: Option<Duration>,
    /// On the monotonic clock: when a leader last answered a nonce of ours.
    pub(super) answered: Option<Duration>,
    /// On the monotonic clock: when to ask because no leader has answered for so long.
    pub(super) probe: Option<Duration>,
    /// Set while the edge is leaving: when to say so again.
    pub(super) leaving: Option<Duration>,
    pub(super) held_back: HeldBack<S>,
}

/// A header as its canonical bytes: it is stored with every change and looked into hardly ever.
#[derive(Clone, Debug)]
pub(super) struct KeptHeader<S: Suite> {
    bytes: Arc<[u8]>,
    suite: PhantomData<S>,
}

impl<S: Suite> KeptHeader<S> {
    pub(super) fn new(header: &Header<S>, deployment: &Deployment<S>) -> Self {
        Self { bytes: header.encode(deployment).into(), suite: PhantomData }
    }

    /// A header that was stored. Nothing says yet that it decodes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), suite: PhantomData }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the same bytes in the memory that `shared` gives for them.
    pub(super) fn share(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        let equal = shared(&self.bytes);
        if equal == self.bytes {
            self.bytes = equal;
        }
    }

    /// The header. What was encoded in this deployment decodes in it, so there always is one.
    pub(super) fn header(&self, deployment: &Deployment<S>) -> Option<Header<S>> {
        Header::decode(&self.bytes, deployment).ok()
    }
}

/// A catch-up request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) number: CatchUpNumber,
    pub(super) deadline: Duration,
    /// The epoch held when it was asked.
    pub(super) held: Epoch,
    /// Whether what came back was of no use.
    pub(super) fruitless: bool,
}

impl<S: Suite> Member<S> {
    pub(super) fn new(membership: Membership<S>, header: KeptHeader<S>, backoff: Backoff) -> Self {
        Self {
            membership,
            header,
            anchored: false,
            voice: None,
            valid_until: None,
            question: None,
            fruitless: 0,
            questions: 0,
            backoff,
            listens: Duration::ZERO,
            runs_out: None,
            answered: None,
            probe: None,
            leaving: None,
            held_back: HeldBack::new(),
        }
    }

    /// Whether it holds the key of an epoch that it knows to be current.
    pub(super) fn synced(&self) -> bool {
        self.anchored && self.membership.group_key().is_some()
    }

    /// Whether keys of the epoch held are missing: the group key, or the path above the member's leaf.
    pub(super) fn lacks_keys(&self) -> bool {
        self.membership.group_key().is_none() || !self.membership.has_path()
    }

    /// The epoch held is nobody's to speak or listen in: the key goes, the way to the next term stays.
    pub(super) fn stand_still(&mut self) {
        self.anchored = false;
        self.voice = None;
        self.membership.forget_key();
        self.question = None;
    }

    /// Notes until when the key is valid.
    pub(super) fn valid(&mut self, now: Now, until: UnixTime) {
        self.valid_until = Some(until);
        let left = Duration::from_secs(until.saturating_sub(now.unix));
        self.runs_out = Some(now.monotonic.saturating_add(left));
    }

    /// A leader has just answered a nonce of ours; so long from now is soon enough to ask again.
    pub(super) fn answered(&mut self, now: Now, probe: Option<Duration>) {
        self.answered = Some(now.monotonic);
        self.probe = probe.map(|probe| now.monotonic.saturating_add(probe));
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let asking = self.question.as_ref().map(|question| question.deadline);
        let voice = self.voice.as_ref().and_then(Voice::deadline);
        earlier(earlier(asking, voice), earlier(earlier(self.runs_out, self.probe), self.leaving))
    }
}
