//! A leader with two keys under one serial: it opens one term under each of them, and sends some members the
//! one and some the other.
//!
//! Several KGCs give a drone as many keys as it runs rounds for one token: same identity, same P, another R.
//! Both terms are valid; that they contradict each other shows only by the serial in both identities.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{
    DroneKeypair, DronePublicKey, Element, Entry, Epoch, EpochOutput, EpochPart, Identity, Name, Role,
    Roster, SecretValue, SparePair, Suite, UnixTime,
};
use quiver_message::RekeyTemplate;
use quiver_testbed::nanos;
use rand_chacha::ChaCha8Rng;

use super::{Adversary, Spares, opened};
use crate::EPOCH_START;
use crate::NodeId;
use crate::event_queue::WorldEvent;
use crate::feature_part::AnyFeatureCommand;
use crate::ranks::wire::RankWriter;
use crate::rng_stream::{self, RngStream};
use crate::world::{ScheduledAction, WorldKernel};

/// The id of the token that all keys of the leader were issued for.
pub(crate) const SERIAL: [u8; 16] = [0x2d; 16];
/// Time after the end of all faults at which all nodes receive both headers once more.
const AGAIN: Duration = Duration::from_secs(2);

/// Planned event: all nodes receive both headers that the leader with two keys signed for this epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderCrossing(pub(super) Epoch);

/// An epoch that was signed twice.
#[derive(Clone, Debug)]
pub(crate) struct Doubled {
    /// D of both headers.
    pub(crate) digests: [[u8; 32]; 2],
    pub(crate) valid_until: UnixTime,
    /// Headers, both of them, without anybody's entry.
    headers: [Arc<[u8]>; 2],
    /// Every message in which the first of them was sent, and the second.
    sent: [Vec<Arc<[u8]>>; 2],
}

/// Membership of an edge: its slot, its key, and number and point of its spare pair.
struct EdgeMembership<S: Suite> {
    edge: u32,
    slot: u32,
    public: DronePublicKey<S>,
    q: u64,
    point: Element<S>,
}

impl Adversary {
    /// The epoch, if the leader with two keys signed it.
    pub(crate) fn doubled(&self, epoch: Epoch) -> Option<&Doubled> {
        self.doubled.get(&epoch)
    }

    /// Epoch and digest of the header in a message, if it is one of the leader with two keys.
    pub(crate) fn doubled_header(&self, payload: &Arc<[u8]>) -> Option<(Epoch, [u8; 32])> {
        let carries = |(epoch, doubled): (&Epoch, &Doubled)| {
            let same = |sent: &Vec<Arc<[u8]>>| sent.iter().any(|known| Arc::ptr_eq(known, payload));
            let which = doubled.sent.iter().position(same)?;
            Some((*epoch, *doubled.digests.get(which)?))
        };
        self.doubled.iter().find_map(carries)
    }

    /// Opens a term under both keys.
    pub(super) fn double_term<S: Suite>(
        &mut self,
        kernel: &mut WorldKernel<S>,
        rounds: u32,
        split: u64,
        crossing: Duration,
    ) {
        let edges = (0..kernel.edge_count()).filter_map(|edge| kernel.edge(edge)?.status().epoch);
        let leaders = (0..kernel.leader_count()).filter_map(|ordinal| kernel.leader(ordinal)?.status().epoch);
        // The terms that it opened before count even if no node follows them, so that each has two headers.
        let doubled = self.doubled.keys().copied();
        let own: Vec<Epoch> = edges.chain(leaders).chain(doubled).max().into_iter().collect();
        let newest = kernel.collect(
            own,
            |writer, epoch| {
                writer.u64(epoch.term).u64(epoch.counter);
            },
            |reader| Some(Epoch { term: reader.u64()?, counter: reader.u64()? }),
        );
        let newest = newest.into_iter().max().map_or(0, |epoch| epoch.round());
        let ordinal = kernel.leader_count();
        let term = Epoch::term_of(newest.saturating_add(u64::from(rounds.max(1))), ordinal);
        let mut rng = rng_stream::generator(kernel.setup().seed ^ term ^ split, RngStream::Adversary);
        let Some(keys) = two_keys(kernel, ordinal, &mut rng) else { return };
        let (roster, spares, seats) = seats(kernel);
        let mut open = |key| opened(kernel, term, key, (roster.clone(), &spares), &mut rng);
        let [Some(first), Some(second)] = keys.each_ref().map(&mut open) else { return };
        let epoch = Epoch { term, counter: 1 };
        let outputs = [first, second];
        let deployment = kernel.fleet().deployment();
        let templates = outputs.each_ref().map(|output| RekeyTemplate::new(deployment, &output.header));
        let headers = templates.each_ref().map(|template| Arc::<[u8]>::from(template.message(None)));
        let mut doubled = Doubled {
            digests: outputs.each_ref().map(|output| output.digest),
            valid_until: outputs.iter().map(|output| output.header.core.valid_until).min().unwrap_or(0),
            sent: headers.each_ref().map(|header| vec![Arc::clone(header)]),
            headers,
        };
        let mut told = Vec::new();
        for (edge, slot) in seats {
            let which = usize::from(split >> (edge % 63) & 1 == 1);
            let (Some(output), Some(template)) = (outputs.get(which), templates.get(which)) else { continue };
            let Some(entry) = entry(output, slot) else { continue };
            let payload: Arc<[u8]> = template.message(Some(&EpochPart::Entry(entry))).into();
            if let Some(sent) = doubled.sent.get_mut(which) {
                sent.push(Arc::clone(&payload));
            }
            told.push((NodeId::Edge(edge), payload));
        }
        // Leaders learn of one of them at once; a leader with deputies takes whichever comes first.
        let which = usize::from(split >> 63 == 1);
        if let Some(header) = doubled.headers.get(which) {
            told.extend(
                (0..kernel.leader_count()).map(|leader| (NodeId::Leader(leader), Arc::clone(header))),
            );
        }
        self.doubled.insert(epoch, doubled);
        for (to, payload) in told {
            hand(kernel, to, payload);
        }
        plan_crossing(kernel, crossing, epoch);
    }

    /// Hands all nodes both headers of an epoch.
    pub(super) fn cross<S: Suite>(&self, kernel: &mut WorldKernel<S>, epoch: Epoch) {
        let Some(doubled) = self.doubled.get(&epoch) else { return };
        let headers = doubled.headers.clone();
        let leaders = (0..kernel.leader_count()).map(NodeId::Leader);
        let all: Vec<NodeId> = leaders.chain((0..kernel.edge_count()).map(NodeId::Edge)).collect();
        for to in all {
            for header in &headers {
                hand(kernel, to, Arc::clone(header));
            }
        }
    }

    /// Once all faults are over, no node can be kept from receiving both.
    pub(super) fn cross_again<S: Suite>(&self, kernel: &mut WorldKernel<S>) {
        for epoch in self.doubled.keys().copied() {
            plan_crossing(kernel, AGAIN, epoch);
        }
    }
}

/// Plans that all nodes receive both headers of an epoch.
fn plan_crossing<S: Suite>(kernel: &mut WorldKernel<S>, after: Duration, epoch: Epoch) {
    kernel.plan(after, ScheduledAction::Feature(AnyFeatureCommand::new(HeaderCrossing(epoch))));
}

/// Makes both keys: one identity, one P, two R.
fn two_keys<S: Suite>(
    kernel: &WorldKernel<S>,
    ordinal: u16,
    rng: &mut ChaCha8Rng,
) -> Option<[DroneKeypair<S>; 2]> {
    let deployment = kernel.fleet().deployment();
    let identity = Identity {
        serial: SERIAL,
        name: Name::new("two-keys").ok()?,
        role: Role::Leader { group: kernel.fleet().group().clone(), ordinal },
        groups: Vec::new(),
        not_after: EPOCH_START * 2,
    };
    let secret = SecretValue::generate(rng);
    let mut issue = || {
        let partial = kernel.fleet().master_key().issue(deployment, &identity, &secret.public(), rng);
        partial.verify(deployment, &identity, &secret).ok()
    };
    Some([issue()?, issue()?])
}

/// Roster, spare points and slots, as every deputy of the group has them.
fn seats<S: Suite>(kernel: &WorldKernel<S>) -> (Roster<S>, Spares<S>, Vec<(u32, u32)>) {
    let own = (0..kernel.edge_count()).filter_map(|edge| seat(kernel, edge)).collect();
    let write = |writer: &mut RankWriter, seat: &EdgeMembership<S>| {
        writer.u32(seat.edge).u32(seat.slot).bytes(&seat.public.encode());
        writer.u64(seat.q).bytes(seat.point.as_bytes());
    };
    let mut all = kernel.collect(own, write, |reader| {
        Some(EdgeMembership {
            edge: reader.u32()?,
            slot: reader.u32()?,
            public: DronePublicKey::decode(reader.bytes()?).ok()?,
            q: reader.u64()?,
            point: Element::decode(reader.bytes()?).ok()?,
        })
    });
    all.sort_by_key(|seat| seat.edge);
    let (mut roster, mut spares, mut seats) = (Roster::new(), BTreeMap::new(), Vec::new());
    for EdgeMembership { edge, slot, public, q, point } in all {
        // Two memberships of one slot, in different terms: one of them is over.
        if roster.insert(slot, public).is_ok() {
            spares.insert(slot, (q, point));
            seats.push((edge, slot));
        }
    }
    (roster, spares, seats)
}

/// The membership of an edge.
fn seat<S: Suite>(kernel: &WorldKernel<S>, edge: u32) -> Option<EdgeMembership<S>> {
    let machine = kernel.edge(edge)?;
    let (slot, state) = machine.status().slot.zip(machine.compromised_state())?;
    // The current one comes first.
    let spare = SparePair::<S>::decode(state.spares.first()?).ok()?;
    Some(EdgeMembership { edge, slot, public: state.public, q: spare.q(), point: *spare.point() })
}

/// Hands a message to a node, as gossip from its hub, or from any neighbour if it is the hub.
fn hand<S: Suite>(kernel: &mut WorldKernel<S>, to: NodeId, payload: Arc<[u8]>) {
    let (index, links) = (kernel.index(), &kernel.wire.links);
    let hub = links.hub_of(to);
    let via = hub.or_else(|| {
        let mut others = (0..kernel.edge_count()).map(NodeId::Edge).chain(index.relays());
        others.find(|other| links.connection(*other, to).is_some())
    });
    let Some((via, connection)) = via.and_then(|via| Some((via, links.connection(via, to)?))) else {
        return;
    };
    let via = index.number(via);
    let at = kernel.timeline.now() + nanos(kernel.setup().faults.delay);
    kernel.timeline.push(at, to, WorldEvent::Message { via, connection, by_group: true, payload });
}

fn entry<S: Suite>(output: &EpochOutput<S>, slot: u32) -> Option<Entry> {
    output.entries.iter().find(|entry| entry.slot == slot).cloned()
}
