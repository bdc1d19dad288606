//! Valid encodings, of both suites.

use std::collections::BTreeMap;

use quiver_ainq::{
    Batch, Bls12381G1, Entry, EpochPart, GroupContext, GroupMembership, Header, Identity, Join, Label,
    Leadership, Name, RevocationStatement, Revoked, Ristretto255, Role, Roster, SecretScalar, SlotSet,
    SparePair, StrategyKind, Suite, Times,
};
use quiver_crypto::canonical::Writer;

use crate::scene::{Enrolled, GROUP, START, Scene, Staged, name, rng};

macro_rules! both_suites {
    ($($(#[$doc:meta])* $name:ident => $one:ident;)*) => {
        $($(#[$doc])* pub fn $name() -> Vec<Vec<u8>> {
            let mut seeds = $one(Ristretto255::scene());
            seeds.extend($one(Bls12381G1::scene()));
            seeds
        })*
    };
}

both_suites! {
    /// Tokens in all their forms.
    token => tokens;
    /// Public keys of an edge and of a leader.
    drone_public_key => public_keys;
    /// Signatures.
    signature => signatures;
    /// A partial key is a scalar and a point, and so is a signature with its halves swapped; scalars alone
    /// besides.
    partial_key => partial_keys;
    /// Requests to the KGC.
    enrolment_request => requests;
    /// Replies of the KGC.
    sealed_reply => replies;
    /// State of a drone until the reply arrives.
    pending_enrolment => pendings;
    /// Revocation lists.
    revocation_list => lists;
    /// Headers.
    header => headers;
    /// Spare pairs.
    spare => spares;
    /// Memberships at rest.
    membership => memberships;
}

/// Identities.
pub fn identity() -> Vec<Vec<u8>> {
    let mut edge = Ristretto255::scene().token("edge-0", Role::Edge).token.statement.identity();
    let mut seeds = vec![edge.encode()];
    edge.groups = vec![name("a"), name("b"), name("c")];
    seeds.push(edge.encode());
    let leader = Identity { role: Scene::<Ristretto255>::leader_role(), ..edge };
    seeds.push(leader.encode());
    seeds
}

/// Entries.
pub fn entry() -> Vec<Vec<u8>> {
    [None, Some(7)].map(|q| Entry { slot: 3, q, wrap: [5; 32] }.encode()).to_vec()
}

/// Sets of slots.
pub fn slot_set() -> Vec<Vec<u8>> {
    let encode = |slots: &[u32]| {
        let mut writer = Writer::new();
        slots.iter().copied().collect::<SlotSet>().encode(&mut writer);
        writer.finish()
    };
    vec![encode(&[]), encode(&[0, 1, 2, 9, 10, 500]), encode(&[1_048_575])]
}

/// Ratchets at rest.
pub fn ratchet() -> Vec<Vec<u8>> {
    // u, W[u], A: all bytes are free.
    vec![[vec![0; 8], vec![7; 64]].concat(), [vec![0, 0, 0, 0, 0, 0, 2, 1], vec![9; 64]].concat()]
}

/// Messages and keys of an honest edge, leader and KGC.
#[derive(Debug)]
pub struct Honest<S: Suite> {
    /// An edge.
    pub edge: Enrolled<S>,
    /// A leader.
    pub leader: Enrolled<S>,
    /// The encoded statements of both tokens.
    pub statements: [Vec<u8>; 2],
    /// A revocation list.
    pub list: Vec<u8>,
    /// The second epoch of a term, which adds the edge.
    pub header: Header<S>,
    /// The edge's entry in it.
    pub entry: Entry,
    /// The secret of E_now with which it joined.
    pub ephemeral: SecretScalar<S>,
}

impl<S: Suite> Honest<S> {
    pub(crate) fn new(scene: &Scene<S>) -> Self {
        let edge = scene.enrol("edge-0", Role::Edge);
        let leader = scene.enrol("leader", Scene::<S>::leader_role());
        let statements = [&edge, &leader].map(|drone| drone.token.token.statement.encode());
        let named = Revoked { serial: [7; 16], not_after: START + 86_400, leader: true };
        let revoked = vec![named, Revoked { serial: [1; 16], not_after: START, leader: false }];
        let list = RevocationStatement { number: 5, issued: START, next_update: START + 86_400, revoked };
        let list =
            scene.master.sign_revocations(&scene.deployment, list, &mut rng(4)).expect("a list").encode();
        let (header, entry, ephemeral) = epoch(scene, &leader, &edge);
        Self { edge, leader, statements, list, header, entry, ephemeral }
    }
}

fn epoch<S: Suite>(
    scene: &Scene<S>,
    leader: &Enrolled<S>,
    edge: &Enrolled<S>,
) -> (Header<S>, Entry, SecretScalar<S>) {
    let mut rng = rng(5);
    let deployment = scene.deployment.clone();
    let times = Times { issued_at: START, valid_until: START + 600, revocation_number: 0 };
    let context = GroupContext { deployment, group: name(GROUP), leader: leader.keypair.public().clone() };
    let (roster, spares) = (Roster::new(), BTreeMap::new());
    let opened = Leadership::open_term(
        context,
        &leader.keypair,
        roster,
        &spares,
        1 << 16,
        [0; 32],
        &times,
        StrategyKind::Flat,
        &mut rng,
    );
    let (mut leadership, _) = opened.expect("a term");
    let ephemeral = SecretScalar::generate(&mut rng);
    let public = edge.keypair.public().clone();
    let join = Join::new(&scene.deployment, public, ephemeral.public()).expect("a join");
    let batch = Batch { joins: vec![join], ..Batch::default() };
    let output = leadership.rekey(&leader.keypair, batch, &times, &mut rng).expect("an epoch");
    let entry = output.entries.first().expect("one entry").clone();
    (output.header, entry, ephemeral)
}

fn tokens<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let Honest { edge, leader, .. } = scene.honest();
    vec![
        edge.token.encode().to_vec(),
        edge.token.token.encode(),
        edge.token.token.statement.encode(),
        leader.token.token.encode(),
        scene.operator.encode().to_vec(),
        scene.operator.public().encode(),
    ]
}

fn public_keys<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let Honest { edge, leader, .. } = scene.honest();
    [edge, leader].map(|drone| drone.keypair.public().encode()).to_vec()
}

fn signatures<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let keypair = &scene.honest().edge.keypair;
    vec![keypair.sign(&scene.deployment, Label::Leave, b"bye", &mut rng(6)).encode()]
}

fn partial_keys<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let signature = signatures(scene).remove(0);
    let (point, scalar) = signature.split_at(S::POINT_LEN);
    vec![[scalar, point].concat(), scalar.to_vec(), scene.master.encode().to_vec()]
}

fn requests<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    vec![scene.honest().edge.pending.request().encode()]
}

fn replies<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    vec![scene.honest().edge.reply.encode()]
}

fn pendings<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    vec![scene.honest().edge.pending.encode().to_vec()]
}

fn lists<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    vec![scene.honest().list.clone()]
}

fn headers<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let headers = [&scene.honest().header, &scene.tree().header];
    headers.map(|header| header.encode(&scene.deployment)).to_vec()
}

fn spares<S: Suite>(_: &Scene<S>) -> Vec<Vec<u8>> {
    vec![SparePair::<S>::generate(3, &mut rng(7)).encode().to_vec()]
}

fn memberships<S: Suite>(scene: &Scene<S>) -> Vec<Vec<u8>> {
    let Honest { edge, leader, header, entry, ephemeral, .. } = scene.honest();
    let (group, revocations) = (name(GROUP), RevocationStatement::empty());
    let verified = header.clone().verify(&scene.deployment, &group, None, &revocations, START);
    let leader = leader.keypair.public().clone();
    let context = GroupContext { deployment: scene.deployment.clone(), group, leader };
    let verified = verified.expect("an honest header");
    let membership = GroupMembership::join(
        &context,
        &edge.keypair,
        ephemeral,
        &verified,
        &EpochPart::Entry(entry.clone()),
    )
    .expect("a welcome");
    let tree = scene.tree().member.encode().to_vec();
    let mut former = tree.clone();
    former[strategy_place::<S>(scene.tree().member.group())] = 3;
    vec![membership.encode().to_vec(), tree, former]
}

/// Place of the strategy's code in a membership at rest: after the suite, the group and the leader's handle.
pub(super) fn strategy_place<S: Suite>(group: &Name) -> usize {
    4 + S::ID.len() + 4 + group.as_bytes().len() + 32
}
