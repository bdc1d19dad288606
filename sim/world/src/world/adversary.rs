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
use quiver_machine::Destination;
use quiver_message::RekeyTemplate;
use rand_chacha::ChaCha8Rng;

use super::kernel::WorldKernel;
use super::{Acted, WorldFeature};
use crate::EPOCH_START;
use crate::event_queue::WorldEvent;
use crate::feature_part::AnyFeatureCommand;
use crate::rng_stream::{self, RngStream};
use crate::{Action, NodeId, Step};

pub(super) use self::forging::is_proof;
use self::two_keys::HeaderCrossing;
pub(crate) use self::two_keys::{Doubled, SERIAL};

/// Number of messages kept to be replayed.
const RECORDED: usize = 4096;

/// Messages of the adversary.
#[derive(Debug, Default)]
pub(crate) struct Adversary {
    /// Sender, whether to the group, and the message.
    recorded: VecDeque<(NodeId, bool, Arc<[u8]>)>,
    /// Forged messages, the newest last.
    forged: VecDeque<Arc<[u8]>>,
    /// Forged joins that wait for a challenge: the named key, by nonce.
    joining: BTreeMap<[u8; 16], Vec<u8>>,
    /// Epochs that the leader with two keys signed twice.
    doubled: BTreeMap<Epoch, Doubled>,
}

impl Adversary {
    /// Records a message that a node sent, if the world wants that.
    pub(super) fn overhear<S: Suite>(
        &mut self,
        kernel: &WorldKernel<S>,
        from: NodeId,
        to: Destination,
        payload: &Arc<[u8]>,
    ) {
        if kernel.setup().recording {
            if self.recorded.len() == RECORDED {
                self.recorded.pop_front();
            }
            self.recorded.push_back((from, to == Destination::Group, Arc::clone(payload)));
        }
    }

    /// Repeats a message to a node, over a connection that the node has.
    fn replay<S: Suite>(&self, kernel: &mut WorldKernel<S>, pick: u64, to: NodeId) {
        let count = self.recorded.len() as u64;
        let Some(place) = pick.checked_rem(count).and_then(|place| usize::try_from(place).ok()) else {
            return;
        };
        let Some((sender, by_group, payload)) = self.recorded.get(place).cloned() else { return };
        insert(kernel, sender, to, by_group, payload);
    }
}

impl<S: Suite> WorldFeature<S> for Adversary {
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, _: &mut Vec<Step>) -> Acted {
        match action {
            Action::Replay { pick, to } => self.replay(kernel, *pick, *to),
            Action::Usurp { edge, rounds } => usurp(kernel, *edge, *rounds),
            Action::Forge { by, what, pick } => self.forge(kernel, *by, *what, *pick),
            Action::DoubleTerm { rounds, split, crossing } => {
                self.double_term(kernel, *rounds, *split, *crossing);
            }
            _ => return Acted::Pass,
        }
        Acted::Done
    }

    fn run_planned(
        &mut self,
        kernel: &mut WorldKernel<S>,
        planned: &AnyFeatureCommand,
        _: &mut Vec<Step>,
    ) -> Acted {
        let Some(HeaderCrossing(epoch)) = planned.read() else { return Acted::Pass };
        self.cross(kernel, epoch);
        Acted::Done
    }

    fn calm(&mut self, kernel: &mut WorldKernel<S>) -> Vec<NodeId> {
        self.cross_again(kernel);
        Vec::new()
    }
}

/// Puts a message on a connection of `to`: the one with `sender` if there is one.
fn insert<S: Suite>(
    kernel: &mut WorldKernel<S>,
    sender: NodeId,
    to: NodeId,
    by_group: bool,
    payload: Arc<[u8]>,
) {
    let (index, links) = (kernel.index(), &kernel.wire.links);
    let neighbours = links.neighbours(to);
    // Behind relays, what is a leader's comes from one of these.
    let hub = links.hub_of(to).filter(|_| index.relays > 0);
    let via = [sender].into_iter().chain(hub).chain(neighbours).find_map(|via| {
        let connection = links.connection(via, to)?;
        Some((index.number(via), connection))
    });
    if let Some((via, connection)) = via {
        let now = kernel.timeline.now();
        kernel.timeline.push(now, to, WorldEvent::Message { via, connection, by_group, payload });
    }
}

/// Sends all nodes headers that open a term, made by unauthorised signers: a leader of another KGC, and a
/// real drone that is no leader.
fn usurp<S: Suite>(kernel: &mut WorldKernel<S>, edge: u32, rounds: u32) {
    let leaders = kernel.leader_count();
    let newest = (0..leaders).filter_map(|ordinal| kernel.leader(ordinal)?.status().epoch).max();
    let round = newest.map_or(0, |epoch| epoch.round()).saturating_add(u64::from(rounds.max(1)));
    let ordinal = u16::try_from(edge % u32::from(leaders)).unwrap_or(0);
    let term = Epoch::term_of(round, ordinal);
    for payload in
        [forged_term(kernel, term, ordinal), presumed_term(kernel, term, edge)].into_iter().flatten()
    {
        for to in (0..kernel.edge_count()).map(NodeId::Edge).chain((0..leaders).map(NodeId::Leader)) {
            insert(kernel, NodeId::Leader(ordinal), to, true, Arc::clone(&payload));
        }
    }
}

/// A term opened with the keys of a leader that another KGC made.
fn forged_term<S: Suite>(kernel: &WorldKernel<S>, term: u64, ordinal: u16) -> Option<Arc<[u8]>> {
    let mut rng = rng_stream::generator(kernel.setup().seed ^ term, RngStream::Adversary);
    let master = MasterSecret::<S>::generate(&mut rng);
    let own = Deployment::new(kernel.fleet().deployment().name().clone(), master.public());
    let role = Role::Leader { group: kernel.fleet().group().clone(), ordinal };
    let leader = issued(&own, "usurper", role, &mut rng, |identity, value, rng| {
        master.issue_partial_key(&own, identity, value, rng)
    })?;
    let output = opened(kernel, term, &leader, (Roster::new(), &BTreeMap::new()), &mut rng)?;
    let entry = output.entries.first().cloned().map(quiver_ainq::EpochPart::Entry);
    let deployment = kernel.fleet().deployment();
    Some(RekeyTemplate::new(deployment, &output.header).message(entry.as_ref()).into())
}

/// A term opened by a drone that the KGC did enrol, but not as a leader.
fn presumed_term<S: Suite>(kernel: &WorldKernel<S>, term: u64, edge: u32) -> Option<Arc<[u8]>> {
    let mut rng = rng_stream::generator(kernel.setup().seed ^ term ^ u64::from(edge), RngStream::Adversary);
    let deployment = kernel.fleet().deployment();
    let role =
        Role::Leader { group: kernel.fleet().group().clone(), ordinal: Epoch { term, counter: 1 }.ordinal() };
    let issue = |identity: &Identity, value: &Element<S>, rng: &mut ChaCha8Rng| {
        kernel.fleet().master_key().issue(deployment, identity, value, rng)
    };
    let model = issued(deployment, "model", role, &mut rng, issue)?;
    let drone = issued(deployment, &format!("captured-{edge}"), Role::Edge, &mut rng, issue)?;
    let mut output = opened(kernel, term, &model, (Roster::new(), &BTreeMap::new()), &mut rng)?;
    output.header.core.leader = drone.public().clone();
    let entry = output.entries.first().cloned().map(quiver_ainq::EpochPart::Entry);
    let digest = output.header.digest(deployment);
    output.header.signature = drone.sign(deployment, Label::Header, &digest, &mut rng);
    Some(RekeyTemplate::new(deployment, &output.header).message(entry.as_ref()).into())
}

/// A term opened by this leader.
fn opened<S: Suite>(
    kernel: &WorldKernel<S>,
    term: u64,
    leader: &DroneKeypair<S>,
    (roster, spares): (Roster<S>, &Spares<S>),
    rng: &mut ChaCha8Rng,
) -> Option<EpochOutput<S>> {
    let issued_at = kernel.unix();
    let valid_until = issued_at + kernel.setup().leader_timing.validity.as_secs().clamp(30, 600);
    let times = Times { issued_at, valid_until, revocation_number: 0 };
    let context = GroupContext {
        deployment: kernel.fleet().deployment().clone(),
        group: kernel.fleet().group().clone(),
        leader: leader.public().clone(),
    };
    let (strategy, prev) = (kernel.setup().strategy, [0; 32]);
    let opened = match kernel.setup().kem.set() {
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
