//! Orders that a leader hands on, and operators who approve that the key of their condition is released.

use std::collections::BTreeSet;

use quiver_ainq::{KgcId, Name, Suite};
use quiver_group::LeaderCommand;
use quiver_key_release::ReleaseCommand;
use quiver_machine::Either;

use super::CHANNEL;
use crate::world::{Acted, WorldFeature, WorldKernel};
use crate::{Action, Step};

/// KGCs whose operators have approved the second phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReleaseApprovals(BTreeSet<KgcId>);

impl ReleaseApprovals {
    /// Returns true if the operator of a KGC has approved the second phase.
    pub(crate) fn has_approved(&self, id: KgcId) -> bool {
        self.0.contains(&id)
    }
}

impl<S: Suite> WorldFeature<S> for ReleaseApprovals {
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, steps: &mut Vec<Step>) -> Acted {
        match action {
            Action::Order(number) => steps.extend(hand_on(kernel, *number)),
            Action::Approve(kgc) => {
                // The operator's approval is durable, whether or not the KGC is on.
                self.0.insert(*kgc);
                let command = Either::Right(ReleaseCommand::Approval(kernel.fleet().approval()));
                steps.extend(kernel.step_kgc(*kgc, command, "approve phase 2"));
            }
            _ => return Acted::Pass,
        }
        Acted::Done
    }
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
