//! Metrics of an edge, and whether it is ready.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quiver_group::EdgeEvent;
use quiver_group::edge::EdgeStatus;
use quiver_machine::{Offence, Route};
use quiver_net::Unreached;
use quiver_service::clock;
use quiver_service::drone::feature::GroupEdge;
use quiver_service::drone::health::Troubles;
use quiver_service::drone::metrics::GroupMetrics;
use quiver_service::monitoring::{Readiness, register};

use crate::service::send_queue::SendQueue;

/// Seconds that a leader's clock may be ahead of this machine's before the drone is not ready.
const CLOCKS: u64 = 60;

/// Reason why something was refused, and who refused it: `kgc` or `leader`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    by: &'static str,
    reason: String,
}

/// Counters and gauges. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeMetrics {
    refusals: Family<Why, Counter>,
    group: GroupMetrics,
    counters: Counters,
    gauges: Gauges,
    pub(crate) troubles: Troubles,
    /// Messages that wait for a leader, once the drone is enrolled.
    pub(crate) queue: Option<SendQueue>,
}

#[derive(Clone, Debug, Default)]
struct Counters {
    keys: Counter,
    evictions: Counter,
    enrolment_troubles: Counter,
    memberships_dropped: Counter,
    messages_dropped: Counter,
}

#[derive(Clone, Debug, Default)]
struct Gauges {
    enrolled: Gauge,
    synced: Gauge,
    starts: Gauge,
    queued: Gauge,
}

impl EdgeMetrics {
    /// Registers everything, under `edge`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("edge");
        registry.register("refusals", "Refusals, by whom and why", self.refusals.clone());
        let counters = [
            ("keys_activated", "Group keys activated", &self.counters.keys),
            ("evictions", "Times this drone was evicted from the group", &self.counters.evictions),
            (
                "enrolment_troubles",
                "KGCs of a quorum that did not do their part",
                &self.counters.enrolment_troubles,
            ),
            (
                "memberships_dropped",
                "Stored memberships that could not be restored; the drone joined anew",
                &self.counters.memberships_dropped,
            ),
            (
                "queued_messages_dropped",
                "Queued messages that no leader confirmed within 24 h, since the drone has this state",
                &self.counters.messages_dropped,
            ),
        ];
        register(registry, &counters);
        let gauges = [
            ("enrolled", "1 once this drone has its own key", &self.gauges.enrolled),
            ("synced", "1 if it holds the group's key and knows it to be current", &self.gauges.synced),
            ("starts", "How often it was started", &self.gauges.starts),
            ("queued_messages", "Messages that wait until a leader confirms them", &self.gauges.queued),
        ];
        register(registry, &gauges);
        self.group.register(registry);
    }

    /// Counts what happened. `enrolled`: refusals then come from leaders.
    pub(crate) fn count(&self, event: &EdgeEvent, enrolled: bool) {
        let counters = &self.counters;
        let counter = match event {
            EdgeEvent::Refused(reason) => {
                let (by, reason) = (if enrolled { "leader" } else { "kgc" }, reason.to_string());
                let whom = if enrolled { "leader" } else { "KGC" };
                self.troubles.note("refusal", format!("refused by the {whom}: {reason}"));
                self.refusals.get_or_create(&Why { by, reason }).inc();
                return;
            }
            EdgeEvent::Enrolled { .. } => return self.troubles.all_over(),
            EdgeEvent::KeyActivated { .. } => {
                self.troubles.all_over();
                &counters.keys
            }
            EdgeEvent::EnrolmentTrouble(trouble) => {
                self.troubles.note("trouble", trouble.to_string());
                &counters.enrolment_troubles
            }
            EdgeEvent::Evicted => {
                let why = "evicted from the group, or another process runs with a copy of this drone's state";
                self.troubles.note("refusal", why);
                &counters.evictions
            }
            EdgeEvent::Blamed { offence, .. } => {
                if *offence == Offence::Protocol(quiver_ainq::Error::Expired) {
                    let now = clock::format(clock::unix_now());
                    self.troubles.note(
                        "clock",
                        format!("the leader's keys have expired by this machine's clock, which says {now}: set the clocks right"),
                    );
                }
                &self.group.blamed
            }
            EdgeEvent::RevocationsStale => {
                let why = "the revocation list is past its next update, and `refuse_stale_revocations` is set: bring the leader and a KGC together, or unset it";
                self.troubles.note("revocations", why);
                return;
            }
            EdgeEvent::KemDiffers { own, leader } => {
                let why = format!(
                    "`kem` is {leader} in the leader's deployment file and {own} in this drone's: set one like the other"
                );
                self.troubles.note("kem", why);
                return;
            }
            EdgeEvent::Message { .. } => &self.group.messages,
            EdgeEvent::SendFailed(_) => &self.group.send_failures,
            EdgeEvent::Equivocation { .. } => &self.group.equivocations,
            EdgeEvent::MembershipDropped { .. } => &counters.memberships_dropped,
            _ => return,
        };
        counter.inc();
    }

    /// Updates the gauges, and returns whether the drone is in touch with its group. `leaders`: number of
    /// leaders' addresses; `None` while it enrols.
    pub(crate) fn refresh(
        &self,
        machine: &GroupEdge,
        unreached: &[Unreached],
        leaders: Option<usize>,
    ) -> Readiness {
        let status = machine.status();
        self.gauges.enrolled.set(status.name.is_some().into());
        self.gauges.synced.set(status.synced.into());
        let revocations = (status.revocation_number, status.revocations_next_update);
        self.group.set(status.epoch, status.valid_until, revocations);
        self.gauges.starts.set(status.boot_no.into());
        if let Some(queue) = &self.queue {
            self.gauges.queued.set(i64::try_from(queue.len()).unwrap_or(i64::MAX));
            // It is stored with the drone's state, so that a restart does not count from zero.
            let dropped = queue.dropped().map_or(0, |dropped| dropped.number);
            self.counters.messages_dropped.inner().store(dropped, Ordering::Relaxed);
        }
        let Some(leaders) = leaders else {
            return Readiness::not_ready("enrolling: no key from the KGCs yet");
        };
        let lost = unreached.iter().filter(|other| other.route == Route::Leader).count();
        readiness(&status, machine.key_issued_at(), lost == leaders, clock::unix_now())
    }
}

fn readiness(status: &EdgeStatus, issued: Option<u64>, alone: bool, now: u64) -> Readiness {
    let mut readiness = Readiness::ready();
    if alone {
        readiness.add_reason("no leader of the group is connected");
    }
    if !status.synced {
        let group = status.group.as_ref().map_or("its group", quiver_ainq::Name::as_str);
        readiness.add_reason(format!("not in sync with {group}"));
        return readiness;
    }
    if let Some(until) = status.valid_until.filter(|until| *until <= now) {
        readiness.add_reason(format!("the group key ran out at {}", clock::format(until)));
    }
    if let Some(issued) = issued.filter(|issued| *issued > now + CLOCKS) {
        readiness.add_reason(format!(
            "the leader made the group key at {}, and this machine's clock says {}: set the clocks right",
            clock::format(issued),
            clock::format(now)
        ));
    }
    readiness
}

/// Contradiction between this machine's clock and the times in the key of the leader that is connected.
pub(crate) fn clock_contradiction(status: &EdgeStatus, issued: Option<u64>, now: u64) -> Option<String> {
    status.leader.filter(|_| status.synced)?;
    let key = if let Some(until) = status.valid_until.filter(|until| *until <= now) {
        format!("the group key of the leader that is connected ran out at {}", clock::format(until))
    } else {
        let issued = issued.filter(|issued| *issued > now.saturating_add(CLOCKS))?;
        format!("the leader made the group key at {}", clock::format(issued))
    };
    Some(format!("{key}, and this machine's clock says {}: set the clocks right", clock::format(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_ainq::{Epoch, Name};

    const NOW: u64 = 1_769_860_800;

    fn status(synced: bool) -> EdgeStatus {
        EdgeStatus {
            name: Name::new("edge-1").ok(),
            group: Name::new("alpha").ok(),
            epoch: Some(Epoch { term: 1, counter: 2 }),
            digest: Some([0; 32]),
            slot: Some(3),
            synced,
            valid_until: Some(NOW + 600),
            answered: None,
            asked: 0,
            proven: 0,
            leader: None,
            revocation_number: 0,
            revocations_next_update: None,
            boot_no: 1,
        }
    }

    #[test]
    fn drone_with_the_current_key_and_a_leader_is_ready() {
        assert_eq!(readiness(&status(true), Some(NOW + 5), false, NOW), Readiness::ready());
    }

    #[test]
    fn key_that_is_over_although_its_leader_is_connected_is_the_clocks_fault() {
        let connected = EdgeStatus { leader: Some(quiver_machine::Peer(1)), ..status(true) };
        assert_eq!(clock_contradiction(&connected, Some(NOW), NOW), None);
        let over = clock_contradiction(&connected, Some(NOW), NOW + 600).expect("over");
        assert!(
            over.contains("ran out at 2026-01-31T12:10:00Z") && over.contains("set the clocks right"),
            "{over}"
        );
        let early = clock_contradiction(&connected, Some(NOW + 3600), NOW).expect("of the future");
        assert!(
            early.contains("at 2026-01-31T13:00:00Z") && early.contains("says 2026-01-31T12:00:00Z"),
            "{early}"
        );
        // Without the leader the key just ran out.
        assert_eq!(clock_contradiction(&status(true), Some(NOW), NOW + 600), None);
    }

    #[test]
    fn drone_without_says_what_is_missing() {
        let not = |status: &EdgeStatus, issued, alone, now, part: &str| {
            let found = readiness(status, issued, alone, now);
            assert!(found.reasons.iter().any(|reason| reason.contains(part)), "`{part}` not in {found:?}");
        };
        not(&status(false), None, false, NOW, "not in sync with alpha");
        not(&status(true), None, true, NOW, "no leader");
        not(&status(true), None, false, NOW + 600, "ran out at 2026-01-31T12:10:00Z");
        not(&status(true), Some(NOW + 3600), false, NOW, "clock says 2026-01-31T12:00:00Z");
    }
}
