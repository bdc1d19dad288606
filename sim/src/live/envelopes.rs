//! The envelope phase: the leader seals to attributes, and exactly the drones with fitting attributes open.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_machine::Either;
use quiver_world::Invariant;
use quiver_world::envelopes::{AbeAuthority, ORDERS, Order};
use quiver_world::run::Phase;

use super::event_log::PhaseGoal;
use super::hosts::message_body;
use super::phases::{PhaseRun, StepResult};
use super::swarm::abe_authority;
use crate::SimError;

impl<S: Suite> PhaseRun<'_, S> {
    /// Hands every drone the keys of its role, and makes the leader seal envelopes.
    pub(super) async fn seal_envelopes(&mut self) -> StepResult {
        let authority = abe_authority(self.world.plan.seed)?;
        self.world.swarm.hand_out_attribute_keys(&self.world.setting).await?;
        for command in authority.public().into_iter().map(Either::Right) {
            self.world.leader.command(command).await?;
        }
        for (number, order) in (0..).zip(ORDERS) {
            let audience = self.members.iter().copied().filter(|drone| order.is_for(*drone)).collect();
            self.send_envelope(number, &authority, &order, &audience).await?;
        }
        Ok(())
    }

    async fn send_envelope(
        &mut self,
        number: u32,
        authority: &AbeAuthority,
        order: &Order,
        audience: &BTreeSet<u32>,
    ) -> StepResult {
        let seal = authority.seal(order, message_body(number)).map_err(refused)?;
        let mark = self.mark();
        // For a session's first message all others report that they do not satisfy the policy.
        let (goal, waited_for) = match number {
            0 => (PhaseGoal::EnvelopeReceived(number), self.member_list()),
            _ => (PhaseGoal::Opened(number), audience.iter().copied().collect()),
        };
        self.world.event_log().expect(goal, &waited_for);
        self.world.leader.command(Either::Right(seal)).await?;
        let reached = self.reached("envelopes", waited_for.len()).await;
        let took = mark.at.elapsed();
        self.checker.after(&format!("envelope {number}, sealed to `{}`", order.policy()));
        self.record(Phase::Envelope, format!("to {}", audience.len()), &mark, took, &reached);
        let members: BTreeSet<u32> = self.members.clone();
        let checker = &mut self.checker;
        self.world.event_log().with_logs(|logs| {
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
        self.expect_all_reached(
            Invariant::SealedToFew,
            &format!("neither opened envelope {number} nor found that it does not satisfy it"),
            &reached,
        )
    }
}

/// Never for the orders there are.
fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("envelopes: {error}"))
}
