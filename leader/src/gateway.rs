//! Sets up the gateway for boards on serial lines: where they find this leader, the others and the KGCs.

use quiver_ainq::Name;
use quiver_gateway::GatewayConfig;
use quiver_machine::Route;
use quiver_net::{Handle, Multiaddr, NodeConfig};
use quiver_service::clock;
use quiver_service::drone::{Error, Result};

use crate::config::Config;
use crate::service::LeaderNode;

/// Configuration of a gateway that reaches the same peers as the leader's own node; `None` if there is no
/// line to serve. The addresses of this leader are not known yet.
pub(crate) fn config(config: &Config, node: &NodeConfig, group: &Name) -> Result<Option<GatewayConfig>> {
    let lines = config.leader.lines()?;
    if lines.is_empty() {
        return Ok(None);
    }
    let to = |wanted: Route| {
        let addresses = node.dial.iter().filter(move |(route, _)| *route == wanted);
        addresses.map(|(_, address)| address.clone()).collect()
    };
    Ok(Some(GatewayConfig {
        lines,
        baud: config.leader.baud,
        leaders: to(Route::Leader),
        kgcs: to(Route::Kgc),
        group: group.to_string(),
        unix_time: clock::unix_now,
    }))
}

/// Serves the lines. The boards' nodes are this leader's clients like any other, over its own listeners.
pub(crate) async fn serve(mut config: GatewayConfig, leader: Handle<LeaderNode>) {
    // Without a listener the service ends with an error.
    let Ok(addresses) = leader.listening().await else { return };
    match own_address(&addresses, &leader) {
        Ok(address) => config.leaders.insert(0, address),
        Err(error) => return tracing::error!("boards cannot be served: {error}"),
    }
    quiver_gateway::serve(config).await;
}

/// Listening address of the leader, with its peer id at the end, so that no other node is taken for it. On
/// this machine itself if it listens here.
fn own_address(addresses: &[Multiaddr], leader: &Handle<LeaderNode>) -> Result<Multiaddr> {
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
