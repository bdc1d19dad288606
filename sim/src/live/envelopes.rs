//! The envelope phase: the leader seals to attributes, and exactly the drones with fitting attributes open.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_envelope::EnvelopeEvent;
use quiver_group::LeaderEvent;
use quiver_machine::Either;
use quiver_world::Invariant;
use quiver_world::envelopes::{AbeAuthority, ORDERS, Order};
use quiver_world::run::Phase;

use super::drone::Drone;
use super::drone_event::{DroneEvent, EventSink};
use super::drone_name;
use super::event_log::PhaseGoal;
use super::hosts::{message_body, message_number};
use super::node_settings::NodeSettings;
use super::phases::{PhaseRun, StepResult};
use super::swarm::Swarm;
use super::worker_message::WorkerCommand;
use super::worker_pool::WorkerPool;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// The attribute authority of a run: the same in every process of it.
pub(crate) fn abe_authority(seed: u64) -> Result<AbeAuthority> {
    let mut rng = rng_stream::generator(seed, RngStream::Authority, 0, 0);
    // Never for the roles there are.
    AbeAuthority::found(&mut rng).map_err(|error| SimError::Usage(format!("envelopes: {error}")))
}

/// Hands drones of this process the attribute keys of their roles.
pub(crate) async fn hand_out_attribute_keys<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &NodeSettings<S>,
) -> Result<()> {
    let authority = abe_authority(setting.seed)?;
    for drone in drones {
        for command in authority.keys_of(drone.index()).into_iter().map(Either::Right) {
            drone.node()?.command(command).await?;
        }
    }
    Ok(())
}

impl<S: Suite> Swarm<S> {
    /// Hands every drone the attribute keys of its role.
    pub(crate) async fn hand_out_attribute_keys(&self, setting: &NodeSettings<S>) -> Result<()> {
        match self {
            Self::Local(drones) => hand_out_attribute_keys(drones, setting).await,
            Self::Workers(workers) => workers.hand_out_attribute_keys().await,
        }
    }
}

impl WorkerPool {
    async fn hand_out_attribute_keys(&self) -> Result<()> {
        self.each_worker(|_| vec![WorkerCommand::AttributeKeys]).await
    }
}

/// Reports an event of a drone's envelopes.
pub(super) fn report(reports: &dyn EventSink, drone: u32, event: &EnvelopeEvent) {
    let happening = match event {
        EnvelopeEvent::Opened { data, author: Some(_), .. } => {
            message_number(data).map_or(DroneEvent::UnknownMessage, DroneEvent::EnvelopeOpened)
        }
        // All orders are signed.
        EnvelopeEvent::Opened { author: None, .. } => DroneEvent::UnknownMessage,
        EnvelopeEvent::NotSatisfied { .. } => DroneEvent::EnvelopeNotSatisfied,
        EnvelopeEvent::NotSent(why) => return reports.offence(&drone_name(drone), why),
        EnvelopeEvent::TooLarge { .. } | EnvelopeEvent::Sent { .. } => return,
    };
    reports.record_event(drone, happening);
}

/// The event of the group that a leader's envelopes cause, if they do.
pub(super) fn leader_event(event: EnvelopeEvent) -> Option<LeaderEvent> {
    match event {
        EnvelopeEvent::NotSent(why) => Some(LeaderEvent::SendFailed(why)),
        other => {
            tracing::debug!(?other, "leader");
            None
        }
    }
}

/// Hands every drone the keys of its role, and makes the leader seal envelopes.
pub(super) async fn seal_envelopes<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let authority = abe_authority(run.world.plan.seed)?;
    run.world.swarm.hand_out_attribute_keys(&run.world.setting).await?;
    for command in authority.public().into_iter().map(Either::Right) {
        run.world.leader.command(command).await?;
    }
    for (number, order) in (0..).zip(ORDERS) {
        let audience = run.members.iter().copied().filter(|drone| order.is_for(*drone)).collect();
        send_envelope(run, number, &authority, &order, &audience).await?;
    }
    Ok(())
}

async fn send_envelope<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    number: u32,
    authority: &AbeAuthority,
    order: &Order,
    audience: &BTreeSet<u32>,
) -> StepResult {
    let seal = authority.seal(order, message_body(number)).map_err(refused)?;
    let mark = run.mark();
    // For a session's first message all others report that they do not satisfy the policy.
    let (goal, waited_for) = match number {
        0 => (PhaseGoal::EnvelopeReceived(number), run.member_list()),
        _ => (PhaseGoal::Opened(number), audience.iter().copied().collect()),
    };
    run.world.event_log().expect(goal, &waited_for);
    run.world.leader.command(Either::Right(seal)).await?;
    let reached = run.reached("envelopes", waited_for.len()).await;
    let took = mark.at.elapsed();
    run.checker.after(&format!("envelope {number}, sealed to `{}`", order.policy()));
    run.record(Phase::Envelope, format!("to {}", audience.len()), &mark, took, &reached);
    let members: BTreeSet<u32> = run.members.clone();
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| {
        let count = |drone: u32| logs.drones[drone as usize].opened.get(&number).map_or(0, |(n, _)| *n);
        checker.none(
            Invariant::SealedToFew,
            &format!("did not open envelope {number} exactly once, although its attributes fit"),
            audience.iter().map(|drone| (*drone, count(*drone) != 1)),
        );
        checker.none(
            Invariant::SealedToFew,
            &format!("opened envelope {number}, although its attributes do not fit"),
            members.difference(audience).map(|drone| (*drone, count(*drone) != 0)),
        );
    });
    run.expect_all_reached(
        Invariant::SealedToFew,
        &format!("neither opened envelope {number} nor found that it does not satisfy it"),
        &reached,
    )
}

/// Never for the orders there are.
fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("envelopes: {error}"))
}
