//! H2, H3 and H4, with SHA-256: those of DistributedIBE and of drand's timelock before it.

use quiver_crypto::sha256::{Digest as _, Sha256};
use quiver_crypto::{Secret, Zeroizing};
use quiver_pairing::{Group, Gt, Scalar, scalar_decode};
use zeroize::Zeroize;

use crate::Error;

/// Bytes of σ and of what hashes give.
pub(crate) const HASH_LEN: usize = 32;

fn hash(parts: &[&[u8]]) -> Secret<HASH_LEN> {
    Secret::new(parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize().into())
}

/// H2(g) = H("IBE-H2" ‖ g), which hides σ. Of g there are 576 bytes: the highest coefficient first.
pub(crate) fn h2(element: &Gt) -> Secret<HASH_LEN> {
    let mut encoded = element.encode();
    let mask = hash(&[b"IBE-H2", &encoded]);
    encoded.zeroize();
    mask
}

/// H3(σ, m), the randomness of a ciphertext: with d = H("IBE-H3" ‖ σ ‖ m), the first of H(i ‖ d), i = 1, 2, …
/// in two bytes little-endian, that gives an integer from 1 to r − 1 once its first byte is shifted right by
/// one. Nine of ten do.
pub(crate) fn h3(sigma: &Secret<HASH_LEN>, message: &[u8]) -> Result<Zeroizing<Scalar>, Error> {
    let digest = hash(&[b"IBE-H3", sigma.expose(), message]);
    (1..=65_534_u16)
        .find_map(|counter| {
            let mut candidate = Zeroizing::new(*hash(&[&counter.to_le_bytes(), digest.expose()]).expose());
            if let Some(first) = candidate.first_mut() {
                // The first byte is shifted, not masked: 255 bits are left, as r has.
                *first >>= 1;
            }
            let scalar = Zeroizing::new(scalar_decode(&*candidate).ok()?);
            (*scalar != Scalar::from(0_u64)).then_some(scalar)
        })
        .ok_or(Error::NoScalar)
}

/// H4(σ) = H("IBE-H4" ‖ σ), of which as many bytes as the message has hide it.
pub(crate) fn h4(sigma: &Secret<HASH_LEN>) -> Secret<HASH_LEN> {
    hash(&[b"IBE-H4", sigma.expose()])
}
