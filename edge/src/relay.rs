//! Runs a relay (`edge relay`): its machine and the network, until a signal comes. It has a transport key and no other.

use std::convert::Infallible;
use std::path::Path;

use quiver_machine::{Peer, Route};
use quiver_net::{
    Clocks, Driver, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, Transport, group_topic,
};
use quiver_relay::{Relay, RelayEvent};
use quiver_service::config::parse_addresses;
use quiver_service::drone::Result;
use quiver_service::shutdown::Shutdown;
use quiver_service::{private_file, terminal};
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::cli::RelayArgs;

/// File of the transport key's seed, in the data directory.
const SEED: &str = "relay.seed";
const SEED_LEN: usize = 32;

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(data_dir: &Path, args: &RelayArgs) -> Result<()> {
    let mut shutdown = Shutdown::listen()?;
    private_file::create_directory(data_dir)?;
    let key = NodeKey::from_seed(*seed(&data_dir.join(SEED))?)?;
    let most = args.max_drones as usize;
    let mut node = NodeConfig::hub(key, Transport::TcpAndQuic, most);
    node.listen = parse_addresses("listen", &args.listen)?;
    let leaders = parse_addresses("leader", &args.leader)?.into_iter();
    node.dial = leaders.map(|address| (Route::Leader, address)).collect();
    // Drones ask whoever they have dialled (§16.1); what a relay answers decides nothing.
    node.clocks = Clocks::Dialled;
    node.topic = Some(group_topic(args.group.as_str()));
    let host = RelayHost { peer_id: node.key.peer_id() };
    terminal::line(&format!(
        "relay {}: start the leader with `leader serve --relay` and this",
        host.peer_id
    ))?;
    let (driver, _) = Driver::new(&node, Relay::new(most), host, OsRng)?;
    let until = async {
        let signal = shutdown.requested().await;
        tracing::info!("{signal}: the relay ends");
    };
    Ok(driver.run(until).await?)
}

/// The seed of the transport key, the same at every start.
fn seed(path: &Path) -> Result<Zeroizing<[u8; SEED_LEN]>> {
    let mut seed = Zeroizing::new([0; SEED_LEN]);
    if path.exists() {
        private_file::read_decoded(path, SEED_LEN as u64, |bytes| {
            let wrong =
                || quiver_service::Error::Config(format!("{}: not a seed of 32 bytes", path.display()));
            seed.copy_from_slice(bytes.get(..).filter(|bytes| bytes.len() == SEED_LEN).ok_or_else(wrong)?);
            Ok(())
        })?;
    } else {
        OsRng.fill_bytes(&mut *seed);
        private_file::write_new(path, &*seed)?;
    }
    Ok(seed)
}

struct RelayHost {
    peer_id: PeerId,
}

impl Host<Relay> for RelayHost {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, machine: &Relay, event: RelayEvent) {
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

    fn connected(&mut self, _: Peer, route: Route, place: &str) {
        if route == Route::Inbound {
            tracing::debug!("{place} is connected");
        }
    }

    fn listening(&mut self, address: &Multiaddr) {
        // Who started it may have stopped reading.
        let _ = terminal::line(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}
