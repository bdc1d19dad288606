//! A key centre and drones on the testbed. The scheme is a toy: what its keys are worth is not at stake here.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, DronePublicKey, Element, Identity, MasterSecret, Name,
    Revoked, Ristretto255, Role, SecretScalar, VerifiedAuthority,
};
use quiver_crypto::{Secret, Zeroizing};
use quiver_delivery::attributes::{
    AttributeIssuer, AttributeServer, FetchCommand, FetchEvent, FetchTiming, Fetcher, Grant, HeldAuthority,
    IssuerCommand, IssuerConfig, IssuerEvent, IssuingAuthority, KeyMaker, KeyResponse, MakeError,
};
use quiver_delivery::kgc::{
    Deliveries, DeliveryCommand, DeliveryEvent, DeliveryRecord, KgcNode, KgcNodeCommand, KgcNodeEvent,
    KgcNodeRecord,
};
use quiver_delivery::{DeliveryServer, Standalone};
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig};
use quiver_machine::{Either, Input, Machine, Now, Output, RefusalReason, Route};
use quiver_message::Message;
use quiver_testbed::{Net, deref_to_net, issue_keypair, matching};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{CryptoRngCore, SeedableRng};

pub(crate) type S = Ristretto255;

pub(crate) use quiver_testbed::{EPOCH_START as START, name};
/// Time that a drone waits for its next key.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

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

pub(crate) type Packet = quiver_testbed::Packet<Node>;

/// An authority's secrets, as a sealed file has them.
pub(crate) struct Stored {
    pub(crate) statement: VerifiedAuthority<S>,
    pub(crate) delivery: SecretScalar<S>,
    maker: Option<MakerOf>,
}

/// Makes the maker of an authority's keys. An authority without it has a toy.
pub(crate) type MakerOf = fn(&VerifiedAuthority<S>) -> Box<dyn KeyMaker>;

/// A drone's state at one authority: the statement, and its key with the mark of its grant.
pub(crate) type Entry = (Vec<u8>, Option<(u64, Vec<u8>)>);

/// A drone's state, by authority.
pub(crate) type Ring = BTreeMap<Name, Entry>;

/// A drone that stores the keys it fetches.
struct Drone {
    fetcher: Standalone<S, Fetcher<S>>,
    ring: Ring,
}

impl Machine for Drone {
    type Command = FetchCommand;
    type Event = FetchEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, FetchCommand>, rng: &mut dyn CryptoRngCore) {
        self.fetcher.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<FetchEvent, Infallible> {
        let output = self.fetcher.poll_output();
        if let Output::Event(FetchEvent::Answered { authority, statement, response }) = &output {
            let entry = self.ring.entry(authority.clone()).or_default();
            entry.0.clone_from(statement);
            match response {
                KeyResponse::Withdrawn => entry.1 = None,
                KeyResponse::Nothing | KeyResponse::Held { .. } => {}
                KeyResponse::Key { grant, key } => entry.1 = Some((*grant, key.to_vec())),
            }
        }
        output
    }
}

pub(crate) struct World {
    net: Net<Node>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    master: Vec<u8>,
    pub(crate) authorities: Vec<Stored>,
    /// Grants in the registry.
    pub(crate) grants: Vec<Grant>,
    pub(crate) made: Arc<AtomicUsize>,
    /// Keypairs of the drones.
    keypairs: Vec<(DronePublicKey<S>, Vec<u8>)>,
}

deref_to_net!(World, Node);

impl World {
    /// A centre with authorities of these names.
    pub(crate) fn new(seed: u64, names: &[&str]) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let authorities = names.iter().map(|text| authority(&master, &deployment, text, &mut rng));
        let authorities = authorities.collect();
        let mut world = Self {
            net: Net::new(seed),
            rng,
            master: master.encode().to_vec(),
            deployment,
            authorities,
            grants: Vec::new(),
            made: Arc::new(AtomicUsize::new(0)),
            keypairs: Vec::new(),
        };
        world.skip(Duration::from_secs(100));
        world.net.add::<KgcNode<S, ()>>(Node::Centre, Vec::new());
        world.start_centre();
        world
    }

    /// A centre with the authority `orders`, and a drone to which it grants this.
    pub(crate) fn granted(seed: u64, granted: &[u8]) -> (Self, usize) {
        let mut world = Self::new(seed, &["orders"]);
        let drone = world.add_drone();
        world.grant("orders", drone, Some(granted));
        (world, drone)
    }

    pub(crate) fn server(&mut self) -> AttributeServer<S> {
        let authorities = self.authorities.iter().map(|stored| IssuingAuthority {
            statement: stored.statement.clone(),
            delivery: stored.delivery.clone(),
            maker: match stored.maker {
                Some(maker) => maker(&stored.statement),
                None => Box::new(Toy(self.made.clone())),
            },
        });
        let config = IssuerConfig {
            authorities: authorities.collect(),
            grants: self.grants.clone(),
            interval: INTERVAL,
        };
        DeliveryServer::new(Secret::random(&mut self.rng), AttributeIssuer::new(config).unwrap())
    }

    /// An authority of another scheme, beside the others: its statement about its public key, and its maker.
    pub(crate) fn add_authority(
        &mut self,
        statement: impl FnOnce(Element<S>) -> AuthorityStatement<S>,
        maker: MakerOf,
    ) {
        let master = MasterSecret::<S>::decode(&self.master).unwrap();
        let delivery = SecretScalar::generate(&mut self.rng);
        let statement = statement(delivery.public());
        let statement = master.sign_authority(&self.deployment, statement, &mut self.rng).unwrap();
        let statement = statement.verify(&self.deployment).unwrap();
        self.authorities.push(Stored { statement, delivery, maker: Some(maker) });
        self.restart_centre();
    }

    /// Starts the KGC from its records.
    pub(crate) fn start_centre(&mut self) {
        let records =
            self.centre_records().iter().filter_map(matching!(Either::Left(record) => record.clone()));
        let records: Vec<_> = records.collect();
        let config = KgcConfig::single(
            self.deployment.clone(),
            MasterSecret::decode(&self.master).unwrap(),
            vec![],
            Secret::random(&mut self.rng),
        );
        let kgc = Kgc::new(config, records).unwrap();
        let server = self.server();
        self.start(Node::Centre, KgcNode::new(kgc, Deliveries { keys: server, shares: () }));
        for drone in 0..self.keypairs.len() {
            self.dial(drone);
        }
    }

    pub(crate) fn stop_centre(&mut self) {
        self.stop(Node::Centre);
    }

    pub(crate) fn restart_centre(&mut self) {
        self.stop_centre();
        self.start_centre();
    }

    pub(crate) fn order(&mut self, command: KgcNodeCommand<Infallible>) {
        self.command::<KgcNode<S, ()>>(Node::Centre, command);
    }

    pub(crate) fn grant(&mut self, authority: &str, drone: usize, granted: Option<&[u8]>) {
        let stored = self.authorities.iter().find(|stored| stored.statement.name == name(authority)).unwrap();
        let grant = Grant {
            authority: *stored.statement.fingerprint(),
            serial: self.public(drone).identity.serial,
            revision: self.grants.len() as u64 + 1,
            granted: granted.map(<[u8]>::to_vec),
        };
        self.grants.push(grant.clone());
        self.order(Either::Right(DeliveryCommand::Keys(IssuerCommand::Grant(grant))));
    }

    pub(crate) fn revoke(&mut self, drone: usize) {
        let revoked = vec![Revoked::from(&self.public(drone).identity)];
        self.order(Either::Left(KgcCommand::RevokeDrones(revoked)));
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
        let master = MasterSecret::decode(&self.master).unwrap();
        issue_keypair(&master, &self.deployment, &identity, &mut self.rng)
    }

    pub(crate) fn add_drone(&mut self) -> usize {
        let number = self.keypairs.len();
        let keypair = self.keypair(number as u8 + 1, Role::Edge, START + 1_000_000);
        self.add_drone_with(keypair)
    }

    pub(crate) fn add_drone_with(&mut self, keypair: DroneKeypair<S>) -> usize {
        let drone = self.keypairs.len();
        self.keypairs.push((keypair.public().clone(), keypair.to_bytes().to_vec()));
        let fetcher = fetcher(&self.deployment, keypair, vec![]);
        self.start(Node::Drone(drone), Drone { fetcher, ring: Ring::new() });
        drone
    }

    /// Restarts the drone from its stored state.
    pub(crate) fn restart_drone(&mut self, drone: usize) {
        let ring = self.ring(drone).clone();
        self.stop(Node::Drone(drone));
        let (public, secret) = &self.keypairs[drone];
        let keypair = DroneKeypair::restore(&self.deployment, public.clone(), secret).unwrap();
        let held = ring.values().map(|(statement, key)| HeldAuthority {
            statement: statement.clone(),
            grant: key.as_ref().map(|(grant, _)| *grant),
        });
        let fetcher = fetcher(&self.deployment, keypair, held.collect());
        self.start(Node::Drone(drone), Drone { fetcher, ring });
        self.dial(drone);
    }

    pub(crate) fn dial(&mut self, drone: usize) {
        self.connect(Node::Drone(drone), Node::Centre, Route::Kgc);
    }

    pub(crate) fn hang_up(&mut self, drone: usize) {
        self.disconnect(Node::Centre, Node::Drone(drone));
    }

    pub(crate) fn centre(&self) -> &KgcNode<S, ()> {
        self.machine(Node::Centre)
    }

    pub(crate) fn centre_records(&self) -> &[KgcNodeRecord<Infallible>] {
        self.node::<KgcNode<S, ()>>(Node::Centre).records()
    }

    pub(crate) fn centre_events(&self) -> &[KgcNodeEvent<Infallible>] {
        &self.node::<KgcNode<S, ()>>(Node::Centre).events
    }

    pub(crate) fn public(&self, drone: usize) -> &DronePublicKey<S> {
        &self.keypairs[drone].0
    }

    pub(crate) fn drone_events(&self, drone: usize) -> &[FetchEvent] {
        &self.node::<Drone>(Node::Drone(drone)).events
    }

    /// The drone's stored state.
    pub(crate) fn ring(&self, drone: usize) -> &Ring {
        &self.machine::<Drone>(Node::Drone(drone)).ring
    }

    pub(crate) fn lose_ring(&mut self, drone: usize) {
        self.node_mut::<Drone>(Node::Drone(drone)).machine_mut().expect("up").ring.clear();
    }

    /// Connects the drone and makes it fetch, with any result.
    pub(crate) fn try_fetch(&mut self, drone: usize) {
        self.begin_fetch(drone);
        self.run_for(Duration::from_millis(1));
    }

    fn begin_fetch(&mut self, drone: usize) {
        self.dial(drone);
        if self.is_idle(drone) {
            self.command::<Drone>(Node::Drone(drone), FetchCommand::Fetch);
        }
    }

    /// Connects the drone and runs until it is through with all authorities.
    pub(crate) fn fetch(&mut self, drone: usize) {
        self.begin_fetch(drone);
        let end = self.time() + Duration::from_secs(300);
        while !self.is_idle(drone) {
            assert!(self.step(end), "drone {drone} is not through: {:?}", self.drone_events(drone));
        }
    }

    /// The key held of an authority.
    pub(crate) fn key(&self, drone: usize, authority: &str) -> Option<&[u8]> {
        let (_, key) = self.ring(drone).get(&name(authority))?;
        key.as_ref().map(|(_, key)| key.as_slice())
    }

    /// Number of issued keys in the registry.
    pub(crate) fn issued(&self) -> usize {
        self.centre_records()
            .iter()
            .filter(|record| matches!(record, Either::Right(DeliveryRecord::Keys(_))))
            .count()
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    pub(crate) fn refusals(&self, drone: usize) -> Vec<RefusalReason> {
        let events = self.drone_events(drone).iter();
        events.filter_map(matching!(FetchEvent::Refused(reason) => *reason)).collect()
    }

    pub(crate) fn issuer_events(&self) -> Vec<&IssuerEvent> {
        self.centre_events()
            .iter()
            .filter_map(matching!(Either::Right(DeliveryEvent::Keys(event)) => event))
            .collect()
    }

    /// Changes messages on their way from now on.
    pub(crate) fn change_messages(&mut self, mut change: impl FnMut(&mut Message<S>) + 'static) {
        let deployment = self.deployment.clone();
        self.change_with(move |packet| {
            if let Ok(mut message) = Message::decode(&deployment, &packet.bytes) {
                change(&mut message);
                packet.bytes = message.encode(&deployment);
            }
        });
    }

    /// The last message of this kind on its way, decoded.
    pub(crate) fn last(&self, from: Node, wanted: impl Fn(&Message<S>) -> bool) -> (Packet, Message<S>) {
        let decoded =
            self.recorded.iter().rev().filter(|packet| packet.from == from).map(|packet| {
                (packet.clone(), Message::<S>::decode(&self.deployment, &packet.bytes).unwrap())
            });
        decoded.into_iter().find(|(_, message)| wanted(message)).expect("such a message")
    }

    fn is_idle(&self, drone: usize) -> bool {
        self.machine::<Drone>(Node::Drone(drone)).fetcher.is_idle()
    }
}

fn fetcher(
    deployment: &Deployment<S>,
    keypair: DroneKeypair<S>,
    held: Vec<HeldAuthority>,
) -> Standalone<S, Fetcher<S>> {
    let fetcher = Fetcher::new(deployment, held, FetchTiming::default()).unwrap();
    Standalone::client(deployment.clone(), keypair, fetcher)
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
    Stored { statement: statement.verify(deployment).unwrap(), delivery, maker: None }
}
