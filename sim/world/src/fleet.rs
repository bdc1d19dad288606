//! What the nodes are set up with: one deployment, one operator, a token and a configuration for everybody.

use std::collections::BTreeSet;
use std::fmt;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Role, StrategyKind, Suite, TokenGrant,
    UnixTime,
};
use quiver_crypto::Secret;
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{EdgeConfig, KgcConfig, Kgcs, LeaderConfig};
use rand_core::RngCore;
use zeroize::Zeroizing;

use crate::seeds::{self, Player};
use crate::{Node, Setup};

/// When the world begins: 2027-01-01, in seconds since 1970.
pub const EPOCH_START: UnixTime = 1_798_761_600;
/// The group's name.
pub const GROUP: &str = "alpha";

/// For how long a revocation list counts as fresh, in seconds.
const REVOCATION_VALIDITY: u64 = 86_400;
/// For how long tokens and identities are valid, in seconds.
const TOKEN_VALIDITY: u64 = 30 * 86_400;
const IDENTITY_VALIDITY: u64 = 365 * 86_400;

/// The name of an edge drone.
pub fn edge_name(number: u32) -> Name {
    name(&format!("edge-{number}"))
}

fn name(text: &str) -> Name {
    Name::new(text).expect("names of the world are short and plain")
}

/// A deployment and what its nodes are set up with. The same seed gives the same keys and tokens.
pub struct Fleet<S: Suite> {
    seed: u64,
    deployment: Deployment<S>,
    master: Zeroizing<Vec<u8>>,
    operator: OperatorSecretKey<S>,
    group: Name,
    /// Edges from this number on have tokens that do not list the group: they must never get in.
    pub(crate) strangers_from: u32,
    pub(crate) max_members: u32,
    pub(crate) strategy: StrategyKind,
    pub(crate) leader_timing: LeaderTiming,
    pub(crate) edge_timing: EdgeTiming,
}

impl<S: Suite> Fleet<S> {
    pub(crate) fn new(setup: &Setup) -> Self {
        let (seed, members) = (setup.fleet_seed, setup.members);
        let mut rng = seeds::generator(seed, Player::Founder);
        let master = MasterSecret::<S>::generate(&mut rng);
        let operator = OperatorSecretKey::generate(&mut rng);
        Self {
            seed,
            deployment: Deployment::new(name("world"), master.public()),
            master: master.encode(),
            operator,
            group: name(GROUP),
            strangers_from: members,
            max_members: members.saturating_mul(2).clamp(64, 1 << 20),
            strategy: setup.strategy,
            leader_timing: setup.leader_timing,
            edge_timing: setup.edge_timing,
        }
    }

    /// The deployment.
    pub fn deployment(&self) -> &Deployment<S> {
        &self.deployment
    }

    /// The group's name.
    pub fn group(&self) -> &Name {
        &self.group
    }

    /// How many drones a leader lets wait to join at once.
    pub(crate) fn wave(&self) -> usize {
        (self.max_members as usize / 8).max(16_384)
    }

    /// Whether the edge's identity lists the group.
    pub fn authorises(&self, edge: u32) -> bool {
        edge < self.strangers_from
    }

    /// The master secret, for an adversary that was enrolled.
    pub(crate) fn master(&self) -> MasterSecret<S> {
        MasterSecret::decode(&self.master).expect("as encoded above")
    }

    pub(crate) fn kgc(&self, life: u32) -> KgcConfig<S> {
        let mut cookie_key = [0; 32];
        seeds::generator(self.seed, Player::Token(Node::Kgc)).fill_bytes(&mut cookie_key);
        // A new key at every start, as at the service.
        cookie_key.iter_mut().zip(life.to_be_bytes()).for_each(|(byte, life)| *byte ^= life);
        KgcConfig {
            deployment: self.deployment.clone(),
            master: self.master().into(),
            id: 1,
            operators: vec![self.operator.public()],
            cookie_key: Secret::new(cookie_key),
            revocation_validity: REVOCATION_VALIDITY,
        }
    }

    pub(crate) fn leader(&self, ordinal: u16, with_token: bool) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            token: with_token.then(|| self.token(Node::Leader(ordinal))),
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: self.max_members,
            strategy: self.strategy,
            timing: self.leader_timing,
        }
    }

    pub(crate) fn edge(&self, number: u32, with_token: bool, wants_in: bool) -> EdgeConfig<S> {
        EdgeConfig {
            deployment: self.deployment.clone(),
            group: wants_in.then(|| self.group.clone()),
            token: with_token.then(|| self.token(Node::Edge(number))),
            kgcs: Kgcs::single(),
            timing: self.edge_timing,
        }
    }

    /// The operator's token for a node: the same one whenever it is asked for.
    pub(crate) fn token(&self, node: Node) -> IssuedToken<S> {
        let (label, role, groups) = match node {
            Node::Kgc => (name("kgc"), Role::Edge, Vec::new()),
            Node::Leader(ordinal) => {
                let role = Role::Leader { group: self.group.clone(), ordinal };
                (name(&node.to_string()), role, vec![self.group.clone()])
            }
            Node::Edge(number) if self.authorises(number) => {
                (edge_name(number), Role::Edge, vec![self.group.clone()])
            }
            Node::Edge(number) => (edge_name(number), Role::Edge, vec![name("elsewhere")]),
        };
        let grant = TokenGrant {
            name: label,
            role,
            groups,
            not_after: EPOCH_START + IDENTITY_VALIDITY,
            expiry: EPOCH_START + TOKEN_VALIDITY,
        };
        let mut rng = seeds::generator(self.seed, Player::Token(node));
        self.operator.issue(&self.deployment, grant, &mut rng).expect("one group is not too many")
    }
}

impl<S: Suite> fmt::Debug for Fleet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("deployment", &self.deployment).finish_non_exhaustive()
    }
}
