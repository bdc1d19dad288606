//! KGCs of one quorum and drones, with a virtual clock: a test chooses what is delivered next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::{
    Deployment, EnrolmentRequest, IssuedToken, KgcId, Name, OperatorSecretKey, Purpose, QuorumStatement,
    Role, TokenGrant, VerifiedRequest,
};
use quiver_crypto::Secret;
use quiver_message::{EnrolShare, Message};
use quiver_quorum::{Parameters, PublicShares, SecretShare, SigningPackage};
use quiver_role::edge::EdgeTiming;
use quiver_role::{
    Destination, Edge, EdgeConfig, EdgeEvent, EnrolmentTrouble, Input, Kgc, KgcConfig, KgcEvent, KgcRecord,
    Kgcs, Machine, MasterShare, Now, Output, Peer, QuorumSuite, Reason, Route, Snapshot, Via,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// 2027-01-01, in seconds since 1970.
const START: u64 = 1_798_761_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// By its place in the list.
    Kgc(usize),
    Drone(usize),
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) bytes: Vec<u8>,
}

/// A KGC and what a driver would keep for it.
pub(crate) struct Seat<S: QuorumSuite> {
    pub(crate) id: KgcId,
    pub(crate) machine: Option<Kgc<S>>,
    pub(crate) records: Vec<KgcRecord>,
    pub(crate) events: Vec<KgcEvent>,
    /// Its shares are wrong.
    pub(crate) lies: bool,
    /// It takes requests, commits itself, and never signs.
    pub(crate) mute: bool,
    /// What it has seen of requests, to seal its lies.
    seen: BTreeMap<Node, VerifiedRequest<S>>,
    deadline: Option<Duration>,
}

/// A drone and what a driver would keep for it.
pub(crate) struct Drone<S: QuorumSuite> {
    pub(crate) machine: Option<Edge<S>>,
    token: IssuedToken<S>,
    pub(crate) state: Option<Snapshot>,
    pub(crate) events: Vec<EdgeEvent>,
    /// The KGCs it dials, by their places.
    pub(crate) dials: Vec<usize>,
    deadline: Option<Duration>,
}

/// All machines, and what is between them.
pub(crate) struct World<S: QuorumSuite> {
    pub(crate) clock: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    pub(crate) parameters: Parameters,
    shares: Vec<Vec<u8>>,
    pub(crate) statement: QuorumStatement<S>,
    pub(crate) seats: Vec<Seat<S>>,
    pub(crate) drones: Vec<Drone<S>>,
    pub(crate) queue: Vec<Flight>,
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    /// This KGC dies after so many more outputs: what it had yet to persist or send is lost.
    pub(crate) doom: Option<(usize, usize)>,
    /// Everything that was ever sent.
    pub(crate) sent: Vec<Flight>,
}

/// What the quorum signs about itself, by the KGCs 1 to t.
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

impl<S: QuorumSuite> World<S> {
    /// A quorum of `threshold` out of `members`, all of it running.
    pub(crate) fn new(seed: u64, members: u16, threshold: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let parameters = Parameters::new(members, threshold).unwrap();
        let (shares, public) = quiver_quorum::dealer::deal::<S>(parameters, &mut rng).unwrap();
        let deployment = Deployment::new(Name::new("test").unwrap(), *public.master());
        let operator = OperatorSecretKey::generate(&mut rng);
        let statement = statement(&deployment, &shares, &public, &mut rng);
        let mut world = Self {
            clock: Duration::from_secs(100),
            rng,
            deployment,
            operator,
            parameters,
            shares: shares.iter().map(|share| share.encode().to_vec()).collect(),
            statement,
            seats: Vec::new(),
            drones: Vec::new(),
            queue: Vec::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            doom: None,
            sent: Vec::new(),
        };
        for id in 1..=members {
            world.add_kgc(id);
        }
        world
    }

    /// A KGC with the share of this id. A second one with the same id is a KGC that keeps two books.
    pub(crate) fn add_kgc(&mut self, id: KgcId) -> usize {
        let place = self.seats.len();
        self.seats.push(Seat {
            id,
            machine: None,
            records: Vec::new(),
            events: Vec::new(),
            lies: false,
            mute: false,
            seen: BTreeMap::new(),
            deadline: None,
        });
        self.start_kgc(place);
        place
    }

    pub(crate) fn share(&self, id: KgcId) -> MasterShare<S> {
        let share = SecretShare::decode(&self.shares[usize::from(id) - 1]).unwrap();
        MasterShare::new(&self.deployment, share, &self.statement).unwrap()
    }

    pub(crate) fn start_kgc(&mut self, place: usize) {
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: self.share(self.seats[place].id).into(),
            id: self.seats[place].id,
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 86_400,
        };
        let seat = &mut self.seats[place];
        seat.machine = Some(Kgc::new(config, seat.records.clone()).unwrap());
        self.settle(Node::Kgc(place));
        for drone in 0..self.drones.len() {
            self.connect(drone, place);
        }
    }

    pub(crate) fn token(&mut self, name: &str) -> IssuedToken<S> {
        let grant = TokenGrant {
            name: Name::new(name).unwrap(),
            role: Role::Edge,
            groups: vec![Name::new("alpha").unwrap()],
            not_after: START + 10_000_000,
            expiry: START + 1_000_000,
        };
        self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap()
    }

    /// A drone with this token that dials these KGCs.
    pub(crate) fn add_drone(&mut self, token: &IssuedToken<S>, dials: Vec<usize>) -> usize {
        let token = IssuedToken::decode(&token.encode()).unwrap();
        let events = Vec::new();
        self.drones.push(Drone { machine: None, token, state: None, events, dials, deadline: None });
        let drone = self.drones.len() - 1;
        self.start_drone(drone);
        drone
    }

    /// A drone with a token of its own that dials everybody.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        let token = self.token(name);
        self.add_drone(&token, (0..self.seats.len()).collect())
    }

    pub(crate) fn start_drone(&mut self, drone: usize) {
        let config = EdgeConfig {
            deployment: self.deployment.clone(),
            group: None,
            token: Some(IssuedToken::decode(&self.drones[drone].token.encode()).unwrap()),
            kgcs: Kgcs::quorum((1..=self.parameters.members()).collect()),
            timing: EdgeTiming::default(),
        };
        let machine = Edge::new(config, self.drones[drone].state.as_ref()).unwrap();
        self.drones[drone].machine = Some(machine);
        self.settle(Node::Drone(drone));
        for place in 0..self.seats.len() {
            self.connect(drone, place);
        }
    }

    fn alive(&self, node: Node) -> bool {
        match node {
            Node::Kgc(place) => self.seats[place].machine.is_some(),
            Node::Drone(drone) => self.drones[drone].machine.is_some(),
        }
    }

    fn connect(&mut self, drone: usize, place: usize) {
        let (here, there) = (Node::Drone(drone), Node::Kgc(place));
        let known = self.handles.contains_key(&(here, there));
        if known || !self.drones[drone].dials.contains(&place) || !self.alive(here) || !self.alive(there) {
            return;
        }
        for (at, of, route) in [(there, here, Route::Inbound), (here, there, Route::Kgc)] {
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Input::Connected { peer, route });
        }
    }

    /// Ends a process: its memory and its connections are gone, what it sent is still on its way.
    pub(crate) fn crash(&mut self, node: Node) {
        match node {
            Node::Kgc(place) => self.seats[place].machine = None,
            Node::Drone(drone) => self.drones[drone].machine = None,
        }
        let gone: Vec<_> = self.handles.keys().copied().filter(|(a, b)| *a == node || *b == node).collect();
        for (at, of) in gone {
            let peer = self.handles.remove(&(at, of)).unwrap();
            self.feed(at, Input::Disconnected { peer });
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    pub(crate) fn peer(&self, at: Node, of: Node) -> Option<Peer> {
        self.handles.get(&(at, of)).copied()
    }

    pub(crate) fn feed(&mut self, node: Node, input: Input<'_, ()>) {
        fn cast<'a, D>(input: &Input<'a, ()>) -> Input<'a, D> {
            match *input {
                Input::Connected { peer, route } => Input::Connected { peer, route },
                Input::Disconnected { peer } => Input::Disconnected { peer },
                Input::Received { from, via, bytes } => Input::Received { from, via, bytes },
                Input::Timeout | Input::Resumed | Input::Command(_) => Input::Timeout,
            }
        }
        let now = self.now();
        match node {
            Node::Kgc(place) => {
                let Some(machine) = &mut self.seats[place].machine else { return };
                machine.handle_input(now, cast(&input), &mut self.rng);
            }
            Node::Drone(drone) => {
                let Some(machine) = &mut self.drones[drone].machine else { return };
                machine.handle_input(now, cast(&input), &mut self.rng);
            }
        }
        self.settle(node);
    }

    /// Drains a machine's outputs as a driver would.
    fn settle(&mut self, node: Node) {
        let mut flights = Vec::new();
        let mut dies = false;
        match node {
            Node::Kgc(place) => {
                let seat = &mut self.seats[place];
                let Some(machine) = &mut seat.machine else { return };
                loop {
                    let output = machine.poll_output();
                    if let Output::Timeout(deadline) = output {
                        seat.deadline = deadline;
                        break;
                    }
                    match self.doom.as_mut().filter(|(doomed, _)| *doomed == place) {
                        Some((_, 0)) => {
                            dies = true;
                            break;
                        }
                        Some((_, left)) => *left -= 1,
                        None => {}
                    }
                    match output {
                        Output::Persist(record) => seat.records.push(record),
                        Output::Transmit { to: Destination::Peer(to), payload } => {
                            flights.push((to, payload));
                        }
                        Output::Event(event) => seat.events.push(event),
                        _ => {}
                    }
                }
            }
            Node::Drone(drone) => {
                let drone = &mut self.drones[drone];
                let Some(machine) = &mut drone.machine else { return };
                loop {
                    match machine.poll_output() {
                        Output::Timeout(deadline) => {
                            drone.deadline = deadline;
                            break;
                        }
                        Output::Persist(state) => drone.state = Some(state),
                        Output::Transmit { to: Destination::Peer(to), payload } => {
                            flights.push((to, payload));
                        }
                        Output::Event(event) => drone.events.push(event),
                        _ => {}
                    }
                }
            }
        }
        for (peer, bytes) in flights {
            let to = self.handles.iter().find(|((at, _), handle)| *at == node && **handle == peer);
            let Some(((_, to), _)) = to else { continue };
            let flight = self.twist(Flight { from: node, to: *to, bytes });
            self.sent.extend(flight.clone());
            self.queue.extend(flight);
        }
        if let (true, Node::Kgc(place)) = (dies, node) {
            self.doom = None;
            self.crash(Node::Kgc(place));
        }
    }

    pub(crate) fn decode(&self, bytes: &[u8]) -> Message<S> {
        Message::decode(&self.deployment, bytes).unwrap()
    }

    /// What a KGC that lies, or says nothing more, sends in place of this.
    fn twist(&mut self, flight: Flight) -> Option<Flight> {
        let Node::Kgc(place) = flight.from else { return Some(flight) };
        let Message::EnrolShare(share) = self.decode(&flight.bytes) else { return Some(flight) };
        if self.seats[place].mute {
            return None;
        }
        if !self.seats[place].lies {
            return Some(flight);
        }
        let wrong = S::scalar_encode(&S::scalar_random(&mut self.rng));
        let seat = &self.seats[place];
        let request = &seat.seen[&flight.to];
        let sealed = request.seal_share(seat.id, &share.package_digest, &*wrong, &mut self.rng).unwrap();
        let lie = EnrolShare { share: sealed.encode(), ..share };
        Some(Flight { bytes: Message::<S>::EnrolShare(lie).encode(&self.deployment), ..flight })
    }

    /// Delivers the message at this place of the queue.
    pub(crate) fn deliver(&mut self, place: usize) {
        let Flight { from, to, bytes } = self.queue.remove(place);
        if let (Node::Kgc(seat), Message::EnrolRequest(message)) = (to, self.decode(&bytes)) {
            let request = EnrolmentRequest::<S>::decode(&message.request).unwrap();
            let id = self.seats[seat].id;
            let operators = [self.operator.public()];
            let verified = request.verify(&self.deployment, &operators, id, self.now().unix).unwrap();
            self.seats[seat].seen.insert(from, verified);
        }
        if let Some(from) = self.peer(to, from) {
            self.feed(to, Input::Received { from, via: Via::Peer, bytes: &bytes });
        }
    }

    /// Lets the clock run to the next deadline, not beyond `end`. Returns false if there is none.
    pub(crate) fn wait(&mut self, end: Duration) -> bool {
        let kgcs = self.seats.iter().enumerate().map(|(place, seat)| (Node::Kgc(place), seat.deadline));
        let drones = self.drones.iter().enumerate().map(|(drone, of)| (Node::Drone(drone), of.deadline));
        let due = kgcs.chain(drones).filter(|(node, _)| self.alive(*node));
        let next = due.filter_map(|(node, deadline)| Some((deadline?, node))).min();
        match next {
            Some((deadline, node)) if deadline <= end => {
                self.clock = self.clock.max(deadline);
                self.feed(node, Input::Timeout);
                true
            }
            _ => {
                self.clock = end;
                false
            }
        }
    }

    /// Delivers everything in the order in which it was sent, for so long.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        for _ in 0..100_000 {
            if !self.queue.is_empty() {
                self.deliver(0);
            } else if !self.wait(end) {
                return;
            }
        }
        panic!("the machines never come to rest");
    }

    pub(crate) fn is_enrolled(&self, drone: usize) -> bool {
        self.drones[drone].machine.as_ref().is_some_and(|machine| machine.keypair().is_some())
    }

    pub(crate) fn trouble(&self, drone: usize) -> Vec<&EnrolmentTrouble> {
        let events = self.drones[drone].events.iter();
        let trouble = events.filter_map(|event| match event {
            EdgeEvent::EnrolmentTrouble(trouble) => Some(trouble),
            _ => None,
        });
        trouble.collect()
    }

    pub(crate) fn refused(&self, drone: usize) -> Vec<Reason> {
        let events = self.drones[drone].events.iter();
        let reasons = events.filter_map(|event| match event {
            EdgeEvent::Refused(reason) => Some(*reason),
            _ => None,
        });
        reasons.collect()
    }

    /// The requests that this KGC has bound tokens to, by token.
    pub(crate) fn pins(&self, place: usize) -> BTreeMap<[u8; 16], BTreeSet<[u8; 32]>> {
        let mut pins: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for record in &self.seats[place].records {
            if let KgcRecord::Pinned { token_id, pin, .. } = record {
                pins.entry(*token_id).or_default().insert(*pin);
            }
        }
        pins
    }
}
