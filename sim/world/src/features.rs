//! Features of the virtual world, a line each where one has a part in a node, in the deployment or in the world. A
//! feature's code stands in its own folder, and nothing else here names its crates.

use quiver_ainq::{Deployment, KgcId, OperatorPublicKey, Suite, UnixTime};
use quiver_envelope::Envelopes;
use quiver_group::{Leader, LeaderCommand};
use quiver_key_release::{ShareReleased, ShareServer};
use quiver_machine::{Either, Node};
use quiver_relay::WithRelays;

use crate::admission::{AnonymousDrones, Checkpoint, GatedLeader};
use crate::conditions::{IbeAuthority, OrderReader, ReleaseApprovals, ReleaseLie};
use crate::drone_node::DroneCompanion;
use crate::feature_part::{AnyFeatureCommand, FeaturePart, RoleCommand};
use crate::master_key::MasterKey;
use crate::mavlink::Telemetry;
use crate::quorum::{EnrolmentLie, KgcLie, LyingKgcs};
use crate::relays::HostileRelays;
use crate::world::adversary::Adversary;
use crate::world::{StandInStart, WorldFeature};
use crate::{Fleet, Setup, WorldError, WorldKernel};

/// Parts beside a KGC, and what they store.
pub(crate) type KgcParts<S> = FeaturePart<Option<ShareServer<S>>>;
pub(crate) type KgcPartRecord = ShareReleased;

/// A leader with the parts beside it, whose drones may be behind relays.
pub(crate) type LeaderNode<S> = WithRelays<Node<GatedLeader<S>, FeaturePart<Envelopes>>>;
/// Commands of a leader's node.
pub type LeaderNodeCommand = Either<RoleCommand<LeaderCommand>, AnyFeatureCommand>;

/// Parts beside an edge.
pub(crate) type DroneParts = FeaturePart<Envelopes>;

/// The node of a leader of this deployment.
pub(crate) fn leader_node<S: Suite>(fleet: &Fleet<S>, leader: Leader<S>, now: UnixTime) -> LeaderNode<S> {
    LeaderNode::from(Node::new(GatedLeader::new(fleet, leader, now), FeaturePart::default()))
}

/// Lies that a byzantine KGC can tell, in the order in which they are tried.
pub(crate) fn kgc_lies<S: Suite>(kgc: KgcId, operator: OperatorPublicKey<S>) -> Vec<Box<dyn KgcLie<S>>> {
    vec![Box::new(EnrolmentLie::new(kgc, operator)), Box::new(ReleaseLie::new(kgc))]
}

/// Keys and settings of features, the same for all nodes of a deployment.
pub(crate) struct DeploymentFeatures<S: Suite> {
    /// Admission checkpoint of the leaders, if they demand a policy.
    pub(crate) admission: Option<Checkpoint<S>>,
    /// The master key of conditions, if there are orders that wait for one.
    pub(crate) conditions: Option<IbeAuthority<S>>,
}

impl<S: Suite> DeploymentFeatures<S> {
    pub(crate) fn new(
        setup: &Setup,
        deployment: &Deployment<S>,
        master_key: &dyn MasterKey<S>,
    ) -> Result<Self, WorldError> {
        Ok(Self {
            admission: Checkpoint::of_world(setup, deployment, master_key)?,
            conditions: IbeAuthority::of_world(setup, deployment, master_key)?,
        })
    }

    /// The companion of an edge under its name, if it has one.
    pub(crate) fn companion(&self, deployment: &Deployment<S>) -> Option<Box<dyn DroneCompanion<S>>> {
        self.conditions.as_ref()?;
        Some(Box::new(OrderReader::new(deployment.clone())))
    }
}

/// State of the features of a world. One that is added has a field here, and a place in the list.
pub(crate) struct Features<S: Suite> {
    pub(crate) adversary: Adversary,
    pub(crate) admission: AnonymousDrones,
    pub(crate) quorum: LyingKgcs,
    pub(crate) conditions: ReleaseApprovals,
    pub(crate) relays: HostileRelays,
    pub(crate) datagrams: Telemetry<S>,
}

impl<S: Suite> Features<S> {
    pub(crate) fn new(setup: &Setup, fleet: &Fleet<S>) -> Self {
        Self {
            adversary: Adversary::default(),
            admission: AnonymousDrones::default(),
            quorum: LyingKgcs::default(),
            conditions: ReleaseApprovals::default(),
            relays: HostileRelays::default(),
            datagrams: Telemetry::new(setup, fleet),
        }
    }

    /// All of them, in the order in which they are asked.
    pub(crate) fn all(&mut self) -> [&mut dyn WorldFeature<S>; 6] {
        [
            &mut self.adversary,
            &mut self.admission,
            &mut self.quorum,
            &mut self.conditions,
            &mut self.relays,
            &mut self.datagrams,
        ]
    }

    /// Gives what is started for an edge that is switched on: the first feature decides that has something.
    pub(crate) fn stand_in(&mut self, kernel: &mut WorldKernel<S>, edge: u32) -> StandInStart<S> {
        for feature in self.all() {
            let start = feature.stand_in(kernel, edge);
            if !matches!(start, StandInStart::Named) {
                return start;
            }
        }
        StandInStart::Named
    }
}
