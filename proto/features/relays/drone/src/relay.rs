//! Runs a relay (`edge relay`): its machine and the network, until a signal comes. It has a transport key and no other.

mod keys;
mod metrics;

use std::convert::Infallible;
use std::time::Duration;

use quiver_machine::{Peer, Route};
use quiver_net::{
    Clocks, Driver, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, Transport, group_topic,
};
use quiver_relay::{Relay, RelayEvent, RelayTiming};
use quiver_service::drone::addresses::{parse_dialled_addresses, parse_listened_addresses};
use quiver_service::drone::{DroneSettings, Result, health};
use quiver_service::line_output;
use quiver_service::monitoring::MonitorPlace;
use quiver_service::private_file::{self, Lock};
use quiver_service::shutdown::Shutdown;
use rand::rngs::OsRng;

pub(crate) use self::keys::make_keys;
use self::metrics::RelayMetrics;
use crate::arguments::RelayArgs;

/// File of the transport key's seed, in the data directory.
const SEED: &str = "relay.seed";

/// Longest pause before a leader that is out of reach is dialled again.
const REDIAL: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(settings: &DroneSettings, args: &RelayArgs) -> Result<()> {
    let data_dir = settings.data_dir.as_path();
    let mut shutdown = Shutdown::listen()?;
    let (listen, leaders) =
        (parse_listened_addresses("listen", &args.listen)?, parse_dialled_addresses("leader", &args.leader)?);
    private_file::create_directory(data_dir)?;
    let _lock = Lock::acquire(&data_dir.join("relay"))?;
    let seed = match &args.seed {
        Some(path) => keys::read(path)?,
        None => keys::read_or_make(&data_dir.join(SEED))?,
    };
    let key = NodeKey::from_seed(*seed)?;
    let most = args.max_drones as usize;
    let mut node = NodeConfig::hub(key, Transport::SERVICE, most);
    node.reserve_files()?;
    node.listen = listen;
    node.dial = leaders.into_iter().map(|address| (Route::Leader, address)).collect();
    // Many wait for it.
    node.redial_ceiling = node.redial_ceiling.min(REDIAL);
    // Drones ask whoever they have dialled (§16.1); what a relay answers decides nothing.
    node.clocks = Clocks::Dialled;
    node.topic = Some(group_topic(args.group.as_str()));
    let metrics = RelayMetrics::default();
    let host = RelayHost { peer_id: node.key.peer_id(), metrics: metrics.clone() };
    line_output::print(&format!(
        "relay {}: start the leader with `leader serve --relay` and this",
        host.peer_id
    ));
    let (driver, handle) = Driver::new(&node, Relay::new(most, RelayTiming::default()), host, OsRng)?;
    // `edge health` asks a relay, too.
    let place = MonitorPlace { role: "edge", data_dir, address: settings.metrics };
    let troubles = metrics.troubles.clone();
    let (register, look) = (metrics.clone(), move |relay: &Relay, _: &[_]| metrics.refresh(relay));
    let register = |registry: &mut _| register.register(registry);
    let _monitor = health::monitor(place, handle, troubles, register, look).await?;
    let until = async {
        let signal = shutdown.requested().await;
        tracing::info!("{signal}: the relay ends");
    };
    Ok(driver.run(until).await?)
}

struct RelayHost {
    peer_id: PeerId,
    metrics: RelayMetrics,
}

impl Host<Relay> for RelayHost {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, machine: &Relay, event: RelayEvent) {
        self.metrics.count(&event, &self.peer_id);
        match event {
            RelayEvent::LeaderConnected => {
                tracing::info!(drones = machine.drones(), "connected to the leader");
            }
            RelayEvent::LeaderLost { drones } => {
                tracing::warn!(drones, "the leader is lost or answers nothing: drones are sent elsewhere");
            }
            RelayEvent::Full => {
                tracing::warn!("a drone was turned away: there are as many as --max-drones allows");
            }
            RelayEvent::Dropped { bytes } => {
                tracing::warn!(
                    bytes,
                    "a message was dropped: too many wait for the leader, or it is too long"
                );
            }
        }
    }

    /// A relay knows no names. Nobody else has the slot while the leader vouches for this one.
    fn member(&mut self, machine: &Relay, peer: Peer) -> Option<String> {
        machine.slot(peer).map(|slot| slot.to_string())
    }

    fn connected(&mut self, _: Peer, route: Route, place: &str) {
        if route == Route::Inbound {
            tracing::debug!("{place} is connected");
        }
    }

    fn listening(&mut self, address: &Multiaddr) {
        line_output::print(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}
