//! Schnorr's signature, bare: z·P = K + c·X with a commitment K = k·P, a challenge c and a public point X.
//!
//! Four kinds of thing are signed or proven this way. They differ in the challenge, which is the caller's:
//! statements of the KGC ([`statement`](crate::statement)), messages of drones
//! ([`signature`](crate::signature)), operators' tokens ([`token`](crate::token)) and proofs of possession in
//! an enrolment ([`enrolment`](crate::enrolment)).

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Hex, Zeroizing, hmac_sha512};
use rand_core::CryptoRngCore;

use crate::{Element, Error, SecretScalar, Suite};

/// A commitment and the response to a challenge: `S::POINT_LEN + S::SCALAR_LEN` bytes. Public.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("SchnorrSignature({}, ..)", Hex(commitment.as_bytes()))]
pub struct SchnorrSignature<S: Suite> {
    commitment: Element<S>,
    response: S::Scalar,
}

/// A nonce k and its commitment K = k·P, good for one response.
pub(crate) struct SchnorrNonce<S: Suite> {
    secret: SecretScalar<S>,
    commitment: Element<S>,
}

impl<S: Suite> SchnorrNonce<S> {
    /// Draws a hedged nonce: k = wide(HMAC(key, rand32 ‖ lp(label) ‖ message)). It repeats for another
    /// message only if both the generator and the hash are broken, and stays secret as long as one of key and
    /// generator is.
    pub(crate) fn hedged(
        key: &SecretScalar<S>,
        label: &str,
        message: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Self {
        let key_bytes = S::scalar_encode(key.expose());
        let label = Writer::new().lp(S::ID.as_bytes()).lp(label.as_bytes()).finish();
        loop {
            let mut fresh = Zeroizing::new([0; 32]);
            rng.fill_bytes(&mut *fresh);
            // §2.4: hedged: the key, fresh randomness and the message enter.
            let wide = hmac_sha512(&*key_bytes, &[&*fresh, &label, message]);
            // Refused with probability 2^-126 at most.
            if let Ok(secret) = SecretScalar::new(S::scalar_from_wide(&wide)) {
                return Self { commitment: secret.public(), secret };
            }
        }
    }

    /// K.
    pub(crate) const fn commitment(&self) -> &Element<S> {
        &self.commitment
    }

    /// k + c·x, using the nonce up.
    pub(crate) fn respond(self, challenge: &S::Scalar, key: &SecretScalar<S>) -> S::Scalar {
        // z = k + c·x; the product is erased.
        let product = Zeroizing::new(*challenge * *key.expose());
        *self.secret.expose() + *product
    }

    /// The whole signature, for a challenge that is a function of the commitment.
    pub(crate) fn sign(
        self,
        key: &SecretScalar<S>,
        challenge: impl FnOnce(&Element<S>) -> S::Scalar,
    ) -> SchnorrSignature<S> {
        let commitment = self.commitment;
        let challenge = challenge(&commitment);
        SchnorrSignature { commitment, response: self.respond(&challenge, key) }
    }
}

/// z·P = K + c·X, for a signature (K, z), a challenge c and a public point X.
pub(crate) struct Equation<'a, S: Suite> {
    pub(crate) signature: &'a SchnorrSignature<S>,
    pub(crate) challenge: S::Scalar,
    pub(crate) key: &'a Element<S>,
}

impl<S: Suite> Equation<'_, S> {
    pub(crate) fn holds(&self) -> bool {
        self.signature.satisfies(&self.challenge, self.key.point())
    }

    /// Returns true if all hold, in one product: Σ w·z · P = Σ w · K + Σ w·c · X, with weights w of 128 bits.
    ///
    /// The weights are hashes of `binding` and of every term, so that no term can be chosen after its weight;
    /// a false equation passes with probability 2^-128 for every such hash that its author computes.
    pub(crate) fn all_hold(equations: &[&Self], binding: &[u8; 32]) -> bool {
        let mut seed = Hasher::new("quiver/1 weights").fixed(binding);
        for Self { signature, challenge, key } in equations {
            seed = seed.fixed(&signature.encode()).fixed(&*S::scalar_encode(challenge)).fixed(key.as_bytes());
        }
        let seed = seed.finish();
        let mut response = S::scalar_from_u128(0);
        let mut scalars = Vec::with_capacity(2 * equations.len());
        let mut points = Vec::with_capacity(2 * equations.len());
        for (number, Self { signature, challenge, key }) in (0_u32..).zip(equations) {
            let hash = Hasher::new("quiver/1 weight").fixed(&seed).u32(number).finish();
            let (weight, _) =
                hash.split_first_chunk().map_or(([0; 16], &[][..]), |(head, rest)| (*head, rest));
            let weight = S::scalar_from_u128(u128::from_le_bytes(weight));
            // Σ w·z on one side, Σ w·K + Σ w·c·X on the other.
            response = response + weight * signature.response;
            scalars.extend([weight, weight * *challenge]);
            points.extend([*signature.commitment.point(), *key.point()]);
        }
        S::mul_base(&response) == S::vartime_multiscalar(&scalars, &points)
    }
}

impl<S: Suite> SchnorrSignature<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = S::POINT_LEN + S::SCALAR_LEN;

    /// Puts a signature together out of its parts, for instance out of a quorum's aggregate.
    pub const fn new(commitment: Element<S>, response: S::Scalar) -> Self {
        Self { commitment, response }
    }

    /// K.
    pub const fn commitment(&self) -> &Element<S> {
        &self.commitment
    }

    /// z.
    pub const fn response(&self) -> &S::Scalar {
        &self.response
    }

    /// Returns true if z·P = K + c·X.
    pub(crate) fn satisfies(&self, challenge: &S::Scalar, public: &S::Point) -> bool {
        // K = z·P − c·X
        S::vartime_mul_with_base(&S::negated(challenge), public, &self.response) == *self.commitment.point()
    }

    /// The encoding: K, then z.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::LEN);
        self.write(&mut writer);
        writer.finish()
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.fixed(self.commitment.as_bytes()).fixed(&*S::scalar_encode(&self.response));
    }

    /// Reads [`LEN`](Self::LEN) bytes and nothing after them.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`], [`Error::IdentityPoint`], [`Error::InvalidScalar`] or [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let signature = Self::read(&mut reader)?;
        reader.end()?;
        Ok(signature)
    }

    /// Reads [`LEN`](Self::LEN) bytes off the front of `reader`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let commitment = Element::read(reader)?;
        let response = S::scalar_decode(reader.take(S::SCALAR_LEN)?).ok_or(Error::InvalidScalar)?;
        Ok(Self { commitment, response })
    }
}

impl<S: Suite> PartialEq for SchnorrSignature<S> {
    fn eq(&self, other: &Self) -> bool {
        self.commitment == other.commitment
            && S::scalar_encode(&self.response) == S::scalar_encode(&other.response)
    }
}

impl<S: Suite> Eq for SchnorrSignature<S> {}
