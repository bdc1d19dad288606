//! Wraps and path messages of a tree, decoded and then applied by an honest member: anything that the honest
//! leader did not make changes nothing.

use std::collections::BTreeMap;

use quiver_ainq::{
    Batch, Bls12381G1, Delta, EpochPart, Error, GroupContext, GroupMembership, Header, Join, Label,
    Leadership, PathMessage, RevocationStatement, Ristretto255, Roster, SparePair, StrategyKind, Suite,
    Times, VerifiedHeader,
};

use crate::scene::{GROUP, START, Scene, Staged, canonical, name, rng};

/// Number of members of the tree besides the one that applies them.
const OTHERS: u8 = 6;

/// A member of a tree, and the next epoch as the honest leader made it.
#[derive(Debug)]
pub struct TreeMember<S: Suite> {
    /// The member.
    pub member: GroupMembership<S>,
    /// The header of the next epoch, in which a neighbour leaves.
    pub header: Header<S>,
    /// Wraps of the tree.
    pub delta: Delta,
    /// The member's path in it.
    pub path: PathMessage,
    /// The header of the epoch in which the member joined, and its wraps, by which it might have followed.
    pub joined: (Header<S>, Delta),
    /// The pair with which it asked.
    pub ephemeral: SparePair<S>,
}

impl<S: Suite> TreeMember<S> {
    pub(crate) fn new(scene: &Scene<S>) -> Self {
        let mut rng = rng(8);
        let honest = scene.honest();
        let (leader, edge) = (&honest.leader.keypair, &honest.edge.keypair);
        let times = Times { issued_at: START, valid_until: START + 600, revocation_number: 0 };
        let (context, strategy) = (context(scene), StrategyKind::Tree);
        let (roster, spares) = (Roster::new(), BTreeMap::new());
        let opened = Leadership::open_term(
            context.clone(),
            leader,
            roster,
            &spares,
            1 << 16,
            [0; 32],
            &times,
            strategy,
            &mut rng,
        );
        let (mut leadership, _) = opened.expect("a term");
        let ephemeral = SparePair::ephemeral(&mut rng);
        let joins = (0..=OTHERS).map(|number| {
            let mut public = edge.public().clone();
            public.identity.serial[0] ^= number;
            Join::new(&scene.deployment, public, *ephemeral.point()).expect("a join")
        });
        let batch = Batch { joins: joins.collect(), by_wraps: true, ..Batch::default() };
        let joined = leadership.rekey(leader, batch, &times, &mut rng).expect("an epoch");
        let welcome = EpochPart::Path(leadership.path_message(0, &[1; 16]).expect("a path"));
        let header = verified(scene, &joined.header).expect("an honest header");
        let member = GroupMembership::join_with_pair(&context, edge, &ephemeral, &header, &welcome);
        let member = member.expect("a welcome");
        let joined = (joined.header, joined.wraps.expect("wraps").whole());
        let batch = Batch { removals: vec![1, 5], ..Batch::default() };
        let next = leadership.rekey(leader, batch, &times, &mut rng).expect("an epoch");
        let path = leadership.path_message(0, &[2; 16]).expect("a path");
        let (header, delta) = (next.header, next.wraps.expect("wraps").whole());
        Self { member, header, delta, path, joined, ephemeral }
    }
}

fn context<S: Suite>(scene: &Scene<S>) -> GroupContext<S> {
    let leader = scene.honest().leader.keypair.public().clone();
    GroupContext { deployment: scene.deployment.clone(), group: name(GROUP), leader }
}

fn verified<S: Suite>(scene: &Scene<S>, header: &Header<S>) -> Result<VerifiedHeader<S>, Error> {
    header.clone().verify(&scene.deployment, &name(GROUP), None, &RevocationStatement::empty(), START)
}

fn advance<S: Suite>(
    scene: &Scene<S>,
    header: &Header<S>,
    part: &EpochPart,
) -> Result<GroupMembership<S>, Error> {
    let edge = &scene.honest().edge.keypair;
    scene.tree().member.advance(&context(scene), edge, None, &verified(scene, header)?, part)
}

fn join<S: Suite>(scene: &Scene<S>, header: &Header<S>, delta: &Delta) -> Result<GroupMembership<S>, Error> {
    let (edge, ephemeral) = (&scene.honest().edge.keypair, &scene.tree().ephemeral);
    GroupMembership::join_by_wraps(&context(scene), edge, ephemeral, &verified(scene, header)?, 0, delta)
}

/// A header as a leader makes it that signs anything, for these wraps.
fn signed<S: Staged>(scene: &Scene<S>, header: &Header<S>, delta: &Delta) -> Header<S> {
    let mut header = header.clone();
    header.entries_root = delta.root();
    let digest = header.digest(&scene.deployment);
    let leader = &scene.honest().leader.keypair;
    header.signature = leader.sign(&scene.deployment, Label::Header, &digest, &mut rng(9));
    header
}

/// Wraps, under the honest header and under one that a leader signed for them.
pub fn delta(bytes: &[u8]) {
    deltas::<Ristretto255>(bytes);
    deltas::<Bls12381G1>(bytes);
}

/// Path messages.
pub fn path_message(bytes: &[u8]) {
    paths::<Ristretto255>(bytes);
    paths::<Bls12381G1>(bytes);
}

fn deltas<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    let tree = scene.tree();
    let Some(delta) = canonical(bytes, Delta::decode(bytes), Delta::encode) else { return };
    // A holder of all wraps may cut a part of them.
    let honest = delta.root() == tree.delta.root() && delta.covers(tree.member.slot());
    let part = EpochPart::Delta(delta.clone());
    assert_eq!(advance(scene, &tree.header, &part).is_ok(), honest, "wraps that the leader did not make");
    // A leader that signs anything: the form is read, and then the tag does not fit.
    let header = signed(scene, &tree.header, &delta);
    assert_eq!(advance(scene, &header, &part).is_ok(), honest, "wraps that give no key");
    // The same of those by which it might have joined.
    let (header, wraps) = &tree.joined;
    let honest = delta.root() == wraps.root() && delta.covers(0);
    assert_eq!(
        join(scene, header, &delta).is_ok(),
        honest,
        "wraps that the leader did not make for a newcomer"
    );
    let header = signed(scene, header, &delta);
    assert_eq!(join(scene, &header, &delta).is_ok(), honest, "wraps that give a newcomer no key");
}

fn paths<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    let tree = scene.tree();
    let Some(path) = canonical(bytes, PathMessage::decode(bytes), PathMessage::encode) else { return };
    let honest = path == tree.path;
    let next = advance(scene, &tree.header, &EpochPart::Path(path));
    assert_eq!(next.is_ok(), honest, "a path that the leader did not seal");
}

/// Wraps as the leaders of both suites made them, and parts for the member and for another.
pub fn delta_seeds() -> Vec<Vec<u8>> {
    fn of<S: Staged>() -> [&'static Delta; 2] {
        let tree = S::scene().tree();
        [&tree.delta, &tree.joined.1]
    }
    of::<Ristretto255>()
        .into_iter()
        .chain(of::<Bls12381G1>())
        .flat_map(|delta| {
            let wraps = delta.to_tree().expect("all wraps");
            [delta.encode(), wraps.branch(0).encode(), wraps.branch(6).encode()]
        })
        .collect()
}

/// Path messages as the leaders of both suites made them.
pub fn path_message_seeds() -> Vec<Vec<u8>> {
    vec![Ristretto255::scene().tree().path.encode(), Bls12381G1::scene().tree().path.encode()]
}
