//! Garbling schemes for AND gates. (XOR and NOT cost nothing: Kolesnikov, Schneider, ICALP 2008.)
//!
//! Notation of Zahur, Rosulek, Evans: A₀, B₀ are the labels of 0, A₁ = A₀ ⊕ Δ; p is the lowest bit of a label
//! of 0.

use crate::block::Block;

/// A way to garble AND gates.
pub trait GarblingScheme: sealed::Sealed {
    /// Ciphertexts of each gate.
    const CIPHERTEXTS: usize;
    /// True if the lowest bit of a label is its value.
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

impl GarblingScheme for HalfGates {
    const CIPHERTEXTS: usize = 2;
    const TRANSPARENT: bool = false;
}

impl GarblingScheme for PrivacyFree {
    const CIPHERTEXTS: usize = 1;
    const TRANSPARENT: bool = true;
}

/// Traits that other crates cannot implement.
pub(crate) mod sealed {
    use zeroize::Zeroize;

    use crate::block::Block;

    /// Hash inputs of a gate, replaced by their hashes.
    pub trait Hashed: Copy + Zeroize {
        /// Number of hash inputs.
        const COUNT: usize;

        /// Makes the value before there are any.
        fn none() -> Self;

        /// Borrows the blocks of many gates.
        fn flatten(gates: &mut [Self]) -> &mut [Block];
    }

    impl<const N: usize> Hashed for [Block; N] {
        const COUNT: usize = N;

        fn none() -> Self {
            [Block::default(); N]
        }

        fn flatten(gates: &mut [Self]) -> &mut [Block] {
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
        type Table: Copy + Default + AsRef<[Block]> + AsMut<[Block]>;

        /// The garbler's hash inputs.
        fn to_garble(a: Block, b: Block, delta: Block) -> Self::Garbled;

        /// The ciphertexts, and the output's label of 0.
        fn garble(a: Block, b: Block, delta: Block, hashes: &Self::Garbled) -> (Self::Table, Block);

        /// The evaluator's hash inputs.
        fn to_evaluate(a: Block, b: Block) -> Self::Evaluated;

        /// The output's label.
        fn evaluate(a: Block, b: Block, table: &Self::Table, hashes: &Self::Evaluated) -> Block;
    }
}

impl sealed::Sealed for HalfGates {
    // One for each half.
    const TWEAKS: u64 = 2;
    type Garbled = [Block; 4];
    type Evaluated = [Block; 2];
    type Table = [Block; 2];

    #[inline]
    fn to_garble(a: Block, b: Block, delta: Block) -> [Block; 4] {
        // H of both labels of a and of b.
        [a, a ^ delta, b, b ^ delta]
    }

    #[inline]
    fn garble(a: Block, b: Block, delta: Block, hashes: &[Block; 4]) -> ([Block; 2], Block) {
        let [a0, a1, b0, b1] = *hashes;
        // Eprint 2014/756, figure 2, the half that the garbler knows p_b of:
        // T_G = H(A₀) ⊕ H(A₁) ⊕ p_b·Δ, W_G = H(A₀) ⊕ p_a·T_G.
        let generator = a0 ^ a1 ^ delta & b.lowest();
        let generated = a0 ^ generator & a.lowest();
        // The half that the evaluator knows the colour of b in:
        // T_E = H(B₀) ⊕ H(B₁) ⊕ A₀, W_E = H(B₀) ⊕ p_b·(T_E ⊕ A₀).
        let evaluator = b0 ^ b1 ^ a;
        let evaluated = b0 ^ (evaluator ^ a) & b.lowest();
        // The output's label of 0 is W_G ⊕ W_E.
        ([generator, evaluator], generated ^ evaluated)
    }

    #[inline]
    fn to_evaluate(a: Block, b: Block) -> [Block; 2] {
        [a, b]
    }

    #[inline]
    fn evaluate(a: Block, b: Block, table: &[Block; 2], hashes: &[Block; 2]) -> Block {
        let ([generator, evaluator], [of_a, of_b]) = (*table, *hashes);
        // Evaluation of both halves: H(A) ⊕ s_a·T_G and H(B) ⊕ s_b·(T_E ⊕ A), with the lowest bits s.
        of_a ^ generator & a.lowest() ^ of_b ^ (evaluator ^ a) & b.lowest()
    }
}

/// Clears the lowest bit, for the value 0.
const OF_ZERO: u128 = !1;

impl sealed::Sealed for PrivacyFree {
    const TWEAKS: u64 = 1;
    type Garbled = [Block; 2];
    type Evaluated = [Block; 1];
    type Table = [Block; 1];

    #[inline]
    fn to_garble(a: Block, _: Block, delta: Block) -> [Block; 2] {
        [a, a ^ delta]
    }

    #[inline]
    fn garble(_: Block, b: Block, _: Block, hashes: &[Block; 2]) -> ([Block; 1], Block) {
        let ([a0, a1], of_zero) = (*hashes, Block::from(OF_ZERO));
        // Eprint 2014/756, section 5: T = H(A₀) ⊕ H(A₁) ⊕ B₀, C₀ = H(A₀), all with a lowest bit of 0.
        ([(a0 ^ a1) & of_zero ^ b], a0 & of_zero)
    }

    #[inline]
    fn to_evaluate(a: Block, _: Block) -> [Block; 1] {
        [a]
    }

    #[inline]
    fn evaluate(a: Block, b: Block, table: &[Block; 1], hashes: &[Block; 1]) -> Block {
        let ([table], [of_a]) = (*table, *hashes);
        // a = 0: H(A). a = 1: H(A) ⊕ T ⊕ B, which is H(A₀) ⊕ b·Δ.
        of_a & Block::from(OF_ZERO) ^ (table ^ b) & a.lowest()
    }
}
