//! Checks that no mask hides two keys.
//!
//! An epoch publishes C_i = K_g ⊕ M_i for every member. If member i's mask were used again in another epoch,
//! C_i ⊕ C_i' would be K_g ⊕ K_g', and the same for every other member whose mask was used again: two members
//! with the same difference give the reuse away without knowing any key. Before that, the causes are looked
//! for: an epoch of a member wrapped in two ways, and a leader's point V or a header's nonce that comes
//! again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quiver_ainq::{EpochPart, Header, PathNonce, Slot, Suite};

use super::publications::LeaderPublication;
use super::{Evidence, Invariant, InvariantCheck};
use crate::{Step, World};

/// Number of past epochs whose differences are compared.
const WINDOW: usize = 6;

/// Two epochs and the difference of one member's wraps in them.
type WrapDifference = ([u8; 32], [u8; 32], [u8; 32]);

/// Publications of one epoch.
#[derive(Clone, Debug)]
struct Seen {
    digest: [u8; 32],
    wraps: BTreeMap<u32, [u8; 32]>,
}

/// Publications of all epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    points: BTreeMap<Vec<u8>, [u8; 32]>,
    nonces: BTreeMap<[u8; 32], [u8; 32]>,
    window: VecDeque<Seen>,
    /// Differences between two epochs, and the slot that showed them.
    differences: BTreeMap<WrapDifference, Slot>,
    /// The hash of a tree's wraps by epoch.
    deltas: BTreeMap<[u8; 32], [u8; 32]>,
    /// Sealed paths by epoch, slot and nonce.
    paths: BTreeMap<([u8; 32], Slot, PathNonce), Vec<u8>>,
}

impl Masks {
    /// Notes a header. Returns what is wrong with it.
    fn header<S: Suite>(&mut self, header: &Header<S>, digest: [u8; 32]) -> Option<&'static str> {
        let core = &header.core;
        if *self.nonces.entry(core.nonce).or_insert(digest) != digest {
            return Some("two epochs have the same nonce");
        }
        let point = core.point.as_ref().map(|point| point.as_bytes().to_vec());
        if let Some(point) = point
            && *self.points.entry(point).or_insert(digest) != digest
        {
            return Some("two epochs have the same point V");
        }
        if !self.window.iter().any(|seen| seen.digest == digest) {
            if self.window.len() == WINDOW {
                self.window.pop_front();
            }
            self.window.push_back(Seen { digest, wraps: BTreeMap::new() });
        }
        None
    }

    /// Notes a part for a member. Returns what is wrong with it.
    fn part(&mut self, digest: [u8; 32], part: &EpochPart) -> Option<String> {
        let wrong = match part {
            EpochPart::Entry(entry) => return self.wrap(digest, entry.slot, entry.wrap),
            EpochPart::Delta(delta) => {
                let root = delta.root();
                (*self.deltas.entry(digest).or_insert(root) != root)
                    .then_some("the nodes of one epoch's tree are wrapped in two ways")
            }
            EpochPart::Path(path) => {
                let bytes = path.encode();
                let sealed = self.paths.entry((digest, path.slot, path.r)).or_insert_with(|| bytes.clone());
                (*sealed != bytes).then_some("two paths are sealed under one key")
            }
        };
        wrong.map(Into::into)
    }

    /// Notes a wrap. Returns what is wrong with it.
    fn wrap(&mut self, digest: [u8; 32], slot: u32, wrap: [u8; 32]) -> Option<String> {
        let place = self.window.iter().position(|seen| seen.digest == digest)?;
        match self.window.get_mut(place)?.wraps.insert(slot, wrap) {
            Some(before) if before == wrap => return None,
            Some(_) => return Some(format!("the key of one epoch is wrapped in two ways for slot {slot}")),
            None => {}
        }
        for seen in self.window.iter().filter(|seen| seen.digest != digest) {
            let Some(other) = seen.wraps.get(&slot) else { continue };
            let mut difference = wrap;
            difference.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
            let pair = (digest.min(seen.digest), digest.max(seen.digest), difference);
            match self.differences.insert(pair, slot) {
                Some(twin) if twin != slot => {
                    return Some(format!("slots {slot} and {twin} reveal the difference of two group keys"));
                }
                _ => {}
            }
        }
        None
    }
}

impl<S: Suite> InvariantCheck<S> for Masks {
    fn on_publication(
        &mut self,
        _: &World<S>,
        step: &Step,
        publication: &Arc<LeaderPublication<S>>,
        evidence: &mut Evidence,
    ) {
        let LeaderPublication { header, digest, part } = &**publication;
        let wrong = self.header(header, *digest);
        evidence
            .findings
            .require(Invariant::NoMaskReuse, step, wrong.is_none(), || wrong.unwrap_or_default().into());
        if let Some(wrong) = part.as_ref().and_then(|part| self.part(*digest, part)) {
            evidence.findings.violate(Invariant::NoMaskReuse, step.at, Some(step.node), wrong);
        }
    }
}
