//! A leader with its own key, and a second one that it can spare, that writes into a drone whatever it can in
//! one membership and tries to read it back in the next: what the drone does must not depend on what was done
//! to it before.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_abke::Credential;
use quiver_admission::gate::GateEvent;
use quiver_admission::{AdmissionError, AnonymousConfig, AnonymousEdge, AnonymousEvent, Ending};
use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, Batch, DroneKeypair, Epoch, EquivocationProof, GroupContext, Header,
    Leadership, Part, Pseudonym, RevocationList, Roster, StrategyKind, Times,
};
use quiver_group::EdgeEvent;
use quiver_group::edge::EdgeTiming;
use quiver_machine::{Destination, Input, Machine, Output, Peer, Route, Snapshot, Via};
use quiver_message::{
    AdmissionChallenge, Message, Nonce, Rekey, RevocationList as ListMessage, RevocationQuery, Welcome,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::swarm::FENCE;
use crate::world::{S, START, World, name};

const LEADER: Peer = Peer(1);
const SPARE_KEY: Peer = Peer(2);
const BEGINNING: Duration = Duration::from_secs(100);
/// How often the leader is answered in these tests: as often as it takes.
const MOST: u32 = 8;

/// A header that this leader signs.
#[derive(Clone, Copy)]
struct Shape {
    counter: u64,
    /// Seconds from now until the key of the epoch ends; it may have ended.
    valid: i64,
    revocation_number: u64,
}

const fn epoch(counter: u64) -> Shape {
    Shape { counter, valid: 600, revocation_number: 0 }
}

/// What is done to a drone in one membership.
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
        let mut world = World::new(seed);
        let (own, spare) = (world.leader(1), world.leader(2));
        Self { world, own, spare }
    }

    fn again(&self, keypair: &DroneKeypair<S>) -> DroneKeypair<S> {
        let (deployment, public) = (&self.world.deployment, keypair.public().clone());
        DroneKeypair::restore(deployment, public, &keypair.to_bytes()).unwrap()
    }

    fn times(&self, shape: Shape) -> Times {
        let now = self.world.now().unix;
        let valid_until = now.saturating_add_signed(shape.valid);
        Times { issued_at: valid_until - 900, valid_until, revocation_number: shape.revocation_number }
    }

    /// An epoch with this counter, which lets the drone in.
    fn welcome(&mut self, nonce: Nonce, shape: Shape, secret: &[u8; 32], pseudonym: Pseudonym) -> Message<S> {
        let (deployment, leader) = (self.world.deployment.clone(), self.own.public().clone());
        let context = GroupContext { deployment, group: name("alpha"), leader };
        let (times, rng) = (self.times(shape), &mut self.world.rng);
        let (term, flat) = (Epoch::term_of(1, 1), StrategyKind::Flat);
        let (mut leadership, _) = Leadership::open_term(
            context,
            &self.own,
            Roster::new(),
            &BTreeMap::new(),
            term,
            [0; 32],
            &times,
            flat,
            rng,
        )
        .unwrap();
        for _ in 2..shape.counter {
            leadership.rekey(&self.own, Batch::default(), &times, rng).unwrap();
        }
        let member = Anonymous { pseudonym, until: START + 3600 };
        let admissions = vec![Admission { member, secret: AgreedSecret::new(secret) }];
        let batch = Batch { admissions, ..Batch::default() };
        let output = leadership.rekey(&self.own, batch, &times, rng).unwrap();
        assert_eq!(output.header.core.epoch.counter, shape.counter);
        let entry = output.entries.iter().find(|entry| entry.slot == output.admitted[0]).unwrap();
        Message::Welcome(Welcome { nonce, header: output.header, part: Part::Entry(entry.clone()) })
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
        let list = RevocationList { number, next_update: START + 100_000, ..RevocationList::empty() };
        let list = self.world.master.sign_revocations(&self.world.deployment, list, &mut self.world.rng);
        Message::RevocationList(ListMessage { list: list.unwrap().encode() })
    }

    /// One machine of a drone, from its start to its end: all that it put out, in order, but for what is
    /// random.
    fn life(&mut self, drone: &mut Drone, plan: &Plan) -> Vec<String> {
        self.world.clock = BEGINNING;
        let (policy, keypair) = (self.world.policy(FENCE, "alpha"), self.again(&self.own));
        let mut gate = self.world.gate_with(policy, keypair);
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
        };
        let mut life = Life {
            edge: AnonymousEdge::new(config, drone.state.as_ref()).unwrap(),
            // Random numbers are no tag: here each life has the same.
            rng: ChaCha20Rng::seed_from_u64(77),
            seen: Vec::new(),
            state: None,
            deadline: None,
        };
        let peer = self.world.fresh_peer();
        let mut queue = life.feed(&self.world, Input::Connected { peer: LEADER, route: Route::Leader });
        // The run, by the book.
        let mut nonce = [0; 16];
        let mut admitted = None;
        while admitted.is_none() {
            let now = self.world.now();
            for bytes in core::mem::take(&mut queue) {
                if let Message::AdmissionHello(hello) = self.world.decode_bytes(&bytes) {
                    nonce = hello.nonce;
                }
                gate.handle_input(
                    now,
                    Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
                    &mut self.world.rng,
                );
            }
            let mut down = Vec::new();
            let deadline = loop {
                match gate.poll_output() {
                    Output::Transmit { to: Destination::Peer(_), payload } => down.push(payload),
                    Output::Event(GateEvent::Admitted { pseudonym, .. }) => admitted = Some(pseudonym),
                    Output::Event(other) => panic!("{other:?}"),
                    Output::Timeout(deadline) => break deadline,
                    _ => {}
                }
            };
            if down.is_empty() && queue.is_empty() {
                self.world.clock = self.world.clock.max(deadline.expect("it goes on"));
                gate.handle_input(self.world.now(), Input::Timeout, &mut self.world.rng);
            }
            for bytes in down {
                queue.extend(
                    life.feed(&self.world, Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes }),
                );
            }
        }
        let secret = *gate.take_session(peer).unwrap().pairwise().expose();
        let mut said = Vec::new();
        let pseudonym = Pseudonym(admitted.unwrap());
        said.push(Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
        if let Some(number) = plan.tagged {
            said.extend([self.list(number), self.proof()]);
        }
        said.extend(plan.welcomes.iter().map(|shape| self.welcome(nonce, *shape, &secret, pseudonym)));
        if let Some(number) = plan.tagged {
            said.extend([self.list(number), self.proof()]);
        }
        said.push(Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
        said.push(Message::Rekey(Rekey { header: self.spare_header(600), part: None }));
        for message in said {
            let bytes = message.encode(&self.world.deployment);
            life.feed(&self.world, Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes });
        }
        // And what it does when it is left alone.
        while let Some(deadline) = life.deadline.filter(|at| *at < BEGINNING + Duration::from_secs(60)) {
            self.world.clock = self.world.clock.max(deadline) + Duration::from_millis(1);
            life.feed(&self.world, Input::Timeout);
        }
        life.feed(&self.world, Input::Connected { peer: SPARE_KEY, route: Route::Leader });
        if life.state.is_some() {
            drone.state = life.state;
        }
        life.seen
    }

    /// A machine that meets the spare key before any other.
    fn challenged_by_the_spare_key(&mut self, drone: &Drone) -> Vec<String> {
        self.world.clock = BEGINNING;
        let policy = self.world.policy(FENCE, "alpha");
        let keypair = self.again(&self.spare);
        let mut gate = self.world.gate_with(policy, keypair);
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
        };
        let mut life = Life {
            edge: AnonymousEdge::new(config, drone.state.as_ref()).unwrap(),
            rng: ChaCha20Rng::seed_from_u64(77),
            seen: Vec::new(),
            state: None,
            deadline: None,
        };
        let peer = self.world.fresh_peer();
        let hello = life.feed(&self.world, Input::Connected { peer: LEADER, route: Route::Leader });
        for bytes in hello {
            gate.handle_input(
                self.world.now(),
                Input::Received { from: peer, via: Via::Peer, bytes: &bytes },
                &mut self.world.rng,
            );
        }
        loop {
            match gate.poll_output() {
                Output::Transmit { payload, .. } => {
                    assert!(matches!(
                        self.world.decode_bytes(&payload),
                        Message::AdmissionChallenge(AdmissionChallenge { .. })
                    ));
                    life.feed(&self.world, Input::Received { from: LEADER, via: Via::Peer, bytes: &payload });
                }
                Output::Timeout(_) => return life.seen,
                _ => {}
            }
        }
    }
}

/// A machine under observation.
struct Life {
    edge: AnonymousEdge<S>,
    rng: ChaCha20Rng,
    seen: Vec<String>,
    state: Option<Snapshot>,
    deadline: Option<Duration>,
}

impl Life {
    /// Gives it an input. What it sends.
    fn feed(&mut self, world: &World, input: Input<'_, quiver_group::EdgeCommand>) -> Vec<Vec<u8>> {
        self.edge.handle_input(world.now(), input, &mut self.rng);
        let mut sent = Vec::new();
        loop {
            match self.edge.poll_output() {
                Output::Persist(state) => {
                    self.seen.push("persists".into());
                    self.state = Some(state);
                }
                Output::Transmit { to, payload } => {
                    let said = match world.decode_bytes(&payload) {
                        Message::Ack(ack) => format!("Ack of {} in slot {}", ack.epoch, ack.slot),
                        other => kind(&other),
                    };
                    self.seen.push(format!("{said}, {} bytes, to {to:?}", payload.len()));
                    sent.push(payload);
                }
                Output::Event(AnonymousEvent::Edge(EdgeEvent::KeyActivated { epoch, slot, .. })) => {
                    self.seen.push(format!("key of {epoch} in slot {slot}"));
                }
                Output::Event(AnonymousEvent::Admitted { slot, until, .. }) => {
                    self.seen.push(format!("admitted in slot {slot} until {until}"));
                }
                Output::Event(AnonymousEvent::Edge(event)) => self.seen.push(format!("{event:?}")),
                Output::Event(event) => self.seen.push(format!("{event:?}")),
                Output::Block(peer) => self.seen.push(format!("blocks {peer:?}")),
                Output::Relay { peer, .. } | Output::Penalize { peer, .. } => {
                    self.seen.push(format!("judges {peer:?}"));
                }
                Output::Timeout(deadline) => {
                    self.deadline = deadline;
                    self.seen.push(format!("waits until {deadline:?}"));
                    return sent;
                }
            }
        }
    }
}

/// Which message it is.
fn kind(message: &Message<S>) -> String {
    let text = format!("{message:?}");
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
        let mut hostile = Hostile::new(number as u64);
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
    let mut hostile = Hostile::new(22);
    let mut drone = Drone::new(&mut hostile.world);
    let marked = Plan { welcomes: vec![epoch(40)], tagged: Some(7) };
    hostile.life(&mut drone, &marked);
    // Version, fingerprint, and a ledger of one leader.
    assert_eq!(drone.state.as_ref().unwrap().as_bytes().len(), 1 + 32 + 4 + 5 + (32 + 16 + 8 + 4));
}
