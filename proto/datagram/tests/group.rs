//! Datagrams of a leader and edges as they are: who has the key of the epoch, and from when on not.

use std::time::Duration;

use quiver_ainq::{
    Deployment, EpochKeys, Error, LEADER_SLOT, Label, MasterSecret, OperatorSecretKey, Ristretto255 as S,
    Role, StrategyKind,
};
use quiver_crypto::Secret;
use quiver_datagram::{Config, Datagrams, Event, Payload, Priority};
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderCommand, LeaderConfig};
use quiver_machine::{Offence, Route};
use quiver_testbed::{Net, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const EDGES: [&str; 3] = ["edge-1", "edge-2", "edge-3"];

struct Group {
    net: Net<&'static str>,
    deployment: Deployment<S>,
    rng: ChaCha20Rng,
}

impl Group {
    fn new(strategy: StrategyKind) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (master, operator) =
            (MasterSecret::<S>::generate(&mut rng), OperatorSecretKey::generate(&mut rng));
        let deployment = Deployment::new(name("demo"), master.public());
        let lead = Role::Leader { group: name("alpha"), ordinal: 0 };
        let mut token =
            |drone, role| operator.issue(&deployment, token_grant(drone, role, "alpha"), &mut rng).unwrap();
        let (lead, tokens) = (token("leader", lead), EDGES.map(|edge| token(edge, Role::Edge)));
        let mut net = Net::new(1);
        let cookies = Secret::random(&mut rng);
        let kgc = KgcConfig::single(deployment.clone(), master, vec![operator.public()], cookies);
        net.start("kgc", Kgc::<S>::new(kgc, []).unwrap());
        let leader = LeaderConfig::new(deployment.clone(), name("alpha"), Some(lead));
        net.start("leader", Leader::<S>::new(LeaderConfig { strategy, ..leader }, []).unwrap());
        net.subscribe("leader");
        net.connect("leader", "kgc", Route::Kgc);
        for (edge, token) in EDGES.into_iter().zip(tokens) {
            let config = EdgeConfig::new(deployment.clone(), Some(name("alpha")), Some(token));
            net.start(edge, Edge::<S>::new(config, None).unwrap());
            net.subscribe(edge);
        }
        Self { net, deployment, rng }
    }

    fn joined(strategy: StrategyKind) -> Self {
        let mut group = Self::new(strategy);
        for edge in EDGES {
            assert!(group.keys(edge).is_none(), "a key before it joined");
            group.net.connect(edge, "kgc", Route::Kgc);
            group.net.connect(edge, "leader", Route::Leader);
        }
        group.net.run_for(Duration::from_secs(10));
        group
    }

    fn keys(&self, node: &'static str) -> Option<EpochKeys<S>> {
        let now = self.net.clock_of(node);
        match node {
            "leader" => self.net.machine::<Leader<S>>(node).epoch_keys(now),
            edge => self.net.machine::<Edge<S>>(edge).epoch_keys(now),
        }
    }

    fn digest(&self, node: &'static str) -> Option<[u8; 32]> {
        self.keys(node).map(|keys| keys.digest)
    }

    fn command(&mut self, command: LeaderCommand) {
        self.net.command::<Leader<S>>("leader", command);
        self.net.run_for(Duration::from_secs(3));
    }

    /// A machine with the epoch that a node has.
    fn datagrams(&mut self, node: &'static str) -> Datagrams<S> {
        let mut datagrams = Datagrams::new(Config::default(), self.deployment.clone());
        let keys = self.keys(node).expect("a member");
        datagrams.set_epoch(Duration::ZERO, keys, &mut self.rng);
        datagrams
    }

    /// Answers a node's events; gives what was received.
    fn answer(&mut self, node: &'static str, datagrams: &mut Datagrams<S>) -> Vec<Vec<u8>> {
        let (mut received, now) = (Vec::new(), self.net.clock_of(node));
        while let Some(event) = datagrams.poll_event() {
            match event {
                Event::SignatureWanted(request) => {
                    let signature = match node {
                        "leader" => {
                            let leader = self.net.machine::<Leader<S>>(node);
                            leader.sign_datagram(&request.statement, &mut self.rng)
                        }
                        _ => {
                            let edge = self.net.machine::<Edge<S>>(node);
                            edge.sign_datagram(&request.statement, &mut self.rng)
                        }
                    };
                    datagrams.provide_signature(Duration::ZERO, request.id, &signature.unwrap());
                }
                Event::SignerAnnounced { slot, drone } => {
                    let may = match node {
                        "leader" => self.net.machine::<Leader<S>>(node).may_sign_datagrams(now, slot, &drone),
                        _ => self.net.machine::<Edge<S>>(node).may_sign_datagrams(now, slot, &drone),
                    };
                    may.unwrap();
                    datagrams.allow_signer(Duration::ZERO, slot, &drone.handle());
                }
                Event::Received { bytes, .. } => received.push(bytes),
                _ => {}
            }
        }
        received
    }
}

#[test]
fn leader_and_edges_exchange_signed_datagrams_under_the_key_of_the_epoch() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        let mut group = Group::joined(strategy);
        let nodes = ["leader", "edge-1", "edge-2"];
        let mut members = nodes.map(|node| group.datagrams(node));
        assert_eq!(group.keys("leader").unwrap().slot, LEADER_SLOT);
        for (from, node) in nodes.into_iter().enumerate() {
            let payload = Payload { bytes: node.into(), priority: Priority::Command, sign: true };
            members[from].send(Duration::ZERO, payload).unwrap();
            group.answer(node, &mut members[from]);
            while let Some(datagram) = members[from].poll_datagram(Duration::ZERO) {
                for (to, other) in nodes.into_iter().enumerate().filter(|(to, _)| *to != from) {
                    members[to].handle_datagram(Duration::ZERO, &datagram);
                    let received = group.answer(other, &mut members[to]);
                    assert!(received.iter().all(|bytes| bytes == node.as_bytes()));
                }
                group.answer(node, &mut members[from]);
            }
        }
        for member in &members {
            assert_eq!(member.counters().received_payloads, 2);
        }
    }
}

#[test]
fn a_renewal_continues_the_epoch_before_and_a_removal_does_not() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        let mut group = Group::joined(strategy);
        let first = group.digest("leader");
        group.command(LeaderCommand::Rekey);
        for node in ["leader", "edge-1", "edge-2", "edge-3"] {
            assert_eq!(group.keys(node).unwrap().continues, first, "{node}");
            assert_eq!(group.digest(node), group.digest("leader"), "{node}");
        }
        group.command(LeaderCommand::Evict(name("edge-3")));
        for node in ["leader", "edge-1", "edge-2"] {
            assert_eq!(group.keys(node).unwrap().continues, None, "{node}");
            assert_eq!(group.digest(node), group.digest("leader"), "{node}");
        }
    }
}

#[test]
fn who_is_out_has_no_key_and_signs_nothing() {
    let mut group = Group::joined(StrategyKind::Tree);
    let sign = |group: &mut Group, edge| {
        let edge = group.net.machine::<Edge<S>>(edge);
        edge.sign_datagram(b"statement", &mut group.rng)
    };
    let signature = sign(&mut group, "edge-1").unwrap();
    let keypair = group.net.machine::<Edge<S>>("edge-1").keypair().unwrap().public().clone();
    signature.verify(&group.deployment, &keypair, Label::Datagram, b"statement").unwrap();
    assert!(signature.verify(&group.deployment, &keypair, Label::Command, b"statement").is_err());
    group.command(LeaderCommand::Evict(name("edge-1")));
    group.net.command::<Edge<S>>("edge-2", EdgeCommand::Leave);
    group.net.run_for(Duration::from_secs(5));
    for edge in ["edge-1", "edge-2"] {
        assert!(group.keys(edge).is_none(), "{edge}");
        assert!(sign(&mut group, edge).is_none(), "{edge}");
    }
    assert!(group.keys("edge-3").is_some());
    // And nobody takes anything that it signs.
    let slot = 0;
    let now = group.net.clock_of("leader");
    let refused = group.net.machine::<Leader<S>>("leader").may_sign_datagrams(now, slot, &keypair);
    assert!(matches!(refused, Err(Offence::Protocol(Error::WrongSlot))), "{refused:?}");
}

#[test]
fn a_restarted_edge_has_no_key_until_it_is_in_step_and_another_boot_number_then() {
    for strategy in [StrategyKind::Flat, StrategyKind::Tree] {
        let mut group = Group::joined(strategy);
        let before = group.keys("edge-1").unwrap();
        group.net.resume("edge-1");
        assert!(group.keys("edge-1").is_none());
        group.net.run_for(Duration::from_secs(20));
        let after = group.keys("edge-1").unwrap();
        assert!(after.boot_no > before.boot_no);
        // Its windows may have gone with a memory that was rolled back: no datagram of that epoch is opened again.
        assert_ne!(after.digest, before.digest);
        assert_eq!(Some(after.digest), group.digest("leader"));
    }
}

#[test]
fn an_edge_that_is_told_to_catch_up_asks_its_leader() {
    let mut group = Group::joined(StrategyKind::Flat);
    let answered = |group: &Group| group.net.machine::<Edge<S>>("edge-1").status().answered;
    let before = answered(&group);
    group.net.run_for(Duration::from_secs(5));
    assert_eq!(answered(&group), before);
    group.net.command::<Edge<S>>("edge-1", EdgeCommand::CatchUp);
    group.net.run_for(Duration::from_secs(5));
    assert!(answered(&group) > before);
}

#[test]
fn an_expired_key_is_none() {
    let mut group = Group::joined(StrategyKind::Flat);
    let valid_for = group.keys("edge-1").unwrap().valid_for;
    group.net.disconnect_all("edge-1");
    group.net.run_for(valid_for + Duration::from_secs(1));
    assert!(group.keys("edge-1").is_none());
}
