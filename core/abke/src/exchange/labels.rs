//! Derivation and transport of wire labels.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, prf};
use quiver_garble::label::LABEL_LEN;
use quiver_garble::{Garbler, Label, LabelPair, PrivacyFree};
use quiver_pairing::G1;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use zeroize::Zeroize as _;

use super::PolicyCircuit;
use crate::{DOMAIN, Error};

/// Bytes of both masked labels of an attribute.
pub(crate) const MASKED_LEN: usize = 2 * LABEL_LEN;

/// The garbler of a run: Δ and all labels follow from the seed and ctx.
pub(crate) fn garbler(policy: &PolicyCircuit, seed: &Secret<32>, context: &Digest) -> Garbler<PrivacyFree> {
    // With ctx, the seed of one run is of no use in another.
    let seed = prf(seed, DOMAIN, "garbling", &[context]);
    let mut rng = ChaCha20Rng::from_seed(*seed.expose());
    Garbler::new(policy.program(), &run(context), &mut rng)
}

/// The key of the hash of garbled gates.
pub(crate) fn run(context: &Digest) -> [u8; 16] {
    // Each run hashes its gates under a key of its own.
    first_half(&Hasher::new(DOMAIN).lp(b"garbling run").fixed(context).finish())
}

/// Pairs of labels of each attribute.
pub(crate) fn inputs(
    garbler: &Garbler<PrivacyFree>,
    attributes: usize,
) -> Result<Zeroizing<Vec<LabelPair>>, Error> {
    let mut pairs = Zeroizing::new(Vec::with_capacity(attributes));
    for attribute in 0..attributes {
        pairs.push(garbler.input(attribute)?);
    }
    Ok(pairs)
}

/// label_{j,b} ⊕ KDF(x_{j,b}, ctx, j, b), for both b of each j.
pub(crate) fn mask(context: &Digest, plaintexts: &[[G1; 2]], labels: &[LabelPair]) -> Vec<u8> {
    let mut encoded = Zeroizing::new(G1::encode_uncompressed(plaintexts.as_flattened()));
    let labels = labels.iter().flat_map(|pair| [pair.zero, pair.one]);
    let mut masked = Vec::with_capacity(encoded.len().saturating_mul(LABEL_LEN));
    for ((at, point), label) in encoded.iter().enumerate().zip(labels) {
        // label_{j,b} ⊕ KDF(x_{j,b}, ctx, j, b)
        masked.extend_from_slice(&xor(label, pad(context, at / 2, at % 2 == 1, point)).to_bytes());
    }
    encoded.zeroize();
    masked
}

/// The labels of a client's attributes, in a time that does not depend on them.
pub(crate) fn unmask(
    context: &Digest,
    attributes: &[bool],
    plaintexts: &[G1],
    masked: &[u8],
) -> Zeroizing<Vec<Label>> {
    let mut encoded = Zeroizing::new(G1::encode_uncompressed(plaintexts));
    let mut labels = Zeroizing::new(Vec::with_capacity(attributes.len()));
    let (pairs, _) = masked.as_chunks::<MASKED_LEN>();
    let each = attributes.iter().zip(encoded.iter()).zip(pairs).enumerate();
    labels.extend(each.map(|(at, ((&attribute, point), pair))| {
        let (zero, one) = pair.split_at(LABEL_LEN);
        let [zero, one] = [zero, one].map(|half| Label::from_bytes(half.try_into().unwrap_or_default()));
        // Both halves are read; the attribute selects in constant time.
        xor(LabelPair { zero, one }.of(attribute), pad(context, at, attribute, point))
    }));
    encoded.zeroize();
    labels
}

/// KDF(x_{j,b}, ctx, j, b).
fn pad(context: &Digest, attribute: usize, bit: bool, point: &[u8]) -> Label {
    let hash =
        Hasher::new(DOMAIN).lp(b"label").fixed(context).u32(attribute as u32).u8(u8::from(bit)).fixed(point);
    let mut digest = hash.finish();
    let pad = Label::from_bytes(first_half(&digest));
    digest.zeroize();
    pad
}

fn xor(label: Label, pad: Label) -> Label {
    let bytes = u128::from_le_bytes(label.to_bytes()) ^ u128::from_le_bytes(pad.to_bytes());
    Label::from_bytes(bytes.to_le_bytes())
}

pub(crate) fn first_half(digest: &Digest) -> [u8; 16] {
    digest.first_chunk().copied().unwrap_or_default()
}
