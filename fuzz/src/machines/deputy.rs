//! A second leader of the group, deputy of the first.

use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::{Role, StrategyKind};
use quiver_group::edge::RestoreError;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_machine::{Input, Machine, Now, Output};
use rand_chacha::rand_core::CryptoRngCore;

use super::S;
use super::roles::{EventChecker, FuzzMachine, check_leader, leader_command, observe_leader};
use crate::scene::{GROUP, Staged, name};

/// Role in the token of the second leader.
pub(crate) fn role() -> Role {
    Role::Leader { group: name(GROUP), ordinal: 1 }
}

/// A leader among others. It is patient, so that it takes over only if a script lets much time pass.
#[derive(Debug)]
pub(crate) struct Deputy(pub(crate) Leader<S>);

impl Machine for Deputy {
    type Command = LeaderCommand;
    type Event = LeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, LeaderCommand>, rng: &mut dyn CryptoRngCore) {
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<LeaderEvent, LeaderRecord> {
        self.0.poll_output()
    }
}

impl FuzzMachine for Deputy {
    fn restart(records: &[LeaderRecord], strategy: StrategyKind) -> Result<Self, RestoreError> {
        let scene = S::scene();
        let config = LeaderConfig {
            max_members: 100,
            strategy,
            timing: LeaderTiming { silence: Some(Duration::from_secs(600)), ..LeaderTiming::default() },
            ..LeaderConfig::new(scene.deployment.clone(), name(GROUP), Some(scene.token("deputy", role())))
        };
        let leader = Leader::new(config, records.to_vec())?;
        check_leader(&leader);
        Ok(Self(leader))
    }

    fn observe(checker: &mut EventChecker, event: &LeaderEvent) {
        observe_leader(checker, event);
    }

    fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<LeaderCommand> {
        leader_command(u)
    }

    fn check(&self) {
        check_leader(&self.0);
    }
}
