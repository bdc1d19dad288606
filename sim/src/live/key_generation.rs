//! Generates the keys of a quorum of KGCs over the network, with the machine that the service runs.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_ainq::{KgcId, Name, QuorumStatement, Ristretto255};
use quiver_enrolment::Kgcs;
use quiver_machine::Route;
use quiver_net::{Host, HostError, Multiaddr, NodeConfig, NodeKey};
use quiver_quorum::{QuorumParameters, QuorumSuite, SecretShare};
use quiver_quorum_node::{
    Ibe, QuorumCommand, QuorumConfig, QuorumEvent, QuorumKeys, QuorumMembership, QuorumNode, QuorumRecord,
};
use quiver_report::Progress;
use quiver_world::Generated;
use quiver_world::Threshold;

use super::deployment::FoundedKeys;
use super::kgc::REVOCATION_VALIDITY;
use super::node::LiveNode;
use super::node_settings::{address, transport};
use super::world::{POLL_INTERVAL, first_address};
use crate::measure;
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// The key of conditions, which KGCs make together with the one that issues.
pub(crate) type ReleaseKeys = Generated<Ibe>;

/// The KGCs of these ids, each of which makes a share of a drone's key.
pub(crate) fn kgcs_of(ids: Vec<KgcId>) -> Kgcs<Ristretto255> {
    Kgcs::quorum(ids)
}

/// Runs the KGCs until they have their keys.
pub(crate) async fn generate<S: QuorumSuite>(
    plan: &Plan,
    progress: &Progress,
    called: Name,
    parameters: QuorumParameters,
) -> Result<FoundedKeys<S>> {
    let begin = measure::now();
    let nodes = start::<S>(plan, called, parameters).await?;
    for node in &nodes {
        node.command(QuorumCommand::Generate).await?;
    }
    let (keys, statement) = finished(plan, progress, &nodes).await?;
    let took = begin.elapsed();
    for mut node in nodes {
        node.kill().await;
    }
    assemble(&keys, &statement, took).map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("the KGCs' keys: {error}"))
}

/// Starts a node for each; each dials those before it.
async fn start<S: QuorumSuite>(
    plan: &Plan,
    called: Name,
    parameters: QuorumParameters,
) -> Result<Vec<LiveNode<QuorumNode<S>>>> {
    let key = |kgc: KgcId| {
        NodeKey::from_seed(rng_stream::node_key(plan.seed, RngStream::Kgc, u32::from(kgc) - 1))
            .map_err(|source| SimError::Node { who: format!("KGC {kgc}"), source })
    };
    let mut members = Vec::new();
    for kgc in parameters.kgcs() {
        members.push((kgc, key(kgc)?.peer_id()));
    }
    let identities = members.iter().map(|(_, peer)| peer.to_bytes()).collect();
    let membership =
        QuorumMembership::new::<S>(called, parameters.threshold(), identities).map_err(broken)?;
    let (mut nodes, mut addresses): (_, Vec<Multiaddr>) = (Vec::new(), Vec::new());
    for id in parameters.kgcs() {
        let mut config =
            NodeConfig::registry(key(id)?, transport(plan.transport), usize::from(parameters.members()));
        config.identify = false;
        config.ping = None;
        config.listen = vec![address(plan.transport, Ipv4Addr::LOCALHOST.into())?];
        config.members = members.iter().filter(|(other, _)| *other != id).copied().collect();
        config.dial = (1..).zip(&addresses).map(|(kgc, at)| (Route::Member(kgc), at.clone())).collect();
        let quorum = QuorumConfig {
            membership: membership.clone(),
            id,
            revocation_validity: REVOCATION_VALIDITY,
            ibe_statements: None,
        };
        let machine = QuorumNode::<S>::new(quorum, [])
            .map_err(|source| SimError::Restore { who: format!("KGC {id}"), source: Box::new(source) })?;
        let rng = rng_stream::generator(plan.seed, RngStream::KeyGeneration, u32::from(id), 0);
        let node = LiveNode::start(format!("KGC {id}"), &config, machine, GenerationLogger(id), rng)?;
        addresses.push(first_address(&node, plan.timeout, "a KGC did not start").await?);
        nodes.push(node);
    }
    Ok(nodes)
}

/// Encoded share of every KGC, and the quorum's statement about it.
type GeneratedShares = (Vec<Vec<u8>>, Vec<u8>);

async fn finished<S: QuorumSuite>(
    plan: &Plan,
    progress: &Progress,
    nodes: &[LiveNode<QuorumNode<S>>],
) -> Result<GeneratedShares> {
    let deadline = measure::now() + plan.timeout;
    let mut wait = progress.wait("KGCs with keys", nodes.len());
    loop {
        let (mut keys, mut statement) = (Vec::new(), None);
        for node in nodes {
            let held = node.inspect(|node| {
                let keys = node.keys().map(|keys| keys.encode().to_vec());
                (keys, node.quorum_statement().map(<[u8]>::to_vec))
            });
            let (key, signed) = held.await?;
            keys.extend(key);
            statement = statement.or(signed);
        }
        wait.done(keys.len());
        match statement {
            Some(statement) if keys.len() == nodes.len() => return Ok((keys, statement)),
            _ if measure::now() >= deadline => {
                return Err(SimError::Late {
                    what: "the KGCs did not make their keys".into(),
                    within: plan.timeout,
                });
            }
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

fn assemble<S: QuorumSuite>(
    keys: &[Vec<u8>],
    statement: &[u8],
    took: Duration,
) -> std::result::Result<FoundedKeys<S>, Box<dyn std::error::Error>> {
    let (mut issuing, mut release, mut publics) = (Vec::new(), Vec::new(), None);
    for keys in keys {
        let keys = QuorumKeys::<S>::decode(keys)?;
        issuing.push(SecretShare::decode(&keys.ainq().share().encode())?);
        release.push(SecretShare::<Ibe>::decode(&keys.ibe().share().encode())?);
        publics = Some((keys.ainq().public().clone(), keys.ibe().public().clone()));
    }
    let (of_issuing, of_release) = publics.ok_or("no KGC has keys")?;
    let master_key = Threshold::of((issuing, of_issuing), QuorumStatement::decode(statement)?);
    Ok(FoundedKeys {
        master_key: Box::new(master_key),
        release: Some((release, of_release)),
        took: Some(took),
    })
}

/// Logs the events of a KGC.
struct GenerationLogger(KgcId);

impl<S: QuorumSuite> Host<QuorumNode<S>> for GenerationLogger {
    fn persist(&mut self, _: &[QuorumRecord]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &QuorumNode<S>, event: QuorumEvent) {
        tracing::debug!(kgc = self.0, ?event, "key generation");
    }
}
