//! The phases of IBE orders: no drone opens one before enough operators have approved its condition, then all
//! do.

use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_delivery::kgc::DeliveryCommand;
use quiver_delivery::release::{Approval, ReleaseCommand};
use quiver_group::LeaderCommand;
use quiver_ibe::Condition;
use quiver_machine::Either;
use quiver_world::Invariant;
use quiver_world::ibe_orders::{CHANNEL, SealedOrder, phase_two};
use quiver_world::run::Phase;

use crate::live::deployment::name;
use crate::live::event_log::{PhaseGoal, Reached};
use crate::live::kgc::refused;
use crate::live::phases::{PhaseRun, StepResult};
use crate::live::swarm::OrderTerms;
use crate::live::world::ENROLLING_AT_ONCE;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// The text of the order.
const TEXT: &[u8] = b"phase 2: everybody north";
/// Time for which a drone asks before the release: long enough for every KGC to refuse.
const FIRST_TRY: Duration = Duration::from_secs(20);
/// Time between two looks at how many have read it.
const TICK: Duration = Duration::from_millis(100);

impl<S: Suite> PhaseRun<'_, S> {
    /// Sends an order, lets every drone try to open it, releases its key, and lets every drone try again.
    pub(in crate::live) async fn ibe_order(&mut self) -> StepResult {
        let condition = phase_two(&self.world.setting.group).map_err(refused)?;
        self.send_order(&condition).await?;
        // One operator too few.
        for kgc in 1..self.world.plan.threshold {
            self.approve(kgc, &condition).await?;
        }
        let mark = self.mark();
        let patience = FIRST_TRY.min(self.world.plan.timeout);
        let early = self.collect_and_open(&condition, (patience, false)).await?;
        let (took, everybody) = (mark.at.elapsed(), self.member_list());
        self.checker.after(Phase::Order.name());
        self.checker.none(
            Invariant::OpensWhenReleased,
            "read an order before its key was released",
            everybody.iter().map(|drone| (*drone, early.contains(drone))),
        );
        let nobody = Reached { drones: Vec::new(), missing: everybody.clone() };
        let refused = everybody.len() - early.len();
        self.record(Phase::EarlyRequest, format!("{refused} refused"), &mark, took, &nobody);
        self.release(&condition).await
    }

    /// The leader seals the order and sends it to the group.
    async fn send_order(&mut self, condition: &Condition) -> StepResult {
        let mut rng = rng_stream::generator(self.world.plan.seed, RngStream::IbeAuthority, 2, 0);
        let Some(ibe_authority) = &self.world.ibe_authority else { return Ok(()) };
        let order = SealedOrder::seal(ibe_authority.authority().master(), condition.clone(), TEXT, &mut rng);
        let data = order.map_err(refused)?.encode();
        let (mark, everybody) = (self.mark(), self.member_list());
        self.world.event_log().expect(PhaseGoal::HasOrder, &everybody);
        let channel = name(CHANNEL)?;
        self.world.leader.command(Either::Left(LeaderCommand::Send { channel, data }.into())).await?;
        let reached = self.reached(Phase::Order.name(), everybody.len()).await;
        let took = mark.at.elapsed();
        self.checker.after(Phase::Order.name());
        self.record(Phase::Order, String::new(), &mark, took, &reached);
        self.expect_all_reached(Invariant::Delivery, "does not have the order", &reached)
    }

    /// The last operator that it takes approves; from then on the time counts.
    async fn release(&mut self, condition: &Condition) -> StepResult {
        let mark = self.mark();
        let everybody = self.member_list();
        self.world.event_log().expect(PhaseGoal::ReadOrder, &everybody);
        self.approve(self.world.plan.threshold, condition).await?;
        let patience = self.world.plan.timeout;
        self.collect_showing_progress(condition, (patience, true), everybody.len()).await?;
        let reached = self.reached(Phase::Release.name(), everybody.len()).await;
        let took = mark.at.elapsed();
        let (threshold, kgcs) = (self.world.plan.threshold, self.world.plan.kgcs);
        self.checker.after(Phase::Release.name());
        self.record(Phase::Release, format!("{threshold} of {kgcs}"), &mark, took, &reached);
        let checker = &mut self.checker;
        self.world.event_log().with_logs(|logs| {
            checker.none(
                Invariant::OpensWhenReleased,
                "read another text than the order has",
                everybody.iter().map(|drone| {
                    let read = logs.drones[*drone as usize].read.as_ref();
                    (*drone, read.is_some_and(|(text, _)| text != TEXT))
                }),
            );
        });
        self.expect_all_reached(Invariant::OpensWhenReleased, "did not read the order", &reached)
    }

    async fn approve(&self, kgc: KgcId, condition: &Condition) -> Result<()> {
        let approval = Approval { revision: 1, condition: condition.clone(), approved: true };
        let command = Either::Right(DeliveryCommand::Shares(ReleaseCommand::Approval(approval)));
        match self.world.kgcs.get(usize::from(kgc) - 1) {
            Some(node) => node.command(command).await,
            None => Err(SimError::Stopped { who: format!("KGC {kgc}") }),
        }
    }

    async fn collect_showing_progress(
        &self,
        condition: &Condition,
        terms: (Duration, bool),
        drones: usize,
    ) -> Result<Vec<u32>> {
        let mut wait = self.world.progress.wait("read the order", drones);
        let collecting = self.collect_and_open(condition, terms);
        tokio::pin!(collecting);
        loop {
            tokio::select! {
                read = &mut collecting => return read,
                () = tokio::time::sleep(TICK) => wait.done(self.world.event_log().progress()),
            }
        }
    }

    /// Lets every member ask for the key, some hundred at a time, and open the order with it. Returns the
    /// drones that opened it.
    async fn collect_and_open(
        &self,
        condition: &Condition,
        (patience, wait): (Duration, bool),
    ) -> Result<Vec<u32>> {
        let world = &*self.world;
        let condition = condition.as_str().to_string();
        let terms = OrderTerms { condition, patience, wait, at_once: ENROLLING_AT_ONCE };
        world.swarm.read_orders(&world.setting, world.kgc_addresses(), &self.member_list(), &terms).await
    }
}
