//! Grants: what each drone may have of each attribute authority; the highest revision counts.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_crypto::Hasher;

/// Grant of a drone at one authority, or its withdrawal. The highest revision counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Fingerprint of the authority's statement.
    pub authority: [u8; 32],
    /// The drone's serial.
    pub serial: [u8; 16],
    /// Rises with every change that the operator makes.
    pub revision: u64,
    /// A policy or a set of attributes in the scheme's encoding; `None` if the grant is withdrawn.
    pub granted: Option<Vec<u8>>,
}

/// The newest grant of every drone at every authority. As many as the operator made.
#[derive(Debug, Default)]
pub(super) struct Grants(BTreeMap<([u8; 32], [u8; 16]), Newest>);

#[derive(Debug)]
struct Newest {
    revision: u64,
    granted: Option<Vec<u8>>,
}

/// State of a drone's grant at an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantState<'a> {
    /// No grant is known.
    Unknown,
    Withdrawn,
    InForce(InForce<'a>),
}

/// A grant in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InForce<'a> {
    pub(super) revision: u64,
    /// Mark by which a drone names the grant and the period of its key.
    pub(super) mark: u64,
    pub(super) granted: &'a [u8],
}

impl Grants {
    /// Takes a grant unless a newer one is known.
    pub(super) fn apply(&mut self, grant: Grant) {
        let Grant { authority, serial, revision, granted } = grant;
        // §4.2: a grant belongs to a serial: a later drone under a freed name inherits nothing.
        let known = self.0.get(&(authority, serial));
        if known.is_none_or(|known| known.revision < revision) {
            self.0.insert((authority, serial), Newest { revision, granted });
        }
    }

    /// Finds the grant; the mark is that of the key of this period, if the authority's keys end.
    pub(super) fn find(
        &self,
        authority: &[u8; 32],
        serial: &[u8; 16],
        period: Option<u64>,
    ) -> GrantState<'_> {
        let Some(newest) = self.0.get(&(*authority, *serial)) else { return GrantState::Unknown };
        let revision = newest.revision;
        // §4.2: withdrawn is more than unknown: the drone erases its key.
        let Some(granted) = newest.granted.as_deref() else { return GrantState::Withdrawn };
        GrantState::InForce(InForce {
            revision,
            mark: mark(authority, (serial, revision), granted, period),
            granted,
        })
    }

    /// Number of grants in force.
    pub(super) fn len(&self) -> usize {
        self.0.values().filter(|newest| newest.granted.is_some()).count()
    }
}

/// First 8 bytes of H("quiver/1 grant", F, serial, revision, granted, and the period if keys end). Not the
/// revision alone, because a registry that was put back from a backup makes revisions anew.
fn mark(
    authority: &[u8; 32],
    (serial, revision): (&[u8; 16], u64),
    granted: &[u8],
    period: Option<u64>,
) -> u64 {
    let hash = Hasher::new("quiver/1 grant").fixed(authority).fixed(serial).u64(revision).lp(granted);
    // §A2: the mark contains the period: in the next one the drone gets another credential.
    let hash = match period {
        Some(period) => hash.u64(period),
        None => hash,
    };
    hash.finish().first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}

/// The mark of what an authority publishes in a period: revisions begin with 1.
pub(super) fn mark_of_published(authority: &[u8; 32], period: Option<u64>) -> u64 {
    mark(authority, (&[0; 16], 0), &[], period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_that_differ_in_anything_have_different_marks() {
        let mark_in = |authority, serial, revision, granted: &[u8], period| {
            let mut grants = Grants::default();
            grants.apply(Grant { authority, serial, revision, granted: Some(granted.to_vec()) });
            match grants.find(&authority, &serial, period) {
                GrantState::InForce(found) => found.mark,
                other => panic!("{other:?}"),
            }
        };
        let mark =
            |authority, serial, revision, granted: &[u8]| mark_in(authority, serial, revision, granted, None);
        let one = mark([1; 32], [2; 16], 3, b"scout");
        assert_eq!(one, mark([1; 32], [2; 16], 3, b"scout"));
        // The same revision with another content: a registry that was put back.
        let others = [
            mark([1; 32], [2; 16], 3, b"tanker"),
            mark([1; 32], [2; 16], 4, b"scout"),
            mark([1; 32], [3; 16], 3, b"scout"),
            mark([2; 32], [2; 16], 3, b"scout"),
            mark_in([1; 32], [2; 16], 3, b"scout", Some(0)),
            mark_in([1; 32], [2; 16], 3, b"scout", Some(1)),
            mark_of_published(&[1; 32], None),
            mark_of_published(&[1; 32], Some(1)),
        ];
        let all: alloc::collections::BTreeSet<_> = others.iter().chain([&one]).collect();
        assert_eq!(all.len(), others.len() + 1);
    }

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
        let found = grants.find(&[1; 32], &[2; 16], None);
        assert!(
            matches!(found, GrantState::InForce(InForce { revision: 5, granted: b"five", .. })),
            "{found:?}"
        );
        assert_eq!(grants.find(&[2; 32], &[2; 16], None), GrantState::Unknown);
        assert_eq!(grants.find(&[1; 32], &[3; 16], None), GrantState::Unknown);
        grants.apply(grant(6, None));
        assert_eq!((grants.find(&[1; 32], &[2; 16], None), grants.len()), (GrantState::Withdrawn, 0));
        grants.apply(grant(4, Some(b"old")));
        assert_eq!(grants.find(&[1; 32], &[2; 16], None), GrantState::Withdrawn);
    }
}
