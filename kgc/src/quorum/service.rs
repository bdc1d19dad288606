//! Runs a KGC of a quorum (`kgc serve`): its machine, its files and the network, until a signal comes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_ainq::{Deployment, KgcId, OperatorPublicKey, Ristretto255};
use quiver_crypto::Secret;
use quiver_delivery::kgc::Deliveries;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcRecord};
use quiver_machine::{Either, Route};
use quiver_net::{
    Clocks, Driver, Handle, Introduction, Multiaddr, NodeConfig, NodeKey, Service, Transport,
    refuse_duplicate_identity,
};
use quiver_quorum_node::{QuorumCommand, QuorumConfig, QuorumNode, QuorumRecord};
use quiver_service::control::Server;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::{Protection, ProtectionArgs};
use quiver_service::shutdown::Shutdown;
use quiver_service::{clock, line_output, terminal};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::control::{self, ControlServer};
use super::file::{ListedKgc, Pinned};
use super::host::QuorumHost;
use super::node::{KgcOpening, QuorumKgc, QuorumKgcCommand};
use super::release::QuorumRelease;
use super::sealed::{QuorumState, QuorumStateContent};
use super::{found, status, transport};
use crate::audit_head::HeadKeeper;
use crate::changes::{Asked, Changes, Secrets};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::event_log::EventLog;
use crate::features::Release;
use crate::kgc_machine::{CommandLineChange, ServingKgc};
use crate::metrics::{self, KgcMetrics};
use crate::registry::{self, Registrar, Verified};
use crate::service::{PEERS, address, attribute_server, dialled_address, distinct_addresses, unheard};
use crate::store::{Position, RegistryKey, Store};

/// Events kept for subcommands that wait for one.
const EVENTS: usize = 256;
/// Interval at which it is checked whether the others have newer shares.
const SHARES_LOOK: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to reach another KGC.
const REDIAL: Duration = Duration::from_secs(5);

/// Parts from which the KGC for drones is made once there is a key.
struct KgcParameters {
    config: Config,
    pinned: Pinned,
    operators: Vec<OperatorPublicKey<Ristretto255>>,
    id: KgcId,
    by: Arc<Protection>,
    registry_key: RegistryKey,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn serve(config: &Config, protection: &ProtectionArgs, kept: &Pinned) -> Result<()> {
    let shutdown = Shutdown::listen()?;
    // Now rather than once files are open.
    let listen = distinct_addresses("listen address", &config.listen, address)?;
    check_addresses(config, kept)?;
    let by = protection.obtain(false)?;
    let key = transport::read(&config.data_dir, &by)?;
    let open = || QuorumState::open(&config.data_dir, kept, &by);
    let (mut state, QuorumStateContent { pinned, operators }) = registry::open_when_free(config, open)?;
    let id = pinned.own(&key.peer_id())?;
    let Verified { store, key: registry_key, .. } =
        registry::verify(&config.data_dir, &pinned.seat(), &mut state)?;
    let registrar = Registrar::new(&config.data_dir, &pinned.seat(), registry_key.clone())?.into();
    let node = member(config, &pinned, id, state.records()?)?;
    let state = Arc::new(Mutex::new(state));
    let head = HeadKeeper::start(Store::open(&config.data_dir, &pinned.seat())?, Arc::clone(&state))?;
    let view = node.view();
    let shares =
        view.version.map_or_else(|| "no shares".into(), |version| format!("shares of version {version}"));
    tracing::info!(deployment = %pinned.name, kgc = id, "quorum read: {shares}");
    let mut settings = node_config(config, &pinned, id, key.clone())?;
    let seat = pinned.file.kgc.iter().find(|seat| seat.id == id);
    let own = seat.map(|seat| addresses(config, seat)).transpose()?.unwrap_or_default();
    if let Some(told) = unheard(&listen, &own) {
        tracing::warn!("{told}");
    }
    settings.listen = listen;
    settings.introduction =
        deployment(config)?.map(|deployment| Introduction::new(Service::Kgc, &deployment.fingerprint()));
    refuse_duplicate_identity(&settings, &own).await?;
    let (events, _) = broadcast::channel(EVENTS);
    let (ready, readied) = mpsc::unbounded_channel();
    let metrics = KgcMetrics::default();
    let (peer_id, counted) = (key.peer_id(), metrics.clone());
    let kept = Arc::clone(&state);
    let host = QuorumHost {
        store,
        state: kept,
        events: events.clone(),
        ready,
        peer_id,
        metrics: counted,
        log: EventLog::default(),
    };
    if let Some(told) = terminal::not_reachable(&config.listen) {
        line_output::print(&told);
    }
    let (driver, handle) = Driver::new(&settings, QuorumKgc::new(node), host, OsRng)?;
    if view.version.is_none() && view.ceremony.is_none() {
        handle.command(QuorumKgcCommand::Member(QuorumCommand::Generate)).await.map_err(stopped)?;
    }
    let seat = pinned.clone();
    let look = move |machine: &QuorumKgc, metrics: &KgcMetrics| {
        let mut standing = status::of(machine, &seat, id).refresh(metrics);
        let issued = machine.kgc().and_then(|kgc| kgc.revocations_issued());
        metrics.check_clock(&mut standing, issued, clock::unix_now());
        metrics.set_list_gauges(machine.kgc().map(|kgc| kgc.revocation_usage()).unwrap_or_default());
        standing
    };
    let monitor = metrics::monitor(config, metrics, handle.clone(), look).await?;
    let (control, calls) = Server::start(&config.data_dir, "kgc")?;
    let (changes, looks) = mpsc::channel(1);
    let (machine, asked) = (handle.clone(), Arc::default());
    let server =
        ControlServer { machine, state, events, asked, pinned: pinned.clone(), id, registrar, changes };
    let answering = tokio::spawn(control::answer(calls, server));
    let watching = tokio::spawn(warn_of_old_shares(handle.clone(), pinned.clone(), id));
    let parameters =
        KgcParameters { config: config.clone(), pinned, operators, id, by: by.into(), registry_key };
    let keeping = tokio::spawn(parameters.keep(handle, readied, looks));
    let (running, run_ended) = oneshot::channel();
    let noting = tokio::spawn(head.keep(run_ended));
    let ended = driver.run(until(shutdown)).await;
    // While the lock on the files is held: the next process must find its own sockets.
    drop((control, monitor));
    answering.abort();
    watching.abort();
    keeping.abort();
    drop(running);
    // It has panicked, or noted the last head.
    let _ = noting.await;
    Ok(ended?)
}

async fn until(mut shutdown: Shutdown) {
    let signal = shutdown.requested().await;
    tracing::info!(signal, "stopping");
}

/// The member as it was stored.
fn member(
    config: &Config,
    pinned: &Pinned,
    id: KgcId,
    records: Vec<QuorumRecord>,
) -> Result<QuorumNode<Ristretto255>> {
    let settings = QuorumConfig {
        membership: pinned.membership()?,
        id,
        revocation_validity: config.revocation_validity.as_secs(),
        ibe_statements: Release::STATEMENTS,
    };
    let node = QuorumNode::new(settings, records)?;
    // A KGC that lost everything and was given the public file takes shares of that key alone.
    Ok(match deployment(config)? {
        Some(deployment) => node.with_master(*deployment.master()),
        None => node,
    })
}

/// The deployment, once its key is made.
pub(super) fn deployment(config: &Config) -> Result<Option<Deployment<Ristretto255>>> {
    let path = config.deployment_path();
    Ok(if path.exists() { Some(DeploymentFile::read(&path)?.pin()?) } else { None })
}

/// Warns when this KGC's shares turn out to be of an older version than those of the others, and says when they no
/// longer are.
async fn warn_of_old_shares(handle: Handle<QuorumKgc>, pinned: Pinned, id: KgcId) {
    let mut warned = false;
    loop {
        sleep(SHARES_LOOK).await;
        let pinned = pinned.clone();
        let look = move |machine: &QuorumKgc| status::of(machine, &pinned, id).outdated();
        match handle.inspect(look).await {
            Ok(Some(outdated)) if !warned => {
                warned = true;
                tracing::warn!("{outdated}");
            }
            Ok(None) if warned => {
                warned = false;
                tracing::info!("the shares here are of the version that the others have");
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn stopped(error: quiver_net::Stopped) -> Error {
    Error::Quorum(error.to_string())
}

/// The node among the other KGCs, and for drones.
fn node_config(config: &Config, pinned: &Pinned, id: KgcId, key: NodeKey) -> Result<NodeConfig> {
    let mut node = NodeConfig::registry(key, Transport::SERVICE, PEERS);
    node.reserve_files()?;
    node.clocks = Clocks::Everybody;
    node.detect_duplicates = true;
    node.redial_ceiling = REDIAL;
    for (seat, peer) in pinned.file.kgc.iter().zip(&pinned.peers).filter(|(seat, _)| seat.id != id) {
        node.members.push((seat.id, *peer));
        let found = addresses(config, seat)?.into_iter().map(|address| (Route::Member(seat.id), address));
        node.dial.extend(found);
    }
    Ok(node)
}

/// Addresses and transport key of a KGC of the quorum.
fn addresses(config: &Config, seat: &ListedKgc) -> Result<Vec<Multiaddr>> {
    let mut entry = seat.entry();
    if let Some(moved) = config.quorum.addresses.get(&seat.id.to_string()) {
        entry.addresses.clone_from(moved);
    }
    let what = format!("address of KGC {}", seat.id);
    // Before the transport identity is put behind them.
    for text in &mut entry.addresses {
        *text = dialled_address(&what, text)?.to_string();
    }
    entry.pinned_addresses().map(|text| dialled_address(&what, &text)).collect()
}

/// Refuses what is no address that this KGC could dial. Not when the file is read, because
/// `quorum.addresses` may stand in for the file's.
pub(super) fn check_addresses(config: &Config, pinned: &Pinned) -> Result<()> {
    pinned.file.kgc.iter().try_for_each(|seat| addresses(config, seat).map(drop))
}

impl KgcParameters {
    /// Opens the KGC for drones as soon as the quorum has a key, and keeps the deployment file up to date.
    async fn keep(
        self,
        handle: Handle<QuorumKgc>,
        mut ready: mpsc::UnboundedReceiver<()>,
        looks: mpsc::Receiver<Asked>,
    ) {
        let mut following: Option<AbortHandle> = None;
        let mut looks = Some(looks);
        loop {
            let look = |machine: &QuorumKgc| (machine.opening(), machine.kgc().is_some());
            let Ok((opening, is_open)) = handle.inspect(look).await else { break };
            if let Some(opening) = opening {
                if let Err(error) = tokio::task::block_in_place(|| self.keep_file(&opening)) {
                    tracing::error!(%error, "no deployment file was written");
                }
                if !is_open {
                    following = self.serve_drones(&handle, opening, &mut looks).await.or(following);
                }
            }
            if ready.recv().await.is_none() {
                break;
            }
        }
        following.inspect(AbortHandle::abort);
    }

    /// Opens the KGC for drones, and hands over from then on what the command line writes into the registry.
    async fn serve_drones(
        &self,
        handle: &Handle<QuorumKgc>,
        opening: KgcOpening,
        looks: &mut Option<mpsc::Receiver<Asked>>,
    ) -> Option<AbortHandle> {
        let opened = tokio::task::block_in_place(|| {
            let known = self.known_statement();
            self.open(opening).map(|(kgc, changes)| (kgc, known, changes))
        });
        match opened {
            Ok((kgc, known, changes)) => {
                handle.command(QuorumKgcCommand::Open { kgc: Box::new(kgc), known }).await.ok()?;
                tracing::info!("serving drones");
                let following = changes.follow(handle.clone(), self.config.poll, wrap, looks.take()?);
                Some(tokio::spawn(following).abort_handle())
            }
            Err(error) => {
                tracing::error!(%error, "drones cannot be served");
                None
            }
        }
    }

    /// The public file that drones take.
    fn keep_file(&self, opening: &KgcOpening) -> Result<()> {
        let path = self.config.deployment_path();
        // One that cannot be read may say a second factor: it is not replaced by one that says none.
        let kept = path.exists().then(|| DeploymentFile::read(&path)).transpose()?;
        // Shares that were refreshed, and drones, are of a deployment that had a file.
        if kept.is_none() && (opening.share.version() > 0 || self.has_drones()?) {
            return Err(Error::Quorum(format!(
                "{} is lost, and only it says which second factor (`kem`) drones have been told: copy it from another KGC, \
                 a leader or a drone, and start again",
                path.display()
            )));
        }
        let mut file = self.pinned.deployment_file(&opening.deployment, &opening.statement);
        // The operator's settings in the file there is stay, also if it says none by saying nothing.
        if let Some(kept) = &kept {
            file.kem = kept.kem;
        }
        if let Err(error) = found::publish(self.id, self.config.publish.as_deref(), &file) {
            tracing::warn!(%error, "the deployment file is in the data directory alone: `kgc deployment` prints it");
        }
        if kept.is_some_and(|kept| kept == file) {
            return Ok(());
        }
        file.replace(&path)?;
        tracing::info!(path = %path.display(), fingerprint = file.fingerprint, "deployment file written");
        Ok(())
    }

    /// True if the registry has drones: they were given a deployment file.
    fn has_drones(&self) -> Result<bool> {
        let records = Store::open(&self.config.data_dir, &self.pinned.seat())?.records()?;
        let is_drone =
            |record: &KgcRecord| matches!(record, KgcRecord::Issued { .. } | KgcRecord::Pinned { .. });
        Ok(records.iter().any(is_drone))
    }

    /// The newest statement about the key of encryption to conditions that the registry has.
    fn known_statement(&self) -> Option<Vec<u8>> {
        let store = Store::open(&self.config.data_dir, &self.pinned.seat()).ok()?;
        Some(store.master_key().newest().ok()??.statement)
    }

    fn open(&self, opening: KgcOpening) -> Result<(ServingKgc, Changes)> {
        let KgcOpening { deployment, share, .. } = opening;
        let store = Store::open(&self.config.data_dir, &self.pinned.seat())?;
        let (key, mut position) = (self.registry_key.clone(), Position::default());
        store.macs().check_rows(&key, &mut position)?;
        let grants = store.attributes().newest_grants()?;
        let newest = grants.last().map_or(0, |grant| grant.revision);
        let (data_dir, by) = (self.config.data_dir.clone(), Arc::clone(&self.by));
        let secrets = Secrets { data_dir, deployment: deployment.clone(), by };
        let (keys, authorities) = attribute_server(&self.config, &secrets, &store, grants)?;
        let beside = Store::open(&self.config.data_dir, &self.pinned.seat())?;
        let verified = Verified { store: beside, key, position };
        let (shares, released) = Release::open_member(&self.config, &store)?;
        let changes = Changes::since(verified, secrets, authorities, released, newest);
        let kgc = Kgc::new(
            KgcConfig {
                deployment,
                master: share.into(),
                id: self.id,
                operators: self.operators.clone(),
                cookie_key: Secret::random(&mut OsRng),
                revocation_validity: self.config.revocation_validity.as_secs(),
            },
            store.records()?,
        )?;
        tracing::info!(
            kgc = self.id,
            operators = self.operators.len(),
            tokens = kgc.issued(),
            "registry read"
        );
        Ok((ServingKgc::new(kgc, Deliveries { keys, shares }), changes))
    }
}

/// A change as a command: revocations of a single KGC are proposals to the quorum.
fn wrap(change: CommandLineChange) -> QuorumKgcCommand {
    match change {
        CommandLineChange::Command(Either::Left(KgcCommand::RevokeDrones(drones))) => {
            QuorumKgcCommand::Member(QuorumCommand::Revoke(drones))
        }
        change => QuorumKgcCommand::Kgc(change),
    }
}
