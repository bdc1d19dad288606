//! Sums of weighted bits: addition, subtraction, multiplication and squaring in circuits.
//!
//! Columns of bits of equal weight are compressed by full adders, at one AND for each bit that disappears, so
//! that a product costs what its partial products and their number say, whatever the order. All is modulo
//! 2^width, which makes a bit of negative weight its opposite and a constant: −b·2^k = (1 − b)·2^k − 2^k.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::{Bit, Builder};

/// A sum in the making, modulo 2^width.
#[derive(Debug)]
pub(crate) struct Sum {
    columns: Vec<BitColumn>,
}

#[derive(Clone, Debug, Default)]
struct BitColumn {
    bits: VecDeque<Bit>,
    /// Number of times that the constant 1 is added here.
    ones: u64,
}

impl Sum {
    pub(crate) fn new(width: usize) -> Self {
        Self { columns: alloc::vec![BitColumn::default(); width] }
    }

    /// Adds `bit · 2^weight`.
    pub(crate) fn add(&mut self, bit: Bit, weight: usize) {
        let Some(column) = self.columns.get_mut(weight) else { return };
        match bit.known() {
            Some(one) => column.ones = column.ones.saturating_add(u64::from(one)),
            None => column.bits.push_back(bit),
        }
    }

    /// Subtracts `bit · 2^weight`.
    pub(crate) fn subtract(&mut self, bit: Bit, weight: usize) {
        self.add(!bit, weight);
        // −2^k is the sum of all powers from 2^k up.
        for column in self.columns.iter_mut().skip(weight) {
            column.ones = column.ones.saturating_add(1);
        }
    }

    /// The bits of the sum, lowest first.
    pub(crate) fn total(mut self, builder: &mut Builder) -> Vec<Bit> {
        self.carry_constants();
        let mut total = Vec::with_capacity(self.columns.len());
        let mut carried = VecDeque::new();
        for mut column in self.columns {
            column.bits.append(&mut carried);
            total.push(compress(builder, column.bits, &mut carried));
        }
        total
    }

    /// Adds up the constants, so that each column has one at most.
    fn carry_constants(&mut self) {
        let mut carry = 0_u64;
        for column in &mut self.columns {
            let ones = column.ones.saturating_add(carry);
            carry = ones >> 1;
            if ones & 1 == 1 {
                column.bits.push_back(Bit::TRUE);
            }
        }
    }
}

/// Leaves one bit of a column, and puts the carries into the next.
fn compress(builder: &mut Builder, mut bits: VecDeque<Bit>, carried: &mut VecDeque<Bit>) -> Bit {
    loop {
        let Some(a) = bits.pop_front() else { return Bit::FALSE };
        let Some(b) = bits.pop_front() else { return a };
        let c = bits.pop_front().unwrap_or(Bit::FALSE);
        // Three bits of one weight become one and a carry.
        let (sum, carry) = full_adder(builder, a, b, c);
        if carry != Bit::FALSE {
            carried.push_back(carry);
        }
        if bits.is_empty() {
            return sum;
        }
        // Behind the others, so that all have waited for about as many gates.
        bits.push_back(sum);
    }
}

/// a + b + c as sum and carry, at one AND.
fn full_adder(builder: &mut Builder, a: Bit, b: Bit, c: Bit) -> (Bit, Bit) {
    // The carry is the majority: (a ⊕ c)·(b ⊕ c) ⊕ c.
    let (a_c, b_c) = (builder.xor(a, c), builder.xor(b, c));
    let both = builder.and(a_c, b_c);
    (builder.xor(a_c, b), builder.xor(both, c))
}
