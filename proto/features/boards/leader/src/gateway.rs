//! Sets up the gateway for boards on serial lines: where they find this leader, the others and the KGCs.

use std::sync::Arc;

use async_trait::async_trait;
use quiver_gateway::GatewayConfig;
use quiver_machine::Route;
use quiver_net::Multiaddr;
use quiver_service::clock;
use quiver_service::drone::feature::{OpenContext, RunningNode, RunningPart, ServiceContext, ServicePart};
use quiver_service::drone::{Error, Result};
use tokio::task::JoinSet;

use crate::settings::BoardLines;

#[async_trait]
impl ServicePart for BoardLines {
    async fn open(&self, _: OpenContext<'_>) -> Result<Option<Arc<dyn RunningPart>>> {
        Ok(Some(Arc::new(self.clone())))
    }
}

impl RunningPart for BoardLines {
    fn start(&self, service: &ServiceContext<'_>, tasks: &mut JoinSet<()>) {
        if let Some(config) = config(self, service) {
            tasks.spawn(serve(config, Arc::clone(&service.running)));
        }
    }
}

/// Configuration of a gateway that reaches the same peers as the leader's own node; `None` if there is no
/// line to serve. The addresses of this leader are not known yet.
fn config(boards: &BoardLines, service: &ServiceContext<'_>) -> Option<GatewayConfig> {
    if boards.lines.is_empty() {
        return None;
    }
    let to = |wanted: Route| {
        let addresses = service.node.dial.iter().filter(move |(route, _)| *route == wanted);
        addresses.map(|(_, address)| address.clone()).collect()
    };
    Some(GatewayConfig {
        lines: boards.lines.clone(),
        baud: boards.baud,
        leaders: to(Route::Leader),
        kgcs: to(Route::Kgc),
        group: service.group.to_string(),
        // What features say to each other on channels of their own is nothing to boards.
        withheld: service.channels.iter().copied().map(String::from).collect(),
        unix_time: clock::unix_now,
    })
}

/// Serves the lines. The boards' nodes are this leader's clients like any other, over its own listeners.
async fn serve(mut config: GatewayConfig, leader: Arc<dyn RunningNode>) {
    // Without a listener the service ends with an error.
    let Some(addresses) = leader.listening().await else { return };
    match own_address(&addresses, leader.as_ref()) {
        Ok(address) => config.leaders.insert(0, address),
        Err(error) => return tracing::error!("boards cannot be served: {error}"),
    }
    quiver_gateway::serve(config).await;
}

/// Listening address of the leader, with its peer id at the end, so that no other node is taken for it. On
/// this machine itself if it listens here.
fn own_address(addresses: &[Multiaddr], leader: &dyn RunningNode) -> Result<Multiaddr> {
    let text = |address: &Multiaddr| address.to_string();
    let preferred = |address: &&Multiaddr| {
        let text = text(address);
        (!text.contains("/tcp/"), !(text.starts_with("/ip4/127.") || text.starts_with("/ip6/::1/")))
    };
    let address = addresses.iter().min_by_key(preferred);
    let address = address.ok_or_else(|| Error::config("the leader listens nowhere"))?;
    format!("{address}/p2p/{}", leader.peer_id())
        .parse()
        .map_err(|_| Error::config(format!("`listen`: {address}")))
}
