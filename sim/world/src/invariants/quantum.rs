//! Checks secrecy against an adversary that has recorded everything that was ever sent, and computes discrete
//! logarithms later.
//!
//! In the [toy group](crate::InsecureToy) a point is its own logarithm. So of every drone whose request to
//! join it recorded the adversary has y, and e of every one-time point: all that the drone has, but κ. It goes
//! on as that drone, by the code of members, along everything that leaders publish. Of an anonymous drone it
//! has W of its run: the world takes it out of the machine, because the exchange is over another group, in
//! which nothing here computes a logarithm.
//!
//! Where there is no second factor it must open every epoch that a drone holds, because otherwise its failure
//! would prove nothing.
//! Where there is one it guesses κ, or has it of captured drones, and must open no epoch but those of terms
//! that its captive may have followed: of each leader the last one, and later ones, and all of a leader with which
//! the captive made κ ahead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{
    DroneKeypair, DronePublicKey, Epoch, EpochKind, EpochPart, Error, GroupContext, GroupMembership, Handle,
    Header, KemKey, KemTerm, Slot, SparePair, StrategyKind, Suite, VerifiedHeader,
};
use quiver_crypto::canonical::Writer;
use quiver_group::EdgeEvent;
use quiver_message::{JoinRequest, KemOffer, Message, Newcomers, Nonce};
use quiver_testbed::HeaderReader;
use sha2::{Digest, Sha256};

use super::history::{HeldKey, export_channel, show};
use super::{Evidence, Invariant, InvariantCheck};
use crate::admission::ExposedRun;
use crate::relays::carried;
use crate::{Action, Effect, InsecureToy, NodeEvent, NodeId, Step, StepObserver, World};

/// Number of one-time pairs of each drone that are kept: those of requests to join, and spare ones.
const PAIRS: usize = 16;
/// Number of publications that are kept for the time when a drone is captured.
const ARCHIVE: usize = 4096;

/// Publication of an epoch for members.
#[derive(Clone)]
struct EpochPublication<S: Suite> {
    header: Arc<VerifiedHeader<S>>,
    part: EpochPart,
    /// n_e of the request that a welcome answers.
    nonce: Option<Nonce>,
    newcomers: Newcomers,
}

/// Secrets of a drone without its second factor.
#[derive(Clone)]
enum CurveSecrets<S: Suite> {
    /// Secrets of a named drone.
    Named {
        keypair: Arc<DroneKeypair<S>>,
        /// E_now of its requests with n_e, the newest first.
        requests: VecDeque<(Nonce, Arc<SparePair<S>>)>,
        /// Spare pairs, by number.
        spares: Vec<Arc<SparePair<S>>>,
    },
    /// Secrets of the newest run of an anonymous drone.
    Anonymous(ExposedRun<S>),
}

/// A drone as the adversary can be it.
#[derive(Clone)]
struct Double<S: Suite> {
    secrets: CurveSecrets<S>,
    /// Membership in each term.
    places: BTreeMap<u64, Arc<GroupMembership<S>>>,
    /// κ that was taken from the drone, by its leader.
    taken: Vec<(Handle, KemKey<S>)>,
    captures: Vec<DroneCapture>,
}

/// Secrets of a drone that its capture gave the adversary.
#[derive(Clone)]
struct DroneCapture {
    /// Newest term of each leader that the drone had followed, by the leader's ordinal.
    followed: Vec<(u16, u64)>,
    /// Leaders with which it had made κ.
    leaders: Vec<Handle>,
}

impl DroneCapture {
    /// Returns true if what was taken may lead to this epoch of the leader.
    fn may_open(&self, epoch: Epoch, leader: &Handle) -> bool {
        match self.followed.iter().find(|(leader, _)| *leader == epoch.ordinal()) {
            Some((_, followed)) => epoch.term >= *followed,
            // §24.7: κ that was made ahead of a leader's terms leads to those that it opens then.
            None => self.leaders.contains(leader),
        }
    }
}

/// The adversary that computes discrete logarithms.
pub(crate) struct QuantumAdversary<S: Suite> {
    doubles: BTreeMap<u32, Double<S>>,
    archive: Vec<EpochPublication<S>>,
    /// SHA-256 of the messages in the archive: most are sent many times.
    known: BTreeSet<[u8; 32]>,
    /// Greatest counter of the publications of each term in the archive.
    newest: BTreeMap<u64, u64>,
    headers: HeaderReader<S>,
    /// The header that was verified last.
    verified: Option<Arc<VerifiedHeader<S>>>,
    opened: BTreeSet<Epoch>,
    /// Newest term of each leader that each edge followed.
    followed: BTreeMap<(u32, u16), u64>,
    attempts: u64,
}

impl<S: Suite> Clone for QuantumAdversary<S> {
    fn clone(&self) -> Self {
        Self {
            doubles: self.doubles.clone(),
            archive: self.archive.clone(),
            known: self.known.clone(),
            newest: self.newest.clone(),
            headers: self.headers.clone(),
            verified: self.verified.clone(),
            opened: self.opened.clone(),
            followed: self.followed.clone(),
            attempts: 0,
        }
    }
}

impl<S: Suite> Default for QuantumAdversary<S> {
    fn default() -> Self {
        Self {
            doubles: BTreeMap::new(),
            archive: Vec::new(),
            known: BTreeSet::new(),
            newest: BTreeMap::new(),
            headers: HeaderReader::new(),
            verified: None,
            opened: BTreeSet::new(),
            followed: BTreeMap::new(),
            attempts: 0,
        }
    }
}

/// An epoch that the adversary opened as a drone, with the exported key.
struct OpenedEpoch {
    edge: u32,
    epoch: Epoch,
    leader: Handle,
    key: [u8; 32],
}

/// Returns true if the adversary has the recording of this world, and a group in which it can compute.
fn computes<S: Suite>(world: &World<S>) -> bool {
    // Of ranks none sees all drones, and one is to check what many do.
    S::ID == InsecureToy::ID && world.setup().recording && world.setup().ranks.is_none()
}

/// The discrete logarithm of a point, if it is its own.
fn logarithm<S: Suite>(point: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; S::SCALAR_LEN];
    bytes.get_mut(..point.len())?.copy_from_slice(point);
    let scalar = S::scalar_decode(&bytes)?;
    (S::encode(&S::mul_base(&scalar)).as_ref() == point).then_some(bytes)
}

/// A one-time pair out of its public half.
fn pair<S: Suite>(q: u64, point: &[u8]) -> Option<Arc<SparePair<S>>> {
    let mut bytes = q.to_be_bytes().to_vec();
    bytes.extend(logarithm::<S>(point)?);
    SparePair::decode(&bytes).ok().map(Arc::new)
}

/// κ of these bytes, as of this set and count.
fn key<S: Suite>(term: KemTerm, bytes: &[u8]) -> Option<KemKey<S>> {
    let mut writer = Writer::new();
    term.write(&mut writer);
    KemKey::decode(&writer.fixed(bytes).finish()).ok()
}

impl<S: Suite> CurveSecrets<S> {
    /// Pairs of a drone that were recorded in a request.
    fn record(&mut self, request: &JoinRequest) {
        if let Some(spare) = pair(request.spare_q, &request.spare_point) {
            self.keep(spare);
        }
        let Self::Named { requests, .. } = self else { return };
        // No welcome answers one that asks for no membership.
        if matches!(request.kem, Some(KemOffer::Ahead { .. })) {
            return;
        }
        if requests.iter().all(|(nonce, _)| *nonce != request.nonce)
            && let Some(ephemeral) = pair(0, &request.ephemeral)
        {
            requests.push_front((request.nonce, ephemeral));
            requests.truncate(PAIRS);
        }
    }

    fn keep(&mut self, spare: Arc<SparePair<S>>) {
        let Self::Named { spares, .. } = self else { return };
        spares.retain(|known| known.q() != spare.q());
        spares.insert(spares.partition_point(|known| known.q() < spare.q()), spare);
        if spares.len() > PAIRS {
            spares.remove(0);
        }
    }

    /// Returns true if a publication answers a request or a run of the drone.
    fn asked_for(&self, published: &EpochPublication<S>) -> bool {
        match self {
            Self::Named { requests, .. } => requests.iter().any(|(nonce, _)| published.answers(nonce)),
            Self::Anonymous(run) => published.answers(run.nonce()),
        }
    }
}

impl<S: Suite> EpochPublication<S> {
    /// Returns true if it answers a request or a run of this nonce.
    fn answers(&self, asked: &Nonce) -> bool {
        match &self.part {
            EpochPart::Path(path) => path.r == *asked,
            EpochPart::Delta(_) => self.newcomers.slot_of(asked).is_some(),
            EpochPart::Entry(_) => self.nonce == Some(*asked),
        }
    }
}

impl<S: Suite> Double<S> {
    const fn new(secrets: CurveSecrets<S>) -> Self {
        Self { secrets, places: BTreeMap::new(), taken: Vec::new(), captures: Vec::new() }
    }

    /// Returns true if it is the drone with this public key.
    fn is(&self, drone: &[u8]) -> bool {
        matches!(&self.secrets, CurveSecrets::Named { keypair, .. } if keypair.public().encode() == drone)
    }

    /// Returns true if it is the drone in the run of this nonce.
    fn runs(&self, nonce: &Nonce) -> bool {
        matches!(&self.secrets, CurveSecrets::Anonymous(run) if run.nonce() == nonce)
    }

    /// κ to try on a header: those that were taken, forward as members step it and as if it were of the
    /// header's count, and one that is guessed. Nothing where there is no second factor.
    fn factors(&self, header: &VerifiedHeader<S>) -> Vec<Option<KemKey<S>>> {
        let Some(term) = header.core().kem else { return vec![None] };
        let leader = header.core().leader.handle();
        let taken = self.taken.iter().filter(|(of, _)| *of == leader).flat_map(|(_, taken)| {
            let bytes = taken.encode();
            let raw = bytes.get(bytes.len().saturating_sub(32)..).and_then(|raw| key(term, raw));
            [taken.at(&leader, term).ok(), raw]
        });
        let logged = match &self.secrets {
            CurveSecrets::Anonymous(run) => run.logged().cloned(),
            CurveSecrets::Named { .. } => None,
        };
        taken.chain([logged, key(term, &[0; 32])]).filter(Option::is_some).collect()
    }

    /// The membership that the drone has after a publication, if the adversary gets there.
    fn advance(
        &self,
        context: &GroupContext<S>,
        published: &EpochPublication<S>,
        slot: Option<Slot>,
    ) -> Option<GroupMembership<S>> {
        let EpochPublication { header, part, .. } = published;
        let core = header.core();
        if core.kind == EpochKind::Open {
            // §6.5: an anonymous member follows no opening.
            let CurveSecrets::Named { keypair, spares, .. } = &self.secrets else { return None };
            let slot = match part {
                EpochPart::Entry(entry) => entry.slot,
                EpochPart::Path(path) => path.slot,
                EpochPart::Delta(_) => slot.or_else(|| self.slot())?,
            };
            let anywhere = anywhere::<S>(header, slot)?;
            let named = |spare: &&Arc<SparePair<S>>| match part {
                EpochPart::Entry(entry) => entry.q == Some(spare.q()),
                _ => true,
            };
            let spares: Vec<_> = spares.iter().rev().filter(named).collect();
            return self.factors(header).into_iter().find_map(|kem| {
                spares.iter().find_map(|spare| {
                    let secrets = (Some(&***spare), kem.as_ref());
                    anywhere.advance_with_kem(context, keypair, secrets, header, part).ok()
                })
            });
        }
        let place = self.places.get(&core.epoch.term);
        if let Some(next) = place.and_then(|place| place.advance_in_term(header, part).ok()) {
            return Some(next);
        }
        if place.is_some_and(|place| place.epoch() >= core.epoch) {
            return None;
        }
        if !self.secrets.asked_for(published) {
            return None;
        }
        self.factors(header).into_iter().find_map(|kem| self.enter(context, published, kem.as_ref()))
    }

    /// The membership that begins with a publication.
    fn enter(
        &self,
        context: &GroupContext<S>,
        published: &EpochPublication<S>,
        kem: Option<&KemKey<S>>,
    ) -> Option<GroupMembership<S>> {
        let EpochPublication { header, part, newcomers, .. } = published;
        let joined = match &self.secrets {
            CurveSecrets::Named { keypair, requests, .. } => {
                let (nonce, ephemeral) = requests.iter().find(|(nonce, _)| published.answers(nonce))?;
                match part {
                    EpochPart::Delta(delta) => {
                        let slot = newcomers.slot_of(nonce).ok_or(Error::MissingEntry);
                        slot.and_then(|slot| {
                            let secrets = (&**ephemeral, kem);
                            GroupMembership::join_by_wraps_with_kem(
                                context, keypair, secrets, header, slot, delta,
                            )
                        })
                    }
                    part => GroupMembership::join_with_kem(context, keypair, ephemeral, kem, header, part),
                }
            }
            CurveSecrets::Anonymous(run) => run.enter(context, kem, header, part),
        };
        joined.ok()
    }

    /// Slot of the newest membership.
    fn slot(&self) -> Option<Slot> {
        self.places.last_key_value().map(|(_, place)| place.slot())
    }

    /// Returns true if a capture of the drone may lead to this epoch of the leader. An epoch that an earlier one opens
    /// stays open, whatever terms the drone followed since.
    fn may_open(&self, epoch: Epoch, leader: &Handle) -> bool {
        self.captures.iter().any(|capture| capture.may_open(epoch, leader))
    }
}

/// A membership before all terms, of which an opening needs nothing but group and slot.
fn anywhere<S: Suite>(header: &VerifiedHeader<S>, slot: Slot) -> Option<GroupMembership<S>> {
    let mut writer = Writer::new();
    writer.lp(S::ID.as_bytes()).lp(header.core().group.as_bytes()).fixed(&[0; 32]);
    writer.u8(StrategyKind::Flat.code()).u32(slot).u64(0).u64(0).fixed(&[0; 32]);
    // Under flat the chain is a step ahead of the epoch.
    writer.u64(1).fixed(&[0; 32]).fixed(&[0; 32]);
    GroupMembership::restore(&writer.finish()).ok()
}

impl<S: Suite> QuantumAdversary<S> {
    /// The headers that leaders sent.
    pub(super) const fn headers(&self) -> &HeaderReader<S> {
        &self.headers
    }

    /// Records what a node sent, and what edges followed.
    fn observe(&mut self, world: &World<S>, step: &Step) -> Vec<OpenedEpoch> {
        let mut openings = Vec::new();
        if let NodeId::Edge(edge) = step.node {
            for event in step.events() {
                let NodeEvent::Edge(EdgeEvent::KeyActivated { epoch, .. }) = event else { continue };
                let newest = self.followed.entry((edge, epoch.ordinal())).or_default();
                *newest = epoch.term.max(*newest);
            }
            self.observe_run(world, edge, &mut openings);
        }
        for effect in &step.effects {
            let Effect::Sent { payload, .. } = effect else { continue };
            match step.node {
                NodeId::Edge(edge) => self.record(world, edge, payload),
                NodeId::Leader(_) => {
                    for carried in carried(world.setup(), payload) {
                        self.overhear(world, &carried, &mut openings);
                    }
                    self.overhear(world, payload, &mut openings);
                }
                NodeId::Kgc(_) | NodeId::Relay(_) => {}
            }
        }
        openings
    }

    /// A run of an anonymous drone that its leader has confirmed. Its welcome may have been recorded before.
    fn observe_run(&mut self, world: &World<S>, edge: u32, openings: &mut Vec<OpenedEpoch>) {
        let Some(run) = ExposedRun::of(world, edge) else { return };
        let nonce = *run.nonce();
        if self.doubles.get(&edge).is_some_and(|double| double.runs(&nonce)) {
            return;
        }
        self.doubles.insert(edge, Double::new(CurveSecrets::Anonymous(run)));
        let first = self.archive.iter().position(|published| published.answers(&nonce));
        let recorded = first.and_then(|first| self.archive.get(first..)).unwrap_or_default().to_vec();
        for published in recorded {
            self.attack(world, &published, &[edge], openings);
        }
    }

    /// A drone's request to join, or its next spare point.
    fn record(&mut self, world: &World<S>, edge: u32, payload: &[u8]) {
        let deployment = world.fleet().deployment();
        match Message::<S>::decode(deployment, payload) {
            Ok(Message::JoinRequest(request)) => {
                let known = self.doubles.get(&edge);
                if known.is_none_or(|known| !known.is(&request.drone)) {
                    let Ok(public) = DronePublicKey::<S>::decode(&request.drone) else { return };
                    let implicit = public.implicit(deployment).ok();
                    let Some(y) = implicit.and_then(|point| logarithm::<S>(point.as_bytes())) else { return };
                    let Ok(keypair) = DroneKeypair::restore(deployment, public, &y) else { return };
                    let secrets = CurveSecrets::Named {
                        keypair: Arc::new(keypair),
                        requests: VecDeque::new(),
                        spares: Vec::new(),
                    };
                    self.doubles.insert(edge, Double::new(secrets));
                }
                if let Some(double) = self.doubles.get_mut(&edge) {
                    double.secrets.record(&request);
                }
            }
            Ok(Message::SparePublication(publication)) => {
                let spare = pair(publication.spare.q, publication.spare.point.as_bytes());
                if let (Some(double), Some(spare)) = (self.doubles.get_mut(&edge), spare) {
                    double.secrets.keep(spare);
                }
            }
            _ => {}
        }
    }

    /// A leader's message, perhaps a publication that was not seen before.
    fn overhear(&mut self, world: &World<S>, payload: &[u8], openings: &mut Vec<OpenedEpoch>) {
        let digest = Sha256::digest(payload).into();
        if self.archive.len() >= ARCHIVE || self.known.contains(&digest) {
            return;
        }
        let (header, part, nonce, newcomers) = match self.headers.decode(world.fleet().deployment(), payload)
        {
            Some(Message::Rekey(rekey)) => (rekey.header, rekey.part, None, rekey.newcomers),
            Some(Message::Welcome(welcome)) => {
                (welcome.header, Some(welcome.part), Some(welcome.nonce), Newcomers::default())
            }
            Some(Message::CatchUpReply(reply)) => (reply.header, reply.part, None, Newcomers::default()),
            _ => return,
        };
        // The secrets that the leader with two keys gives away are none of the group's.
        let Some(part) = part.filter(|_| world.doubled(header.core.epoch).is_none()) else { return };
        self.known.insert(digest);
        let Some(header) = self.verify(world, header) else { return };
        let published = EpochPublication { header, part, nonce, newcomers };
        let edges: Vec<u32> = self.doubles.keys().copied().collect();
        self.attack(world, &published, &edges, openings);
        let epoch = published.header.core().epoch;
        self.archive.push(published);
        let newest = self.newest.entry(epoch.term).or_default();
        *newest = epoch.counter.max(*newest);
        if epoch.counter < *newest {
            self.go_on(world, epoch, &edges, openings);
        }
    }

    /// Goes on along epochs of the term that were recorded before this one, because members keep wraps that come early,
    /// too (§8.4).
    fn go_on(&mut self, world: &World<S>, from: Epoch, edges: &[u32], openings: &mut Vec<OpenedEpoch>) {
        let is_later = |published: &&EpochPublication<S>| {
            let epoch = published.header.core().epoch;
            epoch.term == from.term && epoch > from
        };
        let mut later: Vec<_> = self.archive.iter().filter(is_later).cloned().collect();
        later.sort_by_key(|published| published.header.core().epoch);
        for published in later {
            self.attack(world, &published, edges, openings);
        }
    }

    /// The header as members have it.
    fn verify(&mut self, world: &World<S>, header: Header<S>) -> Option<Arc<VerifiedHeader<S>>> {
        let fleet = world.fleet();
        let digest = header.digest(fleet.deployment());
        if let Some(known) = self.verified.as_ref().filter(|known| *known.digest() == digest) {
            return Some(Arc::clone(known));
        }
        let verified = Arc::new(fleet.verify_header(header)?);
        self.verified = Some(Arc::clone(&verified));
        Some(verified)
    }

    /// Tries to follow a publication as each of these drones.
    fn attack(
        &mut self,
        world: &World<S>,
        published: &EpochPublication<S>,
        edges: &[u32],
        openings: &mut Vec<OpenedEpoch>,
    ) {
        let (header, fleet) = (&published.header, world.fleet());
        let context = GroupContext {
            deployment: fleet.deployment().clone(),
            group: fleet.group().clone(),
            leader: header.core().leader.clone(),
        };
        let one_slot = match &published.part {
            EpochPart::Entry(entry) => Some(entry.slot),
            EpochPart::Path(path) => Some(path.slot),
            EpochPart::Delta(_) => None,
        };
        // The drone known to be in that slot comes first.
        let in_slot = |double: &Double<S>| double.slot().is_some() && double.slot() == one_slot;
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| !self.doubles.get(edge).is_some_and(in_slot));
        self.attempts += 1;
        for edge in edges {
            let Some(double) = self.doubles.get_mut(&edge) else { continue };
            let slot = world.edge(edge).and_then(|edge| edge.status().slot);
            // Without κ of the drone, it is tried only on an opening for its own slot.
            let guesses = header.core().kind == EpochKind::Open
                && header.core().kem.is_some()
                && double.taken.is_empty();
            if guesses && one_slot.is_some() && slot.is_some() && slot != one_slot {
                continue;
            }
            let Some(next) = double.advance(&context, published, slot) else { continue };
            let exported =
                next.group_key().map(|key| *key.export(&export_channel(), header.digest()).expose());
            double.places.insert(header.core().epoch.term, Arc::new(next));
            while double.places.len() > PAIRS {
                double.places.pop_first();
            }
            let (epoch, leader) = (header.core().epoch, header.core().leader.handle());
            self.opened.insert(epoch);
            openings.extend(exported.map(|key| OpenedEpoch { edge, epoch, leader, key }));
            if one_slot.is_some() {
                break;
            }
        }
    }

    /// The adversary takes κ from a drone, and tries it on everything that it recorded.
    fn capture(&mut self, world: &World<S>, edge: u32) -> Vec<OpenedEpoch> {
        let mut openings = Vec::new();
        let taken = world.second_factors(edge);
        let of = self.followed.range((edge, 0)..=(edge, u16::MAX));
        let followed = of.map(|((_, leader), term)| (*leader, *term)).collect();
        let named = |double: &&mut Double<S>| matches!(double.secrets, CurveSecrets::Named { .. });
        // §A4.3: an anonymous drone stores no κ.
        let Some(double) = self.doubles.get_mut(&edge).filter(named) else { return openings };
        let leaders = taken.iter().map(|(leader, _)| *leader).collect();
        double.captures.push(DroneCapture { followed, leaders });
        double.taken.extend(taken);
        for published in self.archive.clone() {
            self.attack(world, &published, &[edge], &mut openings);
        }
        openings
    }
}

/// For the time in which a group forms.
impl<S: Suite> StepObserver<S> for QuantumAdversary<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        if computes(world) {
            self.observe(world, step);
        }
    }
}

impl<S: Suite> InvariantCheck<S> for QuantumAdversary<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        if computes(world) {
            let openings = self.observe(world, step);
            self.judge_openings(world, step.at, openings, evidence);
        }
    }

    /// The adversary takes κ from a drone.
    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action, evidence: &mut Evidence) {
        if let Action::Capture(edge) = action
            && computes(world)
        {
            let openings = self.capture(world, *edge);
            self.judge_openings(world, at, openings, evidence);
        }
    }

    /// Without a second factor the recording opens every epoch that an edge holds.
    fn on_key(&mut self, world: &World<S>, step: &Step, held: &HeldKey, evidence: &mut Evidence) {
        if computes(world) && world.setup().kem.is_none() && world.doubled(held.epoch).is_none() {
            let open = self.opened.contains(&held.epoch) || self.archive.len() >= ARCHIVE;
            evidence.findings.require(Invariant::ClosedToQuantum, step, open, || {
                format!(
                    "discrete logarithms do not open epoch {}, though it has no second factor: the check sees \
                     nothing",
                    show(held.epoch)
                )
            });
        }
    }

    fn attempts(&self) -> u64 {
        self.attempts
    }
}

impl<S: Suite> QuantumAdversary<S> {
    fn judge_openings(
        &self,
        world: &World<S>,
        at: Duration,
        openings: Vec<OpenedEpoch>,
        evidence: &mut Evidence,
    ) {
        let Evidence { findings, history } = evidence;
        for OpenedEpoch { edge, epoch, leader, key } in openings {
            findings.checks += 1;
            let node = Some(NodeId::Edge(edge));
            let double = self.doubles.get(&edge);
            let allowed =
                world.setup().kem.is_none() || double.is_some_and(|double| double.may_open(epoch, &leader));
            if !allowed {
                let with = if double.is_some_and(|double| !double.captures.is_empty()) {
                    "captured, and by discrete logarithms"
                } else {
                    "by discrete logarithms"
                };
                let detail = format!("{with}, its part of the recording opens epoch {}", show(epoch));
                findings.violate(Invariant::ClosedToQuantum, at, node, detail);
            } else if history.epochs.get(&epoch).and_then(|made| made.key).is_some_and(|made| made != key) {
                let detail = format!("by discrete logarithms, opens another key of epoch {}", show(epoch));
                findings.violate(Invariant::Agreement, at, node, detail);
            }
        }
    }
}
