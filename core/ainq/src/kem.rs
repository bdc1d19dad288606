//! The second factor of pairwise secrets: κ, a secret of a drone and a leader that no point leads to.
//!
//! An adversary that records a group and computes discrete logarithms later has every T. W starts from T and
//! κ, so such a recording stays closed. κ comes from one exchange of ML-KEM and then steps with the terms
//! that its leader opens.
//!
//! | protocol | meaning | code |
//! |---|---|---|
//! | κ = HKDF-Extract(ctx_κ, shared secret) | once for a drone and a leader | [`KemKey::derive`] |
//! | g | counts the terms that the leader opened | [`KemTerm`] |
//! | κ\[g+1\] = PRF(κ\[g\], "kem step", leader ‖ g) | one step per term; what was before is erased | [`KemKey::step_to`] |
//! | PRF(κ\[g\], "kem tag", "") | names κ at a join, and changes with g | [`KemKey::tag`] |
//! | W\[b\] = HKDF-Extract(ctx', lp(T) ‖ lp(κ\[g\])) | start of the chain | [`Ratchet::derive_with`] |
//!
//! [`Ratchet::derive_with`]: crate::Ratchet::derive_with

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::marker::PhantomData;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, ct_eq, extract, prf};
use quiver_kem::KemSet;

use crate::slots::Slot;
use crate::{AgreedSecret, Deployment, Epoch, Error, Handle, Name, Suite};

/// Greatest number of steps that κ takes at once: whoever missed more terms of a leader makes a new κ with
/// it. So no leader makes its members hash for long.
pub const MAX_KEM_STEPS: u64 = 1 << 12;
/// Bytes of the tag that names κ.
pub const KEM_TAG_LEN: usize = 16;

/// The tag that names κ.
pub type KemTag = [u8; KEM_TAG_LEN];

/// Parameter set of a term's second factor, and g: how many terms its leader had opened when it opened this
/// one, this one included. From 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KemTerm {
    set: KemSet,
    g: u64,
}

impl KemTerm {
    /// A set and a count.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a count of 0, or above 2^48.
    pub const fn new(set: KemSet, g: u64) -> Result<Self, Error> {
        // As counters of epochs: no step is made beyond.
        if g == 0 || g > Epoch::MAX_COUNTER { Err(Error::Malformed("kem")) } else { Ok(Self { set, g }) }
    }

    /// The parameter set.
    #[must_use]
    pub const fn set(&self) -> KemSet {
        self.set
    }

    /// g.
    #[must_use]
    pub const fn g(&self) -> u64 {
        self.g
    }

    /// Writes set (1 byte) and g (8).
    pub fn write(&self, writer: &mut Writer) {
        writer.u8(self.set.code()).u64(self.g);
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let set = KemSet::from_code(reader.u8()?).ok_or(Error::Malformed("kem"))?;
        Self::new(set, reader.u64()?)
    }
}

/// Everything public that κ depends on: the drone and the leader that share it, and their exchange.
#[derive(Clone, Copy, Debug)]
pub struct KemPair<'a, S: Suite> {
    /// Deployment of the drone and the leader.
    pub deployment: &'a Deployment<S>,
    /// The group that the leader leads.
    pub group: &'a Name,
    /// The leader.
    pub leader: &'a Handle,
    /// The drone.
    pub drone: &'a Handle,
    /// The drone's encapsulation key.
    pub key: &'a [u8],
    /// The leader's ciphertext.
    pub ciphertext: &'a [u8],
}

/// κ\[g\] of a drone and a leader. Erased on drop.
#[derive(Clone, derive_more::Debug)]
#[debug("KemKey {{ term: {term:?}, .. }}")]
pub struct KemKey<S: Suite> {
    term: KemTerm,
    key: Secret<32>,
    suite: PhantomData<S>,
}

impl<S: Suite> KemKey<S> {
    /// Bytes of [`encode`](Self::encode).
    pub const ENCODED_LEN: usize = 1 + 8 + 32;

    /// κ from the shared secret of an exchange, in a term of the leader.
    #[must_use]
    pub fn derive(term: KemTerm, shared: &Secret<32>, pair: &KemPair<'_, S>) -> Self {
        // §24.2: H("quiver/1 kem exchange", lp(ek), lp(ct)).
        let exchange = Hasher::new("quiver/1 kem exchange").lp(pair.key).lp(pair.ciphertext).finish();
        // §24.2: ctx_κ = H("quiver/1 kem", suite, deployment, lp(group), leader, drone, set, H(exchange)).
        let context = Hasher::new("quiver/1 kem")
            .lp(S::ID.as_bytes())
            .fixed(&pair.deployment.fingerprint())
            .lp(pair.group.as_bytes())
            .fixed(pair.leader.as_bytes())
            .fixed(pair.drone.as_bytes())
            .u8(term.set.code())
            .fixed(&exchange)
            .finish();
        Self { term, key: extract(&context, shared.expose()), suite: PhantomData }
    }

    /// Set and count.
    #[must_use]
    pub const fn term(&self) -> KemTerm {
        self.term
    }

    /// κ at a count of its leader's. The state before it is erased.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is past that, [`Error::Exhausted`] if it is more than [`MAX_KEM_STEPS`] ahead
    /// or none. Nothing changes then.
    pub fn step_to(&mut self, leader: &Handle, g: u64) -> Result<(), Error> {
        // §24.3: never back, and at most `MAX_KEM_STEPS` forward.
        let ahead = g.checked_sub(self.term.g).ok_or(Error::Stale)?;
        if ahead > MAX_KEM_STEPS || g > Epoch::MAX_COUNTER {
            return Err(Error::Exhausted);
        }
        while self.term.g < g {
            let count = self.term.g.to_be_bytes();
            // §24.3: κ[g+1] = PRF(κ[g], "kem step", leader ‖ g); the old one is erased.
            self.key = prf(&self.key, S::ID, "kem step", &[leader.as_bytes(), &count]);
            self.term.g += 1;
        }
        Ok(())
    }

    /// A copy of κ in a term of its leader, stepped as far as that is.
    ///
    /// # Errors
    /// Errors of [`step_to`](Self::step_to); [`Error::MissingKem`] if it is of another set.
    pub fn at(&self, leader: &Handle, term: KemTerm) -> Result<Self, Error> {
        if self.term.set != term.set {
            return Err(Error::MissingKem);
        }
        let mut stepped = self.clone();
        stepped.step_to(leader, term.g)?;
        Ok(stepped)
    }

    /// Names κ to who has it, and says nothing to others.
    #[must_use]
    pub fn tag(&self) -> KemTag {
        // §24.5: the first 16 bytes of PRF(κ[g], "kem tag", "").
        let tag = prf(&self.key, S::ID, "kem tag", &[]);
        let mut short = [0; KEM_TAG_LEN];
        short.iter_mut().zip(tag.expose()).for_each(|(to, from)| *to = *from);
        short
    }

    /// Returns true if a tag names this κ; in constant time, because a tag is derived from it.
    #[must_use]
    pub fn is_named(&self, tag: &KemTag) -> bool {
        ct_eq(&self.tag(), tag)
    }

    /// W and A from T and κ.
    pub(crate) fn start_chain(&self, secret: &AgreedSecret, context: &Digest) -> (Secret<32>, Secret<32>) {
        // §24.3: ctx' = H("quiver/1 kem pair", ctx, set, g).
        let salt = Hasher::new("quiver/1 kem pair").fixed(context).u8(self.term.set.code()).u64(self.term.g);
        let mut both = Writer::with_capacity(2 * 4 + secret.expose().len() + 32);
        // §24.3: lp(T) ‖ lp(κ[g]).
        both.lp(secret.expose()).lp(self.key.expose());
        let both = Zeroizing::new(both.finish());
        // §24.3: W[b] = HKDF-Extract(salt = ctx', IKM), A = PRF(W[b], "auth", "").
        let chain = extract(&salt.finish(), &both);
        let auth = prf(&chain, S::ID, "auth", &[]);
        (chain, auth)
    }

    /// For an encrypted state: set (1 byte), g (8), κ (32).
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(Self::ENCODED_LEN);
        self.term.write(&mut writer);
        writer.fixed(self.key.expose());
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (term, key) = (KemTerm::read(&mut reader)?, Secret::new(reader.array()?));
        reader.end()?;
        Ok(Self { term, key, suite: PhantomData })
    }
}

/// κ of the members with which a leader opens a term.
#[derive(Debug)]
pub struct TermKeys<S: Suite> {
    term: KemTerm,
    keys: BTreeMap<Slot, KemKey<S>>,
}

impl<S: Suite> TermKeys<S> {
    /// Of a term; what is of another set or count is left out.
    #[must_use]
    pub fn new(term: KemTerm, keys: impl IntoIterator<Item = (Slot, KemKey<S>)>) -> Self {
        Self { term, keys: keys.into_iter().filter(|(_, key)| key.term == term).collect() }
    }

    /// Set and count of the term.
    #[must_use]
    pub const fn term(&self) -> KemTerm {
        self.term
    }

    /// κ of a member.
    #[must_use]
    pub fn key(&self, slot: Slot) -> Option<&KemKey<S>> {
        self.keys.get(&slot)
    }
}

/// Returns true if κ is what a header demands: of its set and its count, or none if it names none.
pub(crate) fn check_term<S: Suite>(term: Option<&KemTerm>, key: Option<&KemKey<S>>) -> Result<(), Error> {
    match (term, key) {
        (None, None) => Ok(()),
        (Some(term), Some(key)) if key.term == *term => Ok(()),
        (Some(_), _) => Err(Error::MissingKem),
        (None, Some(_)) => Err(Error::OtherKem),
    }
}
