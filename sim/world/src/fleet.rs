//! Sets up the deployment: operator, master key, and a token and a configuration for every node.

use std::collections::BTreeSet;

use quiver_admission::AdmittingLeader;
use quiver_ainq::{
    AuthorityStatement, Bls12381G1, Deployment, IssuedToken, KgcId, Name, OperatorPublicKey,
    OperatorSecretKey, Purpose, Role, StrategyKind, Suite, TokenGrant, UnixTime,
};
use quiver_crypto::{Hasher, Secret};
use quiver_delivery::DeliveryServer;
use quiver_enrolment::kgc::RestoreError;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeConfig, Leader, LeaderConfig};
use quiver_ibe::Condition;
use quiver_kem::KemSetting;
use quiver_key_release::{
    Approval, Audience, CollectTiming, DEFAULT_RATE, ReleaseConfig, ReleasePolicy, ShareReleaser, ShareServer,
};
use quiver_machine::{Either, Snapshot};
use rand_core::RngCore;

use crate::admission::{Checkpoint, CheckpointContext, Rules};
use crate::conditions::{IbeAuthority, SealedOrder, phase_two};
use crate::drone_node::DroneNode;
use crate::kgc_node::{KgcNode, KgcNodeRecord};
use crate::master_key::{MasterKey, MasterKeySuite};
use crate::quorum::master_key::SharedSecret;
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
    /// The master key of conditions, if there are orders that wait for one.
    archive: Option<IbeAuthority<S>>,
    /// Admission checkpoint of the leaders, if they demand a policy.
    checkpoint: Option<Checkpoint<S>>,
    /// Strangers that all have the token of the first of them.
    one_token: Vec<u32>,
    operator: OperatorSecretKey<S>,
    group: Name,
    /// Edges from this number on have tokens that do not list the group: they must never get in.
    pub(crate) strangers_from: u32,
    pub(crate) max_members: u32,
    pub(crate) strategy: StrategyKind,
    pub(crate) shared_medium: bool,
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
        let checkpoint = setup
            .admission
            .as_ref()
            .map(|rules| checkpoint(seed, rules, &deployment, &*master_key))
            .transpose()?;
        let archive = if setup.orders { Some(archive(setup, &deployment, &*master_key)?) } else { None };
        Ok(Self {
            seed,
            deployment,
            master_key,
            archive,
            checkpoint,
            one_token: setup.one_token.clone(),
            operator,
            group: name(GROUP),
            strangers_from: members,
            max_members: members.saturating_mul(2).clamp(64, 1 << 20),
            strategy: setup.strategy,
            shared_medium: setup.shared_medium,
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

    fn kgc(&self, id: KgcId, life: u32) -> KgcConfig<S> {
        KgcConfig {
            deployment: self.deployment.clone(),
            master: self.master_key.master(&self.deployment, id),
            id,
            operators: vec![self.operator.public()],
            cookie_key: self.cookie_key(id, life),
            revocation_validity: REVOCATION_VALIDITY,
        }
    }

    /// A new key at every start, as at the service.
    fn cookie_key(&self, id: KgcId, life: u32) -> Secret<32> {
        let mut key = [0; 32];
        rng_stream::generator(self.seed, RngStream::Token(NodeId::Kgc(id))).fill_bytes(&mut key);
        key.iter_mut().zip(life.to_be_bytes()).for_each(|(byte, life)| *byte ^= life);
        Secret::new(key)
    }

    /// The server of key shares of a KGC whose operator has, or has not, approved the second phase.
    fn share_server(&self, id: KgcId, life: u32, approved: bool) -> Option<ShareServer<S>> {
        let archive = self.archive.as_ref()?;
        let pattern = "mission".parse().expect("a kind of conditions");
        let releaser = ShareReleaser::new(ReleaseConfig {
            holding: Some(archive.holding(id).expect("there are as many shares as KGCs")),
            policies: vec![ReleasePolicy { revision: 1, pattern, audience: Some(Audience::default()) }],
            approvals: approved.then(|| self.approval()).into_iter().collect(),
            rate: DEFAULT_RATE,
        });
        Some(DeliveryServer::new(self.cookie_key(id, life), releaser))
    }

    /// The operator's approval of the second phase.
    pub(crate) fn approval(&self) -> Approval {
        Approval { revision: 1, condition: self.phase_two(), approved: true }
    }

    fn phase_two(&self) -> Condition {
        phase_two(&self.group).expect("the group's name is short and plain")
    }

    /// An order sealed to the second phase; `None` if there is no key for it.
    pub(crate) fn order(&self, number: u32) -> Option<Vec<u8>> {
        let mut rng = rng_stream::generator(self.seed ^ u64::from(number), RngStream::Orders);
        let master = self.archive.as_ref()?.authority().master();
        let order = SealedOrder::seal(master, self.phase_two(), &number.to_be_bytes(), &mut rng);
        Some(order.expect("the text is short").encode())
    }

    /// The master key of conditions.
    pub(crate) fn archive(&self) -> Option<&IbeAuthority<S>> {
        self.archive.as_ref()
    }

    /// Admission checkpoint of the leaders, if they demand a policy.
    pub fn checkpoint(&self) -> Option<&Checkpoint<S>> {
        self.checkpoint.as_ref()
    }

    /// A leader that demands what leaders of this world demand, if anything.
    pub(crate) fn demanding(&self, leader: Leader<S>, now: UnixTime) -> AdmittingLeader<S> {
        let leader = AdmittingLeader::from(leader);
        match &self.checkpoint {
            None => leader,
            Some(checkpoint) => {
                leader.demanding(checkpoint.demand(), now).expect("the policy is this group's and has no end")
            }
        }
    }

    /// The composite of a KGC, restored from its records.
    pub(crate) fn kgc_node(
        &self,
        (id, life): (KgcId, u32),
        records: &[KgcNodeRecord],
        (approved, lies): (bool, bool),
    ) -> Result<KgcNode<S>, RestoreError> {
        let own = records.iter().filter_map(Either::left).cloned();
        let kgc = Kgc::new(self.kgc(id, life), own)?;
        let mut kgc_node = KgcNode::new(kgc, self.share_server(id, life, approved));
        if lies {
            kgc_node.set_lying(Some(self.lies(id)));
        }
        Ok(kgc_node)
    }

    /// Inputs of a lying KGC.
    pub(crate) fn lies(&self, id: KgcId) -> (KgcId, OperatorPublicKey<S>, [u8; 32]) {
        (id, self.operator.public(), rng_stream::key(self.seed, RngStream::ByzantineKgc(id)))
    }

    /// The composite of a drone, restored from its state.
    pub(crate) fn drone(
        &self,
        number: u32,
        state: Option<&Snapshot>,
        kem: KemSetting,
    ) -> Result<DroneNode<S>, RestoreError> {
        let edge = Edge::new(self.edge(number, true, false), state)?.with_kem(kem);
        let desk = self.archive.as_ref().map(|_| (self.deployment.clone(), CollectTiming::default()));
        Ok(DroneNode::new(edge, desk))
    }

    pub(crate) fn leader(&self, ordinal: u16, with_token: bool) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.deployment.clone(),
            group: self.group.clone(),
            token: with_token.then(|| self.token(NodeId::Leader(ordinal))),
            kgcs: self.master_key.kgcs(),
            allow: BTreeSet::new(),
            max_members: self.max_members,
            strategy: self.strategy,
            shared_medium: self.shared_medium,
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

/// Founds what leaders demand.
fn checkpoint<S: Suite>(
    seed: u64,
    rules: &Rules,
    deployment: &Deployment<S>,
    master_key: &dyn MasterKey<S>,
) -> Result<Checkpoint<S>, WorldError> {
    let group = name(GROUP);
    let place = CheckpointContext { deployment, master_key, group: &group, seed, now: EPOCH_START };
    Checkpoint::found(&place, rules).map_err(|error| WorldError::Admission(error.to_string()))
}

/// Founds the master key of conditions.
fn archive<S: Suite>(
    setup: &Setup,
    deployment: &Deployment<S>,
    master_key: &dyn MasterKey<S>,
) -> Result<IbeAuthority<S>, WorldError> {
    let mut rng = rng_stream::generator(setup.fleet_seed, RngStream::IbeAuthority);
    let mut dice = rng_stream::generator(setup.fleet_seed, RngStream::Orders);
    let sign = |statement: &AuthorityStatement<S>| {
        master_key.sign(deployment, Purpose::Parameters, &statement.body(), &mut dice)
    };
    let archive = if setup.kgcs == 1 {
        IbeAuthority::alone(deployment, &mut rng, sign)
    } else {
        let context = Hasher::new("quiver/1 world release").finish();
        let made = SharedSecret::generate::<Bls12381G1>(setup.kgcs, setup.threshold, context, &mut rng)?;
        IbeAuthority::together(deployment, made, sign)
    };
    archive.map_err(|error| WorldError::Quorum(error.to_string()))
}
