//! Tells local programs the security state as numbers under names, which ground stations list, plot and log.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_datagram::DatagramCounters;
use quiver_mavlink::{Origin, message};
use tokio::time::Instant;

use super::departures::Departure;
use crate::report::BridgeStatus;

/// Values told at a time, so that the rate is bounded: frames of 30 bytes at most.
pub(super) const VALUES: usize = 16;

/// Time for which a member counts as heard.
const HEARD_WITHIN: u64 = 10_000;

/// Results of frames, by the value that counts them.
const DROPPED: [(&str, &[&str]); 4] = [
    ("QV_D_KEY", &["no key"]),
    ("QV_D_SIGN", &["unsigned command", "other signer", "no signer"]),
    ("QV_D_ID", &["no system id", "other system"]),
    ("QV_D_FULL", &["program is behind"]),
];

/// The longest time before its end in which a key is said to end soon, if there is no newer one; of short validities a
/// tenth. A leader makes the next key long before.
const ENDS_SOON: Duration = Duration::from_secs(300);

/// The key that was taken into use last.
#[derive(Clone, Copy, Debug)]
struct LastKey {
    epoch: Epoch,
    since: Instant,
    /// When its end is near, and its end; `None` for a validity of years, which has no end here.
    ends: Option<(Instant, Instant)>,
}

/// The state that is told, besides what a status has.
#[derive(Debug)]
pub(super) struct SecurityState {
    every: Option<Duration>,
    begun: Instant,
    due: Instant,
    key: Option<LastKey>,
    /// System id of the member that left or was evicted last, and when that was learnt.
    departed: Option<(u32, Instant)>,
    /// System id of the member that was evicted last.
    evicted: Option<u32>,
}

impl SecurityState {
    /// Tells it this often, or never.
    pub(super) fn new(now: Instant, every: Option<Duration>) -> Self {
        Self { every, begun: now, due: now, key: None, departed: None, evicted: None }
    }

    /// Notes the key that is in use from now on, and for how long it is valid; or that there is none.
    pub(super) fn set_key(&mut self, now: Instant, key: Option<(Epoch, Duration)>) {
        // Without a key the last one is kept, because its end tells why there is none.
        if let Some((epoch, valid_for)) = key {
            // An epoch that is told again is no newer key, and its age goes on.
            let since = self.key.filter(|held| held.epoch == epoch).map_or(now, |held| held.since);
            let soon = ENDS_SOON.min(valid_for / 10);
            let ends = now.checked_add(valid_for).map(|end| (end - soon, end));
            self.key = Some(LastKey { epoch, since, ends });
        }
        // A change is told at once, but not more often than every second.
        self.due = self.due.min(now + Duration::from_secs(1));
    }

    /// Whether the last key has run out; `None` if there was none yet.
    pub(super) fn has_run_out(&self, now: Instant) -> Option<bool> {
        self.key.map(|key| key.ends.is_some_and(|(_, end)| end <= now))
    }

    /// Whether the last key ends soon, and no newer one came.
    pub(super) fn ends_soon(&self, now: Instant) -> bool {
        self.key.is_some_and(|key| key.ends.is_some_and(|(soon, _)| soon <= now))
    }

    /// Notes that a member with a system id is no member any more.
    pub(super) fn note_departure(&mut self, now: Instant, departure: Departure) {
        self.departed = Some((departure.system, now));
        if departure.evicted {
            self.evicted = Some(departure.system);
        }
        self.due = self.due.min(now + Duration::from_secs(1));
    }

    /// Tells whether it is time to tell the state, and if so, when it is time again.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let Some(every) = self.every.filter(|_| now >= self.due) else { return false };
        self.due = now + every;
        true
    }

    /// The state as frames. `next`: the origin of the next frame.
    pub(super) fn frames(
        &self,
        now: Instant,
        (status, counters): (&BridgeStatus, &DatagramCounters),
        members: usize,
        mut next: impl FnMut() -> Origin,
    ) -> Vec<Vec<u8>> {
        // Wraps after 49 days, as `time_boot_ms` does by its definition.
        let uptime = now.duration_since(self.begun).as_millis() as u32;
        let frame = |(name, value): (&str, i64)| {
            // NAMED_VALUE_INT has 32 bits: what does not fit is shown as the greatest number.
            let value = i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX });
            message::named_value_int(next(), uptime, name, value)
        };
        self.values(now, status, counters, members).into_iter().map(frame).collect()
    }

    fn values(
        &self,
        now: Instant,
        status: &BridgeStatus,
        counters: &DatagramCounters,
        members: usize,
    ) -> [(&'static str, i64); VALUES] {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        // A key that opens nothing any more is none to the operator.
        let key = self.key.filter(|_| status.open);
        // -1 says that there is no key, because 0 may be an age or an epoch's counter.
        let of_key = |value: &dyn Fn(LastKey) -> i64| key.map_or(-1, value);
        let is_heard = |ago: Option<u64>| ago.is_some_and(|ago| ago <= HEARD_WITHIN);
        let heard = status.senders.iter().filter(|sender| is_heard(sender.heard_ago)).count();
        let [by_key, by_signature, by_id, by_load] =
            DROPPED.map(|(_, results)| number(sum(&status.frames, results)));
        let dropped: u64 = status
            .frames
            .iter()
            .filter(|(key, _)| !key.ends_with(": passed"))
            .map(|(_, number)| number)
            .sum();
        let overload = number(counters.dropped_telemetry.saturating_add(counters.dropped_commands));
        [
            ("QV_OPEN", i64::from(status.open)),
            // The low 31 bits: the greatest number would be shown for every term above it.
            ("QV_TERM", of_key(&|key| number(key.epoch.term & 0x7fff_ffff))),
            ("QV_EPOCH", of_key(&|key| number(key.epoch.counter & 0x7fff_ffff))),
            ("QV_AGE", of_key(&|key| seconds(now.duration_since(key.since)))),
            (
                "QV_LEFT",
                of_key(&|key| {
                    key.ends.map_or(i64::MAX, |(_, end)| seconds(end.saturating_duration_since(now)))
                }),
            ),
            ("QV_MEMBERS", members.try_into().unwrap_or(i64::MAX)),
            ("QV_HEARD", heard.try_into().unwrap_or(i64::MAX)),
            ("QV_GONE", self.departed.map_or(0, |(system, _)| i64::from(system))),
            ("QV_GONE_S", self.departed.map_or(-1, |(_, at)| seconds(now.duration_since(at)))),
            ("QV_EVICT", self.evicted.map_or(0, i64::from)),
            (DROPPED[0].0, by_key),
            (
                DROPPED[1].0,
                by_signature.saturating_add(number(counters.bad_signature + counters.refused_signer)),
            ),
            (DROPPED[2].0, by_id),
            (DROPPED[3].0, by_load.saturating_add(overload)),
            ("QV_D_FORGE", number(counters.forged.saturating_add(counters.replayed))),
            ("QV_D_ALL", number(dropped)),
        ]
    }
}

/// Number of frames with one of these results, whichever way.
fn sum(frames: &BTreeMap<String, u64>, results: &[&str]) -> u64 {
    let is_one = |key: &str| key.split_once(": ").is_some_and(|(_, result)| results.contains(&result));
    frames.iter().filter(|(key, _)| is_one(key)).map(|(_, number)| number).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use quiver_mavlink::Frame;

    use super::*;

    const EPOCH: Epoch = Epoch { term: 1 << 40 | 7, counter: 3 };

    fn status(open: bool) -> BridgeStatus {
        let frames = [
            ("to group: passed", 100),
            ("to group: no key", 2),
            ("from group: unsigned command", 3),
            ("from group: no system id", 4),
            ("to group: other system", 5),
            ("local: program is behind", u64::MAX / 2),
        ];
        let frames = frames.into_iter().map(|(key, number)| (key.to_owned(), number)).collect();
        BridgeStatus { open, frames, ..BridgeStatus::default() }
    }

    fn read(state: &SecurityState, now: Instant, open: bool) -> BTreeMap<&'static str, i64> {
        let counters =
            DatagramCounters { forged: 9, replayed: 1, bad_signature: 2, ..DatagramCounters::default() };
        state.values(now, &status(open), &counters, 6).into_iter().collect()
    }

    #[test]
    fn names_are_short_and_each_is_told_once() {
        let now = Instant::now();
        let state = SecurityState::new(now, None);
        let frames = state.frames(now, (&status(true), &DatagramCounters::default()), 6, || Origin {
            system: 7,
            component: message::BRIDGE_COMPONENT,
            sequence: 0,
        });
        assert_eq!(frames.len(), VALUES);
        assert!(frames.iter().all(|frame| Frame::parse(frame).unwrap().is_proven()));
        let names: BTreeSet<_> = read(&state, now, true).into_keys().collect();
        assert_eq!(names.len(), VALUES);
        assert!(names.iter().all(|name| name.len() <= 10 && name.starts_with("QV_")), "{names:?}");
        assert!(frames.iter().map(Vec::len).sum::<usize>() <= VALUES * 30);
    }

    #[test]
    fn key_members_and_drops_are_told() {
        let now = Instant::now();
        let mut state = SecurityState::new(now, None);
        assert_eq!(read(&state, now, false)["QV_EPOCH"], -1);
        state.set_key(now, Some((EPOCH, Duration::from_secs(600))));
        let later = now + Duration::from_secs(100);
        // The same key told again is not a newer one.
        state.set_key(later, Some((EPOCH, Duration::from_secs(500))));
        let values = read(&state, later, true);
        for (name, value) in [
            ("QV_OPEN", 1),
            ("QV_TERM", 7),
            ("QV_EPOCH", 3),
            ("QV_AGE", 100),
            ("QV_LEFT", 500),
            ("QV_MEMBERS", 6),
            ("QV_GONE", 0),
            ("QV_GONE_S", -1),
            ("QV_D_KEY", 2),
            ("QV_D_SIGN", 5),
            ("QV_D_ID", 9),
            ("QV_D_FORGE", 10),
        ] {
            assert_eq!(values[name], value, "{name}");
        }
        state.note_departure(later, Departure { system: 100, evicted: true });
        state.note_departure(later, Departure { system: 200, evicted: false });
        state.set_key(later, Some((Epoch { counter: 4, ..EPOCH }, Duration::from_secs(600))));
        let values = read(&state, later + Duration::from_secs(5), true);
        assert_eq!((values["QV_GONE"], values["QV_GONE_S"], values["QV_AGE"]), (200, 5, 5));
        assert_eq!(values["QV_EVICT"], 100);
        // As long as a leader may say: no arithmetic on times fails.
        state.set_key(later, Some((EPOCH, Duration::MAX)));
        assert_eq!(read(&state, later, true)["QV_LEFT"], i64::MAX);
        state.set_key(later, None);
        assert_eq!((read(&state, later, false)["QV_OPEN"], read(&state, later, false)["QV_AGE"]), (0, -1));
    }

    #[test]
    fn end_of_the_last_key_is_known_also_when_there_is_none_any_more() {
        let now = Instant::now();
        let mut state = SecurityState::new(now, None);
        assert!(state.has_run_out(now).is_none() && !state.ends_soon(now));
        for (validity, soon) in [(3_600, 3_300), (100, 90)] {
            state.set_key(now, Some((EPOCH, Duration::from_secs(validity))));
            state.set_key(now, None);
            let after = |seconds| now + Duration::from_secs(seconds);
            assert!(!state.ends_soon(after(soon - 1)) && state.ends_soon(after(soon)));
            assert_eq!(state.has_run_out(after(validity - 1)), Some(false));
            assert_eq!(state.has_run_out(after(validity)), Some(true));
        }
        state.set_key(now, Some((EPOCH, Duration::MAX)));
        assert!(state.has_run_out(now) == Some(false) && !state.ends_soon(now));
    }

    #[test]
    fn rate_is_bounded_and_never_is_never() {
        let now = Instant::now();
        let mut silent = SecurityState::new(now, None);
        let gone = |system| Departure { system, evicted: true };
        silent.note_departure(now, gone(1));
        assert!(!silent.is_due(now + Duration::from_secs(3_600)));
        let mut state = SecurityState::new(now, Some(Duration::from_secs(5)));
        assert!(state.is_due(now) && !state.is_due(now + Duration::from_secs(4)));
        // A thousand changes are told once.
        (0..1_000).for_each(|system| state.note_departure(now, gone(system)));
        assert!(!state.is_due(now) && state.is_due(now + Duration::from_secs(1)));
        assert!(!state.is_due(now + Duration::from_secs(5)) && state.is_due(now + Duration::from_secs(6)));
    }
}
