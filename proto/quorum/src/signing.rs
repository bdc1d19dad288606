//! Signing statements: a member that proposes coordinates, and at least t sign.
//!
//! ```text
//! coordinator → all       SignProposal(purpose, body)
//! member → coordinator    SignCommitment, if its own rules allow it; SignRefusal otherwise
//! coordinator → t of them SignPackage(commitments)
//! each → coordinator      SignShare
//! anyone → all            SignedStatement
//! ```
//!
//! Nonces live in memory, are used once, and are gone after a minute or a restart. That a share of a
//! revocation list was signed is durable before the share leaves.

mod coordinator;
mod signed;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Purpose, RevocationStatement};
use quiver_machine::Now;
use quiver_message::quorum::{
    QuorumMessage, SignCommitment, SignPackage, SignProposal, SignRefusal, SignRefusalReason, SignShare,
    SigningSession,
};
use quiver_quorum::{Commitment, QuorumSuite, SigningNonces, SigningPackage};
use rand_core::CryptoRngCore;

use self::coordinator::SigningAttempt;
use super::interface::purpose;
use super::retry_timer::RetryTimer;
use super::signing_policy::SigningRefusal;
use super::{QuorumNode, QuorumRecord};

/// Lifetime of a signer's nonces.
const NONCE_LIFETIME: Duration = Duration::from_secs(60);

/// A statement that a signer has committed itself to sign.
#[derive(Debug)]
struct Promise<S: QuorumSuite> {
    session: SigningSession,
    purpose: Purpose,
    body: Vec<u8>,
    version: u32,
    nonces: SigningNonces<S>,
    until: Duration,
}

/// All that a member has of signing.
#[derive(Debug)]
pub(super) struct SigningState<S: QuorumSuite> {
    /// One for each coordinator: a new one replaces the old one, whose nonces are erased.
    promises: BTreeMap<KgcId, Promise<S>>,
    /// The attempt that this member coordinates.
    attempt: Option<SigningAttempt<S>>,
    /// The highest number of a list that any member claims to have signed.
    pub(super) highest: u64,
    /// Members left out of attempts, and until when.
    left_out: BTreeMap<KgcId, Duration>,
    /// Index of the next of several statements.
    turn: usize,
    /// Time of the next attempt.
    pub(super) retry: RetryTimer,
}

impl<S: QuorumSuite> SigningState<S> {
    pub(super) fn new() -> Self {
        Self {
            promises: BTreeMap::new(),
            attempt: None,
            highest: 0,
            left_out: BTreeMap::new(),
            turn: 0,
            retry: RetryTimer::new(Duration::from_secs(2), Duration::from_secs(60)),
        }
    }

    /// Time of the next action.
    pub(super) fn deadline(&self) -> Option<Duration> {
        // §5.4: one at a time.
        self.attempt.as_ref().map_or(self.retry.deadline(), |attempt| Some(attempt.deadline))
    }

    /// Nonces are for the shares they were drawn with.
    pub(super) fn forget(&mut self) {
        self.promises.clear();
        self.attempt = None;
    }
}

/// The signed part of a body: of a revocation list its head, which has the hash of the rest; else all of it.
fn statement(purpose: Purpose, body: &[u8]) -> Result<Cow<'_, [u8]>, quiver_ainq::Error> {
    Ok(match purpose {
        Purpose::Revocation => Cow::Owned(RevocationStatement::decode(body)?.statement()),
        _ => Cow::Borrowed(body),
    })
}

impl<S: QuorumSuite> QuorumNode<S> {
    /// Handles a proposal to sign.
    pub(super) fn handle_proposal(
        &mut self,
        now: Now,
        from: KgcId,
        proposal: SignProposal,
        rng: &mut dyn CryptoRngCore,
    ) {
        let SignProposal { session, version, purpose: tag, body } = proposal;
        // §5.4: judged before anything is drawn.
        let judged = match purpose(&tag) {
            Some(purpose) => self.authorize(now.unix, from, version, purpose, &body).map(|()| purpose),
            None => Err((SignRefusalReason::Content, 0)),
        };
        let committed = judged.and_then(|purpose| self.draw(rng).map(|drawn| (purpose, drawn)));
        match committed {
            Ok((purpose, (nonces, commitment))) => {
                // §5.4: nonces live in memory, for one minute.
                let until = now.monotonic.saturating_add(NONCE_LIFETIME);
                let promise = Promise { session, purpose, body, version, nonces, until };
                self.signing.promises.insert(from, promise);
                let commitment = commitment.encode();
                self.send(from, &QuorumMessage::SignCommitment(SignCommitment { session, commitment }));
            }
            Err(why) => self.refuse_to_sign(from, session, why),
        }
    }

    /// A coordinator has found enough who sign.
    pub(super) fn handle_package(&mut self, now: Now, from: KgcId, package: &SignPackage) {
        let session = package.session;
        // §5.4: taken out: nonces are used once; after a restart the session is unknown.
        let promise = self.signing.promises.remove(&from);
        let promise = promise.filter(|promise| promise.session == session && now.monotonic <= promise.until);
        let Some(promise) = promise else {
            return self.refuse_to_sign(from, session, (SignRefusalReason::UnknownSession, 0));
        };
        let Promise { purpose, body, version, nonces, .. } = promise;
        let commitments = package.commitments.iter();
        let decoded = commitments.map(|one| Ok((one.kgc, Commitment::decode(&one.commitment)?)));
        let decoded = decoded.collect::<Result<Vec<_>, quiver_quorum::Error>>();
        let package = decoded.and_then(|commitments| self.package(version, purpose, &body, commitments));
        let package = match package {
            Ok(package) => package,
            Err(error) => return self.blame_for(from, &error),
        };
        // §5.4: once more: since the promise another list may have been signed.
        if let Err(why) = self.authorize(now.unix, from, version, purpose, &body) {
            return self.refuse_to_sign(from, session, why);
        }
        match self.sign(purpose, &body, nonces, &package) {
            Ok(share) => self.send(from, &QuorumMessage::SignShare(SignShare { session, share })),
            Err(error) => self.blame_for(from, &error),
        }
    }

    fn refuse_to_sign(&mut self, to: KgcId, session: SigningSession, (reason, number): SigningRefusal) {
        self.send(to, &QuorumMessage::SignRefusal(SignRefusal { session, reason, number }));
    }

    fn draw(&self, rng: &mut dyn CryptoRngCore) -> Result<(SigningNonces<S>, Commitment<S>), SigningRefusal> {
        let keys = self.base.keys.as_ref().ok_or((SignRefusalReason::Version, 0))?;
        keys.ainq().share().commit(rng).map_err(|_| (SignRefusalReason::Busy, 0))
    }

    /// The package to sign: built here, from a body that was authorised here.
    fn package(
        &self,
        version: u32,
        purpose: Purpose,
        body: &[u8],
        commitments: Vec<(KgcId, Commitment<S>)>,
    ) -> Result<SigningPackage<S>, quiver_quorum::Error> {
        let deployment = self.base.deployment.as_ref().ok_or(quiver_quorum::Error::WrongQuorum)?;
        let statement = statement(purpose, body).map_err(|_| quiver_quorum::Error::WrongQuorum)?;
        SigningPackage::new(version, purpose.message(deployment, &statement), commitments)
    }

    /// Signs, after making durable what that binds this member to.
    fn sign(
        &mut self,
        purpose: Purpose,
        body: &[u8],
        nonces: SigningNonces<S>,
        package: &SigningPackage<S>,
    ) -> Result<Vec<u8>, quiver_quorum::Error> {
        let keys = self.base.keys.as_ref().ok_or(quiver_quorum::Error::WrongQuorum)?;
        let share = keys.ainq().share().sign(nonces, package)?;
        // §5.4: durable before the share leaves, so that no number is given to two lists.
        if purpose == Purpose::Revocation
            && let Ok(list) = RevocationStatement::decode(body)
            && self.statements.bound.as_ref() != Some(&list)
        {
            self.statements.bound = Some(list);
            self.base.out.persist(QuorumRecord::Statements(self.statements.encode()));
        }
        // §5.4: a statement's share is no secret: the whole signature is public.
        Ok(share.encode().to_vec())
    }
}
