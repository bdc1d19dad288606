//! Metrics of a relay, and whether it is ready.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quiver_net::PeerId;
use quiver_relay::{Relay, RelayEvent};
use quiver_service::drone::health::Troubles;
use quiver_service::monitoring::{Readiness, number, register};

/// Counters and gauges. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(super) struct RelayMetrics {
    leader_connected: Gauge,
    drones: Gauge,
    leaders_lost: Counter,
    drones_refused: Counter,
    messages_dropped: Counter,
    pub(super) troubles: Troubles,
}

impl RelayMetrics {
    /// Registers everything, under `relay`.
    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("relay");
        let gauges = [
            ("leader_connected", "1 if a leader is connected and serves this relay", &self.leader_connected),
            ("drones", "Drones that are connected", &self.drones),
        ];
        register(registry, &gauges);
        let counters = [
            ("leaders_lost", "Times that a leader was lost, or confirmed nothing", &self.leaders_lost),
            ("drones_refused", "Drones turned away because there was no room", &self.drones_refused),
            ("messages_dropped", "Messages dropped: too many waited, or too long", &self.messages_dropped),
        ];
        register(registry, &counters);
    }

    /// Counts what happened at the relay of this identity.
    pub(super) fn count(&self, event: &RelayEvent, identity: &PeerId) {
        let counter = match event {
            RelayEvent::LeaderConnected => return,
            RelayEvent::LeaderLost { .. } => {
                // A leader that was not told of this relay takes what it sends for a drone's, and confirms nothing.
                let told = format!(
                    "a leader was lost, or confirmed nothing; was it started with --relay {identity}?"
                );
                self.troubles.note("leader", told);
                &self.leaders_lost
            }
            RelayEvent::Full => &self.drones_refused,
            RelayEvent::Dropped { .. } => &self.messages_dropped,
        };
        counter.inc();
    }

    /// Updates the gauges, and returns whether drones have a leader here.
    pub(super) fn refresh(&self, relay: &Relay) -> Readiness {
        self.leader_connected.set(relay.has_leader().into());
        self.drones.set(number(relay.drones()));
        if relay.has_leader() {
            return Readiness::ready();
        }
        Readiness::not_ready("no leader of the group serves this relay")
    }
}
