//! The KGCs of a quorum: what they say to one another, what they store, and their machine, taken to some
//! point of an honest past and then fed with anything two other members, or strangers, can say.

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::{KgcId, Revoked, Ristretto255};
use quiver_machine::{Destination, Input, Machine, Now, Peer, Route, Via};
use quiver_message::QuorumMessage;
use quiver_quorum::PublicShares;
use quiver_quorum_node::{
    Ibe, IbeStatements, QuorumCommand, QuorumConfig, QuorumMembership, QuorumNode, QuorumRecord,
};
use quiver_testbed::{Net, Outputs};
use rand_chacha::ChaCha20Rng;

use crate::mutation::mutate;
use crate::scene::{START, name, rng};

type S = Ristretto255;

/// The scheme of the statement about the second key, which a member signs and does not interpret.
const SCHEME: &str = "bf-fullident-bls12381";
/// Greatest number of inputs of a machine in one run.
const MAX_STEPS: usize = 16;

/// An honest past of member 1 in a quorum of three, two of which act.
struct HonestRun {
    membership: QuorumMembership,
    /// Messages of members 2 and 3 to it, in order.
    heard: Vec<(KgcId, Vec<u8>)>,
    /// Records of the member at points of that past: before anything, in the middle of a ceremony, with
    /// shares.
    points: Vec<Vec<QuorumRecord>>,
    /// The shares that it had, by their digests.
    digests: Vec<[u8; 32]>,
}

fn honest_run() -> &'static HonestRun {
    thread_local!(static PAST: &'static HonestRun = Box::leak(Box::new(HonestRun::new())));
    PAST.with(|past| *past)
}

fn encode_shares(public: &PublicShares<Ibe>) -> Vec<u8> {
    public.encode()
}

fn config(membership: &QuorumMembership, id: KgcId) -> QuorumConfig {
    let ibe_statements = Some(IbeStatements { scheme: SCHEME, parameters: encode_shares });
    QuorumConfig { membership: membership.clone(), id, revocation_validity: 86_400, ibe_statements }
}

fn now(seconds: u64) -> Now {
    Now { monotonic: Duration::from_secs(seconds), unix: START + seconds }
}

/// The newest record of each kind.
type Stored = BTreeMap<u8, QuorumRecord>;

fn kind(record: &QuorumRecord) -> u8 {
    match record {
        QuorumRecord::Keys(_) => 0,
        QuorumRecord::Ceremony(_) => 1,
        QuorumRecord::Statements(_) => 2,
        QuorumRecord::RevocationList { .. } => 3,
        QuorumRecord::QuorumStatement(_) => 4,
    }
}

/// Executes all outputs, except that messages to other members are lost.
fn drain(node: &mut QuorumNode<S>, stored: &mut Stored) {
    let Outputs { records, effects, .. } = Outputs::of(node);
    let only_sends = effects.blocked.is_empty() && effects.penalized.is_empty() && effects.relayed.is_empty();
    let to_members = effects.sent.iter().all(|(to, _)| matches!(to, Destination::Peer(_)));
    assert!(only_sends && to_members, "members talk to members alone");
    stored.extend(newest(&records));
}

fn newest(records: &[QuorumRecord]) -> Stored {
    records.iter().map(|record| (kind(record), record.clone())).collect()
}

impl HonestRun {
    fn new() -> Self {
        let identities = (1..=3_u8).map(|id| vec![id; 20]).collect();
        let membership = QuorumMembership::new::<S>(name("fuzzed"), 2, identities).expect("two of three");
        let mut net = Net::new(90);
        for id in 1..=3 {
            net.start(id, QuorumNode::<S>::new(config(&membership, id), []).expect("new"));
        }
        for (one, other) in [(1, 2), (1, 3), (2, 3)] {
            net.link(one, other, (Route::Member(other), Route::Member(one)));
        }
        let mut past = Self { membership, heard: Vec::new(), points: vec![Vec::new()], digests: Vec::new() };
        for second in 2..400 {
            while net.step(Duration::from_secs(second)) {
                past.look(&net);
            }
            for id in 1..=3 {
                let command = match second {
                    3 => QuorumCommand::Generate,
                    100 if id == 2 => QuorumCommand::Refresh,
                    200 | 201 => QuorumCommand::Revoke(vec![Revoked::unknown([second as u8; 16])]),
                    _ => continue,
                };
                net.command::<QuorumNode<S>>(id, command);
                past.look(&net);
            }
        }
        let only_sends = net.blocked.is_empty() && net.penalized.is_empty() && net.relayed.is_empty();
        assert!(only_sends && net.unheard.is_empty(), "members talk to members alone");
        let heard = net.recorded.into_iter().filter(|packet| packet.to == 1);
        past.heard = heard.map(|packet| (packet.from, packet.bytes)).collect();
        assert_eq!((past.points.len(), past.digests.len()), (4, 2), "an honest past");
        past
    }

    /// Keeps the records of the first member if it has reached a point to start from.
    fn look(&mut self, net: &Net<KgcId>) {
        let node = net.node::<QuorumNode<S>>(1);
        let heard = net.recorded.iter().filter(|packet| packet.to == 1).count();
        let in_ceremony = self.points.len() == 1
            && heard > 3
            && node.records().iter().any(|record| matches!(record, QuorumRecord::Ceremony(_)));
        let digest = net.machine::<QuorumNode<S>>(1).keys().map(|keys| keys.digest());
        let new = digest.filter(|digest| !self.digests.contains(digest));
        if in_ceremony || new.is_some() {
            self.points.push(newest(node.records()).into_values().collect());
            self.digests.extend(new);
        }
    }
}

/// A message between members.
pub fn message(bytes: &[u8]) {
    let quorum = honest_run().membership.fingerprint();
    if let Ok(message) = QuorumMessage::decode(quorum, bytes) {
        assert_eq!(message.encode(quorum), bytes, "two encodings of one message");
        assert!(QuorumMessage::is_framed_as(bytes), "a frame of its own");
    }
}

/// All messages of an honest run.
pub fn message_seeds() -> Vec<Vec<u8>> {
    honest_run().heard.iter().map(|(_, bytes)| bytes.clone()).collect()
}

/// A member's records, damaged in one place: it starts with a prefix of its records, or not at all.
pub fn records(bytes: &[u8]) {
    let past = honest_run();
    let mut u = Unstructured::new(bytes);
    let Ok(point) = u.choose(&past.points) else { return };
    let damaged: arbitrary::Result<Vec<QuorumRecord>> = point
        .iter()
        .map(|record| {
            let mut change = |stored: &[u8]| mutate(&mut u, stored.to_vec(), stored);
            Ok(match record {
                QuorumRecord::Keys(snapshot) => {
                    QuorumRecord::Keys(quiver_machine::Snapshot::new(change(snapshot.as_bytes())?))
                }
                QuorumRecord::Ceremony(snapshot) => {
                    QuorumRecord::Ceremony(quiver_machine::Snapshot::new(change(snapshot.as_bytes())?))
                }
                QuorumRecord::Statements(stored) => QuorumRecord::Statements(change(stored)?),
                QuorumRecord::RevocationList { number, list } => {
                    QuorumRecord::RevocationList { number: *number, list: change(list)? }
                }
                QuorumRecord::QuorumStatement(stored) => QuorumRecord::QuorumStatement(change(stored)?),
            })
        })
        .collect();
    let Ok(damaged) = damaged else { return };
    if let Ok(node) = QuorumNode::<S>::new(config(&past.membership, 1), damaged) {
        let digest = node.keys().map(|keys| keys.digest());
        assert!(digest.is_none_or(|digest| past.digests.contains(&digest)), "shares of nobody");
    }
}

/// Any bytes: the first one selects the records, the rest how they are damaged.
pub fn record_seeds() -> Vec<Vec<u8>> {
    (0..8).map(|seed| vec![seed * 36; 40]).collect()
}

/// A member that is fed any messages.
pub fn input(bytes: &[u8]) {
    let _ = replay(&mut Unstructured::new(bytes));
}

/// Scripts for [`input`].
pub fn input_seeds() -> Vec<Vec<u8>> {
    record_seeds()
}

fn connect(node: &mut QuorumNode<S>, rng: &mut ChaCha20Rng) {
    for member in [2, 3] {
        let (peer, route) = (Peer(u64::from(member)), Route::Member(member));
        node.handle_input(now(1000), Input::Connected { peer, route }, rng);
    }
}

fn replay(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let past = honest_run();
    let mut stored = newest(u.choose(&past.points)?);
    let start = |stored: &Stored| {
        let records: Vec<_> = stored.values().cloned().collect();
        QuorumNode::<S>::new(config(&past.membership, 1), records).expect("what it stored, it takes back")
    };
    let (mut node, mut rng, mut seconds) = (start(&stored), rng(91), 1000);
    connect(&mut node, &mut rng);
    for _ in 0..MAX_STEPS {
        let (from, heard) = u.choose(&past.heard)?;
        let (mut from, mut bytes) = (Peer(u64::from(*from)), heard.clone());
        let input = match u.int_in_range(0..=15_u8)? {
            0 => {
                seconds += u64::from(u.arbitrary::<u16>()?);
                continue;
            }
            1 => {
                node = start(&stored);
                connect(&mut node, &mut rng);
                continue;
            }
            2 => Input::Command(command(u)?),
            4 => Input::Timeout,
            how => {
                if let 3 | 5..=9 = how {
                    bytes = mutate(u, bytes, heard)?;
                }
                if how == 3 {
                    from = Peer(u64::from(u.int_in_range(1..=4_u16)?));
                }
                Input::Received { from, via: Via::Peer, bytes: &bytes }
            }
        };
        node.handle_input(now(seconds), input, &mut rng);
        drain(&mut node, &mut stored);
        let digest = node.keys().map(|keys| keys.digest());
        assert!(digest.is_none_or(|digest| past.digests.contains(&digest)), "shares that nobody confirmed");
    }
    Ok(())
}

/// An operator's command, except to activate shares that not all have confirmed.
fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<QuorumCommand> {
    Ok(match u.int_in_range(0..=8_u8)? {
        0 => QuorumCommand::Generate,
        1 => QuorumCommand::Refresh,
        2 => QuorumCommand::Abandon,
        3 => QuorumCommand::Recover,
        4 => QuorumCommand::HelpRecover(u.int_in_range(0..=4)?),
        5 => {
            let (serial, not_after, leader) = (u.arbitrary()?, u.arbitrary()?, u.arbitrary()?);
            QuorumCommand::Revoke(vec![Revoked { serial, not_after, leader }])
        }
        6 => QuorumCommand::Prove(u.arbitrary()?),
        7 => QuorumCommand::Approve(u.arbitrary()?),
        _ => QuorumCommand::Propose(u.arbitrary()?),
    })
}
