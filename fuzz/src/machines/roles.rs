//! The machines of the roles, as a fuzzer drives them, and the invariants of each.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::OnceLock;

use arbitrary::Unstructured;
use quiver_ainq::{Epoch, Handle, MasterSecret, Name, Revoked, Role, StrategyKind};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord};
use quiver_group::edge::RestoreError;
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord,
};
use quiver_machine::{Either, Machine, Node, Snapshot};

use super::S;
use super::world::{EDGES, edge_name, is_honest};
use crate::attributes::envelopes::{EnvelopePart, genuine};
use crate::scene::{GROUP, Scene, Staged, name};

/// Checks the events of a machine against its earlier ones.
#[derive(Debug, Default)]
pub(crate) struct EventChecker {
    newest: BTreeMap<Option<Name>, Epoch>,
    issued: BTreeMap<[u8; 16], Handle>,
    /// Set while the honest run is recorded: its digests are not known yet.
    pub(crate) trusting: bool,
    pub(crate) activated: BTreeSet<[u8; 32]>,
}

impl EventChecker {
    fn epoch(&mut self, epoch: Epoch) {
        let before = self.newest.insert(None, epoch);
        assert!(before.is_none_or(|before| before < epoch), "from epoch {before:?} to {epoch}");
    }
}

/// A machine that a fuzzer can drive.
pub(crate) trait FuzzMachine:
    Machine<Command: Clone + Debug, Event: Debug, Record: Clone + Debug> + Sized + 'static
{
    /// The machine that these records make.
    fn restart(records: &[Self::Record], strategy: StrategyKind) -> Result<Self, RestoreError>;
    /// Checks an event.
    fn observe(checker: &mut EventChecker, event: &Self::Event);
    /// Some command.
    fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<Self::Command>;
    /// Uses what can be read from it.
    fn check(&self);
}

fn some_name(u: &mut Unstructured<'_>) -> arbitrary::Result<Name> {
    let names = ["edge-0", "edge-1", "edge-2", "edge-4", "stranger", GROUP, "leader", "beta"];
    Ok(name(u.choose(&names)?))
}

fn some_data(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let len = *u.choose(&[0, 1, 100, 65_536, 65_537])?;
    Ok(vec![u.arbitrary()?; len])
}

/// The ids of all tokens of the scene.
fn known_tokens() -> &'static BTreeSet<[u8; 16]> {
    static KNOWN: OnceLock<BTreeSet<[u8; 16]>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let scene = S::scene();
        let leader = scene.token("leader", Scene::<S>::leader_role());
        let edges = (0..EDGES).map(|edge| scene.token(&edge_name(edge), Role::Edge));
        let deputy = scene.token("deputy", super::deputy::role());
        edges.chain([leader, deputy]).map(|token| token.token.statement.id).collect()
    })
}

impl FuzzMachine for Kgc<S> {
    fn restart(records: &[KgcRecord], _: StrategyKind) -> Result<Self, RestoreError> {
        let scene = S::scene();
        let config = KgcConfig::single(
            scene.deployment.clone(),
            MasterSecret::decode(&scene.master.encode())?,
            vec![scene.operator.public()],
            Secret::new([7; 32]),
        );
        Self::new(config, records.to_vec())
    }

    fn observe(checker: &mut EventChecker, event: &KgcEvent) {
        if let KgcEvent::Issued { token_id, handle, .. } = event {
            let before = checker.issued.insert(*token_id, *handle);
            assert!(before.is_none_or(|before| before == *handle), "two keys for one token");
            let known = known_tokens().contains(token_id);
            assert!(known, "a key for a token that no operator issued");
        }
    }

    fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<KgcCommand> {
        let serial =
            S::scene().token(&edge_name(u.int_in_range(0..=EDGES - 1)?), Role::Edge).token.statement.id;
        Ok(match u.int_in_range(0..=2_u8)? {
            0 => KgcCommand::RevokeTokens(vec![serial, u.arbitrary()?]),
            1 => KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]),
            _ => {
                let (serial, not_after, leader) = (u.arbitrary()?, u.arbitrary()?, u.arbitrary()?);
                KgcCommand::RevokeDrones(vec![Revoked { serial, not_after, leader }])
            }
        })
    }

    fn check(&self) {
        let _ = (self.issued(), self.revocation_number());
    }
}

/// An edge with its envelopes.
pub(crate) type FuzzEdge = Node<Edge<S>, EnvelopePart>;
/// A leader with its envelopes.
pub(crate) type FuzzLeader = Node<Leader<S>, EnvelopePart>;
/// Records of a node whose parts persist nothing.
pub(crate) type Only<R> = Either<R, Infallible>;

pub(crate) fn observe_leader(checker: &mut EventChecker, event: &LeaderEvent) {
    match event {
        LeaderEvent::EpochActivated { epoch, .. } => checker.epoch(*epoch),
        LeaderEvent::Joined { name, .. } => {
            assert!((0..EDGES).any(|edge| edge_name(edge) == name.as_str()), "a stranger joined");
        }
        _ => {}
    }
}

pub(crate) fn leader_command(u: &mut Unstructured<'_>) -> arbitrary::Result<LeaderCommand> {
    Ok(match u.int_in_range(0..=4_u8)? {
        0 => LeaderCommand::Rekey,
        1 => LeaderCommand::Evict(some_name(u)?),
        2 => LeaderCommand::Allow(u.arbitrary()?),
        3 => LeaderCommand::EvictSlot(u.int_in_range(0..=7)?),
        _ => LeaderCommand::Send { channel: some_name(u)?, data: some_data(u)? },
    })
}

pub(crate) fn check_leader(leader: &Leader<S>) {
    let status = leader.status();
    assert_eq!(status.members, leader.members().count());
    assert_eq!(leader.export(&name("test")).is_some(), status.epoch.is_some());
}

impl FuzzMachine for FuzzLeader {
    fn restart(records: &[Only<LeaderRecord>], strategy: StrategyKind) -> Result<Self, RestoreError> {
        let scene = S::scene();
        let config = LeaderConfig {
            max_members: 100,
            strategy,
            ..LeaderConfig::new(
                scene.deployment.clone(),
                name(GROUP),
                Some(scene.token("leader", Scene::<S>::leader_role())),
            )
        };
        let leader = Leader::new(config, records.iter().cloned().map(Either::into_left))?;
        check_leader(&leader);
        Ok(Self::new(leader, EnvelopePart::default()))
    }

    fn observe(checker: &mut EventChecker, event: &Self::Event) {
        if let Either::Left(event) = event {
            observe_leader(checker, event);
        }
    }

    fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<Self::Command> {
        leader_command(u).map(Either::Left)
    }

    fn check(&self) {
        check_leader(self);
    }
}

fn edge_config(edge: usize) -> EdgeConfig<S> {
    let scene = S::scene();
    EdgeConfig::new(
        scene.deployment.clone(),
        Some(name(GROUP)),
        Some(scene.token(&edge_name(edge), Role::Edge)),
    )
}

/// A fresh edge. The fuzzer's is the first one; the others are company.
pub(crate) fn edge(number: usize) -> FuzzEdge {
    FuzzEdge::new(Edge::new(edge_config(number), None).expect("a fresh edge"), EnvelopePart::default())
}

/// Edge, whose record is its whole state, so that the newest one is what counts.
impl FuzzMachine for FuzzEdge {
    fn restart(records: &[Only<Snapshot>], _: StrategyKind) -> Result<Self, RestoreError> {
        let edge = Edge::new(edge_config(0), records.last().and_then(Either::left))?;
        Ok(Self::new(edge, EnvelopePart::default()))
    }

    fn observe(checker: &mut EventChecker, event: &Self::Event) {
        if let Either::Right(event) = event {
            genuine(event);
        }
        if let Either::Left(EdgeEvent::KeyActivated { epoch, digest, .. }) = event {
            checker.epoch(*epoch);
            checker.activated.insert(*digest);
            assert!(checker.trusting || is_honest(digest), "an epoch that the leader did not make");
        }
    }

    fn command(u: &mut Unstructured<'_>) -> arbitrary::Result<Self::Command> {
        Ok(Either::Left(match u.int_in_range(0..=3_u8)? {
            0 => EdgeCommand::Join(some_name(u)?),
            1 => EdgeCommand::Leave,
            _ => EdgeCommand::Send { channel: some_name(u)?, data: some_data(u)?, signed: u.arbitrary()? },
        }))
    }

    fn check(&self) {
        let status = self.status();
        assert_eq!(self.export(&name("test")).is_some(), status.synced);
        assert!(!status.synced || status.epoch.is_some());
    }
}
