//! The wraps of an epoch, encoded: the same for all members, bound by the header (§8.3).
//!
//! Which nodes are in R follows from the header, so only what does not is written: for every v ∈ R two bits,
//! whether each child wraps; then the wraps (32 bytes each). All in the order level, index, child; the bits
//! from the lowest of each byte up, the last byte filled with zeros.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

use super::hierarchy::Wrapped;
use super::node::{Node, Touched};
use crate::Error;

/// Bytes of a wrap.
const WRAP_LEN: usize = 32;

/// Every wrap of one epoch of a tree, bound to its header by entries_root. Received, it is any byte string
/// that is not too long; it is decoded with the header that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    bytes: Vec<u8>,
    /// Digest of the bytes. Kept, because it is needed more than once and they may be many.
    root: Digest,
}

impl Delta {
    /// Bytes a delta may have: room for the removal of 1,024 members wherever they are.
    pub const MAX_LEN: usize = 3 << 17;

    fn new(bytes: Vec<u8>) -> Self {
        // §8.2, 5: entries_root = H("quiver/1 wraps", wraps).
        let root = Hasher::new("quiver/1 wraps").fixed(&bytes).finish();
        Self { bytes, root }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to be sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Takes the bytes of a message.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_LEN`](Self::MAX_LEN).
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_bytes(bytes.to_vec())
    }

    /// As [`decode`](Self::decode), without a copy.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() > Self::MAX_LEN {
            return Err(Error::TooLong { what: "wraps", limit: Self::MAX_LEN });
        }
        Ok(Self::new(bytes))
    }

    /// entries_root = H("quiver/1 wraps", the bytes).
    #[must_use]
    pub const fn root(&self) -> Digest {
        self.root
    }

    /// Writes the wraps of an epoch down, which come in their order.
    pub(crate) fn pack(touched: &Touched, wraps: &[Wrapped<[u8; WRAP_LEN]>]) -> Self {
        // §8.3: two bits for each v ∈ R, which children wrap; then the wraps.
        let mut bytes = alloc::vec![0; masks_len(touched)];
        set_bits(&mut bytes, touched.refreshed_nodes(), wraps);
        bytes.reserve_exact(wraps.len() * WRAP_LEN);
        wraps.iter().for_each(|wrapped| bytes.extend(wrapped.wrap));
        Self::new(bytes)
    }

    /// Reads the form, of which there is one for every set of wraps.
    pub(crate) fn view<'a>(&'a self, touched: &'a Touched) -> Result<View<'a>, Error> {
        const MALFORMED: Error = Error::Malformed("wraps");
        let (masks, wraps) = self.bytes.split_at_checked(masks_len(touched)).ok_or(MALFORMED)?;
        let bits = 2 * touched.refreshed_len();
        let total = ones_before(masks, masks.len() * 8);
        // Bits behind the last node of R are zero: one set of wraps has one form.
        if total != ones_before(masks, bits) {
            return Err(MALFORMED);
        }
        // §8.3: a wrap of 32 bytes for each bit that is set.
        if wraps.len() != total * WRAP_LEN {
            return Err(MALFORMED);
        }
        Ok(View { touched, masks, wraps })
    }
}

/// A delta read under its header.
pub(crate) struct View<'a> {
    touched: &'a Touched,
    masks: &'a [u8],
    wraps: &'a [u8],
}

impl View<'_> {
    /// The wrap of a parent of R under a child; `None` if no member remains beneath.
    pub(crate) fn find(&self, parent: Node, child: Node) -> Option<[u8; WRAP_LEN]> {
        let bit = bit_of(self.touched, parent, child);
        // §8.2, 3: a child without a remaining member has no wrap.
        if self.masks.get(bit / 8)? >> (bit % 8) & 1 == 0 {
            return None;
        }
        // §8.2, 5: in the order level, index, child.
        let number = ones_before(self.masks, bit);
        self.wraps.as_chunks().0.get(number).copied()
    }
}

/// Sets the bit of every wrap, in one pass over the nodes of R: their ranks are counted on the way.
fn set_bits(masks: &mut [u8], nodes: impl Iterator<Item = Node>, wraps: &[Wrapped<[u8; WRAP_LEN]>]) {
    let mut ranked = (0_usize..).zip(nodes).peekable();
    for Wrapped { parent, child, .. } in wraps {
        while ranked.next_if(|(_, node)| node != parent).is_some() {}
        let Some((rank, _)) = ranked.peek() else { return };
        let bit = bit_at(*rank, *child);
        if let Some(byte) = masks.get_mut(bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }
}

fn masks_len(touched: &Touched) -> usize {
    (2 * touched.refreshed_len()).div_ceil(8)
}

fn bit_of(touched: &Touched, parent: Node, child: Node) -> usize {
    bit_at(touched.rank(parent), child)
}

/// Two bits for the parent of this rank, of which the second is the right child's.
const fn bit_at(rank: usize, child: Node) -> usize {
    2 * rank + (child.index & 1) as usize
}

/// Number of the first `bits` bits that are set.
fn ones_before(bytes: &[u8], bits: usize) -> usize {
    let (whole, rest) = bytes.split_at_checked(bits / 8).unwrap_or((bytes, &[]));
    let ones: u32 = whole.iter().map(|byte| byte.count_ones()).sum();
    let last = rest.first().map_or(0, |byte| (byte & ((1 << (bits % 8)) - 1)).count_ones());
    (ones + last) as usize
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::super::algebra::Rules;
    use super::*;
    use crate::slots::SlotSet;

    #[test]
    fn wraps_from_outside_are_as_long_as_the_bound_says_and_no_longer() {
        let decoded = |length: usize| Delta::from_bytes(alloc::vec![0; length]).map(drop);
        assert_eq!(Delta::MAX_LEN, 393_216);
        assert_eq!(decoded(393_216), Ok(()));
        assert_eq!(decoded(393_217), Err(Error::TooLong { what: "wraps", limit: 393_216 }));
    }

    #[test]
    fn packing_a_thousand_scattered_removals_looks_at_every_node_once() {
        const HEIGHT: u8 = 17;
        let removed: SlotSet = (0..1024_u32).map(|number| number * 128 + number % 97).collect();
        let touched = Touched::new(HEIGHT, HEIGHT, &removed, &SlotSet::new(), Rules::ALL);
        // Every third child has no member beneath.
        let children =
            touched.refreshed_nodes().flat_map(|parent| parent.children().map(|child| (parent, child)));
        let wraps: Vec<_> = children
            .enumerate()
            .filter(|(number, _)| number % 3 > 0)
            .map(|(number, (parent, child))| Wrapped { parent, child, wrap: [number as u8; WRAP_LEN] })
            .collect();
        let looked_at = Cell::new(0);
        let counted = touched.refreshed_nodes().inspect(|_| looked_at.set(looked_at.get() + 1));
        let mut masks = alloc::vec![0; masks_len(&touched)];
        set_bits(&mut masks, counted, &wraps);
        assert!(wraps.len() > 10_000);
        assert!(looked_at.get() <= touched.refreshed_len(), "{} nodes", looked_at.get());
        let delta = Delta::pack(&touched, &wraps);
        assert_eq!(delta.as_bytes()[..masks.len()], masks);
        let view = delta.view(&touched).unwrap();
        for Wrapped { parent, child, wrap } in wraps.iter().step_by(501) {
            assert_eq!(view.find(*parent, *child).as_ref(), Some(wrap));
        }
    }
}
