//! The machine of a leader with its gate, as the service of a leader runs it.

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent};
use quiver_ainq::Ristretto255;
use quiver_group::{Leader, LeaderRecord};
use quiver_machine::{Input, Machine, Now, Output, Primary, forward_jobs, forward_primary};
use quiver_service::drone::feature::{GatedLeader, GroupLeaderCommand, GroupLeaderEvent};
use rand_core::CryptoRngCore;

/// A leader that can demand a policy. Without one it refuses anonymous joins.
#[derive(Debug)]
pub(crate) struct LeaderWithPolicy(pub(crate) AdmittingLeader<Ristretto255>);

impl GatedLeader for LeaderWithPolicy {
    fn leader(&self) -> &Leader<Ristretto255> {
        &self.0
    }
}

impl Machine for LeaderWithPolicy {
    type Command = GroupLeaderCommand;
    type Event = GroupLeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, GroupLeaderCommand>, rng: &mut dyn CryptoRngCore) {
        let own = input.filter_map(|command| match command {
            GroupLeaderCommand::Leader(command) => Some(AdmittingLeaderCommand::Leader(command)),
            GroupLeaderCommand::Gate(command) => command.content::<AdmittingLeaderCommand>().cloned(),
        });
        match own {
            Some(input) => self.0.handle_input(now, input, rng),
            None => self.0.wake(now, rng),
        }
    }

    fn poll_output(&mut self) -> Output<GroupLeaderEvent, LeaderRecord> {
        let event = |event| match event {
            AdmittingLeaderEvent::Leader(event) => GroupLeaderEvent::Leader(event),
            AdmittingLeaderEvent::Denied { peer, why } => {
                GroupLeaderEvent::Denied { peer, why: why.to_string() }
            }
        };
        self.0.poll_output().map(event, |record| record)
    }

    forward_jobs! {
        Self(leader) => leader,
    }
}

forward_primary! {
    impl Primary<Suite = Ristretto255> for LeaderWithPolicy {
        Self(leader) => leader,
    }
}
