//! A deployment on the testbed, with a certification authority, gates of leaders, and drones that apply.

use std::time::Duration;

use quiver_abke::exchange::Session;
use quiver_abke::{Authority, AuthorityKey, Credential};
use quiver_admission::applicant::{Applicant, ApplicantConfig, ApplicantEvent};
use quiver_admission::certifying::CertificationTerms;
use quiver_admission::gate::{Gate, GateCommand, GateConfig, GateEvent, GateTiming};
use quiver_admission::{
    AdmissionChallenge, AdmissionHello, AdmissionLeave, AdmissionMessage, AdmissionProof, AdmissionStep,
    Ledger, PolicyStatement, SignedPolicy, VerifiedPolicy,
};
use quiver_ainq::{
    Deployment, DroneKeypair, Identity, KemKey, KemTerm, MasterSecret, RevocationStatement, Ristretto255,
    Role, SecretScalar, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_garble::policy::Schema;
use quiver_kem::KemSetting;
use quiver_machine::{Route, Via};
use quiver_message::Message;
pub(crate) use quiver_testbed::name;
use quiver_testbed::{Net, Puppet, Stimulus, deref_to_net, issue_keypair};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type S = Ristretto255;

pub(crate) const START: u64 = quiver_testbed::EPOCH_START;
/// Time at which a world begins, in virtual time.
pub(crate) const BEGINNING: Duration = Duration::from_secs(100);
pub(crate) const PERIOD: u64 = 3600;
/// Answers to a leader in a period.
pub(crate) const MOST: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader,
    Drone(usize),
    Gate(usize),
    Stranger(usize),
}

pub(crate) type Packet = quiver_testbed::Packet<Node>;

/// Returns true if a drone sent this.
pub(crate) fn by_drone(packet: &&Packet) -> bool {
    matches!(packet.from, Node::Drone(_))
}

pub(crate) struct World {
    net: Net<Node>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) master: MasterSecret<S>,
    pub(crate) terms: CertificationTerms,
    pub(crate) authority: VerifiedAuthority<S>,
    /// The setting of a second factor in everybody's deployment.
    pub(crate) kem: KemSetting,
}

deref_to_net!(World, Node);

/// Result of a run.
pub(crate) struct Outcome {
    pub(crate) said: Vec<Packet>,
    pub(crate) gate: Vec<GateEvent>,
    pub(crate) drone: Vec<ApplicantEvent>,
    pub(crate) counted: Vec<Ledger>,
    pub(crate) sessions: (Option<Session>, Option<Session>),
    /// κ of the gate and of the drone.
    pub(crate) kem: (Option<KemKey<S>>, Option<KemKey<S>>),
    /// True if the drone waits for nothing any more.
    pub(crate) over: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let terms = CertificationTerms::new(
            Schema::parse("x: i16, y: i16, medic: bool").unwrap(),
            Duration::from_secs(PERIOD),
        );
        let terms = terms.unwrap();
        let statement =
            terms.statement(name("positions"), SecretScalar::generate(&mut rng).public()).unwrap();
        let authority = master.sign_authority(&deployment, statement, &mut rng).unwrap();
        let authority = authority.verify(&deployment).unwrap();
        let mut world =
            Self { net: Net::new(0), rng, deployment, master, terms, authority, kem: KemSetting::None };
        world.rewind();
        world
    }

    /// Removes all nodes and begins anew.
    pub(crate) fn rewind(&mut self) {
        self.net = Net::new(0);
        self.skip(BEGINNING);
    }

    /// Parameter set and count of the terms of gates.
    pub(crate) fn kem_term(&self) -> Option<KemTerm> {
        self.kem.set().map(|set| KemTerm::new(set, 5).unwrap())
    }

    pub(crate) fn period(&self) -> u64 {
        self.terms.period_at(self.clock().unix)
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
        issue_keypair(&self.master, &self.deployment, &identity, &mut self.rng)
    }

    pub(crate) fn leader(&mut self, serial: u8) -> DroneKeypair<S> {
        self.keypair(serial, Role::Leader { group: name("alpha"), ordinal: u16::from(serial) })
    }

    /// The gate of a leader of alpha, with the slot keys of the period.
    pub(crate) fn gate(&mut self, text: &str) -> Node {
        let config = self.gate_config(text);
        self.gate_from(config)
    }

    pub(crate) fn gate_with(&mut self, policy: VerifiedPolicy<S>, keypair: DroneKeypair<S>) -> Node {
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
            kem: self.kem_term(),
        }
    }

    pub(crate) fn gate_from(&mut self, config: GateConfig<S>) -> Node {
        let gate = Gate::new(config, Secret::random(&mut self.rng), self.clock().unix).unwrap();
        let id = Node::Gate(self.ids().len());
        self.start(id, gate);
        self.give_slot_keys(id);
        id
    }

    /// Gives a gate the slot keys of the period.
    pub(crate) fn give_slot_keys(&mut self, gate: Node) {
        let keys = self.slot_keys();
        self.command::<Gate<S>>(gate, GateCommand::SlotKeys(keys));
    }

    pub(crate) fn applicant(&mut self, credential: &Credential, ledger: Ledger) -> Applicant<S> {
        let list = RevocationStatement::empty();
        self.applicant_knowing(credential, ledger, list)
    }

    pub(crate) fn applicant_knowing(
        &mut self,
        credential: &Credential,
        ledger: Ledger,
        revocations: RevocationStatement,
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
            kem: self.kem,
        })
    }

    /// A peer played by a test, over a fresh connection.
    pub(crate) fn stranger(&mut self, gate: Node) -> Node {
        let id = Node::Stranger(self.ids().len());
        self.start(id, Puppet::default());
        self.connect(id, gate, Route::Leader);
        id
    }

    /// Hands over a message at once, if the two are connected.
    pub(crate) fn hand_over(&mut self, from: Node, to: Node, bytes: Vec<u8>) {
        if let Some(peer) = self.peer(to, from) {
            self.feed(to, Stimulus::Received(peer, Via::Peer, bytes.into()));
        }
    }

    pub(crate) fn say(&mut self, from: Node, to: Node, message: &Said) {
        let bytes = message.encode(&self.deployment);
        self.hand_over(from, to, bytes);
    }

    /// Lets a drone apply over a fresh connection.
    pub(crate) fn apply(&mut self, gate: Node, drone: Applicant<S>) -> Outcome {
        self.apply_through(gate, drone, |_, packet, _| vec![packet])
    }

    /// The same through somebody who sees every message and its number, and passes on what he likes.
    pub(crate) fn apply_through(
        &mut self,
        gate: Node,
        drone: Applicant<S>,
        mut between: impl FnMut(&mut Self, Packet, usize) -> Vec<Packet>,
    ) -> Outcome {
        let (first, told) = (self.recorded.len(), self.node::<Gate<S>>(gate).events.len());
        let id = Node::Drone(self.ids().len());
        self.start(id, drone);
        self.connect(id, gate, Route::Leader);
        let mut number = 0;
        while let Some(due) = self.due() {
            let Some(packet) = self.pending().first().map(|packet| (*packet).clone()) else {
                self.wait(due);
                continue;
            };
            self.lose(0);
            for Packet { from, to, bytes, .. } in between(self, packet, number) {
                self.hand_over(from, to, bytes);
            }
            number += 1;
        }
        let nothing = self.unheard.is_empty() && self.blocked.is_empty() && self.penalized.is_empty();
        assert!(nothing && self.relayed.is_empty(), "neither wants anything else of its driver");
        let peer = self.peer(gate, id).unwrap();
        let of_gate = self.node_mut::<Gate<S>>(gate);
        let run = of_gate.machine_mut().unwrap().take_run(peer);
        let (session, kem) = run.map_or((None, None), |run| (Some(run.session), run.kem));
        let of_gate = of_gate.events.split_off(told);
        let of_drone = self.node_mut::<Applicant<S>>(id);
        let machine = of_drone.machine_mut().unwrap();
        let kem = (kem, machine.take_kem());
        let (over, sessions) = (machine.is_over(), (session, machine.take_session()));
        let (drone, counted) = (std::mem::take(&mut of_drone.events), of_drone.records().to_vec());
        self.stop(id);
        Outcome { said: self.recorded[first..].to_vec(), gate: of_gate, drone, counted, sessions, kem, over }
    }

    pub(crate) fn decode(&self, packet: &Packet) -> Said {
        Said::decode(&self.deployment, &packet.bytes)
    }
}

/// A message as it is told apart here: one of this feature, or one of the kernel.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived")]
pub(crate) enum Said {
    Hello(AdmissionHello),
    Challenge(AdmissionChallenge<S>),
    Proof(AdmissionProof),
    Step(AdmissionStep),
    Leave(AdmissionLeave),
    Other(Message<S>),
}

impl Said {
    /// The message in these bytes, which is one.
    pub(crate) fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Self {
        let message = Message::decode(deployment, bytes).unwrap();
        match message.extension().transpose().unwrap() {
            Some(AdmissionMessage::Hello(hello)) => Self::Hello(hello),
            Some(AdmissionMessage::Challenge(challenge)) => Self::Challenge(challenge),
            Some(AdmissionMessage::Proof(proof)) => Self::Proof(proof),
            Some(AdmissionMessage::Step(step)) => Self::Step(step),
            Some(AdmissionMessage::Leave(leave)) => Self::Leave(leave),
            None => Self::Other(message),
        }
    }

    pub(crate) fn encode(&self, deployment: &Deployment<S>) -> Vec<u8> {
        let message: Message<S> = match self.clone() {
            Self::Hello(hello) => AdmissionMessage::Hello(hello).into(),
            Self::Challenge(challenge) => AdmissionMessage::Challenge(challenge).into(),
            Self::Proof(proof) => AdmissionMessage::Proof(proof).into(),
            Self::Step(step) => AdmissionMessage::Step(step).into(),
            Self::Leave(leave) => AdmissionMessage::Leave(leave).into(),
            Self::Other(message) => message,
        };
        message.encode(deployment)
    }
}

impl Outcome {
    /// Returns true if both sides say that the drone is in, under one key, one name, and one κ if there is
    /// any.
    pub(crate) fn admitted(&self) -> bool {
        let (Some(one), Some(other)) = (&self.sessions.0, &self.sessions.1) else { return false };
        let pseudonym = one.pseudonym();
        let told = self.drone.contains(&ApplicantEvent::Admitted { pseudonym })
            && self.gate.iter().any(
                |event| matches!(event, GateEvent::Admitted { pseudonym: known, .. } if *known == pseudonym),
            );
        let [ours, theirs] = [&self.kem.0, &self.kem.1].map(|key| key.as_ref().map(KemKey::encode));
        told && ours == theirs
            && one.key().expose() == other.key().expose()
            && one.pairwise().expose() == other.pairwise().expose()
    }
}
