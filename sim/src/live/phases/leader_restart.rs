//! The phase in which the leader is killed and rebuilt from its records.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::run::Phase;

use super::messages::MessageCosts;
use super::{PhaseRun, StepResult};

impl<S: Suite> PhaseRun<'_, S> {
    /// Kills the leader without warning and restarts it. The group must be served again: all the same
    /// members, a greater epoch, and no new enrolment.
    pub(super) async fn restart_leader(&mut self) -> StepResult {
        let counts =
            |run: &Self| run.world.event_log().with_logs(|logs| (logs.pins.len(), logs.leader.enrolments));
        let before = counts(self);
        let mark = self.mark();
        self.expect_newer_key();
        self.world.restart_leader_node().await?;
        self.synced(Phase::RestartLeader, String::new(), &mark, &BTreeSet::new()).await?;
        let after = counts(self);
        self.checker.that(Invariant::Persistence, before == after, || {
            format!("(drones enrolled, enrolments of the leader) changed from {before:?} to {after:?}")
        });
        self.checker.after("messages after the restart");
        let sender = self.choose_sender();
        self.send_message(None, &mut MessageCosts::default()).await?;
        self.send_message(sender, &mut MessageCosts::default()).await
    }
}
