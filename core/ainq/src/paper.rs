//! The seven algorithms as published. **Unauthenticated: for experiments only.**
//!
//! Source: Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver: A Secure Certificateless Group Key
//! Distribution Protocol for Drones*, NordSec 2021, eprint 2021/1372, section 4 (construction).
//!
//! | paper | meaning | here |
//! |---|---|---|
//! | params, P_pub | public parameters | [`PublicParameters`] |
//! | x | master secret | [`MasterSecret`] |
//! | x_i, P_i | secret and public value | [`SecretValue`], `p` of [`PaperDrone`] |
//! | s_i, R_i | partial private and public key | [`PartialKey`] |
//! | Y_i = R_i + H0(D_i,R_i,P_i)·P_pub + P_i | implicit public key | `implicit` of [`PaperDrone`] |
//! | y_i = s_i + x_i | full private key | [`FullKey`] |
//! | l_k, V = l_k·P | the leader's secret and its point | [`GroupState`], `v` of [`Broadcast`] |
//! | T_i = l_k·Y_i = y_i·V | pairwise secret | [`AgreedSecret`](crate::AgreedSecret) |
//! | K_g, t_g | group key, its validity | [`Secret`], `t_g` of [`Broadcast`] |
//! | C_i = K_g ⊕ H1(V,T_i,…,t_g) | wrapped group key | `wrapped` of [`Broadcast`] |
//!
//! # Flaws
//! Of the construction: the mask does not change when only the group does, so C ⊕ C' = K ⊕ K' and a leaver
//! reads on; and a broadcast is made of public keys alone, so anybody can make one. Of published prototypes:
//! partial keys used unchecked, H0 and H1 one function, randomness that can be guessed, the master secret
//! among the public parameters. The protocol in the rest of this crate has none of these; the tests beside it
//! show each of them here.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher, Secret};
use rand_core::CryptoRngCore;

use crate::{Element, Error, MasterSecret, SecretScalar, SecretValue, Suite};

mod group;

pub use group::{Broadcast, GroupState, gen_group_key, key_retrieval};

/// The domains of H0 and H1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracles {
    /// Leads every input of H0.
    pub h0: &'static str,
    /// Leads every input of H1.
    pub h1: &'static str,
}

impl Oracles {
    /// Two functions, as the paper's proof has them.
    pub const SEPARATED: Self = Self { h0: "AinQ H0", h1: "AinQ H1" };
    /// One function, as in prototypes.
    pub const SHARED: Self = Self { h0: "", h1: "" };

    /// H0, to a scalar.
    pub fn h0<S: Suite>(&self, parts: &[&[u8]]) -> S::Scalar {
        let mut wide = [0; 64];
        // The hash's 32 bytes, reduced modulo q.
        wide.iter_mut().zip(hash(self.h0, parts)).for_each(|(to, from)| *to = from);
        S::scalar_from_wide(&wide)
    }

    /// H1, to a mask.
    #[must_use]
    pub fn h1(&self, parts: &[&[u8]]) -> Secret<32> {
        Secret::new(hash(self.h1, parts))
    }
}

fn hash(domain: &str, parts: &[&[u8]]) -> Digest {
    parts.iter().fold(Hasher::new(domain), |hash, part| hash.lp(part)).finish()
}

/// The public parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicParameters<S: Suite> {
    /// P_pub.
    pub p_pub: Element<S>,
    /// H0 and H1.
    pub oracles: Oracles,
}

/// **Setup**: the KGC draws x and publishes P_pub = x·P.
pub fn setup<S: Suite>(rng: &mut (impl CryptoRngCore + ?Sized)) -> (MasterSecret<S>, PublicParameters<S>) {
    let master = MasterSecret::generate(rng);
    let parameters = PublicParameters { p_pub: master.public(), oracles: Oracles::SEPARATED };
    (master, parameters)
}

/// **GenSecretValue**: the drone draws x_i and computes P_i = x_i·P. One multiplication.
pub fn gen_secret_value<S: Suite>(rng: &mut (impl CryptoRngCore + ?Sized)) -> (SecretValue<S>, Element<S>) {
    let value = SecretValue::generate(rng);
    let public = value.public();
    (value, public)
}

/// (s_i, R_i), not verified.
#[derive(Debug)]
pub struct PartialKey<S: Suite> {
    /// s_i.
    pub s: SecretScalar<S>,
    /// R_i.
    pub r: Element<S>,
}

/// **GenPartialKey**: r_i random, R_i = r_i·P, s_i = r_i + x·H0(D_i,R_i,P_i).
///
/// # Errors
/// [`Error::InvalidScalar`] if s_i cannot be used, which happens once in 2^126 keys.
pub fn gen_partial_key<S: Suite>(
    parameters: &PublicParameters<S>,
    master: &MasterSecret<S>,
    d: &[u8],
    p: &Element<S>,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<PartialKey<S>, Error> {
    // GenPartialKey: r_i random, R_i = r_i·P, ...
    let nonce = SecretScalar::<S>::generate(rng);
    let r = nonce.public();
    let h0 = parameters.oracles.h0::<S>(&[d, r.as_bytes(), p.as_bytes()]);
    // ... s_i = r_i + x·H0(D_i, R_i, P_i): Schnorr's signature on D_i and P_i.
    let s = SecretScalar::new(*nonce.expose() + *master.scalar().expose() * h0)?;
    Ok(PartialKey { s, r })
}

/// A drone as others see it: (D_i, R_i, P_i), with Y_i computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperDrone<S: Suite> {
    /// D_i.
    pub d: Vec<u8>,
    /// R_i.
    pub r: Element<S>,
    /// P_i.
    pub p: Element<S>,
    implicit: Element<S>,
}

impl<S: Suite> PaperDrone<S> {
    /// Computes Y_i = R_i + H0(D_i,R_i,P_i)·P_pub + P_i. One multiplication.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`] if Y_i is the identity.
    pub fn new(
        parameters: &PublicParameters<S>,
        d: &[u8],
        r: Element<S>,
        p: Element<S>,
    ) -> Result<Self, Error> {
        let h0 = parameters.oracles.h0::<S>(&[d, r.as_bytes(), p.as_bytes()]);
        let y = *r.point() + S::mul(&h0, parameters.p_pub.point()) + *p.point();
        Ok(Self { d: d.to_vec(), r, p, implicit: Element::from_point(y)? })
    }

    /// Y_i.
    #[must_use]
    pub const fn implicit(&self) -> &Element<S> {
        &self.implicit
    }
}

/// y_i = s_i + x_i with the public key it belongs to.
#[derive(Debug)]
pub struct FullKey<S: Suite> {
    /// (D_i, R_i, P_i).
    pub member: PaperDrone<S>,
    y: SecretScalar<S>,
}

/// **FullKeyGen**: the drone checks s_i·P = R_i + H0(D_i,R_i,P_i)·P_pub and takes y_i = s_i + x_i.
///
/// # Errors
/// [`Error::InvalidPartialKey`], or [`Error::InvalidScalar`] if y_i cannot be used.
pub fn full_key_gen<S: Suite>(
    parameters: &PublicParameters<S>,
    d: &[u8],
    value: &SecretValue<S>,
    partial: &PartialKey<S>,
) -> Result<FullKey<S>, Error> {
    let full = full_key_gen_unchecked(parameters, d, value, partial)?;
    let h0 = parameters.oracles.h0::<S>(&[d, partial.r.as_bytes(), full.member.p.as_bytes()]);
    // FullKeyGen: y_i is used only if s_i·P = R_i + H0(D_i, R_i, P_i)·P_pub.
    let expected = *partial.r.point() + S::mul(&h0, parameters.p_pub.point());
    if *partial.s.public().point() != expected {
        return Err(Error::InvalidPartialKey);
    }
    Ok(full)
}

/// FullKeyGen as prototypes have it: y_i = s_i + x_i of whatever came.
///
/// # Errors
/// [`Error::InvalidScalar`] if y_i cannot be used, [`Error::IdentityPoint`] if Y_i is the identity.
pub fn full_key_gen_unchecked<S: Suite>(
    parameters: &PublicParameters<S>,
    d: &[u8],
    value: &SecretValue<S>,
    partial: &PartialKey<S>,
) -> Result<FullKey<S>, Error> {
    // As prototypes have it: whatever was received becomes a key.
    let y = SecretScalar::new(*partial.s.expose() + *value.scalar().expose())?;
    let member = PaperDrone::new(parameters, d, partial.r, value.public())?;
    Ok(FullKey { member, y })
}
