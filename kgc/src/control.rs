//! Requests to a running KGC, how a single one answers them, and what commands say of their effect.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{AuthorityStatement, Deployment, Purpose, Ristretto255};
use quiver_net::Handle;
use quiver_service::control::{Call, TimeLimit, USUAL_TIME, call_if_running};
use rand::rngs::OsRng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::audit_head::{HeadFile, SharedFile, lock};
use crate::changes::Asked;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::features;
use crate::kgc_machine::KgcMachine;
use crate::registry::Registrar;
use crate::sealed::{KgcSecrets, MasterFile};
use crate::store::NextLine;

/// Time to check a registry of millions of rows.
const CHECK_TIME: Duration = Duration::from_secs(600);

/// Request to the running service, alone or in a quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KgcRequest {
    /// Take up what the command line wrote into the registry, now.
    TakeChanges,
    /// Query of the last line of the audit table that is noted in the file with the secrets.
    AuditHead,
    /// Authenticate a line that is about to be added to the audit table, and the rows that it vouches for by their
    /// digest.
    Authenticate { line: NextLine, rows: [u8; 32] },
    /// Check the whole registry.
    CheckRegistry,
    /// Have this statement (hex) signed; in a quorum, wait until enough others approved it.
    Propose { body: String, wait: u64 },
    /// Query whether a list tells that the drone of this serial (hex) is revoked; in a quorum also how many KGCs
    /// want it.
    Revocation { serial: String },
}

impl TimeLimit for KgcRequest {
    fn time_limit(&self) -> Duration {
        match self {
            Self::Propose { wait, .. } => Duration::from_secs(*wait).saturating_add(USUAL_TIME),
            Self::CheckRegistry => CHECK_TIME,
            _ => USUAL_TIME,
        }
    }
}

/// Progress of the revocation of a drone by a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevocationProgress {
    /// KGCs that want it, this one included, as far as is known here.
    pub(crate) wanting: usize,
    /// True if the list that the quorum signed names the drone.
    pub(crate) revoked: bool,
}

/// Answer to a request; an error is a refusal in words.
pub(crate) type ControlAnswer = std::result::Result<Value, String>;

/// Has the running service read the registry, and waits until it has acted on what is new.
pub(crate) async fn take_changes(changes: &mpsc::Sender<Asked>) -> ControlAnswer {
    let (asked, taken) = oneshot::channel();
    let ending = || "the service is ending".to_owned();
    changes.send(asked).await.map_err(|_| ending())?;
    taken.await.map_err(|_| ending())?.map(|()| Value::Null)
}

/// A drone's serial, of hex digits.
pub(crate) fn read_serial(text: &str) -> std::result::Result<[u8; 16], String> {
    let mut serial = [0; 16];
    let wrong = |_| "a serial has 32 hex digits".to_owned();
    hex::decode_to_slice(text, &mut serial).map(|()| serial).map_err(wrong)
}

/// The MAC of a line that a command adds to the audit table.
pub(crate) fn authenticate(registrar: &Registrar, line: NextLine, rows: &[u8; 32]) -> ControlAnswer {
    let mac = tokio::task::block_in_place(|| registrar.authenticate(line, rows))
        .map_err(|error| error.to_string())?;
    serde_json::to_value(mac).map_err(|error| error.to_string())
}

/// Differences of the registry from what its KGC wrote.
pub(crate) fn check_registry(registrar: &Registrar) -> ControlAnswer {
    let findings = tokio::task::block_in_place(|| registrar.check()).map_err(|error| error.to_string())?;
    serde_json::to_value(findings).map_err(|error| error.to_string())
}

/// The head of the audit table that is noted in the file with the secrets, or null.
pub(crate) fn noted_head<F: HeadFile>(file: &SharedFile<F>) -> ControlAnswer {
    serde_json::to_value(lock(file).noted()).map_err(|error| error.to_string())
}

/// A single KGC that answers requests.
pub(crate) struct SingleServer {
    pub(crate) machine: Handle<KgcMachine>,
    pub(crate) deployment: Deployment<Ristretto255>,
    /// The file with the master secret, locked; it is read when something is to be signed.
    pub(crate) master: SharedFile<MasterFile>,
    pub(crate) registrar: Registrar,
    pub(crate) changes: mpsc::Sender<Asked>,
}

impl SingleServer {
    /// Answers requests until the service ends.
    pub(crate) async fn answer(self, mut calls: mpsc::Receiver<Call<KgcRequest>>) {
        let server = Arc::new(self);
        while let Some(Call { request, answer }) = calls.recv().await {
            let server = Arc::clone(&server);
            // Some wait until the machine takes commands again, as while the disk is full.
            tokio::spawn(async move {
                // The command line may have been interrupted.
                let _ = answer.send(server.answer_one(request).await);
            });
        }
    }

    async fn answer_one(&self, request: KgcRequest) -> ControlAnswer {
        match request {
            KgcRequest::TakeChanges => take_changes(&self.changes).await,
            KgcRequest::AuditHead => noted_head(&self.master),
            KgcRequest::Authenticate { line, rows } => authenticate(&self.registrar, line, &rows),
            KgcRequest::CheckRegistry => check_registry(&self.registrar),
            KgcRequest::Propose { body, .. } => tokio::task::block_in_place(|| self.sign(&body)),
            KgcRequest::Revocation { serial } => self.revocation(&serial).await,
        }
    }

    /// Answers if the newest list tells everybody that a drone is revoked.
    async fn revocation(&self, serial: &str) -> ControlAnswer {
        let serial = read_serial(serial)?;
        let look = move |machine: &KgcMachine| machine.node().awaits_revocation(&serial);
        let awaits = self.machine.inspect(look).await.map_err(|error| error.to_string())?;
        let progress = RevocationProgress { wanting: 1, revoked: !awaits };
        serde_json::to_value(progress).map_err(|error| error.to_string())
    }

    /// Signs a statement about an authority or a policy of admission, and nothing else.
    fn sign(&self, body: &str) -> ControlAnswer {
        let body = hex::decode(body).map_err(|error| error.to_string())?;
        let purpose = if AuthorityStatement::<Ristretto255>::decode(&body).is_ok() {
            Purpose::Parameters
        } else {
            features::purpose_of(&body)
                .ok_or("this is neither a statement about an authority nor a policy of admission")?
        };
        let sealed = KgcSecrets::read(&mut lock(&self.master)).map_err(|error| error.to_string())?;
        let signature = sealed.master.sign(&self.deployment, purpose, &body, &mut OsRng);
        tracing::info!(purpose = purpose.as_str(), "statement signed for the command line");
        Ok(hex::encode(signature.encode()).into())
    }
}

/// Asks the running KGC, if there is one, of a command that needs no runtime otherwise.
pub(crate) fn ask_if_running<A: DeserializeOwned>(
    config: &Config,
    request: &KgcRequest,
) -> Result<Option<A>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(call_if_running(&config.data_dir, "kgc", request))?)
}

/// Has the running KGC take up a change that was just recorded. Returns when it is in effect.
pub(crate) fn effect(config: &Config) -> String {
    match ask_if_running::<()>(config, &KgcRequest::TakeChanges) {
        Ok(Some(())) => "in effect at the running `kgc serve`".into(),
        Ok(None) => "in effect as soon as `kgc serve` runs".into(),
        Err(Error::Service(quiver_service::Error::Refused(reason))) => {
            format!("recorded, and not in effect at the running `kgc serve` yet: {reason}")
        }
        Err(error) => {
            format!("recorded; whether it is in effect at the running `kgc serve` is not known: {error}")
        }
    }
}
