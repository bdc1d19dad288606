//! A leader of the world with the gate of anonymous admission before it.

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent};
use quiver_ainq::{Suite, UnixTime};
use quiver_group::{Leader, LeaderCommand, LeaderRecord};
use quiver_machine::{Input, Machine, Now, Output, forward_jobs, forward_primary};
use rand_core::CryptoRngCore;

use super::AdmissionNodeEvent;
use crate::feature_part::RoleCommand;
use crate::{Fleet, NodeEvent};

/// A leader that admits anonymous drones where a policy is demanded, and refuses them elsewhere.
#[derive(derive_more::Deref)]
pub(crate) struct GatedLeader<S: Suite>(#[deref(forward)] AdmittingLeader<S>);

impl<S: Suite> GatedLeader<S> {
    /// A leader that demands what leaders of this deployment demand, if anything.
    pub(crate) fn new(fleet: &Fleet<S>, leader: Leader<S>, now: UnixTime) -> Self {
        let leader = AdmittingLeader::from(leader);
        Self(match fleet.checkpoint() {
            None => leader,
            Some(checkpoint) => {
                leader.demanding(checkpoint.demand(), now).expect("the policy is this group's and has no end")
            }
        })
    }
}

impl<S: Suite> Machine for GatedLeader<S> {
    type Command = RoleCommand<LeaderCommand>;
    type Event = NodeEvent;
    type Record = LeaderRecord;

    fn handle_input(
        &mut self,
        now: Now,
        input: Input<'_, RoleCommand<LeaderCommand>>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let input = input.filter_map(|command| match command {
            RoleCommand::Role(command) => Some(AdmittingLeaderCommand::Leader(command)),
            RoleCommand::Feature(command) => command.read::<AdmittingLeaderCommand>(),
        });
        if let Some(input) = input {
            self.0.handle_input(now, input, rng);
        }
    }

    fn poll_output(&mut self) -> Output<NodeEvent, LeaderRecord> {
        let event = |event| match event {
            AdmittingLeaderEvent::Leader(event) => NodeEvent::Leader(event),
            AdmittingLeaderEvent::Denied { peer, why } => AdmissionNodeEvent::Denied { peer, why }.into(),
        };
        self.0.poll_output().map(event, |record| record)
    }

    forward_jobs!(Self(leader) => leader);
}

forward_primary! {
    impl[S: Suite] Primary<Suite = S> for GatedLeader<S> {
        Self(leader) => leader,
    }
}
