//! KGCs of one quorum and drones on the testbed; a test may choose the next message to deliver.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use quiver_ainq::{
    Deployment, EnrolmentRequest, IssuedToken, KgcId, MasterSecret, Name, OperatorPublicKey,
    OperatorSecretKey, Purpose, QuorumStatement, Role, Suite, VerifiedRequest,
};
use quiver_crypto::Secret;
use quiver_enrolment::threshold::{
    EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage, QuorumSuite,
};
use quiver_enrolment::{EnrolmentTrouble, Kgc, KgcConfig, KgcEvent, KgcRecord, Kgcs, MasterShare};
use quiver_group::{Edge, EdgeConfig, EdgeEvent};
use quiver_machine::{RefusalReason, Route};
use quiver_message::{Message, MessageError};
use quiver_quorum::dealer::Dealt;
use quiver_quorum::{PublicShares, QuorumParameters, SecretShare, SigningPackage};
use quiver_testbed::{EPOCH_START, Net, copy_token, deref_to_net, matching, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type Packet = quiver_testbed::Packet<Node>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// A KGC by its index in the list.
    Kgc(usize),
    Drone(usize),
}

/// KGCs that lie or fall silent, and what they have seen of requests, to seal their lies.
pub(crate) struct Liars<S: QuorumSuite> {
    rng: ChaCha20Rng,
    deployment: Deployment<S>,
    operator: OperatorPublicKey<S>,
    ids: Vec<KgcId>,
    seen: BTreeMap<(Node, Node), VerifiedRequest<S>>,
    /// KGCs whose shares are wrong.
    pub(crate) lying: BTreeSet<usize>,
    /// KGCs that take requests, commit themselves, and never sign.
    pub(crate) mute: BTreeSet<usize>,
}

/// A message as it is told apart here: one of enrolment with a quorum, or another.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived")]
pub(crate) enum Said<S: Suite> {
    Commitment(EnrolCommitment),
    Signing(EnrolSigning),
    Share(EnrolShare),
    Done(EnrolDone),
    Other(Message<S>),
}

impl<S: Suite> Said<S> {
    /// The message in these bytes.
    pub(crate) fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Self, MessageError> {
        let message = Message::decode(deployment, bytes)?;
        Ok(match message.extension().transpose()? {
            Some(EnrolmentMessage::Commitment(commitment)) => Self::Commitment(commitment),
            Some(EnrolmentMessage::Signing(signing)) => Self::Signing(signing),
            Some(EnrolmentMessage::Share(share)) => Self::Share(share),
            Some(EnrolmentMessage::Done(done)) => Self::Done(done),
            None => Self::Other(message),
        })
    }

    pub(crate) fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        let message: Message<S> = match self.clone() {
            Self::Commitment(commitment) => EnrolmentMessage::from(commitment).into(),
            Self::Signing(signing) => EnrolmentMessage::from(signing).into(),
            Self::Share(share) => EnrolmentMessage::from(share).into(),
            Self::Done(done) => EnrolmentMessage::from(done).into(),
            Self::Other(message) => message,
        };
        message.encode(deployment)
    }
}

/// All machines, and what they are set up with.
pub(crate) struct World<S: QuorumSuite> {
    net: Net<Node>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    pub(crate) parameters: QuorumParameters,
    shares: Vec<Vec<u8>>,
    pub(crate) statement: QuorumStatement<S>,
    /// The shares of before a refresh, and the statement about them.
    former: Option<(Vec<Vec<u8>>, QuorumStatement<S>)>,
    /// KGCs that are started with those, as if they had been put back from a copy.
    pub(crate) put_back: BTreeSet<usize>,
    pub(crate) liars: Rc<RefCell<Liars<S>>>,
    /// Identifiers of the KGCs, by index.
    pub(crate) kgc_ids: Vec<KgcId>,
    /// One for each drone.
    tokens: Vec<IssuedToken<S>>,
    /// The KGCs that each drone dials, by their places.
    dials: Vec<Vec<usize>>,
}

deref_to_net!(World<S: QuorumSuite>, Node);

/// The quorum's statement, signed by the KGCs 1 to t.
pub(crate) fn statement<S: QuorumSuite>(
    deployment: &Deployment<S>,
    shares: &[SecretShare<S>],
    public: &PublicShares<S>,
    rng: &mut ChaCha20Rng,
) -> QuorumStatement<S> {
    let signers = &shares[..usize::from(public.parameters().threshold())];
    let drawn: Vec<_> = signers.iter().map(|share| share.commit(rng).unwrap()).collect();
    let commitments = signers.iter().zip(&drawn).map(|(share, (_, commitment))| (share.kgc(), *commitment));
    let message = Purpose::Quorum.message(deployment, &public.encode());
    let package = SigningPackage::new(public.version(), message, commitments).unwrap();
    let parts = signers.iter().zip(drawn);
    let parts = parts.map(|(share, (nonces, _))| (share.kgc(), share.sign(nonces, &package).unwrap()));
    let signature = public.aggregate_statement(&package, &parts.collect()).unwrap();
    QuorumStatement::new(public.encode(), signature).unwrap()
}

impl<S: QuorumSuite> Liars<S> {
    /// The packets that arrive in place of a message.
    fn twist(&mut self, packet: Packet) -> Vec<Packet> {
        match (packet.from, packet.to, Said::decode(&self.deployment, &packet.bytes)) {
            (_, Node::Kgc(place), Ok(Said::Other(Message::EnrolRequest(message)))) => {
                let request = EnrolmentRequest::<S>::decode(&message.request).unwrap();
                let (id, operators) = (self.ids[place], [self.operator]);
                let verified = request.verify(&self.deployment, &operators, id, EPOCH_START).unwrap();
                self.seen.insert((packet.to, packet.from), verified);
            }
            (Node::Kgc(place), _, Ok(Said::Share(_))) if self.mute.contains(&place) => return vec![],
            (Node::Kgc(place), _, Ok(Said::Share(share))) if self.lying.contains(&place) => {
                let wrong = S::scalar_encode(&S::scalar_random(&mut self.rng));
                let (id, request) = (self.ids[place], &self.seen[&(packet.from, packet.to)]);
                let sealed = request.seal_share(id, &share.package_digest, &*wrong, &mut self.rng).unwrap();
                let lie = EnrolShare { share: sealed.encode(), ..share };
                let bytes = Said::Share(lie).encode(&self.deployment);
                return vec![Packet { bytes, ..packet }];
            }
            _ => {}
        }
        vec![packet]
    }
}

impl<S: QuorumSuite> World<S> {
    /// A quorum of `threshold` out of `members`, all of it running.
    pub(crate) fn new(seed: u64, members: u16, threshold: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let parameters = QuorumParameters::new(members, threshold).unwrap();
        let dealt = quiver_quorum::dealer::deal::<S>(parameters, &mut rng).unwrap();
        Self::of(seed, rng, dealt)
    }

    /// A quorum whose shares were refreshed once.
    pub(crate) fn refreshed(seed: u64, members: u16, threshold: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let parameters = QuorumParameters::new(members, threshold).unwrap();
        let master = MasterSecret::<S>::generate(&mut rng);
        let mut deal = || quiver_quorum::dealer::split(&master, parameters, &mut rng).unwrap();
        let ((old, old_public), (shares, public)) = (deal(), deal());
        let points = public.shares().map(|(_, point)| *point).collect();
        let public = PublicShares::new(parameters, 1, *public.master(), points).unwrap();
        let refreshed = shares.iter().map(|share| {
            let mut bytes = share.encode().to_vec();
            // The version stands before the master key and the secret.
            let version = bytes.len() - S::POINT_LEN - share.expose().len() - 4;
            bytes[version..version + 4].copy_from_slice(&1_u32.to_be_bytes());
            SecretShare::decode(&bytes).unwrap()
        });
        let refreshed = refreshed.collect();
        let mut world = Self::of(seed, rng, (refreshed, public));
        let statement = statement(&world.deployment, &old, &old_public, &mut world.rng);
        world.former = Some((old.iter().map(|share| share.encode().to_vec()).collect(), statement));
        world
    }

    fn of(seed: u64, mut rng: ChaCha20Rng, (shares, public): Dealt<S>) -> Self {
        let parameters = public.parameters();
        let members = parameters.members();
        let deployment = Deployment::new(Name::new("test").unwrap(), *public.master());
        let operator = OperatorSecretKey::generate(&mut rng);
        let statement = statement(&deployment, &shares, &public, &mut rng);
        let liars = Rc::new(RefCell::new(Liars {
            rng: ChaCha20Rng::seed_from_u64(!seed),
            deployment: deployment.clone(),
            operator: operator.public(),
            ids: Vec::new(),
            seen: BTreeMap::new(),
            lying: BTreeSet::new(),
            mute: BTreeSet::new(),
        }));
        let mut world = Self {
            net: Net::new(seed),
            rng,
            deployment,
            operator,
            parameters,
            shares: shares.iter().map(|share| share.encode().to_vec()).collect(),
            statement,
            former: None,
            put_back: BTreeSet::new(),
            liars: Rc::clone(&liars),
            kgc_ids: Vec::new(),
            tokens: Vec::new(),
            dials: Vec::new(),
        };
        world.skip(Duration::from_secs(100));
        world.tamper = Some(Box::new(move |packet| liars.borrow_mut().twist(packet)));
        for id in 1..=members {
            world.add_kgc(id);
        }
        world
    }

    /// A KGC with the share of this id. A second one with the same id is a KGC that keeps two books.
    pub(crate) fn add_kgc(&mut self, id: KgcId) -> usize {
        let place = self.kgc_ids.len();
        self.kgc_ids.push(id);
        self.liars.borrow_mut().ids.push(id);
        self.net.add::<Kgc<S>>(Node::Kgc(place), Vec::new());
        self.start_kgc(place);
        place
    }

    pub(crate) fn share(&self, id: KgcId) -> MasterShare<S> {
        let share = SecretShare::decode(&self.shares[usize::from(id) - 1]).unwrap();
        MasterShare::new(&self.deployment, share, &self.statement).unwrap()
    }

    /// The share that a KGC starts with.
    fn share_at(&self, place: usize) -> MasterShare<S> {
        let id = self.kgc_ids[place];
        match &self.former {
            Some((shares, statement)) if self.put_back.contains(&place) => {
                let share = SecretShare::decode(&shares[usize::from(id) - 1]).unwrap();
                MasterShare::new(&self.deployment, share, statement).unwrap()
            }
            _ => self.share(id),
        }
    }

    pub(crate) fn start_kgc(&mut self, place: usize) {
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: self.share_at(place).into(),
            id: self.kgc_ids[place],
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 86_400,
        };
        let kgc = Kgc::<S>::new(config, self.kgc_records(place).to_vec()).unwrap();
        self.start(Node::Kgc(place), kgc);
        for drone in 0..self.tokens.len() {
            self.dial(drone, place);
        }
    }

    /// Starts all KGCs that are down.
    pub(crate) fn start_all_kgcs(&mut self) {
        for place in 0..self.kgc_ids.len() {
            if !self.alive(Node::Kgc(place)) {
                self.start_kgc(place);
            }
        }
    }

    pub(crate) fn token(&mut self, name: &str) -> IssuedToken<S> {
        let grant = token_grant(name, Role::Edge, "alpha");
        self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap()
    }

    /// A drone with this token that dials these KGCs.
    pub(crate) fn add_drone(&mut self, token: &IssuedToken<S>, dials: Vec<usize>) -> usize {
        let drone = self.tokens.len();
        self.tokens.push(copy_token(token));
        self.dials.push(dials);
        self.net.add::<Edge<S>>(Node::Drone(drone), Vec::new());
        self.start_drone(drone);
        drone
    }

    /// Adds a drone with a token of its own that dials all KGCs.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        let token = self.token(name);
        self.add_drone(&token, (0..self.kgc_ids.len()).collect())
    }

    pub(crate) fn start_drone(&mut self, drone: usize) {
        let config = EdgeConfig {
            kgcs: Kgcs::quorum((1..=self.parameters.members()).collect()),
            ..EdgeConfig::new(self.deployment.clone(), None, Some(copy_token(&self.tokens[drone])))
        };
        let state = self.node::<Edge<S>>(Node::Drone(drone)).records().last();
        let machine = Edge::<S>::new(config, state).unwrap();
        self.start(Node::Drone(drone), machine);
        for place in 0..self.kgc_ids.len() {
            self.dial(drone, place);
        }
    }

    fn dial(&mut self, drone: usize, place: usize) {
        if self.dials[drone].contains(&place) {
            self.connect(Node::Drone(drone), Node::Kgc(place), Route::Kgc);
        }
    }

    pub(crate) fn set_lying(&self, place: usize, lies: bool) {
        let lying = &mut self.liars.borrow_mut().lying;
        if lies {
            lying.insert(place)
        } else {
            lying.remove(&place)
        };
    }

    pub(crate) fn set_mute(&self, place: usize) {
        self.liars.borrow_mut().mute.insert(place);
    }

    pub(crate) fn kgc(&self, place: usize) -> &Kgc<S> {
        self.machine(Node::Kgc(place))
    }

    pub(crate) fn kgc_mut(&mut self, place: usize) -> &mut Kgc<S> {
        self.node_mut(Node::Kgc(place)).machine_mut().unwrap()
    }

    pub(crate) fn kgc_events(&self, place: usize) -> &[KgcEvent] {
        &self.node::<Kgc<S>>(Node::Kgc(place)).events
    }

    pub(crate) fn kgc_records(&self, place: usize) -> &[KgcRecord] {
        self.node::<Kgc<S>>(Node::Kgc(place)).records()
    }

    pub(crate) fn drone(&self, drone: usize) -> &Edge<S> {
        self.machine(Node::Drone(drone))
    }

    pub(crate) fn drone_count(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn drone_events(&self, drone: usize) -> &[EdgeEvent] {
        &self.node::<Edge<S>>(Node::Drone(drone)).events
    }

    pub(crate) fn decode(&self, bytes: &[u8]) -> Said<S> {
        Said::decode(&self.deployment, bytes).unwrap()
    }

    pub(crate) fn is_enrolled(&self, drone: usize) -> bool {
        let machine = self.node::<Edge<S>>(Node::Drone(drone)).machine();
        machine.is_some_and(|machine| machine.keypair().is_some())
    }

    pub(crate) fn trouble(&self, drone: usize) -> Vec<&EnrolmentTrouble> {
        self.drone_events(drone)
            .iter()
            .filter_map(matching!(EdgeEvent::EnrolmentTrouble(trouble) => trouble))
            .collect()
    }

    pub(crate) fn refused(&self, drone: usize) -> Vec<RefusalReason> {
        self.drone_events(drone).iter().filter_map(matching!(EdgeEvent::Refused(reason) => *reason)).collect()
    }

    /// The requests that this KGC has bound tokens to, by token.
    pub(crate) fn pins(&self, place: usize) -> BTreeMap<[u8; 16], BTreeSet<[u8; 32]>> {
        let mut pins: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for record in self.kgc_records(place) {
            if let KgcRecord::Pinned { token_id, pin, .. } = record {
                pins.entry(*token_id).or_default().insert(*pin);
            }
        }
        pins
    }
}
