//! Measures one run of a large group without faults: enrol, form, expire, leave, join, send, restart.

mod admission;
mod arrivals;
mod envelopes;
mod ibe_orders;
mod operation;
mod pacing;
mod phase;
mod phases;

use std::time::Duration;

use quiver_ainq::{Epoch, StrategyKind};
use quiver_quorum::QuorumSuite;
use quiver_role::leader::LeaderTiming;

use self::arrivals::Arrivals;
pub use self::operation::{Operation, Percentiles, RadioCost, Violation};
pub use self::pacing::Pacing;
pub use self::phase::Phase;
use crate::admission::Rules;
use crate::{AirSetup, LinkFaults, Setup, World, WorldError};

/// For how long keys are valid: longer than any run.
const VALIDITY: Duration = Duration::from_secs(30 * 86_400);

/// What a run shall do.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Drones in the group when it is formed.
    pub drones: u32,
    /// How the leader keys the group.
    pub strategy: StrategyKind,
    /// Whence all randomness comes.
    pub seed: u64,
    /// How many leave.
    pub leavers: u32,
    /// How many join later.
    pub newcomers: u32,
    /// How many group messages are sent.
    pub messages: u32,
    /// Whether orders are sealed to those with certain attributes.
    pub envelopes: bool,
    /// KGCs: one, or a quorum of which any `threshold` issue keys.
    pub kgcs: u16,
    /// How many KGCs it takes.
    pub threshold: u16,
    /// Whether an order is sealed to the mission's second phase.
    pub orders: bool,
    /// The policy that drones without a name are to satisfy: over
    /// [`admission::FIELDS`](crate::admission::FIELDS). None: nobody asks.
    pub admission: Option<String>,
    /// Whether the leader is switched off and on again.
    pub restart_leader: bool,
    /// The radio; none: links as [`LinkFaults::SOUND`].
    pub air: Option<AirSetup>,
    /// The radio with which everybody enrols and joins, before all change to `air` and the rest happens.
    /// None: `air`.
    pub depot: Option<AirSetup>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The phases, in order.
    pub operations: Vec<Operation>,
    /// The invariants that did not hold.
    pub violations: Vec<Violation>,
    /// How many keys were compared.
    pub checks: u64,
    /// The newest epoch.
    pub epoch: Option<Epoch>,
    /// Steps taken.
    pub steps: u64,
}

/// What a run tells about its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The phase under way.
    pub phase: Phase,
    /// How many drones are there.
    pub done: u32,
    /// Of how many.
    pub of: u32,
    /// Virtual time.
    pub at: Duration,
}

/// Runs a plan over a suite.
///
/// # Errors
/// As for [`World::new`], and if the [`Pacing`] of its radio cannot be had.
pub fn run<S: QuorumSuite>(plan: &RunPlan, progress: &mut dyn FnMut(Progress)) -> Result<Run, WorldError> {
    let pace = Pacing::of(plan).map_err(WorldError::Radio)?;
    let members = plan.drones.saturating_add(plan.newcomers);
    let setup = Setup {
        seed: plan.seed,
        fleet_seed: plan.seed,
        members,
        kgcs: plan.kgcs,
        threshold: plan.threshold,
        orders: plan.orders,
        admission: plan.admission.clone().map(Rules::of),
        strategy: plan.strategy,
        // Keys that outlive the run: that they expire is told to the leader.
        leader_timing: LeaderTiming { validity: VALIDITY, ..pace.leader_timing() },
        edge_timing: pace.edge_timing(),
        faults: LinkFaults::SOUND,
        air: plan.depot.clone().or_else(|| plan.air.clone()),
        metered: true,
        parallel: true,
        // How often a drone without a name answered whom outlives its machines.
        durable: plan.admission.is_some(),
        ..Setup::default()
    };
    let world = World::<S>::new(setup)?;
    Ok(phases::Stage::new(world, plan.clone(), pace, progress).play())
}
