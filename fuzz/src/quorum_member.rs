//! The KGCs of a quorum: what they say to one another, what they store, and their machine, taken to some
//! point of an honest past and then fed with anything two other members, or strangers, can say.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::{KgcId, Revoked, Ristretto255};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use quiver_message::QuorumMessage;
use quiver_quorum::PublicShares;
use quiver_quorum_node::{Ibe, QuorumCommand, QuorumConfig, QuorumMembership, QuorumNode, QuorumRecord};
use rand_chacha::ChaCha20Rng;

use crate::mutation::mutate;
use crate::scene::{START, name, rng};

type S = Ristretto255;

/// Greatest number of inputs of a machine in one run.
const MAX_STEPS: usize = 16;

/// An honest past of member 1 in a quorum of three, two of which act.
struct HonestRun {
    membership: QuorumMembership,
    /// Messages of members 2 and 3 to it, in order.
    heard: Vec<(KgcId, Vec<u8>)>,
    /// Its records at points of that past: before anything, in the middle of a ceremony, with shares.
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
    let membership = membership.clone();
    QuorumConfig { membership, id, revocation_validity: 86_400, ibe_parameters: encode_shares }
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

/// Executes all outputs. Returns the messages by the handle they are sent to.
fn drain(node: &mut QuorumNode<S>, stored: &mut Stored) -> Vec<(Peer, Vec<u8>)> {
    let mut sent = Vec::new();
    for _ in 0..10_000 {
        match node.poll_output() {
            Output::Timeout(_) => return sent,
            Output::Transmit { to: Destination::Peer(peer), payload } => sent.push((peer, payload)),
            Output::Transmit { .. } | Output::Block(_) | Output::Relay { .. } | Output::Penalize { .. } => {
                panic!("members talk to members alone")
            }
            Output::Persist(record) => drop(stored.insert(kind(&record), record)),
            Output::Event(_) => {}
        }
    }
    panic!("it never comes to rest");
}

impl HonestRun {
    fn new() -> Self {
        let identities = (1..=3_u8).map(|id| vec![id; 20]).collect();
        let membership = QuorumMembership::new::<S>(name("fuzzed"), 2, identities).expect("two of three");
        let mut rng = rng(90);
        let mut nodes: Vec<_> =
            (1..=3).map(|id| QuorumNode::<S>::new(config(&membership, id), []).expect("new")).collect();
        let mut past = Self { membership, heard: Vec::new(), points: vec![Vec::new()], digests: Vec::new() };
        let (mut stored, mut queue) = (Stored::new(), VecDeque::new());
        let mut tell = |past: &mut Self,
                        id: usize,
                        input: Input<'_, QuorumCommand>,
                        seconds,
                        queue: &mut VecDeque<_>| {
            nodes[id].handle_input(now(seconds), input, &mut rng);
            let mut others = Stored::new();
            let sent = drain(&mut nodes[id], if id == 0 { &mut stored } else { &mut others });
            queue.extend(sent.into_iter().map(|(peer, bytes)| (id, peer.0 as usize, bytes)));
            if id == 0 && stored.contains_key(&1) && past.points.len() == 1 && past.heard.len() > 3 {
                past.points.push(stored.values().cloned().collect());
            }
            if let Some(keys) = nodes[0].keys().filter(|_| id == 0)
                && !past.digests.contains(&keys.digest())
            {
                past.digests.push(keys.digest());
                past.points.push(stored.values().cloned().collect());
            }
        };
        for (id, other) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let route = Route::Member(other as KgcId + 1);
            tell(&mut past, id, Input::Connected { peer: Peer(other), route }, 1, &mut queue);
        }
        for second in 2..400 {
            for id in 0..3 {
                let revoke = QuorumCommand::Revoke(vec![Revoked::unknown([second as u8; 16])]);
                match second {
                    3 => tell(&mut past, id, Input::Command(QuorumCommand::Generate), second, &mut queue),
                    100 if id == 1 => {
                        tell(&mut past, id, Input::Command(QuorumCommand::Refresh), second, &mut queue)
                    }
                    200 | 201 => tell(&mut past, id, Input::Command(revoke), second, &mut queue),
                    _ => tell(&mut past, id, Input::Timeout, second, &mut queue),
                }
            }
            while let Some((from, to, bytes)) = queue.pop_front() {
                if to == 0 {
                    past.heard.push((from as KgcId + 1, bytes.clone()));
                }
                tell(
                    &mut past,
                    to,
                    Input::Received { from: Peer(from as u64), via: Via::Peer, bytes: &bytes },
                    second,
                    &mut queue,
                );
            }
        }
        assert_eq!((past.points.len(), past.digests.len()), (4, 2), "an honest past");
        past
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
    let mut stored: Stored =
        u.choose(&past.points)?.iter().map(|record| (kind(record), record.clone())).collect();
    let start = |stored: &Stored| {
        let records: Vec<_> = stored.values().cloned().collect();
        QuorumNode::<S>::new(config(&past.membership, 1), records).expect("what it stored, it takes back")
    };
    let (mut node, mut rng, mut seconds) = (start(&stored), rng(91), 1000);
    connect(&mut node, &mut rng);
    for _ in 0..MAX_STEPS {
        let (from, heard) = u.choose(&past.heard)?;
        match u.int_in_range(0..=15_u8)? {
            0 => seconds += u64::from(u.arbitrary::<u16>()?),
            1 => {
                node = start(&stored);
                connect(&mut node, &mut rng);
            }
            2 => {
                let command = command(u)?;
                node.handle_input(now(seconds), Input::Command(command), &mut rng);
            }
            3 => {
                let bytes = mutate(u, heard.clone(), heard)?;
                let from = Peer(u64::from(u.int_in_range(1..=4_u16)?));
                node.handle_input(
                    now(seconds),
                    Input::Received { from, via: Via::Peer, bytes: &bytes },
                    &mut rng,
                );
            }
            4 => node.handle_input(now(seconds), Input::Timeout, &mut rng),
            5..=9 => {
                let (from, bytes) = (Peer(u64::from(*from)), mutate(u, heard.clone(), heard)?);
                node.handle_input(
                    now(seconds),
                    Input::Received { from, via: Via::Peer, bytes: &bytes },
                    &mut rng,
                );
            }
            _ => {
                let from = Peer(u64::from(*from));
                node.handle_input(
                    now(seconds),
                    Input::Received { from, via: Via::Peer, bytes: heard },
                    &mut rng,
                );
            }
        }
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
