//! Context shared by all parts of a leader while it handles one input: settings, stored state, connections
//! and outputs.

use core::time::Duration;

use quiver_ainq::{Error, Suite};
use quiver_crypto::Secret;
use quiver_machine::{CookieJar, Now, Offence, Outbox, Peer, Via};
use quiver_message::{Message, Refusal, RefusalReason};
use rand_core::CryptoRngCore;

use super::interface::{LeaderConfig, LeaderEvent, LeaderRecord};
use super::peers::LeaderPeers;
use super::store::{Change, LeaderStore};

/// State shared by the parts of a leader.
#[derive(Debug)]
pub(super) struct Base<S: Suite> {
    pub(super) config: LeaderConfig<S>,
    pub(super) out: Outbox<LeaderEvent, LeaderRecord>,
    pub(super) store: LeaderStore<S>,
    pub(super) peers: LeaderPeers,
    /// Challenges of joins and of deputies.
    pub(super) cookies: CookieJar,
}

impl<S: Suite> Base<S> {
    pub(super) fn new(config: LeaderConfig<S>, store: LeaderStore<S>) -> Self {
        Self {
            out: Outbox::new(),
            store,
            peers: LeaderPeers::new(),
            // Replaced by a random key at the first input, before any cookie is made.
            cookies: CookieJar::new(Secret::new([0; 32]), Duration::ZERO),
            config,
        }
    }

    /// Blames a peer outside of an input of the leader's own.
    pub(super) fn blame(&mut self, peer: Peer, offence: Offence) {
        blame(&mut self.peers, &mut self.out, peer, offence);
    }

    /// Makes the context of one input.
    pub(super) fn context<'a>(
        &'a mut self,
        now: Now,
        rng: &'a mut dyn CryptoRngCore,
    ) -> LeaderContext<'a, S> {
        let Self { config, out, store, peers, cookies } = self;
        LeaderContext { now, rng, config, out, store, peers, cookies }
    }
}

fn blame(peers: &mut LeaderPeers, out: &mut Outbox<LeaderEvent, LeaderRecord>, peer: Peer, offence: Offence) {
    // §13.8: after a forgery, or many messages that cannot be read, the peer is refused for a while.
    if let Some(misdeed) = peers.weigh(peer, &offence) {
        out.penalize(peer, misdeed);
    }
    out.event(LeaderEvent::Blamed { peer, offence });
}

/// State that a part of a leader reads and changes while it handles one input. Its own state is not in it.
pub(super) struct LeaderContext<'a, S: Suite> {
    pub(super) now: Now,
    pub(super) rng: &'a mut dyn CryptoRngCore,
    pub(super) config: &'a mut LeaderConfig<S>,
    pub(super) out: &'a mut Outbox<LeaderEvent, LeaderRecord>,
    pub(super) store: &'a mut LeaderStore<S>,
    pub(super) peers: &'a mut LeaderPeers,
    pub(super) cookies: &'a mut CookieJar,
}

impl<S: Suite> LeaderContext<'_, S> {
    pub(super) fn send(&mut self, peer: Peer, message: &Message<S>) {
        self.out.send(&self.config.deployment, peer, message);
    }

    pub(super) fn publish(&mut self, message: &Message<S>) {
        self.out.send_to_group(&self.config.deployment, message);
    }

    /// Relays the peer's group messages, and sends it those of the group, from now on: it has proven who it is (§13.7).
    pub(super) fn relay(&mut self, peer: Peer) {
        if self.peers.set_relayed(peer, true) {
            self.out.relay(peer, true);
        }
    }

    pub(super) fn event(&mut self, event: LeaderEvent) {
        self.out.event(event);
    }

    /// Makes changes durable before anything that follows is sent.
    pub(super) fn persist(&mut self, changes: &[Change]) {
        self.out.persist(Change::record(changes));
    }

    /// Refuses a request; `reference` is the nonce that it came with.
    pub(super) fn refuse(
        &mut self,
        peer: Peer,
        reason: RefusalReason,
        reference: &[u8],
        retry_after: Duration,
    ) {
        let refusal = Refusal { reason, reference: reference.to_vec(), retry_after };
        self.send(peer, &Message::Refusal(refusal));
        self.event(LeaderEvent::Refused { peer, reason });
    }

    /// Blames a peer. The sender of a forgery over its own connection is disconnected for a while.
    pub(super) fn blame(&mut self, peer: Peer, offence: impl Into<Offence>) {
        blame(self.peers, self.out, peer, offence.into());
    }

    /// Blames a peer for what an honest one may have sent too, because it could not know better.
    pub(super) fn report_offence(&mut self, peer: Peer, offence: impl Into<Offence>) {
        self.event(LeaderEvent::Blamed { peer, offence: offence.into() });
    }

    /// Blames a peer for a signature that does not hold under the key of a slot's holder. It may be a former holder's,
    /// who could not know better; who sends many is disconnected for a while (§13.8).
    pub(super) fn blame_former_holder(&mut self, peer: Peer, error: Error) {
        if error == Error::InvalidSignature
            && let Some(misdeed) = self.peers.weigh_former_holder(peer)
        {
            self.out.penalize(peer, misdeed);
        }
        self.report_offence(peer, error);
    }

    /// Returns true if a signature of this peer's may be verified now: it is spent, whether it holds or not
    /// (§10.9).
    pub(super) fn affords_check(&mut self, peer: Peer) -> bool {
        self.peers.affords_check(self.now.monotonic, peer)
    }

    /// Returns true if the message being handled was published to the group: such messages are never answered
    /// (§13.6).
    pub(super) fn published(&self) -> bool {
        self.peers.via == Via::Group
    }
}
