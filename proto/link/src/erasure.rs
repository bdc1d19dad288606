//! Erasure code of broadcasts that take several radio frames: k pieces and m more, any k of which suffice.
//!
//! Systematic Reed–Solomon code over GF(2⁸) with a Cauchy matrix (J. Blömer et al., *An XOR-based
//! erasure-resilient coding scheme*, ICSI TR-95-048, 1995): parity piece i is Σ_j piece_j / (x_i + y_j) with
//! x_i = 255 − i and y_j = j. Every square part of such a matrix can be inverted, and row i is the same
//! whatever k and m, so that parity can be added later. Crates that are kept well need `std` or SIMD for
//! it; boards need neither.
//!
//! Frames, their assembly, a gateway's broadcasts and what boards answer, and their repetition by those who have
//! them: [`CodedFrame`], [`Assembler`], [`Broadcaster`], [`Confirmation`], [`Repeater`].

mod assembler;
mod broadcaster;
mod confirmation;
mod frame;
mod galois;
mod loss;
mod repeater;

use alloc::vec;
use alloc::vec::Vec;

pub use assembler::{Assembler, AssemblerCounters, AssemblerLimits};
pub use broadcaster::{Broadcaster, BroadcasterCounters, BroadcasterLimits, Missed};
pub use confirmation::Confirmation;
pub use frame::{CODED_OVERHEAD, CodedFrame, MAX_CODED_MESSAGE, code_broadcast, is_coded};
pub use loss::ObservedLoss;
pub use repeater::{Repeater, RepeaterLimits};

use crate::LinkError;

/// Data pieces and parity pieces of a message together, at most.
pub const MAX_PIECES: usize = 255;
/// Data pieces of a message, at most. Leaves room for the parity that 40 % loss needs.
pub const MAX_DATA_PIECES: usize = 128;
/// Probability with which a receiver shall be able to decode: of 2,000, then, all but two almost certainly.
pub const TARGET: f64 = 0.9999;

/// The smallest number m of parity pieces with which at least `data` of `data` + m pieces arrive with a
/// probability of [`TARGET`], if each is lost independently with probability `loss`. Limited to what
/// [`MAX_PIECES`] leaves; 0 for a `loss` that is no number or not above 0.
pub fn parity_for(data: usize, loss: f64) -> usize {
    parity_within(data, loss, 1.0 - TARGET)
}

/// Computes the parity, as [`parity_for`] does, for a probability of failure of at most `failure`: a unit of
/// n messages needs an n-th of it for each.
pub fn parity_within(data: usize, loss: f64, failure: f64) -> usize {
    let most = MAX_PIECES.saturating_sub(data);
    if data == 0 || loss.is_nan() || loss <= 0.0 {
        return 0;
    }
    let mut decodes = Decodes::new(data, loss);
    (0..most).find(|_| decodes.step() >= 1.0 - failure).unwrap_or(most)
}

/// Probability that at least `data` of `data` + `parity` pieces arrive, if each is lost independently with
/// probability `loss`.
pub fn recovery_probability(data: usize, parity: usize, loss: f64) -> f64 {
    let mut decodes = Decodes::new(data, loss);
    let mut probability = 0.0;
    for _ in 0..=parity {
        probability = decodes.step();
    }
    probability
}

/// Distribution of the number of pieces lost before the k-th that arrives (negative binomial), by addition,
/// multiplication and division alone: the same on every machine.
struct Decodes {
    data: f64,
    loss: f64,
    lost: f64,
    term: f64,
    sum: f64,
}

impl Decodes {
    fn new(data: usize, loss: f64) -> Self {
        let loss = loss.clamp(0.0, 1.0);
        let term = (0..data).fold(1.0, |product, _| product * (1.0 - loss));
        Self { data: data as f64, loss, lost: 0.0, term, sum: 0.0 }
    }

    /// Adds the next term, C(k + j − 1, j) (1 − p)^k p^j, beginning with j = 0.
    fn step(&mut self) -> f64 {
        self.sum += self.term;
        self.term *= self.loss * (self.data + self.lost) / (self.lost + 1.0);
        self.lost += 1.0;
        self.sum.min(1.0)
    }
}

/// Coefficient of data piece `column` in parity piece `row`.
fn coefficient(row: usize, column: usize) -> u8 {
    // Rows count down from 255, columns up from 0, and together they are 255 at most: never equal.
    galois::inverse((255 - row as u8) ^ column as u8)
}

/// Parity piece `row` of these data pieces, which are of equal length.
pub fn parity_piece<P: AsRef<[u8]>>(data: &[P], row: usize) -> Result<Vec<u8>, LinkError> {
    let len = data.first().map_or(0, |piece| piece.as_ref().len());
    let equal = data.iter().all(|piece| piece.as_ref().len() == len);
    if !equal || data.is_empty() || data.len() > MAX_DATA_PIECES || data.len() + row >= MAX_PIECES {
        return Err(LinkError::InvalidCode);
    }
    let mut parity = vec![0; len];
    for (column, piece) in data.iter().enumerate() {
        galois::multiply_add(&mut parity, piece.as_ref(), coefficient(row, column));
    }
    Ok(parity)
}

/// The `data` data pieces, one after the other, from exactly as many pieces with different indices: from 0
/// those of data, from `data` those of parity. Costs at most `data`²/4 multiplications of pieces and as much
/// again for what is there; memory for the message and its missing pieces.
///
/// # Errors
/// [`LinkError::InvalidCode`]: another number of pieces, indices twice or too high, unequal lengths.
pub fn recover(data: usize, pieces: &[(u8, &[u8])]) -> Result<Vec<u8>, LinkError> {
    let len = pieces.first().map_or(0, |(_, piece)| piece.len());
    if data == 0 || data > MAX_DATA_PIECES || pieces.len() != data || len == 0 {
        return Err(LinkError::InvalidCode);
    }
    let mut message = vec![0; data * len];
    let mut there = [false; MAX_PIECES];
    for &(index, piece) in pieces {
        let seen = there.get_mut(usize::from(index)).ok_or(LinkError::InvalidCode)?;
        if core::mem::replace(seen, true) || piece.len() != len {
            return Err(LinkError::InvalidCode);
        }
        if let Some(place) = message.chunks_exact_mut(len).take(data).nth(usize::from(index)) {
            place.copy_from_slice(piece);
        }
    }
    let missing: Vec<usize> =
        there.iter().take(data).enumerate().filter(|(_, there)| !**there).map(|(column, _)| column).collect();
    // Each parity piece that came, less what the data pieces that came put into it: one equation for the
    // missing ones.
    let mut equations = Vec::with_capacity(missing.len());
    for &(index, piece) in pieces.iter().filter(|(index, _)| usize::from(*index) >= data) {
        let row = usize::from(index) - data;
        let mut right = piece.to_vec();
        for (column, known) in message.chunks_exact(len).enumerate() {
            // A missing piece is all zeros so far.
            galois::multiply_add(&mut right, known, coefficient(row, column));
        }
        let left: Vec<u8> = missing.iter().map(|&column| coefficient(row, column)).collect();
        equations.push((left, right));
    }
    for (&column, solved) in missing.iter().zip(solve(equations)?) {
        if let Some(place) = message.chunks_exact_mut(len).nth(column) {
            place.copy_from_slice(&solved);
        }
    }
    Ok(message)
}

type Equation = (Vec<u8>, Vec<u8>);

/// Solves by Gauss and Jordan. Leading parts of a Cauchy matrix are Cauchy matrices, so that no pivot is 0.
fn solve(mut equations: Vec<Equation>) -> Result<Vec<Vec<u8>>, LinkError> {
    for at in 0..equations.len() {
        let (before, rest) = equations.split_at_mut(at);
        let Some(((left, right), after)) = rest.split_first_mut() else { break };
        let pivot = left.get(at).copied().filter(|pivot| *pivot != 0).ok_or(LinkError::InvalidCode)?;
        let scale = galois::inverse(pivot);
        galois::multiply(left, scale);
        galois::multiply(right, scale);
        for (other_left, other_right) in before.iter_mut().chain(after) {
            let factor = other_left.get(at).copied().unwrap_or(0);
            galois::multiply_add(other_left, left, factor);
            galois::multiply_add(other_right, right, factor);
        }
    }
    Ok(equations.into_iter().map(|(_, right)| right).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_follows_from_loss() {
        // Worked out with Python's fractions: the least n with P(Bin(n, 1 − p) ≥ k) ≥ 0.9999.
        for (data, loss, all) in
            [(7, 0.1, 13), (7, 0.3, 22), (1, 0.1, 4), (2, 0.1, 6), (12, 0.1, 20), (12, 0.3, 31), (3, 0.3, 13)]
        {
            assert_eq!(data + parity_for(data, loss), all, "{data} pieces, {loss} lost");
        }
        assert_eq!(parity_for(7, 0.0), 0);
        assert_eq!(parity_for(7, f64::NAN), 0);
        assert_eq!(parity_for(7, -1.0), 0);
        assert_eq!(parity_for(0, 0.5), 0);
        assert_eq!(parity_for(7, 1.0), MAX_PIECES - 7, "bounded");
        assert_eq!(parity_for(1000, 0.5), 0, "no room");
    }

    #[test]
    fn parity_is_the_smallest_that_suffices() {
        for data in 1..=40 {
            for loss in [0.01, 0.05, 0.1, 0.2, 0.3, 0.5] {
                let parity = parity_for(data, loss);
                assert!(recovery_probability(data, parity, loss) >= TARGET);
                assert!(parity == 0 || recovery_probability(data, parity - 1, loss) < TARGET);
            }
        }
    }

    #[test]
    fn unfit_pieces_are_refused() {
        let one: &[u8] = &[1, 2];
        type Pieces<'a> = &'a [(u8, &'a [u8])];
        let unfit: [(usize, Pieces<'_>); 7] = [
            (0, &[]),
            (2, &[(0, one)]),
            (1, &[(0, one), (1, one)]),
            (2, &[(1, one), (1, one)]),
            (2, &[(0, one), (1, &[1])]),
            (2, &[(0, one), (255, one)]),
            (1, &[(0, &[])]),
        ];
        for (data, pieces) in unfit {
            assert_eq!(recover(data, pieces), Err(LinkError::InvalidCode), "{data} {pieces:?}");
        }
        assert_eq!(parity_piece::<&[u8]>(&[], 0), Err(LinkError::InvalidCode));
        assert_eq!(parity_piece(&[&[1][..], &[1, 2]], 0), Err(LinkError::InvalidCode));
        assert_eq!(parity_piece(&[[1]; 100], 155), Err(LinkError::InvalidCode));
        assert!(parity_piece(&[[1]; 100], 154).is_ok());
    }
}
