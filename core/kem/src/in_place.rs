//! ML-KEM in place, for boards: two vectors at most in memory, and each number of the matrix drawn when it is
//! used. To decapsulate takes some 5 KB of stack, where implementations that hold a matrix take 36 to 74 KB.
//!
//! Written from FIPS 203, whose algorithms the comments name. No secret decides a branch or an index, and
//! none is divided; what is secret is erased when it is dropped.

mod polynomial;
mod sponge;

use alloc::vec::Vec;

use quiver_crypto::{Secret, erase};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use self::polynomial::{POLYNOMIAL_LEN, Polynomial};
use self::sponge::{matrix, rejected, sha3_256, sha3_512};
use crate::{KemSet, MESSAGE_LEN, SEED_LEN, SHARED_LEN};

/// Most rows that a matrix has.
const MAX_ROWS: usize = 4;

/// Parameters k, `d_u` and `d_v` of FIPS 203 (table 2). η1 and η2 are 2 in both sets.
#[derive(Clone, Copy)]
struct KemParameters {
    rows: u8,
    u_bits: u32,
    v_bits: u32,
}

impl KemParameters {
    const fn of(set: KemSet) -> Self {
        match set {
            KemSet::MlKem768 => Self { rows: 3, u_bits: 10, v_bits: 4 },
            KemSet::MlKem1024 => Self { rows: 4, u_bits: 11, v_bits: 5 },
        }
    }

    /// Bytes of one polynomial of u in a ciphertext.
    const fn u_len(self) -> usize {
        32 * self.u_bits as usize
    }
}

/// ŝ, which a decapsulation key is.
type SecretVector = [Polynomial; MAX_ROWS];

/// `K-PKE.KeyGen` out of d (Algorithm 13): ŝ, which is made in place of zeros, and the encapsulation key. Not
/// inlined, as the other two, so that one's memory is free when the next begins.
#[inline(never)]
fn expand(set: KemSet, d: &[u8], secret: &mut SecretVector) -> Vec<u8> {
    let parameters = KemParameters::of(set);
    let (rho, sigma) = sha3_512(&[d, &[parameters.rows]]);
    for (polynomial, nonce) in secret.iter_mut().zip(0..parameters.rows) {
        polynomial.add_noise(sigma.expose(), nonce);
        polynomial.transform();
    }
    let mut key = Vec::with_capacity(set.key_len());
    for row in 0..parameters.rows {
        let mut sum = Polynomial::default();
        sum.add_noise(sigma.expose(), parameters.rows + row);
        sum.transform();
        for (polynomial, column) in secret.iter().zip(0..parameters.rows) {
            sum.add_product(polynomial, matrix(rho.expose(), column, row));
        }
        sum.encode(12, &mut |bytes| key.extend_from_slice(bytes));
    }
    key.extend_from_slice(rho.expose());
    key
}

/// The encapsulation key of d ‖ z: Algorithm 16.
pub(crate) fn encapsulation_key(set: KemSet, seed: &Secret<SEED_LEN>) -> Vec<u8> {
    let (d, _) = seed.expose().split_at(SEED_LEN / 2);
    expand(set, d, &mut SecretVector::default())
}

/// `K-PKE.Encrypt` (Algorithm 14): gives the ciphertext to `output`, in parts.
#[inline(never)]
fn encrypt(set: KemSet, key: &[u8], message: &[u8], randomness: &[u8], output: &mut dyn FnMut(&[u8])) {
    let parameters = KemParameters::of(set);
    let rows = parameters.rows;
    let (encoded, rho) = key.split_at_checked(POLYNOMIAL_LEN * usize::from(rows)).unwrap_or_default();
    let mut ephemeral = SecretVector::default();
    for (polynomial, nonce) in ephemeral.iter_mut().zip(0..rows) {
        polynomial.add_noise(randomness, nonce);
        polynomial.transform();
    }
    for row in 0..rows {
        let mut sum = Polynomial::default();
        // The matrix transposed.
        for (polynomial, column) in ephemeral.iter().zip(0..rows) {
            sum.add_product(polynomial, matrix(rho, row, column));
        }
        sum.transform_back();
        sum.add_noise(randomness, rows + row);
        sum.compress(parameters.u_bits);
        sum.encode(parameters.u_bits, output);
    }
    let mut sum = Polynomial::default();
    for (polynomial, encoded) in ephemeral.iter().zip(encoded.chunks_exact(POLYNOMIAL_LEN)) {
        sum.add_product(polynomial, polynomial::numbers(encoded, 12));
    }
    sum.transform_back();
    sum.add_noise(randomness, 2 * rows);
    sum.add_message(message);
    sum.compress(parameters.v_bits);
    sum.encode(parameters.v_bits, output);
}

/// Ciphertext and shared secret of m, for a key that has the length of the set: Algorithm 17. `None` if a
/// number of the key is not below the modulus (7.2).
pub(crate) fn encapsulate(
    set: KemSet,
    key: &[u8],
    message: &Secret<MESSAGE_LEN>,
) -> Option<(Vec<u8>, Secret<SHARED_LEN>)> {
    let (vector, _) = key.split_at_checked(POLYNOMIAL_LEN * usize::from(KemParameters::of(set).rows))?;
    if !polynomial::numbers(vector, 12).all(|number| number < polynomial::MODULUS) {
        return None;
    }
    let (shared, randomness) = sha3_512(&[message.expose(), &sha3_256(&[key])]);
    let mut ciphertext = Vec::with_capacity(set.ciphertext_len());
    let output = &mut |bytes: &[u8]| ciphertext.extend_from_slice(bytes);
    encrypt(set, key, message.expose(), randomness.expose(), output);
    Some((ciphertext, shared))
}

/// Shared secret of a ciphertext that has the length of the set: Algorithm 18. There is always one.
pub(crate) fn decapsulate(
    set: KemSet,
    seed: &Secret<SEED_LEN>,
    ciphertext: &[u8],
) -> Option<Secret<SHARED_LEN>> {
    let (d, z) = seed.expose().split_at(SEED_LEN / 2);
    let (message, key) = decrypt(set, d, ciphertext);
    let (shared, randomness) = sha3_512(&[message.expose(), &sha3_256(&[&key])]);
    let mut rest = ciphertext;
    let mut equal = Choice::from(1);
    encrypt(set, &key, message.expose(), randomness.expose(), &mut |bytes| {
        let (part, after) = rest.split_at_checked(bytes.len()).unwrap_or_default();
        equal &= part.ct_eq(bytes);
        rest = after;
    });
    let mut chosen = rejected(z, ciphertext);
    for (byte, shared) in chosen.iter_mut().zip(shared.expose()) {
        byte.conditional_assign(shared, equal);
    }
    let secret = Secret::new(chosen);
    erase(&mut chosen);
    Some(secret)
}

/// `K-PKE.Decrypt` (Algorithm 15), and the encapsulation key, which decapsulation needs too.
#[inline(never)]
fn decrypt(set: KemSet, d: &[u8], ciphertext: &[u8]) -> (Secret<MESSAGE_LEN>, Vec<u8>) {
    let parameters = KemParameters::of(set);
    let mut secret = SecretVector::default();
    let key = expand(set, d, &mut secret);
    let rows = usize::from(parameters.rows);
    let (u, v) = ciphertext.split_at_checked(parameters.u_len() * rows).unwrap_or_default();
    let (mut sum, mut part) = (Polynomial::default(), Polynomial::default());
    for (secret, encoded) in secret.iter().zip(u.chunks_exact(parameters.u_len())) {
        part.decompress(encoded, parameters.u_bits);
        part.transform();
        sum.add_product(secret, part.numbers());
    }
    sum.transform_back();
    part.decompress(v, parameters.v_bits);
    (sum.message(&part), key)
}

#[cfg(test)]
mod tests {
    use quiver_crypto::Hasher;

    use super::*;
    use crate::library;

    /// Bytes that look random, others for each number.
    fn draw(number: u64, byte: u8) -> [u8; 32] {
        Hasher::new("quiver-kem test").u64(number).u8(byte).finish()
    }

    fn seed(number: u64) -> Secret<SEED_LEN> {
        let halves = [draw(number, 0), draw(number, 1)];
        Secret::try_from(halves.as_flattened()).unwrap()
    }

    #[test]
    fn both_implementations_make_the_same_pairs_ciphertexts_and_secrets() {
        let numbers = |set| (0..20).map(move |number| (set, number));
        for (set, number) in KemSet::ALL.into_iter().flat_map(numbers) {
            let (seed, message) = (seed(number), Secret::new(draw(number, 2)));
            let key = encapsulation_key(set, &seed);
            assert_eq!(key, library::encapsulation_key(set, &seed));
            let (ciphertext, shared) = encapsulate(set, &key, &message).unwrap();
            let made = (ciphertext.clone(), shared.clone());
            assert_eq!(library::encapsulate(set, &key, &message), Some(made));
            assert_eq!(decapsulate(set, &seed, &ciphertext), Some(shared.clone()));
            assert_eq!(library::decapsulate(set, &seed, &ciphertext), Some(shared));
        }
    }

    #[test]
    fn both_implementations_reject_ciphertexts_with_the_same_secret() {
        for set in KemSet::ALL {
            let (seed, message) = (seed(1), Secret::new(draw(1, 2)));
            let key = library::encapsulation_key(set, &seed);
            let (ciphertext, shared) = library::encapsulate(set, &key, &message).unwrap();
            // Both ends, on both sides of the border between u and v, and between.
            let border = ciphertext.len() - 128;
            for at in [0, 1, 500, border - 33, border - 1, border, border + 1, ciphertext.len() - 1] {
                let mut altered = ciphertext.clone();
                altered[at] ^= 1 << (at % 8);
                let rejected = decapsulate(set, &seed, &altered).unwrap();
                assert_ne!(rejected, shared);
                assert_eq!(library::decapsulate(set, &seed, &altered), Some(rejected));
            }
            let foreign = encapsulation_key(set, &self::seed(2));
            let (ciphertext, other) = encapsulate(set, &foreign, &message).unwrap();
            assert_ne!(decapsulate(set, &seed, &ciphertext), Some(other));
        }
    }

    #[test]
    fn key_with_a_number_that_is_not_reduced_is_refused_wherever_it_is() {
        for set in KemSet::ALL {
            let key = encapsulation_key(set, &seed(3));
            let message = Secret::new(draw(3, 2));
            for at in (0..set.key_len() - 32).step_by(3 * 61) {
                let mut altered = key.clone();
                // Twelve bits: the first number of three bytes becomes 3329.
                (altered[at], altered[at + 1]) = (0x01, altered[at + 1] & 0xf0 | 0x0d);
                assert_eq!(encapsulate(set, &altered, &message), None);
                assert_eq!(library::encapsulate(set, &altered, &message), None);
            }
        }
    }
}
