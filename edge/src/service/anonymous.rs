//! `edge run --anonymous`: one membership without a name after another.
//!
//! Each has a machine, a transport key and connections of its own, and none of them knows who this drone is: only the fetches of
//! credentials and revocation lists do, which go to the KGC over connections of theirs. What is kept between memberships is in the state
//! file: how often which leader was answered.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{DroneKeypair, Name};
use quiver_net::{Driver, Handle, Multiaddr, NodeConfig, NodeKey, Transport, group_topic};
use quiver_role::admission::{AnonymousConfig, AnonymousEdge, Ending};
use quiver_role::attributes::certifying::{Certificate, KIND, Terms};
use quiver_role::{Edge, Envelopes, Node, QuorumSuite, Route, Snapshot};
use quiver_service::clock;
use quiver_service::control::Server;
use quiver_service::drone::fetch::{KeyClient, copy};
use quiver_service::keyring::{Entry, HeldKey, Keyring};
use quiver_service::shutdown::Shutdown;
use rand::Rng;
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::sleep;

use super::host::{EdgeHost, Keeping};
use super::{Drone, EdgeNode, FAILURES};
use crate::attributes;
use crate::control::{self, SendFailed};
use crate::error::{Error, Result};
use crate::store::Store;

/// How long a run of the exchange may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before the KGC is asked again whether anything is certified.
const AGAIN: Duration = Duration::from_secs(60);
/// How often to look whether a credential is of the period that it is now.
const LOOK: Duration = Duration::from_millis(500);

/// What the memberships have in common.
struct Plan<S: QuorumSuite> {
    store: Store,
    group: Name,
    leaders: Vec<Multiaddr>,
    client: KeyClient<S>,
    json: bool,
    failures: broadcast::Sender<SendFailed>,
    /// The machine that runs, for whoever asks.
    running: watch::Sender<Option<Handle<EdgeNode<S>>>>,
}

/// A credential of the period, as it is stored.
struct Held<S: QuorumSuite> {
    entry: Entry<S>,
    key: HeldKey,
}

impl<S: QuorumSuite> Drone<'_, S> {
    /// Joins without a name, again and again, until a signal comes.
    pub(super) async fn stay_anonymous(
        &self,
        store: Store,
        state: Option<Snapshot>,
        json: bool,
        mut shutdown: Shutdown,
    ) -> Result<()> {
        let named = Edge::new(self.settings(None, None), state.as_ref())?;
        let keypair = copy(&self.deployment, named.keypair().ok_or(Error::NoToken)?)?;
        let fetching = self.config.fetching(self.file, attributes::PATIENCE_OF_A_CALL)?;
        let (failures, _) = broadcast::channel(FAILURES);
        let plan = Plan {
            group: self.group(&store)?,
            leaders: self.config.leader_addresses()?,
            client: KeyClient::new(store.keys(&self.deployment), fetching),
            store,
            json,
            failures,
            running: watch::Sender::new(None),
        };
        let (_control, calls) = Server::start(&self.config.data_dir)?;
        let keypair = Arc::new(keypair);
        let answering = control::answer_anonymous(
            calls,
            plan.running.subscribe(),
            plan.failures.clone(),
            plan.client.clone(),
            (Arc::clone(&keypair), plan.group.clone()),
        );
        let fetching = fetch(plan.client.clone(), Arc::clone(&keypair));
        let tasks = [tokio::spawn(answering), tokio::spawn(fetching)];
        let ended = self.join_again_and_again(&plan, &mut shutdown).await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        ended
    }

    async fn join_again_and_again(&self, plan: &Plan<S>, shutdown: &mut Shutdown) -> Result<()> {
        let mut pause = self.config.retry;
        // What it is of no use to show again.
        let mut spent: Option<HeldKey> = None;
        loop {
            let held = tokio::select! {
                held = self.credential(plan, spent.as_ref()) => held?,
                signal = shutdown.requested() => {
                    tracing::info!(signal, "stopping");
                    return Ok(());
                }
            };
            let Some((ending, admitted)) = self.run_once(plan, &held, shutdown).await? else { return Ok(()) };
            match ending {
                Ending::Left => return Ok(()),
                ending if ending.is_final() => spent = Some(held.key),
                _ => {
                    if admitted {
                        pause = self.config.retry;
                    }
                    let share: f64 = OsRng.r#gen();
                    tokio::select! {
                        () = sleep(pause.mul_f64(0.5 + share)) => {}
                        _ = shutdown.requested() => return Ok(()),
                    }
                    pause = (pause * 2).min(self.config.retry_max);
                }
            }
        }
    }

    /// Waits for a credential of the period that it is.
    async fn credential(&self, plan: &Plan<S>, spent: Option<&HeldKey>) -> Result<Held<S>> {
        let mut told = false;
        loop {
            let keyring = plan.client.keys().keyring()?;
            match self.choose(&keyring)? {
                Some(held) if spent != Some(&held.key) => return Ok(held),
                Some(_) => {}
                None if !told => {
                    tracing::warn!("no credential of this period is held: nothing to show");
                    told = true;
                }
                None => {}
            }
            sleep(LOOK).await;
        }
    }

    /// The credential to be shown, if it is of this period.
    fn choose(&self, keyring: &Keyring<S>) -> Result<Option<Held<S>>> {
        let wanted = self.config.authority.as_deref();
        let entries = keyring.entries_of(KIND).filter(|entry| entry.key.is_some());
        let mut entries =
            entries.filter(|entry| wanted.is_none_or(|name| entry.authority.name.as_str() == name));
        let Some(entry) = entries.next() else { return Ok(None) };
        if let Some(other) = entries.next() {
            let (one, other) = (&entry.authority.name, &other.authority.name);
            let text = format!("fields are certified by {one} and {other}: give --authority NAME");
            return Err(Error::Config(text));
        }
        let Some(key) = &entry.key else { return Ok(None) };
        let period = Terms::of(&entry.authority).map(|terms| terms.period_at(clock::unix_now()));
        if period.ok() != Certificate::period_of(&key.key).ok() {
            return Ok(None);
        }
        Ok(Some(Held { entry: entry.clone(), key: key.clone() }))
    }

    /// One machine from its start to its end; none if a signal came first. Also whether it was a member.
    async fn run_once(
        &self,
        plan: &Plan<S>,
        held: &Held<S>,
        shutdown: &mut Shutdown,
    ) -> Result<Option<(Ending, bool)>> {
        let Some(config) = tokio::task::block_in_place(|| self.anonymous(plan, held)) else {
            // It is not of this period any more, or slot keys alone.
            return Ok(Some((Ending::Evicted, false)));
        };
        let machine = AnonymousEdge::new(config, plan.store.anonymous().as_ref())?;
        let machine = Node::new(machine.into(), Envelopes::default());
        let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng)?, Transport::TcpAndQuic);
        node.dial = plan.leaders.iter().map(|address| (Route::Leader, address.clone())).collect();
        node.topic = Some(group_topic(plan.group.as_str()));
        node.identify = false;
        let (over, mut ended) = mpsc::channel(1);
        let (milestones, _unheard) = mpsc::channel(1);
        let (store, json, failures) = (plan.store.clone(), plan.json, plan.failures.clone());
        let (keeping, metrics) = (Keeping::Anonymous(over), self.metrics.clone());
        let host = EdgeHost { store, keeping, json, milestones, failures, metrics };
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        let monitor = self.monitor(self.config.metrics, &handle, Some(node.dial.len())).await?;
        plan.running.send_replace(Some(handle.clone()));
        let (mut ending, mut admitted) = (None, false);
        driver
            .run(async {
                tokio::select! {
                    why = ended.recv() => ending = why,
                    signal = shutdown.requested() => tracing::info!(signal, "stopping"),
                }
                admitted = matches!(ending, Some(Ending::PeriodOver | Ending::Dropped | Ending::Evicted));
            })
            .await?;
        plan.running.send_replace(None);
        monitor.close().await;
        Ok(ending.map(|why| (why, admitted)))
    }

    fn anonymous(&self, plan: &Plan<S>, held: &Held<S>) -> Option<AnonymousConfig<S>> {
        let told = |error: &dyn std::fmt::Display| tracing::error!(%error, "the credential does not hold");
        let terms = Terms::of(&held.entry.authority).inspect_err(|error| told(error)).ok()?;
        let certificate =
            Certificate::decode(&held.key.key, &terms, &mut OsRng).inspect_err(|error| told(error)).ok()?;
        let period = certificate.key().period();
        Some(AnonymousConfig {
            deployment: self.deployment.clone(),
            group: plan.group.clone(),
            authority: held.entry.authority.clone(),
            credential: certificate.into_credential()?,
            period,
            revocations: plan.client.keys().revocations(),
            most: self.config.answers,
            patience: PATIENCE,
            timing: self.config.timing(),
        })
    }
}

/// Fetches credentials, in every period.
async fn fetch<S: QuorumSuite>(client: KeyClient<S>, keypair: Arc<DroneKeypair<S>>) {
    loop {
        client.keep_fetched(&keypair).await;
        sleep(AGAIN).await;
    }
}
