//! Requests that only a running edge answers: its status, and sending a message.

use quiver_admission::AnyEdge;
use quiver_ainq::{Name, Suite};
use quiver_group::EdgeCommand;
use quiver_machine::Either;
use quiver_net::Handle;
use quiver_service::clock;
use quiver_service::drone::request::{Answered, json};
use quiver_service::drone::running::{ENDING, Running};
use serde::{Deserialize, Serialize};

use crate::service::EdgeNode;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// The state of the drone.
    Status,
    /// Send a message to the group.
    Send {
        /// The channel.
        channel: String,
        /// The text.
        text: String,
        /// Whether to sign it.
        signed: bool,
    },
}

/// The answer to [`Request::Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// End of the key's validity.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) valid_until: Option<u64>,
    /// Number of the newest revocation list, 0 for none.
    #[serde(default)]
    pub(crate) revocation_list: u64,
    /// Time at which that list becomes stale; `None` without a list.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) revocations_next_update: Option<u64>,
    /// Number of starts.
    pub(crate) starts: u32,
    /// MAVLink programs beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mavlink: Option<quiver_bridge::Status>,
}

impl Status {
    /// Between two anonymous memberships.
    pub(crate) fn idle(group: &Name) -> Self {
        Self { group: Some(group.to_string()), ..Self::default() }
    }

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
            mavlink: None,
        }
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let epoch =
            self.term.zip(self.counter).map(|(term, counter)| format!("term {term}, counter {counter}"));
        let standing = if self.synced { "member, in sync" } else { "not in sync" };
        let mavlink = self.mavlink.as_ref().map(|status| ("mavlink", status.describe()));
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
        rows.into_iter()
            .chain(mavlink)
            .map(|(key, value)| format!("{key:<12} {value}"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Answers a request.
pub(crate) async fn answer<S: Suite>(running: Running<AnyEdge<S>>, request: Request) -> Answered {
    match request {
        Request::Status => status(&running.machine).await,
        Request::Send { channel, text, signed } => {
            if !running.machine.inspect(|machine| machine.status().synced).await.map_err(|_| ENDING)? {
                return Err("not in sync with the group (see `edge status`); try again".into());
            }
            let channel = Name::new(&channel).map_err(|error| error.to_string())?;
            let command = EdgeCommand::Send { channel, data: text.into_bytes(), signed };
            running.send(Either::Left(command)).await
        }
    }
}

async fn status<S: Suite>(machine: &Handle<EdgeNode<S>>) -> Answered {
    json(&machine.inspect(Status::of).await.map_err(|_| ENDING)?)
}
