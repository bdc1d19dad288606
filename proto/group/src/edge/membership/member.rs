//! What an edge holds as a member.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::time::Duration;

use quiver_ainq::{Deployment, Epoch, Header, Membership, Suite, UnixTime};
use quiver_message::CatchUpNumber;

use super::early_updates::EarlyUpdates;
use crate::speech::Voice;
use quiver_machine::Now;
use quiver_machine::{Backoff, earlier};

/// A membership and what hangs on it.
#[derive(Debug)]
pub(in crate::edge) struct Member<S: Suite> {
    pub(in crate::edge) membership: Membership<S>,
    /// The header of the epoch held: what to show to a leader that fell behind.
    pub(in crate::edge) header: KeptHeader<S>,
    /// Whether, since the last start, an answer to our own nonce showed that the epoch held was current.
    pub(in crate::edge) anchored: bool,
    pub(in crate::edge) voice: Option<Voice>,
    pub(in crate::edge) valid_until: Option<UnixTime>,
    /// In a box, because most of the time there is none.
    pub(in crate::edge) question: Option<Box<PendingRequest>>,
    /// How many questions in a row brought nothing that is of use to us.
    pub(in crate::edge) fruitless: u32,
    /// How many catch-up requests were sent since the start.
    pub(in crate::edge) questions: u32,
    pub(in crate::edge) backoff: Backoff,
    /// From when on hearsay may make it ask again.
    pub(in crate::edge) listens: Duration,
    /// On the monotonic clock: when to ask because nothing newer came although the key runs out.
    pub(in crate::edge) runs_out: Option<Duration>,
    /// On the monotonic clock: when a leader last answered a nonce of ours.
    pub(in crate::edge) answered: Option<Duration>,
    /// On the monotonic clock: when to ask because no leader has answered for so long.
    pub(in crate::edge) probe: Option<Duration>,
    /// Set while the edge is leaving: when to say so again.
    pub(in crate::edge) leaving: Option<Duration>,
    pub(in crate::edge) early: EarlyUpdates<S>,
}

/// A header as its canonical bytes: it is stored with every change and looked into hardly ever.
#[derive(Clone, Debug)]
pub(in crate::edge) struct KeptHeader<S: Suite> {
    bytes: Arc<[u8]>,
    suite: PhantomData<S>,
}

impl<S: Suite> KeptHeader<S> {
    pub(in crate::edge) fn new(header: &Header<S>, deployment: &Deployment<S>) -> Self {
        Self { bytes: header.encode(deployment).into(), suite: PhantomData }
    }

    /// A header that was stored. Nothing says yet that it decodes.
    pub(in crate::edge) fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), suite: PhantomData }
    }

    pub(in crate::edge) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the same bytes in the memory that `shared` gives for them.
    pub(in crate::edge) fn share(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        let equal = shared(&self.bytes);
        if equal == self.bytes {
            self.bytes = equal;
        }
    }

    /// The header. What was encoded in this deployment decodes in it, so there always is one.
    pub(in crate::edge) fn header(&self, deployment: &Deployment<S>) -> Option<Header<S>> {
        Header::decode(&self.bytes, deployment).ok()
    }
}

/// A catch-up request under way.
#[derive(Clone, Copy, Debug)]
pub(in crate::edge) struct PendingRequest {
    pub(in crate::edge) number: CatchUpNumber,
    pub(in crate::edge) deadline: Duration,
    /// The epoch held when it was asked.
    pub(in crate::edge) held: Epoch,
    /// Whether what came back was of no use.
    pub(in crate::edge) fruitless: bool,
}

impl<S: Suite> Member<S> {
    pub(in crate::edge) fn new(membership: Membership<S>, header: KeptHeader<S>, backoff: Backoff) -> Self {
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
            early: EarlyUpdates::new(),
        }
    }

    /// Whether it holds the key of an epoch that it knows to be current.
    pub(in crate::edge) fn synced(&self) -> bool {
        self.anchored && self.membership.group_key().is_some()
    }

    /// Whether keys of the epoch held are missing: the group key, or the path above the member's leaf.
    pub(in crate::edge) fn lacks_keys(&self) -> bool {
        self.membership.group_key().is_none() || !self.membership.has_path()
    }

    /// The epoch held is nobody's to speak or listen in: the key goes, the way to the next term stays.
    pub(in crate::edge) fn stand_still(&mut self) {
        self.anchored = false;
        self.voice = None;
        self.membership.forget_key();
        self.question = None;
    }

    /// Notes until when the key is valid.
    pub(in crate::edge) fn valid(&mut self, now: Now, until: UnixTime) {
        self.valid_until = Some(until);
        let left = Duration::from_secs(until.saturating_sub(now.unix));
        self.runs_out = Some(now.monotonic.saturating_add(left));
    }

    /// A leader has just answered a nonce of ours; so long from now is soon enough to ask again.
    pub(in crate::edge) fn answered(&mut self, now: Now, probe: Option<Duration>) {
        self.answered = Some(now.monotonic);
        self.probe = probe.map(|probe| now.monotonic.saturating_add(probe));
    }

    pub(in crate::edge) fn deadline(&self) -> Option<Duration> {
        let asking = self.question.as_ref().map(|question| question.deadline);
        let voice = self.voice.as_ref().and_then(Voice::deadline);
        earlier(earlier(asking, voice), earlier(earlier(self.runs_out, self.probe), self.leaving))
    }
}
