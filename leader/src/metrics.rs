//! Metrics of a leader, and whether it is ready.

mod repeated_joins;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use quiver_ainq::{Epoch, EpochKind, Name, Ristretto255};
use quiver_group::leader::{ClockDoubt, ClockWitness, Stance};
use quiver_group::{Leader, LeaderEvent};
use quiver_net::Unreached;
use quiver_service::clock;
use quiver_service::drone::health::Troubles;
use quiver_service::drone::metrics::GroupMetrics;
use quiver_service::monitoring::node::Refusals;
use quiver_service::monitoring::{Readiness, number, register};
use tokio::time::Instant;

use self::repeated_joins::RepeatedJoins;

/// Meaning of a header that this leader signed and does not remember.
pub(crate) const COPY_REASON: &str = "an epoch was signed with this leader's key that it did not make: another process leads with a copy of its \
    state (end one of them), or its state was put back from an older backup";
/// Time for which such a header keeps a leader from being ready. A copy sends headers again and again, a
/// backup's past just after its start.
const COPY_SUSPECTED: Duration = Duration::from_secs(300);

/// Label of an epoch's kind: `Open` or `Rekey`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EpochLabels {
    kind: String,
}

impl EpochLabels {
    fn of(kind: EpochKind) -> Self {
        Self { kind: format!("{kind:?}") }
    }
}

/// Refusal of drones that did not prove that they satisfy the policy.
const NOT_ADMITTED: &str = "not admitted";

/// Counters and gauges. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct LeaderMetrics {
    epochs: Family<EpochLabels, Counter>,
    refusals: Refusals,
    delivery: Histogram,
    group: GroupMetrics,
    counters: Counters,
    gauges: Gauges,
    pub(crate) troubles: Troubles,
    /// Time at which a header of the leader's own was seen that it does not remember.
    copy_seen: Arc<Mutex<Option<Instant>>>,
    joins: Arc<Mutex<RepeatedJoins>>,
}

#[derive(Clone, Debug, Default)]
struct Counters {
    undelivered: Counter,
    joined: Counter,
    left: Counter,
    evicted: Counter,
    takeovers: Counter,
    stepped_down: Counter,
    rekey_failures: Counter,
    own_headers: Counter,
    repeated_joins: Counter,
}

#[derive(Clone, Debug, Default)]
struct Gauges {
    leading: Gauge,
    members: Gauge,
    connected: Gauge,
    acknowledged: Gauge,
    pending_joins: Gauge,
    deputies: Gauge,
    relays: Gauge,
    relayed: Gauge,
    classical: Gauge,
}

impl Default for LeaderMetrics {
    fn default() -> Self {
        Self {
            epochs: Family::default(),
            refusals: Refusals::default(),
            // 1 ms to 65 s.
            delivery: Histogram::new(exponential_buckets(0.001, 2.0, 17)),
            group: GroupMetrics::default(),
            counters: Counters::default(),
            gauges: Gauges::default(),
            troubles: Troubles::default(),
            copy_seen: Arc::default(),
            joins: Arc::default(),
        }
    }
}

impl LeaderMetrics {
    /// Registers everything, under `leader`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("leader");
        // There from the first, at 0: a rate over a counter that appears with its first count would miss that
        // one.
        for kind in [EpochKind::Open, EpochKind::Rekey] {
            let _ = self.epochs.get_or_create(&EpochLabels::of(kind));
        }
        registry.register("epochs", "Epochs activated, by how they came about", self.epochs.clone());
        self.refusals.register(registry, "Drones refused, by reason", &[NOT_ADMITTED]);
        registry.register_with_unit(
            "epoch_delivery",
            "From an epoch's activation until every member has acknowledged it",
            Unit::Seconds,
            self.delivery.clone(),
        );
        self.counters.register(registry);
        self.gauges.register(registry);
        self.group.register(registry);
    }

    /// Counts what happened.
    pub(crate) fn count(&self, event: &LeaderEvent) {
        let counters = &self.counters;
        let counter = match event {
            LeaderEvent::EpochActivated { kind, .. } => {
                self.epochs.get_or_create(&EpochLabels::of(*kind)).inc();
                return;
            }
            LeaderEvent::Refused { reason, .. } => {
                self.refusals.count(reason);
                return;
            }
            LeaderEvent::Joined { name, .. } => {
                self.suspect_copies(name);
                &counters.joined
            }
            LeaderEvent::Admitted { .. } => &counters.joined,
            LeaderEvent::Removed { evicted: true, .. } => &counters.evicted,
            LeaderEvent::Removed { .. } | LeaderEvent::Parted { .. } => &counters.left,
            LeaderEvent::Message { .. } => &self.group.messages,
            LeaderEvent::TookOver { .. } => &counters.takeovers,
            LeaderEvent::SteppedDown { .. } => &counters.stepped_down,
            LeaderEvent::RekeyFailed(_) => &counters.rekey_failures,
            LeaderEvent::SendFailed(_) => &self.group.send_failures,
            LeaderEvent::Equivocation { .. } => &self.group.equivocations,
            LeaderEvent::Blamed { .. } => &self.group.blamed,
            LeaderEvent::OwnHeader { .. } => {
                *self.copy_seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                &counters.own_headers
            }
            _ => return self.note_trouble(event),
        };
        counter.inc();
    }

    /// Counts a drone that did not prove that it satisfies the policy.
    pub(crate) fn count_denied(&self) {
        self.refusals.count(NOT_ADMITTED);
    }

    /// Logs a warning if a drone joins as often as only two copies of it would.
    fn suspect_copies(&self, name: &Name) {
        let mut joins = self.joins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(times) = joins.note(name, Instant::now()) {
            self.counters.repeated_joins.inc();
            tracing::warn!(
                drone = %name,
                times,
                "joins again and again: perhaps two processes run with copies of its state (end one), or it loses its state"
            );
        }
    }

    /// Notes what keeps the leader from its key, and that nothing does any more.
    fn note_trouble(&self, event: &LeaderEvent) {
        match event {
            LeaderEvent::Enrolled { .. } => self.troubles.all_over(),
            LeaderEvent::EnrolmentRefused(reason) => {
                self.troubles.note("refusal", format!("the KGC refuses to enrol this leader: {reason}"));
            }
            LeaderEvent::EnrolmentTrouble(trouble) => self.troubles.note("trouble", trouble.to_string()),
            _ => {}
        }
    }

    /// Updates the gauges, and returns whether the group is led or could be. `relayed`: numbers of relays, and of
    /// drones' connections that they hold.
    pub(crate) fn refresh(
        &self,
        machine: &Leader<Ristretto255>,
        relayed: (usize, usize),
        unreached: &[Unreached],
    ) -> Readiness {
        let status = machine.status();
        let gauges = &self.gauges;
        gauges.leading.set(i64::from(status.stance == Stance::Leading));
        gauges.members.set(number(status.members));
        gauges.connected.set(number(status.connected));
        gauges.acknowledged.set(number(status.acknowledged));
        gauges.pending_joins.set(number(status.pending_joins));
        gauges.deputies.set(number(status.deputies));
        gauges.relays.set(number(relayed.0));
        gauges.relayed.set(number(relayed.1));
        gauges.classical.set(number(machine.classical_pairs()));
        let revocations = (status.revocation_number, status.revocations_next_update);
        self.group.set(status.epoch, status.valid_until, revocations);
        let seen = *self.copy_seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readiness = stance(&status.stance, unreached);
        if seen.is_some_and(|seen| seen.elapsed() < COPY_SUSPECTED) {
            readiness.add_reason(COPY_REASON);
        }
        if let Some(doubt) = machine.clock_doubt(clock::unix_now()) {
            readiness.add_reason(describe_doubt(&doubt));
        }
        readiness
    }
}

/// Decides if a leader does its work.
fn stance(stance: &Stance, unreached: &[Unreached]) -> Readiness {
    match stance {
        Stance::Leading | Stance::StandingBy { leader: Some(_), .. } => Readiness::ready(),
        Stance::Enrolling if unreached.is_empty() => {
            Readiness::not_ready("not enrolled yet: waiting for the KGC's answer")
        }
        Stance::Enrolling => Readiness::not_ready("not enrolled yet"),
        Stance::StandingBy { leader: None, .. } => Readiness::not_ready(
            "standing by, and no leader of the group answers: it takes over when the silence has lasted long enough",
        ),
        Stance::Retired => Readiness::not_ready(
            "does not lead: another leader opened a higher term, or this one contradicted itself (see its log)",
        ),
    }
}

/// Explains why the clocks cannot both be right.
fn describe_doubt(ClockDoubt { witness, theirs, ours }: &ClockDoubt) -> String {
    let (theirs, ours) = (clock::format(*theirs), clock::format(*ours));
    let fact = match witness {
        ClockWitness::RevocationList => format!("the KGC signed its revocation list at {theirs}"),
        ClockWitness::Epoch(leader, _) => format!("leader {leader} made its newest group key at {theirs}"),
        ClockWitness::Deputised(leader) => {
            format!("leader {leader} is there, and its group key ran out at {theirs}")
        }
    };
    format!("{fact}, and this machine's clock says {ours}: set the clocks right")
}

impl Counters {
    fn register(&self, registry: &mut Registry) {
        let counters = [
            (
                "epochs_undelivered",
                "Epochs replaced before every member had acknowledged them",
                &self.undelivered,
            ),
            ("members_joined", "Drones that joined", &self.joined),
            ("members_left", "Members that left", &self.left),
            ("members_evicted", "Members evicted", &self.evicted),
            ("takeovers", "Times this leader took over from a silent one", &self.takeovers),
            ("steps_down", "Times this leader gave way to a higher term", &self.stepped_down),
            ("rekey_failures", "Failed attempts to make an epoch", &self.rekey_failures),
            (
                "own_headers",
                "Epochs signed with this leader's key that it did not make: a copy leads, or its state is too old",
                &self.own_headers,
            ),
            (
                "repeated_joins",
                "Times that a drone joined which had done so again and again",
                &self.repeated_joins,
            ),
        ];
        register(registry, &counters);
    }
}

impl Gauges {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("leading", "1 if this leader leads, 0 if it stands by or does neither", &self.leading),
            ("members", "Members on the roster", &self.members),
            ("members_connected", "Members that are connected", &self.connected),
            ("members_acknowledged", "Members that acknowledged the epoch in force", &self.acknowledged),
            ("pending_joins", "Drones waiting to be admitted", &self.pending_joins),
            ("deputies", "Leaders that stand by for this one", &self.deputies),
            ("relays", "Relays that are connected", &self.relays),
            (
                "relayed_connections",
                "Connections of drones that relays hold: one for each relay that a drone is connected to",
                &self.relayed,
            ),
            (
                "classical_pairs",
                "Members whose pair with this leader has no second factor against quantum computers",
                &self.classical,
            ),
        ];
        register(registry, &gauges);
    }
}

/// The epoch that is on its way to the members, and since when.
#[derive(Debug, Default)]
pub(crate) struct Wave(Option<(Epoch, Instant)>);

impl Wave {
    /// Measures how long an epoch takes to reach everybody.
    pub(crate) fn follow(&mut self, event: &LeaderEvent, metrics: &LeaderMetrics) {
        match event {
            LeaderEvent::EpochActivated { epoch, members, .. } => {
                let started = (*members > 0).then(|| (*epoch, Instant::now()));
                if std::mem::replace(&mut self.0, started).is_some() {
                    metrics.counters.undelivered.inc();
                }
            }
            LeaderEvent::Delivered { epoch, .. } => {
                if let Some((_, since)) = self.0.take_if(|(awaited, _)| awaited == epoch) {
                    metrics.delivery.observe(since.elapsed().as_secs_f64());
                }
            }
            LeaderEvent::SteppedDown { .. } => self.0 = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_about_the_clocks_names_who_signed_both_times_and_the_remedy() {
        let doubt =
            ClockDoubt { witness: ClockWitness::RevocationList, theirs: 1_769_864_400, ours: 1_769_860_800 };
        let told = describe_doubt(&doubt);
        for part in
            ["the KGC", "2026-01-31T13:00:00Z", "clock says 2026-01-31T12:00:00Z", "set the clocks right"]
        {
            assert!(told.contains(part), "`{part}` not in: {told}");
        }
    }
}
