//! Checks convergence: once faults stop, every live member reaches the newest epoch within a bound.

use std::time::Duration;

use quiver_ainq::{Epoch, Suite};

use super::history::{GroupHistory, show};
use super::{Evidence, InvariantCheck};
use crate::admission::out_of_place;
use crate::{NodeId, World};

/// Time after the last fault within which every live member reaches the newest epoch.
///
/// The longest way to convergence: an edge that was refused for good waits eight of the longest retries (300
/// s with the default timing, jitter included), then hello, challenge, request and the batch take less than
/// 30 s; a drone that returns then may make the leader renew the key once more.
pub fn bound(world_timing: &quiver_group::edge::EdgeTiming) -> Duration {
    world_timing.retry_max * 10 + world_timing.admission * 2 + Duration::from_secs(30)
}

/// Newest epoch of the leader in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeadingEpoch {
    pub(crate) epoch: Epoch,
    /// Exported key of the epoch.
    pub(crate) key: Option<[u8; 32]>,
}

impl LeadingEpoch {
    /// The newest epoch of all leaders, if one leads.
    pub(super) fn of<S: Suite>(world: &World<S>, history: &GroupHistory) -> Option<Self> {
        let leading = (0..world.leader_count())
            .filter_map(|ordinal| Some((world.leader(ordinal)?.status().epoch?, ordinal)))
            .max();
        let (epoch, ordinal) = leading?;
        let key = world.leader(ordinal).and_then(|leader| leader.export(&history.channel));
        Some(Self { epoch, key: key.map(|key| *key.expose()) })
    }
}

/// Every live edge that wants to be and may be a member must hold the newest epoch of the leader in force, and
/// no other edge any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Convergence;

impl<S: Suite> InvariantCheck<S> for Convergence {
    fn stragglers(
        &self,
        world: &World<S>,
        evidence: &Evidence,
        newest: &LeadingEpoch,
    ) -> Vec<(NodeId, String)> {
        let history = &evidence.history;
        (0..world.edge_count())
            .filter(|number| world.has(*number))
            .filter_map(|number| {
                let wrong = if world.is_anonymous(number) {
                    out_of_place(history, world, number, newest.epoch, newest.key)?
                } else {
                    misplaced(history, world, number, newest)?
                };
                Some((NodeId::Edge(number), wrong))
            })
            .collect()
    }
}

/// Describes what is wrong with a named drone's membership once faults are over.
fn misplaced<S: Suite>(
    history: &GroupHistory,
    world: &World<S>,
    number: u32,
    newest: &LeadingEpoch,
) -> Option<String> {
    let edge = world.edge(number)?;
    // Its membership may depend on when its leader or the KGC died. So may it on which leader heard of an
    // eviction, if there are several: only revocation is final.
    let uncertain = history.removals.asked_to_evict.contains(&number)
        || history.removals.is_asked_to_revoke(number)
        || (world.leader_count() > 1 && !history.may_be_in(world, number));
    let wants = edge.status().group.is_some() && history.may_be_in(world, number);
    Some(match (wants, history.held_key(world, number)) {
        (true, None) if uncertain => return None,
        (true, None) => format!("has no key; the newest epoch is {}", show(newest.epoch)),
        (true, Some(held)) if held.epoch != newest.epoch || Some(held.key) != newest.key => {
            format!("holds epoch {}, the newest is {}", show(held.epoch), show(newest.epoch))
        }
        (false, Some(held)) if held.epoch == newest.epoch && !uncertain => {
            format!("is not a member and holds the newest epoch {}", show(newest.epoch))
        }
        _ => return None,
    })
}
