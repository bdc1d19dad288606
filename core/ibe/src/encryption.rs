//! Encryption to an identity.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Secret, Zeroizing};
use quiver_pairing::{G1, Group, Gt, Scalar, pairing};
use rand_core::CryptoRngCore;

use crate::hashes::{HASH_LEN, h2, h3, h4};
use crate::{Error, IdentityPoint, MAX_MESSAGE_LEN, MasterPublicKey};

/// A ciphertext: U, V, W.
///
/// Encoded as U in 48 bytes, V in 32 and W in as many as the message has, 1 to 32. U has been checked: it is
/// a point of the subgroup, and not the identity.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("IbeCiphertext({} bytes)", Self::OVERHEAD + self.w.len())]
pub struct IbeCiphertext {
    pub(crate) u: G1,
    pub(crate) v: [u8; HASH_LEN],
    pub(crate) w: Vec<u8>,
}

impl IbeCiphertext {
    /// Bytes that a ciphertext has beyond those of its message.
    pub const OVERHEAD: usize = G1::ENCODED_LEN + HASH_LEN;

    /// The encoding, 80 bytes longer than the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::OVERHEAD + self.w.len());
        writer.fixed(&self.u.encode()).fixed(&self.v).fixed(&self.w);
        writer.finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`] for too few bytes, [`Error::MessageLength`] for too many or none of a message,
    /// [`Error::InvalidPoint`] if U is no point of the subgroup, or the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (u, v) = (reader.take(G1::ENCODED_LEN)?, reader.array()?);
        let w = reader.take(reader.remaining())?;
        check_length(w)?;
        // U must be in the subgroup, since the secret K is paired with it.
        let u = G1::decode(u).map_err(|_| Error::InvalidPoint("G1"))?;
        Ok(Self { u, v, w: w.to_vec() })
    }
}

impl MasterPublicKey {
    /// Encrypts to an identity once. An [`Encryptor`] does so often.
    ///
    /// # Errors
    /// [`Error::MessageLength`] unless the message has 1 to 32 bytes.
    pub fn encrypt(
        &self,
        point: &IdentityPoint,
        message: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<IbeCiphertext, Error> {
        // e(MPK, Q)^r = e(r·MPK, Q), and multiplying in G1 is cheaper.
        seal(message, &Secret::random(rng), |r| pairing(&(*self.point() * r), point.point()))
    }
}

/// Encrypts to one identity, with its point and pairing precomputed: 1,008 bytes.
#[derive(Clone, derive_more::Debug)]
#[debug("Encryptor({master:?})")]
pub struct Encryptor {
    master: MasterPublicKey,
    point: IdentityPoint,
    /// e(MPK, Q)
    paired: Gt,
}

impl Encryptor {
    /// Makes an encryptor for an identity under a master public key. Costs a pairing.
    #[must_use]
    pub fn new(master: MasterPublicKey, point: IdentityPoint) -> Self {
        Self { master, point, paired: pairing(master.point(), point.point()) }
    }

    /// The master public key of the conditions.
    #[must_use]
    pub const fn master(&self) -> &MasterPublicKey {
        &self.master
    }

    /// The point of the identity.
    #[must_use]
    pub const fn point(&self) -> &IdentityPoint {
        &self.point
    }

    /// Encrypts.
    ///
    /// # Errors
    /// [`Error::MessageLength`] unless the message has 1 to 32 bytes.
    pub fn encrypt(
        &self,
        message: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<IbeCiphertext, Error> {
        seal(message, &Secret::random(rng), |r| self.paired * r)
    }
}

/// `FullIdent`'s encryption with a given σ, where `power` gives e(MPK, Q)^r.
fn seal(
    message: &[u8],
    sigma: &Secret<HASH_LEN>,
    power: impl FnOnce(&Scalar) -> Gt,
) -> Result<IbeCiphertext, Error> {
    check_length(message)?;
    // BF01, section 4.2, Encrypt: r = H3(σ, m); U = r·P1; V = σ ⊕ H2(e(MPK, Q)^r); W = m ⊕ H4(σ)
    let r = h3(sigma, message)?;
    let paired = Zeroizing::new(power(&r));
    Ok(IbeCiphertext { u: G1::multiply_generator(&r), v: sigma.xor(&h2(&paired)), w: mask(message, sigma) })
}

/// The bytes, masked by as many of H4(σ).
pub(crate) fn mask(bytes: &[u8], sigma: &Secret<HASH_LEN>) -> Vec<u8> {
    bytes.iter().zip(h4(sigma).expose()).map(|(byte, mask)| byte ^ mask).collect()
}

fn check_length(message: &[u8]) -> Result<(), Error> {
    match message.len() {
        1..=MAX_MESSAGE_LEN => Ok(()),
        length => Err(Error::MessageLength(length)),
    }
}
