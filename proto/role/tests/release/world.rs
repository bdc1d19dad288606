//! A quorum of KGCs, drones, and the messages between them.

pub(crate) mod running;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, Identity, MasterSecret, Name, RevocationList, Revoked,
    Ristretto255, Role, SecretValue,
};
use quiver_crypto::Secret;
use quiver_ibe::{Condition, Dealing, MasterShare, PublicShares};
use quiver_pairing::{Scalar, scalar_decode};
use quiver_role::release::{
    Allowance, Approval, Audience, CollectEvent, CollectTiming, Collector, CollectorConfig, Holding, Policy,
    ReleaseAuthority, ReleaseCommand, ReleaseConfig, ReleaseEvent, ReleaseOffice, ReleaseParameters,
    ShareReleased,
};
use quiver_role::{Input, Machine, Now, Peer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) type S = Ristretto255;

pub(crate) const START: u64 = 1_800_000_000;
pub(crate) const ALLOWANCE: Allowance = Allowance { burst: 4, interval: Duration::from_secs(2) };
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

/// A condition that comes so many seconds after the start.
pub(crate) fn not_before(seconds: u64) -> Condition {
    Condition::not_before(START + seconds).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// By index, from 1.
    Kgc(u16),
    Drone(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) type Tamper = Box<dyn FnMut(Flight) -> Vec<Flight>>;

pub(crate) struct Centre {
    pub(crate) office: ReleaseOffice<S>,
    pub(crate) events: Vec<ReleaseEvent>,
    pub(crate) records: Vec<ShareReleased>,
    /// How far its clock is from the others'.
    pub(crate) skew: i64,
}

pub(crate) struct Drone {
    pub(crate) machine: Collector<S>,
    pub(crate) public: quiver_ainq::DronePublicKey<S>,
    pub(crate) events: Vec<CollectEvent>,
    deadline: Option<Duration>,
}

pub(crate) struct World {
    pub(crate) clock: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    master: MasterSecret<S>,
    shares: Vec<MasterShare>,
    pub(crate) authority: ReleaseAuthority<S>,
    pub(crate) kgcs: BTreeMap<u16, Centre>,
    pub(crate) commands: Vec<ReleaseCommand>,
    pub(crate) drones: Vec<Drone>,
    /// KGCs that are reached but say nothing.
    pub(crate) mute: BTreeSet<u16>,
    pub(crate) timing: CollectTiming,
    queue: VecDeque<Flight>,
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    pub(crate) tamper: Option<Tamper>,
    pub(crate) recorded: Vec<Flight>,
}

/// The statement about shares, signed by the one KGC that there is in these tests' place of a quorum.
pub(crate) fn signed(
    master: &MasterSecret<S>,
    deployment: &Deployment<S>,
    parameters: &ReleaseParameters,
    rng: &mut ChaCha20Rng,
) -> ReleaseAuthority<S> {
    let statement = parameters.statement(deployment, name("ibe")).unwrap();
    let signed = master.sign_authority(deployment, statement, rng).unwrap();
    ReleaseAuthority::decode(deployment, &signed.encode()).unwrap()
}

impl World {
    /// t of n KGCs with the three policies of a fresh deployment: every kind of condition, for every drone.
    pub(crate) fn new(seed: u64, t: u16, n: u16) -> Self {
        let mut world = Self::without_policies(seed, t, n);
        for pattern in ["mission", "drone", "not-before"] {
            world.allow(pattern, Some(&[]));
        }
        world
    }

    pub(crate) fn without_policies(seed: u64, t: u16, n: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let dealing = Dealing::deal(t, n, &mut rng).unwrap();
        let parameters = ReleaseParameters { version: 1, publics: dealing.public_shares().unwrap() };
        let authority = signed(&master, &deployment, &parameters, &mut rng);
        let mut world = Self {
            clock: Duration::from_secs(100),
            rng,
            deployment,
            master,
            shares: dealing.shares().to_vec(),
            authority,
            kgcs: BTreeMap::new(),
            commands: Vec::new(),
            drones: Vec::new(),
            mute: BTreeSet::new(),
            timing: CollectTiming { ahead: 0, ..CollectTiming::default() },
            queue: VecDeque::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            tamper: None,
            recorded: Vec::new(),
        };
        for kgc in 1..=n {
            world.start_kgc(kgc);
        }
        world
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    pub(crate) fn share(&self, kgc: u16) -> MasterShare {
        self.shares.iter().find(|share| share.index() == kgc).unwrap().clone()
    }

    /// Starts a KGC from what its registry would have.
    pub(crate) fn start_kgc(&mut self, kgc: u16) {
        let config = ReleaseConfig {
            deployment: self.deployment.clone(),
            cookie_key: Secret::random(&mut self.rng),
            holding: Some(Holding::new(self.authority.clone(), self.share(kgc)).unwrap()),
            policies: self.policies(),
            approvals: self.approvals(),
            allowance: ALLOWANCE,
        };
        let office = ReleaseOffice::new(config);
        let centre = Centre { office, events: vec![], records: vec![], skew: 0 };
        self.kgcs.insert(kgc, centre);
        for drone in 0..self.drones.len() {
            self.connect(drone, kgc);
        }
    }

    /// A node that says it is KGC `kgc` and has its share, under another name.
    pub(crate) fn add_impostor(&mut self, node: u16, kgc: u16) {
        let config = ReleaseConfig {
            deployment: self.deployment.clone(),
            cookie_key: Secret::random(&mut self.rng),
            holding: Some(Holding::new(self.authority.clone(), self.share(kgc)).unwrap()),
            policies: self.policies(),
            approvals: vec![],
            allowance: ALLOWANCE,
        };
        let office = ReleaseOffice::new(config);
        self.kgcs.insert(node, Centre { office, events: vec![], records: vec![], skew: 0 });
    }

    pub(crate) fn stop_kgc(&mut self, kgc: u16) {
        for drone in 0..self.drones.len() {
            self.disconnect(drone, kgc);
        }
        self.kgcs.remove(&kgc);
    }

    fn policies(&self) -> Vec<Policy> {
        let policies = self.commands.iter().filter_map(|command| match command {
            ReleaseCommand::Policy(policy) => Some(policy.clone()),
            ReleaseCommand::Approval(_) => None,
        });
        policies.collect()
    }

    fn approvals(&self) -> Vec<Approval> {
        let approvals = self.commands.iter().filter_map(|command| match command {
            ReleaseCommand::Approval(approval) => Some(approval.clone()),
            ReleaseCommand::Policy(_) => None,
        });
        approvals.collect()
    }

    fn order(&mut self, kgcs: &[u16], command: &ReleaseCommand) {
        let now = self.now();
        for kgc in kgcs {
            let centre = self.kgcs.get_mut(kgc).unwrap();
            centre.office.handle_input(now, Input::Command(command.clone()), &mut self.rng);
            self.drain_kgc(*kgc);
        }
    }

    /// Every operator's word on a pattern.
    pub(crate) fn allow(&mut self, pattern: &str, groups: Option<&[&str]>) {
        let audience =
            groups.map(|groups| Audience { groups: groups.iter().map(|group| name(group)).collect() });
        let revision = self.commands.len() as u64 + 1;
        let policy = Policy { revision, pattern: pattern.parse().unwrap(), audience };
        self.commands.push(ReleaseCommand::Policy(policy.clone()));
        let all: Vec<_> = self.kgcs.keys().copied().collect();
        self.order(&all, &ReleaseCommand::Policy(policy));
    }

    /// These operators' word on a mission.
    pub(crate) fn approve(&mut self, kgcs: &[u16], condition: &Condition, approved: bool) {
        let revision = self.commands.len() as u64 + 1;
        let approval = Approval { revision, condition: condition.clone(), approved };
        self.commands.push(ReleaseCommand::Approval(approval.clone()));
        self.order(kgcs, &ReleaseCommand::Approval(approval));
    }

    pub(crate) fn revoke(&mut self, drone: usize) {
        let revoked = vec![Revoked::from(&self.drones[drone].public.identity)];
        let now = self.now().unix;
        let list = RevocationList { number: 1, issued: now, next_update: now + 86_400, revoked };
        let signed = self.master.sign_revocations(&self.deployment, list, &mut self.rng).unwrap();
        for centre in self.kgcs.values_mut() {
            centre.office.offer_revocations(&signed.encode()).unwrap();
        }
    }

    /// New shares of the same master key: those before, each moved along a polynomial that is zero at zero.
    pub(crate) fn refresh(&mut self) {
        let publics = self.authority.publics();
        let (threshold, master) = (publics.threshold(), *publics.master());
        let moves: Vec<_> = (1..threshold).map(|_| Scalar::from(self.rng.next_u64())).collect();
        for share in &mut self.shares {
            let x = Scalar::from(share.index());
            let along = moves.iter().rev().fold(Scalar::from(0_u64), |sum, step| (sum + step) * x);
            let scalar = scalar_decode(&share.encode()[2..]).unwrap() + along;
            *share = MasterShare::new(share.index(), scalar).unwrap();
        }
        let points = self.shares.iter().map(|share| (share.index(), share.public())).collect();
        let publics = PublicShares::new(threshold, master, points).unwrap();
        let parameters = ReleaseParameters { version: self.authority.version() + 1, publics };
        self.authority = signed(&self.master, &self.deployment, &parameters, &mut self.rng);
    }

    /// This KGC is through with the refresh.
    pub(crate) fn hold(&mut self, kgc: u16) {
        let holding = Holding::new(self.authority.clone(), self.share(kgc)).unwrap();
        self.kgcs.get_mut(&kgc).unwrap().office.hold(holding);
    }

    /// A statement signed with the deployment's key, encoded.
    pub(crate) fn sign(&mut self, statement: AuthorityStatement<S>) -> Vec<u8> {
        self.master.sign_authority(&self.deployment, statement, &mut self.rng).unwrap().encode()
    }

    /// All KGCs hold shares of another master key.
    pub(crate) fn replace_master(&mut self, dealing: &Dealing) {
        let parameters = ReleaseParameters { version: 1, publics: dealing.public_shares().unwrap() };
        self.authority = signed(&self.master, &self.deployment, &parameters, &mut self.rng);
        self.shares = dealing.shares().to_vec();
        let all: Vec<_> = self.kgcs.keys().copied().collect();
        all.into_iter().for_each(|kgc| self.hold(kgc));
    }

    /// Keys of a drone that has enrolled.
    pub(crate) fn keypair(&mut self, serial: u8, groups: &[&str], not_after: u64) -> DroneKeypair<S> {
        let identity = Identity {
            serial: [serial; 16],
            name: name(&format!("drone-{serial}")),
            role: Role::Edge,
            groups: groups.iter().map(|group| name(group)).collect(),
            not_after,
        };
        let value = SecretValue::generate(&mut self.rng);
        let partial =
            self.master.issue_partial_key(&self.deployment, &identity, &value.public(), &mut self.rng);
        partial.verify(&self.deployment, &identity, &value).unwrap()
    }

    pub(crate) fn add_drone(&mut self) -> usize {
        let keypair = self.keypair(self.drones.len() as u8 + 1, &["alpha"], START + 1_000_000);
        self.add_drone_with(keypair)
    }

    /// A drone that is connected to every KGC and knows nothing of the master key.
    pub(crate) fn add_drone_with(&mut self, keypair: DroneKeypair<S>) -> usize {
        let public = keypair.public().clone();
        let machine = Collector::new(CollectorConfig {
            deployment: self.deployment.clone(),
            keypair,
            authority: None,
            timing: self.timing,
        });
        let drone = self.drones.len();
        self.drones.push(Drone { machine, public, events: vec![], deadline: None });
        let all: Vec<_> = self.kgcs.keys().copied().collect();
        for kgc in all {
            self.connect(drone, kgc);
        }
        drone
    }
}
