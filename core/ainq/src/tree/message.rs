//! The path message: the node keys above one leaf, sealed to its member.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Secret, Zeroizing, aead, prf};

use super::algebra::HmacXor;
use super::node::MAX_HEIGHT;
use super::path::Path;
use crate::pairwise::Ratchet;
use crate::slots::{MAX_SLOTS, Slot};
use crate::{Error, GroupKey, Suite};

/// Nonce that ties a path message to a request: the number of a request to catch up, n_e of a join, or random
/// bytes of the leader.
pub type PathNonce = [u8; 16];

const KEY_LEN: usize = 32;

/// The keys above one member's leaf, and K_g, sealed for that member alone. The header they belong to is sent
/// beside it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("PathMessage {{ slot: {slot:?}, .. }}")]
pub struct PathMessage {
    /// Slot of the member.
    pub slot: Slot,
    /// Nonce of the request that it answers.
    pub r: PathNonce,
    sealed: Vec<u8>,
}

impl PathMessage {
    /// Bytes of an encoding at most: slot and r, the keys of a path in the highest tree, K_g, and the seal's
    /// tag.
    pub const MAX_LEN: usize = Self::len_for(MAX_HEIGHT);

    /// Bytes of one in a tree of this height.
    #[must_use]
    pub const fn len_for(height: u8) -> usize {
        4 + 16 + (height as usize + 1) * KEY_LEN + aead::TAG_LEN
    }

    /// slot (4 bytes) ‖ r (16) ‖ ciphertext.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().u32(self.slot).fixed(&self.r).fixed(&self.sealed).finish()
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] for a slot no group has; [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let slot = reader.u32()?;
        if slot >= MAX_SLOTS {
            return Err(Error::WrongSlot);
        }
        let r = reader.array()?;
        let sealed = reader.take(reader.remaining())?;
        let keys = sealed.len().checked_sub(aead::TAG_LEN).ok_or(Error::Malformed("path"))?;
        // At least one key of a node, and K_g.
        let fits = keys % KEY_LEN == 0 && (2..=usize::from(MAX_HEIGHT) + 1).contains(&(keys / KEY_LEN));
        if !fits {
            return Err(Error::Malformed("path"));
        }
        Ok(Self { slot, r, sealed: sealed.to_vec() })
    }

    /// Seals a path under the member's chain, which is at the epoch.
    pub(crate) fn seal<'a, S: Suite>(
        slot: Slot,
        leaf: &Ratchet<S>,
        digest: &Digest,
        r: &PathNonce,
        keys: impl Iterator<Item = &'a Secret<KEY_LEN>>,
        group_key: &GroupKey,
    ) -> Self {
        // §8.2, 6: plaintext n⁺ of its path, bottom-up, and K_g
        let mut plaintext = Zeroizing::new(Vec::with_capacity((usize::from(MAX_HEIGHT) + 1) * KEY_LEN));
        keys.for_each(|key| plaintext.extend_from_slice(key.expose()));
        plaintext.extend_from_slice(group_key.expose().expose());
        // §8.2, 6: under PRF(W[c], "path", D ‖ r), nonce 0, AAD D ‖ slot.
        let key = sealing_key(leaf, digest, r);
        let sealed = aead::seal(&key, &[0; 12], &bound_to(digest, slot), &plaintext);
        Self { slot, r: *r, sealed }
    }

    /// Opens it with a chain that is at the epoch.
    pub(crate) fn open<S: Suite>(
        &self,
        leaf: &Ratchet<S>,
        digest: &Digest,
        height: u8,
    ) -> Result<(Path<HmacXor<S>>, GroupKey), Error> {
        let key = sealing_key(leaf, digest, &self.r);
        let plaintext = aead::open(&key, &[0; 12], &bound_to(digest, self.slot), &self.sealed)?;
        let (keys, rest) = plaintext.as_chunks::<KEY_LEN>();
        let (group_key, path) = keys.split_last().ok_or(Error::Malformed("path"))?;
        // §8.1: a path has one key for each level of the header's height.
        if path.len() != usize::from(height) || !rest.is_empty() {
            return Err(Error::Malformed("path"));
        }
        let path = Path::new(path.iter().map(|key| Secret::new(*key)).collect());
        Ok((path, GroupKey::new(S::ID, Secret::new(*group_key))))
    }
}

/// PRF(W\[u\], "path", D ‖ r). Of one epoch and one question there is one path: no key seals two.
fn sealing_key<S: Suite>(leaf: &Ratchet<S>, digest: &Digest, r: &PathNonce) -> Secret<32> {
    prf(leaf.chain(), S::ID, "path", &[digest, r])
}

/// AAD D ‖ slot.
fn bound_to(digest: &Digest, slot: Slot) -> Vec<u8> {
    Writer::new().fixed(digest).u32(slot).finish()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::Ristretto255;

    const DIGEST: Digest = [3; 32];

    fn leaf() -> Ratchet<Ristretto255> {
        Ratchet::decode(&[0; 72]).unwrap()
    }

    fn sealed(slot: Slot, height: u8) -> PathMessage {
        let keys: Vec<_> = (0..height).map(|level| Secret::new([level; 32])).collect();
        let group_key = GroupKey::new(Ristretto255::ID, Secret::new([9; 32]));
        PathMessage::seal(slot, &leaf(), &DIGEST, &[7; 16], keys.iter(), &group_key)
    }

    #[test]
    fn the_longest_path_message_is_as_long_as_the_bound_says() {
        let longest = sealed(MAX_SLOTS - 1, MAX_HEIGHT).encode();
        assert_eq!(longest.len(), 708);
        assert_eq!(PathMessage::MAX_LEN, 708);
        let read = PathMessage::decode(&longest).unwrap();
        let (path, group_key) = read.open(&leaf(), &DIGEST, MAX_HEIGHT).unwrap();
        assert_eq!(path.height(), MAX_HEIGHT);
        assert_eq!(*group_key.expose().expose(), [9; 32]);
    }

    #[test]
    fn a_path_is_read_only_in_a_tree_of_its_height() {
        let message = sealed(1, 5);
        let opened = |height| message.open(&leaf(), &DIGEST, height).map(drop);
        assert_eq!(opened(5), Ok(()));
        for height in [4, 6] {
            assert_eq!(opened(height), Err(Error::Malformed("path")), "{height}");
        }
    }

    #[test]
    fn a_path_has_whole_keys_of_one_node_at_least_and_of_twenty_at_most() {
        let decoded = |slot: Slot, sealed: usize| {
            let bytes = Writer::new().u32(slot).fixed(&[7; 16]).fixed(&vec![0; sealed]).finish();
            PathMessage::decode(&bytes).map(drop)
        };
        for sealed in 0..=23 * KEY_LEN + aead::TAG_LEN {
            // K_g and the keys of 1 to 20 nodes.
            let fits = (2..=21).any(|keys| sealed == 32 * keys + 16);
            let expected = if fits { Ok(()) } else { Err(Error::Malformed("path")) };
            assert_eq!(decoded(5, sealed), expected, "{sealed} bytes");
        }
        assert_eq!(decoded(MAX_SLOTS - 1, 80), Ok(()));
        assert_eq!(decoded(MAX_SLOTS, 80), Err(Error::WrongSlot));
    }
}
