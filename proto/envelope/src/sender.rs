//! Seals to the group: the sessions that this drone opened, and the opening of each.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abe::envelope::{
    AnyScheme, EnvelopeError, EnvelopeTarget, Kem, Lifetime, MAX_SESSIONS_PER_SENDER, SendingSession,
    SessionId, Signer, seal_bytes,
};
use quiver_ainq::{Name, UnixTime};
use quiver_machine::Now;
use quiver_message::MAX_PAYLOAD_LEN;
use rand_core::CryptoRngCore;

use super::message::{Envelope, MAX_ENVELOPE_LEN};
use super::part::Sessions;
use super::{EnvelopeLimits, REPEAT};

/// The most sessions that a drone has open as their sender, signed or not: receivers follow four times as
/// many of each.
const MAX_OPEN: usize = 8;
const _: () = assert!(MAX_OPEN * 4 <= MAX_SESSIONS_PER_SENDER);

/// The sessions that this drone began, oldest first.
#[derive(Debug)]
pub(super) struct EnvelopeSender {
    list: VecDeque<OpenSession>,
    /// Maximum of open sessions.
    most: usize,
}

#[derive(Debug)]
struct OpenSession {
    authority: [u8; 32],
    target: Vec<u8>,
    group: Name,
    signed: bool,
    session: SendingSession,
    until: UnixTime,
    /// The first message, to be repeated.
    opening: Vec<u8>,
    sent_at: Duration,
}

/// A message sealed.
#[derive(Debug)]
pub(crate) struct SealedEnvelope {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    pub(crate) message: Envelope,
}

/// A message to seal.
#[derive(Debug)]
pub(crate) struct SealRequest<'a> {
    /// The authority whose parameters are used.
    pub(crate) authority: &'a [u8; 32],
    /// Target of the envelope.
    pub(crate) target: &'a EnvelopeTarget,
    /// Group of the session.
    pub(crate) group: &'a Name,
    /// The plaintext.
    pub(crate) data: &'a [u8],
}

impl EnvelopeSender {
    pub(super) fn new(limits: EnvelopeLimits) -> Self {
        Self { list: VecDeque::new(), most: limits.open.clamp(1, MAX_OPEN) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn forget_old(&mut self, now: UnixTime) {
        self.list.retain(|open| now < open.until);
    }

    /// The session to go on with.
    fn to(
        &mut self,
        order: &SealRequest<'_>,
        target: &[u8],
        signed: bool,
        now: UnixTime,
    ) -> Option<&mut OpenSession> {
        // §E4.1: a session goes on until it ends by time or by number.
        self.list.iter_mut().find(|open| {
            let same =
                open.authority == *order.authority && open.target == target && open.group == *order.group;
            same && open.signed == signed && !open.session.is_over(now)
        })
    }

    fn keep(&mut self, open: OpenSession) {
        // §E4.1: 8 open at most, the oldest goes.
        if self.list.len() >= self.most {
            self.list.pop_front();
        }
        self.list.push_back(open);
    }
}

impl Sessions {
    /// Seals a message, in the session there is for the target, or a new one.
    pub(crate) fn seal(
        &mut self,
        now: Now,
        order: &SealRequest<'_>,
        signer: Option<&dyn Signer>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<SealedEnvelope, &'static str> {
        if order.data.len() > MAX_PAYLOAD_LEN {
            return Err("the message is longer than 65,536 bytes");
        }
        let target = AnyScheme::encode_target(order.target);
        let sealed = match self.sender.to(order, &target, signer.is_some(), now.unix) {
            Some(open) => resume(open, now, order.data, signer, rng),
            None => self.begin(now, order, target, signer, rng),
        };
        sealed.map_err(|error| match error {
            EnvelopeError::Scheme(_) => "it cannot be sealed to this with the authority's scheme",
            EnvelopeError::OutOfBounds(_) => "the policy or the attributes are too many",
            _ => "it cannot be sealed",
        })
    }

    fn begin(
        &mut self,
        now: Now,
        order: &SealRequest<'_>,
        target: Vec<u8>,
        signer: Option<&dyn Signer>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<SealedEnvelope, EnvelopeError> {
        let access = self.keys.of(order.authority).next();
        let parameters = access.ok_or(EnvelopeError::UnknownSession)?.parameters();
        // §E4.1: a day, and 4,096 messages.
        let lifetime = Lifetime::default();
        let session = SendingSession::begin::<AnyScheme>(
            parameters,
            order.target,
            Some(order.group.as_str()),
            signer,
            lifetime,
            now.unix,
            rng,
        )?;
        let mut open = OpenSession {
            authority: *order.authority,
            target,
            group: order.group.clone(),
            signed: signer.is_some(),
            session,
            until: now.unix.saturating_add(lifetime.seconds().into()),
            opening: Vec::new(),
            sent_at: now.monotonic,
        };
        let sealed = resume(&mut open, now, order.data, signer, rng)?;
        // §E4.2: kept, so that who missed it gets identical bytes.
        open.opening.clone_from(&sealed.message.sealed);
        self.sender.keep(open);
        Ok(sealed)
    }

    /// Handles a request for an opening: returns the first message of our session, unchanged, unless it was
    /// sent just now or too much has been repeated.
    pub(crate) fn requested(&mut self, now: Now, session: &[u8; 32]) -> Option<Envelope> {
        let Some(open) = self.sender.list.iter_mut().find(|open| open.session.id().0 == *session) else {
            // §E4.2: another's question is answered to the group, so to this drone too.
            self.receiver.overhear(now, SessionId(*session));
            return None;
        };
        // §E4.2: once a second, however many ask; of all sessions eight at once.
        if now.monotonic < open.sent_at.saturating_add(REPEAT) || !self.repeats.take(now.monotonic, 1) {
            return None;
        }
        open.sent_at = now.monotonic;
        Some(Envelope { sealed: open.opening.clone() })
    }
}

fn resume(
    open: &mut OpenSession,
    now: Now,
    data: &[u8],
    signer: Option<&dyn Signer>,
    rng: &mut dyn CryptoRngCore,
) -> Result<SealedEnvelope, EnvelopeError> {
    // §E2: K_msg of this number; the chain steps, and K_n is erased.
    let message = open.session.message(now.unix)?;
    let number = message.number;
    let sealed = seal_bytes(message, data, signer, rng)?;
    // §E4.2: at most 256 KiB, as gossip.
    if sealed.len() > MAX_ENVELOPE_LEN {
        return Err(EnvelopeError::OutOfBounds("the envelope's length"));
    }
    Ok(SealedEnvelope { session: open.session.id(), number, message: Envelope { sealed } })
}
