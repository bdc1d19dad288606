//! A star whose drones join by a policy, without their names.

use std::time::Duration;

use quiver_abke::Authority;
use quiver_admission::certifying::CertificationTerms;
use quiver_admission::gate::GateTiming;
use quiver_admission::{
    AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, AnonymousConfig, AnonymousEdge,
    AnonymousEvent, Demand, PolicyStatement, SignedPolicy,
};
use quiver_ainq::{Deployment, MasterSecret, SecretScalar, VerifiedAuthority};
use quiver_crypto::Secret;
use quiver_garble::policy::Schema;
use quiver_group::edge::EdgeTiming;
use quiver_group::{EdgeCommand, EdgeEvent, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_testbed::{CompactRng, EPOCH_START, LinkFaults, name};
use rand_chacha::ChaCha20Rng;

use super::{Plan, S, World};
use crate::recording::{Certification, GROUP, Node, Recording, Step};

/// Length of a period of credentials, in which a run ends.
const PERIOD: Duration = Duration::from_secs(100 * 86_400);

/// Drones join by a policy, keys are renewed, members send, ask, leave and are evicted, and the leader
/// restarts.
pub(super) fn record(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    let mut world = World::begin(seed, faults, plan);
    // Under loss a run may end before its drone is admitted, and the next begins after a while.
    world.run(240);
    for _ in 0..2 {
        world.lead("leader", LeaderCommand::Rekey);
        world.run(20);
    }
    world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"up".to_vec(), signed: false });
    world.lead("leader", LeaderCommand::Send { channel: name("orders"), data: b"home".to_vec() });
    world.run(5);
    world.edge("edge-0", EdgeCommand::CatchUp);
    world.run(5);
    world.edge("edge-2", EdgeCommand::Leave);
    world.run(30);
    // One that is a member by now.
    let slot_of = |edge: &Node| world.net.machine::<AnonymousEdge<S>>(edge).status().slot;
    let evicted = ["edge-3", "edge-1", "edge-0"].into_iter().find_map(|edge| Some((edge, slot_of(&edge)?)));
    // Under loss nobody may be one.
    if let Some((evicted, slot)) = evicted {
        world.steps.push(Step::Evicts(evicted));
        world.lead("leader", LeaderCommand::EvictSlot(slot));
    }
    world.run(30);
    // Its members are forgotten, and apply again.
    for edge in ["edge-0", "edge-1"] {
        world.net.stop(edge);
    }
    world.restart_leader();
    for edge in ["edge-0", "edge-1"] {
        world.start_edge(edge);
    }
    world.run(60);
    world.lead("leader", LeaderCommand::Rekey);
    world.run(20);
    world.recording()
}

fn terms() -> CertificationTerms {
    CertificationTerms::new(Schema::parse("medic: bool, pilot: bool").unwrap(), PERIOD).unwrap()
}

/// The authority that certifies fields of drones.
pub(super) fn authority(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    rng: &mut ChaCha20Rng,
) -> VerifiedAuthority<S> {
    let point = SecretScalar::generate(rng).public();
    let statement = terms().statement(name("skills"), point).unwrap();
    master.sign_authority(deployment, statement, rng).unwrap().verify(deployment).unwrap()
}

impl World {
    /// A leader that admits whoever shows that it is a medic and a pilot, and the slot keys of the period.
    pub(super) fn start_admitting(
        &mut self,
        node: Node,
        config: LeaderConfig<S>,
        authority: VerifiedAuthority<S>,
    ) {
        let policy = PolicyStatement {
            authority: *authority.fingerprint(),
            group: name(GROUP),
            name: name("medics"),
            not_after: EPOCH_START + 2 * PERIOD.as_secs(),
            text: "medic and pilot".into(),
        };
        let policy = SignedPolicy::sign(&self.master, &self.deployment, policy, &mut self.rng).unwrap();
        let policy = policy.verify(&self.deployment).unwrap();
        let demand = Demand { policy, authority, timing: GateTiming { workers: 0, ..GateTiming::default() } };
        let leader = Leader::new(config, self.records::<AdmittingLeader<S>>(node)).unwrap();
        let leader = AdmittingLeader::from(leader).demanding(demand, self.net.clock().unix).unwrap();
        self.net.start(node, leader);
        let keys = self.certifier().key().clone();
        self.net.command::<AdmittingLeader<S>>(node, AdmittingLeaderCommand::SlotKeys(keys));
    }

    /// The keys of the period, with which drones are certified.
    fn certifier(&self) -> Authority {
        let period = terms().period_at(self.net.clock().unix);
        Authority::derive(&Secret::new([9; 32]), period, terms().schema().bits()).unwrap()
    }

    /// The certification that the rules are told of.
    pub(super) fn certification(&self, authority: VerifiedAuthority<S>) -> Certification {
        Certification { authority, slots: [self.certifier().key().fingerprint()].into() }
    }

    /// An edge that is a medic and a pilot, and shows no name.
    pub(super) fn start_anonymous(&mut self, edge: Node, authority: VerifiedAuthority<S>) {
        let attributes = terms().schema().encode(&[("medic", 1), ("pilot", 1)]).unwrap();
        let credential = self.certifier().certify(&attributes, &mut self.rng).unwrap();
        let config = AnonymousConfig {
            deployment: self.deployment.clone(),
            group: name(GROUP),
            authority,
            credential,
            period: terms().period_at(self.net.clock().unix),
            revocations: None,
            most: 8,
            patience: Duration::from_secs(120),
            timing: EdgeTiming::default(),
            kem: self.kem(),
        };
        let state = self.records::<AnonymousEdge<S>>(edge);
        self.net.start(edge, AnonymousEdge::<S>::new(config, state.last()).unwrap());
    }

    pub(super) fn command_anonymous(&mut self, edge: Node, command: EdgeCommand) {
        self.net.command::<AnonymousEdge<S>>(edge, command);
    }

    pub(super) fn command_admitting(&mut self, leader: Node, command: LeaderCommand) {
        self.net.command::<AdmittingLeader<S>>(leader, command.into());
    }

    pub(super) fn records_of_admitting(&self, leader: Node) -> Vec<LeaderRecord> {
        self.records::<AdmittingLeader<S>>(leader)
    }

    pub(super) fn new_events_of_admitting(&mut self, leader: Node) -> Vec<LeaderEvent> {
        let of_leader = |event| match event {
            AdmittingLeaderEvent::Leader(event) => Some(event),
            AdmittingLeaderEvent::Denied { .. } => None,
        };
        self.new_events::<AdmittingLeader<S>>(leader).into_iter().filter_map(of_leader).collect()
    }

    pub(super) fn new_events_of_anonymous(&mut self, edge: Node) -> Vec<EdgeEvent> {
        let of_edge = |event| match event {
            AnonymousEvent::Edge(event) => Some(event),
            _ => None,
        };
        self.new_events::<AnonymousEdge<S>>(edge).into_iter().filter_map(of_edge).collect()
    }

    /// The random numbers that an edge draws next.
    pub(super) fn anonymous_generator(&self, edge: Node) -> CompactRng {
        self.net.node::<AnonymousEdge<S>>(edge).generator()
    }
}
