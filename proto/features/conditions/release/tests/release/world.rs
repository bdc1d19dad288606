//! A quorum of KGCs that release shares, and drones that collect them, on the testbed.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, DronePublicKey, Identity, MasterSecret,
    RevocationStatement, Revoked, Ristretto255, Role,
};
use quiver_crypto::Secret;
use quiver_delivery::{DeliveryServer, Standalone};
use quiver_ibe::{Condition, Dealing, IdentityKey, MasterShare, PublicShares};
use quiver_key_release::{
    Approval, Audience, CollectCommand, CollectEvent, CollectTiming, Collector, Holding, ReleaseAuthority,
    ReleaseCommand, ReleaseConfig, ReleaseEvent, ReleaseParameters, ReleasePolicy, ShareReleased,
    ShareReleaser, ShareServer, Shortfall, Verdict,
};
use quiver_machine::{Rate, Route};
use quiver_message::Message;
use quiver_pairing::{Scalar, scalar_decode};
use quiver_testbed::{Net, NodeSet, Partition, deref_to_net, issue_keypair, matching};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) type S = Ristretto255;

pub(crate) use quiver_testbed::{EPOCH_START as START, name};
pub(crate) const RATE: Rate = Rate { burst: 4, refill: Duration::from_secs(2) };
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

/// A condition that is met so many seconds after the start.
pub(crate) fn not_before(seconds: u64) -> Condition {
    Condition::not_before(START + seconds).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// A KGC by index, from 1.
    Kgc(u16),
    Drone(usize),
}

/// A KGC that does nothing but release shares.
type Server = Standalone<S, ShareServer<S>>;

/// A drone that does nothing but collect keys.
type Client = Standalone<S, Collector<S>>;

pub(crate) type Packet = quiver_testbed::Packet<Node>;

pub(crate) struct World {
    net: Net<Node>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    master: MasterSecret<S>,
    shares: Vec<MasterShare>,
    pub(crate) authority: ReleaseAuthority<S>,
    pub(crate) commands: Vec<ReleaseCommand>,
    /// Keypairs of the drones.
    pub(crate) publics: Vec<DronePublicKey<S>>,
    pub(crate) timing: CollectTiming,
}

deref_to_net!(World, Node);

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

    /// The same with a drone.
    pub(crate) fn with_drone(seed: u64, t: u16, n: u16) -> (Self, usize) {
        let mut world = Self::new(seed, t, n);
        let drone = world.add_drone();
        (world, drone)
    }

    pub(crate) fn without_policies(seed: u64, t: u16, n: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let dealing = Dealing::deal(t, n, &mut rng).unwrap();
        let parameters = ReleaseParameters { version: 1, publics: dealing.public_shares().unwrap() };
        let authority = signed(&master, &deployment, &parameters, &mut rng);
        let mut world = Self {
            net: Net::new(seed),
            rng,
            deployment,
            master,
            shares: dealing.shares().to_vec(),
            authority,
            commands: Vec::new(),
            publics: Vec::new(),
            timing: CollectTiming { ahead: 0, ..CollectTiming::default() },
        };
        world.skip(Duration::from_secs(100));
        for kgc in 1..=n {
            world.start_kgc(kgc);
        }
        world
    }

    pub(crate) fn share(&self, kgc: u16) -> MasterShare {
        self.shares.iter().find(|share| share.index() == kgc).unwrap().clone()
    }

    /// Starts a KGC from what its registry would have.
    pub(crate) fn start_kgc(&mut self, kgc: u16) {
        let approvals = self.approvals();
        self.add_server(kgc, kgc, approvals);
        for drone in 0..self.publics.len() {
            self.dial(drone, kgc);
        }
    }

    /// A node that claims to be KGC `kgc` and has its share, under another name.
    pub(crate) fn add_impostor(&mut self, node: u16, kgc: u16) {
        self.add_server(node, kgc, vec![]);
    }

    fn add_server(&mut self, node: u16, kgc: u16, approvals: Vec<Approval>) {
        let config = ReleaseConfig {
            holding: Some(Holding::new(self.authority.clone(), self.share(kgc)).unwrap()),
            policies: self.policies(),
            approvals,
            rate: RATE,
        };
        self.net.add::<Server>(Node::Kgc(node), Vec::new());
        self.start_server(node, config);
    }

    pub(crate) fn start_server(&mut self, node: u16, config: ReleaseConfig<S>) {
        let cookie_key = Secret::random(&mut self.rng);
        let server = DeliveryServer::new(cookie_key, ShareReleaser::new(config));
        let machine = Standalone::server(self.deployment.clone(), server);
        self.start(Node::Kgc(node), machine);
    }

    pub(crate) fn dial(&mut self, drone: usize, kgc: u16) {
        self.connect(Node::Drone(drone), Node::Kgc(kgc), Route::Kgc);
    }

    /// Makes these KGCs reachable but silent.
    pub(crate) fn set_mute(&mut self, kgcs: BTreeSet<u16>) {
        self.network.heal();
        let mute = NodeSet::only(kgcs.into_iter().map(Node::Kgc));
        self.network.part(Partition::one_way(mute, NodeSet::Everyone));
    }

    fn kgcs(&self) -> Vec<u16> {
        let kgc = |node| match node {
            Node::Kgc(kgc) if self.alive(node) => Some(kgc),
            _ => None,
        };
        self.ids().into_iter().filter_map(kgc).collect()
    }

    fn server(&mut self, kgc: u16) -> &mut Server {
        self.node_mut(Node::Kgc(kgc)).machine_mut().expect("up")
    }

    pub(crate) fn kgc_events(&self, kgc: u16) -> &[ReleaseEvent] {
        &self.node::<Server>(Node::Kgc(kgc)).events
    }

    pub(crate) fn kgc_records(&self, kgc: u16) -> &[ShareReleased] {
        self.node::<Server>(Node::Kgc(kgc)).records()
    }

    pub(crate) fn drone(&self, drone: usize) -> &Client {
        self.machine(Node::Drone(drone))
    }

    pub(crate) fn drone_events(&self, drone: usize) -> &[CollectEvent] {
        &self.node::<Client>(Node::Drone(drone)).events
    }

    fn policies(&self) -> Vec<ReleasePolicy> {
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
        for kgc in kgcs {
            self.command::<Server>(Node::Kgc(*kgc), command.clone());
        }
    }

    /// A policy of every operator for a pattern.
    pub(crate) fn allow(&mut self, pattern: &str, groups: Option<&[&str]>) {
        let audience =
            groups.map(|groups| Audience { groups: groups.iter().map(|group| name(group)).collect() });
        let revision = self.commands.len() as u64 + 1;
        let policy = ReleasePolicy { revision, pattern: pattern.parse().unwrap(), audience };
        self.commands.push(ReleaseCommand::Policy(policy.clone()));
        let all = self.kgcs();
        self.order(&all, &ReleaseCommand::Policy(policy));
    }

    /// A decision of these operators about a mission.
    pub(crate) fn approve(&mut self, kgcs: &[u16], condition: &Condition, approved: bool) {
        let revision = self.commands.len() as u64 + 1;
        let approval = Approval { revision, condition: condition.clone(), approved };
        self.commands.push(ReleaseCommand::Approval(approval.clone()));
        self.order(kgcs, &ReleaseCommand::Approval(approval));
    }

    pub(crate) fn revoke(&mut self, drone: usize) {
        let revoked = vec![Revoked::from(&self.publics[drone].identity)];
        let now = self.clock().unix;
        let list = RevocationStatement { number: 1, issued: now, next_update: now + 86_400, revoked };
        let signed = self.master.sign_revocations(&self.deployment, list, &mut self.rng).unwrap();
        for kgc in self.kgcs() {
            self.server(kgc).offer_revocations(&signed.encode()).unwrap();
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

    /// Ends the refresh at this KGC.
    pub(crate) fn hold(&mut self, kgc: u16) {
        let holding = Holding::new(self.authority.clone(), self.share(kgc)).unwrap();
        self.server(kgc).part_mut().issuer_mut().hold(holding);
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
        let all = self.kgcs();
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
        issue_keypair(&self.master, &self.deployment, &identity, &mut self.rng)
    }

    pub(crate) fn add_drone(&mut self) -> usize {
        let keypair = self.keypair(self.publics.len() as u8 + 1, &["alpha"], START + 1_000_000);
        self.add_drone_with(keypair)
    }

    /// A drone that is connected to every KGC and knows nothing of the master key.
    pub(crate) fn add_drone_with(&mut self, keypair: DroneKeypair<S>) -> usize {
        let public = keypair.public().clone();
        let collector = Collector::new(None, self.timing);
        let machine = Standalone::client(self.deployment.clone(), keypair, collector);
        let drone = self.publics.len();
        self.publics.push(public);
        self.start(Node::Drone(drone), machine);
        let all = self.kgcs();
        for kgc in all {
            self.dial(drone, kgc);
        }
        drone
    }

    /// Tells the drone to collect a key, and does not wait for it.
    pub(crate) fn begin(
        &mut self,
        drone: usize,
        condition: Option<&Condition>,
        patience: Duration,
        wait: bool,
    ) {
        let command = CollectCommand::Collect { condition: condition.cloned(), patience, wait };
        self.command::<Client>(Node::Drone(drone), command);
    }

    /// Runs until the drone has nothing more to do.
    pub(crate) fn finish(&mut self, drone: usize) {
        let end = self.time() + Duration::from_secs(100_000);
        let mut steps = 0;
        while !self.drone(drone).is_idle() {
            steps += 1;
            assert!(self.step(end) && steps < 100_000, "not through: {:?}", self.drone_events(drone));
        }
    }

    /// Makes the drone collect a key, with any result.
    pub(crate) fn collect(&mut self, drone: usize, condition: &Condition) -> Result<IdentityKey, Shortfall> {
        self.begin(drone, Some(condition), PATIENCE, false);
        self.finish(drone);
        self.outcome(drone, condition)
    }

    /// The last result of collecting a key.
    pub(crate) fn outcome(&self, drone: usize, wanted: &Condition) -> Result<IdentityKey, Shortfall> {
        let outcome = self.drone_events(drone).iter().rev().find_map(|event| match event {
            CollectEvent::Collected { condition, key } if condition == wanted => {
                Some(Ok(IdentityKey::clone(key)))
            }
            CollectEvent::NotCollected(shortfall) if shortfall.condition.as_ref() == Some(wanted) => {
                Some(Err(shortfall.clone()))
            }
            _ => None,
        });
        outcome.expect("an outcome")
    }

    /// Returns true if a key opens what was encrypted to the condition.
    pub(crate) fn opens(&mut self, key: &IdentityKey, condition: &Condition) -> bool {
        let point = quiver_ibe::IdentityPoint::of(condition);
        let sealed = self.authority.master().encrypt(&point, b"orders", &mut self.rng).unwrap();
        key.decrypt(&sealed).is_ok_and(|opened| *opened == b"orders")
    }

    /// KGCs that the drone blamed for wrong shares.
    pub(crate) fn culprits(&self, drone: usize) -> Vec<u16> {
        self.drone_events(drone)
            .iter()
            .filter_map(matching!(CollectEvent::Culprit { kgc, .. } => *kgc))
            .collect()
    }

    /// Number of shares that all KGCs have released.
    pub(crate) fn released(&self) -> usize {
        self.kgcs().into_iter().map(|kgc| self.kgc_records(kgc).len()).sum()
    }

    /// The last message of this kind on its way, decoded.
    pub(crate) fn last(&self, wanted: impl Fn(&Message<S>) -> bool) -> (Packet, Message<S>) {
        let decoded =
            self.recorded.iter().rev().map(|packet| {
                (packet.clone(), Message::<S>::decode(&self.deployment, &packet.bytes).unwrap())
            });
        decoded.into_iter().find(|(_, message)| wanted(message)).expect("such a message")
    }
}

/// The verdict of a KGC in a shortfall.
pub(crate) fn verdict(shortfall: &Shortfall, kgc: u16) -> Option<Verdict> {
    shortfall.verdicts.iter().find(|(known, _)| *known == Some(kgc)).map(|(_, verdict)| *verdict)
}
