//! Quiver: the machines of its services, [`Leader`] and [`Edge`], with the delivery that they have themselves.
//!
//! Drones are enrolled beforehand, as those of the other schemes have their long-term keys. A newcomer asks to join as
//! it does in service: with a hello, a cookie and a signed request, which are counted. Newcomers ask one after the other, as
//! fast as the radio carries their exchanges, because that is how operators start them on a slow channel.
//!
//! One member is removed by the operator's word to the leader. A leader takes one name at a time and makes an epoch for
//! each, which the next to be removed still opens. So several are removed as the services remove several at once: the KGC
//! revokes them, and the leader makes one epoch for its list. The list reaches the leader by no radio; what the leader
//! and its members send of it is counted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Revoked, Ristretto255, Role, Serial,
    StrategyKind, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcRecord};
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderCommand, LeaderConfig, LeaderRecord};
use quiver_kem::KemSetting;
use quiver_machine::{Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use quiver_message::{Message, RevocationList};
use quiver_testbed::EPOCH_START;
use rand_chacha::ChaCha20Rng;
use rand_core::CryptoRngCore;

use super::{Setting, stream};
use crate::contract::{
    Command, Contender, ContenderError, Facts, Fingerprint, KeyState, MemberId, Participant, SecretsOrigin,
};

type S = Ristretto255;

const GROUP: &str = "alpha";
/// The KGC's handle while a drone enrols.
const KGC: Peer = Peer(u64::MAX >> 1);
const YEAR: u64 = 365 * 86_400;
/// Rounds of messages in which a drone enrols.
const ENROLMENT_ROUNDS: usize = 16;

/// Quiver under one of its strategies.
pub struct Quiver {
    strategy: StrategyKind,
    kem: KemSetting,
    setting: Setting,
    genuine: QuiverDeployment,
    /// A deployment of the same name with other keys, for a usurper.
    false_one: Option<QuiverDeployment>,
    edges: BTreeMap<MemberId, Snapshot>,
}

/// A KGC, an operator and a leader.
struct QuiverDeployment {
    deployment: Deployment<S>,
    centre: Rc<RefCell<KeyCentre>>,
    operator: OperatorSecretKey<S>,
    rng: ChaCha20Rng,
    /// The leader's disk.
    records: Rc<RefCell<Vec<LeaderRecord>>>,
}

/// A KGC with its clock, and the drones that it enrolled.
struct KeyCentre {
    deployment: Deployment<S>,
    kgc: Kgc<S>,
    /// Inputs so far, one a second, so that no rate is exceeded.
    inputs: u64,
    serials: BTreeMap<MemberId, Serial>,
}

impl KeyCentre {
    fn now(&mut self, unix: u64) -> Now {
        self.inputs += 1;
        Now { monotonic: Duration::from_secs(self.inputs), unix }
    }

    /// Revokes members. Gives the list that names them, as the message in which a leader gets it.
    fn revoke(&mut self, unix: u64, members: &[MemberId], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        let serials = members.iter().filter_map(|member| self.serials.get(member));
        let command = KgcCommand::RevokeDrones(serials.map(|serial| Revoked::unknown(*serial)).collect());
        let now = self.now(unix);
        self.kgc.handle_input(now, Input::Command(command), rng);
        let mut records = Vec::new();
        drain(&mut self.kgc, &mut records);
        let list = records.into_iter().rev().find_map(|record| match record {
            KgcRecord::RevocationList { list, .. } => Some(list),
            _ => None,
        })?;
        Some(Message::<S>::RevocationList(RevocationList { list }).encode(&self.deployment))
    }
}

fn failed(scheme: &'static str, what: String) -> ContenderError {
    ContenderError::Scheme { scheme, what }
}

const fn name_of(strategy: StrategyKind, kem: KemSetting) -> &'static str {
    match (strategy, kem) {
        (StrategyKind::Flat, KemSetting::None) => "Quiver, flat",
        (StrategyKind::Flat, KemSetting::MlKem768) => "Quiver, flat, ML-KEM-768",
        (StrategyKind::Flat, KemSetting::MlKem1024) => "Quiver, flat, ML-KEM-1024",
        (StrategyKind::Tree, KemSetting::None) => "Quiver, tree",
        (StrategyKind::Tree, KemSetting::MlKem768) => "Quiver, tree, ML-KEM-768",
        (StrategyKind::Tree, KemSetting::MlKem1024) => "Quiver, tree, ML-KEM-1024",
    }
}

/// Bytes of a join: hello, challenge, request, welcome, acknowledgement; from a drone and from its leader.
const JOIN_BYTES: [(usize, usize); 2] = [(210 + 450 + 54, 3), (230 + 450, 2)];

/// Time that the radio takes for one join, and half as long again. With a second factor the encapsulation key and
/// the ciphertext come on top (§24).
fn join_pace(setting: &Setting, kem: KemSetting) -> Duration {
    if !setting.shared_medium {
        return Duration::ZERO;
    }
    let [(drone, drone_messages), (leader, leader_messages)] = JOIN_BYTES;
    let [key, ciphertext] = kem.set().map_or([0; 2], |set| [set.key_len(), set.ciphertext_len()]);
    // The last frame of a message is not full.
    let frames = |bytes: usize, messages: usize| (bytes / setting.pace.capacity.max(1) + messages) as u32;
    let exchange = setting.pace.frame * frames(drone + key, drone_messages)
        + setting.pace.controller_frame * frames(leader + ciphertext, leader_messages);
    exchange * 3 / 2
}

impl QuiverDeployment {
    fn new(seed: u64) -> Result<Self, String> {
        let mut rng = stream(seed, 0);
        let (master, operator) =
            (MasterSecret::<S>::generate(&mut rng), OperatorSecretKey::generate(&mut rng));
        let deployment = Deployment::new(name("comparison")?, master.public());
        let cookie_key = Secret::random(&mut rng);
        let config = KgcConfig::single(deployment.clone(), master, vec![operator.public()], cookie_key);
        let kgc = Kgc::new(config, []).map_err(|error| error.to_string())?;
        let centre = KeyCentre { deployment: deployment.clone(), kgc, inputs: 0, serials: BTreeMap::new() };
        let centre = Rc::new(RefCell::new(centre));
        Ok(Self { deployment, centre, operator, rng, records: Rc::default() })
    }

    fn token(&mut self, drone: &str, role: Role) -> Result<IssuedToken<S>, String> {
        let expiry = EPOCH_START + YEAR;
        let grant =
            TokenGrant { name: name(drone)?, role, groups: vec![name(GROUP)?], not_after: expiry, expiry };
        self.operator.issue(&self.deployment, grant, &mut self.rng).map_err(|error| error.to_string())
    }

    /// Has a drone's machine enrolled by the KGC, and gives what it persisted.
    fn enrol<M: Machine>(&mut self, machine: &mut M) -> Result<Vec<M::Record>, String> {
        let mut centre = self.centre.borrow_mut();
        let now = centre.now(EPOCH_START);
        let (peer, kgc) = (Peer(centre.inputs), &mut centre.kgc);
        let mut records = Vec::new();
        machine.handle_input(now, Input::Connected { peer: KGC, route: Route::Kgc }, &mut self.rng);
        kgc.handle_input(now, Input::Connected { peer, route: Route::Inbound }, &mut self.rng);
        for _ in 0..ENROLMENT_ROUNDS {
            let sent = drain(machine, &mut records);
            if sent.is_empty() {
                break;
            }
            for (_, bytes) in sent.into_iter().filter(|(to, _)| *to == Some(KGC)) {
                let input = Input::Received { from: peer, via: Via::Peer, bytes: &bytes };
                kgc.handle_input(now, input, &mut self.rng);
            }
            for (_, bytes) in drain(kgc, &mut Vec::new()).into_iter().filter(|(to, _)| *to == Some(peer)) {
                let input = Input::Received { from: KGC, via: Via::Peer, bytes: &bytes };
                machine.handle_input(now, input, &mut self.rng);
            }
        }
        kgc.handle_input(now, Input::Disconnected { peer }, &mut self.rng);
        drain(kgc, &mut Vec::new());
        Ok(records)
    }

    fn leader(
        &mut self,
        strategy: StrategyKind,
        kem: KemSetting,
        setting: &Setting,
    ) -> Result<Leader<S>, String> {
        let config = |fleet: &Self, token| -> Result<LeaderConfig<S>, String> {
            Ok(LeaderConfig {
                strategy,
                shared_medium: setting.shared_medium,
                max_members: setting.members.saturating_mul(2).clamp(64, 1 << 20),
                timing: leader_timing(setting, kem),
                ..LeaderConfig::new(fleet.deployment.clone(), name(GROUP)?, token)
            })
        };
        if self.records.borrow().is_empty() {
            let role = Role::Leader { group: name(GROUP)?, ordinal: 0 };
            let token = self.token("leader", role)?;
            let leader = Leader::new(config(self, Some(token))?, []).map_err(|error| error.to_string())?;
            let mut leader = leader.with_kem(kem);
            let records = self.enrol(&mut leader)?;
            self.records.borrow_mut().extend(records);
        }
        let records = self.records.borrow().clone();
        let leader = Leader::new(config(self, None)?, records).map_err(|error| error.to_string())?;
        Ok(leader.with_kem(kem))
    }
}

fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

/// Time settings for a radio: answers may take as long as the radio takes for all.
fn leader_timing(setting: &Setting, kem: KemSetting) -> LeaderTiming {
    let (join, default) = (join_pace(setting, kem), LeaderTiming::default());
    let all = setting.pace.frame * 8 * setting.members;
    LeaderTiming {
        validity: Duration::from_secs(30 * 86_400),
        challenge: (all * 2).clamp(Duration::from_secs(120), LeaderTiming::MAX_CHALLENGE),
        resend: (setting.pace.frame * 2 * setting.members).max(Duration::from_secs(5)),
        // Joins that come one after the other make one epoch.
        batching: default.batching.max(join * 4),
        batching_max: default.batching_max.max(join * setting.members * 2),
        ..default
    }
}

fn edge_timing(setting: &Setting, kem: KemSetting) -> EdgeTiming {
    let default = EdgeTiming::default();
    let all = setting.pace.frame * 8 * setting.members;
    let joins = join_pace(setting, kem) * setting.members;
    EdgeTiming {
        retry: (all / 4).max(joins / 4).max(default.retry),
        retry_max: (all * 2).max(default.retry_max),
        // The leader answers when the last newcomer has asked.
        admission: (all + joins * 2).max(default.admission),
        ..default
    }
}

/// Messages that a machine sends, with their receivers; its records are appended.
fn drain<M: Machine>(machine: &mut M, records: &mut Vec<M::Record>) -> Vec<(Option<Peer>, Vec<u8>)> {
    let mut sent = Vec::new();
    loop {
        match machine.poll_output() {
            Output::Persist(record) => records.push(record),
            Output::Transmit { to: quiver_machine::Destination::Peer(peer), payload } => {
                sent.push((Some(peer), payload));
            }
            Output::Transmit { payload, .. } => sent.push((None, payload)),
            Output::Timeout(_) => return sent,
            _ => {}
        }
    }
}

impl Quiver {
    /// Sets it up.
    ///
    /// # Errors
    /// [`ContenderError::Scheme`].
    pub fn new(strategy: StrategyKind, kem: KemSetting, setting: Setting) -> Result<Self, ContenderError> {
        let genuine =
            QuiverDeployment::new(setting.seed).map_err(|what| failed(name_of(strategy, kem), what))?;
        Ok(Self { strategy, kem, setting, genuine, false_one: None, edges: BTreeMap::new() })
    }

    fn edge(&mut self, id: MemberId) -> Result<Edge<S>, String> {
        let config = |fleet: &QuiverDeployment, token| EdgeConfig {
            timing: edge_timing(&self.setting, self.kem),
            ..EdgeConfig::new(fleet.deployment.clone(), None, token)
        };
        if !self.edges.contains_key(&id) {
            let token = self.genuine.token(&drone(id), Role::Edge)?;
            let fresh = Edge::new(config(&self.genuine, Some(token)), None);
            let mut edge = fresh.map_err(|error| error.to_string())?.with_kem(self.kem);
            let records = self.genuine.enrol(&mut edge)?;
            let keypair = edge.keypair().ok_or_else(|| format!("{} did not enrol", drone(id)))?;
            let serial = keypair.public().identity.serial;
            self.genuine.centre.borrow_mut().serials.insert(id, serial);
            self.edges.insert(id, records.into_iter().next_back().ok_or("nothing was persisted")?);
        }
        let edge = Edge::new(config(&self.genuine, None), self.edges.get(&id));
        Ok(edge.map_err(|error| error.to_string())?.with_kem(self.kem))
    }
}

fn drone(id: MemberId) -> String {
    format!("drone-{id:07}")
}

impl Contender for Quiver {
    fn name(&self) -> &'static str {
        name_of(self.strategy, self.kem)
    }

    fn facts(&self) -> Facts {
        Facts {
            needs_leader: "yes; a deputy takes over",
            heals: "a newcomer's and a new term's exchange is ephemeral: a stolen long-term key opens no recording",
            proof: "symbolic, by ProVerif (models/)",
            standard: "none",
            quantum: match self.kem {
                KemSetting::None => "no: ristretto255",
                KemSetting::MlKem768 => "yes, by ML-KEM-768; signatures are Schnorr's on ristretto255",
                KemSetting::MlKem1024 => "yes, by ML-KEM-1024; signatures are Schnorr's on ristretto255",
            },
            notes: "The services' own machines. The whole handshake of a join is counted, which no other scheme's is. \
                    Several members are removed by the KGC's list, which each member fetches over the radio.",
        }
    }

    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        let (strategy, kem, scheme) = (self.strategy, self.kem, self.name());
        let fleet = match authority {
            SecretsOrigin::Genuine => &mut self.genuine,
            SecretsOrigin::Public => match &mut self.false_one {
                Some(fleet) => fleet,
                absent @ None => {
                    let fleet =
                        QuiverDeployment::new(!self.setting.seed).map_err(|what| failed(scheme, what))?;
                    absent.insert(fleet)
                }
            },
        };
        let leader = fleet.leader(strategy, kem, &self.setting).map_err(|what| failed(scheme, what))?;
        let (records, centre) = (Rc::clone(&fleet.records), Rc::clone(&fleet.centre));
        Ok(Box::new(QuiverLeader { leader, records, centre, key: LastExport::default() }))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let scheme = self.name();
        let edge = self.edge(id).map_err(|what| failed(scheme, what))?;
        Ok(Box::new(QuiverEdge { edge, key: LastExport::default() }))
    }

    fn pace_of_newcomers(&self) -> Duration {
        join_pace(&self.setting, self.kem)
    }
}

/// The key of the digest that was exported last.
#[derive(Default)]
struct LastExport {
    digest: Option<[u8; 32]>,
    state: Option<KeyState>,
}

impl LastExport {
    fn follow(&mut self, digest: Option<[u8; 32]>, export: impl FnOnce(&Name) -> Option<Secret<32>>) {
        if digest == self.digest {
            return;
        }
        let key = Name::new("comparison").ok().and_then(|name| export(&name));
        // The epoch is a count here: terms and counters of Quiver grow, too.
        let epoch = self.state.map_or(1, |state| state.epoch + 1);
        self.state = key.as_ref().map(|key| KeyState { epoch, key: Fingerprint::of(key) });
        self.digest = digest.filter(|_| key.is_some());
    }
}

struct QuiverLeader {
    leader: Leader<S>,
    records: Rc<RefCell<Vec<LeaderRecord>>>,
    centre: Rc<RefCell<KeyCentre>>,
    key: LastExport,
}

impl Machine for QuiverLeader {
    type Command = Command;
    type Event = String;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Command>, rng: &mut dyn CryptoRngCore) {
        let leader = &mut self.leader;
        match input {
            Input::Timeout => leader.handle_input(now, Input::Timeout, rng),
            Input::Connected { peer, route } => {
                leader.handle_input(now, Input::Connected { peer, route }, rng);
            }
            Input::Disconnected { peer } => leader.handle_input(now, Input::Disconnected { peer }, rng),
            Input::Received { from, via, bytes } => {
                leader.handle_input(now, Input::Received { from, via, bytes }, rng);
            }
            Input::Resumed => leader.handle_input(now, Input::Resumed, rng),
            // Every drone that the KGC enrolled for the group may come in.
            Input::Command(Command::Admit(_) | Command::Join) => {
                leader.handle_input(now, Input::Timeout, rng);
            }
            Input::Command(Command::Expire) => {
                leader.handle_input(now, Input::Command(LeaderCommand::Rekey), rng);
            }
            Input::Command(Command::Remove(members)) => {
                if let [member] = members[..] {
                    if let Ok(name) = Name::new(&drone(member)) {
                        leader.handle_input(now, Input::Command(LeaderCommand::Evict(name)), rng);
                    }
                } else if let Some(list) = self.centre.borrow_mut().revoke(now.unix, &members, rng) {
                    let input = Input::Received { from: KGC, via: Via::Peer, bytes: &list };
                    leader.handle_input(now, input, rng);
                }
            }
        }
        let status = self.leader.status();
        self.key.follow(status.digest, |name| self.leader.export(name));
    }

    fn poll_output(&mut self) -> Output<String, Infallible> {
        loop {
            match self.leader.poll_output() {
                Output::Persist(record) => self.records.borrow_mut().push(record),
                Output::Event(_) => {}
                Output::Transmit { to, payload } => return Output::Transmit { to, payload },
                Output::Block(peer) => return Output::Block(peer),
                Output::Disconnect(peer) => return Output::Disconnect(peer),
                Output::Relay { peer, allowed } => return Output::Relay { peer, allowed },
                Output::Penalize { peer, misdeed } => return Output::Penalize { peer, misdeed },
                Output::Timeout(deadline) => return Output::Timeout(deadline),
            }
        }
    }
}

impl Participant for QuiverLeader {
    fn key_state(&self) -> Option<KeyState> {
        self.key.state
    }
}

struct QuiverEdge {
    edge: Edge<S>,
    key: LastExport,
}

impl Machine for QuiverEdge {
    type Command = Command;
    type Event = String;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Command>, rng: &mut dyn CryptoRngCore) {
        let edge = &mut self.edge;
        match input {
            Input::Timeout => edge.handle_input(now, Input::Timeout, rng),
            Input::Connected { peer, route } => edge.handle_input(now, Input::Connected { peer, route }, rng),
            Input::Disconnected { peer } => edge.handle_input(now, Input::Disconnected { peer }, rng),
            Input::Received { from, via, bytes } => {
                edge.handle_input(now, Input::Received { from, via, bytes }, rng);
            }
            Input::Resumed => edge.handle_input(now, Input::Resumed, rng),
            Input::Command(Command::Join) => {
                if let Ok(group) = Name::new(GROUP) {
                    edge.handle_input(now, Input::Command(EdgeCommand::Join(group)), rng);
                }
            }
            Input::Command(_) => {}
        }
        let status = self.edge.status();
        let digest = status.digest.filter(|_| status.synced);
        self.key.follow(digest, |name| self.edge.export(name));
    }

    fn poll_output(&mut self) -> Output<String, Infallible> {
        loop {
            match self.edge.poll_output() {
                // A restart of a member is not played.
                Output::Persist(_) | Output::Event(_) => {}
                Output::Transmit { to, payload } => return Output::Transmit { to, payload },
                Output::Block(peer) => return Output::Block(peer),
                Output::Disconnect(peer) => return Output::Disconnect(peer),
                Output::Relay { peer, allowed } => return Output::Relay { peer, allowed },
                Output::Penalize { peer, misdeed } => return Output::Penalize { peer, misdeed },
                Output::Timeout(deadline) => return Output::Timeout(deadline),
            }
        }
    }
}

impl Participant for QuiverEdge {
    fn key_state(&self) -> Option<KeyState> {
        self.key.state
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.edge.export(&Name::new("comparison").ok()?)
    }
}
