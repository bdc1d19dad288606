//! Sets up the deployment: operator, master key, and a token and a configuration for every node.

use std::collections::BTreeSet;

use quiver_ainq::{
    Deployment, Header, IssuedToken, KgcId, Name, OperatorPublicKey, OperatorSecretKey, RevocationStatement,
    Role, StrategyKind, Suite, TokenGrant, VerifiedHeader,
};
use quiver_crypto::Secret;
use quiver_enrolment::kgc::RestoreError;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeConfig, LeaderConfig};
use quiver_kem::KemSetting;
use quiver_machine::{Either, Snapshot};
use rand_core::RngCore;

use crate::drone_node::DroneNode;
use crate::features::DeploymentFeatures;
use crate::kgc_node::{KgcNode, KgcNodeRecord};
use crate::master_key::{MasterKey, MasterKeySuite};
use crate::rng_stream::{self, RngStream};
use crate::{EPOCH_START, NodeId, Setup, WorldError};

/// The deployment's name.
pub(crate) const DEPLOYMENT: &str = "world";
/// The group's name.
pub const GROUP: &str = "alpha";

/// Time for which a revocation list counts as fresh, in seconds.
const REVOCATION_VALIDITY: u64 = 86_400;
/// Validity of tokens and identities, in seconds.
const TOKEN_VALIDITY: u64 = 30 * 86_400;
const IDENTITY_VALIDITY: u64 = 365 * 86_400;

/// The name of an edge drone.
pub fn edge_name(number: u32) -> Name {
    name(&format!("edge-{number}"))
}

/// A name of the world.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("names of the world are short and plain")
}

/// A deployment and what its nodes are set up with. The same seed gives the same keys and tokens.
#[derive(derive_more::Debug)]
#[debug("Fleet {{ deployment: {deployment:?}, .. }}")]
pub struct Fleet<S: Suite> {
    seed: u64,
    deployment: Deployment<S>,
    master_key: Box<dyn MasterKey<S>>,
    /// Keys and settings of features.
    pub(crate) features: DeploymentFeatures<S>,
    /// Strangers that all have the token of the first of them.
    one_token: Vec<u32>,
    operator: OperatorSecretKey<S>,
    group: Name,
    /// Edges from this number on have tokens that do not list the group: they must never get in.
    pub(crate) strangers_from: u32,
    pub(crate) max_members: u32,
    pub(crate) strategy: StrategyKind,
    pub(crate) leader_timing: LeaderTiming,
    pub(crate) edge_timing: EdgeTiming,
}

impl<S: MasterKeySuite> Fleet<S> {
    pub(crate) fn new(setup: &Setup) -> Result<Self, WorldError> {
        let (seed, members) = (setup.fleet_seed, setup.members);
        let mut rng = rng_stream::generator(seed, RngStream::Founder);
        let master_key = S::found_master_key(setup, &mut rng)?;
        let operator = OperatorSecretKey::generate(&mut rng);
        let deployment = Deployment::new(name(DEPLOYMENT), master_key.public());
        let features = DeploymentFeatures::new(setup, &deployment, &*master_key)?;
        Ok(Self {
            seed,
            deployment,
            master_key,
            features,
            one_token: setup.one_token.clone(),
            operator,
            group: name(GROUP),
            strangers_from: members,
            max_members: members.saturating_mul(2).clamp(64, 1 << 20),
            strategy: setup.strategy,
            leader_timing: setup.leader_timing,
            edge_timing: setup.edge_timing,
        })
    }
}

impl<S: Suite> Fleet<S> {
    /// The deployment.
    pub fn deployment(&self) -> &Deployment<S> {
        &self.deployment
    }

    /// The group's name.
    pub fn group(&self) -> &Name {
        &self.group
    }

    /// Number of drones that ask to join at a time: for so many every leader has room.
    pub(crate) fn wave(&self) -> usize {
        (self.max_members as usize / 8).max(16_384)
    }

    /// Returns true if the edge's identity lists the group.
    pub fn authorises(&self, edge: u32) -> bool {
        edge < self.strangers_from
    }

    /// The keys of the KGCs, for an adversary that was enrolled.
    pub(crate) fn master_key(&self) -> &dyn MasterKey<S> {
        &*self.master_key
    }

    /// Seed of the deployment's keys and tokens.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Public key of the operator.
    pub(crate) fn operator(&self) -> OperatorPublicKey<S> {
        self.operator.public()
    }

    fn kgc(&self, id: KgcId, life: u32) -> KgcConfig<S> {
        KgcConfig {
            deployment: self.deployment.clone(),
            master: self.master_key.master(&self.deployment, id),
            id,
            operators: vec![self.operator()],
            cookie_key: self.cookie_key(id, life),
            revocation_validity: REVOCATION_VALIDITY,
        }
    }

    /// A new key at every start, as at the service.
    pub(crate) fn cookie_key(&self, id: KgcId, life: u32) -> Secret<32> {
        let mut key = [0; 32];
        rng_stream::generator(self.seed, RngStream::Token(NodeId::Kgc(id))).fill_bytes(&mut key);
        key.iter_mut().zip(life.to_be_bytes()).for_each(|(byte, life)| *byte ^= life);
        Secret::new(key)
    }

    /// The composite of a KGC, restored from its records.
    pub(crate) fn kgc_node(
        &self,
        id: KgcId,
        life: u32,
        records: &[KgcNodeRecord],
    ) -> Result<KgcNode<S>, RestoreError> {
        let own = records.iter().filter_map(Either::left).cloned();
        Ok(KgcNode::new(Kgc::new(self.kgc(id, life), own)?))
    }

    /// The composite of a drone, restored from its state.
    pub(crate) fn drone(
        &self,
        number: u32,
        state: Option<&Snapshot>,
        kem: KemSetting,
    ) -> Result<DroneNode<S>, RestoreError> {
        let edge = Edge::new(self.edge(number, true, false), state)?.with_kem(kem);
        Ok(DroneNode::new(edge, self.features.companion(&self.deployment)))
    }

    /// Configuration of a leader. The medium is a world's own: worlds of one fleet may have others.
    pub(crate) fn leader(&self, ordinal: u16, shared_medium: bool) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            token: Some(self.token(NodeId::Leader(ordinal))),
            kgcs: self.master_key.kgcs(),
            allow: BTreeSet::new(),
            max_members: self.max_members,
            strategy: self.strategy,
            shared_medium,
            timing: self.leader_timing,
        }
    }

    fn edge(&self, number: u32, with_token: bool, wants_in: bool) -> EdgeConfig<S> {
        EdgeConfig {
            deployment: self.deployment.clone(),
            group: wants_in.then(|| self.group.clone()),
            token: with_token.then(|| self.token(NodeId::Edge(number))),
            kgcs: self.master_key.kgcs(),
            timing: self.edge_timing,
        }
    }

    /// Verifies a header as of the time when it was made, whatever was revoked or followed it.
    pub(crate) fn verify_header(&self, header: Header<S>) -> Option<VerifiedHeader<S>> {
        let (none, made) = (RevocationStatement::empty(), header.core.issued_at);
        header.verify(&self.deployment, &self.group, None, &none, made).ok()
    }

    /// The owner of a node's token: the node, unless several have one.
    pub(crate) fn owner(&self, node: NodeId) -> NodeId {
        match (node, self.one_token.first()) {
            (NodeId::Edge(number), Some(first)) if self.one_token.contains(&number) => NodeId::Edge(*first),
            _ => node,
        }
    }

    /// The operator's token for a node: the same one whenever it is asked for.
    pub(crate) fn token(&self, node: NodeId) -> IssuedToken<S> {
        let node = self.owner(node);
        let (label, role, groups) = match node {
            // A relay has no token.
            NodeId::Kgc(_) | NodeId::Relay(_) => (name("kgc"), Role::Edge, Vec::new()),
            NodeId::Leader(ordinal) => {
                let role = Role::Leader { group: self.group.clone(), ordinal };
                (name(&node.to_string()), role, vec![self.group.clone()])
            }
            NodeId::Edge(number) if self.authorises(number) => {
                (edge_name(number), Role::Edge, vec![self.group.clone()])
            }
            NodeId::Edge(number) => (edge_name(number), Role::Edge, vec![name("elsewhere")]),
        };
        let grant = TokenGrant {
            name: label,
            role,
            groups,
            not_after: EPOCH_START + IDENTITY_VALIDITY,
            expiry: EPOCH_START + TOKEN_VALIDITY,
        };
        let mut rng = rng_stream::generator(self.seed, RngStream::Token(node));
        self.operator.issue(&self.deployment, grant, &mut rng).expect("one group is not too many")
    }
}
