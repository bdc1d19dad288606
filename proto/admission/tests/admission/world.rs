//! A deployment with a certification authority, a leader's gate, and drones that apply.

use std::collections::VecDeque;
use std::time::Duration;

use quiver_abke::exchange::Session;
use quiver_abke::{Authority, AuthorityKey, Credential};
use quiver_admission::applicant::{Applicant, ApplicantConfig, ApplicantEvent};
use quiver_admission::gate::{Gate, GateCommand, GateConfig, GateEvent, GateTiming};
use quiver_admission::{Ledger, PolicyStatement, SignedPolicy, VerifiedPolicy};
use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, Identity, MasterSecret, Name, RevocationList, Ristretto255,
    Role, SecretScalar, SecretValue, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_delivery::attributes::certifying::{KIND, SCHEME, Terms};
use quiver_garble::policy::Schema;
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use quiver_message::Message;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type S = Ristretto255;

pub(crate) const START: u64 = 1_800_000_000;
pub(crate) const PERIOD: u64 = 3600;
/// Answers to a leader in a period.
pub(crate) const MOST: u32 = 2;
/// The leader, as drones see it.
const LEADER: Peer = Peer(1);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A message on its way, and who sent it.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) by_drone: bool,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) rng: ChaCha20Rng,
    pub(crate) clock: Duration,
    pub(crate) deployment: Deployment<S>,
    pub(crate) master: MasterSecret<S>,
    pub(crate) terms: Terms,
    pub(crate) authority: VerifiedAuthority<S>,
    peers: u64,
}

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) said: Vec<Flight>,
    pub(crate) gate: Vec<GateEvent>,
    pub(crate) drone: Vec<ApplicantEvent>,
    pub(crate) counted: Vec<Ledger>,
    pub(crate) sessions: (Option<Session>, Option<Session>),
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let terms =
            Terms::new(Schema::parse("x: i16, y: i16, medic: bool").unwrap(), Duration::from_secs(PERIOD));
        let terms = terms.unwrap();
        let statement = AuthorityStatement {
            kind: name(KIND),
            name: name("positions"),
            scheme: name(SCHEME),
            delivery: SecretScalar::generate(&mut rng).public(),
            schema: terms.schema_text(),
            parameters: terms.parameters(),
        };
        let authority = master.sign_authority(&deployment, statement, &mut rng).unwrap();
        let authority = authority.verify(&deployment).unwrap();
        Self { rng, clock: Duration::from_secs(100), deployment, master, terms, authority, peers: 10 }
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    pub(crate) fn period(&self) -> u64 {
        self.terms.period_at(self.now().unix)
    }

    fn ca(&self) -> Authority {
        self.ca_of(&[9; 32])
    }

    fn ca_of(&self, seed: &[u8; 32]) -> Authority {
        Authority::derive(&Secret::new(*seed), self.period(), self.terms.schema().bits()).unwrap()
    }

    pub(crate) fn slot_keys(&self) -> AuthorityKey {
        self.ca().key().clone()
    }

    pub(crate) fn credential(&mut self, x: i128, y: i128, medic: bool) -> Credential {
        self.credential_of(&[9; 32], (x, y, medic))
    }

    /// The same of the authority with this seed.
    pub(crate) fn credential_of(&mut self, seed: &[u8; 32], (x, y, medic): (i128, i128, bool)) -> Credential {
        let values = [("x", x), ("y", y), ("medic", i128::from(medic))];
        let attributes = self.terms.schema().encode(&values).unwrap();
        self.ca_of(seed).certify(&attributes, &mut self.rng).unwrap()
    }

    pub(crate) fn policy(&mut self, text: &str, group: &str) -> VerifiedPolicy<S> {
        let statement = PolicyStatement {
            authority: *self.authority.fingerprint(),
            group: name(group),
            name: name("fence"),
            not_after: START + 10 * PERIOD,
            text: text.into(),
        };
        let signed = SignedPolicy::sign(&self.master, &self.deployment, statement, &mut self.rng).unwrap();
        signed.verify(&self.deployment).unwrap()
    }

    pub(crate) fn keypair(&mut self, serial: u8, role: Role) -> DroneKeypair<S> {
        let name = name(&format!("drone-{serial}"));
        let not_after = START + 100 * PERIOD;
        let identity = Identity { serial: [serial; 16], name, role, groups: vec![], not_after };
        let value = SecretValue::generate(&mut self.rng);
        let public = value.public();
        let partial = self.master.issue_partial_key(&self.deployment, &identity, &public, &mut self.rng);
        partial.verify(&self.deployment, &identity, &value).unwrap()
    }

    pub(crate) fn leader(&mut self, serial: u8) -> DroneKeypair<S> {
        self.keypair(serial, Role::Leader { group: name("alpha"), ordinal: u16::from(serial) })
    }

    /// The gate of a leader of alpha, with the slot keys of the period.
    pub(crate) fn gate(&mut self, text: &str) -> Gate<S> {
        let config = self.gate_config(text);
        self.gate_from(config)
    }

    pub(crate) fn gate_with(&mut self, policy: VerifiedPolicy<S>, keypair: DroneKeypair<S>) -> Gate<S> {
        let config = self.config_with(policy, keypair);
        self.gate_from(config)
    }

    pub(crate) fn gate_config(&mut self, text: &str) -> GateConfig<S> {
        let policy = self.policy(text, "alpha");
        let keypair = self.leader(1);
        self.config_with(policy, keypair)
    }

    fn config_with(&self, policy: VerifiedPolicy<S>, keypair: DroneKeypair<S>) -> GateConfig<S> {
        GateConfig {
            deployment: self.deployment.clone(),
            group: name("alpha"),
            keypair,
            policy,
            authority: self.authority.clone(),
            timing: GateTiming::default(),
        }
    }

    pub(crate) fn gate_from(&mut self, config: GateConfig<S>) -> Gate<S> {
        let mut gate = Gate::new(config, Secret::random(&mut self.rng), self.now().unix).unwrap();
        let command = Input::Command(GateCommand::SlotKeys(self.slot_keys()));
        gate.handle_input(self.now(), command, &mut self.rng);
        gate
    }

    pub(crate) fn applicant(&mut self, credential: &Credential, ledger: Ledger) -> Applicant<S> {
        let list = RevocationList::empty();
        self.applicant_knowing(credential, ledger, list)
    }

    pub(crate) fn applicant_knowing(
        &mut self,
        credential: &Credential,
        ledger: Ledger,
        revocations: RevocationList,
    ) -> Applicant<S> {
        Applicant::new(ApplicantConfig {
            deployment: self.deployment.clone(),
            group: name("alpha"),
            authority: self.authority.clone(),
            credential: credential.clone(),
            period: self.period(),
            revocations,
            ledger,
            most: MOST,
            patience: Duration::from_secs(120),
        })
    }

    /// A connection that nobody had before.
    pub(crate) fn fresh_peer(&mut self) -> Peer {
        self.peers += 1;
        Peer(self.peers)
    }

    /// Lets a drone apply over a fresh connection.
    pub(crate) fn apply(&mut self, gate: &mut Gate<S>, drone: &mut Applicant<S>) -> Outcome {
        self.apply_through(gate, drone, |flight, _| vec![flight])
    }

    /// The same through somebody who sees every message and its number, and passes on what he likes.
    pub(crate) fn apply_through(
        &mut self,
        gate: &mut Gate<S>,
        drone: &mut Applicant<S>,
        mut between: impl FnMut(Flight, usize) -> Vec<Flight>,
    ) -> Outcome {
        let peer = self.fresh_peer();
        let (mut said, mut queue) = (Vec::new(), VecDeque::new());
        let (mut of_gate, mut of_drone, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        let connected = Input::Connected { peer: LEADER, route: Route::Leader };
        drone.handle_input(self.now(), connected, &mut self.rng);
        gate.handle_input(self.now(), Input::Connected { peer, route: Route::Inbound }, &mut self.rng);
        let mut number = 0;
        loop {
            let mut sent = Vec::new();
            while let Some(output) = next(drone) {
                match output {
                    Output::Persist(ledger) => counted.push(ledger),
                    Output::Event(event) => of_drone.push(event),
                    Output::Transmit { to: Destination::Peer(LEADER), payload } => {
                        sent.push(Flight { by_drone: true, bytes: payload });
                    }
                    other => panic!("{other:?}"),
                }
            }
            while let Some(output) = next(gate) {
                match output {
                    Output::Persist(never) => match never {},
                    Output::Event(event) => of_gate.push(event),
                    Output::Transmit { to: Destination::Peer(to), payload } if to == peer => {
                        sent.push(Flight { by_drone: false, bytes: payload });
                    }
                    other => panic!("{other:?}"),
                }
            }
            for flight in sent {
                said.push(flight.clone());
                queue.extend(between(flight, number));
                number += 1;
            }
            let now = self.now();
            match queue.pop_front() {
                Some(Flight { by_drone: true, bytes }) => {
                    gate.handle_input(
                        now,
                        Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
                        &mut self.rng,
                    );
                }
                Some(Flight { by_drone: false, bytes }) => {
                    drone.handle_input(
                        now,
                        Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes },
                        &mut self.rng,
                    );
                }
                None if self.pass(gate, drone) => {}
                None => break,
            }
        }
        let sessions = (gate.take_session(peer), drone.take_session());
        gate.handle_input(self.now(), Input::Disconnected { peer }, &mut self.rng);
        Outcome { said, gate: of_gate, drone: of_drone, counted, sessions }
    }

    /// Goes on to the next deadline of either. Returns false if there is none.
    fn pass(&mut self, gate: &mut Gate<S>, drone: &mut Applicant<S>) -> bool {
        let deadlines = [gate.poll_output_deadline(), drone.poll_output_deadline()];
        let Some(next) = deadlines.into_iter().flatten().min() else { return false };
        self.clock = self.clock.max(next);
        gate.handle_input(self.now(), Input::Timeout, &mut self.rng);
        drone.handle_input(self.now(), Input::Timeout, &mut self.rng);
        true
    }

    pub(crate) fn decode(&self, flight: &Flight) -> Message<S> {
        self.decode_bytes(&flight.bytes)
    }

    pub(crate) fn decode_bytes(&self, bytes: &[u8]) -> Message<S> {
        Message::decode(&self.deployment, bytes).unwrap()
    }
}

/// The next output that is no deadline.
fn next<M: Machine>(machine: &mut M) -> Option<Output<M::Event, M::Record>> {
    match machine.poll_output() {
        Output::Timeout(_) => None,
        output => Some(output),
    }
}

/// What a drained machine waits for.
trait Deadline {
    fn poll_output_deadline(&mut self) -> Option<Duration>;
}

impl<M: Machine> Deadline for M {
    fn poll_output_deadline(&mut self) -> Option<Duration> {
        match self.poll_output() {
            Output::Timeout(deadline) => deadline,
            _ => panic!("not drained"),
        }
    }
}

impl Outcome {
    /// Whether both sides say that the drone is in, under one key and one name.
    pub(crate) fn admitted(&self) -> bool {
        let (Some(one), Some(other)) = (&self.sessions.0, &self.sessions.1) else { return false };
        let pseudonym = one.pseudonym();
        let told = self.drone.contains(&ApplicantEvent::Admitted { pseudonym })
            && self.gate.iter().any(
                |event| matches!(event, GateEvent::Admitted { pseudonym: known, .. } if *known == pseudonym),
            );
        told && one.key().expose() == other.key().expose()
            && one.pairwise().expose() == other.pairwise().expose()
    }
}
