//! Runs anonymous drones: one machine per membership, each over connections that nobody has seen before.
//!
//! A drone that wants to join a group with a policy enrols under its name, and is then restarted as an
//! anonymous one. It dials leaders alone. When its machine is over, the world makes the next one from the
//! durable state, as soon as that is of use.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_admission::AdmittingLeaderCommand;
use quiver_ainq::Suite;

use super::{AnonymousDrone, AnonymousMachine, CertifiedFields, Checkpoint, Return, Showing};
use crate::EPOCH_START;
use crate::feature_part::{AnyFeatureCommand, RoleCommand};
use crate::rng_stream::{self, RngStream, below};
use crate::step::MachineEnd;
use crate::world::{Acted, ScheduledAction, StandInStart, WorldFeature, WorldKernel};
use crate::{Action, NodeId, Step};

/// Interval at which a drone without a key is checked again, or one whose clock shows another period than the
/// authority's.
const AGAIN: Duration = Duration::from_secs(1);
/// Part of a period, and the longest time, over which drones fetch their credentials.
const FETCHING: u32 = 10;
const LONGEST_FETCHING: Duration = Duration::from_secs(60);
/// Time after the beginning of a period at which the first of them do.
const FIRST_FETCHED: Duration = Duration::from_secs(2);

/// Events of anonymous admission that are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmissionEvent {
    /// A drone whose machine was over returns.
    Return(u32),
    /// A leader that was started gets the slot keys.
    SlotKeys(u16),
    /// A period of credentials begins.
    Period,
}

/// Edges that have put their names away, where leaders demand a policy.
#[derive(Default)]
pub(crate) struct AnonymousDrones(BTreeMap<u32, AnonymousDrone>);

impl AnonymousDrones {
    /// Returns true if an edge has put its name away.
    pub(crate) fn is_anonymous(&self, edge: u32) -> bool {
        self.0.contains_key(&edge)
    }

    /// Returns true if an anonymous edge wants to be and may be a member: its certified fields of this period
    /// satisfy the policy.
    pub(crate) fn may_be_admitted<S: Suite>(&self, kernel: &WorldKernel<S>, edge: u32) -> bool {
        let Some((checkpoint, drone)) = kernel.fleet().checkpoint().zip(self.0.get(&edge)) else {
            return false;
        };
        let period = checkpoint.period_at(kernel.unix());
        match drone.credential_for(period) {
            _ if !drone.has_credential_for(period) => false,
            Some(held) => held.suffices,
            None => checkpoint.admits(&drone.fields).unwrap_or(false),
        }
    }

    /// Returns true if an anonymous edge wants to be a member.
    pub(crate) fn wants_in(&self, edge: u32) -> bool {
        self.0.get(&edge).is_some_and(|drone| drone.wants)
    }

    /// Tells if the credential of an anonymous edge's machine, or of its last one, satisfies the policy, and
    /// its period; `None` if it had none yet.
    pub(crate) fn shows(&self, edge: u32) -> Option<(bool, u64)> {
        self.0.get(&edge)?.shown
    }

    /// An edge wants in. Where no policy is demanded, or to whom nothing is certified, it joins under its name.
    fn want_in<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, edge: u32) -> Acted {
        let fleet = kernel.shared_fleet();
        let Some(checkpoint) = fleet.checkpoint().filter(|_| fleet.authorises(edge)) else {
            return Acted::Pass;
        };
        let named = kernel.edge(edge).is_some_and(|named| named.keypair().is_some());
        let enrolled = kernel.anywhere(named);
        match self.0.get_mut(&edge) {
            // A drone that is commanded to join tries again, whatever happened before.
            Some(drone) => (drone.wants, drone.spent) = (true, None),
            // A drone is certified only once it is enrolled.
            None if !enrolled => {
                kernel.plan(AGAIN, ScheduledAction::Act(Box::new(Action::Join(edge))));
                return Acted::Done;
            }
            None => {
                kernel.stop(NodeId::Edge(edge));
                if let Some(sim_node) = kernel.nodes.edge_node_mut(edge) {
                    // Its state under its name is kept elsewhere.
                    sim_node.disk.records.clear();
                }
                kernel.wire.hide_name(edge);
                self.0.insert(edge, AnonymousDrone::new(checkpoint.fields(edge)));
            }
        }
        Acted::Start(NodeId::Edge(edge))
    }

    /// The machine of an anonymous drone that is switched on; `None` if it has no useful credential, and then
    /// it returns later.
    fn machine<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, edge: u32) -> Option<StandInStart<S>> {
        let (fleet, kem) = (kernel.shared_fleet(), kernel.kem());
        let checkpoint = fleet.checkpoint()?;
        let own = checkpoint.period_at(kernel.clock(NodeId::Edge(edge)).unix);
        let period = checkpoint.period_at(kernel.unix());
        let drone = self.0.get_mut(&edge)?;
        if !drone.has_credential_for(period) {
            if drone.wants && !drone.revoked {
                return_in_the_next_period(kernel, edge, drone);
            }
            return None;
        }
        if own != period {
            plan_return(kernel, edge, drone, AGAIN);
            return None;
        }
        if drone.credential_for(period).is_none() {
            drone.held = fetched(checkpoint, edge, &drone.fields, period);
        }
        let Showing { credential, suffices, .. } = drone.credential_for(period)?.clone();
        drone.shown = Some((suffices, period));
        let config = checkpoint.anonymous(credential, period, (kernel.setup().edge_timing, kem));
        let sim_node = kernel.nodes.edge_node(edge)?;
        Some(StandInStart::Machine(AnonymousMachine::node(config, sim_node.disk.records.last())))
    }
}

impl<S: Suite> WorldFeature<S> for AnonymousDrones {
    fn begin(&mut self, kernel: &mut WorldKernel<S>) {
        if kernel.fleet().checkpoint().is_some() {
            plan(kernel, Duration::ZERO, AdmissionEvent::Period);
        }
    }

    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, _: &mut Vec<Step>) -> Acted {
        match action {
            Action::Join(edge) => return self.want_in(kernel, *edge),
            Action::Leave(edge) => {
                if let Some(drone) = self.0.get_mut(edge) {
                    drone.wants = false;
                }
            }
            Action::Certify { edge, fields } => {
                let Some(drone) = self.0.get_mut(edge) else { return Acted::Done };
                drone.certified(*fields);
                return Acted::Start(NodeId::Edge(*edge));
            }
            // A revoked edge gets no credentials either.
            Action::Decertify(edge) | Action::Revoke(edge) => {
                if let Some(drone) = self.0.get_mut(edge) {
                    drone.revoked = true;
                }
            }
            _ => {}
        }
        Acted::Pass
    }

    fn run_planned(
        &mut self,
        kernel: &mut WorldKernel<S>,
        planned: &AnyFeatureCommand,
        steps: &mut Vec<Step>,
    ) -> Acted {
        match planned.read::<AdmissionEvent>() {
            Some(AdmissionEvent::Return(edge)) => match self.0.get_mut(&edge) {
                Some(drone) => {
                    drone.returns = false;
                    return Acted::Start(NodeId::Edge(edge));
                }
                None => return Acted::Pass,
            },
            Some(AdmissionEvent::SlotKeys(ordinal)) => steps.extend(send_slot_keys(kernel, ordinal)),
            Some(AdmissionEvent::Period) => steps.extend(begin_period(kernel)),
            None => return Acted::Pass,
        }
        Acted::Done
    }

    fn stand_in(&mut self, kernel: &mut WorldKernel<S>, edge: u32) -> StandInStart<S> {
        if !self.is_anonymous(edge) {
            return StandInStart::Named;
        }
        self.machine(kernel, edge).unwrap_or(StandInStart::Off)
    }

    fn on_start(&mut self, kernel: &mut WorldKernel<S>, node: NodeId) {
        if let (NodeId::Leader(ordinal), Some(_)) = (node, kernel.fleet().checkpoint()) {
            plan(kernel, Duration::ZERO, AdmissionEvent::SlotKeys(ordinal));
        }
    }

    fn on_step(&mut self, kernel: &mut WorldKernel<S>, step: &Step) {
        let NodeId::Edge(edge) = step.node else { return };
        let Some(drone) = self.0.get_mut(&edge) else { return };
        let progress = step.stand_in();
        if progress.admitted {
            drone.admitted();
        }
        if let Some(end) = progress.end {
            finish(kernel, edge, drone, end);
        }
    }
}

/// Switches a drone off whose machine is over, and plans when it returns.
fn finish<S: Suite>(kernel: &mut WorldKernel<S>, edge: u32, drone: &mut AnonymousDrone, end: MachineEnd) {
    kernel.stop(NodeId::Edge(edge));
    match drone.over(end) {
        Return::Never => {}
        Return::WithThePeriod => return_in_the_next_period(kernel, edge, drone),
        Return::After(pause) => {
            let life = kernel.life(NodeId::Edge(edge));
            let mut rng = rng_stream::generator(kernel.setup().seed, RngStream::Return(edge, life));
            let share = u32::try_from(below(&mut rng, 1_001)).unwrap_or(0);
            plan_return(kernel, edge, drone, pause / 2 + pause * share / 1_000);
        }
    }
}

fn return_in_the_next_period<S: Suite>(kernel: &mut WorldKernel<S>, edge: u32, drone: &mut AnonymousDrone) {
    let fleet = kernel.shared_fleet();
    let Some(checkpoint) = fleet.checkpoint() else { return };
    let period = checkpoint.period_at(kernel.unix());
    let (began, ends) = (checkpoint.end_of(period.saturating_sub(1)), checkpoint.end_of(period));
    // The period may be over already, and only the drone is late.
    let next = if drone.spent == Some(period) { ends } else { began };
    let length = ends.saturating_sub(began);
    let most = (Duration::from_secs(length) / FETCHING).min(LONGEST_FETCHING);
    let life = kernel.life(NodeId::Edge(edge));
    let mut rng = rng_stream::generator(kernel.setup().seed, RngStream::Return(edge, life));
    let millis = below(&mut rng, u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
    let starts = Duration::from_secs(next.saturating_sub(EPOCH_START)) + FIRST_FETCHED;
    let after = (starts + Duration::from_millis(millis)).saturating_sub(kernel.time());
    plan_return(kernel, edge, drone, after.max(Duration::from_millis(1)));
}

/// Plans an event of this feature.
fn plan<S: Suite>(kernel: &mut WorldKernel<S>, after: Duration, event: AdmissionEvent) {
    kernel.plan(after, ScheduledAction::Feature(AnyFeatureCommand::new(event)));
}

fn plan_return<S: Suite>(
    kernel: &mut WorldKernel<S>,
    edge: u32,
    drone: &mut AnonymousDrone,
    after: Duration,
) {
    if !drone.returns {
        drone.returns = true;
        plan(kernel, after, AdmissionEvent::Return(edge));
    }
}

/// Begins a period: hands all leaders its slot keys.
fn begin_period<S: Suite>(kernel: &mut WorldKernel<S>) -> Vec<Step> {
    let Some(checkpoint) = kernel.fleet().checkpoint() else { return Vec::new() };
    let ends = checkpoint.end_of(checkpoint.period_at(kernel.unix()));
    let after = Duration::from_secs(ends - EPOCH_START).saturating_sub(kernel.time());
    plan(kernel, after, AdmissionEvent::Period);
    (0..kernel.leader_count()).filter_map(|ordinal| send_slot_keys(kernel, ordinal)).collect()
}

/// Hands a leader the slot keys of the period.
fn send_slot_keys<S: Suite>(kernel: &mut WorldKernel<S>, ordinal: u16) -> Option<Step> {
    let checkpoint = kernel.fleet().checkpoint()?;
    let keys = checkpoint.slot_keys(checkpoint.period_at(kernel.unix())).ok()?;
    let command = AnyFeatureCommand::new(AdmittingLeaderCommand::SlotKeys(keys));
    kernel.submit_to_leader(ordinal, RoleCommand::Feature(command), "take slot keys")
}

/// The credential that the authority issues.
fn fetched<S: Suite>(
    checkpoint: &Checkpoint<S>,
    edge: u32,
    fields: &CertifiedFields,
    period: u64,
) -> Option<Showing> {
    let credential = checkpoint.certify(edge, fields, period).ok()?;
    Some(Showing { credential, period, suffices: checkpoint.admits(fields).ok()? })
}
