//! Attribute-selective encryption: two points per attribute, of which a client can decrypt the one that its
//! attribute selects.
//!
//! | symbol | here |
//! |---|---|
//! | s, t; x_{j,b} = ρ_{j,b}·G | [`Randomness`], all of it from one seed and the context |
//! | s·g, t·h, c_{j,0} = s·e_j + x_{j,0}, c_{j,1} = t·e_j + x_{j,1} | [`AbkeCiphertext`], 192 + 192·m bytes |
//!
//! ρ is uniform modulo r, and has to be: what x_{j,1} is added to, t·e_j, is r_j·T for each attribute of
//! value 0, with one and the same T = t·g that the client does not know, but with r_j that it does (and
//! likewise s·e_j for those of value 1). Small integers a with Σ a_j·r_j = 0 modulo r are found by reducing a
//! lattice, and Σ a_j·c_{j,1} = (Σ a_j·ρ_{j,1})·G has no T in it: as many equations as there are such
//! attributes. Of short ρ each would be a discrete logarithm in an interval, which is found in the square
//! root of its length. Of uniform ρ, the n points c_{j,1} are uniform but for the one dimension T, and x is
//! hashed.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret, Zeroizing, prf};
use quiver_pairing::{CurvePoint, G1, Scalar, UNCOMPRESSED_LEN, scalar_random};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, SeedableRng as _};

use crate::scalars::{weight, weight_scalar};
use crate::{DOMAIN, Error, PointLabel, Presentation, PublicKey};

/// s, t and ρ_{j,b}: what an encryption is made of. Erased when dropped.
#[derive(derive_more::Debug)]
#[debug("Randomness({} attributes)", self.plaintexts.len())]
pub struct Randomness {
    s: Zeroizing<Scalar>,
    t: Zeroizing<Scalar>,
    plaintexts: Zeroizing<Vec<[Scalar; 2]>>,
}

impl Randomness {
    /// Derives all of it from a seed and the context of the run: the seed is of no use in another.
    pub fn derive(seed: &Secret<32>, context: &Digest, attributes: usize) -> Self {
        // One seed for a run: the client computes all of it anew when message 4 opens it.
        let seed = prf(seed, DOMAIN, "encryption", &[context]);
        let mut rng = ChaCha20Rng::from_seed(*seed.expose());
        let (s, t) = (Zeroizing::new(scalar_random(&mut rng)), Zeroizing::new(scalar_random(&mut rng)));
        let mut plaintexts = Zeroizing::new(Vec::with_capacity(attributes));
        plaintexts.extend((0..attributes).map(|_| [(); 2].map(|()| scalar_random(&mut rng))));
        Self { s, t, plaintexts }
    }

    /// x_{j,0} and x_{j,1} for each attribute, in constant time where `quiver-pairing` has it.
    pub fn plaintexts(&self) -> Zeroizing<Vec<[G1; 2]>> {
        let points = Zeroizing::new(G1::multiply_generator_by_each(self.plaintexts.as_flattened()));
        Zeroizing::new(points.as_chunks::<2>().0.to_vec())
    }
}

/// s·g, t·h, and both halves for each attribute.
#[derive(Clone, derive_more::Debug)]
#[debug("AbkeCiphertext({} attributes)", self.halves.len())]
pub struct AbkeCiphertext {
    sg: G1,
    th: G1,
    halves: Vec<[G1; 2]>,
}

impl AbkeCiphertext {
    /// Bytes of an encoded ciphertext for so many attributes.
    pub const fn encoded_len(attributes: usize) -> usize {
        UNCOMPRESSED_LEN * 2 * (attributes + 1)
    }

    /// Enc of the source. The plaintexts are those of the randomness.
    ///
    /// # Errors
    /// [`Error::Attributes`] if there are not as many plaintexts as the key has attributes.
    pub fn encrypt(key: &PublicKey, randomness: &Randomness, plaintexts: &[[G1; 2]]) -> Result<Self, Error> {
        let points = key.attribute_points();
        if plaintexts.len() != points.len() {
            return Err(Error::Attributes { wanted: points.len(), found: plaintexts.len() });
        }
        let Randomness { s, t, .. } = randomness;
        // Enc of the source: s·g and all s·e_j, t·h and all t·e_j. (s·h and t·g come out, too, and are
        // erased.)
        let bases: Vec<G1> = points.iter().copied().chain([key.g(), key.h()]).collect();
        let [with_s, with_t] = [s, t].map(|scalar| Zeroizing::new(G1::multiply_points(&bases, scalar)));
        let product = |products: &[G1], at: usize| products.get(at).copied().unwrap_or_default();
        let (sg, th) = (product(&with_s, points.len()), product(&with_t, points.len() + 1));
        let halves = with_s.iter().zip(with_t.iter()).zip(plaintexts);
        // c_{j,0} = s·e_j + x_{j,0}, c_{j,1} = t·e_j + x_{j,1}
        let halves = halves.map(|((s_e, t_e), [zero, one])| [*s_e + *zero, *t_e + *one]).collect();
        Ok(Self { sg, th, halves })
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless there are as many bytes as so many attributes take, before anything is
    /// computed; [`Error::InvalidPoint`] for a point outside the subgroup, and for the identity.
    pub fn decode(bytes: &[u8], attributes: usize) -> Result<Self, Error> {
        if bytes.len() != Self::encoded_len(attributes) {
            return Err(Error::Malformed("a ciphertext of another length"));
        }
        let refused = |at, reason| Error::InvalidPoint { element: PointLabel::Ciphertext(at), reason };
        let mut points = Vec::with_capacity(bytes.len() / UNCOMPRESSED_LEN);
        for (at, bytes) in bytes.chunks(UNCOMPRESSED_LEN).enumerate() {
            points.push(CurvePoint::decode(bytes).map_err(|reason| refused(at, reason))?);
        }
        let mut inside = Vec::with_capacity(points.len());
        // Each on its own: a sum of all passes though points of small order are among them, once in so many
        // times.
        for (at, point) in CurvePoint::all_in_subgroup(&points).into_iter().enumerate() {
            inside.push(point.map_err(|reason| refused(at, reason))?);
        }
        match inside.as_chunks::<2>().0 {
            [[sg, th], halves @ ..] => Ok(Self { sg: *sg, th: *th, halves: halves.to_vec() }),
            [] => Err(Error::Malformed("a ciphertext of another length")),
        }
    }

    /// The encoding: 2m + 2 uncompressed points.
    pub fn encode(&self) -> Vec<u8> {
        let mut points = alloc::vec![self.sg, self.th];
        points.extend(self.halves.iter().flatten());
        G1::encode_uncompressed(&points).concat()
    }

    /// x_{j,χ_j} for each attribute: Dec of the source. The operations and the memory read do not depend on
    /// the attributes.
    ///
    /// # Errors
    /// [`Error::Attributes`] if the ciphertext is not for as many.
    pub fn decrypt(&self, key: &Presentation) -> Result<Zeroizing<Vec<G1>>, Error> {
        self.expect(key.attributes())?;
        let secrets = key.secrets();
        // Dec of the source: r_j·(s·g) or r_j·(t·h)
        let products = G1::multiply_either([&self.sg, &self.th], secrets.attributes(), secrets.scalars());
        let mut products =
            Zeroizing::new(products.map_err(|_| Error::Malformed("as many secrets as attributes"))?);
        // χ_j = 0: c_{j,0} − r_j·(s·g); χ_j = 1: c_{j,1} − r_j·(t·h)
        let halves = secrets.attributes().iter().zip(&self.halves);
        for (product, (&attribute, [zero, one])) in products.iter_mut().zip(halves) {
            *product = G1::select(zero, one, attribute) - *product;
        }
        Ok(products)
    }

    /// Checks that this follows from the randomness: s·g, t·h and both halves for each attribute.
    ///
    /// Halves are compared in a sum with weights of 128 random bits, which the points' being in the subgroup
    /// makes as good as comparing each. Its time depends on no attribute.
    ///
    /// # Errors
    /// [`Error::Attributes`] if the ciphertext is not for as many as the key has.
    pub fn follows_from(
        &self,
        randomness: &Randomness,
        key: &Presentation,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<bool, Error> {
        self.expect(key.attributes())?;
        self.expect(randomness.plaintexts.len())?;
        let Randomness { s, t, plaintexts } = randomness;
        // s·g and t·h, each on its own.
        let bases = (key.g_times(s) == self.sg) & (key.h_times(t) == self.th);
        let weights: Vec<[[u64; 2]; 2]> = self.halves.iter().map(|_| [weight(rng), weight(rng)]).collect();
        // Σ w·c = s·Σ w·e + t·Σ w'·e + (Σ w·ρ)·G
        let Ok(sent) = G1::msm_weighted(self.halves.as_flattened(), weights.as_flattened()) else {
            return Ok(false);
        };
        let terms = plaintexts.as_flattened().iter().zip(weights.as_flattened());
        let sum = terms.fold(Scalar::from(0_u64), |sum, (rho, w)| sum + *rho * weight_scalar(w));
        let [zero, one] = [0, 1].map(|at: usize| -> Vec<[u64; 2]> {
            weights.iter().filter_map(|pair| pair.get(at)).copied().collect()
        });
        let derived = key.combine(&zero)? * **s + key.combine(&one)? * **t + G1::multiply_generator(&sum);
        Ok(bases & (sent == derived))
    }

    fn expect(&self, attributes: usize) -> Result<(), Error> {
        let found = self.halves.len();
        if found == attributes { Ok(()) } else { Err(Error::Attributes { wanted: attributes, found }) }
    }
}

#[cfg(test)]
mod tests {
    use quiver_pairing::scalar_encode;

    use super::*;

    /// Sums of few plaintexts with small coefficients must be no shorter than one alone: then no relation
    /// among the secrets of a credential makes a discrete logarithm short.
    #[test]
    fn plaintexts_are_multiples_by_uniform_scalars() {
        let attributes = 200;
        let randomness = Randomness::derive(&Secret::new([5; 32]), &[6; 32], attributes);
        let points = randomness.plaintexts();
        for (scalars, points) in randomness.plaintexts.iter().zip(points.iter()) {
            assert_eq!(scalars.map(|scalar| G1::generator() * scalar), *points);
        }
        let scalars = randomness.plaintexts.as_flattened();
        // One in 115 is below 2^248: three or four of 400.
        let short = scalars.iter().filter(|scalar| scalar_encode(scalar)[0] == 0).count();
        assert!(short <= 20, "{short} of 400 plaintexts have a short logarithm");
        // Each of the 31 bytes below has all but a few of its values.
        for place in 1..32 {
            let values = scalars.iter().map(|scalar| scalar_encode(scalar)[place]);
            let values: alloc::collections::BTreeSet<u8> = values.collect();
            assert!(values.len() > 150, "byte {place} has {} values", values.len());
        }
    }
}
