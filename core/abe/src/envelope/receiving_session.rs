//! A session at its receiver: opens the encapsulated key, then one message after another.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::chain::Window;
use super::header::{EnvelopeHeader, Lifetime, Opening};
use super::sender::SessionContext;
use super::stream::Opener;
use super::{EnvelopeError, Kem, SessionId, named_authority, transform};

/// A session of a receiver whose key fits.
#[derive(Debug)]
pub struct ReceivingSession {
    window: Window,
    context: SessionContext,
    group: Option<Box<str>>,
    authority: Option<[u8; 32]>,
    created: u64,
    lifetime: Lifetime,
}

impl ReceivingSession {
    /// Opens the encapsulated key of a session. Nothing is believed of it before its first message is
    /// finished.
    ///
    /// # Errors
    /// [`EnvelopeError::NotSatisfied`], [`EnvelopeError::DoesNotOpen`], or those of the scheme.
    pub fn open<K: Kem>(
        parameters: &K::Parameters,
        key: &K::Key,
        opening: &Opening,
    ) -> Result<Self, EnvelopeError> {
        // §E2: K, σ, the coins and C again; every byte is compared before anything is released.
        let (target, session_key) = transform::decapsulate::<K>(parameters, key, opening)?;
        let context = SessionContext {
            session: opening.session(),
            target: Arc::from(K::encode_target(&target)),
            sender: Arc::from(&*opening.prelude.sender),
            signature_len: usize::from(opening.prelude.signature_len),
        };
        let authority = named_authority(opening.ciphertext());
        let group = opening.group().map(Box::from);
        let (created, lifetime) = (opening.created(), opening.lifetime());
        Ok(Self { window: Window::new(session_key), context, group, authority, created, lifetime })
    }

    /// Sets the number of kept keys of messages that have not arrived.
    pub(super) fn limit_skipped(&mut self, skipped: u32) {
        self.window.limit(skipped);
    }

    /// The session's name.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.context.session
    }

    /// Public key of the session's sender, in its own encoding; empty if it is unsigned. Verified once a
    /// message was finished.
    #[must_use]
    pub fn sender(&self) -> &[u8] {
        &self.context.sender
    }

    /// The group of the session; `None` without one, as in a file.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The canonical encoding of the policy or the attributes it is sealed to.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        &self.context.target
    }

    /// Fingerprint of the authority that its ciphertext names, if that is of one of the schemes of
    /// [`AnyScheme`](super::AnyScheme).
    #[must_use]
    pub const fn authority(&self) -> Option<&[u8; 32]> {
        self.authority.as_ref()
    }

    /// Time of its beginning, in seconds since 1970.
    #[must_use]
    pub const fn created(&self) -> u64 {
        self.created
    }

    /// Time from which on no message is taken, in seconds since 1970.
    #[must_use]
    pub fn ends(&self) -> u64 {
        self.created.saturating_add(self.lifetime.seconds().into())
    }

    /// Time until which it is remembered, in seconds since 1970.
    pub(super) fn remembered_until(&self) -> u64 {
        self.created.saturating_add(self.lifetime.remembered().into())
    }

    /// Number of messages between the newest one taken and message `number`: so many steps of the session's
    /// chain are made to try it, before it is known to be genuine.
    #[must_use]
    pub const fn ahead(&self, number: u32) -> u32 {
        self.window.ahead(number)
    }

    /// The opener of the message with this header. Changes nothing: call [`took`](Self::took) once the
    /// message is finished.
    ///
    /// # Errors
    /// [`EnvelopeError::Replayed`], [`EnvelopeError::TooFarAhead`], [`EnvelopeError::SessionOver`] beyond the
    /// number of messages, [`EnvelopeError::UnknownSession`] if it belongs to another.
    pub fn opener(&self, header: &EnvelopeHeader) -> Result<Opener, EnvelopeError> {
        if header.session() != self.context.session {
            return Err(EnvelopeError::UnknownSession);
        }
        // §E4.1: a session ends by number.
        let number = header.number();
        if number >= self.lifetime.messages() {
            return Err(EnvelopeError::SessionOver);
        }
        let encoded: Vec<u8> = header.encode();
        Ok(Opener::new(&self.window.key(number)?, self.context.clone(), number, &encoded))
    }

    /// Notes that message `number` was whole and genuine: it is not opened again, and its key is erased.
    ///
    /// # Errors
    /// [`EnvelopeError::Replayed`], [`EnvelopeError::TooFarAhead`].
    pub fn took(&mut self, number: u32) -> Result<(), EnvelopeError> {
        // §E4.1: each number is accepted once.
        self.window.take(number)
    }
}
