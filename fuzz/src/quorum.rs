//! Enrolment with a quorum of KGCs: what travels, and the machines of both sides.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::{Bls12381G1, IssuedToken, Purpose, QuorumStatement, Ristretto255, Role, SealedShare};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcRecord, Kgcs, MasterShare};
use quiver_group::edge::EdgeTiming;
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use quiver_quorum::{Parameters, PublicShares, SecretShare, dealer};
use rand_chacha::ChaCha20Rng;

use crate::scene::{START, Staged, rng};

type S = Ristretto255;

const PACKAGE: [u8; 32] = [5; 32];

fn share_of<T: Staged>() -> Vec<u8> {
    let scene = T::scene();
    let request = scene.honest().edge.pending.request();
    let verified = request.verify(&scene.deployment, &[scene.operator.public()], 1, START).expect("honest");
    let z = T::scalar_encode(&T::scalar_from_u128(77));
    verified.seal_share(1, &PACKAGE, &*z, &mut rng(3)).expect("a scalar").encode()
}

fn statement_of<T: Staged>() -> Vec<u8> {
    let scene = T::scene();
    let shares = vec![9; 150];
    let signature = scene.master.sign(&scene.deployment, Purpose::Quorum, &shares, &mut rng(4));
    QuorumStatement::new(shares, signature).expect("short enough").encode()
}

fn sealed_shares<T: Staged>(bytes: &[u8]) {
    let Ok(share) = SealedShare::<T>::decode(bytes) else { return };
    assert_eq!(share.encode(), bytes, "two encodings of one value");
    let opened = T::scene().honest().edge.pending.open_share(&PACKAGE, &share);
    assert!(opened.is_err() || bytes == share_of::<T>(), "a forged share");
}

fn statements<T: Staged>(bytes: &[u8]) {
    let Ok(statement) = QuorumStatement::<T>::decode(bytes) else { return };
    assert_eq!(statement.encode(), bytes, "two encodings of one value");
    let verified = statement.verify(&T::scene().deployment);
    assert!(verified.is_err() || bytes == statement_of::<T>(), "a statement that no quorum signed");
}

/// Sealed shares, and opening them.
pub fn sealed_share(bytes: &[u8]) {
    sealed_shares::<Ristretto255>(bytes);
    sealed_shares::<Bls12381G1>(bytes);
}

/// A quorum's statement.
pub fn quorum_statement(bytes: &[u8]) {
    statements::<Ristretto255>(bytes);
    statements::<Bls12381G1>(bytes);
}

/// Sealed shares of both suites.
pub fn sealed_share_seeds() -> Vec<Vec<u8>> {
    vec![share_of::<Ristretto255>(), share_of::<Bls12381G1>()]
}

/// Statements of both suites.
pub fn statement_seeds() -> Vec<Vec<u8>> {
    vec![statement_of::<Ristretto255>(), statement_of::<Bls12381G1>()]
}

/// The scene's master secret, split among three KGCs, and their statement.
fn quorum() -> &'static (Vec<Vec<u8>>, Vec<u8>) {
    static QUORUM: OnceLock<(Vec<Vec<u8>>, Vec<u8>)> = OnceLock::new();
    QUORUM.get_or_init(|| {
        let scene = S::scene();
        let parameters = Parameters::new(3, 2).expect("a quorum");
        let (shares, public): (Vec<SecretShare<S>>, PublicShares<S>) =
            dealer::split(&scene.master, parameters, &mut rng(5)).expect("a secret");
        let public = public.encode();
        let signature = scene.master.sign(&scene.deployment, Purpose::Quorum, &public, &mut rng(6));
        let statement = QuorumStatement::new(public, signature).expect("short enough");
        (shares.iter().map(|share| share.encode().to_vec()).collect(), statement.encode())
    })
}

/// Three KGCs and two drones that compete for one token, under the script's faults.
///
/// # Panics
/// If a token is bound to two requests at one KGC, or both drones are enrolled, or outputs do not end.
pub fn quorum_input(bytes: &[u8]) {
    let mut network = QuorumNetwork::new();
    let mut script = Unstructured::new(bytes);
    while !script.is_empty() {
        if network.step(&mut script).is_err() {
            break;
        }
        network.check();
    }
}

const KGCS: usize = 3;
const NODES: usize = 5;

/// The first three nodes are KGCs, the other two drones.
struct QuorumNetwork {
    kgcs: Vec<Kgc<S>>,
    drones: Vec<Edge<S>>,
    records: Vec<Vec<KgcRecord>>,
    states: Vec<Option<Snapshot>>,
    /// From, to, message.
    queue: Vec<(usize, usize, Vec<u8>)>,
    /// Under which handle the first sees the second.
    handles: BTreeMap<(usize, usize), Peer>,
    next: u64,
    clock: Duration,
    rng: ChaCha20Rng,
}

impl QuorumNetwork {
    fn new() -> Self {
        let mut network = Self {
            kgcs: (0..KGCS).map(|place| kgc(place, &[])).collect(),
            drones: (0..2).map(|_| drone(None)).collect(),
            records: vec![Vec::new(); KGCS],
            states: vec![None; 2],
            queue: Vec::new(),
            handles: BTreeMap::new(),
            next: 1,
            clock: Duration::from_secs(10),
            rng: rng(8),
        };
        for node in KGCS..NODES {
            network.connect(node);
        }
        network
    }

    fn step(&mut self, script: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        let place = if self.queue.is_empty() { 0 } else { script.choose_index(self.queue.len())? };
        match script.int_in_range(0..=15_u8)? {
            _ if self.queue.is_empty() => self.wait(script.int_in_range(1..=70)?),
            0..=8 => self.deliver(place),
            9 => drop(self.queue.remove(place)),
            10 => self.queue.push(self.queue[place].clone()),
            11 => {
                let message = &mut self.queue[place].2;
                let at = script.choose_index(message.len())?;
                message[at] = script.arbitrary()?;
            }
            12 => {
                // With another sender or another receiver.
                let (from, to) = (script.choose_index(NODES)?, script.choose_index(NODES)?);
                let message = self.queue[place].2.clone();
                self.queue.push((from, to, message));
            }
            13 => self.restart(script.choose_index(NODES)?),
            14 => self.wait(script.int_in_range(1..=70)?),
            _ => {
                let (from, to): (usize, usize) = (script.choose_index(NODES)?, script.choose_index(NODES)?);
                let message = script.arbitrary()?;
                self.queue.push((from, to, message));
            }
        }
        Ok(())
    }

    fn deliver(&mut self, place: usize) {
        let (from, to, bytes) = self.queue.remove(place);
        if let Some(from) = self.handles.get(&(to, from)).copied() {
            self.feed(to, &Stimulus::Received(from, bytes));
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.clock += Duration::from_secs(seconds);
        (0..NODES).for_each(|node| self.feed(node, &Stimulus::Timeout));
    }

    /// Restarts the node from its records.
    fn restart(&mut self, node: usize) {
        match node.checked_sub(KGCS) {
            None => self.kgcs[node] = kgc(node, &self.records[node]),
            Some(drone_number) => self.drones[drone_number] = drone(self.states[drone_number].as_ref()),
        }
        let gone: Vec<_> = self.handles.keys().copied().filter(|(a, b)| *a == node || *b == node).collect();
        for (at, of) in gone {
            if let Some(peer) = self.handles.remove(&(at, of)).filter(|_| at != node) {
                self.feed(at, &Stimulus::Disconnected(peer));
            }
        }
        if node < KGCS { (KGCS..NODES).for_each(|drone| self.connect(drone)) } else { self.connect(node) }
    }

    fn connect(&mut self, drone: usize) {
        for kgc in 0..KGCS {
            if self.handles.contains_key(&(drone, kgc)) {
                continue;
            }
            for (at, of, route) in [(kgc, drone, Route::Inbound), (drone, kgc, Route::Kgc)] {
                let peer = Peer(self.next);
                self.next += 1;
                self.handles.insert((at, of), peer);
                self.feed(at, &Stimulus::Connected(peer, route));
            }
        }
    }

    fn feed(&mut self, node: usize, stimulus: &Stimulus) {
        let now = Now { monotonic: self.clock, unix: START + self.clock.as_secs() };
        let mut sent = Vec::new();
        match node.checked_sub(KGCS) {
            None => {
                self.kgcs[node].handle_input(now, stimulus.input(), &mut self.rng);
                drain(&mut self.kgcs[node], &mut self.records[node], &mut sent);
            }
            Some(number) => {
                self.drones[number].handle_input(now, stimulus.input(), &mut self.rng);
                let mut states = Vec::new();
                drain(&mut self.drones[number], &mut states, &mut sent);
                self.states[number] = states.pop().or(self.states[number].take());
            }
        }
        for (peer, bytes) in sent {
            let to = self.handles.iter().find(|((at, _), handle)| *at == node && **handle == peer);
            if let Some(((_, to), _)) = to.filter(|_| self.queue.len() < 256) {
                self.queue.push((node, *to, bytes));
            }
        }
    }

    fn check(&self) {
        for records in &self.records {
            let pins = records.iter().filter(|record| matches!(record, KgcRecord::Pinned { .. }));
            assert!(pins.count() <= 1, "a token bound twice");
        }
        assert!(self.kgcs.iter().all(|kgc| kgc.open_rounds() <= 4), "more open rounds than a token may have");
        let enrolled = self.drones.iter().filter(|drone| drone.keypair().is_some());
        assert!(enrolled.count() <= 1, "two keys for one token");
    }
}

enum Stimulus {
    Timeout,
    Connected(Peer, Route),
    Disconnected(Peer),
    Received(Peer, Vec<u8>),
}

impl Stimulus {
    fn input<C>(&self) -> Input<'_, C> {
        match self {
            Self::Timeout => Input::Timeout,
            Self::Connected(peer, route) => Input::Connected { peer: *peer, route: *route },
            Self::Disconnected(peer) => Input::Disconnected { peer: *peer },
            Self::Received(from, bytes) => Input::Received { from: *from, via: Via::Peer, bytes },
        }
    }
}

fn drain<M: Machine>(machine: &mut M, records: &mut Vec<M::Record>, sent: &mut Vec<(Peer, Vec<u8>)>) {
    for _ in 0..1000 {
        match machine.poll_output() {
            Output::Timeout(_) => return,
            Output::Persist(record) => records.push(record),
            Output::Transmit { to: Destination::Peer(to), payload } => sent.push((to, payload)),
            _ => {}
        }
    }
    panic!("outputs do not end");
}

fn kgc(place: usize, records: &[KgcRecord]) -> Kgc<S> {
    let scene = S::scene();
    let (shares, statement) = quorum();
    let share = SecretShare::decode(&shares[place]).expect("as encoded");
    let statement = QuorumStatement::decode(statement).expect("as encoded");
    let master = MasterShare::new(&scene.deployment, share, &statement).expect("of this quorum");
    let config = KgcConfig {
        deployment: scene.deployment.clone(),
        id: master.kgc(),
        master: master.into(),
        operators: vec![scene.operator.public()],
        cookie_key: Secret::new([7; 32]),
        revocation_validity: 86_400,
    };
    Kgc::new(config, records.to_vec()).expect("what it persisted restores it")
}

fn drone(state: Option<&Snapshot>) -> Edge<S> {
    let scene = S::scene();
    let token: IssuedToken<S> = scene.token("edge-0", Role::Edge);
    let config = EdgeConfig {
        deployment: scene.deployment.clone(),
        group: None,
        token: Some(token),
        kgcs: Kgcs::quorum(vec![1, 2, 3]),
        timing: EdgeTiming::default(),
    };
    Edge::new(config, state).expect("what it persisted restores it")
}

/// Scripts: both drones to the end, one message after the other; and a short one with everything in it.
pub fn input_seeds() -> Vec<Vec<u8>> {
    vec![vec![0; 400], (0..=255).collect()]
}
