//! The machine of a leader with its gate, as the service of a leader runs it.

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent};
use quiver_ainq::Ristretto255;
use quiver_group::{Leader, LeaderRecord};
use quiver_machine::{
    FinishedJob, Input, Job, Machine, Now, Offence, Output, Peer, Primary, RelayedBroadcast, SharedRoleState,
    Via,
};
use quiver_message::Message;
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

    fn take_job(&mut self) -> Option<Job> {
        self.0.take_job()
    }

    fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
        self.0.take_broadcast()
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        self.0.finish_job(now, done, rng);
    }
}

impl Primary for LeaderWithPolicy {
    type Suite = Ristretto255;

    fn decode(&mut self, from: (Peer, Via), bytes: &[u8]) -> Option<Message<Ristretto255>> {
        self.0.decode(from, bytes)
    }

    fn receive(
        &mut self,
        now: Now,
        from: (Peer, Via),
        message: Message<Ristretto255>,
        rng: &mut dyn CryptoRngCore,
    ) {
        self.0.receive(now, from, message, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.0.wake(now, rng);
    }

    fn blame(&mut self, from: (Peer, Via), offence: Offence) {
        self.0.blame(from, offence);
    }

    fn shared(&self) -> SharedRoleState<'_, Ristretto255> {
        self.0.shared()
    }
}
