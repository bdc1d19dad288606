//! Which drone is granted what.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What a drone is granted at one authority, or that it no longer is. The highest revision counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Fingerprint of the authority's statement.
    pub authority: [u8; 32],
    /// The drone's serial.
    pub serial: [u8; 16],
    /// Rises with every change that the operator makes.
    pub revision: u64,
    /// A policy or a set of attributes in the scheme's encoding; none if the grant is withdrawn.
    pub granted: Option<Vec<u8>>,
}

/// The newest word on every drone at every authority. As many as the operator made.
#[derive(Debug, Default)]
pub(super) struct Grants(BTreeMap<([u8; 32], [u8; 16]), Newest>);

#[derive(Debug)]
struct Newest {
    revision: u64,
    granted: Option<Vec<u8>>,
}

impl Grants {
    /// Takes a grant unless a newer one is known.
    pub(super) fn apply(&mut self, grant: Grant) {
        let Grant { authority, serial, revision, granted } = grant;
        let known = self.0.get(&(authority, serial));
        if known.is_none_or(|known| known.revision < revision) {
            self.0.insert((authority, serial), Newest { revision, granted });
        }
    }

    /// What is granted, with its revision.
    pub(super) fn find(&self, authority: &[u8; 32], serial: &[u8; 16]) -> Option<(u64, &[u8])> {
        let newest = self.0.get(&(*authority, *serial))?;
        Some((newest.revision, newest.granted.as_deref()?))
    }

    /// How many are in force.
    pub(super) fn len(&self) -> usize {
        self.0.values().filter(|newest| newest.granted.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_revision_counts_in_whatever_order_they_come() {
        let grant = |revision, granted: Option<&[u8]>| Grant {
            authority: [1; 32],
            serial: [2; 16],
            revision,
            granted: granted.map(<[u8]>::to_vec),
        };
        let mut grants = Grants::default();
        grants.apply(grant(5, Some(b"five")));
        grants.apply(grant(3, None));
        grants.apply(grant(5, Some(b"another five")));
        assert_eq!(grants.find(&[1; 32], &[2; 16]), Some((5, &b"five"[..])));
        assert_eq!(grants.find(&[2; 32], &[2; 16]), None);
        assert_eq!(grants.find(&[1; 32], &[3; 16]), None);
        grants.apply(grant(6, None));
        assert_eq!((grants.find(&[1; 32], &[2; 16]), grants.len()), (None, 0));
        grants.apply(grant(4, Some(b"old")));
        assert_eq!(grants.find(&[1; 32], &[2; 16]), None);
    }
}
