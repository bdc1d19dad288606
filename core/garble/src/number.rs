//! Integer arithmetic in circuits; results are as wide as they can get, so that nothing overflows.

use alloc::vec::Vec;

use crate::sum::Sum;
use crate::{Bit, Builder};

/// An integer: bits, lowest first; if signed, in two's complement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    bits: Vec<Bit>,
    signed: bool,
}

impl Number {
    /// An integer of these bits, lowest first.
    pub fn new(bits: Vec<Bit>, signed: bool) -> Self {
        Self { bits, signed }.trimmed()
    }

    /// A constant, in as few bits as it needs.
    pub fn constant(value: i128) -> Self {
        let bits = (0..i128::BITS).map(|at| Bit::constant(value >> at & 1 == 1)).collect();
        Self::new(bits, value < 0)
    }

    /// Number of bits.
    pub fn width(&self) -> usize {
        self.bits.len()
    }

    /// Bits of the number, lowest first.
    pub fn bits(&self) -> &[Bit] {
        &self.bits
    }

    /// Returns true if the highest bit counts negative.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// The sum, at one AND for each bit.
    pub fn add(&self, other: &Self, builder: &mut Builder) -> Self {
        let signed = self.signed || other.signed;
        let mut sum = Sum::new(self.width_if(signed).max(other.width_if(signed)).saturating_add(1));
        self.add_to(&mut sum, 0);
        other.add_to(&mut sum, 0);
        Self::new(sum.total(builder), signed)
    }

    /// The difference, at one AND for each bit.
    pub fn subtract(&self, other: &Self, builder: &mut Builder) -> Self {
        let mut sum = Sum::new(self.width_if(true).max(other.width_if(true)).saturating_add(1));
        self.add_to(&mut sum, 0);
        for (weight, negative, bit) in other.weighted() {
            // The bit that counts negative is added where all others are subtracted.
            if negative {
                sum.add(bit, weight);
            } else {
                sum.subtract(bit, weight);
            }
        }
        Self::new(sum.total(builder), true)
    }

    /// The product, at about two ANDs for each pair of bits.
    pub fn multiply(&self, other: &Self, builder: &mut Builder) -> Self {
        let mut sum = Sum::new(self.width().saturating_add(other.width()));
        for (a_weight, a_negative, a) in self.weighted() {
            for (b_weight, b_negative, b) in other.weighted() {
                let bit = builder.and(a, b);
                put(&mut sum, bit, a_weight.saturating_add(b_weight), a_negative ^ b_negative);
            }
        }
        Self::new(sum.total(builder), self.signed || other.signed)
    }

    /// The square, at about one AND for each pair of bits: half of a product.
    pub fn square(&self, builder: &mut Builder) -> Self {
        let mut sum = Sum::new(self.width().saturating_mul(2));
        for (a_weight, a_negative, a) in self.weighted() {
            // A bit is its own square, and a negative one squared is not negative.
            sum.add(a, a_weight.saturating_mul(2));
            for (b_weight, b_negative, b) in self.weighted().skip(a_weight.saturating_add(1)) {
                let bit = builder.and(a, b);
                // 2·a·b: each pair once, one weight higher.
                let weight = a_weight.saturating_add(b_weight).saturating_add(1);
                put(&mut sum, bit, weight, a_negative ^ b_negative);
            }
        }
        Self::new(sum.total(builder), false)
    }

    /// Bit that is 1 if this number is less than the other, at one AND for each bit.
    pub fn less_than(&self, other: &Self, builder: &mut Builder) -> Bit {
        // a < b if a − b is negative; the difference has a bit more, so it never overflows.
        let difference = self.subtract(other, builder);
        difference.sign()
    }

    /// Bit that is 1 if both numbers are equal, at one AND for each bit.
    pub fn equals(&self, other: &Self, builder: &mut Builder) -> Bit {
        let signed = self.signed || other.signed;
        let width = self.width_if(signed).max(other.width_if(signed));
        let same = (0..width).map(|at| !builder.xor(self.bit(at), other.bit(at))).collect();
        builder.all(same)
    }

    /// The sign bit.
    fn sign(&self) -> Bit {
        if self.signed { self.bits.last().copied().unwrap_or(Bit::FALSE) } else { Bit::FALSE }
    }

    /// A bit of it, extended by its sign.
    fn bit(&self, at: usize) -> Bit {
        self.bits.get(at).copied().unwrap_or(self.sign())
    }

    fn width_if(&self, signed: bool) -> usize {
        self.width().saturating_add(usize::from(signed && !self.signed))
    }

    /// Each bit with its weight, and whether that counts negative.
    fn weighted(&self) -> impl Iterator<Item = (usize, bool, Bit)> {
        let highest = self.width().saturating_sub(1);
        let signed = self.signed;
        self.bits.iter().enumerate().map(move |(weight, &bit)| (weight, signed && weight == highest, bit))
    }

    fn add_to(&self, sum: &mut Sum, shift: usize) {
        for (weight, negative, bit) in self.weighted() {
            put(sum, bit, weight.saturating_add(shift), negative);
        }
    }

    /// The same without bits at the top that say nothing.
    fn trimmed(mut self) -> Self {
        // A sign bit of 0 makes it an unsigned integer.
        if self.signed && self.bits.last() == Some(&Bit::FALSE) {
            self.signed = false;
        }
        if self.signed {
            // Of equal bits at the top one is enough.
            while let [.., below, top] = *self.bits.as_slice()
                && below == top
            {
                self.bits.pop();
            }
        } else {
            while self.bits.last() == Some(&Bit::FALSE) {
                self.bits.pop();
            }
        }
        self
    }
}

fn put(sum: &mut Sum, bit: Bit, weight: usize, negative: bool) {
    if negative {
        sum.subtract(bit, weight);
    } else {
        sum.add(bit, weight);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// Two inputs of given kinds, an operation on them, and the expected value.
    fn compute(
        (a, a_width, a_signed): (i128, usize, bool),
        (b, b_width, b_signed): (i128, usize, bool),
        make: impl Fn(&Number, &Number, &mut Builder) -> Number,
    ) -> i128 {
        let mut builder = Builder::new(a_width + b_width).unwrap();
        let bits = |from: usize, width, builder: &Builder| {
            (from..from + width).map(|at| builder.input(at)).collect()
        };
        let x = Number::new(bits(0, a_width, &builder), a_signed);
        let y = Number::new(bits(a_width, b_width, &builder), b_signed);
        let made = make(&x, &y, &mut builder);
        let circuit = builder.finish(made.bits()).unwrap();
        let inputs: Vec<bool> =
            (0..a_width).map(|at| a >> at & 1 == 1).chain((0..b_width).map(|at| b >> at & 1 == 1)).collect();
        let value = circuit.evaluate(&inputs).unwrap();
        let highest = value.len().wrapping_sub(1);
        value.iter().enumerate().fold(0, |sum, (at, &bit)| {
            let weight = i128::from(bit) << at;
            if made.is_signed() && at == highest { sum - weight } else { sum + weight }
        })
    }

    fn operand() -> impl Strategy<Value = (i128, usize, bool)> {
        (1_usize..=40, any::<bool>(), any::<u64>()).prop_map(|(width, signed, random)| {
            let value = i128::from(random) & ((1 << width) - 1);
            let negative = signed && value >> (width - 1) & 1 == 1;
            (if negative { value - (1 << width) } else { value }, width, signed)
        })
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_integers(a in operand(), b in operand()) {
            prop_assert_eq!(compute(a, b, |x, y, to| x.add(y, to)), a.0 + b.0);
            prop_assert_eq!(compute(a, b, |x, y, to| x.subtract(y, to)), a.0 - b.0);
            prop_assert_eq!(compute(a, b, |x, y, to| x.multiply(y, to)), a.0 * b.0);
            prop_assert_eq!(compute(a, b, |x, _, to| x.square(to)), a.0 * a.0);
        }

        #[test]
        fn comparisons_are_those_of_integers(a in operand(), b in operand(), same: bool) {
            let b = if same { a } else { b };
            let bit = |bit| Number::new(vec![bit], false);
            prop_assert_eq!(compute(a, b, |x, y, to| bit(x.less_than(y, to))), i128::from(a.0 < b.0));
            prop_assert_eq!(compute(a, b, |x, y, to| bit(x.equals(y, to))), i128::from(a.0 == b.0));
        }

        #[test]
        fn constants_are_as_narrow_as_can_be(value in any::<i64>()) {
            let constant = Number::constant(i128::from(value));
            let needed = if value < 0 { 65 - value.leading_ones() } else { 64 - value.leading_zeros() };
            prop_assert_eq!(constant.width(), needed as usize);
            prop_assert_eq!(constant.is_signed(), value < 0);
        }
    }

    #[test]
    fn square_of_64_bits_costs_about_64_squared() {
        let mut builder = Builder::new(64).unwrap();
        let bits = (0..64).map(|at| builder.input(at)).collect();
        let square = Number::new(bits, true).square(&mut builder);
        let and = builder.finish(square.bits()).unwrap().statistics().and;
        assert!((3_900..4_200).contains(&and), "{and}");
    }
}
