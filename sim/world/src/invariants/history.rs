//! Keeps the history of the group: every epoch, who was in it, and who was removed.
//!
//! No node knows all of it. The checks compare what nodes do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::{Epoch, Name, Suite};

use super::Invariant;
use crate::admission::Pseudonyms;
use crate::{NodeId, World};

/// An epoch that a leader made.
#[derive(Clone, Debug)]
pub(crate) struct MadeEpoch {
    /// Time at which it was made.
    pub(crate) at: Duration,
    /// D, unless the leader died at once.
    pub(crate) digest: Option<[u8; 32]>,
    /// The exported key of the epoch.
    pub(crate) key: Option<[u8; 32]>,
    /// Members of the epoch: numbers of edges. `None` if the leader died at once.
    pub(crate) members: Option<BTreeSet<u32>>,
    /// Anonymous members of the epoch: pseudonyms. `None` if the leader died at once.
    pub(crate) anonymous: Option<BTreeSet<[u8; 16]>>,
    pub(crate) leader: u16,
}

/// The epoch an edge holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldKey {
    pub(crate) epoch: Epoch,
    pub(crate) digest: [u8; 32],
    pub(crate) key: [u8; 32],
}

/// Keys of an edge before and after a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyChange {
    pub(crate) before: Option<HeldKey>,
    pub(crate) after: Option<HeldKey>,
}

impl KeyChange {
    /// The key that the edge took up in the step, if it did.
    pub(crate) fn taken_up(&self) -> Option<HeldKey> {
        self.after.filter(|held| self.before != Some(*held))
    }
}

/// Request to revoke an edge that KGCs have taken.
#[derive(Clone, Debug)]
pub(crate) struct RevocationRequest {
    pub(crate) edge: u32,
    /// KGCs whose disks hold it up, as long as it is durable nowhere: with all of them it is lost.
    pub(crate) unwritten: Vec<NodeId>,
}

/// Edges that leaders evicted and KGCs revoked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals {
    /// Edges that leaders evicted for good, and the first epoch without them, by leader.
    pub(crate) evicted: BTreeMap<(u16, u32), Epoch>,
    /// Edges that the KGC revoked, with the number of the list.
    pub(crate) revoked: BTreeMap<u32, u64>,
    /// The edge that the operator revokes; the KGC learns it only if it is on.
    pub(crate) to_be_revoked: Option<u32>,
    pub(crate) asked_to_revoke: Vec<RevocationRequest>,
    /// Edges that a leader may have evicted although it died before it could report it.
    pub(crate) asked_to_evict: BTreeSet<u32>,
}

impl Removals {
    /// Returns true if an edge is revoked, or soon will be.
    pub(crate) fn revokes(&self, edge: u32) -> bool {
        self.is_asked_to_revoke(edge) || self.revoked.contains_key(&edge)
    }

    /// Returns true if a KGC was asked to revoke an edge, and has signed no list since.
    pub(crate) fn is_asked_to_revoke(&self, edge: u32) -> bool {
        self.asked_to_revoke.iter().any(|request| request.edge == edge)
    }
}

/// Epochs, keys and removals of the group so far.
#[derive(Clone, Debug)]
pub(crate) struct GroupHistory {
    /// Name under which keys are exported for comparison.
    pub(crate) channel: Name,
    pub(crate) epochs: BTreeMap<Epoch, MadeEpoch>,
    pub(crate) removals: Removals,
    pub(crate) pseudonyms: Pseudonyms,
    /// Keys of the edge of the last step.
    pub(crate) change: KeyChange,
}

impl Default for GroupHistory {
    fn default() -> Self {
        Self {
            channel: export_channel(),
            epochs: BTreeMap::new(),
            removals: Removals::default(),
            pseudonyms: Pseudonyms::default(),
            change: KeyChange::default(),
        }
    }
}

impl GroupHistory {
    /// Key that an edge could use now.
    pub(crate) fn held_key<S: Suite>(&self, world: &World<S>, number: u32) -> Option<HeldKey> {
        let edge = world.edge(number)?;
        let key = *edge.export(&self.channel)?.expose();
        let status = edge.status();
        Some(HeldKey { epoch: status.epoch?, digest: status.digest?, key })
    }

    /// Returns true if a node is in an epoch, as far as that is known.
    pub(crate) fn is_in(&self, node: NodeId, epoch: Epoch) -> bool {
        let Some(made) = self.epochs.get(&epoch) else { return false };
        match node {
            NodeId::Edge(edge) => made.members.as_ref().is_none_or(|members| members.contains(&edge)),
            NodeId::Leader(ordinal) => made.leader == ordinal,
            NodeId::Kgc(_) | NodeId::Relay(_) => false,
        }
    }

    /// Returns true if an edge may be in the group as far as all leaders, the KGC and its identity are
    /// concerned.
    pub(crate) fn may_be_in<S: Suite>(&self, world: &World<S>, edge: u32) -> bool {
        let removals = &self.removals;
        let evicted = (0..world.leader_count()).any(|leader| removals.evicted.contains_key(&(leader, edge)));
        world.fleet().authorises(edge) && !evicted && !removals.revoked.contains_key(&edge)
    }

    /// The invariant that an edge violates by holding the key of an epoch without it.
    pub(crate) fn outsider(&self, number: u32, epoch: Epoch) -> Invariant {
        let is_in = |made: &MadeEpoch| {
            let mut anonymous = made.anonymous.iter().flatten();
            made.members.as_ref().is_some_and(|members| members.contains(&number))
                || anonymous.any(|pseudonym| self.pseudonyms.edge(pseudonym) == Some(number))
        };
        if self.epochs.range(..epoch).any(|(_, made)| is_in(made)) {
            Invariant::ForwardSecrecyAfterLeave
        } else if self.epochs.range(epoch..).any(|(_, made)| is_in(made)) {
            Invariant::BackwardSecrecyBeforeJoin
        } else {
            Invariant::NoUnauthorisedMember
        }
    }
}

/// Name under which keys are exported for comparison.
pub(crate) fn export_channel() -> Name {
    Name::new("invariants").expect("a plain name")
}

/// An epoch as text: round, ordinal of the leader, counter.
pub(crate) fn show(epoch: Epoch) -> String {
    format!("{}.{}/{}", epoch.round(), epoch.ordinal(), epoch.counter)
}

/// The number in an edge's name.
pub(crate) fn edge_number(name: &str) -> Option<u32> {
    name.strip_prefix("edge-")?.parse().ok()
}
