//! The phase in which the leader is lost for good and a deputy takes over.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::run::Phase;

use super::messages::MessageCosts;
use super::{PhaseRun, StepResult};

impl<S: Suite> PhaseRun<'_, S> {
    /// Kills the leader without warning and does not restart it. A deputy must notice by itself: all the same
    /// members, a key of a greater term, and nobody enrols anew. The time counts from the loss, the silence
    /// included.
    pub(super) async fn lose_leader(&mut self) -> StepResult {
        let counts =
            |run: &Self| run.world.event_log().with_logs(|logs| (logs.pins.len(), logs.leader.enrolments));
        let before = counts(self);
        let mut mark = self.mark();
        self.expect_newer_key();
        self.world.lose_leader().await;
        // Earlier costs of the deputy are not part of it.
        (mark.leader_cpu, mark.leader_bytes) = (self.world.leader_meter.total(), self.world.leader_sent());
        self.synced(Phase::LoseLeader, "a deputy opens a term".into(), &mark, &BTreeSet::new()).await?;
        let after = counts(self);
        self.checker.that(Invariant::Persistence, before == after, || {
            format!("(drones enrolled, enrolments of leaders) changed from {before:?} to {after:?}")
        });
        self.checker.after("messages under the deputy");
        let sender = self.choose_sender();
        self.send_message(None, &mut MessageCosts::default()).await?;
        self.send_message(sender, &mut MessageCosts::default()).await
    }
}
