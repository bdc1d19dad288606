//! Metrics that an edge and a leader both have, each under its own prefix.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use quiver_ainq::{Epoch, UnixTime};

use crate::monitoring::{number, register};

/// Counters of group messages and of other nodes' faults; gauges of the epoch in force and of the revocation
/// list held.
#[derive(Clone, Debug, Default)]
pub struct GroupMetrics {
    /// Group messages received.
    pub messages: Counter,
    /// Messages not sent.
    pub send_failures: Counter,
    /// Leaders that contradicted themselves.
    pub equivocations: Counter,
    /// Offences.
    pub blamed: Counter,
    term: Gauge,
    counter: Gauge,
    valid_until: Gauge,
    revocation_list: Gauge,
    revocations_next_update: Gauge,
}

impl GroupMetrics {
    /// Registers them.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("messages_received", "Group messages received and opened", &self.messages),
            ("send_failures", "Messages that could not be sent", &self.send_failures),
            ("equivocations", "Leaders seen to contradict themselves", &self.equivocations),
            ("blamed_peers", "Offences of peers", &self.blamed),
        ];
        register(registry, &counters);
        let gauges = [
            ("epoch_term", "Term of the epoch in force", &self.term),
            ("epoch_counter", "Counter of the epoch in force, within its term", &self.counter),
            ("revocation_list_number", "Number of the newest revocation list held", &self.revocation_list),
            (
                "revocation_list_next_update_timestamp_seconds",
                "When the revocation list held is stale, since 1970; 0 without one",
                &self.revocations_next_update,
            ),
        ];
        register(registry, &gauges);
        let help = "Until when the group key is valid, since 1970; 0 without one";
        registry.register_with_unit(
            "key_valid_until_timestamp",
            help,
            Unit::Seconds,
            self.valid_until.clone(),
        );
    }

    /// Brings the gauges up to date; `revocations` are the list's number and its next update.
    pub fn set(
        &self,
        epoch: Option<Epoch>,
        valid_until: Option<UnixTime>,
        revocations: (u64, Option<UnixTime>),
    ) {
        self.term.set(number(epoch.map_or(0, |epoch| epoch.term)));
        self.counter.set(number(epoch.map_or(0, |epoch| epoch.counter)));
        self.valid_until.set(number(valid_until.unwrap_or_default()));
        self.revocation_list.set(number(revocations.0));
        self.revocations_next_update.set(number(revocations.1.unwrap_or_default()));
    }
}
