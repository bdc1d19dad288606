//! Reads the admission policy of `leader serve --admission`, and hands the gate the slot keys of each period.

use std::num::NonZero;
use std::path::Path;

use quiver_admission::certifying::{Certificate, CertificationTerms, KIND};
use quiver_admission::gate::GateTiming;
use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand, Demand, SignedPolicy, VerifiedPolicy};
use quiver_ainq::{Deployment, Name, Ristretto255};
use quiver_group::Leader;
use quiver_machine::Either;
use quiver_service::armour::{self, ArmourKind};
use quiver_service::drone::feature::{
    GateTask, GroupLeader, GroupLeaderCommand, LeaderBehindGate, LeaderGate, PartCommand,
};
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::keys::Keys;
use quiver_service::drone::{Error, Result, RunningDrone};
use quiver_service::keyring::{Keyring, KeyringEntry};
use quiver_service::{Exit, clock};
use rand::rngs::OsRng;

use crate::gated_leader::LeaderWithPolicy;
use crate::leader_settings::AdmissionSettings;

/// Pieces of the gate's work that are done at a time, at most.
const MAX_WORKERS: usize = 4;

/// Error of a policy that cannot be demanded.
#[derive(Debug, thiserror::Error)]
#[error("policy {path}: {reason}")]
struct PolicyError {
    /// The file.
    path: String,
    /// The reason, and the remedy.
    reason: String,
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Self {
        Self::Feature { error: Box::new(error), exit: Exit::Usage }
    }
}

impl LeaderGate for AdmissionSettings {
    fn lacks_authorities(&self, group: &Name, keys: &Keys) -> Result<bool> {
        let Some(path) = &self.admission else { return Ok(false) };
        Ok(!PolicyFile::read(path, keys.deployment(), group)?.is_known(&keys.keyring()?))
    }

    fn put_before(&self, leader: Leader<Ristretto255>, keys: &Keys) -> Result<LeaderBehindGate> {
        let group = leader.status().group;
        let machine = AdmittingLeader::from(leader);
        let Some(path) = &self.admission else {
            return Ok(LeaderBehindGate { machine: Box::new(LeaderWithPolicy(machine)), task: None });
        };
        let wanted = PolicyFile::read(path, keys.deployment(), &group)?;
        let demand = wanted.demand(&keys.keyring()?)?;
        let authority = *demand.authority.fingerprint();
        let machine = machine.demanding(demand, clock::unix_now()).map_err(|error| wanted.wrong(error))?;
        let task: GateTask = Box::new(move |running| Box::pin(keep_slot_keys(running, authority)));
        Ok(LeaderBehindGate { machine: Box::new(LeaderWithPolicy(machine)), task: Some(task) })
    }
}

/// A policy as it came in a file.
struct PolicyFile {
    path: String,
    policy: VerifiedPolicy<Ristretto255>,
}

impl PolicyFile {
    /// Reads the file and checks all that can be checked without the authority: signature, group, end.
    fn read(path: &Path, deployment: &Deployment<Ristretto255>, group: &Name) -> Result<Self> {
        let bytes = armour::read(path, ArmourKind::AdmissionPolicy)?;
        let path = path.display().to_string();
        let wrong = |reason: String| Error::from(PolicyError { path: path.clone(), reason });
        let policy = SignedPolicy::decode(&bytes).and_then(|policy| policy.verify(deployment));
        let policy =
            policy.map_err(|error| wrong(format!("the KGC of this deployment did not sign it: {error}")))?;
        if policy.group != *group {
            return Err(wrong(format!("for leaders of {}, and this one leads {group}", policy.group)));
        }
        if clock::unix_now() >= policy.not_after {
            let over = clock::format(policy.not_after);
            return Err(wrong(format!(
                "over since {over}; have the KGC sign another one (`kgc abke policy`)"
            )));
        }
        Ok(Self { path, policy })
    }

    /// Returns true if the authority of the policy is known already.
    fn is_known(&self, keyring: &Keyring<Ristretto255>) -> bool {
        self.entry(keyring).is_some()
    }

    fn entry<'a>(&self, keyring: &'a Keyring<Ristretto255>) -> Option<&'a KeyringEntry<Ristretto255>> {
        keyring.entries_of(KIND).find(|entry| *entry.authority.fingerprint() == self.policy.authority)
    }

    /// The demand of this policy, once the authority is known.
    fn demand(&self, keyring: &Keyring<Ristretto255>) -> Result<Demand<Ristretto255>> {
        let unknown = || {
            self.wrong("the KGC names no authority with this fingerprint: is the policy of this deployment?")
        };
        let authority = self.entry(keyring).ok_or_else(unknown)?.authority.clone();
        // The loop has a processor for itself, if there are two.
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let workers = processors.saturating_sub(1).clamp(1, MAX_WORKERS);
        let timing = GateTiming { workers, ..GateTiming::default() };
        Ok(Demand { policy: self.policy.clone(), authority, timing })
    }

    /// The error of a policy that cannot be demanded.
    fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        PolicyError { path: self.path.clone(), reason: reason.to_string() }.into()
    }
}

/// Keeps the gate in slot keys: those that are held at once, those that are fetched as soon as they are
/// stored.
async fn keep_slot_keys(running: RunningDrone<GroupLeader>, authority: [u8; 32]) {
    let keypair = running.enrolled().await;
    let mut changes = running.client.keys().changes();
    let handing_over = async {
        let mut handed = None;
        loop {
            hand_over(&running, &authority, &mut handed).await;
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = handing_over => {}
        () = running.client.keep_fetching(&keypair) => {}
    }
}

/// Gives the machine the slot keys that are held, unless it has those of that period.
async fn hand_over(running: &RunningDrone<GroupLeader>, authority: &[u8; 32], handed: &mut Option<u64>) {
    let found = tokio::task::block_in_place(|| slot_keys(&running.client, authority, *handed));
    match found {
        Ok(None) => {}
        Ok(Some((period, command))) => {
            tracing::info!("slot keys of period {period} are in use");
            *handed = Some(period);
            // If the machine has stopped, the keys are not needed.
            let command = GroupLeaderCommand::Gate(PartCommand::new(command));
            let _ = running.machine.command(Either::Left(command)).await;
        }
        Err(error) => tracing::error!("no slot keys: {error}"),
    }
}

type SlotKeys = Option<(u64, AdmittingLeaderCommand)>;

fn slot_keys(
    client: &KeyClient,
    authority: &[u8; 32],
    handed: Option<u64>,
) -> std::result::Result<SlotKeys, String> {
    let keyring = client.keys().keyring().map_err(|error| error.to_string())?;
    let mut entries = keyring.entries_of(KIND);
    let Some(entry) = entries.find(|entry| entry.authority.fingerprint() == authority) else {
        return Ok(None);
    };
    let Some(held) = &entry.key else { return Ok(None) };
    let told = |error: quiver_admission::certifying::CertifyError| error.to_string();
    if Some(Certificate::period_of(&held.key).map_err(told)?) == handed {
        return Ok(None);
    }
    let terms = CertificationTerms::of(&entry.authority).map_err(told)?;
    let certificate = Certificate::decode(&held.key, &terms, &mut OsRng).map_err(told)?;
    Ok(Some((certificate.key().period(), AdmittingLeaderCommand::SlotKeys(certificate.key().clone()))))
}
