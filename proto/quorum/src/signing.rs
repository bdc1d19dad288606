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
use quiver_message::quorum::{
    QuorumMessage, SignCommitment, SignPackage, SignProposal, SignRefusal, SignRefusalReason, SignShare,
    SigningSession,
};
use quiver_quorum::{Commitment, Error, QuorumSuite, SigningNonces, SigningPackage};

use self::coordinator::SigningAttempt;
use super::context::MemberContext;
use super::interface::purpose;
use super::retry_timer::RetryTimer;
use super::signing_policy::{SigningPolicy, SigningRefusal};
use super::statements::StatementBook;

/// Delay by which each member starts to sign later than the one before it, so that not all do at once.
const STAGGER: Duration = Duration::from_millis(250);
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

/// Rounds of signing: those that this member coordinates, and those in which others have its word.
#[derive(Debug)]
pub(super) struct SigningRounds<S: QuorumSuite> {
    /// One for each coordinator: a new one replaces the old one, whose nonces are erased.
    promises: BTreeMap<KgcId, Promise<S>>,
    /// The attempt that this member coordinates.
    attempt: Option<SigningAttempt<S>>,
    /// The highest number of a list that any member claims to have signed.
    highest: u64,
    /// Members left out of attempts, and until when.
    left_out: BTreeMap<KgcId, Duration>,
    /// Index of the next of several statements.
    turn: usize,
    /// Time of the next attempt.
    retry: RetryTimer,
}

impl<S: QuorumSuite> SigningRounds<S> {
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
    /// Tries to have signed what ought to be, soon, but not at the moment when all others do.
    pub(super) fn hurry(&mut self, cx: &MemberContext<'_, S>) {
        if cx.keys.is_some() {
            // §5.4: any member coordinates; each starts a little later than the one before it.
            let turn = u32::from(cx.config.id.saturating_sub(1));
            self.retry.hurry(cx.now.monotonic.saturating_add(STAGGER * turn));
        }
    }

    /// Tries it at once.
    pub(super) fn hurry_at_once(&mut self, cx: &MemberContext<'_, S>) {
        self.retry.hurry(cx.now.monotonic);
    }

    /// Handles a proposal to sign.
    pub(super) fn handle_proposal(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        from: KgcId,
        proposal: SignProposal,
    ) {
        let SignProposal { session, version, purpose: tag, body } = proposal;
        // §5.4: judged before anything is drawn.
        let policy = SigningPolicy::new(cx, statements);
        let judged = match purpose(&tag) {
            Some(purpose) => policy.authorize(cx.now.unix, from, version, purpose, &body).map(|()| purpose),
            None => Err((SignRefusalReason::Content, 0)),
        };
        let committed = judged.and_then(|purpose| draw(cx).map(|drawn| (purpose, drawn)));
        match committed {
            Ok((purpose, (nonces, commitment))) => {
                // §5.4: nonces live in memory, for one minute.
                let until = cx.now.monotonic.saturating_add(NONCE_LIFETIME);
                let promise = Promise { session, purpose, body, version, nonces, until };
                self.promises.insert(from, promise);
                let commitment = commitment.encode();
                cx.send(from, &QuorumMessage::SignCommitment(SignCommitment { session, commitment }));
            }
            Err(why) => refuse_to_sign(cx, from, session, why),
        }
    }

    /// A coordinator has found enough who sign.
    pub(super) fn handle_package(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &mut StatementBook<S>,
        from: KgcId,
        message: &SignPackage,
    ) {
        let session = message.session;
        // §5.4: taken out: nonces are used once; after a restart the session is unknown.
        let promise = self.promises.remove(&from);
        let promise =
            promise.filter(|promise| promise.session == session && cx.now.monotonic <= promise.until);
        let Some(promise) = promise else {
            return refuse_to_sign(cx, from, session, (SignRefusalReason::UnknownSession, 0));
        };
        let Promise { purpose, body, version, nonces, .. } = promise;
        let commitments = message.commitments.iter();
        let decoded = commitments.map(|one| Ok((one.kgc, Commitment::decode(&one.commitment)?)));
        let decoded = decoded.collect::<Result<Vec<_>, Error>>();
        let package =
            decoded.and_then(|commitments| signing_package(cx, version, purpose, &body, commitments));
        let package = match package {
            Ok(package) => package,
            Err(error) => return cx.blame_for(from, &error),
        };
        // §5.4: once more: since the promise another list may have been signed.
        let policy = SigningPolicy::new(cx, statements);
        if let Err(why) = policy.authorize(cx.now.unix, from, version, purpose, &body) {
            return refuse_to_sign(cx, from, session, why);
        }
        match sign(cx, statements, purpose, &body, nonces, &package) {
            Ok(share) => cx.send(from, &QuorumMessage::SignShare(SignShare { session, share })),
            Err(error) => cx.blame_for(from, &error),
        }
    }
}

/// The signed part of a body: of a revocation list its head, which has the hash of the rest; else all of it.
fn statement(purpose: Purpose, body: &[u8]) -> Result<Cow<'_, [u8]>, quiver_ainq::Error> {
    Ok(match purpose {
        Purpose::Revocation => Cow::Owned(RevocationStatement::decode(body)?.statement()),
        _ => Cow::Borrowed(body),
    })
}

fn refuse_to_sign<S: QuorumSuite>(
    cx: &mut MemberContext<'_, S>,
    to: KgcId,
    session: SigningSession,
    (reason, number): SigningRefusal,
) {
    cx.send(to, &QuorumMessage::SignRefusal(SignRefusal { session, reason, number }));
}

fn draw<S: QuorumSuite>(
    cx: &mut MemberContext<'_, S>,
) -> Result<(SigningNonces<S>, Commitment<S>), SigningRefusal> {
    let keys = cx.keys.ok_or((SignRefusalReason::Version, 0))?;
    keys.ainq().share().commit(cx.rng).map_err(|_| (SignRefusalReason::Busy, 0))
}

/// The package to sign: built here, from a body that was authorised here.
fn signing_package<S: QuorumSuite>(
    cx: &MemberContext<'_, S>,
    version: u32,
    purpose: Purpose,
    body: &[u8],
    commitments: Vec<(KgcId, Commitment<S>)>,
) -> Result<SigningPackage<S>, Error> {
    let deployment = cx.deployment.ok_or(Error::WrongQuorum)?;
    let statement = statement(purpose, body).map_err(|_| Error::WrongQuorum)?;
    SigningPackage::new(version, purpose.message(deployment, &statement), commitments)
}

/// Signs, after making durable what that binds this member to.
fn sign<S: QuorumSuite>(
    cx: &mut MemberContext<'_, S>,
    statements: &mut StatementBook<S>,
    purpose: Purpose,
    body: &[u8],
    nonces: SigningNonces<S>,
    package: &SigningPackage<S>,
) -> Result<Vec<u8>, Error> {
    let keys = cx.keys.ok_or(Error::WrongQuorum)?;
    let share = keys.ainq().share().sign(nonces, package)?;
    // §5.4: durable before the share leaves, so that no number is given to two lists.
    if purpose == Purpose::Revocation
        && let Ok(list) = RevocationStatement::decode(body)
        && statements.bound.as_ref() != Some(&list)
    {
        statements.bound = Some(list);
        statements.persist(cx);
    }
    // §5.4: a statement's share is no secret: the whole signature is public.
    Ok(share.encode().to_vec())
}
