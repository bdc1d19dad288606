//! `kgc serve`: the machine, its registry and the network, until a signal comes.

use std::time::Duration;

use quiver_ainq::{Handle as KeyHandle, Suite};
use quiver_crypto::Secret;
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, Transport};
use quiver_role::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::shutdown::Shutdown;
use quiver_service::{clock, terminal, with_suite};
use rand::rngs::OsRng;

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
    let (sealed, _locked) = Sealed::open(&config.data_dir, &deployment, &protection.obtain(false)?)?;
    let store = Store::open(&config.data_dir, &fingerprint)?;
    let operators = sealed.operators.len();
    let machine = Kgc::new(
        KgcConfig {
            deployment,
            master: sealed.master,
            id: 1,
            operators: sealed.operators,
            cookie_key: Secret::random(&mut OsRng),
            revocation_validity: config.revocation_validity.as_secs(),
        },
        store.records()?,
    )?;
    tracing::info!(deployment = file.deployment, operators, issued = machine.issued(), "registry read");
    let key = NodeKey::from_seed(*sealed.seed)?;
    let host = KgcHost { store, peer_id: key.peer_id() };
    let mut node = NodeConfig::registry(key, Transport::TcpAndQuic, PEERS);
    node.listen = config.listen.iter().map(|text| address(text)).collect::<Result<_>>()?;
    let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
    let revocations =
        Revocations { store: Store::open(&config.data_dir, &fingerprint)?, drones: 0, tokens: 0 };
    let poll = tokio::spawn(revocations.follow(handle, config.poll));
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

fn address(text: &str) -> Result<Multiaddr> {
    text.parse().map_err(|error| Error::Terms(format!("listen address {text}: {error}")))
}

/// The machine's host: its records go into the registry, its events into the log.
struct KgcHost {
    store: Store,
    peer_id: PeerId,
}

impl<S: Suite> Host<Kgc<S>> for KgcHost {
    fn persist(&mut self, records: &[KgcRecord]) -> std::result::Result<(), HostError> {
        tokio::task::block_in_place(|| self.store.persist(records, clock::unix_now())).map_err(Into::into)
    }

    fn event(&mut self, _: &Kgc<S>, event: KgcEvent) {
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

    fn listening(&mut self, address: &Multiaddr) {
        let line = format!("listening on {address}/p2p/{}", self.peer_id);
        if let Err(error) = terminal::line(&line) {
            tracing::warn!(%error, "standard output");
        }
    }
}

/// Looks for revocations that the command line wrote into the registry and hands them to the machine.
struct Revocations {
    store: Store,
    /// The newest revocation of a drone that was handed over. From 0 at each start, so that one made just before a crash is
    /// handed over again; the machine knows which are new.
    drones: u64,
    /// How many revoked tokens were handed over.
    tokens: usize,
}

impl Revocations {
    async fn follow<S: Suite>(mut self, machine: Handle<Kgc<S>>, every: Duration) {
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
                Err(error) => tracing::warn!(%error, "looking for revocations"),
            }
        }
    }

    fn new_commands(&mut self) -> Result<Vec<KgcCommand>> {
        let mut commands = Vec::new();
        let drones = self.store.drones_revoked_after(self.drones)?;
        if let Some(last) = drones.last() {
            self.drones = last.seq;
            let handles = drones.iter().map(|drone| KeyHandle(drone.handle)).collect();
            let serials = drones.iter().map(|drone| drone.serial).collect();
            commands.push(KgcCommand::RevokeDrones { handles, serials });
        }
        let tokens = self.store.revoked_tokens()?;
        if let Some(new) = tokens.get(self.tokens..).filter(|new| !new.is_empty()) {
            commands.push(KgcCommand::RevokeTokens(new.to_vec()));
            self.tokens = tokens.len();
        }
        Ok(commands)
    }
}

fn describe(command: &KgcCommand) -> String {
    match command {
        KgcCommand::RevokeDrones { serials, .. } => {
            format!("drones revoked in the registry: {}", serials.len())
        }
        KgcCommand::RevokeTokens(ids) => format!("tokens revoked in the registry: {}", ids.len()),
    }
}
