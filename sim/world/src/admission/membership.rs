//! Runs anonymous drones: one machine per membership, each over connections that nobody has seen before.
//!
//! A drone that wants to join a group with a policy enrols under its name, and is then restarted as an
//! anonymous one. It dials leaders alone. When its machine is over, the world makes the next one from the
//! durable state, as soon as that is of use.

use std::time::Duration;

use quiver_admission::{AdmittingLeaderCommand, AnonymousEdge};
use quiver_ainq::Suite;
use quiver_group::EdgeCommand;

use super::{AnonymousDrone, CertifiedFields, Checkpoint, Return, Showing};
use crate::EPOCH_START;
use crate::drone_node::DroneNode;
use crate::rng_stream::{self, RngStream, below};
use crate::step::MachineEnd;
use crate::world::{ScheduledAction, anonymous_end};
use crate::{NodeId, Step, World};

/// Interval at which a drone without a key is checked again, or one whose clock shows another period than the
/// authority's.
const AGAIN: Duration = Duration::from_secs(1);
/// Part of a period, and the longest time, over which drones fetch their credentials.
const FETCHING: u32 = 10;
const LONGEST_FETCHING: Duration = Duration::from_secs(60);
/// Time after the beginning of a period at which the first of them do.
const FIRST_FETCHED: Duration = Duration::from_secs(2);

impl<S: Suite> World<S> {
    /// Returns true if an edge has put its name away.
    pub fn is_anonymous(&self, edge: u32) -> bool {
        self.anonymous.contains_key(&edge)
    }

    /// Returns true if an anonymous edge wants to be and may be a member: its certified fields of this period
    /// satisfy the policy.
    pub fn may_be_admitted(&self, edge: u32) -> bool {
        let Some((checkpoint, drone)) = self.fleet.checkpoint().zip(self.anonymous.get(&edge)) else {
            return false;
        };
        let period = checkpoint.period_at(self.unix());
        match drone.credential_for(period) {
            _ if !drone.has_credential_for(period) => false,
            Some(held) => held.suffices,
            None => checkpoint.admits(&drone.fields).unwrap_or(false),
        }
    }

    /// Returns true if an anonymous edge wants to be a member.
    pub fn wants_in(&self, edge: u32) -> bool {
        self.anonymous.get(&edge).is_some_and(|drone| drone.wants)
    }

    /// Tells if the credential of an anonymous edge's machine, or of its last one, satisfies the policy, and
    /// its period; `None` if it had none yet.
    pub(crate) fn shows(&self, edge: u32) -> Option<(bool, u64)> {
        self.anonymous.get(&edge)?.shown
    }

    /// Time of arrival of the last message between these nodes, if none may overtake it. The exchange of an
    /// anonymous drone is one message after the other, and the services' connections keep them in order.
    pub(crate) fn last_between(&mut self, from: NodeId, to: NodeId) -> Option<&mut u64> {
        match (from, to) {
            (NodeId::Edge(edge), _) => Some(&mut self.anonymous.get_mut(&edge)?.last_heard[0]),
            (_, NodeId::Edge(edge)) => Some(&mut self.anonymous.get_mut(&edge)?.last_heard[1]),
            _ => None,
        }
    }

    /// Unix time by the true clock.
    pub(crate) fn unix(&self) -> u64 {
        EPOCH_START + self.now / 1_000_000_000
    }

    /// An edge wants in. Where no policy is demanded, or to whom nothing is certified, under its name.
    pub(crate) fn want_in(&mut self, edge: u32, steps: &mut Vec<Step>) {
        let Some(checkpoint) = self.fleet.checkpoint().filter(|_| self.fleet.authorises(edge)) else {
            let group = self.fleet.group().clone();
            return steps.extend(self.submit_to_edge(edge, EdgeCommand::Join(group), "join"));
        };
        let fields = checkpoint.fields(edge);
        let enrolled = self.anywhere(self.edge(edge).is_some_and(|named| named.keypair().is_some()));
        match self.anonymous.get_mut(&edge) {
            // A drone that is commanded to join tries again, whatever happened before.
            Some(drone) => (drone.wants, drone.spent) = (true, None),
            // A drone is certified only once it is enrolled.
            None if !enrolled => {
                return self.plan(AGAIN, ScheduledAction::Act(Box::new(crate::Action::Join(edge))));
            }
            None => {
                self.stop(NodeId::Edge(edge));
                if let Some(sim_node) = self.edges.get_mut(edge as usize).and_then(Option::as_deref_mut) {
                    // Its state under its name is kept elsewhere.
                    sim_node.disk.records.clear();
                }
                self.anonymous.insert(edge, AnonymousDrone::new(fields));
            }
        }
        steps.extend(self.start(NodeId::Edge(edge)));
    }

    /// An edge wants out.
    pub(crate) fn want_out(&mut self, edge: u32) -> Option<Step> {
        if let Some(drone) = self.anonymous.get_mut(&edge) {
            drone.wants = false;
        }
        self.submit_to_edge(edge, EdgeCommand::Leave, "leave")
    }

    /// Sets or removes the certified fields of a drone.
    pub(crate) fn certify(&mut self, edge: u32, fields: Option<CertifiedFields>, steps: &mut Vec<Step>) {
        let Some(drone) = self.anonymous.get_mut(&edge) else { return };
        match fields {
            None => drone.revoked = true,
            Some(fields) => {
                drone.certified(fields);
                steps.extend(self.start(NodeId::Edge(edge)));
            }
        }
    }

    /// The machine of an anonymous drone that is switched on; `None` if it has no useful credential, and then
    /// it returns later.
    pub(crate) fn anonymous(
        &mut self,
        edge: u32,
    ) -> Option<Result<DroneNode<S>, quiver_group::leader::RestoreError>> {
        let (fleet, kem) = (std::sync::Arc::clone(&self.fleet), self.kem());
        let checkpoint = fleet.checkpoint()?;
        let (period, own) =
            (checkpoint.period_at(self.unix()), checkpoint.period_at(self.clock(NodeId::Edge(edge)).unix));
        let drone = self.anonymous.get_mut(&edge)?;
        if !drone.has_credential_for(period) {
            if drone.wants && !drone.revoked {
                self.return_in_the_next_period(edge);
            }
            return None;
        }
        if own != period {
            self.plan_return(edge, AGAIN);
            return None;
        }
        if drone.credential_for(period).is_none() {
            drone.held = fetched(checkpoint, edge, &drone.fields, period);
        }
        let Showing { credential, suffices, .. } = drone.credential_for(period)?.clone();
        drone.shown = Some((suffices, period));
        let config = checkpoint.anonymous(credential, period, (self.setup.edge_timing, kem));
        let sim_node = self.edges.get(edge as usize)?.as_deref()?;
        Some(
            AnonymousEdge::new(config, sim_node.disk.records.last())
                .map(|machine| DroneNode::new(machine, None)),
        )
    }

    /// Handles the events of an anonymous drone.
    pub(crate) fn note_anonymous(&mut self, step: &Step) {
        let NodeId::Edge(edge) = step.node else { return };
        if !self.anonymous.contains_key(&edge) {
            return;
        }
        let (admitted, end) = anonymous_end(step);
        if let Some(drone) = self.anonymous.get_mut(&edge).filter(|_| admitted) {
            drone.admitted();
        }
        if let Some(end) = end {
            self.over(edge, end);
        }
    }

    fn over(&mut self, edge: u32, end: MachineEnd) {
        self.stop(NodeId::Edge(edge));
        match self.anonymous.get_mut(&edge).map_or(Return::Never, |drone| drone.over(end)) {
            Return::Never => {}
            Return::WithThePeriod => self.return_in_the_next_period(edge),
            Return::After(pause) => {
                let life = self.life(NodeId::Edge(edge));
                let mut rng = rng_stream::generator(self.setup.seed, RngStream::Return(edge, life));
                let share = u32::try_from(below(&mut rng, 1_001)).unwrap_or(0);
                self.plan_return(edge, pause / 2 + pause * share / 1_000);
            }
        }
    }

    fn return_in_the_next_period(&mut self, edge: u32) {
        let Some((checkpoint, drone)) = self.fleet.checkpoint().zip(self.anonymous.get(&edge)) else {
            return;
        };
        let period = checkpoint.period_at(self.unix());
        let (began, ends) = (checkpoint.end_of(period.saturating_sub(1)), checkpoint.end_of(period));
        // The period may be over already, and only the drone is late.
        let next = if drone.spent == Some(period) { ends } else { began };
        let length = ends.saturating_sub(began);
        let most = (Duration::from_secs(length) / FETCHING).min(LONGEST_FETCHING);
        let mut rng =
            rng_stream::generator(self.setup.seed, RngStream::Return(edge, self.life(NodeId::Edge(edge))));
        let millis = below(&mut rng, u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
        let starts = Duration::from_secs(next.saturating_sub(EPOCH_START)) + FIRST_FETCHED;
        let after = (starts + Duration::from_millis(millis)).saturating_sub(self.time());
        self.plan_return(edge, after.max(Duration::from_millis(1)));
    }

    fn plan_return(&mut self, edge: u32, after: Duration) {
        let Some(drone) = self.anonymous.get_mut(&edge).filter(|drone| !drone.returns) else { return };
        drone.returns = true;
        self.plan(after, ScheduledAction::ReturnDrone(edge));
    }

    /// Restarts a drone whose machine was over.
    pub(crate) fn return_drone(&mut self, edge: u32) -> Option<Step> {
        self.anonymous.get_mut(&edge)?.returns = false;
        self.start(NodeId::Edge(edge))
    }

    /// Begins a period: hands all leaders its slot keys.
    pub(crate) fn begin_period(&mut self) -> Vec<Step> {
        let Some(checkpoint) = self.fleet.checkpoint() else { return Vec::new() };
        let ends = checkpoint.end_of(checkpoint.period_at(self.unix()));
        self.plan(
            Duration::from_secs(ends - EPOCH_START).saturating_sub(self.time()),
            ScheduledAction::Period,
        );
        (0..self.nodes.leaders).filter_map(|ordinal| self.send_slot_keys(ordinal)).collect()
    }

    /// Hands a leader the slot keys of the period.
    pub(crate) fn send_slot_keys(&mut self, ordinal: u16) -> Option<Step> {
        let checkpoint = self.fleet.checkpoint()?;
        let keys = checkpoint.slot_keys(checkpoint.period_at(self.unix())).ok()?;
        self.submit_to_leader(ordinal, AdmittingLeaderCommand::SlotKeys(keys), "take slot keys")
    }
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
