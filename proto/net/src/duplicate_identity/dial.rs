//! Dials a node's own addresses before it listens, to detect another process with a copy of its transport
//! key.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use libp2p::core::Endpoint;
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::{Multiaddr, Transport as _};
use tokio::time::timeout;

use crate::config::NodeConfig;
use crate::dial::resolve;
use crate::error::NetError;
use crate::transport;
use crate::unread::UnreadBudget;

/// Maximum time for a running process to answer. Where none runs, most machines refuse at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Fails if a process with this node's key answers at one of these addresses, which are its own. To be called
/// before the node listens: then it cannot be the node itself.
///
/// # Errors
///
/// [`NetError::DuplicateIdentity`], or that the transport cannot be set up.
pub async fn refuse_duplicate_identity(config: &NodeConfig, addresses: &[Multiaddr]) -> Result<(), NetError> {
    let mut questions = FuturesUnordered::new();
    for address in addresses.iter().filter(|address| config.transport.supports(address)) {
        questions.push(async move {
            answers_under_own_key(config, address).await.map(|duplicate| duplicate.then_some(address))
        });
    }
    while let Some(answer) = questions.next().await {
        if let Some(address) = answer? {
            return Err(NetError::DuplicateIdentity { address: address.clone() });
        }
    }
    Ok(())
}

/// No process, a name that does not resolve, or another identity: no duplicate.
async fn answers_under_own_key(config: &NodeConfig, address: &Multiaddr) -> Result<bool, NetError> {
    let mut transport = transport::build(config, &UnreadBudget::new(config.limits.unread))?;
    // The handshake proves whose key answers: nothing has to be asked.
    let reached = async {
        let address = resolve(address.clone(), 0).await.ok()?;
        let dialled = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
        transport.dial(address, dialled).ok()?.await.ok()
    };
    let reached = timeout(PATIENCE, reached).await.ok().flatten();
    // The node's own key, and not the node itself, which does not listen yet.
    Ok(reached.is_some_and(|(peer, _)| peer == config.key.peer_id()))
}

#[cfg(test)]
mod tests {
    use libp2p::core::transport::ListenerId;

    use super::*;
    use crate::config::Transport;
    use crate::key::NodeKey;

    fn config(seed: u8) -> NodeConfig {
        NodeConfig::registry(NodeKey::from_seed([seed; 32]).unwrap(), Transport::Tcp, 4)
    }

    /// Answers under this key for as long as the test runs.
    async fn answering(config: &NodeConfig) -> Multiaddr {
        let mut transport = transport::build(config, &UnreadBudget::new(config.limits.unread)).unwrap();
        transport.listen_on(ListenerId::next(), "/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
        let address = transport.next().await.unwrap().into_new_address().unwrap();
        tokio::spawn(async move {
            while let Some(event) = transport.next().await {
                if let Some((upgrade, _)) = event.into_incoming() {
                    tokio::spawn(upgrade);
                }
            }
        });
        address
    }

    #[tokio::test]
    async fn whoever_answers_with_the_nodes_own_key_is_a_duplicate() {
        let address = answering(&config(1)).await;
        let found = refuse_duplicate_identity(&config(1), std::slice::from_ref(&address)).await;
        assert!(matches!(found, Err(NetError::DuplicateIdentity { address: at }) if at == address));
    }

    #[tokio::test]
    async fn others_and_nobody_are_none() {
        let others = answering(&config(2)).await;
        let nobody = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let nowhere = "/dns4/no-such-host.invalid/tcp/7000".parse().unwrap();
        refuse_duplicate_identity(&config(1), &[others, nobody, nowhere]).await.unwrap();
    }
}
