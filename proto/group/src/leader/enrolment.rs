//! Enrolment of a leader: gets its key, and proves to KGCs of a quorum that it has it. docs/protocol.md §3.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Role, Suite};
use quiver_enrolment::{EnrolmentClient, EnrolmentStep, Steps};
use quiver_machine::{Backoff, Peer, due};
use quiver_message::{Message, RefusalReason};

use super::LeaderEvent;
use super::context::LeaderContext;
use super::store::enrolled_change;

/// The enrolment of a leader, until it has its key.
#[derive(Debug)]
pub(super) struct Enrolment<S: Suite> {
    client: Option<EnrolmentClient<S>>,
}

impl<S: Suite> Enrolment<S> {
    pub(super) const fn new() -> Self {
        Self { client: None }
    }

    /// Returns true while the enrolment is under way.
    pub(super) const fn is_pending(&self) -> bool {
        self.client.is_some()
    }

    /// The enrolment to persist, with its secrets.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        self.client.as_ref().map(|client| client.encode().to_vec())
    }

    /// Resumes a stored enrolment, or starts one with the token, if there is no key. Returns whether it did.
    pub(super) fn start(&mut self, cx: &mut LeaderContext<'_, S>) -> bool {
        if cx.store.keypair.is_some() || self.is_pending() {
            return false;
        }
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));
        if let Some(pending) = cx.store.pending.take() {
            // §3.4: with the very request that the token is bound to.
            self.client = Some(EnrolmentClient::resume(pending, &cx.config.kgcs, backoff));
            return true;
        }
        let Some(token) = &cx.config.token else { return false };
        // §2.1: the identity is to lead this group.
        let leads =
            matches!(&token.token.statement.role, Role::Leader { group, .. } if *group == cx.config.group);
        match EnrolmentClient::start(&cx.config.deployment, token, &cx.config.kgcs, backoff, cx.rng) {
            Ok(client) if leads => self.client = Some(client),
            _ => cx.event(LeaderEvent::EnrolmentRefused(RefusalReason::NotAuthorised)),
        }
        self.is_pending()
    }

    /// A KGC is connected. Returns whether the leader has its key now.
    pub(super) fn connected(&mut self, cx: &mut LeaderContext<'_, S>, peer: Peer) -> bool {
        let Some(client) = &mut self.client else { return false };
        let steps = client.connected(cx.now, peer, cx.rng);
        self.take(cx, steps)
    }

    /// A connection is gone. Returns whether the leader has its key now.
    pub(super) fn disconnected(&mut self, cx: &mut LeaderContext<'_, S>, peer: Peer) -> bool {
        let Some(client) = &mut self.client else { return false };
        let steps = client.disconnected(cx.now, peer, cx.rng);
        self.take(cx, steps)
    }

    /// A message of a KGC. Returns whether the leader has its key now.
    pub(super) fn receive(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        from: Peer,
        message: &Message<S>,
    ) -> bool {
        let Some(client) = &mut self.client else { return false };
        let steps = client.receive(&cx.config.deployment, cx.now, from, message, cx.rng);
        self.take(cx, steps)
    }

    /// Asks again if that is due. Returns whether the leader has its key now.
    pub(super) fn tick(&mut self, cx: &mut LeaderContext<'_, S>) -> bool {
        if !due(self.deadline(), cx.now.monotonic) {
            return false;
        }
        let Some(client) = &mut self.client else { return false };
        // §3.1: the hello again; the request stays the same.
        let steps = client.retry(cx.now, cx.rng);
        self.take(cx, steps)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.client.as_ref().and_then(EnrolmentClient::deadline)
    }

    fn take(&mut self, cx: &mut LeaderContext<'_, S>, steps: Steps<S>) -> bool {
        let mut enrolled = false;
        for step in steps {
            match step {
                EnrolmentStep::Send(kgc, message) => cx.send(kgc, &message),
                EnrolmentStep::Wrong(from, offence) => cx.blame(from, offence),
                EnrolmentStep::Refused(reason) => cx.event(LeaderEvent::EnrolmentRefused(reason)),
                EnrolmentStep::Trouble(trouble) => cx.event(LeaderEvent::EnrolmentTrouble(trouble)),
                EnrolmentStep::Enrolled(keypair) => {
                    let name = keypair.public().identity.name.clone();
                    // §3.5: the key is durable before any message depends on it.
                    cx.persist(&[enrolled_change(&keypair)]);
                    cx.store.keypair = Some(keypair);
                    self.client = None;
                    // §3.9: no more shares are made for this token.
                    for kgc in cx.peers.kgcs.clone() {
                        prove_enrolment(cx, kgc);
                    }
                    cx.event(LeaderEvent::Enrolled { name });
                    enrolled = true;
                }
            }
        }
        enrolled
    }
}

/// §3.9: a KGC of a quorum makes no more shares for the token of a drone that proved to hold a key. Sent at
/// every contact, because there is no answer to it.
pub(super) fn prove_enrolment<S: Suite>(cx: &mut LeaderContext<'_, S>, kgc: Peer) {
    let Some(keypair) = &cx.store.keypair else { return };
    if let Some(notice) = cx.config.kgcs.notice_of_key(&cx.config.deployment, keypair, cx.rng) {
        cx.send(kgc, &notice);
    }
}
