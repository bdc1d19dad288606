//! Tagging attack: a leader that writes whatever it can into an anonymous drone in one membership, and looks
//! for it in the next.
//!
//! It has its own key, a second one that it can spare, and genuine revocation lists; it sends welcomes of
//! ascending epochs, headers that claim newer lists, proof that the spare key contradicted itself, and epochs
//! that are about to end. A tagged drone, and one that it meets for the first time, must behave the same in
//! their next membership: the same messages, events and deadlines in the same order, random bytes aside.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_abke::Credential;
use quiver_admission::gate::{Gate, GateCommand, GateConfig, GateEvent};
use quiver_admission::{AdmissionMessage, AnonymousEdge, AnonymousEvent};
use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, Batch, Deployment, DroneKeypair, Epoch, EpochPart, EquivocationProof,
    GroupContext, Header, Identity, Leadership, MasterSecret, Name, Pseudonym, RevocationStatement, Role,
    Roster, SecretValue, StrategyKind, Suite, Times, UnixTime,
};
use quiver_crypto::Secret;
use quiver_group::edge::EdgeTiming;
use quiver_group::{EdgeCommand, EdgeEvent};
use quiver_kem::KemSetting;
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use quiver_message::{Message, Nonce, Rekey, RevocationList as ListMessage, RevocationQuery, Welcome};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::checkpoint::{Checkpoint, CheckpointContext, CheckpointError, Rules};
use crate::EPOCH_START;
use crate::master_key::SingleMasterKey;
use crate::rng_stream::below;

/// The leader, as drones see it; and how its gate sees a drone.
const LEADER: Peer = Peer(1);
const DRONE: Peer = Peer(2);
/// Start of each membership.
const BEGINNING: Duration = Duration::from_secs(100);
/// Time for which a drone is observed in the end.
const WATCHED: Duration = Duration::from_secs(60);
/// A policy that every drone satisfies.
const POLICY: &str = "battery < 127";

/// Differences between two memberships, as text; `None` if they cannot be linked.
///
/// # Errors
/// [`CheckpointError`], never for this module's own policy.
pub fn distinguish<S: Suite>(seed: u64) -> Result<Option<String>, CheckpointError> {
    let mut tagger = TaggingLeader::<S>::new(seed)?;
    let (mut tagged, mut fresh) = (tagger.drone(0)?, tagger.drone(1)?);
    let (tag, probe) = (tagger.actions(), tagger.actions());
    tagger.life(&mut tagged, &tag)?;
    let (again, first) = (tagger.life(&mut tagged, &probe)?, tagger.life(&mut fresh, &probe)?);
    let differs = again.iter().zip(&first).find(|(again, first)| again != first);
    Ok(match differs {
        None if again.len() == first.len() => None,
        None => Some(format!("{} steps in a second membership, {} in a first", again.len(), first.len())),
        Some((again, first)) => {
            Some(format!("in a second membership a drone does \"{again}\" where another does \"{first}\""))
        }
    })
}

/// Result of an exchange: the drone's nonce, the pairwise secret, and the drone's pseudonym.
type Exchanged = (Nonce, [u8; 32], [u8; 16]);

/// An action of the leader towards a drone.
#[derive(Clone, Debug)]
enum TagAction {
    /// Admits it with the epoch of this counter, whose key is valid for so many seconds; the header claims
    /// that there is a list of this number.
    Welcome { counter: u64, valid: i64, list: u64 },
    /// A genuine revocation list of this number.
    List(u64),
    /// Proof that the spare key contradicted itself.
    Proof,
    /// Asks which list it has.
    Query,
    /// A header of the spare key.
    SpareHeader,
}

/// A drone, and its disk.
struct TaggedDrone {
    credential: Credential,
    state: Option<Snapshot>,
}

struct TaggingLeader<S: Suite> {
    rng: ChaCha20Rng,
    clock: Duration,
    deployment: Deployment<S>,
    group: Name,
    master: MasterSecret<S>,
    checkpoint: Checkpoint<S>,
    own: DroneKeypair<S>,
    spare: DroneKeypair<S>,
    period: u64,
}

/// A machine that is watched.
struct Life<S: Suite> {
    edge: AnonymousEdge<S>,
    rng: ChaCha20Rng,
    seen: Vec<String>,
    state: Option<Snapshot>,
    deadline: Option<Duration>,
}

impl<S: Suite> TaggingLeader<S> {
    fn new(seed: u64) -> Result<Self, CheckpointError> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("tagging")?, master.public());
        let group = Name::new("alpha")?;
        let master_key = SingleMasterKey::of(&master);
        let now = EPOCH_START + BEGINNING.as_secs();
        let place =
            CheckpointContext { deployment: &deployment, master_key: &master_key, group: &group, seed, now };
        let checkpoint = Checkpoint::found(&place, &Rules::of_battery(POLICY))?;
        let mut keypair = |ordinal: u16| -> Result<_, CheckpointError> {
            let role = Role::Leader { group: group.clone(), ordinal };
            let (name, not_after) = (Name::new(&format!("leader-{ordinal}"))?, UnixTime::MAX);
            let serial = [u8::try_from(ordinal).unwrap_or(0); 16];
            let identity = Identity { serial, name, role, groups: Vec::new(), not_after };
            let value = SecretValue::generate(&mut rng);
            let partial = master.issue_partial_key(&deployment, &identity, &value.public(), &mut rng);
            Ok(partial.verify(&deployment, &identity, &value)?)
        };
        let (own, spare) = (keypair(1)?, keypair(2)?);
        let period = checkpoint.period_at(now);
        Ok(Self { rng, clock: BEGINNING, deployment, group, master, checkpoint, own, spare, period })
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: EPOCH_START + self.clock.as_secs() }
    }

    fn drone(&self, number: u32) -> Result<TaggedDrone, CheckpointError> {
        let fields = self.checkpoint.fields(number);
        let credential = self.checkpoint.certify(number, &fields, self.period)?;
        Ok(TaggedDrone { credential, state: None })
    }

    /// Some actions, one welcome at least among them; their epochs ascend.
    fn actions(&mut self) -> Vec<TagAction> {
        let mut counter = 1;
        let mut actions = Vec::new();
        for _ in 0..3 + below(&mut self.rng, 6) {
            actions.push(match below(&mut self.rng, 8) {
                0 => TagAction::List(1 + below(&mut self.rng, 9)),
                1 => TagAction::Proof,
                2 => TagAction::Query,
                3 => TagAction::SpareHeader,
                _ => self.welcome_deed(&mut counter),
            });
        }
        actions.push(self.welcome_deed(&mut counter));
        actions
    }

    fn welcome_deed(&mut self, counter: &mut u64) -> TagAction {
        *counter += 1 + below(&mut self.rng, 12);
        // One in four is about to end, or has ended.
        let valid = match below(&mut self.rng, 4) {
            0 => [-30, -1, 0, 1][self.rng.next_u32() as usize % 4],
            _ => 600,
        };
        TagAction::Welcome { counter: *counter, valid, list: below(&mut self.rng, 9) }
    }

    fn context(&self, leader: &DroneKeypair<S>) -> GroupContext<S> {
        let (deployment, leader) = (self.deployment.clone(), leader.public().clone());
        GroupContext { deployment, group: self.group.clone(), leader }
    }

    fn times(&self, valid: i64, revocation_number: u64) -> Times {
        let valid_until = self.now().unix.saturating_add_signed(valid);
        Times { issued_at: valid_until - 900, valid_until, revocation_number }
    }

    fn opened(&mut self, spare: bool, times: &Times) -> Result<(Leadership<S>, Header<S>), CheckpointError> {
        let own = if spare { &self.spare } else { &self.own };
        let ordinal = if spare { 2 } else { 1 };
        let (context, none) = (self.context(own), BTreeMap::new());
        let (term, flat) = (Epoch::term_of(1, ordinal), StrategyKind::Flat);
        let opened = Leadership::open_term(
            context,
            own,
            Roster::new(),
            &none,
            term,
            [0; 32],
            times,
            flat,
            &mut self.rng,
        )?;
        Ok((opened.0, opened.1.header))
    }

    fn message(
        &mut self,
        action: &TagAction,
        run: &(Nonce, [u8; 32], [u8; 16]),
    ) -> Result<Message<S>, CheckpointError> {
        Ok(match *action {
            TagAction::Welcome { counter, valid, list } => {
                let (nonce, secret, pseudonym) = run;
                let times = self.times(valid, list);
                let (mut leadership, _) = self.opened(false, &times)?;
                for _ in 2..counter {
                    leadership.rekey(&self.own, Batch::default(), &times, &mut self.rng)?;
                }
                let until = self.checkpoint.end_of(self.period);
                let member = Anonymous { pseudonym: Pseudonym(*pseudonym), until };
                let admissions = vec![Admission { member, secret: AgreedSecret::new(secret), kem: None }];
                let batch = Batch { admissions, ..Batch::default() };
                let output = leadership.rekey(&self.own, batch, &times, &mut self.rng)?;
                let entry = output.entries.into_iter().find(|entry| output.admitted.contains(&entry.slot));
                let part = EpochPart::Entry(entry.ok_or(quiver_ainq::Error::MissingEntry)?);
                Message::Welcome(Welcome { nonce: *nonce, header: output.header, part })
            }
            TagAction::List(number) => {
                let next_update = self.now().unix + 100_000;
                let list = RevocationStatement { number, next_update, ..RevocationStatement::empty() };
                let list = self.master.sign_revocations(&self.deployment, list, &mut self.rng)?;
                Message::RevocationList(ListMessage { list: list.encode() })
            }
            TagAction::Proof => {
                let (first, second) = (self.times(600, 0), self.times(601, 0));
                let (first, second) = (self.opened(true, &first)?.1, self.opened(true, &second)?.1);
                Message::EquivocationProof(Box::new(EquivocationProof { first, second }))
            }
            TagAction::Query => Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }),
            TagAction::SpareHeader => {
                let times = self.times(600, 0);
                Message::Rekey(Rekey::new(self.opened(true, &times)?.1, None))
            }
        })
    }

    fn gate(&mut self) -> Result<Gate<S>, CheckpointError> {
        let demand = self.checkpoint.demand();
        let keypair =
            DroneKeypair::restore(&self.deployment, self.own.public().clone(), &self.own.to_bytes())?;
        let config = GateConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            keypair,
            policy: demand.policy,
            authority: demand.authority,
            timing: demand.timing,
            kem: None,
        };
        let mut gate = Gate::new(config, Secret::random(&mut self.rng), self.now().unix)?;
        let keys = self.checkpoint.slot_keys(self.period)?;
        gate.handle_input(self.now(), Input::Command(GateCommand::SlotKeys(keys)), &mut self.rng);
        Ok(gate)
    }

    /// One machine of a drone: all its outputs.
    fn life(
        &mut self,
        drone: &mut TaggedDrone,
        actions: &[TagAction],
    ) -> Result<Vec<String>, CheckpointError> {
        self.clock = BEGINNING;
        let options = (EdgeTiming::default(), KemSetting::None);
        let config = self.checkpoint.anonymous(drone.credential.clone(), self.period, options);
        let edge = AnonymousEdge::new(config, drone.state.as_ref())
            .map_err(|_| quiver_ainq::Error::Malformed("the state of an anonymous edge"))?;
        // Every membership draws the same randomness, which therefore distinguishes none.
        let rng = ChaCha20Rng::seed_from_u64(1);
        let mut life = Life { edge, rng, seen: Vec::new(), state: None, deadline: None };
        if let Some(run) = self.run(&mut life)? {
            for action in actions {
                let bytes = self.message(action, &run)?.encode(&self.deployment);
                life.feed(
                    &self.deployment,
                    self.now(),
                    Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes },
                );
            }
        }
        while let Some(deadline) = life.deadline.filter(|at| *at < BEGINNING + WATCHED) {
            self.clock = self.clock.max(deadline) + Duration::from_millis(1);
            life.feed(&self.deployment, self.now(), Input::Timeout);
        }
        if let Some(state) = life.state {
            drone.state = Some(state);
        }
        Ok(life.seen)
    }

    /// An honest exchange; `None` if it failed.
    fn run(&mut self, life: &mut Life<S>) -> Result<Option<Exchanged>, CheckpointError> {
        let mut gate = self.gate()?;
        let connected = Input::Connected { peer: LEADER, route: Route::Leader };
        let mut up = life.feed(&self.deployment, self.now(), connected);
        let mut nonce = [0; 16];
        // A few dozen messages, and as many pieces of work.
        for _ in 0..1_000 {
            for bytes in std::mem::take(&mut up) {
                if let Some(AdmissionMessage::Hello(hello)) = super::read(&self.deployment, &bytes) {
                    nonce = hello.nonce;
                }
                gate.handle_input(
                    self.now(),
                    Input::Received { from: DRONE, via: Via::Peer, bytes: &bytes },
                    &mut self.rng,
                );
            }
            let (mut down, mut admitted) = (Vec::new(), None);
            let deadline = loop {
                match gate.poll_output() {
                    Output::Transmit { to: Destination::Peer(_), payload } => down.push(payload),
                    Output::Event(GateEvent::Admitted { pseudonym, .. }) => admitted = Some(pseudonym),
                    Output::Timeout(deadline) => break deadline,
                    _ => {}
                }
            };
            let idle = down.is_empty();
            for bytes in down {
                let input = Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes };
                up.extend(life.feed(&self.deployment, self.now(), input));
            }
            if let Some(pseudonym) = admitted {
                let secret = gate.take_session(DRONE).map(|session| *session.pairwise().expose());
                return Ok(secret.map(|secret| (nonce, secret, pseudonym)));
            }
            match deadline {
                Some(deadline) if idle => {
                    self.clock = self.clock.max(deadline);
                    gate.handle_input(self.now(), Input::Timeout, &mut self.rng);
                }
                None if idle && up.is_empty() => break,
                _ => {}
            }
        }
        Ok(None)
    }
}

impl<S: Suite> Life<S> {
    /// Feeds an input; returns the messages.
    fn feed(&mut self, deployment: &Deployment<S>, now: Now, input: Input<'_, EdgeCommand>) -> Vec<Vec<u8>> {
        self.edge.handle_input(now, input, &mut self.rng);
        let mut sent = Vec::new();
        loop {
            let seen = match self.edge.poll_output() {
                Output::Persist(state) => {
                    self.state = Some(state);
                    "persists".into()
                }
                Output::Transmit { to, payload } => {
                    let said = match Message::<S>::decode(deployment, &payload) {
                        Ok(Message::Ack(ack)) => format!("Ack of {} in slot {}", ack.epoch, ack.slot),
                        Ok(other) => kind(&super::described(&other).unwrap_or_else(|| format!("{other:?}"))),
                        Err(error) => kind(&format!("{error:?}")),
                    };
                    let seen = format!("{said}, {} bytes, to {to:?}", payload.len());
                    sent.push(payload);
                    seen
                }
                // The random parts are not compared.
                Output::Event(AnonymousEvent::Edge(EdgeEvent::KeyActivated { epoch, slot, .. })) => {
                    format!("key of {epoch} in {slot}")
                }
                Output::Event(AnonymousEvent::Admitted { slot, until, .. }) => {
                    format!("in {slot} until {until}")
                }
                Output::Event(event) => format!("{event:?}"),
                Output::Block(peer) | Output::Disconnect(peer) => format!("blocks {peer:?}"),
                Output::Timeout(deadline) => {
                    self.deadline = deadline;
                    self.seen.push(format!("waits until {deadline:?}"));
                    return sent;
                }
                Output::Relay { peer, .. } | Output::Penalize { peer, .. } => format!("judges {peer:?}"),
            };
            self.seen.push(seen);
        }
    }
}

/// Kind of a message: its name without its content.
fn kind(debug: &str) -> String {
    debug.chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_of_one_drone_are_not_told_from_those_of_two() {
        for seed in 0..12 {
            assert_eq!(distinguish::<crate::InsecureToy>(seed).unwrap(), None, "seed {seed}");
        }
        assert_eq!(distinguish::<quiver_ainq::Ristretto255>(3).unwrap(), None);
    }

    #[test]
    fn drones_are_let_in_and_watched() {
        let mut tagger = TaggingLeader::<crate::InsecureToy>::new(1).unwrap();
        let mut drone = tagger.drone(0).unwrap();
        let actions = [TagAction::Welcome { counter: 5, valid: 600, list: 3 }];
        let seen = tagger.life(&mut drone, &actions).unwrap();
        assert_eq!(seen.iter().filter(|line| line.starts_with("Ack of 1-1.5")).count(), 1, "{seen:#?}");
    }
}
