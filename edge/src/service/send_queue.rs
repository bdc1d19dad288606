//! Keeps messages that no leader was there to take, and sends them when one is.
//!
//! They stand in the drone's encrypted state, durable before anybody is told that they are queued. A message
//! goes when the leader has confirmed it under the key that it was sealed for ([`confirmation`](super::confirmation)),
//! or when its time is over; one that was sent right before a crash or a re-key, or
//! whose confirmation was lost, may be sent twice. Its time runs on when the clock is set: a machine without a battery
//! for its clock begins in 1970, or when it was last shut down, and gets the time from the network.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiver_ainq::Name;
use quiver_group::EdgeCommand;
use quiver_machine::Peer;
use quiver_service::clock;
use quiver_service::drone::feature::GroupEdge;
use quiver_service::drone::{RunningDrone, StateStore};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

use super::confirmation;

/// Attachment: the messages.
const ATTACHMENT: &str = "queued messages";
/// Attachment: how many were dropped.
const DROPPED: &str = "dropped messages";
/// Maximum number of messages kept.
const MOST: usize = 64;
/// Maximum length of all texts kept, in bytes.
const MOST_BYTES: usize = 128 * 1024;
/// Time after which a message is dropped, in seconds.
const LIFETIME: u64 = 24 * 3600;
/// Seconds by which the wall clock may run away from the time that goes by, before it was set.
const DRIFT: u64 = 60;
/// 2025-01-01, before which no message was ever queued: a clock that says so is not set.
const EARLIEST: u64 = 1_735_689_600;
/// Interval of attempts.
const LOOK: Duration = Duration::from_millis(500);
/// Time for other members to come back to a leader that has just returned, before messages are sent that
/// only those receive who are there.
const SETTLING: Duration = Duration::from_secs(3);

/// Interval at which messages for other groups are looked at.
const OTHERS: Duration = Duration::from_secs(60);
/// Time after which it is logged why messages wait although a leader is there.
const STANDSTILL: Duration = Duration::from_secs(30);

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuedMessage {
    /// The channel.
    #[serde(with = "channel")]
    pub(crate) channel: Name,
    /// The text.
    pub(crate) text: String,
    /// True to sign it.
    pub(crate) signed: bool,
    /// Time at which it was queued, seconds since 1970.
    pub(crate) at: u64,
    /// Group that it is for, and goes to alone; `None` for one that an earlier build queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
}

/// Messages that were dropped because no leader confirmed them in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedMessages {
    /// Number of them, since the drone has this state.
    pub(crate) number: u64,
    /// Time at which the last were dropped, seconds since 1970.
    pub(crate) at: u64,
}

impl DroppedMessages {
    /// Describes them for people.
    pub(crate) fn describe(&self) -> String {
        let (noun, number) = (if self.number == 1 { "message" } else { "messages" }, self.number);
        format!(
            "{number} queued {noun} were never sent: no leader has confirmed them within 24 h; the last at {}",
            clock::format(self.at)
        )
    }
}

/// A channel as text.
mod channel {
    use quiver_ainq::Name;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(name: &Name, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Name::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl QueuedMessage {
    /// The command that sends it.
    pub(crate) fn command(&self) -> EdgeCommand {
        let data = self.text.clone().into_bytes();
        EdgeCommand::Send { channel: self.channel.clone(), data, signed: self.signed }
    }

    /// Returns true if it is for this group.
    fn is_for(&self, group: &str) -> bool {
        self.group.as_ref().is_none_or(|own| own == group)
    }
}

/// The queue. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    store: StateStore,
    messages: Arc<Mutex<Vec<QueuedMessage>>>,
    clock: Arc<Mutex<WallClock>>,
    pushed: Arc<Notify>,
    /// Reason why the first message was not confirmed when that was last tried.
    hindrance: Arc<Mutex<Option<Hindrance>>>,
}

/// Reason why messages wait although a leader is there.
#[derive(Clone, Debug)]
struct Hindrance {
    reason: String,
    since: Instant,
    logged: bool,
}

/// The wall clock when it was looked at last.
#[derive(Debug)]
struct WallClock {
    looked: Instant,
    unix: u64,
}

impl WallClock {
    /// Number of seconds by which the wall clock was set ahead since it was looked at last.
    fn set_by(&mut self, looked: Instant, unix: u64) -> i64 {
        let expected = self.unix.saturating_add(looked.saturating_duration_since(self.looked).as_secs());
        (self.looked, self.unix) = (looked, unix);
        let by = i64::try_from(unix.abs_diff(expected)).unwrap_or(i64::MAX);
        if by.unsigned_abs() <= DRIFT {
            0
        } else if unix < expected {
            -by
        } else {
            by
        }
    }
}

impl SendQueue {
    /// The queue as it was stored.
    pub(crate) fn open(store: &StateStore) -> Self {
        let stored = store.attachment(ATTACHMENT).map(Zeroizing::new);
        let mut messages: Vec<QueuedMessage> = stored.map_or_else(Vec::new, |bytes| {
            serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::error!("the queued messages cannot be read, and are dropped: {error}");
                Vec::new()
            })
        });
        let clock = WallClock { looked: Instant::now(), unix: clock::unix_now() };
        date_anew(&mut messages, clock.unix);
        let (messages, clock) = (Arc::new(Mutex::new(messages)), Arc::new(Mutex::new(clock)));
        Self { store: store.clone(), messages, clock, pushed: Arc::default(), hindrance: Arc::default() }
    }

    fn messages(&self) -> MutexGuard<'_, Vec<QueuedMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the messages' times along with a clock that was set.
    fn follow_clock(&self, messages: &mut Vec<QueuedMessage>, now: u64) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let by = clock.set_by(Instant::now(), now);
        drop(clock);
        if by != 0 && !messages.is_empty() {
            let mut moved = messages.clone();
            move_times(&mut moved, by, now);
            if let Err(error) = self.keep(messages, moved.clone()) {
                tracing::error!("the times of queued messages are wrong after a restart: {error}");
                *messages = moved;
            }
        }
    }

    fn hindrance(&self) -> MutexGuard<'_, Option<Hindrance>> {
        self.hindrance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reason why messages wait although a leader is there, if they do.
    pub(crate) fn held_up(&self) -> Option<String> {
        self.hindrance().as_ref().map(|hindrance| hindrance.reason.clone())
    }

    /// Notes that the first message was not confirmed, and logs it once it stands still.
    fn hinder(&self, reason: &str) {
        let mut known = self.hindrance();
        let hindrance = known.get_or_insert_with(|| Hindrance {
            reason: String::new(),
            since: Instant::now(),
            logged: false,
        });
        reason.clone_into(&mut hindrance.reason);
        if !hindrance.logged && hindrance.since.elapsed() >= STANDSTILL {
            hindrance.logged = true;
            let (seconds, waiting) = (STANDSTILL.as_secs(), self.len());
            tracing::warn!(
                waiting,
                "queued messages wait for {seconds} s although a leader is connected: {reason}"
            );
        }
    }

    /// Number of messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.messages().len()
    }

    /// Number of messages that wait for this group.
    pub(crate) fn len_of(&self, group: &str) -> usize {
        self.messages().iter().filter(|message| message.is_for(group)).count()
    }

    /// Other groups that messages wait for, with their number.
    pub(crate) fn of_others(&self, group: &str) -> Option<String> {
        let messages = self.messages();
        let others: Vec<_> = messages.iter().filter(|message| !message.is_for(group)).collect();
        let names: BTreeSet<_> = others.iter().filter_map(|message| message.group.as_deref()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        (!others.is_empty()).then(|| {
            format!("{} of them for {names}, until this drone runs in that group again", others.len())
        })
    }

    /// Messages that were dropped, if any were.
    pub(crate) fn dropped(&self) -> Option<DroppedMessages> {
        let stored = self.store.attachment(DROPPED)?;
        serde_json::from_slice(&stored).ok()
    }

    /// Notes durably that messages were dropped.
    fn note_dropped(&self, number: u64, at: u64) {
        let before = self.dropped().unwrap_or_default().number;
        let dropped = DroppedMessages { number: before.saturating_add(number), at };
        let bytes = serde_json::to_vec(&dropped).unwrap_or_default();
        if let Err(error) = tokio::task::block_in_place(|| self.store.attach(DROPPED, &bytes)) {
            tracing::error!("that messages were dropped is not noted: {error}");
        }
    }

    /// Place of the first message for this group, and the message.
    fn first_of(&self, group: &str) -> Option<(usize, QueuedMessage)> {
        let messages = self.messages();
        let (place, first) = messages.iter().enumerate().find(|(_, message)| message.is_for(group))?;
        Some((place, first.clone()))
    }

    /// Keeps a message, durably; or says why not. Returns how many wait.
    pub(crate) fn push(&self, message: QueuedMessage) -> Result<usize, String> {
        let mut messages = self.messages();
        self.follow_clock(&mut messages, message.at);
        if let Some(bound) = full(&messages, &message) {
            return Err(format!("not sent: no leader is there, and {bound} messages wait already"));
        }
        let mut more = messages.clone();
        more.push(message);
        self.keep(&mut messages, more).map_err(|error| format!("not sent, and not queued: {error}"))?;
        self.pushed.notify_one();
        Ok(messages.len())
    }

    fn keep(
        &self,
        messages: &mut Vec<QueuedMessage>,
        changed: Vec<QueuedMessage>,
    ) -> quiver_service::Result<()> {
        // Names, texts and numbers always serialise.
        let bytes = Zeroizing::new(serde_json::to_vec(&changed).unwrap_or_default());
        tokio::task::block_in_place(|| self.store.attach(ATTACHMENT, &bytes))?;
        *messages = changed;
        Ok(())
    }

    /// Drops the message at this place, which was sent. Nothing but this and [`Self::expire`], in one task,
    /// takes messages away, so that it is there still.
    fn drop_sent(&self, place: usize) {
        let mut messages = self.messages();
        let others = messages.iter().enumerate().filter(|(at, _)| *at != place);
        let rest: Vec<_> = others.map(|(_, message)| message.clone()).collect();
        if let Err(error) = self.keep(&mut messages, rest.clone()) {
            tracing::error!(
                "a message that was sent stays on the disk, and is sent again after a restart: {error}"
            );
            *messages = rest;
        }
    }

    /// Drops messages whose time is over.
    fn expire(&self, now: u64) {
        let mut messages = self.messages();
        self.follow_clock(&mut messages, now);
        let rest: Vec<_> = messages.iter().filter(|message| !is_over(message, now)).cloned().collect();
        let expired = messages.len() - rest.len();
        if expired > 0 {
            tracing::warn!(
                "{expired} queued messages expired and are dropped: no leader has confirmed them within 24 h"
            );
            if let Err(error) = self.keep(&mut messages, rest) {
                tracing::error!("expired messages stay queued: {error}");
                return;
            }
            drop(messages);
            self.note_dropped(expired as u64, now);
        }
    }

    /// Sends what waits for this group, one after the other, whenever the leader is there.
    pub(crate) async fn deliver(self, running: RunningDrone<GroupEdge>, group: Name) {
        let mut there: Option<(Peer, Instant)> = None;
        loop {
            self.expire(clock::unix_now());
            if self.len() == 0 {
                *self.hindrance() = None;
                self.pushed.notified().await;
                continue;
            }
            let Ok(status) = running.machine.inspect(|machine| machine.status()).await else { return };
            let Some((place, message)) = self.first_of(group.as_str()) else {
                *self.hindrance() = None;
                // A message for another group waits for a start in that one, or for its end.
                let _ = timeout(OTHERS, self.pushed.notified()).await;
                continue;
            };
            // A drone that has just begun is perhaps still a member of the group that it was in before.
            let is_there = status.synced && status.group.as_ref() == Some(&group);
            let leader = status.leader.filter(|_| is_there);
            let since = there.filter(|(known, _)| Some(*known) == leader).map(|(_, since)| since);
            there = leader.map(|leader| (leader, since.unwrap_or_else(Instant::now)));
            if there.is_none() {
                *self.hindrance() = None;
            }
            if there.is_none_or(|(_, since)| since.elapsed() < SETTLING) {
                sleep(LOOK).await;
                continue;
            }
            let at = clock::format(message.at);
            match deliver_one(&running, &message).await {
                Ok(()) => {
                    tracing::info!("sent the message queued at {at}");
                    *self.hindrance() = None;
                    self.drop_sent(place);
                }
                // The hindrance passes, or its time does.
                Err(reason) => {
                    self.hinder(&reason);
                    sleep(LOOK).await;
                }
            }
        }
    }
}

/// Sends a message, and waits for its confirmation; or says why it may not have arrived.
async fn deliver_one(running: &RunningDrone<GroupEdge>, message: &QueuedMessage) -> Result<(), String> {
    if running.machine.duplicate_identity().is_some() {
        return Err(confirmation::COPY.into());
    }
    let handed = confirmation::send(running, message.command()).await?;
    let handed = handed.ok_or(confirmation::NO_LEADER)?;
    confirmation::confirm(running, handed).await.map_err(String::from)
}

/// The bound that one more message would exceed.
fn full(messages: &[QueuedMessage], more: &QueuedMessage) -> Option<String> {
    let bytes: usize = messages.iter().map(|message| message.text.len()).sum();
    if messages.len() >= MOST {
        Some(format!("{MOST}"))
    } else if bytes + more.text.len() > MOST_BYTES {
        Some(format!("{} KiB of", MOST_BYTES / 1024))
    } else {
        None
    }
}

/// Moves times along with a clock that was set ahead by so many seconds, and says this now.
fn move_times(messages: &mut [QueuedMessage], by: i64, now: u64) {
    for message in messages {
        message.at = message.at.saturating_add_signed(by).min(now);
    }
}

/// Lets the time of messages begin anew that were queued before the clock was set, and of those of a clock that was
/// ahead: nobody knows how long they have waited.
fn date_anew(messages: &mut [QueuedMessage], now: u64) {
    for message in messages.iter_mut().filter(|message| message.at < EARLIEST || message.at > now) {
        message.at = now;
    }
}

const fn is_over(message: &QueuedMessage, now: u64) -> bool {
    now.saturating_sub(message.at) >= LIFETIME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> QueuedMessage {
        let channel = Name::new("chat").expect("name");
        QueuedMessage { channel, text: "x".repeat(length), signed: true, at: 1_000_000, group: None }
    }

    #[test]
    fn queue_is_bounded_in_number_and_bytes() {
        assert_eq!(full(&[], &message(MOST_BYTES)), None);
        assert_eq!(full(&[], &message(MOST_BYTES + 1)).as_deref(), Some("128 KiB of"));
        assert_eq!(full(&vec![message(1); MOST - 1], &message(1)), None);
        assert_eq!(full(&vec![message(1); MOST], &message(1)).as_deref(), Some("64"));
    }

    #[test]
    fn message_goes_to_the_group_that_it_is_for_alone() {
        let of = |group: Option<&str>| QueuedMessage { group: group.map(String::from), ..message(1) };
        assert!(of(Some("alpha")).is_for("alpha") && !of(Some("alpha")).is_for("beta"));
        assert!(of(None).is_for("alpha"), "of an earlier build");
        let stored = serde_json::to_string(&of(None)).expect("json");
        assert!(!stored.contains("group"), "as earlier builds read it: {stored}");
        assert_eq!(serde_json::from_str::<QueuedMessage>(&stored).expect("of an earlier build"), of(None));
    }

    #[test]
    fn message_survives_the_setting_of_the_clock_and_is_over_a_day_after_it_was_queued() {
        let start = Instant::now();
        // Shut down three days ago by its own clock, or never set.
        for unset in [40, 1_800_000_000 - 3 * LIFETIME] {
            let mut clock = WallClock { looked: start, unix: unset };
            let mut messages = vec![QueuedMessage { at: unset + 10, ..message(1) }];
            let hour = Duration::from_secs(3600);
            assert_eq!(clock.set_by(start + hour, unset + 3610), 0, "a clock that is a little fast");
            let now = 1_800_000_000 + 7200;
            let by = clock.set_by(start + 2 * hour, now);
            move_times(&mut messages, by, now);
            assert!(!is_over(&messages[0], now), "{messages:?}");
            assert!(messages[0].at.abs_diff(1_800_000_000) < 30, "{messages:?}");
            assert!(is_over(&messages[0], 1_800_000_000 + LIFETIME + 30));
            assert_eq!(clock.set_by(start + 3 * hour, now + 3600), 0);
        }
    }

    #[test]
    fn message_queued_before_the_clock_was_set_has_its_whole_time_after_a_restart() {
        let now = 1_800_000_000;
        let mut messages =
            [50, now - 3600, now + LIFETIME * 365].map(|at| QueuedMessage { at, ..message(1) });
        date_anew(&mut messages, now);
        assert_eq!(messages.map(|message| message.at), [now, now - 3600, now]);
    }

    #[test]
    fn message_is_over_after_a_day_and_not_because_a_clock_went_back() {
        assert!(!is_over(&message(1), 1_000_000 + LIFETIME - 1));
        assert!(is_over(&message(1), 1_000_000 + LIFETIME));
        assert!(!is_over(&message(1), 0));
    }
}
