//! The helper's side of a recovery.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_machine::Peer;
use quiver_message::quorum::{
    Both, Helper, QuorumMessage, RepairAnswer, RepairDelta, RepairOffer, RepairRequest, RepairStart,
    SecretBytes,
};
use quiver_quorum::{Error, QuorumSuite, repair};

use crate::QuorumEvent;
use crate::context::MemberContext;
use crate::keys::Ibe;

/// Time for which an operator's approval to help a member is valid.
const APPROVAL_LIFETIME: Duration = Duration::from_secs(3600);

/// State of this member as a helper.
#[derive(Debug)]
pub(crate) struct RecoveryHelper<S: QuorumSuite> {
    approvals: BTreeMap<KgcId, Approval>,
    /// The last request of each member without an approval, so that it is reported once.
    unapproved: BTreeMap<KgcId, [u8; 32]>,
    /// One for each member at most.
    offers: BTreeMap<KgcId, Offered>,
    repairs: BTreeMap<KgcId, Repair<S>>,
}

/// An operator's approval of one repair. It is in memory alone, so that none is good again after a restart.
#[derive(Debug)]
struct Approval {
    until: Duration,
    used: Use,
}

/// Use that was made of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    None,
    /// The member over this connection was given an answer. It may start over there, because another helper's
    /// may be wrong.
    Begun(Peer),
    /// The member has its shares.
    Over,
}

/// Standing of a member that asks for its shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Its repair is approved.
    Given,
    /// The approval was for a repair before.
    Spent,
    /// There is none.
    None,
}

/// The part that this member offers to play in one attempt of a member.
#[derive(Debug)]
struct Offered {
    nonce: [u8; 32],
    helper_nonce: [u8; 32],
}

/// A repair under way.
#[derive(Debug)]
struct Repair<S: QuorumSuite> {
    session: [u8; 32],
    helpers: Vec<KgcId>,
    ainq: repair::Helping<S>,
    ibe: repair::Helping<Ibe>,
    done: bool,
}

impl<S: QuorumSuite> RecoveryHelper<S> {
    pub(crate) fn new() -> Self {
        let (approvals, unapproved) = Default::default();
        Self { approvals, unapproved, offers: BTreeMap::new(), repairs: BTreeMap::new() }
    }

    /// Ends repairs that were begun with other shares.
    pub(crate) fn forget(&mut self) {
        self.offers.clear();
        self.repairs.clear();
    }

    /// Forgets what operators approved: another copy of this member has it, too.
    pub(crate) fn forget_approvals(&mut self) {
        self.approvals.clear();
    }

    /// Approves help: the operator reports that this member has lost its shares, and that the peer behind it
    /// now is the right one.
    pub(crate) fn approve(&mut self, cx: &mut MemberContext<'_, S>, member: KgcId) {
        let known = cx.config.membership.parameters().check(member).is_ok();
        if !known || member == cx.config.id || cx.keys.is_none() {
            return cx.refuse("there is no such member, or nothing to help it with");
        }
        // §5.3: an operator's approval is good for an hour and one repair.
        let until = cx.now.monotonic.saturating_add(APPROVAL_LIFETIME);
        self.approvals.insert(member, Approval { until, used: Use::None });
        self.unapproved.remove(&member);
    }

    fn word(&mut self, cx: &MemberContext<'_, S>, member: KgcId) -> Word {
        self.approvals.retain(|_, approval| cx.now.monotonic < approval.until);
        match self.approvals.get(&member).map(|approval| approval.used) {
            None => Word::None,
            Some(Use::None) => Word::Given,
            Some(Use::Begun(over)) if cx.links.get(&member) == Some(&over) => Word::Given,
            Some(Use::Begun(_) | Use::Over) => Word::Spent,
        }
    }

    /// A member holds the very shares that it was helped to: the approval was for these.
    pub(crate) fn end(&mut self, member: KgcId) {
        if let Some(approval) = self.approvals.get_mut(&member)
            && approval.used != Use::None
        {
            approval.used = Use::Over;
            self.offers.remove(&member);
            self.repairs.remove(&member);
        }
    }

    /// A member asks for help. Nothing is offered while this one is in a ceremony.
    pub(crate) fn handle_request(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        request: &RepairRequest,
        in_ceremony: bool,
    ) {
        let nonce = request.nonce;
        // §5.3: without its operator's approval a member helps nobody, and reports once that help is wanted.
        let word = self.word(cx, from);
        if word != Word::Given {
            if self.unapproved.insert(from, nonce) != Some(nonce) {
                cx.event(match word {
                    Word::Spent => QuorumEvent::HelpWantedAgain { by: from },
                    Word::Given | Word::None => QuorumEvent::HelpWanted { by: from },
                });
            }
            return;
        }
        // §5.3: shares that are about to be replaced must not be restored.
        let Some(keys) = cx.keys.filter(|_| !in_ceremony) else { return };
        let (version, public_shares) = (keys.version(), keys.public());
        let known = self.offers.get(&from).filter(|offered| offered.nonce == nonce);
        // §5.3: the same nonce for a repeat; after a restart a new one, so that what it drew before
        // fits no session.
        let helper_nonce = known.map(|offered| offered.helper_nonce).unwrap_or_else(|| {
            let mut fresh = [0; 32];
            cx.rng.fill_bytes(&mut fresh);
            fresh
        });
        self.offers.insert(from, Offered { nonce, helper_nonce });
        let offer = RepairOffer { nonce, helper_nonce, version, public_shares };
        cx.send(from, &QuorumMessage::RepairOffer(offer));
    }

    /// A member has chosen its helpers.
    pub(crate) fn handle_start(&mut self, cx: &mut MemberContext<'_, S>, from: KgcId, start: &RepairStart) {
        let word = self.word(cx, from);
        let known = self.repairs.get(&from).is_some_and(|repair| repair.session == start.session);
        // §5.3: an answer that got lost is given again, also over another connection: who asks knows its
        // attempt.
        if word == Word::None {
            return;
        }
        if !known {
            // §5.3: a session that contains this member's own offer of this attempt.
            if word != Word::Given || !self.is_of_our_offer(cx, from, start) {
                return;
            }
            match Repair::begin(cx, from, start) {
                Ok(repair) => drop(self.repairs.insert(from, repair)),
                Err(error) => return cx.blame_for(from, &error),
            }
        }
        // §5.3: δ_ij to every other helper, under commitments.
        let id = cx.config.id;
        for helper in start.helpers.iter().filter(|helper| helper.kgc != id) {
            self.send_delta(cx, from, helper.kgc);
        }
        self.send_answer(cx, from);
    }

    /// Returns true if the session has the right name, and includes this member's offer.
    fn is_of_our_offer(&self, cx: &MemberContext<'_, S>, from: KgcId, start: &RepairStart) -> bool {
        let Some(offered) = self.offers.get(&from) else { return false };
        let own = Helper { kgc: cx.config.id, nonce: offered.helper_nonce };
        let session = cx.config.membership.repair(from, &start.nonce, start.version, &start.helpers);
        start.session == session && start.nonce == offered.nonce && start.helpers.contains(&own)
    }

    /// Gives another helper its delta, and asks for its if that has not come.
    fn send_delta(&self, cx: &mut MemberContext<'_, S>, member: KgcId, to: KgcId) {
        let Some(repair) = self.repairs.get(&member) else { return };
        let asks = repair.ainq.missing().contains(&to) || repair.ibe.missing().contains(&to);
        let (Ok(ainq), Ok(ibe)) = (repair.ainq.delta_for(to), repair.ibe.delta_for(to)) else { return };
        let delta = Both { ainq: SecretBytes::new(ainq), ibe: SecretBytes::new(ibe) };
        let (session, commitments) = (repair.session, repair.commitments());
        let message = RepairDelta { session, member, commitments, delta, asks };
        cx.send(to, &QuorumMessage::RepairDelta(message));
    }

    pub(crate) fn handle_delta(&mut self, cx: &mut MemberContext<'_, S>, from: KgcId, message: &RepairDelta) {
        let member = message.member;
        let Some(repair) = self.repairs.get_mut(&member) else { return };
        // §5.3: of this session, from a helper that the member chose.
        if repair.session != message.session || !repair.helpers.contains(&from) {
            return;
        }
        // §5.3: every step is checked against the commitments: a liar is named by the helper that finds it.
        if let Err(error) = repair.take(from, message) {
            return cx.blame_for(from, &error);
        }
        if message.asks {
            self.send_delta(cx, member, from);
        }
        self.send_answer(cx, member);
    }

    /// Sends the member its part, once all deltas are there.
    fn send_answer(&mut self, cx: &mut MemberContext<'_, S>, to: KgcId) {
        let Some(repair) = self.repairs.get_mut(&to) else { return };
        // §5.3: σ_j, once all δ_ij are there.
        let (Ok(ainq), Ok(ibe)) = (repair.ainq.answer(), repair.ibe.answer()) else { return };
        let first = !core::mem::replace(&mut repair.done, true);
        if let (Some(approval), Some(peer)) = (self.approvals.get_mut(&to), cx.links.get(&to)) {
            // §5.3: the approval is used as soon as an answer leaves.
            if approval.used == Use::None {
                approval.used = Use::Begun(*peer);
            }
        }
        let answer = Both { ainq: SecretBytes::new(ainq), ibe: SecretBytes::new(ibe) };
        let message = RepairAnswer { session: repair.session, commitments: repair.commitments(), answer };
        cx.send(to, &QuorumMessage::RepairAnswer(message));
        if first {
            cx.event(QuorumEvent::Helped { member: to });
        }
    }
}

impl<S: QuorumSuite> Repair<S> {
    fn begin(cx: &mut MemberContext<'_, S>, lost: KgcId, start: &RepairStart) -> Result<Self, Error> {
        let keys = cx.keys.ok_or(Error::WrongQuorum)?;
        let (expected, actual) = (keys.version(), start.version);
        // §5.3: helpers have shares of one version.
        if expected != actual {
            return Err(Error::WrongVersion { expected, actual });
        }
        let helpers: Vec<KgcId> = start.helpers.iter().map(|helper| helper.kgc).collect();
        let (session, key) = (start.session, keys.ainq());
        let ainq = repair::Helping::new(key.share(), key.public(), &helpers, lost, session, cx.rng)?;
        let key = keys.ibe();
        let ibe = repair::Helping::new(key.share(), key.public(), &helpers, lost, session, cx.rng)?;
        Ok(Self { session, helpers, ainq, ibe, done: false })
    }

    fn commitments(&self) -> Both<Vec<u8>> {
        Both { ainq: self.ainq.package().to_vec(), ibe: self.ibe.package().to_vec() }
    }

    fn take(&mut self, from: KgcId, message: &RepairDelta) -> Result<(), Error> {
        self.ainq.receive_package(from, &message.commitments.ainq)?;
        self.ibe.receive_package(from, &message.commitments.ibe)?;
        self.ainq.receive_delta(from, message.delta.ainq.expose())?;
        self.ibe.receive_delta(from, message.delta.ibe.expose())
    }
}
