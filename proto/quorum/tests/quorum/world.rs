//! Members of a quorum on the testbed, and what travels between them: late, twice, in another order, or not
//! at all.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{KgcId, Name, Ristretto255};
use quiver_machine::Route;
use quiver_message::quorum::QuorumMessage;
use quiver_quorum::PublicShares;
use quiver_quorum_node::{
    Ibe, IbeStatements, QuorumCommand, QuorumConfig, QuorumEvent, QuorumMembership, QuorumNode, QuorumRecord,
};
pub(crate) use quiver_testbed::EPOCH_START as START;
use quiver_testbed::{LinkFaults, Net, NodeSet, Partition, TestNode, deref_to_net};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type S = Ristretto255;
pub(crate) type Node = QuorumNode<S>;

pub(crate) const VALIDITY: u64 = 86_400;
/// Least delay of every message.
const DELAY: Duration = Duration::from_millis(10);

/// A message from one member to another.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from: KgcId,
    pub(crate) to: KgcId,
    pub(crate) message: QuorumMessage,
}

/// An attacker that changes messages, or sends others.
pub(crate) type Tamper = Box<dyn FnMut(Packet) -> Vec<Packet>>;

pub(crate) struct World {
    net: Net<KgcId>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) membership: QuorumMembership,
    /// Commands that operators repeat to members that were down.
    wanted: Option<QuorumCommand>,
}

deref_to_net!(World, KgcId);

fn encode_shares(public: &PublicShares<Ibe>) -> Vec<u8> {
    public.encode()
}

impl World {
    /// n members, t of which act, all connected.
    pub(crate) fn new(seed: u64, n: u16, t: u16) -> Self {
        let identities = (1..=n).map(|id| format!("transport identity of {id}").into_bytes()).collect();
        let membership = QuorumMembership::new::<S>(Name::new("alps").unwrap(), t, identities).unwrap();
        let rng = ChaCha20Rng::seed_from_u64(seed);
        let mut world = Self { net: Net::new(seed), rng, membership, wanted: None };
        world.skip(Duration::from_secs(100));
        world.set_faults(0, 0, 0);
        for id in 1..=n {
            world.net.add::<Node>(id, Vec::new());
        }
        (1..=n).for_each(|id| world.start(id));
        world
    }

    /// Sets how many of 256 messages are lost, how many come twice, and by how many milliseconds at most they
    /// are late.
    pub(crate) fn set_faults(&mut self, lost: u8, twice: u8, late: u64) {
        let (loss, duplicate) = (f64::from(lost) / 256.0, f64::from(twice) / 256.0);
        let (delay, jitter) = (DELAY, Duration::from_millis(late));
        self.network.set_faults(LinkFaults { delay, jitter, loss, duplicate, ..LinkFaults::INSTANT });
    }

    /// Separates these members from that one.
    pub(crate) fn part(&mut self, one: &[KgcId], other: KgcId) {
        let partition = Partition::both_ways(NodeSet::only(one.iter().copied()), NodeSet::only([other]));
        self.network.part(partition);
    }

    pub(crate) fn config(&self, id: KgcId) -> QuorumConfig {
        QuorumConfig {
            membership: self.membership.clone(),
            id,
            revocation_validity: VALIDITY,
            ibe_statements: Some(IbeStatements {
                scheme: "bf-fullident-bls12381",
                parameters: encode_shares,
            }),
        }
    }

    /// A member, with its events and records.
    pub(crate) fn member(&self, id: KgcId) -> &TestNode<Node> {
        self.net.node(id)
    }

    pub(crate) fn member_mut(&mut self, id: KgcId) -> &mut TestNode<Node> {
        self.net.node_mut(id)
    }

    pub(crate) fn node(&self, id: KgcId) -> &Node {
        self.machine(id)
    }

    pub(crate) fn events(&self, id: KgcId) -> &[QuorumEvent] {
        &self.member(id).events
    }

    /// A member's records: the newest of each kind counts.
    pub(crate) fn stored(&self, id: KgcId) -> BTreeMap<u8, QuorumRecord> {
        self.member(id).records().iter().map(|record| (kind(record), record.clone())).collect()
    }

    /// Starts a member from its records, and connects it with all that are up.
    pub(crate) fn start(&mut self, id: KgcId) {
        let records = self.stored(id).into_values();
        let node = Node::new(self.config(id), records).expect("what was stored is taken back");
        self.net.start(id, node);
        for other in self.ids() {
            if other != id {
                self.link(other, id, (Route::Member(id), Route::Member(other)));
            }
        }
    }

    pub(crate) fn command(&mut self, id: KgcId, command: QuorumCommand) {
        self.net.command::<Node>(id, command);
    }

    pub(crate) fn command_all(&mut self, command: &QuorumCommand) {
        self.ids().into_iter().for_each(|id| self.command(id, command.clone()));
    }

    /// Packets that were sent, all of them.
    pub(crate) fn sent(&self) -> Vec<Packet> {
        self.recorded.iter().map(|packet| decode(self.membership.fingerprint(), packet)).collect()
    }

    pub(crate) fn set_tamper(&mut self, mut tamper: Tamper) {
        let quorum = *self.membership.fingerprint();
        self.tamper = Some(Box::new(move |packet| {
            let via = packet.via;
            let packets = tamper(decode(&quorum, &packet)).into_iter();
            let encode = |Packet { from, to, message }: Packet| {
                let bytes = message.encode(&quorum);
                quiver_testbed::Packet { from, to, via, bytes }
            };
            packets.map(encode).collect()
        }));
    }

    pub(crate) fn inject(&mut self, packet: &Packet) {
        let bytes = packet.message.encode(self.membership.fingerprint());
        self.net.inject(packet.from, packet.to, &bytes);
    }

    pub(crate) fn all_alive(&self) -> bool {
        self.ids().into_iter().all(|id| self.alive(id))
    }

    /// Lets time pass until this holds, at most twenty minutes. A member that is down comes up again after a
    /// second.
    pub(crate) fn until(&mut self, what: &str, reached: impl Fn(&Self) -> bool) {
        let end = self.time() + Duration::from_secs(1200);
        while !reached(self) {
            assert!(self.time() < end, "{what}: {}", self.views());
            self.run_for(Duration::from_millis(500));
            for id in self.ids() {
                if !self.alive(id) {
                    self.run_for(Duration::from_secs(1));
                    self.start(id);
                    // An operator whose command was lost in a crash gives it again.
                    if let Some(command) = self.wanted.clone() {
                        self.command(id, command);
                    }
                }
            }
        }
    }

    fn views(&self) -> String {
        let up = self.ids().into_iter().filter_map(|id| self.member(id).machine());
        up.map(|node| format!("{:?}\n", node.view())).collect()
    }

    /// Generates both keys.
    pub(crate) fn generate(&mut self) {
        self.wanted = Some(QuorumCommand::Generate);
        self.command_all(&QuorumCommand::Generate);
        self.until("keys are made", |world| world.all_hold(0));
        self.wanted = None;
    }

    /// Returns true if all members have shares of this version in force.
    pub(crate) fn all_hold(&self, version: u32) -> bool {
        let holds = |node: &Node| node.keys().is_some_and(|keys| keys.version() == version);
        self.ids().into_iter().all(|id| self.member(id).machine().is_some_and(holds))
    }
}

fn decode(quorum: &[u8; 32], packet: &quiver_testbed::Packet<KgcId>) -> Packet {
    let message = QuorumMessage::decode(quorum, &packet.bytes).expect("what is sent is valid");
    Packet { from: packet.from, to: packet.to, message }
}

/// Kind of a record: the newest of each counts.
fn kind(record: &QuorumRecord) -> u8 {
    match record {
        QuorumRecord::Keys(_) => 0,
        QuorumRecord::Ceremony(_) => 1,
        QuorumRecord::Statements(_) => 2,
        QuorumRecord::RevocationList { .. } => 3,
        QuorumRecord::QuorumStatement(_) => 4,
    }
}
