//! An adversary with everything that a drone ever held, and all recorded traffic, that tries whatever can be
//! computed.

use std::collections::BTreeSet;

use quiver_ainq::{
    Deployment, DronePublicKey, Element, Epoch, EpochKind, GroupMembership, HeaderCore, PairContext, Ratchet,
    Slot, Suite,
};
use quiver_crypto::{Secret, prf};

use crate::climber::Climber;
use crate::swarm::{Broadcast, Edge, Kept, Swarm, name};

/// Steps an adversary computes ahead on every chain it has.
const AHEAD: usize = 12;

pub(crate) struct Adversary<S: Suite> {
    deployment: Deployment<S>,
    /// Secret scalars: y, e.
    scalars: Vec<S::Scalar>,
    /// Chain keys W, each with all that follow from it.
    chains: Vec<Secret<32>>,
    /// Group keys it has or has worked out.
    keys: Vec<Secret<32>>,
    /// Public keys of all drones at all slots they may have had.
    publics: Vec<(Slot, DronePublicKey<S>)>,
    /// All one-time points that were ever published.
    one_times: Vec<Element<S>>,
    /// Keys of a tree's nodes.
    climber: Climber,
    /// Epochs whose products are made already, and the number of scalars.
    multiplied: BTreeSet<(Epoch, usize)>,
}

impl<S: Suite> Adversary<S> {
    /// An adversary that knows the public data of a swarm.
    pub(crate) fn outside(swarm: &Swarm<S>) -> Self {
        let slots = 0..Slot::try_from(swarm.edges.len()).unwrap();
        let publics =
            slots.flat_map(|slot| swarm.edges.iter().map(move |edge| (slot, edge.keypair.public().clone())));
        let point =
            |bytes: &Vec<u8>| Element::from_point(S::mul_base(&S::scalar_decode(bytes).unwrap())).unwrap();
        // The first scalar an edge ever held is y; all others are one-time.
        let one_times = swarm.edges.iter().flat_map(|edge| edge.kept.scalars[1..].iter().map(point));
        Self {
            deployment: swarm.deployment.clone(),
            scalars: Vec::new(),
            chains: Vec::new(),
            keys: Vec::new(),
            publics: publics.collect(),
            one_times: one_times.collect(),
            climber: Climber::default(),
            multiplied: BTreeSet::new(),
        }
    }

    /// Takes all that an edge ever held, one-time secrets included.
    pub(crate) fn takes(&mut self, kept: &Kept) {
        self.takes_scalars(&kept.scalars);
        kept.states.iter().for_each(|state| self.takes_state(state));
    }

    pub(crate) fn takes_scalars(&mut self, scalars: &[Vec<u8>]) {
        self.scalars.extend(scalars.iter().map(|bytes| S::scalar_decode(bytes).unwrap()));
    }

    /// Takes what an edge holds at this moment.
    pub(crate) fn captures(&mut self, edge: &Edge<S>) {
        self.takes_scalars(&[edge.keypair.to_bytes().to_vec(), edge.spare.encode()[8..].to_vec()]);
        if let Some(member) = &edge.membership {
            self.takes_state(&member.encode());
        }
    }

    /// Takes the group keys another adversary worked out, and nothing else.
    pub(crate) fn takes_key_of(&mut self, other: &Self) {
        self.keys.extend(other.keys.iter().cloned());
    }

    pub(crate) fn takes_state(&mut self, state: &[u8]) {
        GroupMembership::<S>::restore(state).unwrap();
        // The ratchet ends the state: u, W, A.
        let ratchet = Ratchet::<S>::decode(&state[state.len() - Ratchet::<S>::ENCODED_LEN..]).unwrap();
        self.takes_chain(ratchet);
    }

    fn takes_chain(&mut self, mut ratchet: Ratchet<S>) {
        for _ in 0..AHEAD {
            let encoded = ratchet.encode();
            self.chains.push(Secret::try_from(&encoded[8..40]).unwrap());
            ratchet.step();
        }
        self.chains.push(ratchet.auth().clone());
    }

    /// Looks for the group key of an epoch; keeps it if it is found.
    pub(crate) fn opens(&mut self, epoch: &Broadcast<S>, all: &[Broadcast<S>]) -> bool {
        self.multiplies(epoch);
        let d0 = epoch.header.core.digest(&self.deployment);
        let confirms = |key: &Secret<32>| {
            let tag = prf(key, S::ID, "confirm", &[&d0, &epoch.header.entries_root]);
            *tag.expose() == epoch.header.tag
        };
        let unwrapped = epoch.entries.iter().flat_map(|entry| {
            self.chains.iter().map(move |chain| {
                let pad = prf(chain, S::ID, "wrap", &[&d0, &entry.slot.to_be_bytes()]);
                xor(&entry.wrap, pad.expose())
            })
        });
        let found = unwrapped.chain(self.reused_masks(epoch, all)).chain(self.keys.clone()).find(confirms);
        let found = self.climbs(epoch, &d0, &confirms).or(found);
        self.keys.extend(found.clone());
        found.is_some()
    }

    /// Opens path messages, which may have come for this epoch after its wraps, and follows the wraps; under
    /// `tree` alone.
    fn climbs(
        &mut self,
        epoch: &Broadcast<S>,
        d0: &[u8; 32],
        confirms: &dyn Fn(&Secret<32>) -> bool,
    ) -> Option<Secret<32>> {
        let digest = epoch.header.digest(&self.deployment);
        let sealed = self.climber.takes_paths(epoch, &digest, &self.chains);
        epoch.wraps.as_ref()?;
        let climbed = self.climber.climbs(epoch, d0, &self.chains, confirms);
        climbed.or_else(|| sealed.into_iter().find(confirms))
    }

    /// The attack on the paper's masks: C ⊕ C′ ⊕ K′ is K if a mask was used twice.
    fn reused_masks(&self, epoch: &Broadcast<S>, all: &[Broadcast<S>]) -> Vec<Secret<32>> {
        let others = all.iter().flat_map(|other| &other.entries);
        let pairs: Vec<[u8; 32]> = others
            .flat_map(|other| epoch.entries.iter().map(move |entry| *xor(&entry.wrap, &other.wrap).expose()))
            .collect();
        self.keys.iter().flat_map(|key| pairs.iter().map(|pair| xor(pair, key.expose()))).collect()
    }

    /// Every pairwise secret and context that its scalars allow, alone and as sums y + e.
    fn multiplies(&mut self, epoch: &Broadcast<S>) {
        let core = &epoch.header.core;
        let Some(point) = &core.point else { return };
        if !self.multiplied.insert((core.epoch, self.scalars.len())) {
            return;
        }
        let pairs = PairContext::new(&self.deployment, &name("alpha"), core.epoch, point, &core.leader);
        let mut scalars = self.scalars.clone();
        for (i, a) in self.scalars.iter().enumerate() {
            scalars.extend(self.scalars[..i].iter().map(|b| *a + *b));
        }
        let places: Vec<_> = self.places(core, epoch);
        for agreed in scalars.iter().filter_map(|scalar| S::agree(scalar, point).ok()) {
            for (public, slot, q) in &places {
                for e in self.one_times.clone() {
                    let ctx = pairs.digest(public, *slot, *q, e.encoding());
                    self.takes_chain(Ratchet::<S>::derive(&agreed, &ctx));
                }
            }
        }
    }

    /// Drones that may be at a slot that the epoch made new, with the numbers of their spare points.
    fn places(&self, core: &HeaderCore<S>, epoch: &Broadcast<S>) -> Vec<(DronePublicKey<S>, Slot, u64)> {
        let opened = epoch.entries.iter().filter(|_| core.kind == EpochKind::Open);
        let opened = opened.map(|entry| (entry.slot, entry.q.unwrap_or(0)));
        let fresh = opened.chain(core.added.iter().map(|slot| (slot, 0)));
        fresh
            .flat_map(|(slot, q)| {
                let here = self.publics.iter().filter(move |(held, _)| *held == slot);
                here.map(move |(_, public)| (public.clone(), slot, q))
            })
            .collect()
    }
}

fn xor(a: &[u8; 32], b: &[u8; 32]) -> Secret<32> {
    Secret::new(std::array::from_fn(|i| a[i] ^ b[i]))
}
