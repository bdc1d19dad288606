//! A leader with its own key, and a second one that it can spare, that writes into a drone whatever it can in
//! one membership and tries to read it back in the next: what the drone does must not depend on what was done
//! to it before.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_abke::Credential;
use quiver_admission::gate::{Admitted, Gate, GateEvent};
use quiver_admission::{
    AdmissionChallenge, AdmissionError, AnonymousConfig, AnonymousEdge, AnonymousEvent, Ending,
};
use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, Batch, Deployment, DroneKeypair, Epoch, EpochPart, EquivocationProof,
    GroupContext, Header, KemKey, KemTerm, Leadership, Pseudonym, RevocationStatement, Roster, StrategyKind,
    TermKeys, Times,
};
use quiver_crypto::canonical::Writer;
use quiver_group::edge::EdgeTiming;
use quiver_group::{EdgeCommand, EdgeEvent};
use quiver_kem::{KemSet, KemSetting};
use quiver_machine::{Input, Machine, Now, Output, Peer, Route, Snapshot};
use quiver_message::{Message, Rekey, RevocationList as ListMessage, RevocationQuery, Welcome};
use quiver_testbed::Stimulus;
use rand_chacha::rand_core::CryptoRngCore;

use crate::swarm::FENCE;
use crate::world::{BEGINNING, Node, S, START, Said, World, name};

const DRONE: Node = Node::Drone(0);
const SPARE_KEY: Peer = Peer(1000);
/// Maximum number of answers to the leader in these tests: more than needed.
const MOST: u32 = 8;

/// A header that this leader signs.
#[derive(Clone, Copy)]
struct Shape {
    counter: u64,
    /// Seconds from now until the key of the epoch ends; it may have ended.
    valid: i64,
    revocation_number: u64,
    kem: Factor,
}

/// The second factor of a welcome.
#[derive(Clone, Copy)]
enum Factor {
    /// The run's own.
    Own,
    /// None.
    Without,
    /// κ of the run under another term.
    Of(KemTerm),
}

const fn epoch(counter: u64) -> Shape {
    Shape { counter, valid: 600, revocation_number: 0, kem: Factor::Own }
}

/// Events of one membership of a drone.
#[derive(Clone)]
struct Plan {
    welcomes: Vec<Shape>,
    /// A genuine list of this number, and proof that the spare key contradicted itself.
    tagged: Option<u64>,
}

/// A drone as it is on its disk.
struct Drone {
    credential: Credential,
    state: Option<Snapshot>,
}

impl Drone {
    fn new(world: &mut World) -> Self {
        Self { credential: world.credential(100, -50, false), state: None }
    }
}

struct Hostile {
    world: World,
    own: DroneKeypair<S>,
    spare: DroneKeypair<S>,
}

impl Hostile {
    fn new(seed: u64) -> Self {
        Self::hybrid(seed, KemSetting::None)
    }

    fn hybrid(seed: u64, kem: KemSetting) -> Self {
        let mut world = World::new(seed);
        world.kem = kem;
        let (own, spare) = (world.leader(1), world.leader(2));
        Self { world, own, spare }
    }

    fn again(&self, keypair: &DroneKeypair<S>) -> DroneKeypair<S> {
        let (deployment, public) = (&self.world.deployment, keypair.public().clone());
        DroneKeypair::restore(deployment, public, &keypair.to_bytes()).unwrap()
    }

    fn times(&self, shape: Shape) -> Times {
        let now = self.world.clock().unix;
        let valid_until = now.saturating_add_signed(shape.valid);
        Times { issued_at: valid_until - 900, valid_until, revocation_number: shape.revocation_number }
    }

    /// An epoch with this counter, which lets the drone in.
    fn welcome(&mut self, shape: Shape, run: &Admitted<S>) -> Message<S> {
        let (deployment, leader) = (self.world.deployment.clone(), self.own.public().clone());
        let context = GroupContext { deployment, group: name("alpha"), leader };
        let (times, rng) = (self.times(shape), &mut self.world.rng);
        let (round, flat) = ((Epoch::term_of(1, 1), [0; 32]), StrategyKind::Flat);
        let (roster, spares, own) = (Roster::new(), BTreeMap::new(), run.kem.clone());
        let kem = match shape.kem {
            Factor::Own => own,
            Factor::Without => None,
            // The bytes of κ with another term before them.
            Factor::Of(term) => own.map(|key| {
                let mut writer = Writer::new();
                term.write(&mut writer);
                writer.fixed(&key.encode()[9..]);
                KemKey::decode(&writer.finish()).unwrap()
            }),
        };
        let opened = match &kem {
            None => {
                let (term, prev) = round;
                Leadership::open_term(context, &self.own, roster, &spares, term, prev, &times, flat, rng)
            }
            Some(key) => {
                let keys = TermKeys::new(key.term(), []);
                let own = &self.own;
                Leadership::open_term_with_kem(context, own, roster, &spares, &keys, round, &times, flat, rng)
            }
        };
        let (mut leadership, _) = opened.unwrap();
        for _ in 2..shape.counter {
            leadership.rekey(&self.own, Batch::default(), &times, rng).unwrap();
        }
        let (nonce, secret) = (run.nonce, AgreedSecret::new(run.session.pairwise().expose()));
        let member = Anonymous { pseudonym: Pseudonym(run.session.pseudonym()), until: START + 3600 };
        let admissions = vec![Admission { member, secret, kem }];
        let batch = Batch { admissions, ..Batch::default() };
        let output = leadership.rekey(&self.own, batch, &times, rng).unwrap();
        assert_eq!(output.header.core.epoch.counter, shape.counter);
        let entry = output.entries.iter().find(|entry| entry.slot == output.admitted[0]).unwrap();
        Message::Welcome(Welcome { nonce, header: output.header, part: EpochPart::Entry(entry.clone()) })
    }

    /// A header of the spare key; each has an end of its own.
    fn spare_header(&mut self, valid: i64) -> Header<S> {
        let (deployment, leader) = (self.world.deployment.clone(), self.spare.public().clone());
        let context = GroupContext { deployment, group: name("alpha"), leader };
        let times = self.times(Shape { valid, ..epoch(1) });
        let opened = Leadership::open_term(
            context,
            &self.spare,
            Roster::new(),
            &BTreeMap::new(),
            Epoch::term_of(1, 2),
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut self.world.rng,
        );
        opened.unwrap().1.header
    }

    fn proof(&mut self) -> Message<S> {
        let (first, second) = (self.spare_header(600), self.spare_header(601));
        Message::EquivocationProof(Box::new(EquivocationProof { first, second }))
    }

    fn list(&mut self, number: u64) -> Message<S> {
        let list =
            RevocationStatement { number, next_update: START + 100_000, ..RevocationStatement::empty() };
        let list = self.world.master.sign_revocations(&self.world.deployment, list, &mut self.world.rng);
        Message::RevocationList(ListMessage { list: list.unwrap().encode() })
    }

    /// A leader with this key and a new machine of a drone, connected. Random numbers are no tag: here each
    /// life has the same.
    fn begin(&mut self, drone: &Drone, keypair: DroneKeypair<S>) -> Node {
        self.world.rewind();
        let policy = self.world.policy(FENCE, "alpha");
        let gate = self.world.gate_with(policy, keypair);
        let config = AnonymousConfig {
            deployment: self.world.deployment.clone(),
            group: name("alpha"),
            authority: self.world.authority.clone(),
            credential: drone.credential.clone(),
            period: self.world.period(),
            revocations: None,
            most: MOST,
            patience: Duration::from_secs(120),
            timing: EdgeTiming::default(),
            kem: self.world.kem,
        };
        let edge = AnonymousEdge::new(config, drone.state.as_ref()).unwrap();
        let deployment = self.world.deployment.clone();
        self.world.start(DRONE, Observed { edge, deployment, seen: Vec::new() });
        self.world.connect(DRONE, gate, Route::Leader);
        gate
    }

    /// All outputs of a drone's machine so far.
    fn seen(&self) -> Vec<String> {
        self.world.machine::<Observed>(DRONE).seen.clone()
    }

    /// One machine of a drone, from its start to its end: all its outputs, in order, except random parts.
    fn life(&mut self, drone: &mut Drone, plan: &Plan) -> Vec<String> {
        let gate = self.begin(drone, self.again(&self.own));
        // The run, by the book.
        self.world.run_until("an answer", |net| !net.node::<Gate<S>>(gate).events.is_empty());
        for _ in 0..self.world.pending().len() {
            self.world.deliver(0);
        }
        let events = self.world.node::<Gate<S>>(gate).events.as_slice();
        assert!(matches!(events, [GateEvent::Admitted { .. }]), "{events:?}");
        // The drone's messages from now on are lost.
        self.world.lose_all();
        self.world.tamper = Some(Box::new(|_| Vec::new()));
        let peer = self.world.peer(gate, DRONE).unwrap();
        let run = self.world.node_mut::<Gate<S>>(gate).machine_mut().unwrap().take_run(peer).unwrap();
        let mut said = Vec::new();
        said.push(Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
        if let Some(number) = plan.tagged {
            said.extend([self.list(number), self.proof()]);
        }
        said.extend(plan.welcomes.iter().map(|shape| self.welcome(*shape, &run)));
        if let Some(number) = plan.tagged {
            said.extend([self.list(number), self.proof()]);
        }
        said.push(Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
        said.push(Message::Rekey(Rekey::new(self.spare_header(600), None)));
        for message in said {
            self.world.say(gate, DRONE, &Said::Other(message));
        }
        // And what it does when it is left alone.
        while self.world.step(BEGINNING + Duration::from_secs(60)) {}
        self.world.feed(DRONE, Stimulus::Connected(SPARE_KEY, Route::Leader));
        if let Some(state) = self.world.node::<Observed>(DRONE).records().last() {
            drone.state = Some(state.clone());
        }
        self.seen()
    }

    /// A machine that meets the spare key before any other.
    fn challenged_by_the_spare_key(&mut self, drone: &Drone) -> Vec<String> {
        self.begin(drone, self.again(&self.spare));
        self.world.deliver(0);
        for _ in 0..self.world.pending().len() {
            let challenge = self.world.decode(self.world.pending()[0]);
            assert!(matches!(challenge, Said::Challenge(AdmissionChallenge { .. })));
            self.world.deliver(0);
        }
        self.seen()
    }
}

/// A machine under observation.
struct Observed {
    edge: AnonymousEdge<S>,
    deployment: Deployment<S>,
    seen: Vec<String>,
}

impl Machine for Observed {
    type Command = EdgeCommand;
    type Event = AnonymousEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        self.edge.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<AnonymousEvent, Snapshot> {
        let output = self.edge.poll_output();
        self.seen.push(match &output {
            Output::Persist(_) => "persists".into(),
            Output::Transmit { to, payload } => {
                let said = match Said::decode(&self.deployment, payload) {
                    Said::Other(Message::Ack(ack)) => format!("Ack of {} in slot {}", ack.epoch, ack.slot),
                    other => kind(&other),
                };
                format!("{said}, {} bytes, to {to:?}", payload.len())
            }
            Output::Event(AnonymousEvent::Edge(EdgeEvent::KeyActivated { epoch, slot, .. })) => {
                format!("key of {epoch} in slot {slot}")
            }
            Output::Event(AnonymousEvent::Admitted { slot, until, .. }) => {
                format!("admitted in slot {slot} until {until}")
            }
            Output::Event(AnonymousEvent::Edge(event)) => format!("{event:?}"),
            Output::Event(event) => format!("{event:?}"),
            Output::Block(peer) | Output::Disconnect(peer) => format!("blocks {peer:?}"),
            Output::Relay { peer, .. } | Output::Penalize { peer, .. } => format!("judges {peer:?}"),
            Output::Timeout(deadline) => format!("waits until {deadline:?}"),
        });
        output
    }
}

/// Kind of the message.
fn kind(message: &Said) -> String {
    let text = match message {
        Said::Hello(message) => format!("{message:?}"),
        Said::Challenge(message) => format!("{message:?}"),
        Said::Proof(message) => format!("{message:?}"),
        Said::Step(message) => format!("{message:?}"),
        Said::Leave(message) => format!("{message:?}"),
        Said::Other(message) => format!("{message:?}"),
    };
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn acknowledged(seen: &[String]) -> Vec<&String> {
    seen.iter().filter(|line| line.starts_with("Ack of")).collect()
}

fn plans() -> Vec<Plan> {
    let ascending = [2, 5, 9, 30].map(epoch).to_vec();
    let tagged = |number, shape: Shape| Shape { revocation_number: number, ..shape };
    vec![
        Plan { welcomes: ascending.clone(), tagged: None },
        // Headers that claim newer lists than the one that some drone was given.
        Plan { welcomes: ascending.iter().map(|shape| tagged(7, *shape)).collect(), tagged: None },
        Plan { welcomes: ascending.iter().map(|shape| tagged(9, *shape)).collect(), tagged: Some(8) },
        // Over by a second, then by none: which one is taken says what the clock says.
        Plan { welcomes: [-1, 0, 1, 600].map(|valid| Shape { valid, ..epoch(3) }).to_vec(), tagged: None },
        Plan { welcomes: vec![], tagged: Some(3) },
    ]
}

#[test]
fn behaviour_of_a_membership_does_not_depend_on_the_one_before_it() {
    for (number, probe) in plans().iter().enumerate() {
        // In every other case with a second factor.
        let kem = if number % 2 == 0 { KemSetting::MlKem768 } else { KemSetting::None };
        let mut hostile = Hostile::hybrid(number as u64, kem);
        let (mut tagged, mut fresh) = (Drone::new(&mut hostile.world), Drone::new(&mut hostile.world));
        // A membership whose last epoch nobody else's has, with a list and a proof that nobody else was
        // given.
        let marked = Plan { welcomes: vec![Shape { revocation_number: 7, ..epoch(40) }], tagged: Some(7) };
        let first = hostile.life(&mut tagged, &marked);
        assert_eq!(acknowledged(&first).len(), 1, "{first:#?}");
        let (second, other) = (hostile.life(&mut tagged, probe), hostile.life(&mut fresh, probe));
        assert_eq!(
            second, other,
            "probe {number} tells the drone that was there before from the one that was not"
        );
        let (second, other) =
            (hostile.challenged_by_the_spare_key(&tagged), hostile.challenged_by_the_spare_key(&fresh));
        assert!(second.iter().any(|line| line.starts_with("AdmissionProof")), "{second:#?}");
        assert_eq!(second, other, "a refused leader is remembered");
    }
}

#[test]
fn one_welcome_is_taken_in_a_run_and_one_that_does_not_hold_ends_it() {
    let mut hostile = Hostile::new(20);
    let mut drone = Drone::new(&mut hostile.world);
    let ascending = Plan { welcomes: [4, 6].map(epoch).to_vec(), tagged: None };
    let seen = hostile.life(&mut drone, &ascending);
    assert_eq!(acknowledged(&seen).len(), 1, "{seen:#?}");
    // An epoch that is over; then one that would hold.
    let over = Plan { welcomes: vec![Shape { valid: -5, ..epoch(4) }, epoch(6)], tagged: None };
    let seen = hostile.life(&mut drone, &over);
    assert!(acknowledged(&seen).is_empty(), "{seen:#?}");
    let ended = AnonymousEvent::Ended(Ending::Denied(AdmissionError::Welcome));
    assert!(seen.contains(&format!("{ended:?}")), "{seen:#?}");
}

#[test]
fn welcome_of_another_second_factor_than_the_runs_ends_it_whoever_signed_it() {
    let of = |set, g| Factor::Of(KemTerm::new(set, g).unwrap());
    let (set, larger) = (KemSet::MlKem768, KemSet::MlKem1024);
    // The run is of g = 5.
    for kem in [Factor::Without, of(set, 4), of(set, 6), of(larger, 5), of(larger, 6)] {
        let mut hostile = Hostile::hybrid(30, KemSetting::MlKem768);
        let mut drone = Drone::new(&mut hostile.world);
        let plan = Plan { welcomes: vec![Shape { kem, ..epoch(4) }, epoch(6)], tagged: None };
        let seen = hostile.life(&mut drone, &plan);
        assert!(acknowledged(&seen).is_empty(), "{seen:#?}");
        let ended = AnonymousEvent::Ended(Ending::Denied(AdmissionError::Welcome));
        assert!(seen.contains(&format!("{ended:?}")), "{seen:#?}");
        // The same leader, by the book.
        let seen = hostile.life(&mut drone, &Plan { welcomes: vec![epoch(4)], tagged: None });
        assert_eq!(acknowledged(&seen).len(), 1, "{seen:#?}");
    }
}

#[test]
fn edge_without_a_name_neither_asks_for_revocation_lists_nor_takes_or_tells_one() {
    let mut hostile = Hostile::new(21);
    let mut drone = Drone::new(&mut hostile.world);
    let welcomes = vec![Shape { revocation_number: 9, ..epoch(2) }];
    let seen = hostile.life(&mut drone, &Plan { welcomes, tagged: Some(4) });
    assert_eq!(acknowledged(&seen).len(), 1, "{seen:#?}");
    assert!(!seen.iter().any(|line| line.contains("Revocation")), "{seen:#?}");
}

#[test]
fn edge_without_a_name_stores_its_ledger_and_nothing_else() {
    for kem in KemSetting::ALL {
        let mut hostile = Hostile::hybrid(22, kem);
        let mut drone = Drone::new(&mut hostile.world);
        let marked = Plan { welcomes: vec![epoch(40)], tagged: Some(7) };
        let seen = hostile.life(&mut drone, &marked);
        assert_eq!(acknowledged(&seen).len(), 1, "{seen:#?}");
        // Version, fingerprint, and a ledger of one leader; no κ.
        assert_eq!(drone.state.as_ref().unwrap().as_bytes().len(), 1 + 32 + 4 + 5 + (32 + 16 + 8 + 4));
    }
}
