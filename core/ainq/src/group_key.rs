//! The group key of an epoch; only the tag, the traffic key and exported keys are derived from it.

use quiver_crypto::{Digest, Secret, prf, prf_each};

use crate::{Name, TrafficKey};

/// K_g. Erased when dropped; drop it as soon as a newer one is activated.
#[derive(Clone, derive_more::Debug)]
#[debug("GroupKey(32 bytes)")]
pub struct GroupKey {
    suite: &'static str,
    key: Secret<32>,
}

impl GroupKey {
    pub(crate) const fn new(suite: &'static str, key: Secret<32>) -> Self {
        Self { suite, key }
    }

    /// The key itself, to be sealed for a member.
    pub(crate) const fn expose(&self) -> &Secret<32> {
        &self.key
    }

    /// C = K_g ⊕ pad.
    pub(crate) fn wrap(&self, pad: &Secret<32>) -> [u8; 32] {
        self.key.xor(pad)
    }

    /// K_g = C ⊕ pad. Not verified yet to be the group's key.
    pub(crate) fn unwrap(suite: &'static str, wrap: &[u8; 32], pad: &Secret<32>) -> Self {
        Self::new(suite, pad.unmask(wrap))
    }

    /// tag = PRF(K_g, "confirm", D0 ‖ entries_root).
    pub(crate) fn tag(&self, d0: &Digest, entries_root: &Digest) -> Secret<32> {
        prf(&self.key, self.suite, "confirm", &[d0, entries_root])
    }

    /// Derives both keys that every member needs at once: [`tag`](Self::tag) and [`traffic`](Self::traffic).
    pub(crate) fn tag_and_traffic(
        &self,
        d0: &Digest,
        entries_root: &Digest,
        digest: &Digest,
    ) -> (Secret<32>, TrafficKey) {
        // Both under one key: the tag of §7.3 and the traffic key of §13.1.
        let uses: [(&str, &[&[u8]]); 2] = [("confirm", &[d0, entries_root]), ("traffic", &[digest])];
        let [tag, traffic] = prf_each(&self.key, self.suite, uses);
        (tag, TrafficKey::new(self.suite, traffic))
    }

    /// K_tr = PRF(K_g, "traffic", D), the key of the group's messages in the epoch with header digest D.
    #[must_use]
    pub fn traffic(&self, digest: &Digest) -> TrafficKey {
        TrafficKey::new(self.suite, prf(&self.key, self.suite, "traffic", &[digest]))
    }

    /// PRF(K_g, "export", lp(name) ‖ D): a key for an application, independent of every other.
    #[must_use]
    pub fn export(&self, name: &Name, digest: &Digest) -> Secret<32> {
        let name = name.as_bytes();
        // A name has at most 64 bytes.
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
        prf(&self.key, self.suite, "export", &[&length, name, digest])
    }

    /// Eight bytes to display: the first of what is exported under the empty name, which no application can
    /// have.
    #[must_use]
    pub fn fingerprint(&self, digest: &Digest) -> [u8; 8] {
        // §14: the empty name belongs to no application: the fingerprint is no part of an exported key.
        let exported = prf(&self.key, self.suite, "export", &[&0_u32.to_be_bytes(), digest]);
        let mut shown = [0; 8];
        shown.iter_mut().zip(exported.expose()).for_each(|(to, from)| *to = *from);
        shown
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn exported_keys_differ_by_name_and_epoch_and_from_each_other_key_of_the_epoch() {
        let group_key = GroupKey::new("suite", Secret::new([7; 32]));
        let name = |text: &str| Name::new(text).unwrap();
        let mut keys: Vec<[u8; 32]> = Vec::new();
        for digest in [[1; 32], [2; 32]] {
            // One name is the beginning of the other: where it ends is hashed, too.
            keys.extend(["a", "ab", "b"].map(|text| *group_key.export(&name(text), &digest).expose()));
            let (shown, traffic) =
                (group_key.fingerprint(&digest), prf(&group_key.key, "suite", "traffic", &[&digest]));
            assert!(keys.iter().all(|key| key[..8] != shown && key != traffic.expose()));
        }
        for (place, key) in keys.iter().enumerate() {
            assert!(!keys[..place].contains(key) && key != &[7; 32], "{place}");
        }
    }
}
