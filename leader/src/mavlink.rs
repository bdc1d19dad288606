//! MAVLink programs beside a leader, and the group's table of system ids: grants by name, spread signed.

mod granted;

use std::sync::Arc;
use std::time::Duration;

use quiver_admission::AdmittingLeader;
use quiver_ainq::{DronePublicKey, Name, Ristretto255, Signature, Slot};
use quiver_bridge::{FORGERIES_CHANNEL, Group, News, Obstacle, SYSTEM_IDS_CHANNEL};
use quiver_group::leader::Stance;
use quiver_group::{LeaderCommand, LeaderEvent, Source};
use quiver_machine::{Either, Now};
use quiver_mavlink::{IssuedSystemIds, SystemIds};
use quiver_net::{Driver, Handle, Host};
use quiver_service::clock;
use quiver_service::drone::request::Answered;
use quiver_service::drone::{Error, Result, Running};
use rand::rngs::OsRng;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

pub(crate) use self::granted::{GrantRow, Granted, SystemIdRequest};
use crate::control::STANDING_BY;
use crate::service::LeaderNode;

/// How often is looked whether somebody lacks the table.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often the table is spread although nothing has changed: a member may have lost it. Longer by
/// [`PER_GRANT`] for each grant, because everybody receives all of it.
const SPREAD_EVERY: Duration = Duration::from_secs(5);
/// See [`SPREAD_EVERY`].
const PER_GRANT: Duration = Duration::from_millis(100);
/// Times that a change is spread: whoever activates the epoch a moment later cannot open the first.
const REPEATS: u8 = 3;

/// Whoever floods a carrier with forged datagrams makes the group take no more than one new key in this time.
const REKEY_AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// Where it is told that tags are guessed under the key of the epoch with this digest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgeries(watch::Sender<Option<[u8; 32]>>);

impl Forgeries {
    fn tell(&self, digest: [u8; 32]) {
        self.0.send_replace(Some(digest));
    }

    /// Takes a member's message on the channel for it; `false` if the event is another.
    pub(crate) fn take(&self, event: &LeaderEvent) -> bool {
        let LeaderEvent::Message { channel, data, source } = event else { return false };
        if channel.as_str() != FORGERIES_CHANNEL {
            return false;
        }
        match (source, data.as_slice().try_into()) {
            (Source::Signed { name, .. }, Ok(digest)) => {
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
    pub(crate) async fn answer(self, machine: Handle<LeaderNode>) {
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

/// The leader's machine, as its bridge asks it.
pub(crate) struct LeaderGroup {
    pub(crate) running: Running<AdmittingLeader<Ristretto255>>,
    pub(crate) forgeries: Forgeries,
}

impl Clone for LeaderGroup {
    fn clone(&self) -> Self {
        Self { running: self.running.clone(), forgeries: self.forgeries.clone() }
    }
}

impl Group<Ristretto255> for LeaderGroup {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
        let sign = move |machine: &LeaderNode| machine.sign_datagram(&statement, &mut OsRng);
        self.running.machine.inspect(sign).await.ok().flatten()
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<Ristretto255>) -> bool {
        // Only the wall clock is asked: for the end of the drone's identity.
        let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
        let may = move |machine: &LeaderNode| machine.may_sign_datagrams(now, slot, &drone).is_ok();
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
        let id = id.parse().map_err(|_| wrong("behind = a number from 1 to 255 is expected"))?;
        if table.of_name(name).is_some() {
            return Err(wrong("this name has a system id already"));
        }
        table.grant(name, id).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(table)
}

/// Lets the driver tell the bridge each key, as soon as it is durable, that there is none any more, at once,
/// and in which slots those are to whom system ids are granted.
pub(crate) fn watched<H: Host<LeaderNode>>(
    driver: Driver<LeaderNode, H>,
    granted: Granted,
) -> Driver<LeaderNode, H> {
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
    })
}

/// What was spread, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spread {
    table: Arc<SystemIds>,
    digest: Option<[u8; 32]>,
    connected: usize,
}

/// Spreads the table as a signed message: when it, the epoch, or the number of those who are connected has
/// changed, and now and then.
pub(crate) async fn spread(machine: Handle<LeaderNode>, news: News) {
    let Ok(channel) = Name::new(SYSTEM_IDS_CHANNEL) else { return };
    let mut looking = interval(LOOK_EVERY);
    looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut number, mut repeats, mut at) = (None::<Spread>, 0_u32, 0, Instant::now());
    loop {
        looking.tick().await;
        let table = news.table();
        if table.is_empty() && last.is_none() {
            continue;
        }
        let Ok(status) = machine.inspect(|machine| machine.status()).await else { return };
        let Some(epoch) = status.epoch.filter(|_| status.connected > 0) else { continue };
        let now = Spread { table, digest: status.digest, connected: status.connected };
        if last.as_ref() != Some(&now) {
            repeats = REPEATS;
        }
        if last.as_ref().is_some_and(|last| last.table != now.table) {
            number = number.saturating_add(1);
        }
        let often = SPREAD_EVERY + PER_GRANT * u32::try_from(now.table.len()).unwrap_or(u32::MAX);
        if repeats == 0 && at.elapsed() < often {
            continue;
        }
        let issued = IssuedSystemIds { term: epoch.term, number, table: SystemIds::clone(&now.table) };
        let command = LeaderCommand::Send { channel: channel.clone(), data: issued.encode() };
        if machine.command(Either::Left(command.into())).await.is_err() {
            return;
        }
        (last, repeats, at) = (Some(now), repeats.saturating_sub(1), Instant::now());
    }
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
        let table = read(&["edge-1=1", "gcs=255"]).unwrap();
        assert_eq!(table.holder(255), Some("gcs"));
        for (texts, part) in [
            (&["edge-1"][..], "write NAME=ID"),
            (&["edge-1=x"], "from 1 to 255"),
            (&["edge-1=0"], "from 1 to 255"),
            (&["edge-1=256"], "from 1 to 255"),
            (&["edge 1=1"], "not a member's name"),
            (&["a=1", "a=2"], "already"),
            (&["a=1", "b=1"], "granted to `a`"),
        ] {
            let error = read(texts).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("system_id"), "{error}");
        }
    }
}
