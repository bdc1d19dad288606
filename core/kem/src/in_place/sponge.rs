//! Keccak's sponge, a byte at a time: the functions of FIPS 202 that ML-KEM calls.

use quiver_crypto::{Secret, erase};
use zeroize::Zeroize as _;

use super::polynomial::MODULUS;

const LANES: usize = 25;

/// Bytes that go into the sponge, or come out of it, between permutations.
const SHAKE128_RATE: usize = 168;
const SHAKE256_RATE: usize = 136;
const SHA3_256_RATE: usize = 136;
const SHA3_512_RATE: usize = 72;
/// Bits that tell functions apart, and the first bit of the padding.
const SHAKE: u8 = 0x1f;
const SHA3: u8 = 0x06;

/// A sponge that has taken its input. Erased on drop.
pub(super) struct Sponge {
    state: [u64; LANES],
    rate: usize,
    /// Bytes taken from this block.
    at: usize,
}

impl Sponge {
    fn new(rate: usize, domain: u8, input: &[&[u8]]) -> Self {
        let mut sponge = Self { state: [0; LANES], rate, at: 0 };
        for &byte in input.iter().copied().flatten() {
            sponge.add(sponge.at, byte);
            sponge.at += 1;
            if sponge.at == rate {
                keccak::f1600(&mut sponge.state);
                sponge.at = 0;
            }
        }
        sponge.add(sponge.at, domain);
        sponge.add(rate - 1, 0x80);
        keccak::f1600(&mut sponge.state);
        sponge.at = 0;
        sponge
    }

    fn add(&mut self, at: usize, byte: u8) {
        if let Some(lane) = self.state.get_mut(at / 8) {
            *lane ^= u64::from(byte) << (8 * (at % 8));
        }
    }

    fn byte(&mut self) -> u8 {
        if self.at == self.rate {
            keccak::f1600(&mut self.state);
            self.at = 0;
        }
        let lane = self.state.get(self.at / 8).copied().unwrap_or_default();
        let [byte, ..] = (lane >> (8 * (self.at % 8))).to_le_bytes();
        self.at += 1;
        byte
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.byte();
        }
    }
}

impl Iterator for Sponge {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        Some(self.byte())
    }
}

impl Drop for Sponge {
    fn drop(&mut self) {
        self.state.zeroize();
    }
}

/// H of FIPS 203.
pub(super) fn sha3_256(input: &[&[u8]]) -> [u8; 32] {
    let mut digest = [0; 32];
    Sponge::new(SHA3_256_RATE, SHA3, input).fill(&mut digest);
    digest
}

/// G of FIPS 203: two halves.
pub(super) fn sha3_512(input: &[&[u8]]) -> (Secret<32>, Secret<32>) {
    let mut sponge = Sponge::new(SHA3_512_RATE, SHA3, input);
    let mut half = || {
        let mut bytes = [0; 32];
        sponge.fill(&mut bytes);
        let secret = Secret::new(bytes);
        erase(&mut bytes);
        secret
    };
    (half(), half())
}

/// J of FIPS 203, of z and a ciphertext. The caller erases it.
pub(super) fn rejected(z: &[u8], ciphertext: &[u8]) -> [u8; 32] {
    let mut secret = [0; 32];
    Sponge::new(SHAKE256_RATE, SHAKE, &[z, ciphertext]).fill(&mut secret);
    secret
}

/// PRF of FIPS 203: bytes without end.
pub(super) fn noise(key: &[u8], nonce: u8) -> impl Iterator<Item = u8> {
    Sponge::new(SHAKE256_RATE, SHAKE, &[key, &[nonce]])
}

/// A polynomial of the matrix (Algorithm 7): numbers below the modulus without end. All of it is public.
pub(super) fn matrix(rho: &[u8], column: u8, row: u8) -> impl Iterator<Item = u16> {
    let mut sponge = Sponge::new(SHAKE128_RATE, SHAKE, &[rho, &[column, row]]);
    let pairs = core::iter::repeat_with(move || {
        let [low, middle, high] = [sponge.byte(), sponge.byte(), sponge.byte()].map(u16::from);
        [low | (middle & 0xf) << 8, middle >> 4 | high << 4]
    });
    pairs.flatten().filter(|&number| number < MODULUS)
}
