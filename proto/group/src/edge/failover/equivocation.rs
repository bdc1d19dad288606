//! Refuses a leader that signed two headers for one epoch.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, EquivocationProof, Name, Suite};
use quiver_machine::Peer;

use crate::edge::{EdgeContext, EdgeEvent};

/// Verifies a proof against a leader of a group of this drone's, and refuses that leader for good. Returns
/// the leader if that is news.
pub(in crate::edge) fn refuse<S: Suite>(
    cx: &mut EdgeContext<'_, S>,
    from: Peer,
    member_of: Option<&Name>,
    proof: EquivocationProof<S>,
) -> Option<DronePublicKey<S>> {
    // §10.7: known long since, or of a group that is none of our business: no curve arithmetic for it.
    let core = &proof.first.core;
    let concerned = [cx.group, member_of].into_iter().flatten().any(|group| *group == core.group);
    if !concerned || cx.leaders.refuses(&core.leader) {
        return None;
    }
    let (epoch, group) = (core.epoch, core.group.clone());
    // §10.7: both headers are of one epoch and signed by one leader, under any of its keys.
    let leader = match proof.verify(cx.deployment, &group) {
        Ok(leader) => leader,
        Err(error) => {
            cx.blame(from, error);
            return None;
        }
    };
    if !cx.leaders.refused.insert(leader.identity.serial, Vec::new()) {
        return None;
    }
    cx.persist();
    cx.event(EdgeEvent::Equivocation { leader: leader.identity.name.clone(), epoch });
    Some(leader)
}
