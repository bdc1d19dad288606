//! Runs an anonymous edge (`edge run --anonymous`): one membership after another.
//!
//! Each has a machine, a transport key and connections of its own, and none of them contains this drone's
//! identity: only the fetches of credentials and revocation lists use it, over separate connections to the
//! KGC. The state file keeps only the counts of answers per leader between memberships.

use std::sync::Arc;
use std::time::Duration;

use quiver_admission::certifying::{Certificate, CertificationTerms, KIND};
use quiver_admission::{AnonymousConfig, AnonymousEdge, AnyEdge, Ending};
use quiver_ainq::{DroneKeypair, Name, RevocationStatement, Ristretto255};
use quiver_group::Edge;
use quiver_machine::Route;
use quiver_net::{Driver, Multiaddr, NodeConfig, NodeKey, Stopped, Transport, group_topic};
use quiver_service::clock;
use quiver_service::control::{Call, Server};
use quiver_service::drone::fetch::{KeyClient, copy};
use quiver_service::drone::request::{DroneRequest, KeyAnswer, json};
use quiver_service::drone::running::DroneIdentity;
use quiver_service::drone::service::{CALL_TIME, run_until};
use quiver_service::drone::{DroneProgram as _, Error, Result, RunningDrone, with_parts};
use quiver_service::keyring::{HeldKey, Keyring, KeyringEntry};
use rand::Rng;
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::host::{EdgeHost, Keeping};
use super::send_queue::SendQueue;
use super::{EdgeService, FAILURES, PATHS};
use crate::config::Config;
use crate::control::{self, EdgeStatusReply, Surroundings};

/// Time limit of a run of the exchange.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which it is checked whether a credential of the current period is stored.
const LOOK: Duration = Duration::from_millis(500);

/// State shared by all memberships of one service.
struct Memberships {
    group: Name,
    leaders: Vec<Multiaddr>,
    client: KeyClient,
    /// The drone whose machine runs, for control requests.
    running: watch::Sender<Option<RunningDrone<AnyEdge<Ristretto255>>>>,
}

/// A credential of the period, as it is stored.
struct StoredCredential {
    entry: KeyringEntry<Ristretto255>,
    key: HeldKey,
}

impl EdgeService<'_> {
    /// Joins anonymously, again and again, until a signal comes.
    pub(super) async fn stay_anonymous(mut self, own: &Edge<Ristretto255>) -> Result<()> {
        let keypair = Arc::new(copy(&self.drone.deployment, own.keypair().ok_or(Error::NoToken)?)?);
        let memberships = Memberships {
            group: self.group(own)?,
            leaders: self.config.leader_addresses()?,
            client: self.drone.client(CALL_TIME)?,
            running: watch::Sender::new(None),
        };
        let (_control, calls) = Server::start(&self.config.drone.data_dir, Config::NAME)?;
        let mut tasks = JoinSet::new();
        let (running, client) = (memberships.running.subscribe(), memberships.client.clone());
        let around = Surroundings { situation: self.situation.clone(), queue: None };
        let waiting = SendQueue::open(&self.drone.store).len();
        if waiting > 0 {
            tracing::warn!(
                waiting,
                "queued messages are this drone's by name, and wait until it runs without --anonymous: 24 h at most"
            );
        }
        let own = (Arc::clone(&keypair), memberships.group.clone());
        tasks.spawn(answer(calls, running, around, client, own));
        let client = memberships.client.clone();
        tasks.spawn(async move { client.keep_fetching(&keypair).await });
        self.rejoin(&memberships).await
    }

    async fn rejoin(&mut self, memberships: &Memberships) -> Result<()> {
        let mut pause = self.config.edge.retry;
        // The credential that proves nothing new: showing it again would end the same way.
        let mut spent: Option<HeldKey> = None;
        loop {
            let held = tokio::select! {
                held = wait_for_credential(self.config, memberships, spent.as_ref()) => held?,
                signal = self.shutdown.requested() => {
                    tracing::info!(signal, "stopping");
                    return Ok(());
                }
            };
            let Some(ending) = self.run_once(memberships, &held).await? else { return Ok(()) };
            match ending {
                Ending::Left => return Ok(()),
                ending if ending.is_final() => spent = Some(held.key),
                _ => {
                    if ending == Ending::Dropped {
                        pause = self.config.edge.retry;
                    }
                    let share: f64 = OsRng.r#gen();
                    tokio::select! {
                        () = sleep(pause.mul_f64(0.5 + share)) => {}
                        _ = self.shutdown.requested() => return Ok(()),
                    }
                    pause = (pause * 2).min(self.config.edge.retry_max);
                }
            }
        }
    }

    /// Runs one machine from its start to its end; `None` if a signal came first.
    async fn run_once(
        &mut self,
        memberships: &Memberships,
        held: &StoredCredential,
    ) -> Result<Option<Ending>> {
        let Some(config) = tokio::task::block_in_place(|| self.anonymous(memberships, held)) else {
            // A credential of another period, or slot keys alone: the same as if it had ended.
            return Ok(Some(Ending::PeriodOver));
        };
        let machine = AnonymousEdge::new(config, EdgeHost::ledger(&self.drone.store).as_ref())?;
        let machine = with_parts::<AnyEdge<Ristretto255>>(Config::FEATURES, machine.into());
        let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng)?, Transport::SERVICE);
        node.dial = memberships.leaders.iter().map(|address| (Route::Leader, address.clone())).collect();
        node.topic = Some(group_topic(memberships.group.as_str()));
        node.identify = false;
        let (over, mut ended) = mpsc::channel(1);
        let (failures, _) = broadcast::channel(FAILURES);
        let keeping = Keeping::Anonymous(over);
        let host = EdgeHost { keeping, failures: failures.clone(), ..self.host() };
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        let leaders = Some(node.dial.len());
        let monitor = self.monitor(self.config.drone.metrics, handle.clone(), leaders).await?;
        memberships.running.send_replace(Some(RunningDrone::new(
            handle,
            memberships.client.clone(),
            PATHS,
            failures,
        )));
        let (_refused, mut refusals) = mpsc::channel(1);
        let goal = async { ended.recv().await.ok_or(Stopped.into()) };
        let ending = run_until(driver, &mut self.shutdown, &mut refusals, goal).await?;
        memberships.running.send_replace(None);
        self.situation.all_disconnected(clock::unix_now());
        monitor.close().await;
        Ok(ending)
    }

    fn anonymous(
        &self,
        memberships: &Memberships,
        held: &StoredCredential,
    ) -> Option<AnonymousConfig<Ristretto255>> {
        let told = |error: &dyn std::fmt::Display| tracing::error!(%error, "the credential does not hold");
        let terms = CertificationTerms::of(&held.entry.authority).inspect_err(|error| told(error)).ok()?;
        let certificate =
            Certificate::decode(&held.key.key, &terms, &mut OsRng).inspect_err(|error| told(error)).ok()?;
        let period = certificate.key().period();
        Some(AnonymousConfig {
            deployment: self.drone.deployment.clone(),
            group: memberships.group.clone(),
            authority: held.entry.authority.clone(),
            credential: certificate.into_credential()?,
            period,
            revocations: memberships.client.keys().revocations(),
            most: self.config.edge.answers,
            patience: PATIENCE,
            timing: self.config.timing(),
            kem: self.drone.file.kem,
        })
    }
}

/// Waits for a credential of the period that it is.
async fn wait_for_credential(
    config: &Config,
    memberships: &Memberships,
    spent: Option<&HeldKey>,
) -> Result<StoredCredential> {
    let mut told = false;
    loop {
        let keyring = memberships.client.keys().keyring()?;
        match current_credential(config, &keyring)? {
            Some(held) if spent != Some(&held.key) => return Ok(held),
            Some(_) => {}
            None if !told => {
                tracing::warn!("no valid credential yet; fetching one");
                told = true;
            }
            None => {}
        }
        sleep(LOOK).await;
    }
}

/// The credential to be shown, if it is of this period.
fn current_credential(config: &Config, keyring: &Keyring<Ristretto255>) -> Result<Option<StoredCredential>> {
    let wanted = config.edge.authority.as_deref();
    let entries = keyring.entries_of(KIND).filter(|entry| entry.key.is_some());
    let mut entries = entries.filter(|entry| wanted.is_none_or(|name| entry.authority.name.as_str() == name));
    let Some(entry) = entries.next() else { return Ok(None) };
    if let Some(other) = entries.next() {
        let (one, other) = (&entry.authority.name, &other.authority.name);
        let text = format!("fields are certified by {one} and {other}: give --authority NAME");
        return Err(Error::config(text));
    }
    let Some(key) = &entry.key else { return Ok(None) };
    let period = CertificationTerms::of(&entry.authority).map(|terms| terms.period_at(clock::unix_now()));
    if period.ok() != Certificate::period_of(&key.key).ok() {
        return Ok(None);
    }
    Ok(Some(StoredCredential { entry: entry.clone(), key: key.clone() }))
}

/// Answers requests; the machine is another one in each membership.
async fn answer(
    mut calls: mpsc::Receiver<Call<DroneRequest<control::EdgeRequest>>>,
    running: watch::Receiver<Option<RunningDrone<AnyEdge<Ristretto255>>>>,
    around: Surroundings,
    client: KeyClient,
    (keypair, group): (Arc<DroneKeypair<Ristretto255>>, Name),
) {
    while let Some(Call { request, answer }) = calls.recv().await {
        let running = running.borrow().clone();
        let answered = match (request, running) {
            (DroneRequest::Role(request @ control::EdgeRequest::Status), running) => {
                let known = match running {
                    Some(running) => control::answer(running, around.clone(), request).await.ok(),
                    None => None,
                };
                known.map_or_else(|| json(&EdgeStatusReply::idle(&group, &around.situation)), Ok)
            }
            (DroneRequest::Role(request), Some(running)) => {
                control::answer(running, around.clone(), request).await
            }
            (DroneRequest::Keys(request), _) if client.answers_anonymous(&request) => {
                let keypair = copy(client.keys().deployment(), &keypair).ok();
                let identity = DroneIdentity { keypair, revocations: RevocationStatement::empty() };
                json(&KeyAnswer::from(client.answer(identity, request).await))
            }
            _ => Err("not while this drone runs anonymously (`edge run --anonymous`)".into()),
        };
        // The caller may have stopped waiting.
        let _ = answer.send(answered);
    }
}
