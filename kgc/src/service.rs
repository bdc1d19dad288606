//! Runs a single KGC (`kgc serve`): its machine, its registry and the network, until a signal comes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_delivery::attributes::{AttributeIssuer, AttributeServer, Grant, IssuerConfig};
use quiver_delivery::kgc::Deliveries;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_machine::{Input, Machine, Now, Peer, Route};
use quiver_net::{
    AddressError, Clocks, Driver, Host, HostError, Introduction, Multiaddr, NodeConfig, NodeKey, PeerId,
    Service, Transport, parse_dialled_address, parse_listened_address, readable, refuse_duplicate_identity,
};
use quiver_service::config::address_form;
use quiver_service::control::{Server, refuse_long_path};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::shutdown::Shutdown;
use quiver_service::{clock, line_output, terminal};
use rand::rngs::OsRng;
use tokio::sync::{mpsc, oneshot};

use crate::audit_head::HeadKeeper;
use crate::authorities::{self, OpenedAuthority};
use crate::changes::{Changes, Secrets, describe};
use crate::config::Config;
use crate::control::SingleServer;
use crate::error::{Error, Result};
use crate::event_log::EventLog;
use crate::features::Release;
use crate::key_release::KeyRelease;
use crate::kgc_machine::{KgcMachine, ServingEvent, ServingKgc, ServingRecord};
use crate::membership;
use crate::metrics::{self, KgcMetrics};
use crate::registry::{self, Registrar};
use crate::sealed::{self, KgcSecrets};
use crate::store::{Authenticator, Store};

/// Connections served at a time; enrolling takes a drone about a second.
pub(crate) const PEERS: usize = 4096;

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(config: Config, protection: ProtectionArgs) -> Result<()> {
    refuse_long_path(&config.data_dir)?;
    if let Some(quorum) = membership::kept(&config.data_dir)? {
        return quorum.serve(&config, &protection).await;
    }
    // Before it asks for a passphrase or warns of addresses.
    if !sealed::path_in(&config.data_dir).exists() {
        sealed::refuse_drones_directory(&config.data_dir)?;
    }
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    serve(&config, &protection, &file).await
}

async fn serve(config: &Config, protection: &ProtectionArgs, file: &DeploymentFile) -> Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let deployment = file.pin()?;
    let fingerprint = deployment.fingerprint();
    // Now rather than once files are open.
    let listen = distinct_addresses("listen address", &config.listen, address)?;
    let own = reachable(&file.kgc_addresses())?;
    if let Some(told) = unheard(&listen, &own) {
        tracing::warn!("{told}");
    }
    let by = protection.obtain(false)?;
    let open = || KgcSecrets::open(&config.data_dir, &deployment, &by);
    let (sealed, mut master) = registry::open_when_free(config, open)?;
    let verified = registry::verify(&config.data_dir, &fingerprint, &mut master)?;
    let registrar = Registrar::new(&config.data_dir, &fingerprint, verified.key.clone())?;
    let by_key = Authenticator::Key(verified.key.clone());
    let store = Store::open(&config.data_dir, &fingerprint)?.authenticated_by(by_key);
    let master = Arc::new(Mutex::new(master));
    let head = HeadKeeper::start(Store::open(&config.data_dir, &fingerprint)?, Arc::clone(&master))?;
    let operators = sealed.operators.len();
    let grants = store.attributes().newest_grants()?;
    let secrets =
        Secrets { data_dir: config.data_dir.clone(), deployment: deployment.clone(), by: by.into() };
    let (shares, released) = Release::open(config, &secrets, &store)?;
    let newest = grants.last().map_or(0, |grant| grant.revision);
    let (keys, authorities) = attribute_server(config, &secrets, &store, grants)?;
    let mut changes = Changes::since(verified, secrets, authorities, released, newest);
    let kgc = Kgc::new(
        KgcConfig {
            deployment: deployment.clone(),
            master: sealed.master.into(),
            id: 1,
            operators: sealed.operators,
            cookie_key: Secret::random(&mut OsRng),
            revocation_validity: config.revocation_validity.as_secs(),
        },
        store.records()?,
    )?;
    tracing::info!(deployment = file.deployment, operators, issued = kgc.issued(), "registry read");
    let mut machine = KgcMachine::new(ServingKgc::new(kgc, Deliveries { keys, shares }));
    catch_up(&mut machine, &mut changes)?;
    let key = NodeKey::from_seed(*sealed.seed)?;
    let metrics = KgcMetrics::default();
    let host = KgcHost { store, peer_id: key.peer_id(), metrics: metrics.clone(), log: EventLog::default() };
    let mut node = NodeConfig::registry(key, Transport::SERVICE, PEERS);
    node.clocks = Clocks::Everybody;
    node.detect_duplicates = true;
    node.introduction = Some(Introduction::new(Service::Kgc, &deployment.fingerprint()));
    node.listen = listen;
    node.reserve_files()?;
    refuse_duplicate_identity(&node, &own).await?;
    if let Some(told) = terminal::not_reachable(&config.listen) {
        line_output::print(&told);
    }
    let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
    let monitor = metrics::monitor(config, metrics, handle.clone(), metrics::of_single).await?;
    let (control, calls) = Server::start(&config.data_dir, "kgc")?;
    let (asking, asked) = mpsc::channel(1);
    let server = SingleServer { machine: handle.clone(), deployment, master, registrar, changes: asking };
    let answering = tokio::spawn(server.answer(calls));
    let (running, ended) = oneshot::channel();
    let keeping = tokio::spawn(head.keep(ended));
    let poll = tokio::spawn(changes.follow(handle, config.poll, std::convert::identity, asked));
    let stopped = driver
        .run(async move {
            let signal = shutdown.requested().await;
            tracing::info!(signal, "stopping");
        })
        .await;
    // While the lock on the files is held: the next process must find its own sockets.
    drop((control, monitor));
    answering.abort();
    poll.abort();
    drop(running);
    // It has panicked, or noted the last head.
    let _ = keeping.await;
    stopped?;
    Ok(())
}

/// Catches up with the registry before anybody can ask: a drone that was revoked while the KGC was down is on
/// the list that the servers go by. The driver makes the machine's outputs durable first.
fn catch_up(machine: &mut KgcMachine, changes: &mut Changes) -> Result<()> {
    let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
    let new = changes.read()?;
    for change in new.changes {
        tracing::info!("{}", describe(&change));
        machine.handle_input(now, Input::Command(change), &mut OsRng);
    }
    changes.mark_seen(new.seen);
    Ok(())
}

/// The server of attribute keys, with what is granted at the authorities, if there are any; with it the
/// fingerprints of the authorities.
pub(crate) fn attribute_server(
    config: &Config,
    secrets: &Secrets,
    store: &Store,
    grants: Vec<Grant>,
) -> Result<(AttributeServer<Ristretto255>, Vec<[u8; 32]>)> {
    let rows = store.attributes().authorities()?;
    let sealed = authorities::read(&secrets.data_dir, &secrets.deployment, &secrets.by, &rows)?;
    let mut authorities = Vec::new();
    for sealed in sealed {
        match sealed.open()? {
            OpenedAuthority::Serving(authority) => authorities.push(*authority),
            // The others are served.
            OpenedAuthority::Ended(why) => tracing::error!("{why}"),
        }
    }
    let names: Vec<_> = authorities.iter().map(|authority| authority.statement.name.to_string()).collect();
    match names.is_empty() {
        true => tracing::info!("no attribute authority is set up: groups need none"),
        false => tracing::info!(authorities = names.join(" "), "serving attribute authorities"),
    }
    let interval = config.attribute_interval;
    let issuer = AttributeIssuer::new(IssuerConfig { authorities, grants, interval })?;
    let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
    Ok((DeliveryServer::new(Secret::random(&mut OsRng), issuer), fingerprints))
}

/// Reads the addresses of a list by `read`. One that stands in it twice, in whatever form, is refused.
pub(crate) fn distinct_addresses(
    what: &str,
    texts: &[String],
    read: impl Fn(&str, &str) -> Result<Multiaddr>,
) -> Result<Vec<Multiaddr>> {
    let mut addresses = Vec::new();
    for text in texts {
        let address = read(what, text)?;
        if let Some(earlier) = texts.iter().zip(&addresses).find(|(_, earlier)| **earlier == address) {
            return Err(Error::Terms(format!("{what} {text} is the same as {}: give it once", earlier.0)));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

/// Reads an address to listen on; an error says of what.
pub(crate) fn address(what: &str, text: &str) -> Result<Multiaddr> {
    parse_listened_address(text).map_err(|error| bad_address(what, text, &error))
}

/// Reads an address at which others reach a KGC; an error says of what.
pub(crate) fn dialled_address(what: &str, text: &str) -> Result<Multiaddr> {
    parse_dialled_address(text).map_err(|error| bad_address(what, text, &error))
}

/// The addresses of the deployment file at which drones can reach a KGC. One that can only be listened on is left out with a
/// warning, because an earlier build may have written it.
fn reachable(texts: &[String]) -> Result<Vec<Multiaddr>> {
    const WHAT: &str = "address in the deployment file";
    let mut reached = Vec::new();
    for text in texts {
        match dialled_address(WHAT, text) {
            Ok(dialled) => reached.push(dialled),
            Err(error) if address(WHAT, text).is_ok() => tracing::warn!("{error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(reached)
}

/// Warning for a KGC that listens on none of the ports at which drones look for it: without `--listen` it has the port 7000,
/// whatever `kgc init` was told. `None` if one of the ports is left to the system.
pub(crate) fn unheard(listen: &[Multiaddr], own: &[Multiaddr]) -> Option<String> {
    let ports: Vec<u16> = listen.iter().filter_map(port).collect();
    if own.is_empty() || ports.contains(&0) || own.iter().filter_map(port).any(|port| ports.contains(&port)) {
        return None;
    }
    let shown = |addresses: &[Multiaddr]| addresses.iter().map(readable).collect::<Vec<_>>().join(", ");
    Some(format!(
        "drones look for this KGC at {}, and it listens on {}: unless something forwards from there to here, give --listen with \
         the port that they are told",
        shown(own),
        shown(listen)
    ))
}

/// The port of an address.
fn port(address: &Multiaddr) -> Option<u16> {
    let text = address.to_string();
    let mut parts = text.split('/').skip_while(|part| !matches!(*part, "tcp" | "udp"));
    parts.nth(1)?.parse().ok()
}

fn bad_address(what: &str, text: &str, error: &AddressError) -> Error {
    Error::Terms(format!("{what} {text}: {error}; {}", address_form(text)))
}

/// The machine's host: its records go into the registry, its events into the log.
struct KgcHost {
    store: Store,
    peer_id: PeerId,
    metrics: KgcMetrics,
    log: EventLog,
}

impl Host<KgcMachine> for KgcHost {
    fn persist(&mut self, records: &[ServingRecord]) -> std::result::Result<(), HostError> {
        tokio::task::block_in_place(|| self.store.persist(records, clock::unix_now())).map_err(Into::into)
    }

    fn event(&mut self, _: &KgcMachine, event: ServingEvent) {
        self.metrics.count(&event);
        self.log.log(event);
    }

    fn connected(&mut self, peer: Peer, route: Route, place: &str) {
        self.log.connected(peer, route, place);
    }

    fn disconnected(&mut self, peer: Peer) {
        self.log.disconnected(peer);
    }

    fn voucher(&mut self, machine: &KgcMachine, statement: &[u8], signed: &[u8]) -> Option<String> {
        let drone = machine.node().vouched(statement, signed).ok()?;
        Some(drone.to_string())
    }

    fn listening(&mut self, address: &Multiaddr) {
        line_output::print(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}
