//! Carries out scheduled actions: what operators, applications and faults do to nodes.

use std::time::Duration;

use quiver_admission::AdmittingLeaderCommand;
use quiver_ainq::{Name, Revoked, Suite};
use quiver_delivery::release::ReleaseCommand;
use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, LeaderCommand};
use quiver_machine::Either;
use quiver_testbed::{Stimulus, nanos};

use super::{ScheduledAction, World};
use crate::conditions;
use crate::event_queue::WorldEvent;
use crate::fleet::edge_name;
use crate::kgc_node::KgcNodeCommand;
use crate::{Action, NodeId, Partition, Step};

/// The channel on which the world talks.
const CHANNEL: &str = "talk";

/// The number in a message of [`Action::Talk`], if the data is one.
pub fn message_number(data: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(data.try_into().ok()?))
}

impl<S: Suite> World<S> {
    /// Plans an action for a time since the world began; for now if that has passed.
    pub fn schedule(&mut self, at: Duration, action: Action) {
        let after = at.saturating_sub(self.time());
        self.plan(after, ScheduledAction::Act(Box::new(action)));
    }

    pub(crate) fn plan(&mut self, after: Duration, scheduled: ScheduledAction) {
        let number = u32::try_from(self.scheduled.len()).unwrap_or(u32::MAX);
        self.scheduled.push(Some(scheduled));
        self.queue.push(self.now.saturating_add(nanos(after)), number, WorldEvent::ScheduledAction);
    }

    /// Carries out an scheduled action. Gives the steps taken at once, and the action if it was one.
    pub(crate) fn run_scheduled(&mut self, number: u32) -> (Vec<Step>, Option<Action>) {
        let scheduled = self.scheduled.get_mut(number as usize).and_then(Option::take);
        let mut steps = Vec::new();
        match scheduled {
            None => {}
            Some(ScheduledAction::Connect(dialler, hub)) => self.connect(dialler, hub),
            Some(ScheduledAction::Sever(a, b)) => self.sever(a, b),
            Some(ScheduledAction::Return(node)) => steps.extend(self.start(node)),
            Some(ScheduledAction::ReturnDrone(edge)) => steps.extend(self.return_drone(edge)),
            Some(ScheduledAction::SlotKeys(ordinal)) => steps.extend(self.send_slot_keys(ordinal)),
            Some(ScheduledAction::Period) => steps.extend(self.begin_period()),
            Some(ScheduledAction::Cross(epoch)) => self.cross(epoch),
            Some(ScheduledAction::Act(action)) => {
                self.act(&action, &mut steps);
                return (steps, Some(*action));
            }
        }
        (steps, None)
    }

    fn act(&mut self, action: &Action, steps: &mut Vec<Step>) {
        match action {
            Action::Start(node) => steps.extend(self.start(*node)),
            Action::Stop(node) => self.stop(*node),
            Action::Crash { node, after, down_for } => self.crash_after(*node, *after, *down_for),
            Action::Links(faults) => self.network.set_faults(*faults),
            Action::LinksOf(node, faults) => {
                self.network.set_faults_of(*node, *faults);
                if faults.is_some_and(|faults| faults.loss >= 1.0) {
                    self.plan_severing(&Partition::island([*node]));
                }
            }
            Action::Part(partition) => {
                self.network.part(partition.clone());
                self.plan_severing(partition);
            }
            Action::Radio(setup) => {
                if let Some(air) = &mut self.air {
                    air.retune((**setup).clone());
                }
            }
            Action::Heal => self.network.heal(),
            Action::Skew { node, seconds } => self.set_skew(*node, *seconds),
            Action::Disk(node, state) => self.set_disk(*node, *state),
            Action::Calm => self.calm(steps),
            // Captured state is for the observer, but a captured vehicle's radio is the adversary's.
            Action::Capture(edge) => self.capture_station(*edge),
            Action::Seize(_) => {}
            Action::Lie { kgc, lies } => self.set_lying(*kgc, *lies),
            Action::Subvert { relay, hostile } => steps.extend(self.set_hostile(*relay, *hostile)),
            Action::Replay { pick, to } => self.replay(*pick, *to),
            Action::Usurp { edge, rounds } => self.usurp(*edge, *rounds),
            Action::Forge { by, what, pick } => self.forge(*by, *what, *pick),
            Action::DoubleTerm { rounds, split, crossing } => self.double_term(*rounds, *split, *crossing),
            command => self.command(command, steps),
        }
    }

    /// Commands of operators and applications.
    fn command(&mut self, action: &Action, steps: &mut Vec<Step>) {
        match action {
            Action::Join(edge) => self.want_in(*edge, steps),
            Action::Leave(edge) => steps.extend(self.want_out(*edge)),
            Action::Certify { edge, fields } => self.certify(*edge, Some(*fields), steps),
            Action::Decertify(edge) => self.certify(*edge, None, steps),
            Action::Evict(edge) => {
                steps.extend(self.submit_to_leaders(&LeaderCommand::Evict(edge_name(*edge)), "evict"));
            }
            Action::Rekey => steps.extend(self.submit_to_leaders(&LeaderCommand::Rekey, "re-key")),
            Action::RenewKem(edge) => {
                let command = LeaderCommand::RenewKem(edge.map(edge_name));
                steps.extend(self.submit_to_leaders(&command, "renew κ"));
            }
            Action::Revoke(edge) => {
                let serial = self.fleet.token(NodeId::Edge(*edge)).token.statement.id;
                let command = KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]);
                steps.extend(self.submit_to_kgcs(&Either::Left(command), "revoke"));
                // A revoked edge gets no credentials either.
                self.certify(*edge, None, steps);
            }
            Action::Talk { node, number, signed } => {
                let channel = Name::new(CHANNEL).expect("a plain name");
                let (data, signed) = (number.to_be_bytes().to_vec(), *signed);
                steps.extend(match node {
                    NodeId::Kgc(_) | NodeId::Relay(_) => None,
                    NodeId::Edge(edge) => {
                        self.submit_to_edge(*edge, EdgeCommand::Send { channel, data, signed }, "talk")
                    }
                    NodeId::Leader(ordinal) => {
                        self.submit_to_leader(*ordinal, LeaderCommand::Send { channel, data }, "talk")
                    }
                });
            }
            Action::Order(number) => steps.extend(self.order(*number)),
            Action::Approve(kgc) => {
                // The operator's approval is durable, whether or not the KGC is on.
                self.approved.insert(*kgc);
                let command = Either::Right(ReleaseCommand::Approval(self.fleet.approval()));
                steps.extend(self.step_kgc(*kgc, Stimulus::Command(command), "approve phase 2"));
            }
            _ => {}
        }
    }

    /// The leader that leads hands on an order that waits for the second phase.
    fn order(&mut self, number: u32) -> Option<Step> {
        let leading = (0..self.nodes.leaders)
            .filter_map(|ordinal| Some((self.leader(ordinal)?.status().epoch?, ordinal)))
            .max();
        let data = self.fleet.order(number)?;
        let channel = Name::new(conditions::CHANNEL).expect("a plain name");
        self.submit_to_leader(leading?.1, LeaderCommand::Send { channel, data }, "hand on an order")
    }

    fn submit_to_kgcs(&mut self, command: &KgcNodeCommand, label: &'static str) -> Vec<Step> {
        let kgcs = 1..=self.nodes.kgcs;
        kgcs.filter_map(|id| self.step_kgc(id, Stimulus::Command(command.clone()), label)).collect()
    }

    fn submit_to_leaders(&mut self, command: &LeaderCommand, label: &'static str) -> Vec<Step> {
        (0..self.nodes.leaders)
            .filter_map(|ordinal| self.submit_to_leader(ordinal, command.clone(), label))
            .collect()
    }

    pub(crate) fn submit_to_leader(
        &mut self,
        ordinal: u16,
        command: impl Into<AdmittingLeaderCommand>,
        label: &'static str,
    ) -> Option<Step> {
        self.step_leader(ordinal, Stimulus::Command(Either::Left(command.into())), label)
    }

    pub(crate) fn submit_to_edge(
        &mut self,
        edge: u32,
        command: EdgeCommand,
        label: &'static str,
    ) -> Option<Step> {
        self.step_edge(edge, Stimulus::Command(Either::Left(command)), label)
    }
}
