//! Weighted sums of many points of the first curve by buckets, whose additions share inversions, where there
//! are no vector lanes. Not constant-time.
//!
//! Digits of weights are from −2^(w − 1) to 2^(w − 1). A point is added to the bucket of its digit, or its
//! opposite is, in each window of w bits; and a window is Σ k · bucket_k, by the sums of the buckets from the
//! highest down (N. Pippenger, "On the evaluation of powers and related problems", FOCS 1976). Nothing but
//! adding and doubling is done to points, and the map by which the higher half of a weight counts.

use alloc::vec::Vec;

use super::batch_addition::{PAIRS, Summand, add_each, evaluate, sum_groups};
use crate::G1;
use crate::point::affine;

/// With fewer rows, digits that are mostly zero take fewer additions.
pub(super) const MANY_ROWS: usize = 64;

/// Bits of a half of a weight, and a carry.
const BITS: u32 = u64::BITS + 1;

/// Points that are sorted into buckets at once, unless there are more in one window: 96 bytes each.
const AT_ONCE: usize = 4096;

/// As [`G1::sum_weighted`], for one column or more and one row or more.
pub(super) fn sum_weighted(points: &[G1], weights: &[[u64; 2]], columns: usize) -> Vec<G1> {
    let points: Vec<[Summand; 2]> = affine(points)
        .iter()
        .map(|point| {
            let point = Summand::new(point);
            [point, point.times_z_squared()]
        })
        .collect();
    let width = width(points.len().div_ceil(columns));
    let windows = BITS.div_ceil(width) as usize;
    // Totals of the columns, then the lowest window of each column, and so on.
    let mut sums = alloc::vec![Summand::IDENTITY; columns * (1 + windows)];
    let columns_at_once = PAIRS.div_ceil(windows);
    for first in (0..columns).step_by(columns_at_once) {
        let chosen = first..columns.min(first + columns_at_once);
        let buckets = chosen.clone().flat_map(|column| {
            let of_column = points.iter().zip(weights).skip(column).step_by(columns);
            buckets(&of_column.map(|(point, weight)| (*point, *weight)).collect::<Vec<_>>(), width, windows)
        });
        let totals = totals(buckets.collect(), 1 << (width - 1));
        for (column, totals) in chosen.zip(totals.chunks(windows)) {
            let places = sums.iter_mut().skip(columns + column).step_by(columns);
            places.zip(totals).for_each(|(place, total)| *place = *total);
        }
    }
    evaluate(sums, columns, windows, width)
}

/// The width of digits with which so many rows take the fewest additions.
fn width(rows: usize) -> u32 {
    let additions = |width: &u32| BITS.div_ceil(*width) as usize * (2 * rows + (1 << *width));
    (2..=12).min_by_key(additions).unwrap_or(2)
}

/// The buckets of one column, window by window.
fn buckets(column: &[([Summand; 2], [u64; 2])], width: u32, windows: usize) -> Vec<Summand> {
    let count = 1 << (width - 1);
    let at_once = (AT_ONCE / (2 * column.len()).max(1)).clamp(1, windows);
    let mut buckets = Vec::with_capacity(windows * count);
    for first in (0..windows).step_by(at_once) {
        let chosen = first..windows.min(first + at_once);
        let mut terms = Vec::with_capacity(2 * column.len() * chosen.len());
        for (images, weight) in column {
            for (point, half) in images.iter().zip(weight) {
                for window in chosen.clone() {
                    let digit = digit(*half, window as u32, width);
                    let bucket = (window - first) * count + digit.unsigned_abs() as usize;
                    if digit != 0 {
                        terms.push((bucket - 1, if digit < 0 { point.opposite() } else { *point }));
                    }
                }
            }
        }
        let mut lengths = alloc::vec![0; chosen.len() * count];
        for (bucket, _) in &terms {
            lengths.iter_mut().skip(*bucket).take(1).for_each(|length| *length += 1);
        }
        // Sorted by buckets: where each begins.
        let mut next: Vec<usize> = lengths
            .iter()
            .scan(0, |end, length| {
                *end += length;
                Some(*end - length)
            })
            .collect();
        let mut sorted = alloc::vec![Summand::IDENTITY; terms.len()];
        for (bucket, term) in terms {
            if let Some(next) = next.get_mut(bucket)
                && let Some(place) = sorted.get_mut(*next)
            {
                *place = term;
                *next += 1;
            }
        }
        buckets.extend(sum_groups(sorted, &lengths));
    }
    buckets
}

/// The digit of a number in a window, from −2^(width − 1) to 2^(width − 1): what the bits below it carry, its
/// bits, and 2^width less if they are above half.
fn digit(number: u64, window: u32, width: u32) -> i32 {
    let from = window * width;
    let bits = (u128::from(number) >> from & ((1 << width) - 1)) as i32;
    // Half of 2^width and more in the window below is carried, where nothing is carried before half is
    // reached.
    let carried = from.checked_sub(1).map_or(0, |below| (u128::from(number) >> below & 1) as i32);
    let above = bits >> (width - 1);
    bits + carried - (above << width)
}

/// Σ (k + 1) · bucket_k over each so many buckets that stand one after the other.
fn totals(buckets: Vec<Summand>, count: usize) -> Vec<Summand> {
    let windows = buckets.len() / count;
    // Sums from the highest bucket down, the totals of these, and the buckets.
    let mut places = alloc::vec![Summand::IDENTITY; 2 * windows];
    places.extend(buckets);
    let mut pairs = Vec::with_capacity(windows);
    for bucket in (0..count).rev() {
        pairs.clear();
        pairs.extend((0..windows).map(|window| [window, 2 * windows + window * count + bucket]));
        add_each(&mut places, &pairs);
        pairs.clear();
        pairs.extend((0..windows).map(|window| [windows + window, window]));
        add_each(&mut places, &pairs);
    }
    places.truncate(2 * windows);
    places.split_off(windows)
}

#[cfg(test)]
mod tests {
    use super::super::batch_addition::tests::{
        are_those_of_arkworks, know_the_identity_and_equal_and_opposite_points,
    };
    use super::*;

    #[test]
    fn digits_make_the_number_again() {
        for number in
            [0, 1, 2, 7, 8, 9, u64::MAX, u64::MAX - 1, 1 << 63, 0x8888_8888_8888_8888, 0x7777 << 48 | 0x9abc]
        {
            for width in 2..=12 {
                let digits = (0..BITS.div_ceil(width)).map(|window| {
                    let digit = digit(number, window, width);
                    assert!(digit.abs() <= 1 << (width - 1));
                    i128::from(digit) << (window * width)
                });
                assert_eq!(digits.sum::<i128>(), i128::from(number), "{width}");
            }
        }
    }

    #[test]
    fn weighted_sums_are_those_of_arkworks() {
        are_those_of_arkworks(sum_weighted, &[(1, 1), (3, 5), (40, 7), (2, 300), (1, 3000)]);
    }

    #[test]
    fn weighted_sums_know_the_identity_and_equal_and_opposite_points() {
        know_the_identity_and_equal_and_opposite_points(sum_weighted);
    }
}
