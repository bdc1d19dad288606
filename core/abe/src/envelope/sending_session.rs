//! A session at its sender: encapsulates a key, then seals one message after another.

use alloc::sync::Arc;
use alloc::vec::Vec;

use rand_core::CryptoRngCore;

use super::chain::Chain;
use super::header::{EnvelopeHeader, Following, Lifetime, MAX_GROUP_LEN, Opening, Prelude};
use super::sender::{self, SessionContext, Signer};
use super::stream::Sealer;
use super::{EnvelopeError, Kem, SessionId, transform};

/// A session as its sender has it: one encapsulation, then a message key after the other.
///
/// It lives in memory alone: a sender that restarts begins a new one.
#[derive(Debug)]
pub struct SendingSession {
    chain: Chain,
    opening: Opening,
    context: SessionContext,
}

/// The beginning of a message: its header, which goes first, and what seals its chunks.
#[derive(Debug)]
pub struct EnvelopeStart {
    /// The message's number in its session.
    pub number: u32,
    /// The encoded header.
    pub header: Vec<u8>,
    /// Seals the chunks that follow the header.
    pub sealer: Sealer,
}

impl SendingSession {
    /// Begins a session: encapsulates its key to a policy or to attributes. `group` is the group of the
    /// session, `None` without one, as for a file. `now` is seconds since 1970.
    ///
    /// # Errors
    /// Those of the scheme, or [`EnvelopeError::OutOfBounds`] if the group's name ([`MAX_GROUP_LEN`]), the
    /// signer's key or its signatures are too long.
    pub fn begin<K: Kem>(
        parameters: &K::Parameters,
        target: &K::Target,
        group: Option<&str>,
        signer: Option<&dyn Signer>,
        lifetime: Lifetime,
        now: u64,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, EnvelopeError> {
        let group = group.unwrap_or_default();
        if group.len() > MAX_GROUP_LEN {
            return Err(EnvelopeError::OutOfBounds("the group's name"));
        }
        let (sender, signature_len) = sender::describe(signer)?;
        let scheme = K::scheme(parameters).into();
        // §E2: everything in the prelude enters the coins, the sender and its group among it.
        let prelude = Prelude { scheme, group: group.into(), created: now, lifetime, sender, signature_len };
        let (opening, key) = transform::encapsulate::<K>(parameters, target, prelude, rng)?;
        let context = SessionContext {
            session: opening.session(),
            target: Arc::from(K::encode_target(target)),
            sender: Arc::from(&*opening.prelude.sender),
            signature_len: usize::from(signature_len),
        };
        Ok(Self { chain: Chain::new(key), opening, context })
    }

    /// The session's name.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.context.session
    }

    /// Returns true if [`message`](Self::message) would refuse.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        let (opening, next) = (&self.opening, self.chain.next());
        // §E4.1: a session ends by time and by number.
        let late = now >= opening.created().saturating_add(opening.lifetime().seconds().into());
        next >= opening.lifetime().messages() || (next > 0 && late) || now < opening.created()
    }

    /// The next message. The first carries the encapsulated key, the others the session's name. The chain's
    /// key is stepped, so that from here on nobody can derive this message's key from what the sender holds.
    ///
    /// # Errors
    /// [`EnvelopeError::SessionOver`] if its time or its number of messages has run out, or the clock went
    /// back.
    pub fn message(&mut self, now: u64) -> Result<EnvelopeStart, EnvelopeError> {
        if self.is_over(now) {
            return Err(EnvelopeError::SessionOver);
        }
        // §E2: the key of this message is derived, and the chain key before it erased.
        let (number, key) = self.chain.step();
        // §E1: the first message carries the encapsulated key, the others the session's name.
        let header = match number {
            0 => EnvelopeHeader::Opening(self.opening.clone()),
            _ => EnvelopeHeader::Following(Following { session: self.context.session, number }),
        };
        let header = header.encode();
        let sealer = Sealer::new(&key, self.context.clone(), number, &header);
        Ok(EnvelopeStart { number, header, sealer })
    }
}
