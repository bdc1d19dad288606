//! Requests to a running KGC of a quorum, and the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_message::quorum::CeremonyKind;
use quiver_net::Handle;
use quiver_quorum_node::{QuorumCommand, QuorumEvent};
use quiver_service::control::{Call, TimeLimit, USUAL_TIME};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};
use tokio::time::timeout;

use super::describe;
use super::file::Pinned;
use super::node::{QuorumKgc, QuorumKgcCommand};
use super::sealed::QuorumState;
use super::status::{self, KgcStatus};
use crate::audit_head::SharedFile;
use crate::changes::Asked;
use crate::control::{
    KgcRequest, RevocationProgress, authenticate, check_registry, noted_head, read_serial, take_changes,
};
use crate::registry::Registrar;

/// Request to a running KGC of a quorum, beside those to every KGC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QuorumRequest {
    /// Query of the whole state.
    Status,
    /// Make new shares, and wait.
    Refresh { wait: u64 },
    /// Ask the others for the shares that are lost, and wait.
    Repair { wait: u64 },
    /// Help this KGC to its shares.
    HelpRepair { kgc: KgcId },
    /// Sign the statement with this digest (hex) if it is proposed.
    Approve { digest: String },
    /// Do not.
    Withdraw { digest: String },
    /// Leave a ceremony.
    Abandon,
    /// Go on although not all have confirmed.
    Adopt,
}

impl TimeLimit for QuorumRequest {
    fn time_limit(&self) -> Duration {
        match self {
            Self::Refresh { wait } | Self::Repair { wait } => {
                Duration::from_secs(*wait).saturating_add(USUAL_TIME)
            }
            _ => USUAL_TIME,
        }
    }
}

/// Request that a KGC of a quorum answers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum MemberRequest {
    /// One to every KGC.
    Kgc(KgcRequest),
    /// One to a KGC of a quorum.
    Quorum(QuorumRequest),
}

impl TimeLimit for MemberRequest {
    fn time_limit(&self) -> Duration {
        match self {
            Self::Kgc(request) => request.time_limit(),
            Self::Quorum(request) => request.time_limit(),
        }
    }
}

/// Event that the machine reports to waiting requests.
#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// An event of the machine.
    Event(QuorumEvent),
    /// The command of this number was carried out.
    Taken(u64),
}

/// Result of a command that takes time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CommandOutcome {
    /// New shares are in force.
    Done { version: u32 },
    /// Not yet; it goes on.
    Pending,
}

/// Handles that requests are answered with.
#[derive(Clone)]
pub(crate) struct ControlServer {
    pub(crate) machine: Handle<QuorumKgc>,
    /// The file with the shares.
    pub(crate) state: SharedFile<QuorumState>,
    pub(crate) events: broadcast::Sender<ControlEvent>,
    /// Number of commands given.
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) pinned: Pinned,
    pub(crate) id: KgcId,
    pub(crate) registrar: Arc<Registrar>,
    /// Has the registry read, once drones are served.
    pub(crate) changes: mpsc::Sender<Asked>,
}

type QuorumAnswer = Result<Value, String>;

/// Answers requests until the service ends.
pub(crate) async fn answer(mut calls: mpsc::Receiver<Call<MemberRequest>>, server: ControlServer) {
    while let Some(Call { request, answer }) = calls.recv().await {
        let server = server.clone();
        // Some wait for the other KGCs.
        tokio::spawn(async move {
            let _ = answer.send(server.answer(request).await);
        });
    }
}

impl ControlServer {
    async fn answer(&self, request: MemberRequest) -> QuorumAnswer {
        match request {
            MemberRequest::Kgc(request) => self.answer_usual(request).await,
            MemberRequest::Quorum(request) => self.answer_own(request).await,
        }
    }

    /// Answers what every KGC is asked.
    async fn answer_usual(&self, request: KgcRequest) -> QuorumAnswer {
        match request {
            KgcRequest::AuditHead => noted_head(&self.state),
            KgcRequest::Authenticate { line, rows } => authenticate(&self.registrar, line, &rows),
            KgcRequest::CheckRegistry => check_registry(&self.registrar),
            KgcRequest::TakeChanges => {
                if !self.status().await?.serving {
                    return Err("it serves no drones yet: see `kgc quorum status`".into());
                }
                take_changes(&self.changes).await
            }
            KgcRequest::Revocation { serial } => json(&self.revocation(&serial).await?),
            KgcRequest::Propose { body, wait } => {
                self.needs_shares("nothing can be signed yet").await?;
                self.propose(hex::decode(&body).map_err(|error| error.to_string())?, wait).await
            }
        }
    }

    async fn answer_own(&self, request: QuorumRequest) -> QuorumAnswer {
        match request {
            QuorumRequest::Status => json(&self.status().await?),
            QuorumRequest::Refresh { wait } => {
                self.needs_shares("there is nothing to refresh yet").await?;
                self.wait_for(QuorumCommand::Refresh, wait).await
            }
            QuorumRequest::Repair { wait } => self.repair(wait).await,
            QuorumRequest::HelpRepair { kgc } => {
                if kgc == self.id {
                    return Err("this KGC cannot help itself: give that at t of the others".into());
                }
                if kgc == 0 || kgc > self.pinned.parameters.members() {
                    return Err(format!("there is no KGC {kgc} in this quorum"));
                }
                self.order(QuorumCommand::HelpRecover(kgc)).await
            }
            QuorumRequest::Approve { digest } => {
                self.order(QuorumCommand::Approve(read_digest(&digest)?)).await
            }
            QuorumRequest::Withdraw { digest } => {
                self.order(QuorumCommand::Withdraw(read_digest(&digest)?)).await
            }
            QuorumRequest::Abandon => self.order(QuorumCommand::Abandon).await,
            QuorumRequest::Adopt => self.order(QuorumCommand::Adopt).await,
        }
    }

    async fn status(&self) -> Result<KgcStatus, String> {
        let (pinned, id) = (self.pinned.clone(), self.id);
        let look = move |machine: &QuorumKgc| status::of(machine, &pinned, id);
        self.machine.inspect(look).await.map_err(|error| error.to_string())
    }

    async fn revocation(&self, serial: &str) -> Result<RevocationProgress, String> {
        let bytes = read_serial(serial)?;
        let look = move |machine: &QuorumKgc| machine.member().revocation(&bytes);
        let (wanting, revoked) = self.machine.inspect(look).await.map_err(|error| error.to_string())?;
        Ok(RevocationProgress { wanting, revoked })
    }

    async fn needs_shares(&self, otherwise: &str) -> Result<(), String> {
        let status = self.status().await?;
        if status.version.is_some() { Ok(()) } else { Err(format!("{otherwise}: this KGC has no shares")) }
    }

    /// Waits for the signature; members that have not approved yet still can.
    async fn propose(&self, body: Vec<u8>, wait: u64) -> QuorumAnswer {
        let mut told = self.events.subscribe();
        self.give(QuorumCommand::Propose(body.clone())).await?;
        let signed = async {
            loop {
                match next(&mut told).await? {
                    ControlEvent::Event(QuorumEvent::Signed { body: signed, signature })
                        if signed == body =>
                    {
                        return Ok::<_, String>(Some(hex::encode(signature)));
                    }
                    ControlEvent::Event(QuorumEvent::Refused(reason)) => return Err(reason.into()),
                    _ => {}
                }
            }
        };
        json(&timeout(Duration::from_secs(wait), signed).await.unwrap_or(Ok(None))?)
    }

    async fn refreshes(&self) -> bool {
        let refresh = |status: KgcStatus| {
            status.ceremony.is_some_and(|it| it.kind == describe::kind(CeremonyKind::Refresh))
        };
        self.status().await.is_ok_and(refresh)
    }

    /// A KGC whose shares are lost has begun to make a key like a new one.
    async fn repair(&self, wait: u64) -> QuorumAnswer {
        let status = self.status().await?;
        if let Some(version) = status.version.filter(|_| status.newer.is_none()) {
            return Err(format!("this KGC has its shares (version {version}): there is nothing to repair"));
        }
        if status.ceremony.is_some() {
            self.order(QuorumCommand::Abandon).await?;
        }
        self.wait_for(QuorumCommand::Recover, wait).await
    }

    /// Gives a command; returns an error if the machine refuses it.
    async fn order(&self, command: QuorumCommand) -> QuorumAnswer {
        let mut told = self.events.subscribe();
        let number = self.give(command).await?;
        let mut answer = Ok(Value::Null);
        loop {
            match next(&mut told).await? {
                ControlEvent::Taken(taken) if taken == number => return answer,
                ControlEvent::Event(QuorumEvent::Refused(reason)) => answer = Err(reason.into()),
                _ => {}
            }
        }
    }

    async fn give(&self, command: QuorumCommand) -> Result<u64, String> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let command = QuorumKgcCommand::Asked { number, command };
        self.machine.command(command).await.map(|()| number).map_err(|error| error.to_string())
    }

    async fn wait_for(&self, command: QuorumCommand, wait: u64) -> QuorumAnswer {
        let mut told = self.events.subscribe();
        self.give(command).await?;
        let ended = async {
            loop {
                match next(&mut told).await? {
                    // Another KGC began it, and this one has joined by itself.
                    ControlEvent::Event(QuorumEvent::Refused(_)) if self.refreshes().await => {}
                    ControlEvent::Event(event) => {
                        if let Some(outcome) = outcome(&event) {
                            return outcome;
                        }
                    }
                    ControlEvent::Taken(_) => {}
                }
            }
        };
        json(&timeout(Duration::from_secs(wait), ended).await.unwrap_or(Ok(CommandOutcome::Pending))?)
    }
}

/// Returns the next event. A subscriber that is too slow misses some.
async fn next(told: &mut broadcast::Receiver<ControlEvent>) -> Result<ControlEvent, String> {
    loop {
        match told.recv().await {
            Ok(told) => return Ok(told),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return Err("the service is ending".into()),
        }
    }
}

/// Outcome of a task that takes its time, if this event ends it.
fn outcome(event: &QuorumEvent) -> Option<Result<CommandOutcome, String>> {
    match event {
        QuorumEvent::SharesInForce { version } | QuorumEvent::Recovered { version } => {
            Some(Ok(CommandOutcome::Done { version: *version }))
        }
        QuorumEvent::Aborted { cause, .. } => {
            Some(Err(format!("aborted: {}; the shares are what they were", describe::cause(cause))))
        }
        QuorumEvent::Refused(reason) => Some(Err((*reason).into())),
        _ => None,
    }
}

fn read_digest(text: &str) -> Result<[u8; 32], String> {
    let mut digest = [0; 32];
    let wrong = |_| "a digest has 64 hex digits".to_owned();
    hex::decode_to_slice(text, &mut digest).map(|()| digest).map_err(wrong)
}

fn json(value: &impl Serialize) -> QuorumAnswer {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_every_kgc_and_to_one_of_a_quorum_have_one_form() {
        for (text, is_own) in [
            (r#""take-changes""#, false),
            (r#"{"propose":{"body":"00","wait":60}}"#, false),
            (r#""status""#, true),
            (r#"{"help-repair":{"kgc":3}}"#, true),
        ] {
            let request: MemberRequest = serde_json::from_str(text).expect("a request");
            assert_eq!(matches!(request, MemberRequest::Quorum(_)), is_own, "{text}");
        }
        let refresh = QuorumRequest::Refresh { wait: 60 };
        assert_eq!(serde_json::to_string(&refresh).expect("text"), r#"{"refresh":{"wait":60}}"#);
    }
}
