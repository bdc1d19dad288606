//! Requests that only a running edge answers: status, messages to the group.

use quiver_ainq::{DroneKeypair, Epoch, Name, UnixTime};
use quiver_group::KemState;
use quiver_group::edge::EdgeStatus;
use quiver_machine::{Either, Peer, Primary};
use quiver_net::{Stopped, Unreached, readable};
use quiver_service::clock;
use quiver_service::deployment_file::KemSetting;
use quiver_service::drone::Error;
use quiver_service::drone::feature::{GroupEdge, KeyObstacle, status_rows};
use quiver_service::drone::kem_row::KemRow;
use quiver_service::drone::request::{Answered, json};
use quiver_service::drone::running::{ENDING, RunningDrone};
use quiver_service::drone::send::SendReport;
use quiver_service::monitoring::node;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::features::FEATURES;
use crate::metrics::clock_contradiction;
use crate::service::connection_history::{
    ANEW, ConnectionHistory, END_THE_COPY, MembershipProblem, MembershipState,
};
use crate::service::send_queue::{DroppedMessages, QueuedMessage, SendQueue};
use crate::service::{ServiceEdge, confirmation};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EdgeRequest {
    /// The state of the drone.
    Status,
    /// Send a message to the group.
    Send {
        /// The channel.
        channel: String,
        /// The text.
        text: String,
        /// True to sign it.
        signed: bool,
    },
}

/// The answer to [`EdgeRequest::Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EdgeStatusReply {
    /// The drone's name.
    pub(crate) name: Option<String>,
    /// The group it is in or wants to be in.
    pub(crate) group: Option<String>,
    /// True if it holds the key of the epoch in force.
    pub(crate) synced: bool,
    /// Term of the epoch held.
    pub(crate) term: Option<u64>,
    /// Counter of the epoch held.
    pub(crate) counter: Option<u64>,
    /// First 8 bytes of the epoch's digest, hex: equal at all members that hold its key.
    pub(crate) epoch_digest: Option<String>,
    /// Slot of the drone.
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
    /// Standing of the drone.
    #[serde(default)]
    pub(crate) standing: MembershipState,
    /// Reason why it is evicted, revoked, refused or has left.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// Time since which it is so.
    #[serde(default, with = "quiver_service::clock::rfc3339")]
    pub(crate) since: Option<u64>,
    /// Advice about it.
    #[serde(default)]
    pub(crate) next: Option<String>,
    /// Connections of the drone with leaders.
    #[serde(default)]
    pub(crate) connection: ConnectionStatus,
    /// Second factor that the deployment file says: `none`, `ml-kem-768` or `ml-kem-1024`. `None` for an
    /// anonymous drone, which makes one for each membership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kem: Option<KemSetting>,
    /// The second factor that it shares with the leader of the epoch held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<KemRow>,
    /// Fault of its clock, or of others'.
    #[serde(default)]
    pub(crate) clock: Option<String>,
    /// Messages that wait for a leader.
    #[serde(default)]
    pub(crate) queued: usize,
    /// Reason why they wait although a leader is there, if they do.
    #[serde(default)]
    pub(crate) held_up: Option<String>,
    /// Messages that were dropped, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<DroppedMessages>,
    /// Reason why nothing is sent or received, if the node stands still.
    #[serde(default)]
    pub(crate) stalled: Option<String>,
    /// Source that says that another process runs with a copy of this drone's identity, if there is one.
    #[serde(default)]
    pub(crate) duplicate: Option<String>,
    /// Fields of features.
    #[serde(flatten)]
    pub(crate) features: Map<String, Value>,
}

/// A drone's connections with leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionStatus {
    /// Leaders that are connected.
    pub(crate) leaders: Vec<ConnectedLeader>,
    /// Time since which none is, if none is.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) none_since: Option<u64>,
    /// Leaders that were dialled and are not connected.
    pub(crate) unreached: Vec<UnreachedLeader>,
}

/// A leader that is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectedLeader {
    /// Address of the leader.
    pub(crate) address: String,
    /// Name of the leader, if it is known to lead.
    pub(crate) leads_as: Option<String>,
    /// Time since which it is connected.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) since: Option<u64>,
}

/// A leader that is not connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnreachedLeader {
    /// Address of the leader.
    pub(crate) address: String,
    /// The latest failure.
    pub(crate) reason: String,
}

impl ConnectionStatus {
    fn of(history: &ConnectionHistory, unreached: &[Unreached], leading: Option<(Peer, &Name)>) -> Self {
        let (leaders, alone_since) = history.connections();
        let leads = |peer: Peer| leading.filter(|(leader, _)| *leader == peer);
        Self {
            none_since: leaders.is_empty().then_some(alone_since),
            leaders: leaders
                .into_iter()
                .map(|(peer, known)| ConnectedLeader {
                    address: known.place,
                    leads_as: leads(peer).map(|(_, name)| name.to_string()),
                    since: Some(known.since),
                })
                .collect(),
            unreached: unreached
                .iter()
                .map(|lost| UnreachedLeader { address: readable(&lost.address), reason: lost.reason.clone() })
                .collect(),
        }
    }

    /// Describes the connections for people.
    fn describe(&self) -> String {
        let since = |at: Option<u64>| at.map_or(String::new(), |at| format!(", since {}", clock::format(at)));
        let connected = self.leaders.iter().map(|leader| {
            let who = leader.leads_as.as_deref().unwrap_or("a leader");
            format!("{who} at {}{}", leader.address, since(leader.since))
        });
        let none = self.none_since.map(|at| format!("none{}", since(Some(at))));
        let lost =
            self.unreached.iter().map(|lost| format!("{}: {}, trying again", lost.address, lost.reason));
        none.into_iter().chain(connected).chain(lost).collect::<Vec<_>>().join("; ")
    }
}

/// State of a running edge beside its machine.
#[derive(Clone, Debug)]
pub(crate) struct ControlContext {
    /// History that it learned.
    pub(crate) history: ConnectionHistory,
    /// Messages that wait; `None` for an anonymous drone.
    pub(crate) queue: Option<SendQueue>,
}

/// State that only the machine knows, read at once.
struct MachineState {
    status: EdgeStatus,
    /// Name of the leader of the epoch held.
    leader: Option<Name>,
    /// Time at which the revocation list was issued that names this drone, if it does.
    revoked: Option<UnixTime>,
    /// End of this drone's identity.
    identity_ends: Option<UnixTime>,
    /// Source that says that another process has this drone's identity.
    duplicate: Option<String>,
    /// Second factor that the deployment file says; `None` for an anonymous drone.
    kem: Option<KemSetting>,
    /// State of the second factor with the leader of the epoch held.
    kem_state: Option<KemState>,
    /// Time at which the leader made the group's key.
    key_issued: Option<u64>,
}

impl MachineState {
    fn of(machine: &ServiceEdge, duplicate: Option<String>) -> Self {
        let identity = machine.keypair().map(DroneKeypair::public);
        let revoked = machine.named().is_some_and(quiver_group::Edge::is_revoked);
        Self {
            status: machine.status(),
            leader: machine.leader_name(),
            revoked: revoked.then(|| machine.revocations().list().issued),
            identity_ends: identity.map(|public| public.identity.not_after),
            duplicate,
            kem: machine.named().map(quiver_group::Edge::kem_setting),
            kem_state: machine.named().and_then(quiver_group::Edge::kem_state),
            key_issued: machine.key_issued_at(),
        }
    }

    async fn read(running: &RunningDrone<GroupEdge>) -> Result<Self, String> {
        let duplicate = running.machine.duplicate_identity();
        running.machine.inspect(move |machine| Self::of(machine, duplicate)).await.map_err(|_| ENDING.into())
    }

    /// Reason for which the drone will not become a member by itself.
    fn problem(&self, history: &ConnectionHistory) -> Option<MembershipProblem> {
        if self.status.synced {
            return None;
        }
        let told = history.problem();
        if let (Some(copy), Some(doubtful)) =
            (&self.duplicate, told.as_ref().filter(|told| told.is_in_doubt()))
        {
            let (standing, reason, since) = (MembershipState::Copied, copy.clone(), doubtful.since);
            return Some(MembershipProblem { standing, reason, next: END_THE_COPY, since });
        }
        if let Some(issued) = self.revoked {
            let since = told
                .filter(|told| told.standing == MembershipState::Revoked)
                .map_or(issued, |told| told.since);
            let reason = "the KGC's revocation list names it".into();
            return Some(MembershipProblem { standing: MembershipState::Revoked, reason, next: ANEW, since });
        }
        let ended = self.identity_ends.filter(|ends| *ends <= clock::unix_now());
        match (told, ended) {
            (None | Some(MembershipProblem { standing: MembershipState::Refused, .. }), Some(since)) => {
                let reason = "its identity has ended".into();
                Some(MembershipProblem { standing: MembershipState::Refused, reason, next: ANEW, since })
            }
            (told, _) => told,
        }
    }
}

/// Reason why the drone has no valid key; `None` if nothing but a leader is lacking.
pub(crate) async fn obstacle(
    running: &RunningDrone<GroupEdge>,
    history: &ConnectionHistory,
) -> Result<Option<KeyObstacle>, Stopped> {
    let machine = MachineState::read(running).await.map_err(|_| Stopped)?;
    let told = machine.problem(history).and_then(|problem| match problem.standing {
        MembershipState::Evicted if problem.is_in_doubt() => Some(KeyObstacle::Removed),
        MembershipState::Evicted => Some(KeyObstacle::Evicted),
        MembershipState::Copied => Some(KeyObstacle::Removed),
        MembershipState::Revoked => Some(KeyObstacle::Revoked),
        MembershipState::Refused => Some(KeyObstacle::Refused),
        MembershipState::Left => Some(KeyObstacle::Left),
        MembershipState::Joining | MembershipState::Member | MembershipState::Behind => None,
    });
    // By a wrong clock a key is over that others use.
    Ok(told.or_else(|| node::disagreement(&running.machine).map(|_| KeyObstacle::Clock)))
}

/// Reason why queued messages wait, if it is another than that no leader is there.
fn held_up(queue: &SendQueue, standing: MembershipState, status: &EdgeStatus) -> Option<String> {
    let group = status.group.as_ref().map(Name::to_string).unwrap_or_default();
    let own = match standing {
        _ if queue.len_of(&group) == 0 => None,
        MembershipState::Evicted
        | MembershipState::Revoked
        | MembershipState::Refused
        | MembershipState::Left => Some(format!(
            "never sent unless this drone is a member again within 24 h of their queueing: it is {standing}"
        )),
        _ => queue.held_up(),
    };
    let reasons: Vec<_> = own.into_iter().chain(queue.of_others(&group)).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

impl EdgeStatusReply {
    /// The status of an anonymous drone between two memberships in this group; `advice` while nothing keeps it out.
    pub(crate) fn idle(group: &Name, history: &ConnectionHistory, advice: &str) -> Self {
        let problem = history.problem();
        Self {
            group: Some(group.to_string()),
            standing: problem.as_ref().map_or(MembershipState::Joining, |problem| problem.standing),
            next: Some(problem.as_ref().map_or(advice, |problem| problem.next).into()),
            since: problem.as_ref().map(|problem| problem.since),
            reason: problem.map(|problem| problem.reason),
            connection: ConnectionStatus::of(history, &[], None),
            ..Self::default()
        }
    }

    fn of(machine: &MachineState, context: &ControlContext, unreached: &[Unreached]) -> Self {
        let (status, history) = (&machine.status, &context.history);
        let problem = machine.problem(history);
        let standing = match &problem {
            Some(problem) => problem.standing,
            None if status.synced => MembershipState::Member,
            None if status.slot.is_some() => MembershipState::Behind,
            None => MembershipState::Joining,
        };
        let connection = ConnectionStatus::of(history, unreached, status.leader.zip(machine.leader.as_ref()));
        let waits = matches!(standing, MembershipState::Behind | MembershipState::Joining)
            && connection.leaders.is_empty();
        let next = match &problem {
            Some(problem) => Some(problem.next),
            None if machine.duplicate.is_some() => Some(END_THE_COPY),
            None if waits => Some("it waits for a leader: start it, or check --leader"),
            None => None,
        };
        Self {
            name: status.name.as_ref().map(Name::to_string),
            group: status.group.as_ref().map(Name::to_string),
            term: status.epoch.map(|epoch| epoch.term),
            counter: status.epoch.map(|epoch| epoch.counter),
            epoch_digest: status.digest.map(|digest| hex::encode(&digest[..8])),
            slot: status.slot,
            synced: status.synced,
            valid_until: status.valid_until,
            revocation_list: status.revocation_number,
            revocations_next_update: status.revocations_next_update,
            starts: status.boot_no,
            standing,
            next: next.map(String::from),
            since: problem.as_ref().map(|problem| problem.since),
            reason: problem.map(|problem| problem.reason),
            connection,
            kem: machine.kem,
            pair: machine.kem_state.map(KemRow::from),
            clock: None,
            queued: context.queue.as_ref().map_or(0, SendQueue::len),
            held_up: context.queue.as_ref().and_then(|queue| held_up(queue, standing, status)),
            dropped: context.queue.as_ref().and_then(SendQueue::dropped),
            stalled: None,
            duplicate: machine.duplicate.clone(),
            features: Map::new(),
        }
    }

    /// Describes the standing for people.
    fn describe_standing(&self) -> String {
        let mut text = match &self.stalled {
            Some(_) if self.standing == MembershipState::Member => "member, at a standstill".into(),
            _ => self.standing.to_string(),
        };
        if let Some(reason) = &self.reason {
            text.push_str(&format!(": {reason}"));
        }
        if let Some(since) = self.since {
            text.push_str(&format!(", since {}", clock::format(since)));
        }
        text
    }

    /// Describes the second factor for people.
    fn describe_kem(&self) -> Option<String> {
        let kem = self.kem?;
        Some(match &self.pair {
            Some(pair) => pair.describe(clock::unix_now()),
            None if kem.is_none() => kem.to_string(),
            None => format!("{kem}, not shared with a leader yet"),
        })
    }

    /// Describes the status for people.
    pub(crate) fn describe(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let epoch = self.term.zip(self.counter).map(|(term, counter)| Epoch { term, counter }.to_string());
        let mut rows = vec![
            ("drone", or_dash(self.name.clone())),
            ("group", or_dash(self.group.clone())),
            ("standing", self.describe_standing()),
            ("connection", self.connection.describe()),
            ("slot", or_dash(self.slot.map(|slot| slot.to_string()))),
            ("epoch", or_dash(epoch)),
            ("digest", or_dash(self.epoch_digest.clone())),
            ("valid until", or_dash(self.valid_until.map(clock::format))),
            ("revocations", clock::describe_list(self.revocation_list, self.revocations_next_update)),
            ("starts", self.starts.to_string()),
        ];
        rows.extend(self.describe_kem().map(|text| ("2nd factor", text)));
        if self.queued > 0 {
            let until = self.held_up.as_deref().unwrap_or("until a leader is there");
            rows.push(("queued", format!("{}, {until}", self.queued)));
        }
        rows.extend(self.dropped.map(|dropped| ("dropped", dropped.describe())));
        rows.extend(self.stalled.clone().map(|stalled| ("stalled", stalled)));
        // Where it says why the drone is no member it is not said twice.
        let copy = self.duplicate.clone().filter(|_| self.standing != MembershipState::Copied);
        rows.extend(copy.map(|copy| ("copy", copy)));
        rows.extend(self.clock.clone().map(|clock| ("clock", clock)));
        rows.extend(self.next.clone().map(|next| ("next", next)));
        rows.extend(status_rows(FEATURES, &self.features));
        rows.iter().map(|(key, value)| format!("{key:<12} {value}")).collect::<Vec<_>>().join("\n")
    }
}

/// Answers a request.
pub(crate) async fn answer(
    running: RunningDrone<GroupEdge>,
    context: ControlContext,
    request: EdgeRequest,
) -> Answered {
    match request {
        EdgeRequest::Status => {
            let machine = MachineState::read(&running).await?;
            let mut status = EdgeStatusReply::of(&machine, &context, &running.machine.unreached());
            let by_key = || clock_contradiction(&machine.status, machine.key_issued, clock::unix_now());
            status.clock = node::disagreement(&running.machine).or_else(by_key);
            status.stalled = running.machine.metrics().trouble();
            json(&status)
        }
        EdgeRequest::Send { channel, text, signed } => {
            let channel = Name::new(&channel).map_err(|error| error.to_string())?;
            let message = QueuedMessage { channel, text, signed, at: clock::unix_now(), group: None };
            send(&running, &context, message).await
        }
    }
}

/// Sends a message, or queues it if no leader confirms it.
async fn send(
    running: &RunningDrone<GroupEdge>,
    context: &ControlContext,
    message: QueuedMessage,
) -> Answered {
    Error::check_message(&message.text).map_err(|error| error.to_string())?;
    let machine = MachineState::read(running).await?;
    // Once the copy is ended, the drone is a member again.
    let problem = machine.problem(&context.history);
    if let Some(MembershipProblem { standing, reason, .. }) =
        problem.filter(|it| it.standing != MembershipState::Copied)
    {
        return Err(format!(
            "not sent: this drone is not a member ({standing}: {reason}); see `edge status`"
        ));
    }
    let command = message.command();
    let group = machine.status.group.as_ref().map(Name::to_string);
    let Some((queue, group)) = context.queue.as_ref().zip(group) else {
        if !machine.status.synced {
            return Err("not sent: this drone is not in sync with the group; see `edge status`".into());
        }
        return running.send_and_report(Either::Left(command)).await;
    };
    let mut why = "no leader has confirmed it; it is sent when one is there".to_string();
    // Waiting messages go first. A hindrance of a message of this length passes, such as a key that has run
    // out.
    if machine.duplicate.is_some() {
        why = format!("{}; it is sent after that", confirmation::COPY);
    } else if machine.status.synced
        && queue.len_of(&group) == 0
        && let Ok(Some(handed)) = confirmation::send(running, command).await
    {
        match confirmation::confirm(running, handed).await {
            Ok(()) => return json(&SendReport::sent(handed.connections)),
            Err(reason) => why = format!("{reason}; it is sent again until one has"),
        }
    }
    let waiting = queue.push(QueuedMessage { group: Some(group), ..message })?;
    json(&SendReport::queued(waiting, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_whose_disk_is_full_is_not_called_in_sync() {
        let member =
            EdgeStatusReply { standing: MembershipState::Member, synced: true, ..EdgeStatusReply::default() };
        assert!(member.describe().contains("standing     member, in sync"));
        let stalled = EdgeStatusReply { stalled: Some("make room on the disk".into()), ..member };
        let said = stalled.describe();
        assert!(said.contains("standing     member, at a standstill\n"), "{said}");
        assert!(said.contains("stalled      make room on the disk"), "{said}");
    }

    #[test]
    fn copy_is_named_beside_the_standing_and_not_twice() {
        let copied = EdgeStatusReply { duplicate: Some("a copy runs".into()), ..EdgeStatusReply::default() };
        assert!(copied.describe().contains("copy         a copy runs"));
        let reason = Some("a copy runs".to_string());
        let removed = EdgeStatusReply { standing: MembershipState::Copied, reason, ..copied };
        assert_eq!(removed.describe().matches("a copy runs").count(), 1, "{}", removed.describe());
    }

    #[test]
    fn queued_messages_say_what_holds_them_up() {
        let waiting = EdgeStatusReply {
            queued: 2,
            held_up: Some("the leader does not answer".into()),
            ..EdgeStatusReply::default()
        };
        assert!(waiting.describe().contains("queued       2, the leader does not answer"));
        let dropped = Some(DroppedMessages { number: 1, at: 1_800_000_000 });
        let said = EdgeStatusReply { dropped, ..EdgeStatusReply::default() }.describe();
        assert!(
            said.contains("dropped      1 queued message ") && said.contains("2027-01-15T08:00:00Z"),
            "{said}"
        );
    }
}
