//! Carries out scheduled actions: what operators, applications and faults do to nodes.

use std::time::Duration;

use quiver_ainq::{Name, Revoked, Suite};
use quiver_enrolment::KgcCommand;
use quiver_group::leader::RestoreError;
use quiver_group::{EdgeCommand, Leader, LeaderCommand};
use quiver_machine::Either;

use super::kernel::WorldKernel;
use super::{Acted, ScheduledAction, StandInStart, World};
use crate::feature_part::AnyFeatureCommand;
use crate::features::leader_node;
use crate::fleet::edge_name;
use crate::rng_stream::{self, RngStream};
use crate::step::Sabotage;
use crate::{Action, Cause, DiskState, Effect, NodeId, Partition, Step};

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
        self.kernel.plan(after, ScheduledAction::Act(Box::new(action)));
    }

    /// Plans to switch all nodes on now: the KGCs first, then the leaders, then the edges.
    pub fn start_everyone(&mut self) {
        let (index, count) = (self.kernel.index(), self.kernel.nodes.count());
        for node in (0..count).map(|place| index.node(place)) {
            self.schedule(self.time(), Action::Start(node));
        }
    }

    /// Carries out an scheduled action. Gives the steps taken at once, and the action if it was one.
    pub(super) fn run_scheduled(&mut self, number: u32) -> (Vec<Step>, Option<Action>) {
        let mut steps = Vec::new();
        match self.kernel.timeline.take_scheduled(number) {
            None => {}
            Some(ScheduledAction::Connect(dialler, hub)) => {
                self.kernel.on_wire(|wire, context| wire.connect(context, dialler, hub));
            }
            Some(ScheduledAction::Sever(a, b)) => {
                self.kernel.on_wire(|wire, context| wire.sever(context, a, b));
            }
            Some(ScheduledAction::Return(node)) => steps.extend(self.start(node)),
            Some(ScheduledAction::Feature(planned)) => self.run_planned(&planned, &mut steps),
            Some(ScheduledAction::Act(action)) => {
                self.act(&action, &mut steps);
                return (steps, Some(*action));
            }
        }
        (steps, None)
    }

    /// Does what a feature left to be done after an action. Returns whether the action is over.
    fn finish(&mut self, acted: Acted, steps: &mut Vec<Step>) -> bool {
        self.tell_stopped();
        if let Acted::Start(node) = acted {
            steps.extend(self.start(node));
        }
        acted != Acted::Pass
    }

    /// Lets the feature that has planned something carry it out.
    fn run_planned(&mut self, planned: &AnyFeatureCommand, steps: &mut Vec<Step>) {
        for place in 0..self.features.all().len() {
            let acted = match self.features.all().get_mut(place) {
                Some(feature) => feature.run_planned(&mut self.kernel, planned, steps),
                None => Acted::Pass,
            };
            if self.finish(acted, steps) {
                return;
            }
        }
    }

    fn act(&mut self, action: &Action, steps: &mut Vec<Step>) {
        for place in 0..self.features.all().len() {
            let acted = match self.features.all().get_mut(place) {
                Some(feature) => feature.act(&mut self.kernel, action, steps),
                None => Acted::Pass,
            };
            if self.finish(acted, steps) {
                return;
            }
        }
        let kernel = &mut self.kernel;
        match action {
            Action::Start(node) => steps.extend(self.start(*node)),
            Action::Stop(node) => {
                kernel.stop(*node);
                self.tell_stopped();
            }
            Action::Crash { node, after, down_for } => kernel.crash_after(*node, *after, *down_for),
            Action::Links(faults) => kernel.wire.network.set_faults(*faults),
            Action::LinksOf(node, faults) => {
                kernel.wire.network.set_faults_of(*node, *faults);
                if faults.is_some_and(|faults| faults.loss >= 1.0) {
                    let island = Partition::island([*node]);
                    kernel.on_wire(|wire, context| wire.plan_severing(context, &island));
                }
            }
            Action::Part(partition) => {
                kernel.wire.network.part(partition.clone());
                kernel.on_wire(|wire, context| wire.plan_severing(context, partition));
            }
            Action::Radio(setup) => {
                if let Some(air) = &mut kernel.wire.air {
                    air.retune((**setup).clone());
                }
            }
            Action::Heal => kernel.wire.network.heal(),
            Action::Skew { node, seconds } => {
                kernel.nodes.inject(*node, |faults| *faults.skew = *seconds);
            }
            Action::Disk(node, state) => kernel.nodes.inject(*node, |faults| *faults.disk = *state),
            Action::Calm => self.calm(steps),
            command => self.command(command, steps),
        }
    }

    /// Commands of operators and applications.
    fn command(&mut self, action: &Action, steps: &mut Vec<Step>) {
        let kernel = &mut self.kernel;
        match action {
            Action::Join(edge) => {
                let group = kernel.fleet().group().clone();
                steps.extend(kernel.submit_to_edge(*edge, EdgeCommand::Join(group), "join"));
            }
            Action::Leave(edge) => {
                steps.extend(kernel.submit_to_edge(*edge, EdgeCommand::Leave, "leave"));
            }
            Action::Evict(edge) => {
                steps.extend(kernel.submit_to_leaders(&LeaderCommand::Evict(edge_name(*edge)), "evict"));
            }
            Action::Rekey => steps.extend(kernel.submit_to_leaders(&LeaderCommand::Rekey, "re-key")),
            Action::RenewKem(edge) => {
                let command = LeaderCommand::RenewKem(edge.map(edge_name));
                steps.extend(kernel.submit_to_leaders(&command, "renew κ"));
            }
            Action::Revoke(edge) => {
                let serial = kernel.fleet().token(NodeId::Edge(*edge)).token.statement.id;
                let command = KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]);
                steps.extend(kernel.submit_to_kgcs(&Either::Left(command), "revoke"));
            }
            Action::Talk { node, number, signed } => {
                let channel = Name::new(CHANNEL).expect("a plain name");
                let (data, signed) = (number.to_be_bytes().to_vec(), *signed);
                steps.extend(match node {
                    NodeId::Kgc(_) | NodeId::Relay(_) => None,
                    NodeId::Edge(edge) => {
                        kernel.submit_to_edge(*edge, EdgeCommand::Send { channel, data, signed }, "talk")
                    }
                    NodeId::Leader(ordinal) => {
                        kernel.submit_to_leader(*ordinal, LeaderCommand::Send { channel, data }, "talk")
                    }
                });
            }
            // What the adversary captures or seizes is for the observer.
            _ => {}
        }
    }

    /// Ends all faults, and switches on every node that is off.
    fn calm(&mut self, steps: &mut Vec<Step>) {
        let wire = &mut self.kernel.wire;
        wire.network.heal();
        wire.network.calm();
        if let Some(air) = &mut wire.air {
            air.calm();
        }
        self.kernel.returns.clear();
        let mut starting = Vec::new();
        for feature in self.features.all() {
            starting.extend(feature.calm(&mut self.kernel));
        }
        self.tell_stopped();
        for node in starting {
            steps.extend(self.start(node));
        }
        let (index, count) = (self.kernel.index(), self.kernel.nodes.count());
        for node in (0..count).map(|place| index.node(place)) {
            self.kernel.nodes.inject(node, |faults| {
                *faults.crash_after = None;
                *faults.skew = 0;
                *faults.disk = DiskState::Sound;
            });
            steps.extend(self.start(node));
        }
    }

    /// Switches a node on with its durable state. Machines may act before their first input.
    fn start(&mut self, node: NodeId) -> Option<Step> {
        if self.alive(node) {
            return None;
        }
        let at = self.time();
        let broken = self.restore(node)?.is_err().then(|| Step {
            at,
            node,
            cause: Cause::Start,
            effects: vec![Effect::Broken],
            cpu: Duration::ZERO,
            digest: None,
            account: None,
        });
        let WorldKernel { nodes, wire, .. } = &mut self.kernel;
        // Only the rank that has a drone knows whether its state restores it.
        let broken = match node {
            NodeId::Edge(number) => nodes.at_home(number, wire.air.as_ref(), |_| broken),
            _ => broken,
        };
        if broken.is_some() {
            return broken;
        }
        self.kernel.on_wire(|wire, context| wire.plan_connections(context, node));
        for feature in self.features.all() {
            feature.on_start(&mut self.kernel, node);
        }
        let WorldKernel { nodes, timeline, wire, .. } = &mut self.kernel;
        nodes.step_start(node, timeline.now(), wire.air.as_ref())
    }

    /// Gives a node that is switched on its machine, restored from its records, and fails if they do not restore it.
    /// `None` if the node stays off.
    fn restore(&mut self, node: NodeId) -> Option<Result<(), RestoreError>> {
        let Self { kernel, features } = self;
        let (unix, kem, fleet) = (kernel.clock(node).unix, kernel.kem(), kernel.shared_fleet());
        let (seed, sabotage, now) = (kernel.setup.seed, kernel.setup.sabotage, kernel.timeline.now());
        let rng = |life| match sabotage {
            Sabotage::SameDice => rng_stream::compact(seed, RngStream::Node(node, 1)),
            _ => rng_stream::compact(seed, RngStream::Node(node, life)),
        };
        Some(match node {
            NodeId::Kgc(id) => {
                let sim_node = kernel.nodes.kgc_node(id)?;
                let life = sim_node.life;
                let machine = fleet.kgc_node(id, life, &sim_node.disk.records).map(|mut machine| {
                    for feature in features.all() {
                        feature.extend_kgc(kernel, id, &mut machine);
                    }
                    machine
                });
                let sim_node = kernel.nodes.kgc_node_mut(id)?;
                machine.map(|machine| sim_node.power_on(now, machine, rng(life + 1)))
            }
            NodeId::Leader(ordinal) => {
                let config = fleet.leader(ordinal, kernel.setup.shared_medium);
                let sim_node = kernel.nodes.leader_node_mut(ordinal)?;
                let records = sim_node.disk.records.iter().cloned().map(Either::into_left);
                let machine = Leader::new(config, records);
                let machine = machine.map(|machine| leader_node(&fleet, machine.with_kem(kem), unix));
                machine.map(|machine| sim_node.power_on(now, machine, rng(sim_node.life + 1)))
            }
            NodeId::Relay(number) => {
                let machine = features.relays.machine(kernel, number);
                let sim_node = kernel.nodes.relay_node_mut(number)?;
                sim_node.power_on(now, machine, rng(sim_node.life + 1));
                Ok(())
            }
            NodeId::Edge(number) => {
                let start = features.stand_in(kernel, number);
                let here = kernel.has(number);
                let sim_node = kernel.nodes.edge_node_mut(number)?;
                let machine = match start {
                    StandInStart::Off => return None,
                    StandInStart::Machine(machine) => machine.map(|machine| *machine),
                    StandInStart::Named if !here => return Some(Ok(())),
                    StandInStart::Named => {
                        let mut records = sim_node.disk.records.iter().rev();
                        if sabotage == Sabotage::StaleState && records.len() > 1 {
                            records.next();
                        }
                        fleet.drone(number, records.next(), kem)
                    }
                };
                machine.map(|machine| {
                    if here {
                        sim_node.power_on(now, machine, rng(sim_node.life + 1));
                    }
                })
            }
        })
    }
}
