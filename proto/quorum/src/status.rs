//! Exchanges status among members: shares in force, lists, proposals and approvals of each.

use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_machine::{Now, Offence, Snapshot};
use quiver_message::MAX_MESSAGE_LEN;
use quiver_message::quorum::{QuorumMessage, QuorumStatus};
use quiver_quorum::QuorumSuite;
use rand_core::CryptoRngCore;

use super::interface::approval;
use super::keys::QuorumKeys;
use super::{FEATURE, QuorumEvent, QuorumNode, QuorumRecord};

/// Delay by which each member starts to sign later than the one before it, so that not all do at once.
const STAGGER: Duration = Duration::from_millis(250);

impl<S: QuorumSuite> QuorumNode<S> {
    /// Sends a message to a member that is connected.
    pub(super) fn send(&mut self, to: KgcId, message: &QuorumMessage) {
        let Some(peer) = self.base.links.get(&to) else { return };
        let bytes = message.encode(self.base.config.membership.fingerprint());
        if bytes.len() <= MAX_MESSAGE_LEN {
            self.base.out.send_encoded(*peer, bytes);
        }
    }

    pub(super) fn blame(&mut self, member: KgcId, offence: Offence) {
        self.base.out.event(QuorumEvent::Blamed { member, offence });
    }

    /// Blames a member for a message that its cryptography refuses.
    pub(super) fn blame_for(&mut self, member: KgcId, error: &quiver_quorum::Error) {
        self.blame(member, Offence::of_feature(FEATURE, error));
    }

    pub(super) fn refuse(&mut self, why: &'static str) {
        self.base.out.event(QuorumEvent::Refused(why));
    }

    /// Puts shares in force.
    pub(super) fn hold_keys(&mut self, keys: QuorumKeys<S>) {
        let version = keys.version();
        self.base.out.persist(QuorumRecord::Keys(Snapshot::new(keys.encode().to_vec())));
        self.base.put_in_force(keys);
        // §5.4: of other shares, as are statements that need no operator's approval.
        self.statements.quorum = None;
        let approvals = &self.statements.approvals;
        self.statements.proposals.retain(|body| approvals.contains(&approval(body)));
        // §5.4: nonces and repairs are for the shares that they were begun with.
        self.signing.forget();
        self.helper.forget();
        self.base.out.event(QuorumEvent::SharesInForce { version });
    }

    /// Sends this member's status.
    // §5.4: what operators want is exchanged, so that members propose only what t of them want.
    pub(super) fn send_status(&mut self, to: KgcId, asks: bool) {
        let statements = &self.statements;
        let status = QuorumStatus {
            version: self.base.keys.as_ref().map_or(0, |keys| keys.version()),
            keys: self.base.keys.as_ref().map(|keys| keys.digest()),
            list: statements.list.number(),
            statement: statements.quorum.is_some(),
            asks,
            proposed: statements.pending.drones.values().copied().collect(),
        };
        self.send(to, &QuorumMessage::Status(status));
    }

    /// Notes a change that others want to know, and that may have to be signed.
    pub(super) fn changed(&mut self, now: Now) {
        for kgc in self.base.config.membership.parameters().others(self.base.config.id) {
            self.send_status(kgc, false);
            self.pass_on(kgc);
        }
        self.hurry(now);
    }

    /// Tries to have signed what ought to be, soon, but not at the moment when all others do.
    fn hurry(&mut self, now: Now) {
        if self.base.keys.is_some() {
            // §5.4: any member coordinates; each starts a little later than the one before it.
            let turn = u32::from(self.base.config.id.saturating_sub(1));
            self.signing.retry.hurry(now.monotonic.saturating_add(STAGGER * turn));
        }
    }

    pub(super) fn handle_status(&mut self, now: Now, from: KgcId, status: QuorumStatus) {
        let asks = status.asks;
        if status.keys.is_some() && status.keys == self.base.keys.as_ref().map(|keys| keys.digest()) {
            // §5.3: what its repair was approved for is done.
            self.helper.end(from);
        }
        self.statements.received.insert(from, status);
        if asks {
            self.send_status(from, false);
        }
        self.pass_on(from);
        self.hurry(now);
    }

    /// Sends and asks for all members' status again, in case a message was lost.
    pub(super) fn tick_statuses(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !self.statements.retry.has_come(now.monotonic, rng) {
            return;
        }
        for kgc in self.base.config.membership.parameters().others(self.base.config.id) {
            self.send_status(kgc, true);
        }
    }
}
