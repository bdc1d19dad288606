//! The phase of group messages.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_group::LeaderCommand;
use quiver_machine::Either;
use quiver_report::Progress;
use quiver_world::Invariant;
use quiver_world::run::{Phase, PhaseCosts};
use rand::seq::IteratorRandom;

use super::{Mark, PhaseRun, StepResult};
use crate::live::checker::SentMessage;
use crate::live::deployment::name;
use crate::live::event_log::PhaseGoal;
use crate::live::hosts::message_body;
use crate::live::swarm::SwarmRequest;

/// Sends the plan's messages, by turns from the leader and from a drone.
pub(super) async fn send_messages<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let messages = run.world.plan.messages;
    let mut by_leader = MessageCosts::default();
    let mut by_drones = MessageCosts::default();
    let step = run.world.progress.step("messages", messages as usize);
    for turn in 0..messages {
        let sender = if turn % 2 == 0 { None } else { choose_sender(run) };
        let costs = if sender.is_none() { &mut by_leader } else { &mut by_drones };
        send_message(run, sender, costs).await?;
        step.done(turn as usize + 1);
    }
    drop(step);
    for (who, costs) in [("leader", by_leader), ("drones", by_drones)] {
        let began = costs.began.map_or(Duration::ZERO, |at| run.since_start(at));
        if let Some(operation) = costs.operation(who, run.members.len()) {
            let operation = PhaseCosts { began, ..operation };
            run.add_operation(operation);
        }
    }
    let (checker, sent) = (&mut run.checker, &run.sent);
    run.world.event_log().with_logs(|logs| checker.messages(logs, sent));
    Ok(())
}

pub(super) fn choose_sender<S: Suite>(run: &mut PhaseRun<'_, S>) -> Option<u32> {
    let sender = run.members.iter().copied().choose(&mut run.rng);
    run.choices.extend(sender);
    sender
}

/// Sends one message and waits until every member has received it.
pub(super) async fn send_message<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    sender: Option<u32>,
    costs: &mut MessageCosts,
) -> StepResult {
    let number = u32::try_from(run.sent.len()).unwrap_or(u32::MAX);
    let audience: BTreeSet<u32> = run.members.iter().copied().filter(|d| Some(*d) != sender).collect();
    let list: Vec<u32> = audience.iter().copied().collect();
    run.sent.push(SentMessage { number, by: sender, audience });
    let mark = run.mark();
    run.world.event_log().expect(PhaseGoal::MessageReceived(number), &list);
    let (channel, data) = (name("telemetry")?, message_body(number));
    match sender {
        None => {
            run.world.leader.command(Either::Left(LeaderCommand::Send { channel, data }.into())).await?;
        }
        Some(drone) => {
            // An anonymous member has no key to sign with.
            let request = SwarmRequest::Send { number, signed: number % 4 == 1 && !run.is_anonymous() };
            run.world.swarm.ask(&run.world.setting, &[drone], request).await?;
        }
    }
    let reached =
        run.world.event_log().reached(run.world.plan.timeout, &Progress::hidden().step("", 0)).await;
    let took = mark.at.elapsed();
    run.checker.after(&format!("message {number}"));
    costs.add(&run.mark(), &mark, took, &reached.drones);
    let received = sender.is_none()
        || run.world.leader_will("leader has the message", |log| log.received.contains_key(&number)).await;
    run.checker
        .that(Invariant::Delivery, received, || format!("the leader did not receive message {number}"));
    run.expect_all_reached(Invariant::Delivery, &format!("did not receive message {number}"), &reached)
}

/// Costs of several messages together.
#[derive(Default)]
pub(super) struct MessageCosts {
    /// Time at which the first was sent.
    began: Option<std::time::Instant>,
    messages: u32,
    leader_cpu: Duration,
    leader_bytes: u64,
    epochs: usize,
    took: Duration,
    cpu: Duration,
    latencies: Vec<(u32, Duration)>,
}

impl MessageCosts {
    fn add(&mut self, now: &Mark, mark: &Mark, took: Duration, received: &[(u32, std::time::Instant)]) {
        self.began.get_or_insert(mark.at);
        self.messages += 1;
        self.leader_cpu += now.leader_cpu.saturating_sub(mark.leader_cpu);
        self.leader_bytes += now.leader_bytes.saturating_sub(mark.leader_bytes);
        self.epochs += now.epochs.saturating_sub(mark.epochs);
        self.took += took;
        self.cpu += now.cpu.saturating_sub(mark.cpu);
        self.latencies.extend(mark.latencies(received));
    }

    fn operation(self, who: &str, drones: usize) -> Option<PhaseCosts> {
        let operation = PhaseCosts {
            detail: format!("{} by {who}", self.messages),
            leader_cpu: Some(self.leader_cpu),
            leader_bytes: Some(self.leader_bytes),
            epochs: self.epochs,
            cpu: Some(self.cpu),
            ..PhaseCosts::new(Phase::Messages, drones, self.took)
        };
        (self.messages > 0).then(|| operation.with_latencies(self.latencies))
    }
}
