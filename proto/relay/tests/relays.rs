//! A group whose drones are behind relays, on the testbed: real leader, edges and KGC. Of the group's messages the
//! testbed makes broadcasts, which relays pass on in the driver.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, StrategyKind,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderCommand, LeaderConfig};
use quiver_machine::{Route, Via};
use quiver_relay::{Relay, RelayEvent, RelayLimits, RelayTiming, WithRelays};
use quiver_testbed::{Net, copy_token, deref_to_net, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

type S = Ristretto255;
type Packet = quiver_testbed::Packet<Node>;
type LeaderNode = WithRelays<Leader<S>>;

const GROUP: &str = "alpha";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Kgc,
    Leader,
    Relay(usize),
    Edge(usize),
}

struct World {
    net: Net<Node>,
    deployment: Deployment<S>,
    leader_token: IssuedToken<S>,
    tokens: Vec<IssuedToken<S>>,
    relays: usize,
    /// Edges that were evicted.
    out: BTreeSet<usize>,
}

deref_to_net!(World, Node);

impl World {
    /// Edges that know two of the relays, the first of which they use.
    fn new(seed: u64, relays: usize, edges: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let role = Role::Leader { group: name(GROUP), ordinal: 0 };
        let mut issue = |grant| operator.issue(&deployment, grant, &mut rng).unwrap();
        let leader_token = issue(token_grant("leader", role, GROUP));
        let tokens =
            (0..edges).map(|edge| issue(token_grant(&format!("edge-{edge}"), Role::Edge, GROUP))).collect();
        let keys = vec![operator.public()];
        let config = KgcConfig::single(deployment.clone(), master, keys, Secret::random(&mut rng));
        let net = Net::new(seed);
        let mut world = Self { net, deployment, leader_token, tokens, relays, out: BTreeSet::new() };
        world.skip(Duration::from_secs(100));
        world.start(Node::Kgc, Kgc::<S>::new(config, []).unwrap());
        world.start_leader();
        for relay in 0..relays {
            world.subscribe(Node::Relay(relay));
            world.start(Node::Relay(relay), Relay::new(1000, RelayTiming::default()));
        }
        world.tamper = Some(Box::new(move |packet| publish(packet, relays, edges)));
        for edge in 0..edges {
            let config = EdgeConfig::new(
                world.deployment.clone(),
                Some(name(GROUP)),
                Some(copy_token(&world.tokens[edge])),
            );
            world.subscribe(Node::Edge(edge));
            world.start(Node::Edge(edge), Edge::<S>::new(config, None).unwrap());
        }
        world.dial();
        world
    }

    fn start_leader(&mut self) {
        let records = if self.has(Node::Leader) {
            self.node::<LeaderNode>(Node::Leader).records().to_vec()
        } else {
            vec![]
        };
        let timing = LeaderTiming { validity: Duration::from_secs(10_000), ..LeaderTiming::default() };
        let token = Some(copy_token(&self.leader_token));
        let config = LeaderConfig {
            max_members: 2000,
            strategy: StrategyKind::Tree,
            timing,
            ..LeaderConfig::new(self.deployment.clone(), name(GROUP), token)
        };
        let leader = Leader::new(config, records).unwrap();
        self.subscribe(Node::Leader);
        self.start(Node::Leader, WithRelays::new(leader, RelayLimits::default()));
    }

    /// Dials again for each node that is not connected, as drivers do.
    fn dial(&mut self) {
        self.connect_if_on(Node::Leader, Node::Kgc, (Route::Kgc, Route::Inbound));
        for relay in 0..self.relays {
            self.connect_if_on(Node::Relay(relay), Node::Leader, (Route::Leader, Route::Relay));
        }
        for edge in 0..self.tokens.len() {
            self.connect_if_on(Node::Edge(edge), Node::Kgc, (Route::Kgc, Route::Inbound));
            for relay in [edge, edge + 1] {
                let relay = Node::Relay(relay % self.relays);
                self.connect_if_on(Node::Edge(edge), relay, (Route::Leader, Route::Inbound));
            }
        }
    }

    fn connect_if_on(&mut self, dialler: Node, listener: Node, routes: (Route, Route)) {
        if self.alive(dialler) && self.alive(listener) {
            self.link(dialler, listener, routes);
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.time() + time;
        while self.time() < end {
            self.dial();
            self.run_for(Duration::from_millis(500));
        }
    }

    fn leader(&self) -> &LeaderNode {
        self.machine(Node::Leader)
    }

    fn command(&mut self, command: LeaderCommand) {
        self.net.command::<LeaderNode>(Node::Leader, command);
    }

    fn evict(&mut self, edges: impl IntoIterator<Item = usize>) {
        for edge in edges {
            self.out.insert(edge);
            self.command(LeaderCommand::Evict(name(&format!("edge-{edge}"))));
        }
    }

    fn key(&self, edge: usize) -> Option<Vec<u8>> {
        Some(self.machine::<Edge<S>>(Node::Edge(edge)).export(&name("test"))?.expose().to_vec())
    }

    /// The edges that do not have what they are to have: members the leader's key, others none.
    fn lagging(&self) -> Vec<usize> {
        let key = self.leader().export(&name("test")).map(|key| key.expose().to_vec());
        let is_right = |edge: &usize| {
            let own = self.key(*edge);
            if self.out.contains(edge) { own.is_none() || own != key } else { key.is_some() && own == key }
        };
        (0..self.tokens.len()).filter(|edge| !is_right(edge)).collect()
    }

    fn converge(&mut self, what: &str) {
        for _ in 0..600 {
            if self.lagging().is_empty() {
                return;
            }
            self.pass(Duration::from_millis(500));
        }
        panic!("{what}: {:?} lag behind", self.lagging());
    }

    /// Bytes that were sent between two kinds of nodes since the recording was cleared.
    fn bytes(&self, is: impl Fn(&Node, &Node) -> bool) -> usize {
        let sent = self.recorded.iter().filter(|packet| packet.via == Via::Peer);
        sent.filter(|packet| is(&packet.from, &packet.to)).map(|packet| packet.bytes.len()).sum()
    }
}

/// A group message goes on from a relay to its other drones, and from a drone to the leader and all others: what drivers
/// of relays and leaders do.
fn publish(packet: Packet, relays: usize, edges: usize) -> Vec<Packet> {
    let (Via::Group, from, Node::Relay(relay)) = (packet.via, packet.from, packet.to) else {
        return vec![packet];
    };
    let reached =
        |relay: usize| (0..edges).filter(move |edge| [*edge % relays, (edge + 1) % relays].contains(&relay));
    let relayed = match from {
        Node::Leader => vec![relay],
        _ => (0..relays).collect(),
    };
    let targets =
        relayed.into_iter().flat_map(|relay| reached(relay).map(move |edge| (relay, Node::Edge(edge))));
    let up = (from != Node::Leader).then_some((relay, Node::Leader));
    let targets = targets.filter(|(_, edge)| *edge != from).chain(up);
    targets.map(|(relay, to)| Packet { from: Node::Relay(relay), to, ..packet.clone() }).collect()
}

fn grouped(seed: u64, relays: usize, edges: usize) -> World {
    let mut world = World::new(seed, relays, edges);
    world.converge("forming");
    world
}

#[test]
fn drones_behind_relays_join_follow_and_are_put_out_one_by_one() {
    let mut world = grouped(1, 2, 12);
    assert_eq!(world.leader().relayed().0, 2);
    world.command(LeaderCommand::Rekey);
    world.converge("a re-key");
    world.evict([3]);
    world.converge("an eviction");
    world.pass(Duration::from_secs(30));
    let behind = world.leader().status().members;
    assert_eq!(behind, 11);
    assert!(world.lagging().is_empty());
}

#[test]
fn leader_sends_each_relay_one_copy_of_a_mass_eviction() {
    let mut world = grouped(2, 4, 200);
    // The first eviction of a term makes the keys of the tree.
    world.evict([5]);
    world.converge("one is out");
    world.pass(Duration::from_secs(5));
    world.recorded.clear();
    for edge in (0..200).step_by(10) {
        world.out.insert(edge);
        world.net.command::<Edge<S>>(Node::Edge(edge), EdgeCommand::Leave);
    }
    world.converge("twenty have left");
    let down = world.bytes(|from, to| *from == Node::Leader && matches!(to, Node::Relay(_)));
    let cut = world.bytes(|from, to| matches!((from, to), (Node::Relay(_), Node::Edge(_))));
    assert!(cut > 180 * 300, "each was sent its part: {cut}");
    assert!(down * 8 < cut, "the leader sent {down}, its relays {cut}");
    // Sooner than they would have asked again.
    world.pass(Duration::from_secs(1));
    assert!((0..200).step_by(10).all(|edge| world.key(edge).is_none()), "those that left know it");
}

#[test]
fn relay_that_dies_in_a_mass_eviction_loses_nobody() {
    for (seed, after) in [(3, 1), (4, 20), (5, 60), (6, 150)] {
        let mut world = grouped(seed, 3, 60);
        world.evict((0..60).step_by(6));
        world.crash_after(Node::Relay(1), after);
        world.converge("a relay is gone");
        if !world.alive(Node::Relay(1)) {
            world.start(Node::Relay(1), Relay::new(1000, RelayTiming::default()));
        }
        world.command(LeaderCommand::Rekey);
        world.converge("it is back");
    }
}

#[test]
fn leader_that_restarts_finds_its_drones_again() {
    let mut world = grouped(7, 2, 20);
    world.stop(Node::Leader);
    world.pass(Duration::from_secs(3));
    let gone = world.node::<Relay>(Node::Relay(0)).events.clone();
    assert!(
        gone.iter().any(|event| matches!(event, RelayEvent::LeaderLost { drones } if *drones > 0)),
        "{gone:?}"
    );
    world.start_leader();
    world.converge("a restart");
}

/// A relay, or who is on its lines, drops, repeats, alters and delays what it carries.
#[test]
fn lying_relay_delays_and_no_more() {
    for seed in 10..16 {
        let mut world = grouped(seed, 2, 16);
        let mut dice = ChaCha20Rng::seed_from_u64(seed);
        let mut old: Vec<Vec<u8>> = Vec::new();
        world.tamper = Some(Box::new(move |mut packet| {
            if packet.from != Node::Relay(0) && packet.to != Node::Relay(0) {
                return publish(packet, 2, 16);
            }
            old.push(packet.bytes.clone());
            match dice.next_u32() % 8 {
                0 => Vec::new(),
                1 => vec![packet.clone(), packet],
                2 => {
                    let at = dice.next_u32() as usize % packet.bytes.len().max(1);
                    if let Some(byte) = packet.bytes.get_mut(at) {
                        *byte ^= 1 << (dice.next_u32() % 8);
                    }
                    vec![packet]
                }
                3 => {
                    packet.bytes = old[dice.next_u32() as usize % old.len()].clone();
                    vec![packet]
                }
                _ => publish(packet, 2, 16),
            }
        }));
        for round in 0..6 {
            world.command(LeaderCommand::Rekey);
            if round == 3 {
                world.evict([seed as usize % 16]);
            }
            world.pass(Duration::from_secs(4));
        }
        world.tamper = Some(Box::new(|packet| publish(packet, 2, 16)));
        world.converge("it is honest again");
        assert_eq!(world.leader().status().members, 15);
    }
}

#[test]
fn jammed_relay_is_left_for_another() {
    let mut world = grouped(20, 2, 10);
    // It hears everybody, and passes nothing on.
    world.tamper = Some(Box::new(|packet| {
        let mut packets = publish(packet, 2, 10);
        packets.retain(|packet| packet.from != Node::Relay(0));
        packets
    }));
    world.command(LeaderCommand::Rekey);
    world.converge("the other relay passes it on");
    world.evict([1]);
    world.converge("an eviction");
}

/// A relay without traffic learns only from unconfirmed probes that its leader is out of reach.
#[test]
fn relay_without_drones_notices_that_it_is_cut_off_and_finds_its_leader_again() {
    let mut world = World::new(21, 1, 0);
    let has_leader = |world: &World| world.machine::<Relay>(Node::Relay(0)).has_leader();
    world.pass(Duration::from_secs(60));
    assert!(has_leader(&world));
    assert_eq!(
        world.node::<Relay>(Node::Relay(0)).events,
        [RelayEvent::LeaderConnected],
        "it stayed connected"
    );
    world.tamper = Some(Box::new(|packet| {
        let between = matches!(
            (packet.from, packet.to),
            (Node::Relay(_), Node::Leader) | (Node::Leader, Node::Relay(_))
        );
        if between { Vec::new() } else { vec![packet] }
    }));
    world.pass(Duration::from_secs(35));
    assert!(!has_leader(&world));
    assert!(world.node::<Relay>(Node::Relay(0)).events.contains(&RelayEvent::LeaderLost { drones: 0 }));
    world.tamper = None;
    world.pass(Duration::from_secs(35));
    assert!(has_leader(&world));
}
