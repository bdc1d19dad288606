//! Injects the adversary's messages: replayed, forged, or signed with a captured key.

mod forging;
mod two_keys;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quiver_ainq::{
    Deployment, DroneKeypair, Element, Epoch, EpochOutput, GroupContext, Identity, KemTerm, Label,
    Leadership, MasterSecret, Name, Role, Roster, SecretValue, Slot, Suite, TermKeys, Times,
    UnverifiedPartialKey,
};
use quiver_message::RekeyTemplate;
use rand_chacha::ChaCha8Rng;

use super::World;
use crate::EPOCH_START;
use crate::NodeId;
use crate::event_queue::WorldEvent;
use crate::rng_stream::{self, RngStream};

pub(crate) use self::two_keys::Doubled;

/// Messages of the adversary.
#[derive(Debug, Default)]
pub(crate) struct Adversary {
    /// Forged messages, the newest last.
    forged: VecDeque<Arc<[u8]>>,
    /// Forged joins that wait for a challenge: the named key, by nonce.
    joining: BTreeMap<[u8; 16], Vec<u8>>,
    /// Epochs that the leader with two keys signed twice.
    doubled: BTreeMap<Epoch, Doubled>,
}

impl<S: Suite> World<S> {
    /// Repeats a message to a node, over a connection that the node has.
    pub(crate) fn replay(&mut self, pick: u64, to: NodeId) {
        let count = self.recorded.len() as u64;
        let Some(place) = pick.checked_rem(count).and_then(|place| usize::try_from(place).ok()) else {
            return;
        };
        let Some((sender, by_group, payload)) = self.recorded.get(place).cloned() else { return };
        self.insert(sender, to, by_group, payload);
    }

    /// Puts a message on a connection of `to`: the one with `sender` if there is one.
    fn insert(&mut self, sender: NodeId, to: NodeId, by_group: bool, payload: Arc<[u8]>) {
        let neighbours = self.neighbours(to);
        // Behind relays, what is a leader's comes from one of these.
        let hub = self.links.hub_of(to).filter(|_| self.nodes.relays > 0);
        let via = [sender].into_iter().chain(hub).chain(neighbours).find_map(|via| {
            let connection = self.links.connection(via, to)?;
            Some((self.number(via), connection))
        });
        if let Some((via, connection)) = via {
            let number = self.number(to);
            self.queue.push(self.now, number, WorldEvent::Message { via, connection, by_group, payload });
        }
    }

    /// Sends all nodes headers that open a term, made by unauthorised signers: a leader of another KGC, and a
    /// real drone that is no leader.
    pub(crate) fn usurp(&mut self, edge: u32, rounds: u32) {
        let newest = (0..self.nodes.leaders).filter_map(|ordinal| self.leader(ordinal)?.status().epoch).max();
        let round = newest.map_or(0, |epoch| epoch.round()).saturating_add(u64::from(rounds.max(1)));
        let ordinal = u16::try_from(edge % u32::from(self.nodes.leaders)).unwrap_or(0);
        let term = Epoch::term_of(round, ordinal);
        for payload in [self.forged_term(term, ordinal), self.presumed_term(term, edge)].into_iter().flatten()
        {
            for to in
                (0..self.edge_count()).map(NodeId::Edge).chain((0..self.nodes.leaders).map(NodeId::Leader))
            {
                self.insert(NodeId::Leader(ordinal), to, true, Arc::clone(&payload));
            }
        }
    }

    /// A term opened with the keys of a leader that another KGC made.
    fn forged_term(&self, term: u64, ordinal: u16) -> Option<Arc<[u8]>> {
        let mut rng = rng_stream::generator(self.setup.seed ^ term, RngStream::Adversary);
        let master = MasterSecret::<S>::generate(&mut rng);
        let own = Deployment::new(self.fleet.deployment().name().clone(), master.public());
        let role = Role::Leader { group: self.fleet.group().clone(), ordinal };
        let leader = issued(&own, "usurper", role, &mut rng, |identity, value, rng| {
            master.issue_partial_key(&own, identity, value, rng)
        })?;
        let output = self.opened(term, &leader, (Roster::new(), &BTreeMap::new()), &mut rng)?;
        let entry = output.entries.first().cloned().map(quiver_ainq::EpochPart::Entry);
        let deployment = self.fleet.deployment();
        Some(RekeyTemplate::new(deployment, &output.header).message(entry.as_ref()).into())
    }

    /// A term opened by a drone that the KGC did enrol, but not as a leader.
    fn presumed_term(&self, term: u64, edge: u32) -> Option<Arc<[u8]>> {
        let mut rng = rng_stream::generator(self.setup.seed ^ term ^ u64::from(edge), RngStream::Adversary);
        let deployment = self.fleet.deployment();
        let role =
            Role::Leader { group: self.fleet.group().clone(), ordinal: Epoch { term, counter: 1 }.ordinal() };
        let issue = |identity: &Identity, value: &Element<S>, rng: &mut ChaCha8Rng| {
            self.fleet.master_key().issue(deployment, identity, value, rng)
        };
        let model = issued(deployment, "model", role, &mut rng, issue)?;
        let drone = issued(deployment, &format!("captured-{edge}"), Role::Edge, &mut rng, issue)?;
        let mut output = self.opened(term, &model, (Roster::new(), &BTreeMap::new()), &mut rng)?;
        output.header.core.leader = drone.public().clone();
        let entry = output.entries.first().cloned().map(quiver_ainq::EpochPart::Entry);
        let digest = output.header.digest(deployment);
        output.header.signature = drone.sign(deployment, Label::Header, &digest, &mut rng);
        Some(RekeyTemplate::new(deployment, &output.header).message(entry.as_ref()).into())
    }

    fn opened(
        &self,
        term: u64,
        leader: &DroneKeypair<S>,
        (roster, spares): (Roster<S>, &Spares<S>),
        rng: &mut ChaCha8Rng,
    ) -> Option<EpochOutput<S>> {
        let issued_at = EPOCH_START + self.now / 1_000_000_000;
        let valid_until = issued_at + self.setup.leader_timing.validity.as_secs().clamp(30, 600);
        let times = Times { issued_at, valid_until, revocation_number: 0 };
        let context = GroupContext {
            deployment: self.fleet.deployment().clone(),
            group: self.fleet.group().clone(),
            leader: leader.public().clone(),
        };
        let (strategy, prev) = (self.setup.strategy, [0; 32]);
        let opened = match self.setup.kem.set() {
            None => Leadership::open_term(context, leader, roster, spares, term, prev, &times, strategy, rng),
            Some(set) => {
                // It shares κ with nobody.
                let keys = TermKeys::new(KemTerm::new(set, 1).ok()?, []);
                let place = (term, prev);
                Leadership::open_term_with_kem(
                    context, leader, roster, spares, &keys, place, &times, strategy, rng,
                )
            }
        };
        opened.ok().map(|(_, output)| output)
    }
}

/// Members' spare points, with their numbers.
type Spares<S> = BTreeMap<Slot, (u64, Element<S>)>;

/// A keypair that a KGC, or a quorum, issued.
fn issued<S: Suite>(
    deployment: &Deployment<S>,
    name: &str,
    role: Role,
    rng: &mut ChaCha8Rng,
    issue: impl Fn(&Identity, &Element<S>, &mut ChaCha8Rng) -> UnverifiedPartialKey<S>,
) -> Option<DroneKeypair<S>> {
    let identity = Identity {
        serial: [0xad; 16],
        name: Name::new(name).ok()?,
        role,
        groups: Vec::new(),
        not_after: EPOCH_START * 2,
    };
    let secret = SecretValue::generate(rng);
    let partial = issue(&identity, &secret.public(), rng);
    partial.verify(deployment, &identity, &secret).ok()
}
