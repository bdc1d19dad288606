//! A key centre, drones, and the messages between them. The scheme is a toy: what its keys are worth is not at stake here.

mod running;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, Identity, MasterSecret, Name, Revoked, Ristretto255, Role,
    SecretScalar, SecretValue, VerifiedAuthority,
};
use quiver_crypto::{Secret, Zeroizing};
use quiver_role::attributes::certifying::{Certifier, KIND, SCHEME, Terms};
use quiver_role::attributes::{
    Authority, CentreCommand, CentreEvent, CentreRecord, FetchEvent, FetchTiming, Fetcher, FetcherConfig,
    Grant, Held, KeyCentre, KeyMaker, MakeError, Office, OfficeCommand, OfficeConfig,
};
use quiver_role::{Input, Kgc, KgcCommand, KgcConfig, Machine, Now, Peer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{CryptoRngCore, SeedableRng};

pub(crate) type S = Ristretto255;

pub(crate) const START: u64 = 1_800_000_000;
/// Of all slot keys.
pub(crate) const SEED: Secret<32> = Secret::new([7; 32]);
/// How long a drone waits for its next key.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Makes "keys" that say what they are for, with 24 random bytes behind.
#[derive(Debug)]
pub(crate) struct Toy(pub(crate) Arc<AtomicUsize>);

impl KeyMaker for Toy {
    fn make(&mut self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError> {
        if granted == b"impossible" {
            return Err(MakeError("no such attribute".into()));
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let length = if granted == b"endless" { 300_000 } else { 24 };
        let mut key = b"key for ".to_vec();
        key.extend_from_slice(granted);
        let at = key.len();
        key.resize(at + length, 0);
        rng.fill_bytes(&mut key[at..]);
        Ok(Zeroizing::new(key))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Centre,
    Drone(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) type Tamper = Box<dyn FnMut(Flight) -> Vec<Flight>>;

/// An authority's secrets, as a sealed file has them.
pub(crate) struct Stored {
    pub(crate) statement: VerifiedAuthority<S>,
    pub(crate) delivery: SecretScalar<S>,
}

/// What a drone stores of one authority: the statement, and its key with the mark of its grant.
pub(crate) type Entry = (Vec<u8>, Option<(u64, Vec<u8>)>);

pub(crate) struct Drone {
    pub(crate) machine: Fetcher<S>,
    pub(crate) public: quiver_ainq::DronePublicKey<S>,
    secret: Vec<u8>,
    pub(crate) events: Vec<FetchEvent>,
    /// What it would have stored, by authority.
    pub(crate) ring: BTreeMap<Name, Entry>,
    deadline: Option<Duration>,
}

pub(crate) struct World {
    pub(crate) clock: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    master: Vec<u8>,
    pub(crate) authorities: Vec<Stored>,
    /// As the registry has them.
    pub(crate) grants: Vec<Grant>,
    pub(crate) centre: Option<KeyCentre<S>>,
    pub(crate) records: Vec<CentreRecord>,
    pub(crate) events: Vec<CentreEvent>,
    pub(crate) made: Arc<AtomicUsize>,
    pub(crate) drones: Vec<Drone>,
    queue: VecDeque<Flight>,
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    pub(crate) tamper: Option<Tamper>,
    pub(crate) recorded: Vec<Flight>,
    /// The centre dies after so many more outputs.
    pub(crate) doom: Option<usize>,
}

impl World {
    /// A centre with authorities of these names.
    pub(crate) fn new(seed: u64, names: &[&str]) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let authorities = names.iter().map(|text| authority(&master, &deployment, text, &mut rng));
        let authorities = authorities.collect();
        let mut world = Self {
            clock: Duration::from_secs(100),
            rng,
            master: master.encode().to_vec(),
            deployment,
            authorities,
            grants: Vec::new(),
            centre: None,
            records: Vec::new(),
            events: Vec::new(),
            made: Arc::new(AtomicUsize::new(0)),
            drones: Vec::new(),
            queue: VecDeque::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            tamper: None,
            recorded: Vec::new(),
            doom: None,
        };
        world.start_centre();
        world
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    pub(crate) fn office(&mut self) -> Office<S> {
        let authorities = self.authorities.iter().map(|stored| Authority {
            statement: stored.statement.clone(),
            delivery: stored.delivery.clone(),
            maker: match Terms::of(&stored.statement) {
                Ok(terms) => Box::new(Certifier::new(terms, SEED)) as Box<dyn KeyMaker>,
                Err(_) => Box::new(Toy(self.made.clone())),
            },
        });
        let config = OfficeConfig {
            deployment: self.deployment.clone(),
            cookie_key: Secret::random(&mut self.rng),
            authorities: authorities.collect(),
            grants: self.grants.clone(),
            interval: INTERVAL,
        };
        Office::new(config).unwrap()
    }

    /// An authority that certifies fields, beside the others.
    pub(crate) fn certify(&mut self, text: &str, terms: &Terms) {
        let master = MasterSecret::<S>::decode(&self.master).unwrap();
        let delivery = SecretScalar::generate(&mut self.rng);
        let statement = AuthorityStatement {
            kind: name(KIND),
            name: name(text),
            scheme: name(SCHEME),
            delivery: delivery.public(),
            schema: terms.schema_text(),
            parameters: terms.parameters(),
        };
        let statement = master.sign_authority(&self.deployment, statement, &mut self.rng).unwrap();
        let statement = statement.verify(&self.deployment).unwrap();
        self.authorities.push(Stored { statement, delivery });
        self.stop_centre();
        self.start_centre();
    }

    /// Starts the centre from what it persisted.
    pub(crate) fn start_centre(&mut self) {
        let records = self.records.iter().filter_map(|record| match record {
            CentreRecord::Kgc(record) => Some(record.clone()),
            _ => None,
        });
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: MasterSecret::decode(&self.master).unwrap().into(),
            id: 1,
            operators: vec![],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 86_400,
        };
        let kgc = Kgc::new(config, records).unwrap();
        let office = self.office();
        self.centre = Some(KeyCentre::new(self.deployment.clone(), kgc, office));
        for drone in 0..self.drones.len() {
            self.connect(drone);
        }
    }

    pub(crate) fn stop_centre(&mut self) {
        self.centre = None;
        for drone in 0..self.drones.len() {
            self.disconnect(drone);
        }
    }

    pub(crate) fn order(&mut self, command: CentreCommand) {
        let now = self.now();
        if let Some(centre) = &mut self.centre {
            centre.handle_input(now, Input::Command(command), &mut self.rng);
        }
        self.drain_centre();
    }

    pub(crate) fn grant(&mut self, authority: &str, drone: usize, granted: Option<&[u8]>) {
        let stored = self.authorities.iter().find(|stored| stored.statement.name == name(authority)).unwrap();
        let grant = Grant {
            authority: *stored.statement.fingerprint(),
            serial: self.drones[drone].public.identity.serial,
            revision: self.grants.len() as u64 + 1,
            granted: granted.map(<[u8]>::to_vec),
        };
        self.grants.push(grant.clone());
        self.order(CentreCommand::Office(OfficeCommand::Grant(grant)));
    }

    pub(crate) fn revoke(&mut self, drone: usize) {
        let revoked = vec![Revoked::from(&self.drones[drone].public.identity)];
        self.order(CentreCommand::Kgc(KgcCommand::RevokeDrones(revoked)));
    }

    /// Keys of a drone that has enrolled.
    pub(crate) fn keypair(&mut self, serial: u8, role: Role, not_after: u64) -> DroneKeypair<S> {
        let identity = Identity {
            serial: [serial; 16],
            name: name(&format!("drone-{serial}")),
            role,
            groups: vec![],
            not_after,
        };
        let value = SecretValue::generate(&mut self.rng);
        let master = MasterSecret::decode(&self.master).unwrap();
        let partial = master.issue_partial_key(&self.deployment, &identity, &value.public(), &mut self.rng);
        partial.verify(&self.deployment, &identity, &value).unwrap()
    }

    pub(crate) fn add_drone(&mut self) -> usize {
        let number = self.drones.len();
        let keypair = self.keypair(number as u8 + 1, Role::Edge, START + 1_000_000);
        self.add_drone_with(keypair)
    }

    pub(crate) fn add_drone_with(&mut self, keypair: DroneKeypair<S>) -> usize {
        let drone = Drone {
            public: keypair.public().clone(),
            secret: keypair.to_bytes().to_vec(),
            machine: fetcher(&self.deployment, keypair, vec![]),
            events: Vec::new(),
            ring: BTreeMap::new(),
            deadline: None,
        };
        self.drones.push(drone);
        self.drones.len() - 1
    }

    /// The drone's process starts anew, with what it stored.
    pub(crate) fn restart_drone(&mut self, drone: usize) {
        self.disconnect(drone);
        let node = &mut self.drones[drone];
        let keypair = DroneKeypair::restore(&self.deployment, node.public.clone(), &node.secret).unwrap();
        let held = node.ring.values().map(|(statement, key)| Held {
            statement: statement.clone(),
            grant: key.as_ref().map(|(grant, _)| *grant),
        });
        node.machine = fetcher(&self.deployment, keypair, held.collect());
        node.deadline = None;
        self.connect(drone);
    }
}

fn fetcher(deployment: &Deployment<S>, keypair: DroneKeypair<S>, held: Vec<Held>) -> Fetcher<S> {
    let timing = FetchTiming::default();
    Fetcher::new(FetcherConfig { deployment: deployment.clone(), keypair, held, timing }).unwrap()
}

fn authority(
    master: &MasterSecret<S>,
    deployment: &Deployment<S>,
    text: &str,
    rng: &mut ChaCha20Rng,
) -> Stored {
    let delivery = SecretScalar::generate(rng);
    let statement = AuthorityStatement {
        kind: name("abe"),
        name: name(text),
        scheme: name("toy"),
        delivery: delivery.public(),
        schema: vec![1],
        parameters: text.as_bytes().to_vec(),
    };
    let statement = master.sign_authority(deployment, statement, rng).unwrap();
    Stored { statement: statement.verify(deployment).unwrap(), delivery }
}
