//! Fetches attribute keys: a node of its own dials the KGC, asks every authority, and stops.
//!
//! So that no drone of thousands keeps a connection to the KGC, and none of its business mixes with the
//! group's. The node has a fresh transport key: who the drone is, its signatures say.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::keyring::{HeldKey, Keyring, KeyringEntry};
use crate::{clock, terminal};
use quiver_ainq::{Deployment, DroneKeypair, Name, Ristretto255, SignedAuthority, UnixTime};
use quiver_delivery::Standalone;
use quiver_delivery::attributes::{FetchEvent, FetchTiming, Fetcher, KeyResponse};
use quiver_machine::{Machine, RefusalReason, Route};
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, Transport};
use rand::Rng;
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::drone::feature::{self, CommandFeature, Features, PartCommand};
use crate::drone::keys::Keys;
use crate::drone::{Error, Result};

/// Wait after the first fetch in the background that was not confirmed by all authorities; doubles from
/// there.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest such wait.
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

/// Configuration of a fetch.
#[derive(Clone, Debug)]
pub struct FetchPlan {
    /// Addresses of KGCs.
    pub kgcs: Vec<Multiaddr>,
    /// Time settings of the machine.
    pub timing: FetchTiming,
    /// Time limit of the fetch.
    pub time_limit: Duration,
}

/// Outcome of a fetch at one authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchOutcome {
    /// A key came that was not held before.
    NewKey,
    /// The key of the grant in force was held already.
    Held,
    /// The KGC grants no key, and none was held.
    NothingGranted,
    /// The grant was withdrawn: the key that was held is erased.
    Withdrawn,
    /// A key is held and kept, though the authority knows of no grant to this drone.
    NoGrantKnown,
}

impl FetchOutcome {
    /// Describes the outcome for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NewKey => "new key",
            Self::Held => "key held already",
            Self::NothingGranted => "nothing granted",
            Self::Withdrawn => "grant withdrawn; key erased",
            Self::NoGrantKnown => "no grant known there; key kept",
        }
    }
}

/// Report of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchReport {
    /// Outcome at each authority that answered, by name.
    pub answered: Vec<(String, FetchOutcome)>,
    /// The KGC's refusals, in words.
    pub refused: Vec<String>,
}

impl FetchReport {
    /// Returns true if every authority that was asked answered, and at least one. Only what was answered is
    /// authenticated.
    pub const fn is_confirmed(&self) -> bool {
        !self.answered.is_empty() && self.refused.is_empty()
    }

    /// Returns true if anything that is held changed.
    pub fn changed(&self) -> bool {
        self.answered
            .iter()
            .any(|(_, outcome)| matches!(outcome, FetchOutcome::NewKey | FetchOutcome::Withdrawn))
    }

    /// Describes the report for people.
    pub fn describe(&self) -> String {
        let answered = self.answered.iter().map(|(name, outcome)| format!("{name}: {}", outcome.describe()));
        let refused = self.refused.iter().map(|reason| format!("refused: {reason}"));
        answered.chain(refused).collect::<Vec<_>>().join("\n")
    }

    /// Prints the report.
    ///
    /// # Errors
    /// [`Error::Incomplete`] after printing if anything was refused, and those of standard output.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            terminal::json(self)?;
        } else {
            terminal::line(&self.describe())?;
        }
        if self.is_confirmed() { Ok(()) } else { Err(Error::Incomplete) }
    }
}

/// A drone's client at the KGCs: one fetch at a time. Clones share that.
#[derive(Clone, Debug)]
pub struct KeyClient {
    features: Features,
    keys: Keys,
    plan: FetchPlan,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl KeyClient {
    /// A client for this keyring, of a program with these features.
    pub fn new(features: Features, keys: Keys, plan: FetchPlan) -> Self {
        Self { features, keys, plan, turn: Arc::default() }
    }

    /// The keyring.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Addresses and times of its fetches.
    pub fn plan(&self) -> &FetchPlan {
        &self.plan
    }

    /// The feature whose subcommand has this name.
    ///
    /// # Errors
    /// [`Error::Answered`] if this program was built without it.
    pub(crate) fn feature(&self, name: &str) -> Result<&'static dyn CommandFeature> {
        feature::find(self.features, name)
    }

    /// The commands that give the parts of a machine what they use of the keyring.
    pub(crate) fn part_keys(&self, keyring: &Keyring<Ristretto255>) -> Vec<PartCommand> {
        feature::keys(self.features, keyring)
    }

    /// Fetches everything that is granted to the drone with this key and stores it, each key as it comes.
    /// Needs a tokio runtime with several threads.
    ///
    /// # Errors
    /// [`Error::Refused`] if everything is refused, [`Error::NotConfirmed`] if no authority is named,
    /// [`Error::TimedOut`], and those of storing and of the network.
    pub async fn fetch(&self, keypair: &DroneKeypair<Ristretto255>) -> Result<FetchReport> {
        let keypair = copy(self.keys.deployment(), keypair)?;
        let _turn = self.turn.lock().await;
        fetch(&self.keys, keypair, &self.plan).await
    }

    /// Fetches in every period, also while nothing is certified yet.
    pub async fn keep_fetching(&self, keypair: &DroneKeypair<Ristretto255>) {
        loop {
            self.keep_fetched(keypair).await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Fetches in the background, again and again until every authority has answered in one fetch, and once
    /// more whenever a held key has ended; returns if no key ends. Neither a refusal nor a list without
    /// authorities stops it: an attacker between drone and KGC can forge both.
    pub async fn keep_fetched(&self, keypair: &DroneKeypair<Ristretto255>) {
        let mut again = AGAIN;
        loop {
            match self.fetch(keypair).await {
                Ok(report) if report.is_confirmed() => {
                    tracing::info!(changed = report.changed(), "attribute keys are up to date");
                    let keyring = match self.keys.keyring() {
                        Ok(keyring) => keyring,
                        Err(error) => return tracing::error!(%error, "attribute keys"),
                    };
                    let Some(end) = feature::first_end(self.features, &keyring) else { return };
                    tokio::time::sleep(until_next(end, clock::unix_now(), OsRng.r#gen())).await;
                    again = AGAIN;
                    continue;
                }
                Ok(_) => tracing::warn!("attribute keys: refused for some authorities"),
                Err(
                    error @ (Error::TimedOut(_) | Error::Net(_) | Error::Refused(_) | Error::NotConfirmed),
                ) => {
                    tracing::warn!(%error, "attribute keys");
                }
                Err(error) => return tracing::error!(%error, "attribute keys"),
            }
            tokio::time::sleep(again).await;
            again = (again * 2).min(AGAIN_AT_MOST);
        }
    }
}

/// Time to wait until a period that ends at `end` has ended for the KGC too; longer by `share` of a tenth, so
/// that not all drones ask at once.
fn until_next(end: UnixTime, now: UnixTime, share: f64) -> Duration {
    /// Clocks differ.
    const MARGIN: u64 = 2;
    /// However long the period is.
    const SPREAD_AT_MOST: f64 = 60.0;
    let left = end.saturating_sub(now).saturating_add(MARGIN);
    let spread = (Duration::from_secs(left).as_secs_f64() / 10.0).min(SPREAD_AT_MOST);
    Duration::from_secs(left) + Duration::from_secs_f64(spread * share.clamp(0.0, 1.0))
}

/// A drone's key once more: each machine has its own.
///
/// # Errors
/// [`Error::Keyring`], never for a key of this deployment.
pub fn copy(
    deployment: &Deployment<Ristretto255>,
    keypair: &DroneKeypair<Ristretto255>,
) -> Result<DroneKeypair<Ristretto255>> {
    let secret = keypair.to_bytes();
    DroneKeypair::restore(deployment, keypair.public().clone(), &secret).map_err(Error::Keyring)
}

async fn fetch(keys: &Keys, keypair: DroneKeypair<Ristretto255>, plan: &FetchPlan) -> Result<FetchReport> {
    let deployment = keys.deployment().clone();
    let fetcher = Fetcher::new(&deployment, keys.held()?, plan.timing).map_err(Error::Keyring)?;
    let fetcher = fetcher.asking_for_revocations(keys.revocation_number()?);
    let fetcher = Standalone::client(deployment, keypair, fetcher);
    let fetching = |_, mut events| async move {
        let mut collected = Collected::default();
        let listened = timeout(plan.time_limit, collected.listen(keys, &mut events)).await;
        listened.map_err(|_| Error::TimedOut(plan.time_limit))??;
        Ok::<_, Error>(collected)
    };
    match run_client(&plan.kgcs, fetcher, fetching).await? {
        Collected { report, last_refusal: Some(reason) } if report.answered.is_empty() => {
            Err(Error::Refused(reason))
        }
        Collected { report, .. } if report.answered.is_empty() => Err(Error::NotConfirmed),
        Collected { report, .. } => Ok(report),
    }
}

/// Runs a client of the KGCs over a node of its own, with a fresh transport key, until `work` is done with
/// its events.
///
/// # Errors
/// [`Error::NoAddress`], those of the network, and those of `work`.
pub async fn run_client<M, T, E, F>(
    kgcs: &[Multiaddr],
    machine: M,
    work: impl FnOnce(Handle<M>, mpsc::UnboundedReceiver<M::Event>) -> F,
) -> std::result::Result<T, E>
where
    M: Machine<Record = Infallible> + Send,
    M::Command: Send,
    M::Event: Send,
    E: From<Error>,
    F: Future<Output = std::result::Result<T, E>>,
{
    if kgcs.is_empty() {
        return Err(Error::NoAddress.into());
    }
    let key = NodeKey::random(&mut OsRng).map_err(Error::from)?;
    let mut node = NodeConfig::spoke(key, Transport::SERVICE);
    node.dial = kgcs.iter().map(|address| (Route::Kgc, address.clone())).collect();
    let (events, heard) = mpsc::unbounded_channel();
    let driver = Driver::new(&node, machine, EventSender(events), OsRng);
    let (driver, handle) = driver.map_err(Error::from)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let working = work(handle, heard);
    let working = async {
        let done = working.await;
        // The driver waits for it.
        let _ = stop.send(());
        done
    };
    let running = driver.run(async move {
        // Sent or dropped, there is nothing left to do.
        let _ = stopped.await;
    });
    let (done, ran) = tokio::join!(working, running);
    ran.map_err(Error::from)?;
    done
}

/// Answers collected so far.
#[derive(Default)]
struct Collected {
    report: FetchReport,
    last_refusal: Option<RefusalReason>,
}

impl Collected {
    async fn listen(&mut self, keys: &Keys, heard: &mut mpsc::UnboundedReceiver<FetchEvent>) -> Result<()> {
        while let Some(event) = heard.recv().await {
            match event {
                FetchEvent::Answered { authority, statement, response } => {
                    let outcome =
                        tokio::task::block_in_place(|| store(keys, &authority, &statement, response))?;
                    tracing::info!(%authority, outcome = outcome.describe(), "attribute authority answered");
                    self.report.answered.push((authority.to_string(), outcome));
                }
                FetchEvent::RevocationList { number, list } => {
                    tokio::task::block_in_place(|| keys.put_revocations(&list))?;
                    tracing::info!(number, "revocation list fetched");
                }
                FetchEvent::Refused(reason) => {
                    tracing::warn!(%reason, "the KGC refuses an attribute key");
                    if !matches!(reason, RefusalReason::BadCookie | RefusalReason::Busy) {
                        self.report.refused.push(reason.to_string());
                        self.last_refusal = Some(reason);
                    }
                }
                FetchEvent::Blamed { offence, .. } => {
                    tracing::warn!("rejected a message from the KGC: {offence}");
                }
                FetchEvent::Done { .. } => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }
}

fn store(keys: &Keys, name: &Name, statement: &[u8], response: KeyResponse) -> Result<FetchOutcome> {
    let authority = SignedAuthority::decode(statement)
        .and_then(|statement| statement.verify(keys.deployment()))
        .map_err(Error::Keyring)?;
    let held = keys.keyring()?.entry(name).and_then(|entry| entry.key.clone());
    let (key, outcome) = match response {
        KeyResponse::Key { grant, key } => (Some(HeldKey { grant, key }), FetchOutcome::NewKey),
        KeyResponse::Held { .. } => (held, FetchOutcome::Held),
        KeyResponse::Withdrawn if held.is_some() => (None, FetchOutcome::Withdrawn),
        KeyResponse::Nothing if held.is_some() => (held, FetchOutcome::NoGrantKnown),
        KeyResponse::Withdrawn | KeyResponse::Nothing => (None, FetchOutcome::NothingGranted),
    };
    keys.put(KeyringEntry { authority, key })?;
    Ok(outcome)
}

/// Passes on what a client reports.
struct EventSender<E>(mpsc::UnboundedSender<E>);

impl<M: Machine<Record = Infallible, Event: Send>> Host<M> for EventSender<M::Event> {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &M, event: M::Event) {
        // The listener may have stopped.
        let _ = self.0.send(event);
    }
}
