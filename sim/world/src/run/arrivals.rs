//! Records when each drone reached each state.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{Epoch, Suite};
use quiver_enrolment::KgcEvent;
use quiver_group::{EdgeEvent, LeaderEvent};

use crate::admission::{AdmissionNodeEvent, AnonymousMembers};
use crate::conditions::{CHANNEL, ConditionNodeEvent};
use crate::envelopes::{EnvelopeNodeEvent, OpenedEnvelopes};
use crate::step::StandInProgress;
use crate::trace::TraceRecorder;
use crate::{Action, AnyFeatureEvent, Hop, NodeEvent, NodeId, Step, StepObserver, World};

/// State of every edge at its last relevant step.
#[derive(Clone, Copy, Debug, Default)]
struct EdgeProgress {
    enrolled: bool,
    epoch: Option<Epoch>,
    /// Milliseconds since the world began.
    at: u32,
}

/// Notes the events for which a run waits.
#[derive(Debug, Default)]
pub(crate) struct Arrivals<S: Suite> {
    edges: Vec<EdgeProgress>,
    pub(crate) enrolled: u32,
    /// Epochs made.
    pub(crate) made: usize,
    pub(crate) newest: Option<Epoch>,
    /// Number of edges that hold the newest epoch.
    pub(crate) current: u32,
    /// True if every member acknowledged the newest epoch.
    pub(crate) delivered: bool,
    pub(crate) issued: u32,
    pub(crate) left: u32,
    pub(crate) heard: u64,
    pub(crate) heard_by_leader: u64,
    pub(crate) regressions: u32,
    pub(crate) blamed: u64,
    /// Sealed orders.
    pub(crate) envelopes_opened: OpenedEnvelopes,
    /// Orders for the second phase: edges that received one, number of openings, and the edges that opened
    /// one.
    pub(crate) orders_heard: u32,
    pub(crate) orders_opened: BTreeSet<u32>,
    pub(crate) openings: u32,
    /// Anonymous members.
    pub(crate) anonymous: AnonymousMembers<S>,
    /// Records the run, if it is to be played again.
    pub(crate) recorder: Option<TraceRecorder>,
}

impl<S: Suite> Arrivals<S> {
    pub(crate) fn new(edges: u32, recorder: Option<TraceRecorder>) -> Self {
        Self { edges: vec![EdgeProgress::default(); edges as usize], recorder, ..Self::default() }
    }

    /// The time after `start` in which each of these edges arrived.
    pub(crate) fn latencies(&self, edges: &[u32], start: Duration) -> Vec<(u32, Duration)> {
        let start = u32::try_from(start.as_millis()).unwrap_or(u32::MAX);
        let latency = |edge: &u32| {
            let at = self.edges.get(*edge as usize)?.at;
            Some((*edge, Duration::from_millis(at.saturating_sub(start).into())))
        };
        edges.iter().filter_map(latency).collect()
    }

    fn edge(&mut self, number: u32, at: Duration, event: &EdgeEvent) {
        let Some(place) = self.edges.get_mut(number as usize) else { return };
        let now = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
        match event {
            EdgeEvent::Enrolled { .. } => {
                place.enrolled = true;
                place.at = now;
                self.enrolled += 1;
            }
            EdgeEvent::KeyActivated { epoch, .. } => {
                self.regressions += u32::from(place.epoch.is_some_and(|before| before > *epoch));
                self.current += u32::from(Some(*epoch) == self.newest && place.epoch != self.newest);
                place.epoch = Some(*epoch);
                place.at = now;
            }
            EdgeEvent::Left | EdgeEvent::Evicted => {
                self.current -= u32::from(place.epoch.is_some() && place.epoch == self.newest);
                self.left += 1;
                place.epoch = None;
                place.at = now;
            }
            EdgeEvent::Message { channel, .. } if channel.as_str() == CHANNEL => {
                place.at = now;
                self.orders_heard += 1;
            }
            EdgeEvent::Message { .. } => {
                place.at = now;
                self.heard += 1;
            }
            EdgeEvent::Blamed { .. } => self.blamed += 1,
            _ => {}
        }
    }

    /// Handles an event of a feature at an edge.
    fn feature(&mut self, number: u32, at: Duration, event: &AnyFeatureEvent) {
        if let Some(event) = event.read::<AdmissionNodeEvent>() {
            self.anonymous.edge(number, event);
        }
        if let Some(event) = event.read::<EnvelopeNodeEvent>() {
            self.touch(number, at);
            self.envelopes_opened.note(number, event);
        }
        if let Some(ConditionNodeEvent::Opened(_)) = event.read::<ConditionNodeEvent>() {
            self.opened(number, at);
        }
        if let (Some(StandInProgress::Ended(_)), Some(place)) =
            (event.progress(), self.edges.get_mut(number as usize))
        {
            self.current -= u32::from(place.epoch.is_some() && place.epoch == self.newest);
            place.epoch = None;
        }
    }

    fn touch(&mut self, number: u32, at: Duration) {
        if let Some(place) = self.edges.get_mut(number as usize) {
            place.at = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
        }
    }

    fn opened(&mut self, number: u32, at: Duration) {
        self.touch(number, at);
        self.openings += 1;
        self.orders_opened.insert(number);
    }

    fn leader(&mut self, event: &LeaderEvent) {
        self.anonymous.leader(event);
        match event {
            LeaderEvent::EpochActivated { epoch, .. } => {
                self.made += 1;
                self.newest = Some(*epoch);
                self.current = 0;
                self.delivered = false;
            }
            LeaderEvent::Delivered { .. } => self.delivered = true,
            LeaderEvent::Message { .. } => self.heard_by_leader += 1,
            _ => {}
        }
    }
}

impl<S: Suite> StepObserver<S> for Arrivals<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_step(world, step);
        }
        self.anonymous.sightings.note(world, step);
        for event in step.events() {
            if let (true, NodeEvent::Leader(LeaderEvent::Blamed { .. })) = (world.counts(step.node), event) {
                self.blamed += 1;
            }
            match (step.node, event) {
                (NodeId::Edge(number), NodeEvent::Edge(event)) => self.edge(number, step.at, event),
                (NodeId::Edge(number), NodeEvent::Feature(event)) => self.feature(number, step.at, event),
                (_, NodeEvent::Kgc(KgcEvent::Issued { .. })) => self.issued += 1,
                (_, NodeEvent::Leader(event)) => self.leader(event),
                _ => {}
            }
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_action(world, at, action);
        }
    }

    fn on_hop(&mut self, hop: &Hop) {
        if let Some(recorder) = &mut self.recorder {
            StepObserver::<S>::on_hop(recorder, hop);
        }
    }
}
