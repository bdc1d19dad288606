//! Features of the live world: the machines that are composed of them, and the places at which a world asks them.
//! No other file of the world names the features' crates, except the features' own modules.

use std::sync::Arc;

use quiver_admission::{AdmittingLeader, AnyEdge};
use quiver_ainq::{KgcId, Name, Suite};
use quiver_crypto::Secret;
use quiver_delivery::kgc::KgcNode;
use quiver_envelope::Envelopes;
use quiver_group::{EdgeEvent, Leader, LeaderEvent};
use quiver_key_release::{ReleaseEvent, ShareServer};
use quiver_machine::{Either, Machine, Node};
use quiver_net::{NodeConfig, PeerId};
use quiver_relay::WithRelays;
use quiver_world::conditions::IbeAuthority;

use super::admission::{self, Admission};
use super::conditions;
use super::deployment::Founder;
use super::drone_event::{DroneEvent, EventSink};
use super::envelopes;
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use super::relays::{self, RelaySettings};
use crate::Result;
use crate::plan::Plan;

/// The machine of an edge, which may be anonymous, and has envelopes.
pub(super) type EdgeNode<S> = Node<AnyEdge<S>, Envelopes>;
/// The machine of a leader, which may demand a policy, has envelopes, and may have relays.
pub(super) type LiveLeaderNode<S> = WithRelays<Node<AdmittingLeader<S>, Envelopes>>;
/// The machine of a KGC, which releases shares of condition keys if there are orders.
pub(super) type LiveKgcNode<S> = KgcNode<S, Option<ShareServer<S>>>;

/// Settings of features that all nodes of a world share.
#[derive(Clone)]
pub(crate) struct FeatureSettings<S: Suite> {
    /// The policy for anonymous members, if there is one.
    pub(crate) admission: Option<Arc<Admission<S>>>,
    pub(crate) relays: RelaySettings,
}

impl<S: Suite> FeatureSettings<S> {
    /// Notes a frame between a leader and a peer, or to the group.
    pub(super) fn note_frame(&self, peer: Option<&PeerId>, request: &[u8], message: &[u8]) {
        if let Some(admission) = &self.admission {
            admission.saw(peer, request, message);
        }
    }
}

/// An edge with envelopes of which it has no keys.
pub(super) fn edge_node<S: Suite>(edge: impl Into<AnyEdge<S>>) -> EdgeNode<S> {
    EdgeNode::new(edge.into(), Envelopes::default())
}

/// A leader that demands the policy and has the relays of these settings.
pub(super) fn leader_node<S: Suite>(
    leader: Leader<S>,
    setting: &NodeSettings<S>,
) -> Result<LiveLeaderNode<S>> {
    let leader = admission::admitting(leader, setting)?;
    let leader = Node::new(leader, Envelopes::default());
    Ok(LiveLeaderNode::new(leader, setting.features.relays.limits()))
}

/// Hands a leader that has started the keys that its features need.
pub(super) async fn provision_leader<S: Suite>(
    leader: &LiveNode<LiveLeaderNode<S>>,
    setting: &NodeSettings<S>,
) -> Result<()> {
    admission::hand_slot_keys(leader, setting).await
}

/// Configures a leader's node for its features.
pub(super) fn configure_hub<S: Suite>(config: &mut NodeConfig, setting: &NodeSettings<S>) -> Result<()> {
    config.strangers_listen = setting.features.admission.is_some();
    config.relays = relays::identities(setting)?;
    Ok(())
}

/// An event of the edge's group; `None` for one of a feature, which the sink is told of.
pub(super) fn edge_event<S: Suite>(
    reports: &dyn EventSink,
    drone: u32,
    event: <EdgeNode<S> as Machine>::Event,
) -> Option<EdgeEvent> {
    match event {
        Either::Left(event) => admission::edge_event(event),
        Either::Right(event) => {
            envelopes::report(reports, drone, &event);
            None
        }
    }
}

/// A feature's event of a message to the group; `None` if the message is no feature's.
pub(super) fn message_event(channel: &Name, data: &[u8]) -> Option<DroneEvent> {
    conditions::order_event(channel, data)
}

/// An event of the leader's group; `None` for one of a feature.
pub(super) fn leader_event<S: Suite>(event: <LiveLeaderNode<S> as Machine>::Event) -> Option<LeaderEvent> {
    match event {
        Either::Left(event) => admission::leader_event(event),
        Either::Right(event) => envelopes::leader_event(event),
    }
}

/// Reports an event of the release of condition keys at a KGC.
pub(super) fn report_release(reports: &dyn EventSink, event: &ReleaseEvent) {
    conditions::kgc::report(reports, event);
}

/// Keys that the KGCs of a world have for features.
pub(crate) struct FeatureKeys<S: Suite> {
    /// The master key of conditions, if there are orders that wait for one.
    pub(crate) conditions: Option<IbeAuthority<S>>,
}

impl<S: Suite> FeatureKeys<S> {
    /// Creates the keys that the plan needs.
    pub(super) fn found(plan: &Plan, founder: &Founder<S>) -> Result<Self> {
        let conditions = if plan.orders { Some(conditions::kgc::authority(plan, founder)?) } else { None };
        Ok(Self { conditions })
    }

    /// The server of shares of condition keys at a KGC, if there are orders.
    pub(super) fn share_server(&self, id: KgcId, cookie_key: Secret<32>) -> Result<Option<ShareServer<S>>> {
        let server = |authority| conditions::kgc::share_server(id, authority, cookie_key);
        self.conditions.as_ref().map(server).transpose()
    }
}
