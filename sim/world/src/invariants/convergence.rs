//! Checks convergence: once faults stop, every live member reaches the newest epoch within a bound.

use std::time::Duration;

use quiver_ainq::Suite;

use super::keys::show;
use super::{Invariant, Invariants};
use crate::{NodeId, World};

/// Time after the last fault within which every live member reaches the newest epoch.
///
/// The longest way to convergence: an edge that was refused for good waits eight of the longest retries (300
/// s with the default timing, jitter included), then hello, challenge, request and the batch take less than
/// 30 s; a drone that returns then may make the leader renew the key once more.
pub fn bound(world_timing: &quiver_group::edge::EdgeTiming) -> Duration {
    world_timing.retry_max * 10 + world_timing.admission * 2 + Duration::from_secs(30)
}

impl<S: Suite> Invariants<S> {
    /// Nodes that have not converged: every live edge that wants to be and may be a member must hold the
    /// newest epoch of the leader in force, and no other edge any; a drone with a released order must have
    /// opened it.
    pub fn stragglers(&self, world: &World<S>) -> Vec<(NodeId, String)> {
        let leading = (0..world.leader_count())
            .filter_map(|ordinal| Some((world.leader(ordinal)?.status().epoch?, ordinal)))
            .max();
        let Some((newest, ordinal)) = leading else {
            return vec![(NodeId::Leader(0), "no node leads".into())];
        };
        let key = world.leader(ordinal).and_then(|leader| leader.export(&self.channel));
        let key = key.map(|key| *key.expose());
        (0..world.edge_count())
            .filter(|number| world.has(*number))
            .filter_map(|number| {
                if world.is_anonymous(number) {
                    let wrong = self.out_of_place(world, number, newest, key)?;
                    return Some((NodeId::Edge(number), wrong));
                }
                let edge = world.edge(number)?;
                // Its membership may depend on when its leader or the KGC died. So may it on which leader
                // heard of an eviction, if there are several: only revocation is final.
                let uncertain = self.asked_to_evict.contains(&number)
                    || self.asked_to_revoke.contains(&number)
                    || (world.leader_count() > 1 && !self.may_be_in(world, number));
                let wants = edge.status().group.is_some() && self.may_be_in(world, number);
                let held = self.holds(world, number);
                let wrong = match (wants, held) {
                    (true, None) if uncertain => return None,
                    (true, None) => format!("has no key; the newest epoch is {}", show(newest)),
                    (true, Some(held)) if held.epoch != newest || Some(held.key) != key => {
                        format!("holds epoch {}, the newest is {}", show(held.epoch), show(newest))
                    }
                    (false, Some(held)) if held.epoch == newest && !uncertain => {
                        format!("is not a member and holds the newest epoch {}", show(newest))
                    }
                    _ => return None,
                };
                Some((NodeId::Edge(number), wrong))
            })
            .chain(self.unopened(world))
            .chain(self.unrevoked(world))
            .collect()
    }

    /// Reports every node that has not converged long after the faults.
    pub fn demand_convergence(&mut self, world: &World<S>) {
        self.checks += (0..world.edge_count()).filter(|edge| world.has(*edge)).count() as u64;
        for (node, detail) in self.stragglers(world) {
            self.violate(Invariant::Convergence, world.time(), Some(node), detail);
        }
    }
}
