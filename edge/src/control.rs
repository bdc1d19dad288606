//! Requests that only a running edge answers: its status, and sending a message.

use quiver_admission::AnyEdge;
use quiver_ainq::{Name, Suite};
use quiver_net::{Handle, Unreached};
use quiver_service::clock;
use quiver_service::drone::request::{Answered, json};
use quiver_service::drone::running::{ENDING, Running};
use serde::{Deserialize, Serialize};

use crate::blocking::MAX_MESSAGE;
use crate::service::EdgeNode;
use crate::service::send_queue::{self, QueuedMessage, SendQueue};
use crate::service::situation::Situation;

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
    /// `member`, `behind`, `joining`, `evicted`, `revoked`, `refused` or `left`.
    #[serde(default)]
    pub(crate) standing: String,
    /// Why it is evicted, revoked, refused or has left.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// Since when, seconds since 1970.
    #[serde(default)]
    pub(crate) since: Option<u64>,
    /// What to do about it.
    #[serde(default)]
    pub(crate) next: Option<String>,
    /// The connection with leaders, for people.
    #[serde(default)]
    pub(crate) connection: String,
    /// Messages that wait for a leader.
    #[serde(default)]
    pub(crate) queued: usize,
}

/// The answer to [`Request::Send`], unless it is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SendReport {
    /// `sent` or `queued`.
    pub(crate) outcome: String,
    /// Why it is queued.
    pub(crate) reason: Option<String>,
}

impl SendReport {
    /// For people.
    pub(crate) fn describe(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{}: {reason}", self.outcome),
            None => self.outcome.clone(),
        }
    }
}

/// What a running edge knows beside its machine.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// What it was told.
    pub(crate) situation: Situation,
    /// Messages that wait; `None` for an anonymous drone.
    pub(crate) queue: Option<SendQueue>,
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
            ..Self::default()
        }
    }

    /// Adds what the machine does not know.
    fn with(mut self, surroundings: &Surroundings, unreached: &[Unreached]) -> Self {
        let (leaders, since) = surroundings.situation.leaders();
        self.connection = match since {
            Some(since) if leaders == 1 => format!("1 leader, since {}", clock::format(since)),
            Some(since) => format!("{leaders} leaders, since {}", clock::format(since)),
            None => "none".into(),
        };
        for lost in unreached {
            let place = quiver_net::readable(&lost.address);
            self.connection.push_str(&format!("; {place}: {}, trying again", lost.reason));
        }
        self.queued = surroundings.queue.as_ref().map_or(0, SendQueue::len);
        let trouble = surroundings.situation.trouble().filter(|_| !self.synced);
        (self.standing, self.next) = match &trouble {
            Some(trouble) => (trouble.standing.into(), advice(trouble.standing).map(String::from)),
            None if self.synced => ("member".into(), None),
            None if self.term.is_some() => ("behind".into(), None),
            None => ("joining".into(), None),
        };
        (self.reason, self.since) =
            trouble.map_or((None, None), |trouble| (Some(trouble.reason), Some(trouble.since)));
        self
    }

    /// Its standing, for people.
    fn describe_standing(&self) -> String {
        let mut text = match self.standing.as_str() {
            "member" => "member, in sync".to_string(),
            "" => "not in sync".to_string(),
            "behind" => "member, not in sync: it asks a leader for the current key".to_string(),
            "joining" => "joining: it asks a leader to be admitted".to_string(),
            other => other.to_string(),
        };
        if let Some(reason) = &self.reason {
            text.push_str(&format!(": {reason}"));
        }
        if let Some(since) = self.since {
            text.push_str(&format!(", since {}", clock::format(since)));
        }
        text
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let epoch =
            self.term.zip(self.counter).map(|(term, counter)| format!("term {term}, counter {counter}"));
        let mut rows = vec![
            ("drone", or_dash(self.name.clone())),
            ("group", or_dash(self.group.clone())),
            ("standing", self.describe_standing()),
            ("connection", self.connection.clone()),
            ("slot", or_dash(self.slot.map(|slot| slot.to_string()))),
            ("epoch", or_dash(epoch)),
            ("digest", or_dash(self.epoch_digest.clone())),
            ("valid until", or_dash(self.valid_until.map(clock::format))),
            ("revocations", clock::describe_list(self.revocation_list, self.revocations_next_update)),
            ("starts", self.starts.to_string()),
        ];
        if self.queued > 0 {
            rows.push(("queued", format!("{}, until a leader is there", self.queued)));
        }
        if let Some(next) = &self.next {
            rows.push(("next", next.clone()));
        }
        rows.iter().map(|(key, value)| format!("{key:<12} {value}")).collect::<Vec<_>>().join("\n")
    }
}

/// Answers a request.
pub(crate) async fn answer<S: Suite>(
    running: Running<AnyEdge<S>>,
    surroundings: Surroundings,
    request: Request,
) -> Answered {
    match request {
        Request::Status => status(&running.machine, &surroundings).await,
        Request::Send { channel, text, signed } => {
            let channel = Name::new(&channel).map_err(|error| error.to_string())?;
            let message = QueuedMessage { channel, text, signed, at: clock::unix_now() };
            send(&running, &surroundings, message).await
        }
    }
}

/// Sends a message, or queues it if no leader confirms it.
async fn send<S: Suite>(
    running: &Running<AnyEdge<S>>,
    surroundings: &Surroundings,
    message: QueuedMessage,
) -> Answered {
    if message.text.len() > MAX_MESSAGE {
        return Err(format!(
            "not sent: the message has {} bytes, more than {MAX_MESSAGE}",
            message.text.len()
        ));
    }
    let status = running.machine.inspect(|machine| machine.status()).await.map_err(|_| ENDING)?;
    let out = surroundings.situation.trouble().filter(|_| !status.synced);
    let Some(queue) = surroundings.queue.as_ref().filter(|_| out.is_none() && status.group.is_some()) else {
        if status.synced && send_queue::send(running, message.command()).await? {
            return json(&SendReport { outcome: "sent".into(), reason: None });
        }
        let standing = out.map_or("not in sync with the group".into(), |out| {
            format!("not in sync with the group: {} ({})", out.standing, out.reason)
        });
        return Err(format!("not sent: {standing}; see `edge status`"));
    };
    // What waits goes first.
    if status.synced && queue.len() == 0 && send_queue::send(running, message.command()).await? {
        return json(&SendReport { outcome: "sent".into(), reason: None });
    }
    let waiting = queue.push(message)?;
    let reason =
        format!("no leader has confirmed it; it is sent when one is there, within 24 h ({waiting} waiting)");
    json(&SendReport { outcome: "queued".into(), reason: Some(reason) })
}

async fn status<S: Suite>(machine: &Handle<EdgeNode<S>>, surroundings: &Surroundings) -> Answered {
    let status = machine.inspect(Status::of).await.map_err(|_| ENDING)?;
    json(&status.with(surroundings, &machine.unreached()))
}

/// What to do about a standing.
fn advice(standing: &str) -> Option<&'static str> {
    match standing {
        "evicted" => Some("it is not admitted again under this key: enrol it anew with a fresh token"),
        "revoked" => Some("its key is revoked for good: enrol it anew with a fresh token"),
        "refused" => Some("see the reason: check --group and --leader, and the leader's log"),
        _ => None,
    }
}
