//! A leader with valid keys of its own that signs what it likes. Whatever an edge takes from it, the edge
//! starts again from what it persisted, with its key.

use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;
use quiver_ainq::{
    Delta, Deployment, DroneKeypair, DronePublicKey, Element, Entry, Epoch, EpochKind, EpochPart,
    EquivocationProof, Error, Header, HeaderCore, Identity, Label, MasterSecret, Name, PairContext,
    PathMessage, RevocationStatement, Revoked, Role, SlotSet, StrategyKind, Suite,
};
use quiver_crypto::canonical::Writer;
use quiver_crypto::{Secret, aead, extract, prf};
use quiver_group::edge::EdgeStatus;
use quiver_group::{Edge, EdgeCommand, EdgeEvent};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route, Snapshot, Via};
use quiver_message::{
    CatchUpReply, EvictionNotice, JoinChallenge, JoinRequest, Message, Refusal, RefusalReason, Rekey,
    SpareAck, Welcome,
};
use quiver_testbed::{EPOCH_START, Outputs, issue_keypair};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::STRATEGY;
use crate::world::{GROUP, S, World, name};

/// The connection between the two.
const LEADER: Peer = Peer(7);

/// A deployment with an edge that has enrolled, as it was stored then.
struct Enrolled {
    deployment: Deployment<S>,
    master: Vec<u8>,
    state: Snapshot,
}

fn enrolled() -> &'static Enrolled {
    static ENROLLED: OnceLock<Enrolled> = OnceLock::new();
    ENROLLED.get_or_init(|| {
        let mut world = World::new(41);
        let edge = world.add_edge("edge");
        world.run_until("enrolled", |world| {
            world.edge_events(edge).iter().any(|event| matches!(event, EdgeEvent::Enrolled { .. }))
        });
        let state = world.state(edge).unwrap();
        Enrolled { deployment: world.deployment.clone(), master: world.master.clone(), state }
    })
}

/// W[u] and A of the pair, as the leader has them.
#[derive(Clone)]
struct Pair {
    chain: Secret<32>,
    auth: Secret<32>,
    u: u64,
}

/// The hostile leader, and the edge that it has to itself.
struct Lair {
    deployment: Deployment<S>,
    master: MasterSecret<S>,
    rng: ChaCha20Rng,
    clock: Duration,
    keys: Vec<DroneKeypair<S>>,
    edge: Edge<S>,
    state: Snapshot,
    events: Vec<EdgeEvent>,
    /// All that the edge said, in order.
    said: Vec<Message<S>>,
    drone: Option<DronePublicKey<S>>,
    request: Option<JoinRequest>,
    number: Option<[u8; 16]>,
    spare: Option<(u64, Element<S>)>,
    pair: Option<Pair>,
    /// The newest header signed for the edge, and its key.
    newest: Option<Header<S>>,
    key: Secret<32>,
    slot: u32,
}

/// Key of every node of the tree, as path messages say.
const NODE_KEY: [u8; 32] = [4; 32];

impl Lair {
    /// A leader under two ordinals, and of another group; the edge has asked to join.
    fn new(seed: u64) -> Self {
        let Enrolled { deployment, master, state } = enrolled();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::decode(master).unwrap();
        let leads = [(GROUP, 0), (GROUP, 1), ("bravo", 0)];
        let keys = leads.map(|(group, ordinal)| {
            let role = Role::Leader { group: name(group), ordinal };
            let mut serial = [0; 16];
            rng.fill_bytes(&mut serial);
            let (name, groups) = (name("villain"), vec![name(group)]);
            let identity = Identity { serial, name, role, groups, not_after: u64::MAX };
            issue_keypair(&master, deployment, &identity, &mut rng)
        });
        let mut lair = Self {
            deployment: deployment.clone(),
            master,
            rng,
            clock: Duration::from_secs(1000),
            keys: keys.into(),
            edge: restored(state).unwrap(),
            state: state.clone(),
            events: Vec::new(),
            said: Vec::new(),
            drone: None,
            request: None,
            number: None,
            spare: None,
            pair: None,
            newest: None,
            key: Secret::new([0; 32]),
            slot: 3,
        };
        lair.connect();
        lair
    }

    fn connect(&mut self) {
        self.feed(Input::Connected { peer: LEADER, route: Route::Leader });
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: EPOCH_START + self.clock.as_secs() }
    }

    fn status(&self) -> EdgeStatus {
        self.edge.status()
    }

    fn say(&mut self, message: &Message<S>) {
        let bytes = message.encode(&self.deployment);
        self.feed(Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes });
    }

    fn feed(&mut self, input: Input<'_, EdgeCommand>) {
        let now = self.now();
        self.edge.handle_input(now, input, &mut self.rng);
        let Outputs { mut records, events, effects, .. } = Outputs::of(&mut self.edge);
        self.state = records.pop().unwrap_or_else(|| self.state.clone());
        self.events.extend(events);
        let said = effects.sent.iter().map(|(_, bytes)| Message::decode(&self.deployment, bytes).unwrap());
        let said: Vec<_> = said.collect();
        self.said.extend(said.clone());
        said.into_iter().for_each(|message| self.hear(message));
    }

    fn hear(&mut self, message: Message<S>) {
        match message {
            Message::JoinHello(hello) => {
                self.drone = Some(DronePublicKey::decode(&hello.drone).unwrap());
                let leader = self.keys.iter().find(|key| leads(key, &hello.group)).unwrap().public().clone();
                let challenge = [5; quiver_message::COOKIE_LEN];
                let challenge =
                    JoinChallenge { nonce: hello.nonce, challenge, leader, revocation_number: 0, kem: None };
                self.say(&Message::JoinChallenge(challenge));
            }
            Message::JoinRequest(request) => {
                let point = Element::decode(&request.spare_point).unwrap();
                self.spare = Some((request.spare_q, point));
                self.request = Some(request);
            }
            Message::SparePublication(spare) => self.spare = Some((spare.spare.q, spare.spare.point)),
            Message::CatchUpRequest(request) => self.number = Some(request.number),
            _ => {}
        }
    }

    /// Lets time pass, in steps that the edge can act in.
    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.clock += Duration::from_secs(1);
            self.feed(Input::Timeout);
        }
    }

    /// The drone starts again from what it persisted.
    fn restart(&mut self) {
        self.edge = restored(&self.state).unwrap();
        self.number = None;
        self.connect();
    }

    /// A header that changes nothing but the key.
    fn core(&mut self, by: usize, kind: EpochKind, epoch: Epoch) -> HeaderCore<S> {
        let leader = self.keys[by].public().clone();
        let Role::Leader { group, .. } = leader.identity.role.clone() else { unreachable!() };
        let mut nonce = [0; 32];
        self.rng.fill_bytes(&mut nonce);
        let issued_at = self.now().unix;
        HeaderCore {
            group,
            leader,
            epoch,
            prev: self.newest.as_ref().map_or([0; 32], |newest| newest.digest(&self.deployment)),
            nonce,
            issued_at,
            valid_until: issued_at + 10_000,
            strategy: STRATEGY,
            kind,
            point: None,
            height: if STRATEGY == StrategyKind::Tree { 3 } else { 0 },
            removed: SlotSet::new(),
            added: SlotSet::new(),
            changes: None,
            absent: SlotSet::new(),
            roster_hash: [1; 32],
            revocation_number: 0,
            kem: None,
        }
    }

    /// The pair of an epoch that adds the edge by a one-time point; fills in V.
    fn agree(&mut self, core: &mut HeaderCore<S>, q: u64, one_time: &Element<S>) -> Pair {
        let drone = self.drone.clone().unwrap();
        let l = loop {
            let l = S::scalar_random(&mut self.rng);
            if S::secret_scalar_ok(&l) {
                break l;
            }
        };
        let v = Element::<S>::from_point(S::mul_base(&l)).unwrap();
        core.point = Some(v);
        let sum = *drone.implicit(&self.deployment).unwrap().point() + *one_time.point();
        let agreed = S::agree(&l, &Element::from_point(sum).unwrap()).unwrap();
        let pairs = PairContext::new(&self.deployment, &core.group, core.epoch, &v, &core.leader);
        let context = pairs.digest(&drone, self.slot, q, one_time.encoding());
        let chain = extract(&context, agreed.expose());
        let auth = prf(&chain, S::ID, "auth", &[]);
        Pair { chain, auth, u: core.epoch.counter }
    }

    /// Signs an epoch whose key the edge gets by its pair: an entry, or a path with this r where that is how
    /// keys travel.
    fn seal(
        &mut self,
        by: usize,
        core: HeaderCore<S>,
        pair: &Pair,
        q: Option<u64>,
        r: [u8; 16],
    ) -> (Header<S>, EpochPart) {
        let (d0, slot) = (core.digest(&self.deployment), self.slot.to_be_bytes());
        let key = Secret::<32>::random(&mut self.rng);
        self.key = key.clone();
        let by_path = core.strategy == StrategyKind::Tree && core.kind == EpochKind::Rekey;
        let root = if by_path { [9; 32] } else { [0; 32] };
        let tag = *prf(&key, S::ID, "confirm", &[&d0, &root]).expose();
        let header = self.sign(by, core, root, tag);
        if !by_path {
            let pad = prf(&pair.chain, S::ID, "wrap", &[&d0, &slot]);
            return (header, EpochPart::Entry(Entry { slot: self.slot, q, wrap: key.xor(&pad) }));
        }
        let path = self.path(&header, pair, r);
        (header, EpochPart::Path(path))
    }

    /// The keys above the edge's leaf, and the newest epoch's.
    fn path(&self, header: &Header<S>, pair: &Pair, r: [u8; 16]) -> PathMessage {
        let (digest, slot) = (header.digest(&self.deployment), self.slot.to_be_bytes());
        let nodes = vec![NODE_KEY; usize::from(header.core.height)].concat();
        let sealing = prf(&pair.chain, S::ID, "path", &[&digest, &r]);
        let aad = [&digest[..], &slot].concat();
        let sealed = aead::seal(&sealing, &[0; 12], &aad, &[&nodes[..], self.key.expose()].concat());
        PathMessage::decode(&[&slot[..], &r, &sealed].concat()).unwrap()
    }

    fn sign(&mut self, by: usize, core: HeaderCore<S>, entries_root: [u8; 32], tag: [u8; 32]) -> Header<S> {
        // Of another leader, to be replaced.
        let signature = self.keys[by].sign(&self.deployment, Label::Header, &[], &mut self.rng);
        let mut header = Header { core, entries_root, tag, signature };
        let digest = header.digest(&self.deployment);
        header.signature = self.keys[by].sign(&self.deployment, Label::Header, &digest, &mut self.rng);
        header
    }

    /// A welcome in this epoch, if the edge has asked to join.
    fn welcome(&mut self, by: usize, epoch: Epoch) {
        let Some(request) = self.request.clone() else { return };
        let one_time = Element::decode(&request.ephemeral).unwrap();
        let mut core = self.core(by, EpochKind::Rekey, epoch);
        core.added = [self.slot].into_iter().collect();
        let pair = self.agree(&mut core, 0, &one_time);
        let (header, part) = self.seal(by, core, &pair, None, request.nonce);
        self.newest = Some(header.clone());
        self.pair = Some(pair);
        self.say(&Message::Welcome(Welcome { nonce: request.nonce, header, part }));
    }

    /// The opening of a term, with the edge's entry.
    fn opening(&mut self, by: usize, round: u64, q: Option<u64>) -> Option<(Header<S>, Entry)> {
        let ordinal = by as u16 % 2;
        let epoch = Epoch { term: Epoch::term_of(round, ordinal), counter: 1 };
        let (own, point) = self.spare?;
        self.drone.as_ref()?;
        let mut core = self.core(by, EpochKind::Open, epoch);
        let pair = self.agree(&mut core, q.unwrap_or(own), &point);
        let (header, part) = self.seal(by, core, &pair, Some(q.unwrap_or(own)), [0; 16]);
        self.newest = Some(header.clone());
        self.pair = Some(pair);
        let EpochPart::Entry(entry) = part else { unreachable!() };
        Some((header, entry))
    }

    /// The next epoch of the term, or one further ahead, for which the pair is stepped.
    fn next(&mut self, by: usize, ahead: u64, r: [u8; 16]) -> Option<(Header<S>, EpochPart)> {
        let epoch = self.newest.as_ref()?.core.epoch;
        let epoch = Epoch { counter: epoch.counter.saturating_add(ahead), ..epoch };
        let mut pair = self.pair.take()?;
        while pair.u < epoch.counter {
            pair.chain = prf(&pair.chain, S::ID, "step", &[]);
            pair.u += 1;
        }
        let core = self.core(by, EpochKind::Rekey, epoch);
        let sealed = self.seal(by, core, &pair, None, r);
        (self.newest, self.pair) = (Some(sealed.0.clone()), Some(pair));
        Some(sealed)
    }

    fn joins(&self) -> usize {
        self.said.iter().filter(|message| matches!(message, Message::JoinHello(_))).count()
    }

    fn questions(&self) -> usize {
        self.said.iter().filter(|message| matches!(message, Message::CatchUpRequest(_))).count()
    }

    /// The edge starts again from what it persisted, with its key and where it stood.
    fn check(&self) {
        let mut again =
            restored(&self.state).unwrap_or_else(|error| panic!("it does not start again: {error}"));
        assert!(again.keypair().is_some(), "its key is lost");
        let (now, then) = (again.status(), self.status());
        assert_eq!((now.epoch, now.digest, now.slot), (then.epoch, then.digest, then.slot));
        let first = again.poll_output();
        assert!(!matches!(first, Output::Event(EdgeEvent::MembershipDropped { .. })), "{first:?}");
    }
}

fn leads(key: &DroneKeypair<S>, led: &Name) -> bool {
    matches!(&key.public().identity.role, Role::Leader { group, .. } if group == led)
}

fn restored(state: &Snapshot) -> Result<Edge<S>, quiver_group::edge::RestoreError> {
    let config = quiver_group::EdgeConfig::new(enrolled().deployment.clone(), Some(name(GROUP)), None);
    Edge::new(config, Some(state))
}

fn epoch(round: u64, counter: u64) -> Epoch {
    Epoch { term: Epoch::term_of(round, 0), counter }
}

#[test]
fn a_welcome_with_an_endless_counter_is_refused_and_costs_no_key() {
    for counter in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 48) + 1] {
        let mut lair = Lair::new(1);
        lair.welcome(0, epoch(1, counter));
        lair.check();
        assert_eq!(lair.status().epoch, None, "a counter of {counter} was believed");
        // It is still to be had by an honest one.
        lair.wait(60);
        lair.welcome(0, epoch(1, 2));
        assert_eq!(lair.status().epoch, Some(epoch(1, 2)));
        lair.check();
    }
}

#[test]
fn a_stored_membership_that_does_not_hold_is_dropped_and_the_key_kept() {
    let mut lair = Lair::new(8);
    lair.welcome(0, epoch(4, 9));
    lair.check();
    let bytes = lair.state.as_bytes();
    // The counter of the epoch held, behind its term, as the membership has it.
    let mark = [epoch(4, 9).term.to_be_bytes(), 9_u64.to_be_bytes()].concat();
    let places: Vec<_> = bytes.windows(16).enumerate().filter(|(_, window)| **window == mark[..]).collect();
    assert_eq!(places.len(), 2, "in the header and in the membership");
    for (place, _) in places {
        for counter in [10, u64::MAX] {
            let mut damaged = bytes.to_vec();
            damaged[place + 8..place + 16].copy_from_slice(&u64::to_be_bytes(counter));
            let mut again = restored(&Snapshot::new(damaged)).unwrap();
            if again.status().epoch.is_some() {
                // A header that decodes is not compared with the membership.
                continue;
            }
            assert!(again.keypair().is_some());
            assert!(
                matches!(again.poll_output(), Output::Event(EdgeEvent::MembershipDropped { .. })),
                "it says so"
            );
            // It joins anew, and still believes nothing older.
            lair.edge = again;
            lair.connect();
            lair.welcome(0, epoch(4, 9));
            assert_eq!(lair.status().epoch, None);
            lair.welcome(0, epoch(4, 10));
            assert_eq!(lair.status().epoch, Some(epoch(4, 10)));
            lair.check();
            lair.restart();
            return;
        }
    }
    panic!("nothing was dropped");
}

#[test]
fn a_state_of_another_version_is_refused_by_name() {
    let mut bytes = enrolled().state.as_bytes().to_vec();
    bytes[0] -= 1;
    let error = restored(&Snapshot::new(bytes)).unwrap_err();
    assert!(error.to_string().contains("has form"), "{error}");
}

#[test]
fn a_welcome_in_an_endless_round_is_refused() {
    let mut lair = Lair::new(2);
    lair.welcome(0, epoch((1 << 48) - 1, 2));
    assert_eq!(lair.status().epoch, None);
    lair.welcome(0, epoch(1, 2));
    assert_eq!(lair.status().epoch, Some(epoch(1, 2)));
}

#[test]
fn the_last_counter_that_is_believed_survives_a_restart() {
    let mut lair = Lair::new(3);
    lair.welcome(0, epoch(1, 1 << 48));
    assert_eq!(lair.status().epoch, Some(epoch(1, 1 << 48)));
    lair.check();
}

/// A member of the term of round 2, which has published its spare point number 3 since; those before are
/// erased.
fn settled(seed: u64) -> Lair {
    let mut lair = Lair::new(seed);
    lair.welcome(0, epoch(1, 2));
    let (header, entry) = lair.opening(0, 2, None).unwrap();
    lair.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Entry(entry)))));
    assert_eq!(lair.status().epoch, Some(epoch(2, 1)));
    let (q, auth) = (lair.spare.unwrap().0, lair.pair.clone().unwrap().auth);
    assert!(q > 1);
    let tag = *prf(&auth, S::ID, "spare ack", &[&q.to_be_bytes()]).expose();
    lair.say(&Message::SpareAck(SpareAck { q, tag }));
    lair.wait(120);
    lair
}

#[test]
fn a_made_up_entry_of_a_genuine_opening_ends_no_membership() {
    let q = settled(4).spare.unwrap().0;
    // A spare pair that there never is, one that was used long since, one that is to come, and another
    // member's.
    let made_up = [(3, Some(0)), (3, Some(q - 1)), (3, Some(q + 1)), (3, None), (4, Some(q)), (4, Some(0))];
    for (slot, q) in made_up {
        let mut lair = settled(4);
        let (held, joins) = (lair.status().epoch, lair.joins());
        let (header, genuine) = lair.opening(0, 3, None).unwrap();
        let altered = Entry { slot, q, wrap: [0x5a; 32] };
        lair.say(&Message::Rekey(Rekey::new(header.clone(), Some(EpochPart::Entry(altered)))));
        assert_eq!(lair.status().epoch, held, "slot {slot}, q {q:?}: membership erased");
        assert_eq!(lair.joins(), joins, "slot {slot}, q {q:?}");
        lair.check();
        // It follows by the entry that the leader made.
        lair.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Entry(genuine)))));
        assert_eq!(lair.status().epoch, Some(epoch(3, 1)), "slot {slot}, q {q:?}");
    }
}

#[test]
fn a_leader_that_answers_with_a_spent_spare_point_is_given_three_chances() {
    let mut lair = settled(5);
    let (joins, questions) = (lair.joins(), lair.questions());
    let q = lair.spare.unwrap().0;
    let (header, entry) = lair.opening(0, 3, Some(q - 1)).unwrap();
    let part = Some(EpochPart::Entry(entry));
    lair.say(&Message::Rekey(Rekey::new(header.clone(), part.clone())));
    assert_eq!(lair.questions(), questions + 1, "it asks the leader");
    for strike in 1..=3 {
        assert_eq!(lair.joins(), joins, "strike {strike}");
        let reply = CatchUpReply {
            number: lair.number.unwrap(),
            header: header.clone(),
            part: part.clone(),
            tag: [0; 32],
        };
        lair.say(&Message::CatchUpReply(reply));
        lair.wait(40);
    }
    assert!(lair.joins() > joins, "nothing but joining anew helps");
}

#[test]
fn no_round_above_the_last_is_believed_and_it_is_2_to_the_26_jumps_away() {
    let mut lair = Lair::new(7);
    lair.welcome(0, epoch(Epoch::MAX_ROUND + 1, 2));
    assert_eq!(lair.status().epoch, None);
    lair.welcome(0, epoch(Epoch::MAX_ROUND, 2));
    assert_eq!(lair.status().epoch, Some(epoch(Epoch::MAX_ROUND, 2)));
    lair.check();
    // As far as one header can be ahead of the one before.
    assert_eq!(Epoch::MAX_ROUND / (1 << 20), 1 << 26);
    assert!(i64::try_from(Epoch::term_of(Epoch::MAX_ROUND, u16::MAX)).is_ok(), "a gauge shows it");
}

#[test]
fn epochs_never_go_back_in_a_group_that_was_left_for_another() {
    let mut lair = Lair::new(6);
    lair.welcome(0, epoch(5, 9));
    let shown = lair.newest.clone().unwrap().digest(&lair.deployment);
    lair.feed(Input::Command(EdgeCommand::Join(name("bravo"))));
    lair.welcome(2, epoch(1, 2));
    assert_eq!(lair.status().epoch, Some(epoch(1, 2)), "a member of bravo");
    // The same after a start.
    lair.restart();
    lair.feed(Input::Command(EdgeCommand::Join(name(GROUP))));
    let said = lair.said.len();
    lair.welcome(0, epoch(5, 8));
    assert_eq!(lair.status().epoch, None, "an epoch from before was believed");
    let told = lair.said[said..].iter().any(
        |message| matches!(message, Message::Rekey(rekey) if rekey.header.digest(&lair.deployment) == shown),
    );
    assert!(told, "a leader that has forgotten is shown how far its group is");
    lair.welcome(0, epoch(5 + (1 << 20) + 1, 2));
    assert_eq!(lair.status().epoch, None, "more than 2^20 rounds at once");
    lair.welcome(0, epoch(5, 10));
    assert_eq!(lair.status().epoch, Some(epoch(5, 10)));
    // Nor in bravo.
    lair.feed(Input::Command(EdgeCommand::Join(name("bravo"))));
    lair.welcome(2, epoch(1, 2));
    assert_eq!(lair.status().epoch, None);
    lair.welcome(2, epoch(1, 3));
    assert_eq!(lair.status().epoch, Some(epoch(1, 3)));
    lair.check();
}

impl Lair {
    /// The next epoch as a tree's wraps: the root alone is new, wrapped under the key beneath it that a path
    /// message brought.
    fn wraps(&mut self, prev: [u8; 32], epoch: Epoch) -> (Header<S>, Delta) {
        let mut core = self.core(0, EpochKind::Rekey, epoch);
        core.prev = prev;
        let d0 = core.digest(&self.deployment);
        let (seed, beneath) = (Secret::<32>::random(&mut self.rng), Secret::new(NODE_KEY));
        // s_root ⊕ PRF(k_c, "wrap node", D0 ‖ v ‖ c), for v = (height, 0) and c = (height − 1, 0)
        let (parent, child) = ([core.height, 0, 0, 0, 0], [core.height - 1, 0, 0, 0, 0]);
        let pad = prf(&beneath, S::ID, "wrap node", &[&d0, &parent, &child]);
        // The root is refreshed, and of its children the left one wraps.
        let said = [core.height | 1 << 5, 0b01_0011];
        let delta = Delta::from_bytes([&said[..], &seed.xor(&pad)].concat()).unwrap();
        let root = prf(&seed, S::ID, "node", &[&parent]);
        let key = prf(&root, S::ID, "group key", &[&d0]);
        let tag = *prf(&key, S::ID, "confirm", &[&d0, &delta.root()]).expose();
        (self.sign(0, core, delta.root(), tag), delta)
    }
}

#[test]
fn a_second_key_of_the_terms_leader_ends_no_membership() {
    for by_second in [true, false] {
        let mut lair = Lair::new(9);
        let identity = lair.keys[0].public().identity.clone();
        let second = issue_keypair(&lair.master, &lair.deployment, &identity, &mut lair.rng);
        lair.keys.push(second);
        lair.welcome(0, epoch(1, 2));
        assert_eq!(lair.status().epoch, Some(epoch(1, 2)));
        let by = if by_second { lair.keys.len() - 1 } else { 0 };
        let mut core = lair.core(by, EpochKind::Rekey, epoch(1, 3));
        core.removed = [lair.slot].into_iter().collect();
        let root = if STRATEGY == StrategyKind::Tree { [9; 32] } else { [0; 32] };
        let header = lair.sign(by, core, root, [3; 32]);
        lair.say(&Message::Rekey(Rekey::new(header, None)));
        let held = by_second.then_some(epoch(1, 2));
        assert_eq!(lair.status().epoch, held, "signed by its second key: {by_second}");
        lair.check();
    }
}

#[test]
fn wraps_that_a_stranger_attached_to_a_header_of_a_term_to_come_are_not_kept() {
    if STRATEGY == StrategyKind::Flat {
        // It has none.
        return;
    }
    let mut lair = settled(7);
    let (opening, entry) = lair.opening(0, 3, None).unwrap();
    let (header, genuine) = lair.wraps(opening.digest(&lair.deployment), epoch(3, 2));
    let blamed = |lair: &Lair| {
        let wrong = Offence::Protocol(Error::WrongWraps);
        let blamed =
            |event: &&EdgeEvent| matches!(event, EdgeEvent::Blamed { offence, .. } if *offence == wrong);
        lair.events.iter().filter(blamed).count()
    };
    let mut junk = genuine.encode();
    *junk.last_mut().unwrap() ^= 1;
    let junk = Delta::from_bytes(junk).unwrap();
    lair.say(&Message::Rekey(Rekey::new(header.clone(), Some(EpochPart::Delta(junk)))));
    assert_eq!(blamed(&lair), 1, "at once, whoever brings it");
    lair.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Delta(genuine)))));
    lair.say(&Message::Rekey(Rekey::new(opening.clone(), Some(EpochPart::Entry(entry)))));
    assert_eq!(lair.status().epoch, Some(epoch(3, 1)));
    let pair = lair.pair.clone().unwrap();
    let path = lair.path(&opening, &pair, [0; 16]);
    lair.say(&Message::Rekey(Rekey::new(opening, Some(EpochPart::Path(path)))));
    assert_eq!(lair.status().epoch, Some(epoch(3, 2)), "the genuine wraps were held back: {:?}", lair.events);
    assert_eq!(blamed(&lair), 1);
}

/// Next action of the hostile leader.
#[derive(Clone, Copy, Debug)]
enum Act {
    Welcome { by: bool, round: u64, counter: u64, slot: u32 },
    Open { by: bool, round: u64, q: Option<u64>, slot: u32 },
    Next { ahead: u64, answers: bool },
    Bare { kind: bool, round: u64, counter: u64, removes: bool },
    Wraps { ahead: u64, bound: bool, builds: bool, len: usize },
    Entry { slot: u32, q: Option<u64> },
    SpareAck,
    List { number: u64, names_leader: bool },
    Notice { round: u64, counter: u64, names_edge: bool },
    Proof,
    Rejoin,
    Visit { bravo: bool },
    Wait(u64),
    Restart,
}

fn numbers() -> impl Strategy<Value = u64> {
    let last = Epoch::MAX_ROUND;
    let edges = [last - 1, last, last + 1, (1 << 48) - 1, 1 << 48, (1 << 48) + 1];
    prop_oneof![
        4 => 0..6_u64,
        1 => prop::sample::select(edges.to_vec()),
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 1, 1 << 63, u64::MAX >> 16]),
        1 => any::<u64>(),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    let maybe = || prop::option::of(numbers());
    let slots = || prop_oneof![8 => Just(3_u32), 1 => Just(0), 1 => Just((1 << 20) - 1), 1 => any::<u32>()];
    prop_oneof![
        5 => (any::<bool>(), numbers(), numbers(), slots())
            .prop_map(|(by, round, counter, slot)| Act::Welcome { by, round, counter, slot }),
        4 => (any::<bool>(), numbers(), maybe(), slots())
            .prop_map(|(by, round, q, slot)| Act::Open { by, round, q, slot }),
        3 => (prop_oneof![4 => 1..4_u64, 1 => Just(1000)], any::<bool>())
            .prop_map(|(ahead, answers)| Act::Next { ahead, answers }),
        2 => (any::<bool>(), numbers(), numbers(), any::<bool>())
            .prop_map(|(kind, round, counter, removes)| Act::Bare { kind, round, counter, removes }),
        2 => (0..4_u64, any::<bool>(), any::<bool>(), 0..70_usize)
            .prop_map(|(ahead, bound, builds, len)| Act::Wraps { ahead, bound, builds, len }),
        2 => (slots(), maybe()).prop_map(|(slot, q)| Act::Entry { slot, q }),
        1 => Just(Act::SpareAck),
        1 => (numbers(), any::<bool>()).prop_map(|(number, names_leader)| Act::List { number, names_leader }),
        1 => (numbers(), numbers(), any::<bool>())
            .prop_map(|(round, counter, names_edge)| Act::Notice { round, counter, names_edge }),
        1 => Just(Act::Proof),
        1 => Just(Act::Rejoin),
        1 => any::<bool>().prop_map(|bravo| Act::Visit { bravo }),
        2 => (1..70_u64).prop_map(Act::Wait),
        1 => Just(Act::Restart),
    ]
}

impl Lair {
    fn act(&mut self, act: Act) {
        match act {
            Act::Welcome { by, round, counter, slot } => {
                self.slot = slot % (1 << 20);
                let term = (round << 16) | u64::from(by);
                self.welcome(usize::from(by), Epoch { term, counter });
            }
            Act::Open { by, round, q, slot } => {
                if let Some((header, entry)) = self.opening(usize::from(by), round, q) {
                    let entry =
                        Entry { slot: if slot == 3 { entry.slot } else { slot % (1 << 20) }, ..entry };
                    self.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Entry(entry)))));
                }
            }
            Act::Next { ahead, answers } => {
                let r = self.number.unwrap_or_default();
                let by =
                    self.newest.as_ref().map_or(0, |newest| usize::from(newest.core.epoch.ordinal() > 0));
                let Some((header, part)) = self.next(by, ahead, r) else { return };
                let Some(auth) = self.pair.as_ref().map(|pair| pair.auth.clone()) else { return };
                if answers {
                    let tag = prf(&auth, S::ID, "fresh", &[&header.digest(&self.deployment), &r]);
                    let reply = CatchUpReply { number: r, header, part: Some(part), tag: *tag.expose() };
                    self.say(&Message::CatchUpReply(reply));
                } else {
                    self.say(&Message::Rekey(Rekey::new(header, Some(part))));
                }
            }
            Act::Bare { kind, round, counter, removes } => {
                let kind = if kind { EpochKind::Open } else { EpochKind::Rekey };
                let mut core = self.core(0, kind, Epoch { term: round << 16, counter });
                if removes {
                    core.removed = [self.slot].into_iter().collect();
                }
                let header = self.sign(0, core, [0; 32], [2; 32]);
                self.say(&Message::Rekey(Rekey::new(header, None)));
            }
            Act::Wraps { ahead, bound, builds, len } => {
                let Some(newest) = self.newest.clone() else { return };
                let epoch = newest.core.epoch;
                let by = usize::from(epoch.ordinal() > 0);
                let counter = epoch.counter.saturating_add(ahead);
                let mut core = self.core(by, EpochKind::Rekey, Epoch { counter, ..epoch });
                core.prev = if builds { newest.digest(&self.deployment) } else { [0; 32] };
                // Nodes with the right child refreshed and the left one's wrap, from the root down.
                let levels = 1 + len as u8 % 20;
                let shape = vec![0b0101_0101; usize::from(levels).div_ceil(4)];
                let mut bytes = [&[levels | 1 << 5][..], &shape].concat();
                if !levels.is_multiple_of(4) {
                    *bytes.last_mut().unwrap() >>= 8 - 2 * (levels % 4);
                }
                bytes.resize(bytes.len() + 32 * usize::from(levels), 3);
                let delta = Delta::from_bytes(bytes).unwrap();
                let root = if bound { delta.root() } else { [8; 32] };
                let header = self.sign(by, core, root, [2; 32]);
                self.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Delta(delta)))));
            }
            Act::Entry { slot, q } => {
                let Some(header) = self.newest.clone() else { return };
                let entry = Entry { slot: slot % (1 << 20), q, wrap: [6; 32] };
                self.say(&Message::Rekey(Rekey::new(header, Some(EpochPart::Entry(entry)))));
            }
            Act::SpareAck => {
                let (Some((q, _)), Some(pair)) = (self.spare, self.pair.clone()) else { return };
                let tag = *prf(&pair.auth, S::ID, "spare ack", &[&q.to_be_bytes()]).expose();
                self.say(&Message::SpareAck(SpareAck { q, tag }));
            }
            Act::List { number, names_leader } => {
                let leader = Revoked::from(&self.keys[1].public().identity);
                let revoked = if names_leader { vec![leader] } else { vec![] };
                let list = RevocationStatement { number, issued: 1, next_update: 2, revoked };
                let signed = self.master.sign_revocations(&self.deployment, list, &mut self.rng).unwrap();
                let list = quiver_message::RevocationList { list: signed.encode() };
                self.say(&Message::RevocationList(list));
            }
            Act::Notice { round, counter, names_edge } => {
                let own = self.drone.as_ref().map(|drone| drone.identity.serial);
                let serials = vec![own.filter(|_| names_edge).unwrap_or([7; 16])];
                let epoch = Epoch { term: round << 16, counter };
                let mut statement = Writer::new();
                statement.lp(GROUP.as_bytes()).u64(epoch.term).u64(epoch.counter).fixed(&serials[0]);
                let (statement, leader) = (statement.finish(), self.keys[0].public().clone());
                let signature = self.keys[0].sign(&self.deployment, Label::Evict, &statement, &mut self.rng);
                let notice = EvictionNotice { group: name(GROUP), leader, epoch, serials, signature };
                self.say(&Message::EvictionNotice(notice));
            }
            Act::Proof => {
                let Some(first) = self.newest.clone() else { return };
                let by = usize::from(first.core.epoch.ordinal() > 0);
                let second = self.sign(by, first.core.clone(), first.entries_root, [3; 32]);
                let proof = EquivocationProof { first, second };
                self.say(&Message::EquivocationProof(Box::new(proof)));
            }
            Act::Rejoin => {
                let Some(number) = self.number else { return };
                let refusal = Refusal {
                    reason: RefusalReason::Rejoin,
                    reference: number.to_vec(),
                    retry_after: Duration::ZERO,
                };
                self.say(&Message::Refusal(refusal));
            }
            Act::Visit { bravo } => {
                let group = if bravo { "bravo" } else { GROUP };
                self.feed(Input::Command(EdgeCommand::Join(name(group))));
                if bravo {
                    self.welcome(2, Epoch { term: 1 << 16, counter: 2 + self.clock.as_secs() });
                }
            }
            Act::Wait(seconds) => self.wait(seconds),
            Act::Restart => self.restart(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_hostile_leader_signs_an_edge_starts_again_with_its_key(
        seed in any::<u64>(), acts in prop::collection::vec(acts(), 1..24),
    ) {
        let mut lair = Lair::new(seed);
        for act in acts {
            lair.act(act);
            lair.check();
        }
    }
}
