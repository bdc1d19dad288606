//! Context shared by all parts of a member while it handles one input: settings, connections, the shares in
//! force and outputs.

use alloc::collections::BTreeMap;

use quiver_ainq::{Deployment, KgcId};
use quiver_machine::{Now, Offence, Outbox, Peer};
use quiver_message::MAX_MESSAGE_LEN;
use quiver_message::quorum::QuorumMessage;
use quiver_quorum::QuorumSuite;
use rand_core::CryptoRngCore;

use super::keys::QuorumKeys;
use super::{FEATURE, QuorumConfig, QuorumEvent, QuorumRecord};

/// State shared by the parts of a member.
#[derive(Debug)]
pub(super) struct MemberBase<S: QuorumSuite> {
    pub(super) config: QuorumConfig,
    /// Connected members.
    pub(super) links: BTreeMap<KgcId, Peer>,
    pub(super) keys: Option<QuorumKeys<S>>,
    /// Deployment of the quorum's key, once there is one.
    pub(super) deployment: Option<Deployment<S>>,
    pub(super) out: Outbox<QuorumEvent, QuorumRecord>,
}

impl<S: QuorumSuite> MemberBase<S> {
    pub(super) fn new(config: QuorumConfig) -> Self {
        Self { config, links: BTreeMap::new(), keys: None, deployment: None, out: Outbox::new() }
    }

    /// Takes keys that are durable, or about to be, as those in force.
    pub(super) fn put_in_force(&mut self, keys: QuorumKeys<S>) {
        let name = self.config.membership.name().clone();
        self.deployment = Some(Deployment::new(name, *keys.ainq().public().master()));
        self.keys = Some(keys);
    }

    /// Makes the context of one input.
    pub(super) fn context<'a>(
        &'a mut self,
        now: Now,
        rng: &'a mut dyn CryptoRngCore,
    ) -> MemberContext<'a, S> {
        let Self { config, links, keys, deployment, out } = self;
        MemberContext { now, rng, config, links, keys: keys.as_ref(), deployment: deployment.as_ref(), out }
    }
}

/// State that a part of a member reads while it handles one input, and outputs that it makes. Parts do not
/// change the shares in force: a part that has made others returns them, because all parts have state that
/// goes with the old ones.
pub(super) struct MemberContext<'a, S: QuorumSuite> {
    pub(super) now: Now,
    pub(super) rng: &'a mut dyn CryptoRngCore,
    pub(super) config: &'a QuorumConfig,
    pub(super) links: &'a BTreeMap<KgcId, Peer>,
    pub(super) keys: Option<&'a QuorumKeys<S>>,
    pub(super) deployment: Option<&'a Deployment<S>>,
    out: &'a mut Outbox<QuorumEvent, QuorumRecord>,
}

impl<S: QuorumSuite> MemberContext<'_, S> {
    /// t.
    pub(super) fn enough(&self) -> usize {
        usize::from(self.config.membership.parameters().threshold())
    }

    /// The other members.
    pub(super) fn others(&self) -> impl Iterator<Item = KgcId> + use<S> {
        self.config.membership.parameters().others(self.config.id)
    }

    /// Digest of the shares in force.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        self.keys.map(QuorumKeys::digest)
    }

    /// Sends a message to a member that is connected.
    pub(super) fn send(&mut self, to: KgcId, message: &QuorumMessage) {
        let Some(peer) = self.links.get(&to) else { return };
        let bytes = message.encode(self.config.membership.fingerprint());
        if bytes.len() <= MAX_MESSAGE_LEN {
            self.out.send_encoded(*peer, bytes);
        }
    }

    /// Sends a message to all other members that are connected.
    pub(super) fn send_to_others(&mut self, message: &QuorumMessage) {
        for kgc in self.others() {
            self.send(kgc, message);
        }
    }

    pub(super) fn event(&mut self, event: QuorumEvent) {
        self.out.event(event);
    }

    /// Makes a record durable before anything that follows is sent.
    pub(super) fn persist(&mut self, record: QuorumRecord) {
        self.out.persist(record);
    }

    pub(super) fn blame(&mut self, member: KgcId, offence: Offence) {
        self.event(QuorumEvent::Blamed { member, offence });
    }

    /// Blames a member for a message that its cryptography refuses.
    pub(super) fn blame_for(&mut self, member: KgcId, error: &quiver_quorum::Error) {
        self.blame(member, Offence::of_feature(FEATURE, error));
    }

    /// Refuses a command of the operator.
    pub(super) fn refuse(&mut self, why: &'static str) {
        self.event(QuorumEvent::Refused(why));
    }
}
