//! Checks rosters: no unauthorised member, ever.

use quiver_ainq::{Epoch, Suite};
use quiver_group::LeaderEvent;

use super::keys::number;
use super::{Invariant, Invariants};
use crate::{NodeEvent, Step, World};

impl<S: Suite> Invariants<S> {
    /// Checks the roster of a new epoch: every member is authorised, and none was evicted by this leader
    /// before.
    pub(super) fn check_roster(&mut self, world: &World<S>, step: &Step, ordinal: u16, epoch: Epoch) {
        let Some(leader) = world.leader(ordinal) else { return };
        let list = leader.status().revocation_number;
        let mut wrong = Vec::new();
        for (_, name) in leader.members() {
            let Some(edge) = number(name.as_str()) else {
                wrong.push((name.to_string(), "is not a drone of this world"));
                continue;
            };
            let evicted = self.evicted.get(&(ordinal, edge)).is_some_and(|since| *since < epoch);
            let revoked = self.revoked.get(&edge).is_some_and(|number| *number <= list);
            if !world.fleet().authorises(edge) {
                wrong.push((name.to_string(), "has no business in the group"));
            } else if evicted {
                wrong.push((name.to_string(), "was evicted before"));
            } else if revoked {
                wrong.push((name.to_string(), "is on the revocation list that the leader holds"));
            }
        }
        self.check_anonymous(world, step, ordinal);
        self.checks += 1;
        for (name, what) in wrong {
            let detail = format!("{name} is a member and {what}");
            self.violate(Invariant::NoUnauthorisedMember, step.at, Some(step.node), detail);
        }
        for event in step.events() {
            if let NodeEvent::Leader(LeaderEvent::Removed { name, evicted: true, .. }) = event
                && let Some(edge) = number(name.as_str())
            {
                self.evicted.entry((ordinal, edge)).or_insert(epoch);
            }
        }
    }

    /// Returns true if an edge may be in the group as far as all leaders, the KGC and its identity are
    /// concerned.
    pub(super) fn may_be_in(&self, world: &World<S>, edge: u32) -> bool {
        let evicted = (0..world.leader_count()).any(|leader| self.evicted.contains_key(&(leader, edge)));
        world.fleet().authorises(edge) && !evicted && !self.revoked.contains_key(&edge)
    }
}
