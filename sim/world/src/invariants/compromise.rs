//! Checks secrecy against an adversary that captured a drone's whole state and keeps listening.
//!
//! The adversary is bound by no rule of the protocol: it tries every secret it took on everything that was
//! ever published, forward and backward, and recognises by the public tag an opened group key. It must not
//! open any epoch in which the drone is not, nor any epoch before the one that was current at the capture.
//! (From then on, as long as the drone is in, the adversary is a member; that is no secret.)

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{
    DronePublicKey, Element, Epoch, EpochPart, Header, Name, PairContext, Ratchet, SecretScalar, Slot, Suite,
};
use quiver_crypto::{PrfKey, Secret, aead, ct_eq, prf};

use super::history::show;
use super::publications::LeaderPublication;
use super::{Evidence, Invariant, InvariantCheck};
use crate::{Action, NodeId, Step, World};

/// Number of steps ahead that the adversary tries each chain.
const STEPS: usize = 12;
/// Number of published messages that it keeps.
const ARCHIVE: usize = 4096;

/// Secrets that the adversary took from a drone.
#[derive(Clone)]
struct CompromisedNode<S: Suite> {
    edge: u32,
    /// Time of the capture.
    at: Duration,
    /// The epoch held then. Older ones that were made by then must stay closed.
    held: Option<Epoch>,
    /// True if it kept the pair with which its term was opened: for up to a minute, so that of two competing
    /// terms the higher can be followed. For so long, all that was opened with that pair is open to a captor
    /// of the drone, however far apart the rounds are (a leader's first term after a start leaps over many).
    keeps_used_pair: bool,
    public: DronePublicKey<S>,
    secret: S::Scalar,
    /// Spare pairs: number and secret.
    spares: Vec<(u64, S::Scalar)>,
    /// W[u], as far as chains were taken or agreed on since.
    chains: Vec<CompromisedChainKey>,
}

/// A chain key that the adversary has, and those that follow from it, as far as it tries them.
#[derive(Clone)]
struct CompromisedChainKey {
    steps: Vec<PrfKey>,
    origin: Origin,
}

impl CompromisedChainKey {
    fn new<S: Suite>(ratchet: &Ratchet<S>, origin: Origin) -> Self {
        let next = |chain: &PrfKey| Some(PrfKey::new(&chain.prf(S::ID, "step", &[])));
        let steps = iter::successors(Some(PrfKey::new(&chain(ratchet))), next);
        Self { steps: steps.take(STEPS).collect(), origin }
    }
}

/// Origin of a chain key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The drone's memory.
    Taken,
    /// Worked out with one of its spare pairs.
    Agreed,
}

/// All compromised drones, and all publications.
#[derive(Default, Clone)]
pub(super) struct CompromisedNodes<S: Suite> {
    compromised: Vec<CompromisedNode<S>>,
    archive: Vec<Arc<LeaderPublication<S>>>,
    opened: u64,
    /// Number of attacks, which only the process with the captured drone makes.
    attacks: u64,
}

impl<S: Suite> InvariantCheck<S> for CompromisedNodes<S> {
    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action, evidence: &mut Evidence) {
        if let Action::Capture(edge) = action {
            self.capture(world, at, *edge, evidence);
        }
    }

    /// Attacks a publication with what was taken from compromised nodes.
    fn on_publication(
        &mut self,
        world: &World<S>,
        step: &Step,
        publication: &Arc<LeaderPublication<S>>,
        evidence: &mut Evidence,
    ) {
        if !world.setup().recording || publication.part.is_none() {
            return;
        }
        let mut compromised = std::mem::take(&mut self.compromised);
        for compromised in &mut compromised {
            self.attack(world, step.at, compromised, publication, evidence);
        }
        if self.archive.len() < ARCHIVE {
            self.archive.push(Arc::clone(publication));
        }
        self.compromised = compromised;
    }

    fn attempts(&self) -> u64 {
        self.attacks
    }
}

impl<S: Suite> CompromisedNodes<S> {
    /// Number of publications that the adversary opened (that its captive was meant to open, unless it is a
    /// violation).
    pub(super) const fn opened(&self) -> u64 {
        self.opened
    }

    /// The adversary takes all that an edge has.
    fn capture(&mut self, world: &World<S>, at: Duration, edge: u32, evidence: &mut Evidence) {
        let Some(machine) = world.edge(edge) else { return };
        let Some(state) = machine.compromised_state() else { return };
        let Some(secret) = S::scalar_decode(&state.secret) else { return };
        let spares = state.spares.iter().filter_map(|bytes| {
            let (q, scalar) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*q), S::scalar_decode(scalar)?))
        });
        let chain = state.membership.as_ref().and_then(|bytes| {
            let start = bytes.len().checked_sub(Ratchet::<S>::ENCODED_LEN)?;
            let ratchet = Ratchet::<S>::decode(bytes.get(start..)?).ok()?;
            Some(CompromisedChainKey::new(&ratchet, Origin::Taken))
        });
        let compromised = CompromisedNode {
            edge,
            at,
            held: machine.status().epoch,
            keeps_used_pair: state.spares.len() == 2,
            public: state.public.clone(),
            secret,
            spares: spares.collect(),
            chains: chain.into_iter().collect(),
        };
        // Earlier publications must stay closed.
        for published in self.archive.clone() {
            self.attack(world, at, &mut compromised.clone(), &published, evidence);
        }
        self.compromised.push(compromised);
    }

    /// Tries all that a captive had on one published entry.
    fn attack(
        &mut self,
        world: &World<S>,
        at: Duration,
        compromised: &mut CompromisedNode<S>,
        published: &LeaderPublication<S>,
        evidence: &mut Evidence,
    ) {
        let Evidence { findings, history } = evidence;
        let epoch = published.header.core.epoch;
        let opened = compromised.opens(world, published);
        self.attacks += 1;
        let Some((key, origin)) = opened else { return };
        self.opened += 1;
        let made = history.epochs.get(&epoch);
        let members = made.and_then(|made| made.members.as_ref());
        let is_member = members.is_none_or(|members| members.contains(&compromised.edge));
        let node = Some(NodeId::Edge(compromised.edge));
        let excused = compromised.keeps_used_pair && origin == Origin::Agreed;
        // A competing leader may open a lower term after the capture, with a pair that was taken unused.
        let by_then = made.is_none_or(|made| made.at <= compromised.at);
        if compromised.held.is_some_and(|held| epoch < held) && by_then && !excused {
            let detail = format!("captured while it held a later one, it opens epoch {}", show(epoch));
            findings.violate(Invariant::BackwardSecrecyBeforeJoin, at, node, detail);
        } else if !is_member {
            let invariant = history.outsider(compromised.edge, epoch);
            let detail = format!("captured, it opens epoch {}, of which it is not a member", show(epoch));
            findings.violate(invariant, at, node, detail);
        } else if let Some(made) = made.and_then(|made| made.key) {
            // The adversary's arithmetic is the members': otherwise its failure to open would prove nothing.
            let exported = export::<S>(&key, &history.channel, &published.digest);
            if exported != made {
                findings.violate(
                    Invariant::Agreement,
                    at,
                    node,
                    format!("opens another key of epoch {}", show(epoch)),
                );
            }
        }
    }
}

impl<S: Suite> CompromisedNode<S> {
    /// The group key that a part hides, if any secret opens it, and where that secret came from.
    fn opens(&mut self, world: &World<S>, published: &LeaderPublication<S>) -> Option<(Secret<32>, Origin)> {
        let lock = Lock::new(world, published)?;
        let agreed = self.agreed(world, &published.header, lock.slot);
        for (place, start) in self.chains.iter().chain(&agreed).enumerate() {
            let Some(key) = start.steps.iter().find_map(|chain| lock.open::<S>(chain)) else { continue };
            let origin = start.origin;
            if place >= self.chains.len() {
                // A pairwise key that it works out stays useful as long as the term lasts.
                self.chains.extend(agreed);
            }
            return Some((key, origin));
        }
        None
    }

    /// Pairwise keys with the leader that the secrets give, if the header has a point: T = (y + e)·V for
    /// every e.
    fn agreed(&self, world: &World<S>, header: &Header<S>, slot: Slot) -> Vec<CompromisedChainKey> {
        let core = &header.core;
        let Some(point) = &core.point else { return Vec::new() };
        let deployment = world.fleet().deployment();
        let pairs = PairContext::new(deployment, &core.group, core.epoch, point, &core.leader);
        let pair = |(q, spare): &(u64, S::Scalar)| {
            let one_time: Element<S> = SecretScalar::new(*spare).ok()?.public();
            let secret = S::agree(&(self.secret + *spare), point).ok()?;
            let context = pairs.digest(&self.public, slot, *q, one_time.encoding());
            Some(CompromisedChainKey::new(&Ratchet::<S>::derive(&secret, &context), Origin::Agreed))
        };
        self.spares.iter().filter_map(pair).collect()
    }
}

/// The ciphertext that a chain key must open.
struct Lock<'a> {
    d0: [u8; 32],
    digest: [u8; 32],
    root: [u8; 32],
    tag: [u8; 32],
    slot: Slot,
    part: &'a EpochPart,
}

impl<'a> Lock<'a> {
    fn new<S: Suite>(world: &World<S>, published: &'a LeaderPublication<S>) -> Option<Self> {
        let (header, deployment) = (&published.header, world.fleet().deployment());
        let slot = match published.part.as_ref()? {
            EpochPart::Entry(entry) => entry.slot,
            EpochPart::Path(path) => path.slot,
            // Wraps of a tree's nodes are no use to a chain but that of a leaf next to a node that changed.
            EpochPart::Delta(_) => return None,
        };
        Some(Self {
            d0: header.core.digest(deployment),
            digest: published.digest,
            root: header.entries_root,
            tag: header.tag,
            slot,
            part: published.part.as_ref()?,
        })
    }

    fn open<S: Suite>(&self, chain: &PrfKey) -> Option<Secret<32>> {
        let key = match self.part {
            EpochPart::Entry(entry) => {
                let pad = chain.prf(S::ID, "wrap", &[&self.d0, &self.slot.to_be_bytes()]);
                Secret::new(Secret::new(entry.wrap).xor(&pad))
            }
            EpochPart::Path(path) => {
                let encoding = path.encode();
                // slot (4 bytes) ‖ r (16) ‖ ciphertext
                let (head, sealed) = encoding.split_first_chunk::<20>()?;
                let seal = chain.prf(S::ID, "path", &[&self.digest, &path.r]);
                let aad = [&self.digest[..], &head[..4]].concat();
                let opened = aead::open(&seal, &[0; 12], &aad, sealed).ok()?;
                Secret::new(*opened.last_chunk::<32>()?)
            }
            EpochPart::Delta(_) => return None,
        };
        let tag = prf(&key, S::ID, "confirm", &[&self.d0, &self.root]);
        ct_eq(tag.expose(), &self.tag).then_some(key)
    }
}

/// W[u] of a ratchet.
fn chain<S: Suite>(ratchet: &Ratchet<S>) -> Secret<32> {
    let bytes = ratchet.encode();
    let chain = bytes.get(8..40).and_then(|chain| <[u8; 32]>::try_from(chain).ok());
    Secret::new(chain.unwrap_or_default())
}

/// The exported key of members.
fn export<S: Suite>(key: &Secret<32>, name: &Name, digest: &[u8; 32]) -> [u8; 32] {
    let length = u32::try_from(name.as_bytes().len()).unwrap_or(u32::MAX).to_be_bytes();
    *prf(key, S::ID, "export", &[&length, name.as_bytes(), digest]).expose()
}
