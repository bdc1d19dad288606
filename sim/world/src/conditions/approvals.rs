//! Orders that a leader hands on, and operators who approve that the key of their condition is released.

use std::collections::BTreeSet;

use quiver_ainq::{KgcId, Name, Suite};
use quiver_delivery::DeliveryServer;
use quiver_group::LeaderCommand;
use quiver_key_release::{
    Approval, Audience, DEFAULT_RATE, ReleaseCommand, ReleaseConfig, ReleasePolicy, ShareReleaser,
};
use quiver_machine::Either;

use super::CHANNEL;
use crate::feature_part::AnyFeatureCommand;
use crate::kgc_node::KgcNode;
use crate::step::Sabotage;
use crate::world::{Acted, WorldFeature, WorldKernel};
use crate::{Action, Fleet, NodeId, Step};

/// KGCs whose operators have approved the second phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReleaseApprovals(BTreeSet<KgcId>);

impl<S: Suite> WorldFeature<S> for ReleaseApprovals {
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, steps: &mut Vec<Step>) -> Acted {
        match action {
            Action::Order(number) => steps.extend(hand_on(kernel, *number)),
            Action::Approve(kgc) => {
                // The operator's approval is durable, whether or not the KGC is on.
                self.0.insert(*kgc);
                let command = ReleaseCommand::Approval(approval(kernel.fleet()));
                let command = Either::Right(AnyFeatureCommand::new(command));
                steps.extend(kernel.step_kgc(*kgc, command, "approve phase 2"));
            }
            _ => return Acted::Pass,
        }
        Acted::Done
    }

    /// Adds the server of key shares to a KGC whose operator has, or has not, approved the second phase.
    fn extend_kgc(&self, kernel: &WorldKernel<S>, id: KgcId, machine: &mut KgcNode<S>) {
        let fleet = kernel.fleet();
        let Some(archive) = fleet.archive() else { return };
        let approved = self.0.contains(&id) || kernel.setup().sabotage == Sabotage::EarlyRelease;
        let pattern = "mission".parse().expect("a kind of conditions");
        let releaser = ShareReleaser::new(ReleaseConfig {
            holding: Some(archive.holding(id).expect("there are as many shares as KGCs")),
            policies: vec![ReleasePolicy { revision: 1, pattern, audience: Some(Audience::default()) }],
            approvals: approved.then(|| approval(fleet)).into_iter().collect(),
            rate: DEFAULT_RATE,
        });
        let cookie_key = fleet.cookie_key(id, kernel.life(NodeId::Kgc(id)));
        machine.parts_mut().0 = Some(DeliveryServer::new(cookie_key, releaser));
    }
}

/// The operator's approval of the second phase.
fn approval<S: Suite>(fleet: &Fleet<S>) -> Approval {
    Approval { revision: 1, condition: fleet.phase_two(), approved: true }
}

/// The leader that leads hands on an order that waits for the second phase.
fn hand_on<S: Suite>(kernel: &mut WorldKernel<S>, number: u32) -> Option<Step> {
    let leading = (0..kernel.leader_count())
        .filter_map(|ordinal| Some((kernel.leader(ordinal)?.status().epoch?, ordinal)))
        .max();
    let data = kernel.fleet().order(number)?;
    let channel = Name::new(CHANNEL).expect("a plain name");
    kernel.submit_to_leader(leading?.1, LeaderCommand::Send { channel, data }, "hand on an order")
}
