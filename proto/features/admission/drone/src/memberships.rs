//! Anonymous memberships of an edge (`edge run --anonymous`), one after another.
//!
//! Each has a machine, a transport key and connections of its own, and none of them contains this drone's
//! identity: only the fetches of credentials and revocation lists use it, over separate connections to the
//! KGC. The state file keeps only the counts of answers per leader between memberships.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quiver_admission::certifying::{Certificate, CertificationTerms, KIND};
use quiver_admission::{AnonymousConfig, AnonymousEdge, AnonymousEvent, Ending};
use quiver_ainq::Ristretto255;
use quiver_machine::Snapshot;
use quiver_service::clock;
use quiver_service::drone::feature::{EnrolledDrone, MembershipEvent, MembershipRunner, Memberships};
use quiver_service::drone::{Error, Result};
use quiver_service::keyring::{HeldKey, Keyring, KeyringEntry};
use rand::Rng;
use rand::rngs::OsRng;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::edge_settings::AnonymousSettings;
use crate::member::{AnonymousMember, ReportedMembership};

/// Attachment: what an anonymous edge persists. Named so since the first version.
const ANONYMOUS: &str = "unnamed";
/// Time limit of a run of the exchange.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which it is checked whether a credential of the current period is stored.
const LOOK: Duration = Duration::from_millis(500);

/// A credential of the period, as it is stored.
struct StoredCredential {
    entry: KeyringEntry<Ristretto255>,
    key: HeldKey,
}

#[async_trait(?Send)]
impl Memberships for AnonymousSettings {
    fn setting(&self) -> &'static str {
        "anonymous"
    }

    fn advice(&self) -> &'static str {
        "it waits for a credential of this period; see `edge abke status`"
    }

    fn attachment(&self) -> &'static str {
        ANONYMOUS
    }

    async fn keep(&self, drone: &EnrolledDrone, runner: &mut dyn MembershipRunner) -> Result<()> {
        let (client, keypair) = (drone.client.clone(), Arc::clone(&drone.keypair));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { client.keep_fetching(&keypair).await });
        self.rejoin(drone, runner).await
    }
}

impl AnonymousSettings {
    async fn rejoin(&self, drone: &EnrolledDrone, runner: &mut dyn MembershipRunner) -> Result<()> {
        let mut pause = drone.timing.retry;
        // The credential that proves nothing new: showing it again would end the same way.
        let mut spent: Option<HeldKey> = None;
        loop {
            let held = tokio::select! {
                held = self.wait_for_credential(drone, spent.as_ref()) => held?,
                () = runner.stopped() => return Ok(()),
            };
            let Some(ending) = self.run_once(drone, runner, &held).await? else { return Ok(()) };
            match ending {
                Ending::Left => return Ok(()),
                ending if ending.is_final() => spent = Some(held.key),
                _ => {
                    if ending == Ending::Dropped {
                        pause = drone.timing.retry;
                    }
                    let share: f64 = OsRng.r#gen();
                    tokio::select! {
                        () = sleep(pause.mul_f64(0.5 + share)) => {}
                        () = runner.stopped() => return Ok(()),
                    }
                    pause = (pause * 2).min(drone.timing.retry_max);
                }
            }
        }
    }

    /// Runs one machine from its start to its end; `None` if a signal came first.
    async fn run_once(
        &self,
        drone: &EnrolledDrone,
        runner: &mut dyn MembershipRunner,
        held: &StoredCredential,
    ) -> Result<Option<Ending>> {
        let Some(config) = tokio::task::block_in_place(|| self.config(drone, held)) else {
            // A credential of another period, or slot keys alone: the same as if it had ended.
            return Ok(Some(Ending::PeriodOver));
        };
        let ledger = drone.store.attachment(ANONYMOUS).map(Snapshot::new);
        let machine = AnonymousMember(AnonymousEdge::new(config, ledger.as_ref())?);
        Ok(runner.run(Box::new(machine)).await?.and_then(ending))
    }

    fn config(
        &self,
        drone: &EnrolledDrone,
        held: &StoredCredential,
    ) -> Option<AnonymousConfig<Ristretto255>> {
        let told = |error: &dyn std::fmt::Display| tracing::error!(%error, "the credential does not hold");
        let terms = CertificationTerms::of(&held.entry.authority).inspect_err(|error| told(error)).ok()?;
        let certificate =
            Certificate::decode(&held.key.key, &terms, &mut OsRng).inspect_err(|error| told(error)).ok()?;
        let period = certificate.key().period();
        Some(AnonymousConfig {
            deployment: drone.deployment.clone(),
            group: drone.group.clone(),
            authority: held.entry.authority.clone(),
            credential: certificate.into_credential()?,
            period,
            revocations: drone.client.keys().revocations(),
            most: self.answers,
            patience: PATIENCE,
            timing: drone.timing,
            kem: drone.kem,
        })
    }

    /// Waits for a credential of the period that it is.
    async fn wait_for_credential(
        &self,
        drone: &EnrolledDrone,
        spent: Option<&HeldKey>,
    ) -> Result<StoredCredential> {
        let mut told = false;
        loop {
            let keyring = drone.client.keys().keyring()?;
            match self.current_credential(&keyring)? {
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
    fn current_credential(&self, keyring: &Keyring<Ristretto255>) -> Result<Option<StoredCredential>> {
        let wanted = self.authority.as_deref();
        let entries = keyring.entries_of(KIND).filter(|entry| entry.key.is_some());
        let mut entries =
            entries.filter(|entry| wanted.is_none_or(|name| entry.authority.name.as_str() == name));
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
}

/// The end that an event reports.
fn ending(event: Box<dyn MembershipEvent>) -> Option<Ending> {
    let event: Box<dyn Any> = event;
    match event.downcast::<ReportedMembership>().ok()?.0 {
        AnonymousEvent::Ended(why) => Some(why),
        AnonymousEvent::Edge(_) | AnonymousEvent::Admitted { .. } => None,
    }
}
