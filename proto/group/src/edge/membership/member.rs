//! What an edge holds while it is a member.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::time::Duration;

use quiver_ainq::{Deployment, Header, Membership, StrategyKind, Suite, UnixTime};
use quiver_machine::{Backoff, Now, Peer, due, earlier};
use quiver_message::{CatchUpNumber, Message, Rekey};

use super::catch_up::CatchUp;
use super::early_updates::EarlyUpdates;
use super::leaving::Leaving;
use super::messages::Messages;
use crate::edge::EdgeContext;
use crate::statements;

/// A membership and what hangs on it.
#[derive(Debug)]
pub(in crate::edge) struct Member<S: Suite> {
    pub(in crate::edge) membership: Membership<S>,
    /// The header of the epoch held: for a leader that fell behind.
    pub(in crate::edge) header: KeptHeader<S>,
    /// Whether, since the last start, an answer to our own nonce showed that the epoch held was current.
    pub(super) anchored: bool,
    pub(super) valid_until: Option<UnixTime>,
    /// On the monotonic clock: when to ask because nothing newer came although the key runs out.
    runs_out: Option<Duration>,
    pub(super) messages: Messages,
    pub(super) catch_up: CatchUp,
    pub(in crate::edge) leaving: Leaving,
    pub(super) early: EarlyUpdates<S>,
}

impl<S: Suite> Member<S> {
    pub(in crate::edge) fn new(membership: Membership<S>, header: KeptHeader<S>, backoff: Backoff) -> Self {
        Self {
            membership,
            header,
            anchored: false,
            valid_until: None,
            runs_out: None,
            messages: Messages::default(),
            catch_up: CatchUp::new(backoff),
            leaving: Leaving::default(),
            early: EarlyUpdates::new(),
        }
    }

    /// §11.1: Whether it holds the key of an epoch that it knows to be current.
    pub(super) fn synced(&self) -> bool {
        self.anchored && self.membership.group_key().is_some()
    }

    /// Whether keys of the epoch held are missing: the group key, or the path above the member's leaf.
    pub(super) fn lacks_keys(&self) -> bool {
        self.membership.group_key().is_none() || !self.membership.has_path()
    }

    /// Whether the question of this number asked for a path that still is not there.
    pub(super) fn lacks_path_asked_for(&self, number: &CatchUpNumber) -> bool {
        let tree = self.membership.follows() == StrategyKind::Tree;
        tree && statements::lacks_keys(number) && self.lacks_keys()
    }

    /// The epoch held is nobody's to send or receive in: the key goes, the way to the next term stays.
    pub(super) fn suspend(&mut self) {
        self.anchored = false;
        self.erase_key();
        self.catch_up.cancel();
    }

    fn erase_key(&mut self) {
        self.messages.stop();
        self.membership.forget_key();
    }

    /// Notes until when the key is valid.
    pub(super) fn set_validity(&mut self, now: Now, until: UnixTime) {
        self.valid_until = Some(until);
        let left = Duration::from_secs(until.saturating_sub(now.unix));
        self.runs_out = Some(now.monotonic.saturating_add(left));
    }

    /// Erases a key that ran out: it neither sends nor receives nor is exported. Returns whether it did.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let late = due(self.runs_out, now);
        if late {
            self.runs_out = None;
            self.erase_key();
        }
        late
    }

    /// Sends a connected leader that fell behind the header held, once in a while.
    pub(super) fn send_header(&mut self, cx: &mut EdgeContext<'_, S>, leader: Peer) {
        if cx.leaders.contains(leader) && self.catch_up.heeds_hearsay(cx.now, cx.timing.retry) {
            self.header.send(cx, leader);
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let questions = earlier(self.catch_up.deadline(), self.messages.deadline());
        earlier(questions, earlier(self.runs_out, self.leaving.deadline()))
    }
}

/// A header as its canonical bytes: it is stored with every change and looked into hardly ever.
#[derive(Clone, Debug)]
pub(in crate::edge) struct KeptHeader<S: Suite> {
    bytes: Arc<[u8]>,
    suite: PhantomData<S>,
}

impl<S: Suite> KeptHeader<S> {
    pub(super) fn new(header: &Header<S>, deployment: &Deployment<S>) -> Self {
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
    pub(super) fn header(&self, deployment: &Deployment<S>) -> Option<Header<S>> {
        Header::decode(&self.bytes, deployment).ok()
    }

    /// Sends a leader the header, which it or one like it signed.
    #[inline(never)]
    pub(super) fn send(&self, cx: &mut EdgeContext<'_, S>, leader: Peer) {
        if let Some(header) = self.header(cx.deployment) {
            cx.send(leader, &Message::Rekey(Rekey { header, part: None }));
        }
    }
}
