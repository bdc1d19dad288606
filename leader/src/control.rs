//! Requests that only a running leader answers: status, evictions, re-keys, messages.

use std::time::Duration;

use quiver_ainq::{Epoch, Name, Ristretto255};
use quiver_group::leader::{Laggard, Stance};
use quiver_group::{Leader, LeaderCommand, LeaderEvent};
use quiver_machine::Either;
use quiver_net::Handle;
use quiver_service::clock;
use quiver_service::deployment_file::KemSetting;
use quiver_service::drone::feature::{
    AliasHolder, GivenAlias, GroupLeader, RunningParts, STANDING_BY, status_rows,
};
use quiver_service::drone::kem_row::KemRow;
use quiver_service::drone::request::{Answered, json};
use quiver_service::drone::running::{ENDING, RunningDrone};
use quiver_service::drone::send::SendReport;
use quiver_service::terminal::{self, table};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio::time::timeout;

use crate::features::FEATURES;
use crate::service::ServiceLeader;

/// Time limit of a new epoch.
const EPOCH_TIME: Duration = Duration::from_secs(20);
/// Members a status names; a larger group is cut short.
pub(crate) const MEMBERS_SHOWN: usize = 10_000;
/// Members that are behind and that a status names.
pub(crate) const LAGGARDS_SHOWN: usize = 1_000;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LeaderRequest {
    /// The state of the leader and its group.
    Status {
        /// Number of members to name.
        roster: usize,
        /// Number of members that are behind to name.
        laggards: usize,
    },
    /// Evict a drone, by its name or another that a feature has for it.
    Evict(String),
    /// Evict the drone that a feature has this other name for.
    EvictCalled(GivenAlias),
    /// Evict the holder of a slot.
    EvictSlot(u32),
    /// Make a new key.
    Rekey,
    /// Renew the second factor with a member, by its name, or with all drones.
    RenewKem(Option<String>),
    /// Send a message to the group.
    Send {
        /// The channel.
        channel: String,
        /// The text.
        text: String,
    },
}

/// The answer to [`LeaderRequest::Status`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaderStatusReply {
    /// The leader's name, once enrolled.
    pub(crate) name: Option<String>,
    /// The group.
    pub(crate) group: String,
    /// True if a term is open.
    pub(crate) serving: bool,
    /// Stance of the leader: `enrolling`, `leading`, `standing by` or `retired`.
    pub(crate) stance: String,
    /// Leader that it stands by for, if that one answers; only while standing by.
    pub(crate) stands_by_for: Option<String>,
    /// Epoch whose roster it holds, while standing by.
    pub(crate) replica: Option<String>,
    /// Number of leaders that stand by, while leading.
    pub(crate) deputies: usize,
    /// Term of the epoch in force.
    pub(crate) term: Option<u64>,
    /// Counter of the epoch in force.
    pub(crate) counter: Option<u64>,
    /// First 8 bytes of the epoch's digest, hex: equal at all members that hold its key.
    pub(crate) epoch_digest: Option<String>,
    /// Time at which the epoch was made.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) issued_at: Option<u64>,
    /// End of the key's validity.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) valid_until: Option<u64>,
    /// Members on the roster.
    pub(crate) members: usize,
    /// Number of anonymous members among them.
    #[serde(default)]
    pub(crate) anonymous: usize,
    /// Second factor that the deployment file says: `none`, `ml-kem-768` or `ml-kem-1024`.
    #[serde(default)]
    pub(crate) kem: KemSetting,
    /// Number of members whose pair with this leader rests on the curve alone.
    #[serde(default)]
    pub(crate) classical: usize,
    /// Number of members that have a key in this term; the others have been away since before it.
    pub(crate) keyed: usize,
    /// Number of connected members.
    pub(crate) connected: usize,
    /// Number of members that acknowledged the epoch.
    pub(crate) acknowledged: usize,
    /// Drones waiting to be admitted.
    pub(crate) pending_joins: usize,
    /// Connected relays.
    #[serde(default)]
    pub(crate) relays: usize,
    /// Drones' connections that those hold: one for each relay that a drone is connected to.
    #[serde(default)]
    pub(crate) relayed: usize,
    /// Number of the newest revocation list.
    pub(crate) revocation_list: u64,
    /// Time at which that list becomes stale; `None` without a list.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) revocations_next_update: Option<u64>,
    /// Members with a name, by slot.
    pub(crate) roster: Vec<MemberRow>,
    /// Members that have not acknowledged the epoch, the worst first.
    pub(crate) laggards: Vec<LaggardRow>,
    /// Addresses it listens on.
    pub(crate) listening: Vec<String>,
    /// Reason why nothing is sent or received, if the node stands still.
    #[serde(default)]
    pub(crate) stalled: Option<String>,
    /// Source that says that another process runs with a copy of this leader's identity, if there is one.
    #[serde(default)]
    pub(crate) duplicate: Option<String>,
    /// Fields of features.
    #[serde(flatten)]
    pub(crate) features: Map<String, Value>,
}

/// A member with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberRow {
    /// Slot of the member.
    pub(crate) slot: u32,
    /// Name of the member.
    pub(crate) name: String,
    /// The second factor of its pair with this leader; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kem: Option<KemRow>,
}

/// A member that has not acknowledged the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaggardRow {
    /// Slot of the member.
    pub(crate) slot: u32,
    /// Name of the member; `None` if it is anonymous.
    pub(crate) name: Option<String>,
    /// True if it is connected.
    pub(crate) connected: bool,
    /// The counter of the newest epoch of this term that it acknowledged.
    pub(crate) acknowledged: Option<u64>,
    /// Time of its last message; `None` if there was none since the leader started.
    #[serde(with = "quiver_service::clock::rfc3339")]
    pub(crate) last_heard: Option<u64>,
}

impl From<Laggard> for LaggardRow {
    fn from(laggard: Laggard) -> Self {
        let Laggard { slot, name, connected, acknowledged, last_heard } = laggard;
        Self { slot, name: name.map(|name| name.to_string()), connected, acknowledged, last_heard }
    }
}

impl LeaderStatusReply {
    fn of(machine: &Leader<Ristretto255>, relayed: (usize, usize), roster: usize, laggards: usize) -> Self {
        let status = machine.status();
        let (stance, stands_by_for, replica) = match &status.stance {
            Stance::Enrolling => ("enrolling", None, None),
            Stance::Leading => ("leading", None, None),
            Stance::StandingBy { leader, held } => {
                (STANDING_BY, leader.as_ref().map(Name::to_string), held.map(|epoch| epoch.to_string()))
            }
            Stance::Retired => ("retired", None, None),
        };
        Self {
            name: status.name.map(|name| name.to_string()),
            group: status.group.to_string(),
            serving: status.epoch.is_some(),
            stance: stance.into(),
            stands_by_for,
            replica,
            deputies: status.deputies,
            term: status.epoch.map(|epoch| epoch.term),
            counter: status.epoch.map(|epoch| epoch.counter),
            epoch_digest: status.digest.map(|digest| hex::encode(&digest[..8])),
            issued_at: status.issued_at,
            valid_until: status.valid_until,
            members: status.members,
            anonymous: status.anonymous,
            kem: machine.kem_setting(),
            classical: machine.classical_pairs(),
            keyed: status.keyed,
            connected: status.connected,
            acknowledged: status.acknowledged,
            pending_joins: status.pending_joins,
            relays: relayed.0,
            relayed: relayed.1,
            revocation_list: status.revocation_number,
            revocations_next_update: status.revocations_next_update,
            roster: machine
                .members()
                .take(roster.min(MEMBERS_SHOWN))
                .map(|(slot, name)| MemberRow {
                    slot,
                    name: name.to_string(),
                    kem: machine.kem_state(slot).map(KemRow::from),
                })
                .collect(),
            laggards: machine
                .laggards(laggards.min(LAGGARDS_SHOWN))
                .into_iter()
                .map(LaggardRow::from)
                .collect(),
            listening: Vec::new(),
            stalled: None,
            duplicate: None,
            features: Map::new(),
        }
    }

    /// Names the stance and the leader that it stands by for, for people.
    pub(crate) fn role(&self) -> String {
        match (&self.stands_by_for, &self.replica) {
            (Some(leader), Some(epoch)) => format!("{} for {leader}, holding epoch {epoch}", self.stance),
            (None, Some(epoch)) => format!("{}, holding epoch {epoch}; nobody answers", self.stance),
            _ if self.deputies > 0 => format!("{}, {} standing by", self.stance, self.deputies),
            _ => self.stance.clone(),
        }
    }

    /// Describes the second factor for people.
    fn describe_kem(&self) -> String {
        match self.classical {
            0 => self.kem.to_string(),
            pairs => format!("{}; {} without", self.kem, terminal::counted(pairs, "member")),
        }
    }

    /// Describes the status for people.
    pub(crate) fn describe(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let epoch = self.term.zip(self.counter).map(|(term, counter)| Epoch { term, counter }.to_string());
        let rows = [
            ("leader", or_dash(self.name.clone())),
            ("group", self.group.clone()),
            ("role", self.role()),
            ("epoch", or_dash(epoch)),
            ("digest", or_dash(self.epoch_digest.clone())),
            ("valid until", or_dash(self.valid_until.map(clock::format))),
            (
                "members",
                format!(
                    "{} ({} connected, {} acknowledged, {} anonymous)",
                    self.members, self.connected, self.acknowledged, self.anonymous
                ),
            ),
            ("second factor", self.describe_kem()),
            ("waiting to join", self.pending_joins.to_string()),
            ("revocation list", clock::describe_list(self.revocation_list, self.revocations_next_update)),
            ("listening", self.listening.join(" ")),
        ];
        let relays = (self.relays > 0)
            .then(|| ("relays", format!("{}, with {} connections of drones", self.relays, self.relayed)));
        let troubles = [("stalled", &self.stalled), ("copy", &self.duplicate)];
        let troubles = troubles.into_iter().filter_map(|(key, text)| Some((key, text.clone()?)));
        let rows =
            rows.into_iter().chain(relays).chain(troubles).chain(status_rows(FEATURES, &self.features));
        let mut lines: Vec<_> = rows.map(|(key, value)| format!("{key:<16} {value}")).collect();
        let now = clock::unix_now();
        let members: Vec<_> = self.roster.iter().map(|member| member.cells(now)).collect();
        if !members.is_empty() {
            lines.push(table(["SLOT", "MEMBER", "SECOND FACTOR"], &members));
        }
        if !self.laggards.is_empty() {
            let rows: Vec<_> =
                self.laggards.iter().map(|late| late.cells(self.counter, clock::unix_now())).collect();
            lines.push(table(LaggardRow::HEADING, &rows));
        }
        lines.join("\n")
    }
}

impl MemberRow {
    /// Cells of the row for people.
    fn cells(&self, now: u64) -> [String; 3] {
        let kem = self.kem.as_ref().map_or_else(|| "none".into(), |kem| kem.describe(now));
        [self.slot.to_string(), self.name.clone(), kem]
    }
}

impl LaggardRow {
    /// Headings of the columns of [`Self::cells`].
    pub(crate) const HEADING: [&'static str; 5] = ["SLOT", "BEHIND", "CONNECTED", "EPOCHS", "HEARD"];

    /// Cells of the row for people, at a time when the epoch of this counter is in force.
    pub(crate) fn cells(&self, counter: Option<u64>, now: u64) -> [String; 5] {
        let behind = match (counter, self.acknowledged) {
            (Some(counter), Some(acknowledged)) => counter.saturating_sub(acknowledged).to_string(),
            _ => "all of the term".into(),
        };
        let heard = match self.last_heard {
            Some(at) => format!("{} ago", clock::span(now.saturating_sub(at))),
            None => "never".into(),
        };
        let connected = if self.connected { "yes" } else { "no" };
        let name = self.name.clone().unwrap_or_else(|| "anonymous".into());
        [self.slot.to_string(), name, connected.into(), behind, heard]
    }
}

/// Answers a request.
pub(crate) async fn answer(
    running: RunningDrone<GroupLeader>,
    events: broadcast::Sender<LeaderEvent>,
    parts: RunningParts,
    request: LeaderRequest,
) -> Answered {
    let (machine, events) = (&running.machine, events.subscribe());
    if let LeaderRequest::Status { roster, laggards } = request {
        return status(machine, roster, laggards).await;
    }
    serving(machine).await?;
    match request {
        LeaderRequest::Evict(named) => {
            evict(machine, events, &drone_named(machine, &parts, named).await?).await
        }
        LeaderRequest::EvictCalled(given) => evict(machine, events, &parts.drone_called(&given)?.name).await,
        LeaderRequest::EvictSlot(slot) => evict_slot(machine, events, slot).await,
        LeaderRequest::Rekey => rekey(machine, events).await,
        LeaderRequest::RenewKem(name) => renew_kem(machine, events, name.as_deref()).await,
        LeaderRequest::Send { channel, text } => {
            let channel = Name::new(&channel).map_err(|error| error.to_string())?;
            let command = LeaderCommand::Send { channel, data: text.into_bytes() };
            match running.send(Either::Left(command.into())).await? {
                None => Err("not sent: no member is connected; see `leader status`".into()),
                Some(handed) => json(&SendReport::sent(handed.connections)),
            }
        }
        LeaderRequest::Status { .. } => Err(ENDING.into()),
    }
}

type Events = broadcast::Receiver<LeaderEvent>;

const NOT_LEADING: &str = "this leader does not lead; ask the one that does";

async fn status(machine: &Handle<ServiceLeader>, roster: usize, laggards: usize) -> Answered {
    let look = move |machine: &ServiceLeader| {
        LeaderStatusReply::of(machine, machine.relay_counts(), roster, laggards)
    };
    let mut status = machine.inspect(look).await.map_err(|_| ENDING)?;
    let listening = machine.listening().await.map_err(|_| ENDING)?;
    status.stalled = machine.metrics().trouble();
    status.duplicate = machine.duplicate_identity();
    let peer = machine.peer_id();
    status.listening = listening.iter().map(|address| format!("{address}/p2p/{peer}")).collect();
    json(&status)
}

/// The name of the drone that an operator means, who may know it by another name.
async fn drone_named(
    machine: &Handle<ServiceLeader>,
    parts: &RunningParts,
    named: String,
) -> Result<String, String> {
    let Some(holder) = parts.any_drone_called(&named) else { return Ok(named) };
    let name = named.clone();
    let is_name = move |machine: &ServiceLeader| machine.members().any(|(_, member)| member.as_str() == name);
    match machine.inspect(is_name).await.map_err(|_| ENDING)? {
        true if holder.name != named => Err(ambiguous(&named, &holder)),
        true => Ok(named),
        false => Ok(holder.name),
    }
}

fn ambiguous(named: &str, AliasHolder { name, kind }: &AliasHolder) -> String {
    format!(
        "nobody is evicted: {named} is the name of a member, and the {kind} of {name}; write `leader evict {name}` \
         or `leader evict --slot SLOT` (see `leader status`)"
    )
}

async fn evict(machine: &Handle<ServiceLeader>, events: Events, name: &str) -> Answered {
    let name = Name::new(name).map_err(|error| error.to_string())?;
    machine.command(Either::Left(LeaderCommand::Evict(name.clone()).into())).await.map_err(|_| ENDING)?;
    expect(events, |event| match event {
        LeaderEvent::Removed { name: removed, evicted: true, .. } if removed == name => {
            Some(Ok(format!("{name} is evicted, and will not be admitted again").into()))
        }
        LeaderEvent::Barred(barred) if barred == name => {
            Some(Ok(format!("{name} is away; it is evicted, and will not be admitted again").into()))
        }
        LeaderEvent::NoSuchMember(unknown) if unknown == name => {
            Some(Err(format!("{name} is not a member of the group; see `leader status`")))
        }
        LeaderEvent::NotLeading => Some(Err(NOT_LEADING.into())),
        _ => None,
    })
    .await
}

async fn evict_slot(machine: &Handle<ServiceLeader>, events: Events, slot: u32) -> Answered {
    machine.command(Either::Left(LeaderCommand::EvictSlot(slot).into())).await.map_err(|_| ENDING)?;
    expect(events, |event| match event {
        LeaderEvent::Removed { name, slot: freed, evicted: true, .. } if freed == slot => {
            Some(Ok(format!("{name}, in slot {slot}, is evicted, and will not be admitted again").into()))
        }
        LeaderEvent::Parted { pseudonym, slot: freed } if freed == slot => Some(Ok(format!(
            "{pseudonym}, in slot {slot}, is removed; its credential stays valid until the period ends, unless the \
             certification authority withdraws it (`kgc abke revoke`)"
        )
        .into())),
        LeaderEvent::NobodyInSlot(empty) if empty == slot => {
            Some(Err(format!("no member is in slot {slot}; see `leader status`")))
        }
        LeaderEvent::NotLeading => Some(Err(NOT_LEADING.into())),
        _ => None,
    })
    .await
}

async fn rekey(machine: &Handle<ServiceLeader>, events: Events) -> Answered {
    machine.command(Either::Left(LeaderCommand::Rekey.into())).await.map_err(|_| ENDING)?;
    expect(events, |event| match event {
        LeaderEvent::EpochActivated { epoch, members, .. } => {
            let plural = if members == 1 { "" } else { "s" };
            Some(Ok(format!("epoch {epoch}: a new key for {members} member{plural}").into()))
        }
        LeaderEvent::NotLeading => Some(Err(NOT_LEADING.into())),
        _ => None,
    })
    .await
}

async fn renew_kem(machine: &Handle<ServiceLeader>, events: Events, name: Option<&str>) -> Answered {
    let setting = machine.inspect(|machine| machine.kem_setting()).await.map_err(|_| ENDING)?;
    if setting.is_none() {
        return Err("the deployment file says no second factor: `kem` is none".into());
    }
    let name = name.map(Name::new).transpose().map_err(|error| error.to_string())?;
    machine.command(Either::Left(LeaderCommand::RenewKem(name.clone()).into())).await.map_err(|_| ENDING)?;
    expect(events, |event| match event {
        LeaderEvent::KemForgotten { keys: 0 } => Some(Ok("there is none yet: nothing was done".into())),
        LeaderEvent::KemForgotten { keys } => {
            let plural = if keys == 1 { "" } else { "s" };
            Some(Ok(format!("forgotten with {keys} drone{plural}: they join again, and share anew").into()))
        }
        LeaderEvent::NoSuchMember(unknown) if Some(&unknown) == name.as_ref() => {
            Some(Err(format!("{unknown} is not a member of the group; see `leader status`")))
        }
        LeaderEvent::NotLeading => Some(Err(NOT_LEADING.into())),
        _ => None,
    })
    .await
}

async fn serving(machine: &Handle<ServiceLeader>) -> Result<(), String> {
    let status = machine.inspect(|machine| machine.status()).await.map_err(|_| ENDING)?;
    match status.stance {
        Stance::Leading => Ok(()),
        Stance::Enrolling => Err("the leader has not enrolled yet; is the KGC reachable?".into()),
        Stance::StandingBy { leader: Some(leader), .. } => {
            Err(format!("{NOT_LEADING}: it stands by for {leader}"))
        }
        Stance::StandingBy { leader: None, .. } => Err(format!("{NOT_LEADING}, or wait until this one does")),
        Stance::Retired => Err(NOT_LEADING.into()),
    }
}

/// Waits for an event that answers.
async fn expect(mut events: Events, answer: impl Fn(LeaderEvent) -> Option<Answered>) -> Answered {
    let wait = async {
        loop {
            match events.recv().await {
                Ok(event) => {
                    if let Some(answer) = answer(event) {
                        return answer;
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Err(ENDING.into()),
            }
        }
    };
    timeout(EPOCH_TIME, wait).await.unwrap_or_else(|_| Err("nothing happened; see the leader's log".into()))
}
