//! The libp2p protocols of a node.

use std::collections::HashSet;
use std::time::Duration;

use libp2p::allow_block_list::{self, BlockedPeers};
use libp2p::gossipsub::{
    self, IdentTopic, IdentityTransform, MessageAuthenticity, MessageId, ValidationMode, Version,
    WhitelistSubscriptionFilter,
};
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{identify, ping};
use quiver_machine::MAX_MESSAGE_LEN;
use sha2::{Digest, Sha256};

use crate::clock_sync::{self, Clocks};
use crate::config::{NodeConfig, Tuning};
use crate::duplicate_identity::gossip;
use crate::error::NetError;
use crate::frame::{Frames, MESSAGES};
use crate::group_gate::GroupGate;
use crate::introduction::AGENT;
use crate::metrics::NetMetrics;
use crate::places::ConnectionLimiter;
use crate::succession::Succession;
use crate::unread::UnreadBudget;

/// The protocol of group messages.
const GROUP_PROTOCOL: &str = "/quiver/1/group";
/// Bytes in front of every published message, different each time: the same message can be sent twice, and is
/// not taken for its own echo.
pub(crate) const NONCE_LEN: usize = 8;
/// Time for which gossipsub knows a message that comes once more.
const DUPLICATES: Duration = Duration::from_secs(10);
/// Maximum overhead of gossipsub's own encoding of a message: topic, tags, lengths; in bytes.
const GROUP_OVERHEAD: usize = 1024;

pub(crate) type GroupGossipsub = gossipsub::Behaviour<IdentityTransform, WhitelistSubscriptionFilter>;

/// The protocols of a node, and what bounds them.
#[derive(NetworkBehaviour)]
pub(crate) struct Node {
    /// First, so that nobody is counted who is refused.
    pub(crate) blocked: allow_block_list::Behaviour<BlockedPeers>,
    /// Members are beyond its limits; `DriverNetwork` keeps each of them to its number of connections.
    pub(crate) places: ConnectionLimiter,
    pub(crate) succession: Succession,
    pub(crate) messages: request_response::Behaviour<Frames>,
    pub(crate) clocks: Toggle<clock_sync::Behaviour>,
    pub(crate) duplicates: Toggle<gossip::Behaviour>,
    pub(crate) group: Toggle<GroupGate>,
    pub(crate) identify: Toggle<identify::Behaviour>,
    pub(crate) ping: Toggle<ping::Behaviour>,
}

/// The topic of the group with this name.
pub fn group_topic(group: &str) -> String {
    format!("{GROUP_PROTOCOL}/{group}")
}

impl Node {
    pub(crate) fn new(
        config: &NodeConfig,
        budget: &UnreadBudget,
        metrics: &NetMetrics,
    ) -> Result<Self, NetError> {
        let identify = config.identify.then(|| identify(config));
        let ping = config.ping.map(|interval| {
            ping::Behaviour::new(
                ping::Config::new().with_interval(interval).with_timeout(config.request_timeout),
            )
        });
        let clocks = (config.clocks != Clocks::Off).then(|| clock_sync::behaviour(config.request_timeout));
        let duplicates = config.detect_duplicates.then(|| gossip::behaviour(config.request_timeout));
        let group = config.topic.as_deref().map(|topic| group(config, topic, metrics)).transpose()?;
        Ok(Self {
            blocked: allow_block_list::Behaviour::default(),
            places: ConnectionLimiter::new(config, budget.clone(), metrics),
            succession: Succession::new(config, metrics),
            messages: messages(config, metrics),
            clocks: clocks.into(),
            duplicates: duplicates.into(),
            group: group.into(),
            identify: identify.into(),
            ping: ping.into(),
        })
    }
}

fn messages(config: &NodeConfig, metrics: &NetMetrics) -> request_response::Behaviour<Frames> {
    let settings = request_response::Config::default()
        .with_request_timeout(config.request_timeout)
        .with_max_concurrent_streams(config.limits.streams);
    let frames = Frames::new(metrics.refused.clone());
    request_response::Behaviour::with_codec(frames, [(MESSAGES, ProtocolSupport::Full)], settings)
}

fn identify(config: &NodeConfig) -> identify::Behaviour {
    let agent = match config.introduction {
        Some(introduction) => introduction.agent(config.dial.iter().map(|(route, _)| *route)),
        None => AGENT.into(),
    };
    let settings = identify::Config::new("/quiver/1".into(), config.key.keypair().public())
        .with_agent_version(agent)
        .with_interval(Duration::from_secs(3600))
        .with_cache_size(0)
        .with_hide_listen_addrs(true);
    identify::Behaviour::new(settings)
}

/// Gossipsub as a star. The protocol above authenticates group messages, so gossipsub signs nothing.
fn group(config: &NodeConfig, topic: &str, metrics: &NetMetrics) -> Result<GroupGate, NetError> {
    let refused = |reason: &dyn std::fmt::Display| NetError::Configuration(format!("gossipsub: {reason}"));
    let topic = IdentTopic::new(topic);
    let filter = WhitelistSubscriptionFilter(HashSet::from([topic.hash()]));
    let settings = group_settings(config).build().map_err(|error| refused(&error))?;
    let mut group =
        GroupGossipsub::new_with_subscription_filter(MessageAuthenticity::Anonymous, settings, filter)
            .map_err(|error| refused(&error))?;
    group.subscribe(&topic).map_err(|error| refused(&error))?;
    Ok(GroupGate::new(config, group, topic.hash(), metrics))
}

fn group_settings(config: &NodeConfig) -> gossipsub::ConfigBuilder {
    // A message is forwarded to the mesh, so a hub's mesh holds everybody, from the moment they subscribe.
    let (mesh, heartbeat) = match config.tuning {
        Tuning::Hub { members } => (members.saturating_add(members / 2).saturating_add(16), 5),
        Tuning::Spoke => (16, 30),
    };
    let patience = Duration::from_secs(30);
    let mut settings = gossipsub::ConfigBuilder::default();
    settings
        .protocol_id(GROUP_PROTOCOL, Version::V1_1)
        .validation_mode(ValidationMode::Anonymous)
        .message_id_fn(message_id)
        .max_transmit_size(MAX_MESSAGE_LEN + NONCE_LEN + GROUP_OVERHEAD)
        .mesh_outbound_min(0)
        .mesh_n_low(mesh)
        .mesh_n(mesh)
        .mesh_n_high(mesh)
        // The driver decides what is relayed, see `Tuning` and `NodeLimits::group_rate`.
        .validate_messages()
        .flood_publish(true)
        // All peers are in the mesh: there is no peer to gossip to.
        .gossip_lazy(0)
        .gossip_factor(0.0)
        .history_gossip(1)
        .history_length(1)
        // By then a message has come on all the ways that a star has.
        .duplicate_cache_time(DUPLICATES)
        // Nodes send one message at a time, and subscribe to one topic.
        .max_publish_messages(8)
        .max_control_message_size(4096)
        .idontwant_message_size_threshold(usize::MAX)
        .heartbeat_interval(Duration::from_secs(heartbeat))
        .connection_handler_queue_len(config.limits.group_queued)
        .publish_queue_duration(patience)
        .forward_queue_duration(patience);
    settings
}

/// The first 20 bytes of the SHA-256 of nonce and message.
fn message_id(message: &gossipsub::Message) -> MessageId {
    let digest: [u8; 32] = Sha256::digest(&message.data).into();
    let (id, _) = digest.split_at(20);
    MessageId::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;
    use crate::key::NodeKey;

    #[tokio::test]
    async fn hub_of_any_size_has_a_valid_mesh() {
        for members in [0, 1, 200, 100_000] {
            let mut config =
                NodeConfig::hub(NodeKey::from_seed([1; 32]).unwrap(), Transport::Memory, members);
            config.topic = Some(group_topic("alpha"));
            let budget = UnreadBudget::new(config.limits.unread);
            let node = Node::new(&config, &budget, &NetMetrics::default()).unwrap();
            assert!(node.group.is_enabled());
        }
    }

    #[tokio::test]
    async fn node_without_topic_speaks_no_gossip() {
        let config = NodeConfig::registry(NodeKey::from_seed([1; 32]).unwrap(), Transport::Memory, 10);
        let budget = UnreadBudget::new(config.limits.unread);
        assert!(!Node::new(&config, &budget, &NetMetrics::default()).unwrap().group.is_enabled());
    }
}
