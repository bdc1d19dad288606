//! MAVLink programs beside a leader, and the group's table of system ids: grants by name, spread signed.

#[path = "leader/granted.rs"]
mod granted;

use std::sync::Arc;
use std::time::Duration;

use quiver_admission::AdmittingLeader;
use quiver_ainq::{DronePublicKey, Name, Ristretto255, Signature, Slot};
use quiver_bridge::{
    FORGERIES_CHANNEL, GroupServices, News, Obstacle, SYSTEM_IDS_CHANNEL, SYSTEM_IDS_REQUEST_CHANNEL,
};
use quiver_group::leader::Stance;
use quiver_group::{LeaderCommand, LeaderEvent, MessageOrigin};
use quiver_machine::{Either, Now};
use quiver_mavlink::{SystemIds, TableIssuer, TableReceiver};
use quiver_net::{Driver, Handle, Host};
use quiver_service::clock;
use quiver_service::drone::feature::{RoleMachine, RunningParts, STANDING_BY};
use quiver_service::drone::request::Answered;
use quiver_service::drone::{Error, Result, RunningDrone};
use rand::rngs::OsRng;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

pub(crate) use self::granted::{GrantRow, Granted, SystemIdRequest};
use crate::service::AdmittingLeaderNode;

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

/// Sender of the news that tags are guessed under the key of the epoch with this digest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgeries(watch::Sender<Option<[u8; 32]>>);

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
    pub(crate) async fn answer(self, machine: Handle<AdmittingLeaderNode>) {
        let mut told = self.0.subscribe();
        while told.changed().await.is_ok() {
            let guessed = *told.borrow_and_update();
            let Ok(status) = machine.inspect(|machine| machine.status()).await else { return };
            if status.digest.is_none() || status.digest != guessed {
                continue;
            }
            tracing::warn!("a new group key, because tags of datagrams are guessed under this one");
            if machine.command(Either::Left(LeaderCommand::Rekey.into())).await.is_err() {
                return;
            }
            sleep(REKEY_AT_MOST_EVERY).await;
        }
    }
}

/// Tells that a member lacks the table of system ids. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRequests(watch::Sender<u64>);

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
pub(crate) struct MemberReports {
    pub(crate) forgeries: Forgeries,
    pub(crate) table_requests: TableRequests,
}

impl MemberReports {
    /// Takes a member's message on such a channel; `false` if the event is another.
    pub(crate) fn take(&self, event: &LeaderEvent) -> bool {
        self.forgeries.take(event) || self.table_requests.take(event)
    }
}

/// The leader's machine, as its bridge asks it.
pub(crate) struct LeaderGroup {
    pub(crate) running: RunningDrone<AdmittingLeader<Ristretto255>>,
    pub(crate) forgeries: Forgeries,
}

impl Clone for LeaderGroup {
    fn clone(&self) -> Self {
        Self { running: self.running.clone(), forgeries: self.forgeries.clone() }
    }
}

impl GroupServices<Ristretto255> for LeaderGroup {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
        let sign = move |machine: &AdmittingLeaderNode| machine.sign_datagram(&statement, &mut OsRng);
        self.running.machine.inspect(sign).await.ok().flatten()
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<Ristretto255>) -> bool {
        // Only the wall clock is asked: for the end of the drone's identity.
        let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
        let may = move |machine: &AdmittingLeaderNode| machine.may_sign_datagrams(now, slot, &drone).is_ok();
        self.running.machine.inspect(may).await.unwrap_or(false)
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
pub(crate) fn with_stance(answered: Answered) -> Answered {
    let mut status = answered?;
    let stands_by = status.get("stance").is_some_and(|stance| stance == STANDING_BY);
    if stands_by && let Some(bridge) = status.get_mut("mavlink") {
        bridge["trouble"] = "this leader stands by: nothing passes here until it leads".into();
    }
    Ok(status)
}

/// Reads the grants, each `NAME=ID`.
pub(crate) fn grants(texts: &[String]) -> Result<SystemIds> {
    let mut table = SystemIds::new();
    for text in texts {
        let wrong = |what: &str| Error::config(format!("`system_id`: {text}: {what}"));
        let (name, id) = text.split_once('=').ok_or_else(|| wrong("write NAME=ID, such as edge-1=1"))?;
        let id = SystemIds::parse_id(id).map_err(|error| wrong(&error.to_string()))?;
        if table.of_name(name).is_some() {
            return Err(wrong("this name has a system id already"));
        }
        table.grant(name, id).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(table)
}

/// Lets the driver tell the bridge each key, as soon as it is durable, that there is none any more, at once,
/// and in which slots those are to whom system ids are granted.
pub(crate) fn watched<H: Host<AdmittingLeaderNode>>(
    driver: Driver<AdmittingLeaderNode, H>,
    granted: Granted,
    parts: RunningParts,
) -> Driver<AdmittingLeaderNode, H> {
    let mut seen = None;
    driver.with_inspector(move |now, machine, durable| {
        let keys = machine.epoch_keys(now);
        // Members change with the epoch, and at no other time.
        let digest = keys.as_ref().map(|keys| keys.digest);
        if digest.is_some() && digest != seen {
            seen = digest;
            granted.place(machine);
        }
        let stands_by = || matches!(machine.status().stance, Stance::StandingBy { .. });
        granted.feed.news.set_obstacle((keys.is_none() && stands_by()).then_some(Obstacle::StandsBy));
        granted.feed.set_keys(keys, durable);
        parts.look(now, RoleMachine::Leader(machine), durable);
    })
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
pub(crate) async fn spread(machine: Handle<AdmittingLeaderNode>, news: News, requests: TableRequests) {
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
        let table = news.table();
        if table.is_empty() && last.is_none() {
            continue;
        }
        let Ok(status) = machine.inspect(|machine| machine.status()).await else { return };
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
        if send(&machine, messages).await.is_none() {
            return;
        }
        (last, repeats, at) = (Some(now), repeats.saturating_sub(1), Instant::now());
    }
}

/// Sends messages about the table, with a pause after each so that others pass between; `None` if the machine has
/// stopped.
async fn send(machine: &Handle<AdmittingLeaderNode>, messages: Vec<Vec<u8>>) -> Option<()> {
    let channel = Name::new(SYSTEM_IDS_CHANNEL).ok()?;
    let count = messages.len();
    for (number, data) in (1..).zip(messages) {
        let command = LeaderCommand::Send { channel: channel.clone(), data };
        machine.command(Either::Left(command.into())).await.ok()?;
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
        let trouble = |status| with_stance(Ok(status)).unwrap()["mavlink"]["trouble"].clone();
        let bridge = || json!({ "trouble": null });
        assert!(
            trouble(json!({ "stance": STANDING_BY, "mavlink": bridge() })).to_string().contains("stands by")
        );
        assert!(trouble(json!({ "stance": "leading", "mavlink": bridge() })).is_null());
        let without = json!({ "stance": STANDING_BY });
        assert_eq!(with_stance(Ok(without.clone())), Ok(without));
        assert_eq!(with_stance(Err("why".into())), Err("why".into()));
    }

    #[test]
    fn grants_are_read_and_mistakes_say_what_to_write() {
        let read = |texts: &[&str]| grants(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        let table = read(&["edge-1=1", "gcs=255", "edge-2=70000", "edge-3=4294967295"]).unwrap();
        assert_eq!((table.holder(255), table.holder(70_000)), (Some("gcs"), Some("edge-2")));
        assert_eq!(table.holder(u32::MAX), Some("edge-3"));
        for (texts, part) in [
            (&["edge-1"][..], "write NAME=ID"),
            (&["edge-1=x"], "from 1 to 255"),
            (&["edge-1=0"], "from 1 to 255"),
            (&["edge-1=4294967296"], "4294967296 is not a system id"),
            (&["edge-1=-1"], "from 1 to 255"),
            (&["edge 1=1"], "not a member's name"),
            (&["a=1", "a=2"], "already"),
            (&["a=1", "b=1"], "granted to `a`"),
        ] {
            let error = read(texts).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("system_id"), "{error}");
        }
    }
}
