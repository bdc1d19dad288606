//! Runs anonymous drones: one machine per membership, each over connections that nobody has seen before.
//!
//! A drone that wants into a group which demands a policy enrols under its name, and then is switched off and
//! on again as somebody without one. It dials leaders alone. When its machine is over, the world makes the
//! next one from what is durable: as soon as that is of use.

use std::time::Duration;

use quiver_ainq::Suite;
use quiver_role::EdgeCommand;
use quiver_role::admission::{AdmittingLeaderCommand, AnonymousEdge, AnonymousEvent, Ending};

use super::{ScheduledAction, World};
use crate::EPOCH_START;
use crate::admission::{AnonymousDrone, Checkpoint, Fields, Return, Showing};
use crate::drone_node::Drone;
use crate::rng_stream::{self, RngStream, below};
use crate::{Effect, NodeEvent, NodeId, Step};

/// How soon a drone that has no key yet is looked at again, or one whose clock says another period than the
/// authority's.
const AGAIN: Duration = Duration::from_secs(1);
/// Over which part of a period, and over how long at most, drones fetch their credentials.
const FETCHING: u32 = 10;
const LONGEST_FETCHING: Duration = Duration::from_secs(60);
/// How long after the beginning of a period the first of them do.
const FIRST_FETCHED: Duration = Duration::from_secs(2);

impl<S: Suite> World<S> {
    /// Whether an edge has put its name away.
    pub fn is_anonymous(&self, edge: u32) -> bool {
        self.anonymous.contains_key(&edge)
    }

    /// Whether an edge without a name wants in and may be: what it has, or can have, certified for this
    /// period satisfies the policy.
    pub fn may_be_admitted(&self, edge: u32) -> bool {
        let Some((checkpoint, drone)) = self.fleet.checkpoint().zip(self.anonymous.get(&edge)) else {
            return false;
        };
        let period = checkpoint.period_at(self.unix());
        match drone.shown_in(period) {
            _ if !drone.may_show(period) => false,
            Some(held) => held.suffices,
            None => checkpoint.lets_in(&drone.fields).unwrap_or(false),
        }
    }

    /// Whether an edge without a name wants in.
    pub fn wants_in(&self, edge: u32) -> bool {
        self.anonymous.get(&edge).is_some_and(|drone| drone.wants)
    }

    /// Whether what the machine of an edge without a name shows, or its last one showed, satisfies the
    /// policy, and of which period it is; none if it had none yet.
    pub(crate) fn shows(&self, edge: u32) -> Option<(bool, u64)> {
        self.anonymous.get(&edge)?.shown
    }

    /// When the last message from one of these nodes to the other arrives, if none may overtake it. The
    /// exchange of a drone without a name is one message after the other, and the services' connections keep
    /// them so.
    pub(super) fn last_between(&mut self, from: NodeId, to: NodeId) -> Option<&mut u64> {
        match (from, to) {
            (NodeId::Edge(edge), _) => Some(&mut self.anonymous.get_mut(&edge)?.last_heard[0]),
            (_, NodeId::Edge(edge)) => Some(&mut self.anonymous.get_mut(&edge)?.last_heard[1]),
            _ => None,
        }
    }

    /// By the true clock.
    pub(crate) fn unix(&self) -> u64 {
        EPOCH_START + self.now / 1_000_000_000
    }

    /// An edge wants in. Where no policy is demanded, or to whom nothing is certified, under its name.
    pub(super) fn want_in(&mut self, edge: u32, steps: &mut Vec<Step>) {
        let Some(checkpoint) = self.fleet.checkpoint().filter(|_| self.fleet.authorises(edge)) else {
            let group = self.fleet.group().clone();
            return steps.extend(self.tell_edge(edge, EdgeCommand::Join(group), "join"));
        };
        let fields = checkpoint.fields(edge);
        let enrolled = self.edge(edge).is_some_and(|named| named.keypair().is_some());
        match self.anonymous.get_mut(&edge) {
            // Who is told to tries again, whatever came of it before.
            Some(drone) => (drone.wants, drone.spent) = (true, None),
            // Nothing is certified for who is not enrolled.
            None if !enrolled => {
                return self.plan(AGAIN, ScheduledAction::Act(Box::new(crate::Action::Join(edge))));
            }
            None => {
                self.stop(NodeId::Edge(edge));
                if let Some(sim_node) = self.edges.get_mut(edge as usize).and_then(Option::as_deref_mut) {
                    // What it has under its name is kept elsewhere.
                    sim_node.disk.records.clear();
                }
                self.anonymous.insert(edge, AnonymousDrone::new(fields));
            }
        }
        steps.extend(self.start(NodeId::Edge(edge)));
    }

    /// An edge wants out.
    pub(super) fn want_out(&mut self, edge: u32) -> Option<Step> {
        if let Some(drone) = self.anonymous.get_mut(&edge) {
            drone.wants = false;
        }
        self.tell_edge(edge, EdgeCommand::Leave, "leave")
    }

    /// The operator says what a drone has from now on, or that it has nothing any more.
    pub(super) fn certify(&mut self, edge: u32, fields: Option<Fields>, steps: &mut Vec<Step>) {
        let Some(drone) = self.anonymous.get_mut(&edge) else { return };
        match fields {
            None => drone.revoked = true,
            Some(fields) => {
                drone.certified(fields);
                steps.extend(self.start(NodeId::Edge(edge)));
            }
        }
    }

    /// The machine of a drone without a name that is switched on; none if there is nothing of use to be
    /// shown, and then it comes back later.
    pub(super) fn anonymous(
        &mut self,
        edge: u32,
    ) -> Option<Result<Drone<S>, quiver_role::leader::RestoreError>> {
        let fleet = std::sync::Arc::clone(&self.fleet);
        let checkpoint = fleet.checkpoint()?;
        let (period, own) =
            (checkpoint.period_at(self.unix()), checkpoint.period_at(self.clock(NodeId::Edge(edge)).unix));
        let drone = self.anonymous.get_mut(&edge)?;
        if !drone.may_show(period) {
            if drone.wants && !drone.revoked {
                self.return_in_the_next_period(edge);
            }
            return None;
        }
        if own != period {
            self.plan_return(edge, AGAIN);
            return None;
        }
        if drone.shown_in(period).is_none() {
            drone.held = fetched(checkpoint, edge, &drone.fields, period);
        }
        let Showing { credential, suffices, .. } = drone.shown_in(period)?.clone();
        drone.shown = Some((suffices, period));
        let config = checkpoint.anonymous(credential, period, self.setup.edge_timing);
        let sim_node = self.edges.get(edge as usize)?.as_deref()?;
        Some(
            AnonymousEdge::new(config, sim_node.disk.records.last()).map(|machine| Drone::new(machine, None)),
        )
    }

    /// What a drone without a name reported.
    pub(super) fn note_anonymous(&mut self, step: &Step) {
        let NodeId::Edge(edge) = step.node else { return };
        if !self.anonymous.contains_key(&edge) {
            return;
        }
        let mut over = None;
        for effect in &step.effects {
            let Effect::Reported(event) = effect else { continue };
            match &**event {
                NodeEvent::Anonymous(AnonymousEvent::Admitted { .. }) => {
                    if let Some(drone) = self.anonymous.get_mut(&edge) {
                        drone.admitted();
                    }
                }
                NodeEvent::Anonymous(AnonymousEvent::Ended(why)) => over = Some(why.clone()),
                _ => {}
            }
        }
        if let Some(why) = over {
            self.over(edge, &why);
        }
    }

    fn over(&mut self, edge: u32, why: &Ending) {
        self.stop(NodeId::Edge(edge));
        match self.anonymous.get_mut(&edge).map_or(Return::Never, |drone| drone.over(why)) {
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
        // It may be over already, and only the drone is late.
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
        self.plan(after, ScheduledAction::ComeBack(edge));
    }

    /// A drone whose machine was over comes back.
    pub(super) fn come_back(&mut self, edge: u32) -> Option<Step> {
        self.anonymous.get_mut(&edge)?.returns = false;
        self.start(NodeId::Edge(edge))
    }

    /// A period begins: all leaders are told its slot keys.
    pub(super) fn begin_period(&mut self) -> Vec<Step> {
        let Some(checkpoint) = self.fleet.checkpoint() else { return Vec::new() };
        let ends = checkpoint.end_of(checkpoint.period_at(self.unix()));
        self.plan(
            Duration::from_secs(ends - EPOCH_START).saturating_sub(self.time()),
            ScheduledAction::Period,
        );
        (0..self.nodes.leaders).filter_map(|ordinal| self.tell_slot_keys(ordinal)).collect()
    }

    /// A leader is told the slot keys of the period.
    pub(super) fn tell_slot_keys(&mut self, ordinal: u16) -> Option<Step> {
        let checkpoint = self.fleet.checkpoint()?;
        let keys = checkpoint.slot_keys(checkpoint.period_at(self.unix())).ok()?;
        self.tell_leader(ordinal, AdmittingLeaderCommand::SlotKeys(keys), "take slot keys")
    }
}

/// What the authority certifies.
fn fetched<S: Suite>(checkpoint: &Checkpoint<S>, edge: u32, fields: &Fields, period: u64) -> Option<Showing> {
    let credential = checkpoint.certify(edge, fields, period).ok()?;
    Some(Showing { credential, period, suffices: checkpoint.lets_in(fields).ok()? })
}
