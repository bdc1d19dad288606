//! Garbling schemes for AND gates. (XOR and NOT cost nothing: Kolesnikov, Schneider, ICALP 2008.)
//!
//! Notation of Zahur, Rosulek, Evans: A₀, B₀ are the labels of 0, A₁ = A₀ ⊕ Δ; p is the lowest bit of a label
//! of 0.

use crate::label::mask;

/// A way to garble AND gates.
pub trait Scheme: sealed::Sealed {
    /// Ciphertexts of each gate.
    const CIPHERTEXTS: usize;
    /// Whether the lowest bit of a label is its value.
    const TRANSPARENT: bool;
}

/// Half gates: two ciphertexts for each AND. The evaluator learns nothing but the output (eprint 2014/756,
/// figure 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct HalfGates;

/// The garbler's half gate alone: one ciphertext for each AND. The evaluator has to know all inputs, and can
/// still make no output label but the one that belongs to them (eprint 2014/756, section 5; Frederiksen,
/// Nielsen, Orlandi, Eurocrypt 2015).
#[derive(Clone, Copy, Debug, Default)]
pub struct PrivacyFree;

impl Scheme for HalfGates {
    const CIPHERTEXTS: usize = 2;
    const TRANSPARENT: bool = false;
}

impl Scheme for PrivacyFree {
    const CIPHERTEXTS: usize = 1;
    const TRANSPARENT: bool = true;
}

/// Traits that other crates cannot implement.
pub(crate) mod sealed {
    use zeroize::Zeroize;

    /// Hash inputs of a gate, replaced by their hashes.
    pub trait Hashed: Copy + AsRef<[u128]> + Zeroize {
        /// Their number.
        const COUNT: usize;

        /// Those of many gates.
        fn flatten(gates: &mut [Self]) -> &mut [u128];
    }

    impl<const N: usize> Hashed for [u128; N] {
        const COUNT: usize = N;

        fn flatten(gates: &mut [Self]) -> &mut [u128] {
            gates.as_flattened_mut()
        }
    }

    /// The arithmetic of one gate, around hashes that are computed for many gates at once.
    pub trait Sealed {
        /// The garbler's hash inputs of a gate.
        type Garbled: Hashed;
        /// The evaluator's hash inputs of a gate.
        type Evaluated: Hashed;
        /// Tweaks of each gate. Consecutive gates have consecutive tweaks; the garbler hashes two labels with
        /// each, the evaluator one.
        const TWEAKS: u64;
        /// The ciphertexts of a gate.
        type Table: Copy + Default + AsRef<[u128]> + AsMut<[u128]>;

        /// The garbler's hash inputs.
        fn to_garble(a: u128, b: u128, delta: u128) -> Self::Garbled;

        /// The ciphertexts, and the output's label of 0.
        fn garble(a: u128, b: u128, delta: u128, hashes: &[u128]) -> (Self::Table, u128);

        /// The evaluator's hash inputs.
        fn to_evaluate(a: u128, b: u128) -> Self::Evaluated;

        /// The output's label.
        fn evaluate(a: u128, b: u128, table: &Self::Table, hashes: &[u128]) -> u128;
    }
}

impl sealed::Sealed for HalfGates {
    // One for each half.
    const TWEAKS: u64 = 2;
    type Garbled = [u128; 4];
    type Evaluated = [u128; 2];
    type Table = [u128; 2];

    fn to_garble(a: u128, b: u128, delta: u128) -> [u128; 4] {
        // H of both labels of a and of b.
        [a, a ^ delta, b, b ^ delta]
    }

    fn garble(a: u128, b: u128, delta: u128, hashes: &[u128]) -> ([u128; 2], u128) {
        let &[a0, a1, b0, b1] = hashes else { return ([0; 2], 0) };
        // Eprint 2014/756, figure 2, the half that the garbler knows p_b of:
        // T_G = H(A₀) ⊕ H(A₁) ⊕ p_b·Δ, W_G = H(A₀) ⊕ p_a·T_G.
        let generator = a0 ^ a1 ^ delta & low(b);
        let generated = a0 ^ generator & low(a);
        // The half that the evaluator knows the colour of b in:
        // T_E = H(B₀) ⊕ H(B₁) ⊕ A₀, W_E = H(B₀) ⊕ p_b·(T_E ⊕ A₀).
        let evaluator = b0 ^ b1 ^ a;
        let evaluated = b0 ^ (evaluator ^ a) & low(b);
        // The output's label of 0 is W_G ⊕ W_E.
        ([generator, evaluator], generated ^ evaluated)
    }

    fn to_evaluate(a: u128, b: u128) -> [u128; 2] {
        [a, b]
    }

    fn evaluate(a: u128, b: u128, table: &[u128; 2], hashes: &[u128]) -> u128 {
        let (&[generator, evaluator], &[of_a, of_b]) = (table, hashes) else { return 0 };
        // Evaluation of both halves: H(A) ⊕ s_a·T_G and H(B) ⊕ s_b·(T_E ⊕ A), with the lowest bits s.
        of_a ^ generator & low(a) ^ of_b ^ (evaluator ^ a) & low(b)
    }
}

/// Clears the lowest bit, for the value 0.
const OF_ZERO: u128 = !1;

impl sealed::Sealed for PrivacyFree {
    const TWEAKS: u64 = 1;
    type Garbled = [u128; 2];
    type Evaluated = [u128; 1];
    type Table = [u128; 1];

    fn to_garble(a: u128, _: u128, delta: u128) -> [u128; 2] {
        [a, a ^ delta]
    }

    fn garble(_: u128, b: u128, _: u128, hashes: &[u128]) -> ([u128; 1], u128) {
        let &[a0, a1] = hashes else { return ([0], 0) };
        // Eprint 2014/756, section 5: T = H(A₀) ⊕ H(A₁) ⊕ B₀, C₀ = H(A₀), all with a lowest bit of 0.
        ([(a0 ^ a1) & OF_ZERO ^ b], a0 & OF_ZERO)
    }

    fn to_evaluate(a: u128, _: u128) -> [u128; 1] {
        [a]
    }

    fn evaluate(a: u128, b: u128, table: &[u128; 1], hashes: &[u128]) -> u128 {
        let (&[table], &[of_a]) = (table, hashes) else { return 0 };
        // a = 0: H(A). a = 1: H(A) ⊕ T ⊕ B, which is H(A₀) ⊕ b·Δ.
        of_a & OF_ZERO ^ (table ^ b) & low(a)
    }
}

/// All ones if the lowest bit is 1. No branch: which labels these are is the evaluator's secret.
fn low(label: u128) -> u128 {
    mask(label & 1 == 1)
}
