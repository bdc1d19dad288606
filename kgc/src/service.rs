//! `kgc serve`: the machine, its registry and the network, until a signal comes.

use std::time::Duration;

use quiver_ainq::{Deployment, Handle as KeyHandle, Suite};
use quiver_crypto::Secret;
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, Transport};
use quiver_role::attributes::{
    CentreCommand, CentreEvent, CentreRecord, KeyCentre, Office, OfficeCommand, OfficeConfig, OfficeEvent,
};
use quiver_role::{Kgc, KgcCommand, KgcConfig, KgcEvent};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::{Protection, ProtectionArgs};
use quiver_service::shutdown::Shutdown;
use quiver_service::{clock, terminal, with_suite};
use rand::rngs::OsRng;

use crate::authorities::{self, SealedAuthority};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::sealed::Sealed;
use crate::store::Store;

/// Connections served at a time; enrolling takes a drone about a second.
const PEERS: usize = 4096;

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(config: Config, protection: ProtectionArgs) -> Result<()> {
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    with_suite!(file.suite()?, S => serve::<S>(&config, &protection, &file).await)
}

async fn serve<S: Suite>(config: &Config, protection: &ProtectionArgs, file: &DeploymentFile) -> Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let deployment = file.pin::<S>()?;
    let fingerprint = deployment.fingerprint();
    let by = protection.obtain(false)?;
    let (sealed, _locked) = Sealed::open(&config.data_dir, &deployment, &by)?;
    let store = Store::open(&config.data_dir, &fingerprint)?;
    let operators = sealed.operators.len();
    let office = office(config, &deployment, &by, &store)?;
    let kgc = Kgc::new(
        KgcConfig {
            deployment: deployment.clone(),
            master: sealed.master,
            id: 1,
            operators: sealed.operators,
            cookie_key: Secret::random(&mut OsRng),
            revocation_validity: config.revocation_validity.as_secs(),
        },
        store.records()?,
    )?;
    tracing::info!(deployment = file.deployment, operators, issued = kgc.issued(), "registry read");
    let machine = KeyCentre::new(deployment, kgc, office);
    let key = NodeKey::from_seed(*sealed.seed)?;
    let host = KgcHost { store, peer_id: key.peer_id() };
    let mut node = NodeConfig::registry(key, Transport::TcpAndQuic, PEERS);
    node.listen = config.listen.iter().map(|text| address(text)).collect::<Result<_>>()?;
    let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
    let changes =
        Changes { store: Store::open(&config.data_dir, &fingerprint)?, drones: 0, tokens: 0, grants: 0 };
    let poll = tokio::spawn(changes.follow(handle, config.poll));
    let stopped = driver
        .run(async move {
            let signal = shutdown.requested().await;
            tracing::info!(signal, "stopping");
        })
        .await;
    poll.abort();
    stopped?;
    Ok(())
}

/// The attribute authorities, if there are any. Their grants are handed over with the first look at the registry.
fn office<S: Suite>(
    config: &Config,
    deployment: &Deployment<S>,
    by: &Protection,
    store: &Store,
) -> Result<Office<S>> {
    let sealed = authorities::read(&config.data_dir, deployment, by, &store.authorities()?)?;
    let authorities = sealed.into_iter().map(SealedAuthority::open).collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = authorities.iter().map(|authority| authority.statement.name.to_string()).collect();
    tracing::info!(authorities = names.join(" "), "attribute authorities");
    Ok(Office::new(OfficeConfig {
        deployment: deployment.clone(),
        cookie_key: Secret::random(&mut OsRng),
        authorities,
        interval: config.attribute_interval,
    })?)
}

fn address(text: &str) -> Result<Multiaddr> {
    text.parse().map_err(|error| Error::Terms(format!("listen address {text}: {error}")))
}

/// The machine's host: its records go into the registry, its events into the log.
struct KgcHost {
    store: Store,
    peer_id: PeerId,
}

impl<S: Suite> Host<KeyCentre<S>> for KgcHost {
    fn persist(&mut self, records: &[CentreRecord]) -> std::result::Result<(), HostError> {
        tokio::task::block_in_place(|| self.store.persist(records, clock::unix_now())).map_err(Into::into)
    }

    fn event(&mut self, _: &KeyCentre<S>, event: CentreEvent) {
        match event {
            CentreEvent::Kgc(event) => log(event),
            CentreEvent::Office(event) => log_of_the_office(event),
        }
    }

    fn listening(&mut self, address: &Multiaddr) {
        let line = format!("listening on {address}/p2p/{}", self.peer_id);
        if let Err(error) = terminal::line(&line) {
            tracing::warn!(%error, "standard output");
        }
    }
}

/// What the KGC reports.
fn log(event: KgcEvent) {
    match event {
        KgcEvent::Issued { token_id, name, handle } => {
            tracing::info!(%name, serial = hex::encode(token_id), %handle, "key issued");
        }
        KgcEvent::Repeated { token_id } => {
            tracing::info!(serial = hex::encode(token_id), "reply repeated");
        }
        KgcEvent::Refused { peer, token_id, reason } => {
            let token = token_id.map_or_else(|| "unknown".into(), hex::encode);
            tracing::warn!(peer = peer.0, token, %reason, "refused");
        }
        KgcEvent::RevocationListSigned { number } => tracing::info!(number, "revocation list signed"),
        KgcEvent::RevocationFailed(error) => {
            tracing::error!(%error, "no revocation list could be signed");
        }
        KgcEvent::Equivocation { name, handle, epoch } => {
            tracing::error!(%name, %handle, %epoch, "a leader signed two headers for one epoch: revoked");
        }
        KgcEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
    }
}

/// What the attribute authorities report.
fn log_of_the_office(event: OfficeEvent) {
    match event {
        OfficeEvent::Issued { authority, name, revision } => {
            tracing::info!(%name, %authority, revision, "attribute key issued");
        }
        OfficeEvent::HeldAlready { authority, name, revision } => {
            tracing::debug!(%name, %authority, revision, "attribute key held already");
        }
        OfficeEvent::NothingGranted { authority, name } => {
            tracing::info!(%name, %authority, "asked for an attribute key: nothing granted");
        }
        OfficeEvent::NotMade { authority, name, error } => {
            tracing::error!(%name, %authority, %error, "no attribute key can be made for what is granted");
        }
        OfficeEvent::Refused { peer, reason } => {
            tracing::warn!(peer = peer.0, %reason, "attribute key refused");
        }
        OfficeEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
        _ => {}
    }
}

/// Looks for revocations and grants that the command line wrote into the registry and hands them to the machine.
struct Changes {
    store: Store,
    /// The newest revocation of a drone that was handed over. From 0 at each start, so that one made just before a crash is
    /// handed over again; the machine knows which are new.
    drones: u64,
    /// How many revoked tokens were handed over.
    tokens: usize,
    /// The newest grant or withdrawal that was handed over; from 0 at each start.
    grants: u64,
}

impl Changes {
    async fn follow<S: Suite>(mut self, machine: Handle<KeyCentre<S>>, every: Duration) {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match tokio::task::block_in_place(|| self.new_commands()) {
                Ok(commands) => {
                    for command in commands {
                        let words = describe(&command);
                        if machine.command(command).await.is_err() {
                            return;
                        }
                        tracing::info!("{words}");
                    }
                }
                Err(error) => tracing::warn!(%error, "looking for changes"),
            }
        }
    }

    fn new_commands(&mut self) -> Result<Vec<CentreCommand>> {
        let mut commands = Vec::new();
        let drones = self.store.drones_revoked_after(self.drones)?;
        if let Some(last) = drones.last() {
            self.drones = last.seq;
            let handles = drones.iter().map(|drone| KeyHandle(drone.handle)).collect();
            let serials = drones.iter().map(|drone| drone.serial).collect();
            commands.push(CentreCommand::Kgc(KgcCommand::RevokeDrones { handles, serials }));
        }
        let tokens = self.store.revoked_tokens()?;
        if let Some(new) = tokens.get(self.tokens..).filter(|new| !new.is_empty()) {
            commands.push(CentreCommand::Kgc(KgcCommand::RevokeTokens(new.to_vec())));
            self.tokens = tokens.len();
        }
        for grant in self.store.grants_after(self.grants)? {
            self.grants = grant.revision;
            commands.push(CentreCommand::Office(OfficeCommand::Grant(grant)));
        }
        Ok(commands)
    }
}

fn describe(command: &CentreCommand) -> String {
    match command {
        CentreCommand::Kgc(KgcCommand::RevokeDrones { serials, .. }) => {
            format!("drones revoked in the registry: {}", serials.len())
        }
        CentreCommand::Kgc(KgcCommand::RevokeTokens(ids)) => {
            format!("tokens revoked in the registry: {}", ids.len())
        }
        CentreCommand::Office(OfficeCommand::Grant(grant)) => {
            let serial = hex::encode(grant.serial);
            match grant.granted {
                Some(_) => format!("attribute grant {} in the registry, for {serial}", grant.revision),
                None => format!("attribute grant of {serial} withdrawn in the registry"),
            }
        }
    }
}
