//! MAVLink programs beside a leader, and the group's table of system ids: grants by name, spread signed.

mod granted;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use quiver_ainq::{DronePublicKey, Name, Ristretto255, Signature, Slot};
use quiver_bridge::{
    EpochKeySender, FORGERIES_CHANNEL, GroupServices, GroupStateSender, MissingKeyReason, SYSTEM_IDS_CHANNEL,
    SYSTEM_IDS_REQUEST_CHANNEL, bridge_channels,
};
use quiver_group::leader::{LeaderStatus, Stance};
use quiver_group::{LeaderCommand, LeaderEvent, MessageOrigin};
use quiver_machine::Now;
use quiver_mavlink::{SystemIds, TableIssuer, TableReceiver};
use quiver_service::drone::feature::{
    AliasHolder, FeatureRequest, RoleCommand, RoleEvent, RoleMachine, RunningNode, RunningPart, STANDING_BY,
    ServiceContext,
};
use quiver_service::drone::request::Answered;
use quiver_service::drone::{Result, StateStore};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use self::granted::Granted;
pub(crate) use self::granted::{GrantRow, SystemIdRequest};
use crate::machine;
use crate::settings::OpenBridge;
use crate::status::STATUS;
use crate::system_id::SYSTEM_ID;

/// Interval between two looks at whether somebody lacks the table.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval between two sendings of the table although nothing has changed: a member may have lost it. Longer
/// by [`PER_GRANT`] for each grant of a narrow table, because everybody receives all of it. Any other is
/// announced.
const SPREAD_EVERY: Duration = Duration::from_secs(5);
/// See [`SPREAD_EVERY`].
const PER_GRANT: Duration = Duration::from_millis(100);
/// Times that a change is spread: whoever activates the epoch a moment later cannot open the first.
const REPEATS: u8 = 3;

/// Time between two whole tables that members asked for, besides [`PER_PART`]: all receive it.
const WHOLE_EVERY: Duration = Duration::from_secs(5);
/// See [`WHOLE_EVERY`]; also the time between two parts.
const PER_PART: Duration = Duration::from_millis(200);

/// Least time between two keys that are made because of forged datagrams: whoever floods a carrier with those
/// must not make the group take one new key after another.
const REKEY_AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// The part in the service of a leader.
#[derive(Debug)]
pub(crate) struct LeaderPart {
    bridge: Option<OpenBridge>,
    /// Tells the bridge, if there is one, and whoever spreads the table.
    epoch_keys: Arc<EpochKeySender<Ristretto255>>,
    granted: Granted,
    reports: MemberReports,
    /// Digest of the epoch whose members were looked for in the table.
    placed: Mutex<Option<[u8; 32]>>,
}

impl LeaderPart {
    /// Makes the part of a service with this bridge, if there is to be one, and these grants beside the stored ones. The
    /// table of system ids is spread also by a leader without MAVLink programs.
    ///
    /// # Errors
    /// Errors of [`Granted::open`].
    pub(crate) fn open(bridge: Option<OpenBridge>, given: SystemIds, store: &StateStore) -> Result<Self> {
        let open = bridge.as_ref().map(|bridge| Arc::clone(&bridge.epoch_keys));
        let epoch_keys = open.unwrap_or_else(|| Arc::new(bridge_channels().0));
        let granted = Granted::open(given, store, Arc::clone(&epoch_keys))?;
        Ok(Self { bridge, epoch_keys, granted, reports: MemberReports::default(), placed: Mutex::default() })
    }
}

#[async_trait]
impl RunningPart for LeaderPart {
    fn name(&self) -> &'static str {
        SYSTEM_ID
    }

    fn start(&self, service: &ServiceContext<'_>, tasks: &mut JoinSet<()>) {
        let (running, forgeries) = (&service.running, &self.reports.forgeries);
        if let Some(bridge) = &self.bridge {
            bridge.start(tasks, LeaderGroup { running: Arc::clone(running), forgeries: forgeries.clone() });
        }
        let requests = self.reports.table_requests.clone();
        tasks.spawn(spread(Arc::clone(running), self.epoch_keys.group_state.clone(), requests));
        tasks.spawn(forgeries.clone().answer(Arc::clone(running)));
    }

    /// Tells the bridge each key as soon as it is durable, that there is none any more, at once, and in which slots those
    /// are to whom system ids are granted.
    fn look(&self, now: Now, machine: RoleMachine<'_>, durable: bool) {
        let RoleMachine::Leader(leader) = machine else { return };
        let keys = leader.epoch_keys(now);
        // Members change with the epoch, and at no other time.
        let digest = keys.as_ref().map(|keys| keys.digest);
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        if digest.is_some() && digest != *placed {
            *placed = digest;
            self.granted.place(leader);
        }
        let stands_by = || matches!(leader.status().stance, Stance::StandingBy { .. });
        self.epoch_keys
            .group_state
            .set_obstacle((keys.is_none() && stands_by()).then_some(MissingKeyReason::StandsBy));
        self.epoch_keys.set_keys(keys, durable);
    }

    fn take(&self, event: RoleEvent<'_>) -> bool {
        let RoleEvent::Leader(event) = event else { return false };
        if self.reports.take(event) {
            return true;
        }
        self.granted.note_eviction(event);
        if let LeaderEvent::RevocationList { number } = event {
            self.epoch_keys.group_state.set_revocation_list(*number);
        }
        false
    }

    fn register(&self, registry: &mut Registry) {
        if let Some(bridge) = &self.bridge {
            bridge.report.register(registry);
        }
    }

    fn report(&self, status: &mut Map<String, Value>) -> std::result::Result<(), String> {
        if let Some(bridge) = &self.bridge {
            bridge.report(status)?;
            name_stance(status);
        }
        Ok(())
    }

    async fn answer(&self, node: &dyn RunningNode, call: &Value) -> Answered {
        let request: SystemIdRequest = FeatureRequest::read(call).map_err(|error| error.to_string())?;
        self.granted.answer(node, request).await
    }

    fn drone_called(&self, alias: &str) -> std::result::Result<AliasHolder, String> {
        let id = alias.parse().map_err(|_| format!("{alias} is no system id"))?;
        let name = self.granted.holder(id);
        let name =
            name.ok_or_else(|| format!("system {id} is granted to nobody; see `leader system-id list`"))?;
        Ok(AliasHolder { name, kind: "system id" })
    }

    fn standing_by(&self) -> Option<&'static str> {
        self.bridge.as_ref().map(|_| "MAVLink does not pass here until this leader leads")
    }
}

/// The leader's status; `None` once the machine has stopped.
async fn status(running: &dyn RunningNode) -> Option<LeaderStatus> {
    let status = |machine: RoleMachine<'_>| match machine {
        RoleMachine::Leader(leader) => Some(leader.status()),
        RoleMachine::Edge(_) => None,
    };
    running.inspect(status).await.flatten()
}

/// Sender of the news that tags are guessed under the key of the epoch with this digest.
#[derive(Clone, Debug, Default)]
struct Forgeries(watch::Sender<Option<[u8; 32]>>);

impl Forgeries {
    fn tell(&self, digest: [u8; 32]) {
        self.0.send_replace(Some(digest));
    }

    /// Takes a member's message on the channel for it; `false` if the event is another.
    fn take(&self, event: &LeaderEvent) -> bool {
        let LeaderEvent::Message { channel, data, source } = event else { return false };
        if channel.as_str() != FORGERIES_CHANNEL {
            return false;
        }
        match (source, data.as_slice().try_into()) {
            (MessageOrigin::Signed { name, .. }, Ok(digest)) => {
                tracing::warn!(%name, "{name} hears datagrams with forged tags");
                self.tell(digest);
            }
            _ => tracing::warn!(
                "a message on the channel {FORGERIES_CHANNEL} is ignored: it is not signed, or no digest"
            ),
        }
        true
    }

    /// Makes a new key if tags are guessed under the one in use.
    async fn answer(self, running: Arc<dyn RunningNode>) {
        let mut told = self.0.subscribe();
        while told.changed().await.is_ok() {
            let guessed = *told.borrow_and_update();
            let Some(status) = status(&*running).await else { return };
            if status.digest.is_none() || status.digest != guessed {
                continue;
            }
            tracing::warn!("a new group key, because tags of datagrams are guessed under this one");
            if running.command(RoleCommand::Leader(LeaderCommand::Rekey)).await.is_err() {
                return;
            }
            sleep(REKEY_AT_MOST_EVERY).await;
        }
    }
}

/// Tells that a member lacks the table of system ids. Clones are of the same.
#[derive(Clone, Debug, Default)]
struct TableRequests(watch::Sender<u64>);

impl TableRequests {
    /// Takes a member's message on the channel for it; `false` if the event is another.
    fn take(&self, event: &LeaderEvent) -> bool {
        let LeaderEvent::Message { channel, data, source } = event else { return false };
        if channel.as_str() != SYSTEM_IDS_REQUEST_CHANNEL {
            return false;
        }
        match (source, TableReceiver::parse_request(data)) {
            (MessageOrigin::Signed { name, .. }, Some(_)) => {
                tracing::debug!(%name, "{name} lacks the table of system ids");
                self.0.send_modify(|requests| *requests = requests.wrapping_add(1));
            }
            _ => tracing::warn!(
                "a message on the channel {SYSTEM_IDS_REQUEST_CHANNEL} is ignored: it is not signed, or names no table"
            ),
        }
        true
    }
}

/// Reports of members to the leader on channels that are no program's. Clones are of the same.
#[derive(Clone, Debug, Default)]
struct MemberReports {
    forgeries: Forgeries,
    table_requests: TableRequests,
}

impl MemberReports {
    /// Takes a member's message on such a channel; `false` if the event is another.
    fn take(&self, event: &LeaderEvent) -> bool {
        self.forgeries.take(event) || self.table_requests.take(event)
    }
}

/// The running leader, as its bridge asks it.
#[derive(Clone)]
struct LeaderGroup {
    running: Arc<dyn RunningNode>,
    forgeries: Forgeries,
}

impl GroupServices<Ristretto255> for LeaderGroup {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
        machine::sign(&*self.running, statement).await
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<Ristretto255>) -> bool {
        machine::may_sign(&*self.running, slot, drone).await
    }

    async fn want_epoch(&self) {
        // The leader makes them.
    }

    async fn reach_leader(&self) {
        // It is the leader.
    }

    async fn forgeries(&self, digest: [u8; 32]) {
        self.forgeries.tell(digest);
    }
}

/// Lets the status of a bridge say, while its leader stands by, that this is why nothing passes.
fn name_stance(status: &mut Map<String, Value>) {
    let stands_by = status.get("stance").is_some_and(|stance| stance == STANDING_BY);
    if stands_by && let Some(bridge) = status.get_mut(STATUS) {
        bridge["trouble"] = "this leader stands by: nothing passes here until it leads".into();
    }
}

/// State of the table when it was last spread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SentTable {
    table: Arc<SystemIds>,
    digest: Option<[u8; 32]>,
    connected: usize,
}

/// Spreads the table by signed messages: when it, the epoch, or the number of those who are connected has
/// changed, now and then, and when a member asks.
async fn spread(running: Arc<dyn RunningNode>, group_state: GroupStateSender, requests: TableRequests) {
    let mut looking = interval(LOOK_EVERY);
    looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // §20.12: a leader that starts again opens a term, in which numbers begin anew.
    let mut issuer = TableIssuer::new(0);
    let mut asked = requests.0.subscribe();
    let (mut last, mut repeats, mut at) = (None::<SentTable>, 0, Instant::now());
    // Whether what is repeated is a change of the table.
    let (mut is_change, mut next_whole) = (false, Instant::now());
    loop {
        looking.tick().await;
        let table = group_state.table();
        if table.is_empty() && last.is_none() {
            continue;
        }
        let Some(status) = status(&*running).await else { return };
        let Some(epoch) = status.epoch.filter(|_| status.connected > 0) else { continue };
        let now = SentTable { table, digest: status.digest, connected: status.connected };
        let is_other = last.as_ref() != Some(&now);
        if is_other {
            repeats = REPEATS;
        }
        // A member that comes is told which table holds; what changed before is nothing to it.
        is_change = issuer.set(epoch.term, &now.table) || (is_change && repeats > 0 && !is_other);
        let per_grant = if issuer.is_narrow() { PER_GRANT } else { Duration::ZERO };
        let often = SPREAD_EVERY + per_grant * u32::try_from(now.table.len()).unwrap_or(u32::MAX);
        let is_asked = asked.has_changed().unwrap_or(false) && Instant::now() >= next_whole;
        if repeats == 0 && at.elapsed() < often && !is_asked {
            continue;
        }
        let messages = match (is_asked, is_change) {
            (true, _) => issuer.whole(),
            (false, true) => issuer.change(),
            (false, false) => issuer.announcement(),
        };
        if is_asked {
            asked.mark_unchanged();
            let parts = u32::try_from(messages.len()).unwrap_or(u32::MAX);
            next_whole = Instant::now() + WHOLE_EVERY + PER_PART.saturating_mul(2 * parts);
        }
        if send(&*running, messages).await.is_none() {
            return;
        }
        (last, repeats, at) = (Some(now), repeats.saturating_sub(1), Instant::now());
    }
}

/// Sends messages about the table, with a pause after each so that others pass between; `None` if the machine has
/// stopped.
async fn send(running: &dyn RunningNode, messages: Vec<Vec<u8>>) -> Option<()> {
    let channel = Name::new(SYSTEM_IDS_CHANNEL).ok()?;
    let count = messages.len();
    for (number, data) in (1..).zip(messages) {
        let command = LeaderCommand::Send { channel: channel.clone(), data };
        running.command(RoleCommand::Leader(command)).await.ok()?;
        if number < count {
            sleep(PER_PART).await;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_says_that_nothing_passes_because_the_leader_stands_by() {
        let named = |mut status: Value| {
            name_stance(status.as_object_mut().unwrap());
            status
        };
        let trouble = |status| named(status)["mavlink"]["trouble"].clone();
        let bridge = || json!({ "trouble": null });
        assert!(
            trouble(json!({ "stance": STANDING_BY, "mavlink": bridge() })).to_string().contains("stands by")
        );
        assert!(trouble(json!({ "stance": "leading", "mavlink": bridge() })).is_null());
        let without = json!({ "stance": STANDING_BY });
        assert_eq!(named(without.clone()), without);
    }
}
