//! What the other subcommands ask of the running edge, and the answers.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{DroneKeypair, Name, Suite};
use quiver_net::Handle;
use quiver_role::{EdgeCommand, Either, Machine};
use quiver_service::clock;
use quiver_service::control::{Call, Patience, USUAL_TIME};
use quiver_service::drone::abe::lines;
use quiver_service::drone::abke::certified;
use quiver_service::drone::envelope::{self, FILE_TIME, Job, SendJob};
use quiver_service::drone::fetch::{KeyClient, copy};
use quiver_service::drone::release::KeyCall;
use quiver_service::keyring::Keyring;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};

use crate::service::EdgeNode;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// How things are.
    Status,
    /// Say something.
    Send {
        /// The channel.
        channel: String,
        /// The text.
        text: String,
        /// Whether to sign it.
        signed: bool,
    },
    /// Fetch attribute keys.
    Fetch,
    /// Which attribute keys are held.
    Keys,
    /// Which fields are certified.
    Certified,
    /// Keys of conditions.
    Ibe(KeyCall),
    /// Seal or open a file.
    Envelope(Job),
    /// Seal something and send it to the group.
    Seal(SendJob),
}

impl Patience for Request {
    fn patience(&self) -> Duration {
        match self {
            Self::Envelope(_) => FILE_TIME,
            Self::Ibe(call) => call.patience(),
            _ => USUAL_TIME,
        }
    }
}

/// The answer to [`Request::Status`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The drone's name.
    pub(crate) name: Option<String>,
    /// The group it is in or wants to be in.
    pub(crate) group: Option<String>,
    /// Whether it holds the key of the epoch in force.
    pub(crate) synced: bool,
    /// Term of the epoch held.
    pub(crate) term: Option<u64>,
    /// Counter of the epoch held.
    pub(crate) counter: Option<u64>,
    /// First 8 bytes of the epoch's digest, hex: equal at all members that hold its key.
    pub(crate) epoch_digest: Option<String>,
    /// Its slot.
    pub(crate) slot: Option<u32>,
    /// Until when the key is valid, seconds since 1970.
    pub(crate) valid_until: Option<u64>,
    /// Number of the newest revocation list, 0 for none.
    #[serde(default)]
    pub(crate) revocation_list: u64,
    /// When that list is stale, seconds since 1970; none without a list.
    #[serde(default)]
    pub(crate) revocations_next_update: Option<u64>,
    /// How often it was started.
    pub(crate) starts: u32,
}

impl Status {
    fn of<S: Suite>(machine: &EdgeNode<S>) -> Self {
        let status = machine.status();
        Self {
            name: status.name.map(|name| name.to_string()),
            group: status.group.map(|group| group.to_string()),
            synced: status.synced,
            term: status.epoch.map(|epoch| epoch.term),
            counter: status.epoch.map(|epoch| epoch.counter),
            epoch_digest: status.digest.map(|digest| hex::encode(&digest[..8])),
            slot: status.slot,
            valid_until: status.valid_until,
            revocation_list: status.revocation_number,
            revocations_next_update: status.revocations_next_update,
            starts: status.boot_no,
        }
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let epoch =
            self.term.zip(self.counter).map(|(term, counter)| format!("term {term}, counter {counter}"));
        let standing = if self.synced { "member, in sync" } else { "not in sync" };
        let rows = [
            ("drone", or_dash(self.name.clone())),
            ("group", or_dash(self.group.clone())),
            ("standing", standing.into()),
            ("slot", or_dash(self.slot.map(|slot| slot.to_string()))),
            ("epoch", or_dash(epoch)),
            ("digest", or_dash(self.epoch_digest.clone())),
            ("valid until", or_dash(self.valid_until.map(clock::format))),
            ("revocations", clock::describe_list(self.revocation_list, self.revocations_next_update)),
            ("starts", self.starts.to_string()),
        ];
        rows.iter().map(|(key, value)| format!("{key:<12} {value}")).collect::<Vec<_>>().join("\n")
    }
}

/// Why a message was not sent.
pub(crate) type SendFailed = &'static str;

/// Answers requests until the service ends.
pub(crate) async fn answer<S: Suite>(
    mut calls: mpsc::Receiver<Call<Request>>,
    machine: Handle<EdgeNode<S>>,
    failures: broadcast::Sender<SendFailed>,
    client: KeyClient<S>,
) {
    // One at a time, so that a failure belongs to the message just sent.
    while let Some(Call { request, answer }) = calls.recv().await {
        let answered = match request {
            Request::Status => status(&machine).await,
            Request::Send { channel, text, signed } => {
                send(&machine, failures.subscribe(), &channel, text, signed).await
            }
            Request::Keys => keys(&client, lines),
            Request::Certified => keys(&client, |keyring| certified(keyring, clock::unix_now())),
            Request::Seal(job) => seal(&machine, failures.subscribe(), &client, job).await,
            Request::Envelope(job) => {
                let (machine, client) = (machine.clone(), client.clone());
                tokio::spawn(async move {
                    let answered = envelope::perform(&machine, &client, job).await;
                    answer.send(serde_json::to_value(answered).map_err(|error| error.to_string()))
                });
                continue;
            }
            Request::Ibe(call) => {
                let (machine, client) = (machine.clone(), client.clone());
                tokio::spawn(async move { answer.send(release(&machine, &client, &call).await) });
                continue;
            }
            Request::Fetch => {
                // Takes its time, and nobody else need wait for it.
                let (machine, client) = (machine.clone(), client.clone());
                tokio::spawn(async move { answer.send(fetch(&machine, &client).await) });
                continue;
            }
        };
        // Whoever asked may have gone.
        let _ = answer.send(answered);
    }
}

/// The same for an edge without a name, whose machine is another one in each membership.
pub(crate) async fn answer_anonymous<S: Suite>(
    mut calls: mpsc::Receiver<Call<Request>>,
    running: watch::Receiver<Option<Handle<EdgeNode<S>>>>,
    failures: broadcast::Sender<SendFailed>,
    client: KeyClient<S>,
    (keypair, group): (Arc<DroneKeypair<S>>, Name),
) {
    while let Some(Call { request, answer }) = calls.recv().await {
        let machine = running.borrow().clone();
        let answered = match (request, &machine) {
            (Request::Status, Some(machine)) => match status(machine).await {
                Err(_) => idle(&group),
                known => known,
            },
            (Request::Status, None) => idle(&group),
            (Request::Send { channel, text, signed }, Some(machine)) => {
                send(machine, failures.subscribe(), &channel, text, signed).await
            }
            (Request::Keys, _) => keys(&client, lines),
            (Request::Certified, _) => keys(&client, |keyring| certified(keyring, clock::unix_now())),
            (Request::Fetch, _) => match client.fetch(&keypair).await {
                Ok(report) => serde_json::to_value(report).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            },
            _ => Err("not while this drone runs without a name (`edge run --anonymous`)".into()),
        };
        // Whoever asked may have gone.
        let _ = answer.send(answered);
    }
}

/// Between two memberships.
fn idle(group: &Name) -> Result<Value, String> {
    let status = Status {
        name: None,
        group: Some(group.to_string()),
        synced: false,
        term: None,
        counter: None,
        epoch_digest: None,
        slot: None,
        valid_until: None,
        revocation_list: 0,
        revocations_next_update: None,
        starts: 0,
    };
    serde_json::to_value(status).map_err(|error| error.to_string())
}

const ENDING: &str = "the edge is ending";

async fn status<S: Suite>(machine: &Handle<EdgeNode<S>>) -> Result<Value, String> {
    let status = machine.inspect(Status::of).await.map_err(|_| ENDING)?;
    serde_json::to_value(status).map_err(|error| error.to_string())
}

fn keys<S: Suite, T: Serialize>(
    client: &KeyClient<S>,
    shown: impl Fn(&Keyring<S>) -> T,
) -> Result<Value, String> {
    let keyring = client.keys().keyring().map_err(|error| error.to_string())?;
    serde_json::to_value(shown(&keyring)).map_err(|error| error.to_string())
}

async fn fetch<S: Suite>(machine: &Handle<EdgeNode<S>>, client: &KeyClient<S>) -> Result<Value, String> {
    let report = async {
        let keypair = keypair(machine, client).await.ok_or_else(|| ENDING.to_string())?;
        let report = client.fetch(&keypair).await.map_err(|error| error.to_string());
        envelope::hand_over(machine, client).await;
        report
    };
    serde_json::to_value(report.await?).map_err(|error| error.to_string())
}

async fn release<S: Suite>(
    machine: &Handle<EdgeNode<S>>,
    client: &KeyClient<S>,
    call: &KeyCall,
) -> Result<Value, String> {
    let keypair = keypair(machine, client).await;
    let report = client.release(keypair.as_ref(), call).await.map_err(|error| error.to_string())?;
    serde_json::to_value(report).map_err(|error| error.to_string())
}

/// The running drone's key, once more.
pub(crate) async fn keypair<S: Suite>(
    machine: &Handle<EdgeNode<S>>,
    client: &KeyClient<S>,
) -> Option<DroneKeypair<S>> {
    let deployment = client.keys().deployment().clone();
    machine.inspect(move |machine| copy(&deployment, machine.keypair()?).ok()).await.ok()?
}

async fn send<S: Suite>(
    machine: &Handle<EdgeNode<S>>,
    mut failures: broadcast::Receiver<SendFailed>,
    channel: &str,
    text: String,
    signed: bool,
) -> Result<Value, String> {
    if !machine.inspect(|machine| machine.status().synced).await.map_err(|_| ENDING)? {
        return Err("not in sync with the group (see `edge status`); try again".into());
    }
    let channel = Name::new(channel).map_err(|error| error.to_string())?;
    let command = Either::Left(EdgeCommand::Send { channel, data: text.into_bytes(), signed });
    give(machine, &mut failures, command).await
}

/// Envelopes need no membership, so that it is not asked for.
async fn seal<S: Suite>(
    machine: &Handle<EdgeNode<S>>,
    mut failures: broadcast::Receiver<SendFailed>,
    client: &KeyClient<S>,
    job: SendJob,
) -> Result<Value, String> {
    let command = envelope::sending(machine, client, job).await.map_err(|error| error.to_string())?;
    give(machine, &mut failures, command).await
}

/// Gives a command, and says whether something was sent.
async fn give<S: Suite>(
    machine: &Handle<EdgeNode<S>>,
    failures: &mut broadcast::Receiver<SendFailed>,
    command: <EdgeNode<S> as Machine>::Command,
) -> Result<Value, String> {
    machine.carry_out(command).await.map_err(|_| ENDING)?;
    match failures.try_recv() {
        Ok(reason) => Err(format!("not sent: {reason}")),
        Err(_) => Ok("sent".into()),
    }
}
