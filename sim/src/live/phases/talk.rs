//! Group messages.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_report::Progress;
use quiver_role::LeaderCommand;
use quiver_world::Invariant;
use quiver_world::run::{Operation, Phase};
use rand::seq::IteratorRandom;

use super::{Mark, Run, Step};
use crate::live::board::Goal;
use crate::live::checks::Sent;
use crate::live::host::message_body;
use crate::live::services::name;
use crate::live::swarm::Request;

impl<S: Suite> Run<'_, S> {
    /// So many messages, by turns from the leader and from a drone.
    pub(super) async fn talk(&mut self, messages: u32) -> Step {
        let mut by_leader = Tally::default();
        let mut by_drones = Tally::default();
        let step = self.world.progress.step("messages", messages as usize);
        for turn in 0..messages {
            self.count_out();
            let speaker = if turn % 2 == 0 { None } else { self.choose_speaker() };
            let tally = if speaker.is_none() { &mut by_leader } else { &mut by_drones };
            self.say(speaker, tally).await?;
            step.done(turn as usize + 1);
        }
        drop(step);
        for (who, tally) in [("leader", by_leader), ("drones", by_drones)] {
            if let Some(operation) = tally.operation(who, self.members.len()) {
                self.operations.push(operation);
            }
        }
        let (checker, sent) = (&mut self.checker, &self.sent);
        self.world.board().look(|logs| checker.messages(logs, sent));
        Ok(())
    }

    pub(super) fn choose_speaker(&mut self) -> Option<u32> {
        let speaker = self.members.iter().copied().choose(&mut self.rng);
        self.choices.extend(speaker);
        speaker
    }

    /// One message, until everybody in the group has heard it.
    pub(super) async fn say(&mut self, speaker: Option<u32>, tally: &mut Tally) -> Step {
        let number = u32::try_from(self.sent.len()).unwrap_or(u32::MAX);
        let audience: BTreeSet<u32> = self.members.iter().copied().filter(|d| Some(*d) != speaker).collect();
        let list: Vec<u32> = audience.iter().copied().collect();
        self.sent.push(Sent { number, by: speaker, audience });
        let mark = self.mark();
        self.world.board().expect_by(Goal::Heard(number), &list, speaker);
        let (channel, data) = (name("telemetry")?, message_body(number));
        match speaker {
            None => self.world.leader.command(LeaderCommand::Send { channel, data }).await?,
            Some(drone) => {
                // Who has no name has no key to sign with.
                let request = Request::Say { number, signed: number % 4 == 1 && !self.is_unnamed() };
                self.world.swarm.ask(&self.world.setting, &[drone], request).await?;
            }
        }
        let reached =
            self.world.board().reached(self.world.plan.timeout, &Progress::hidden().step("", 0)).await;
        let took = mark.at.elapsed();
        self.checker.after(&format!("message {number}"));
        tally.add(&self.mark(), &mark, took, &reached.drones);
        if let Some(speaker) = speaker.filter(|speaker| self.crashed().contains(speaker)) {
            let heard = reached.drones.len();
            self.world.progress.note(&format!(
                "message {number} is not waited for: drone {speaker}, who was to say it, is lost with its worker; {heard} drones heard it"
            ));
            return Ok(());
        }
        let heard = speaker.is_none() || self.world.leader_will(|log| log.heard.contains_key(&number)).await;
        self.checker.that(Invariant::Delivery, heard, || format!("the leader did not hear message {number}"));
        self.all_there(Invariant::Delivery, &format!("did not hear message {number}"), &reached)
    }
}

/// What several messages cost together.
#[derive(Default)]
pub(super) struct Tally {
    messages: u32,
    leader_cpu: Duration,
    leader_bytes: u64,
    epochs: usize,
    took: Duration,
    cpu: Duration,
    latencies: Vec<(u32, Duration)>,
}

impl Tally {
    fn add(&mut self, now: &Mark, mark: &Mark, took: Duration, heard: &[(u32, std::time::Instant)]) {
        self.messages += 1;
        self.leader_cpu += now.leader_cpu.saturating_sub(mark.leader_cpu);
        self.leader_bytes += now.leader_bytes.saturating_sub(mark.leader_bytes);
        self.epochs += now.epochs.saturating_sub(mark.epochs);
        self.took += took;
        self.cpu += now.cpu.saturating_sub(mark.cpu);
        self.latencies.extend(mark.latencies(heard));
    }

    fn operation(self, who: &str, drones: usize) -> Option<Operation> {
        let operation = Operation {
            detail: format!("{} by {who}", self.messages),
            leader_cpu: Some(self.leader_cpu),
            leader_bytes: Some(self.leader_bytes),
            epochs: self.epochs,
            cpu: Some(self.cpu),
            ..Operation::new(Phase::Messages, drones, self.took)
        };
        (self.messages > 0).then(|| operation.with_latencies(self.latencies))
    }
}
