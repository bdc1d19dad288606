//! Wire labels: 128 bits that stand for 0 or for 1.

use quiver_crypto::ct_eq;
use zeroize::Zeroize;

/// Bytes of a label, and of a ciphertext of a garbled gate.
pub const LABEL_LEN: usize = 16;

/// A label. Secret where its bit must stay unknown to its holder; never printed.
///
/// Copied freely while a circuit is garbled, so that erasing it is up to the holder of many: the garbler, the
/// evaluator, and their callers.
#[derive(Clone, Copy, Default, Zeroize, derive_more::Debug)]
#[debug("Label(…)")]
pub struct Label(pub(crate) u128);

impl Label {
    /// A label of these bytes.
    pub fn from_bytes(bytes: [u8; LABEL_LEN]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// Bytes of the label.
    pub fn to_bytes(self) -> [u8; LABEL_LEN] {
        self.0.to_le_bytes()
    }

    /// Lowest bit of the label. Garbled without privacy, it is the bit that the label stands for.
    pub fn colour(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Compares in constant time.
impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&self.to_bytes(), &other.to_bytes())
    }
}

impl Eq for Label {}

/// Labels of a wire, both of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroize)]
pub struct LabelPair {
    /// Label of 0.
    pub zero: Label,
    /// Label of 1.
    pub one: Label,
}

impl LabelPair {
    /// The label of a bit, in constant time.
    pub fn of(&self, bit: bool) -> Label {
        let mask = mask(bit);
        Label(self.zero.0 & !mask | self.one.0 & mask)
    }

    /// The bit of a label, if it is one of the two; in constant time but for whether it is.
    pub fn decode(&self, label: Label) -> Option<bool> {
        let (zero, one) = (self.zero == label, self.one == label);
        (zero | one).then_some(one)
    }
}

/// All ones, or all zeros.
pub(crate) fn mask(bit: bool) -> u128 {
    0_u128.wrapping_sub(u128::from(bit))
}
