//! Enrolment with a quorum of KGCs: what travels, and the machines of both sides.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::{Bls12381G1, IssuedToken, Purpose, QuorumStatement, Ristretto255, Role, SealedShare};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcRecord, Kgcs, MasterShare};
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Route, Snapshot, Via};
use quiver_quorum::{PublicShares, QuorumParameters, SecretShare, dealer};
use quiver_testbed::{Net, Packet, Stimulus};

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
        let parameters = QuorumParameters::new(3, 2).expect("a quorum");
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

/// The first three nodes are KGCs, the other two drones. All messages are in the hands of an adversary.
struct QuorumNetwork {
    net: Net<usize>,
    queue: Rc<RefCell<Vec<Packet<usize>>>>,
}

impl QuorumNetwork {
    fn new() -> Self {
        let mut network = Self { net: Net::new(8), queue: Rc::default() };
        let queue = Rc::clone(&network.queue);
        network.net.recording = false;
        network.net.tamper = Some(Box::new(move |packet| {
            let mut queue = queue.borrow_mut();
            if queue.len() < 256 {
                queue.push(packet);
            }
            Vec::new()
        }));
        network.net.skip(Duration::from_secs(10));
        (0..KGCS).for_each(|place| network.net.start(place, kgc(place, &[])));
        (KGCS..NODES).for_each(|node| network.net.start(node, drone(None)));
        (KGCS..NODES).for_each(|node| network.connect(node));
        network
    }

    fn step(&mut self, script: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        let queued = self.queue.borrow().len();
        let place = if queued == 0 { 0 } else { script.choose_index(queued)? };
        match script.int_in_range(0..=15_u8)? {
            _ if queued == 0 => self.wait(script.int_in_range(1..=70)?),
            0..=8 => self.deliver(place),
            9 => drop(self.queue.borrow_mut().remove(place)),
            10 => self.repeat(place, |_| {}),
            11 => {
                let message = &mut self.queue.borrow_mut()[place].bytes;
                let at = script.choose_index(message.len())?;
                message[at] = script.arbitrary()?;
            }
            12 => {
                // With another sender or another receiver.
                let (from, to) = (script.choose_index(NODES)?, script.choose_index(NODES)?);
                self.repeat(place, |packet| (packet.from, packet.to) = (from, to));
            }
            13 => self.restart(script.choose_index(NODES)?),
            14 => self.wait(script.int_in_range(1..=70)?),
            _ => {
                let (from, to) = (script.choose_index(NODES)?, script.choose_index(NODES)?);
                let bytes = script.arbitrary()?;
                self.queue.borrow_mut().push(Packet { from, to, via: Via::Peer, bytes });
            }
        }
        Ok(())
    }

    fn repeat(&mut self, place: usize, change: impl FnOnce(&mut Packet<usize>)) {
        let mut queue = self.queue.borrow_mut();
        let mut packet = queue[place].clone();
        change(&mut packet);
        queue.push(packet);
    }

    fn deliver(&mut self, place: usize) {
        let Packet { from, to, via, bytes } = self.queue.borrow_mut().remove(place);
        if let Some(peer) = self.net.peer(to, from) {
            self.net.feed(to, Stimulus::Received(peer, via, bytes.into()));
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.net.skip(Duration::from_secs(seconds));
        (0..NODES).for_each(|node| self.net.feed(node, Stimulus::Deadline));
    }

    /// Restarts the node from its records.
    fn restart(&mut self, node: usize) {
        self.net.stop(node);
        if node < KGCS {
            let restored = kgc(node, self.net.node::<Kgc<S>>(node).records());
            self.net.start(node, restored);
            (KGCS..NODES).for_each(|drone| self.connect(drone));
        } else {
            let restored = drone(self.net.node::<Edge<S>>(node).records().last());
            self.net.start(node, restored);
            self.connect(node);
        }
    }

    fn connect(&mut self, drone: usize) {
        (0..KGCS).for_each(|kgc| self.net.connect(drone, kgc, Route::Kgc));
    }

    fn check(&self) {
        for kgc in 0..KGCS {
            let pins = self
                .net
                .node::<Kgc<S>>(kgc)
                .records()
                .iter()
                .filter(|record| matches!(record, KgcRecord::Pinned { .. }));
            assert!(pins.count() <= 1, "a token bound twice");
        }
        let open = (0..KGCS).map(|kgc| self.net.machine::<Kgc<S>>(kgc).open_rounds()).max();
        assert!(open <= Some(4), "more open rounds than a token may have");
        let enrolled = (KGCS..NODES).filter(|id| self.net.machine::<Edge<S>>(*id).keypair().is_some());
        assert!(enrolled.count() <= 1, "two keys for one token");
    }
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
        kgcs: Kgcs::quorum(vec![1, 2, 3]),
        ..EdgeConfig::new(scene.deployment.clone(), None, Some(token))
    };
    Edge::new(config, state).expect("what it persisted restores it")
}

/// Scripts: both drones to the end, one message after the other; and a short one with everything in it.
pub fn input_seeds() -> Vec<Vec<u8>> {
    vec![vec![0; 400], (0..=255).collect()]
}
