//! Metrics of a KGC, and whether it is ready.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quiver_ainq::{KgcId, UnixTime};
use quiver_delivery::attributes::IssuerEvent;
use quiver_delivery::kgc::DeliveryEvent;
use quiver_enrolment::{KgcEvent, RevocationUsage};
use quiver_machine::{CLOCK_TOLERANCE, Either, Machine};
use quiver_net::Handle;
use quiver_service::clock;
use quiver_service::monitoring::node::{self, Refusals};
use quiver_service::monitoring::{Monitor, MonitorPlace, Readiness, number, register};

use crate::config::Config;
use crate::error::Result;
use crate::features::Release;
use crate::key_release::KeyRelease;
use crate::kgc_machine::{KgcMachine, ServingEvent};

/// Counters and gauges. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct KgcMetrics {
    keys_issued: Counter,
    contributions: Counter,
    tokens_bound: Counter,
    repeated: Counter,
    refusals: Refusals,
    attribute_keys: Counter,
    pub(crate) released: Counter,
    pub(crate) blamed: Counter,
    pub(crate) serving: Gauge,
    pub(crate) tokens: Gauge,
    pub(crate) revocation_list: Gauge,
    revocation_list_bytes: Gauge,
    revocation_list_board_bytes: Gauge,
    revocation_list_next_update: Gauge,
    revocation_lists_claimed: Counter,
    revocation_lists_adopted: Counter,
    pub(crate) revocations_wanted: Gauge,
    pub(crate) quorum_members: Gauge,
    pub(crate) quorum_threshold: Gauge,
    pub(crate) quorum_connected: Gauge,
    pub(crate) share_version: Gauge,
    pub(crate) shares_outdated: Gauge,
    /// KGCs that did not sign a revocation list because its times are not theirs.
    other_clocks: Arc<Mutex<Vec<KgcId>>>,
}

impl KgcMetrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("kgc");
        self.refusals.register(registry, "Enrolments refused, by reason", &[]);
        let counters = [
            ("keys_issued", "Partial keys issued by this KGC alone", &self.keys_issued),
            ("key_contributions", "Contributions to keys that a quorum issues", &self.contributions),
            ("tokens_bound", "Tokens bound to the key of a drone", &self.tokens_bound),
            ("replies_repeated", "Replies given once more to the same request", &self.repeated),
            ("attribute_keys_issued", "Attribute keys issued", &self.attribute_keys),
            ("key_shares_released", "Shares of keys of conditions released", &self.released),
            ("blamed_peers", "Offences of peers", &self.blamed),
            (
                "revocation_lists_claimed",
                "Peers that claimed a newer revocation list than this KGC held",
                &self.revocation_lists_claimed,
            ),
            (
                "revocation_lists_adopted",
                "Newer revocation lists that peers held and this KGC lacked, as after a backup was put back",
                &self.revocation_lists_adopted,
            ),
        ];
        register(registry, &counters);
        let gauges = [
            ("serving", "1 if drones can enrol here", &self.serving),
            ("tokens", "Tokens in the registry that are bound to a key", &self.tokens),
            ("revocation_list_number", "Number of the newest revocation list", &self.revocation_list),
            (
                "revocation_list_bytes",
                "Bytes of the newest revocation list, of 1000000 that it may have",
                &self.revocation_list_bytes,
            ),
            (
                "revocation_list_board_bytes",
                "Bytes of the newest revocation list without edges, of 8192 that boards take",
                &self.revocation_list_board_bytes,
            ),
            (
                "revocation_list_next_update_timestamp_seconds",
                "When the newest revocation list is stale, since 1970; 0 without one",
                &self.revocation_list_next_update,
            ),
            (
                "revocations_wanted",
                "Revocations requested at this KGC and not yet at enough others",
                &self.revocations_wanted,
            ),
            ("quorum_members", "KGCs in the quorum; 1 without one", &self.quorum_members),
            ("quorum_threshold", "KGCs that it takes", &self.quorum_threshold),
            ("quorum_connected", "KGCs connected, this one included", &self.quorum_connected),
            ("share_version", "Version of the shares in force; 0 for none", &self.share_version),
            (
                "shares_outdated",
                "1 if enough other KGCs have shares of a newer version: this one was put back from an older copy",
                &self.shares_outdated,
            ),
        ];
        register(registry, &gauges);
    }

    /// Counts what happened.
    pub(crate) fn count(&self, event: &ServingEvent) {
        match event {
            Either::Left(event) => self.count_enrolment(event),
            Either::Right(DeliveryEvent::Keys(IssuerEvent::Issued { .. })) => {
                self.attribute_keys.inc();
            }
            Either::Right(DeliveryEvent::Keys(IssuerEvent::Blamed { .. })) => {
                self.blamed.inc();
            }
            Either::Right(DeliveryEvent::Keys(_)) => {}
            Either::Right(DeliveryEvent::Shares(event)) => Release::count(self, event),
        }
    }

    /// Notes the KGCs that doubt this machine's clock, which dates what it wants signed.
    pub(crate) fn set_other_clocks(&self, refusing: Vec<KgcId>) {
        *self.other_clocks() = refusing;
    }

    fn other_clocks(&self) -> MutexGuard<'_, Vec<KgcId>> {
        // It is replaced as a whole: a thread that panicked left it whole.
        self.other_clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds why this machine's clock cannot be right, if it cannot: what is signed is of the future, or most
    /// of the others do not sign what is of now. `issued`: when the newest revocation list was signed.
    pub(crate) fn check_clock(&self, readiness: &mut Readiness, issued: Option<UnixTime>, now: UnixTime) {
        let shown = clock::format(now);
        if let Some(issued) = issued.filter(|issued| *issued > now.saturating_add(CLOCK_TOLERANCE)) {
            readiness.add_reason(format!(
                "the revocation list was signed at {}, and this machine's clock says {shown}: set the clocks right",
                clock::format(issued)
            ));
        }
        let refusing = self.other_clocks();
        let others = usize::try_from(self.quorum_members.get()).unwrap_or_default().saturating_sub(1);
        if refusing.len() * 2 > others {
            let names = refusing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            readiness.add_reason(format!(
                "this machine's clock says {shown}, and KGC {names} sign no revocation list of that time: set the clocks right"
            ));
        }
    }

    /// Updates the gauges of the newest revocation list.
    pub(crate) fn set_list_gauges(&self, usage: RevocationUsage) {
        self.revocation_list_bytes.set(number(usage.len));
        self.revocation_list_board_bytes.set(number(usage.leaders_len));
        self.revocation_list_next_update.set(number(usage.next_update));
    }

    fn count_enrolment(&self, event: &KgcEvent) {
        let counter = match event {
            KgcEvent::Issued { .. } => &self.keys_issued,
            KgcEvent::Contributed { .. } => &self.contributions,
            KgcEvent::Pinned { .. } => &self.tokens_bound,
            KgcEvent::Repeated { .. } => &self.repeated,
            KgcEvent::Blamed { .. } => &self.blamed,
            KgcEvent::Refused { reason, .. } => {
                self.refusals.count(reason);
                return;
            }
            KgcEvent::RevocationListClaimed { .. } => &self.revocation_lists_claimed,
            KgcEvent::RevocationListAdopted { number } => {
                self.revocation_list.set(i64::try_from(*number).unwrap_or(i64::MAX));
                &self.revocation_lists_adopted
            }
            KgcEvent::RevocationListSigned { number } => {
                self.revocation_list.set(i64::try_from(*number).unwrap_or(i64::MAX));
                return;
            }
            _ => return,
        };
        counter.inc();
    }
}

/// A single KGC that runs serves drones.
pub(crate) fn of_single(machine: &KgcMachine, metrics: &KgcMetrics) -> Readiness {
    let machine = machine.node();
    metrics.serving.set(1);
    metrics.tokens.set(i64::try_from(machine.issued()).unwrap_or(i64::MAX));
    metrics.quorum_members.set(1);
    metrics.quorum_threshold.set(1);
    metrics.quorum_connected.set(1);
    let mut readiness = Readiness::ready();
    metrics.check_clock(&mut readiness, machine.revocations_issued(), clock::unix_now());
    metrics.revocation_list.set(i64::try_from(machine.revocation_number()).unwrap_or(i64::MAX));
    metrics.set_list_gauges(machine.revocation_usage());
    readiness
}

/// Serves metrics and health of the running machine.
pub(crate) async fn monitor<M>(
    config: &Config,
    metrics: KgcMetrics,
    handle: Handle<M>,
    look: impl Fn(&M, &KgcMetrics) -> Readiness + Clone + Send + Sync + 'static,
) -> Result<Monitor>
where
    M: Machine + 'static,
    M::Command: Send,
{
    let counted = metrics.clone();
    let look = move |machine: &M, _: &[_]| look(machine, &counted);
    let register = |registry: &mut _| metrics.register(registry);
    let place = MonitorPlace { role: "kgc", data_dir: &config.data_dir, address: config.metrics };
    Ok(node::monitor(place, handle, register, look).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_769_860_800;

    fn reasons(metrics: &KgcMetrics, issued: Option<u64>) -> Vec<String> {
        let mut readiness = Readiness::ready();
        metrics.check_clock(&mut readiness, issued, NOW);
        readiness.reasons
    }

    #[test]
    fn revocation_list_of_the_future_tells_that_a_clock_is_off() {
        let metrics = KgcMetrics::default();
        assert_eq!(reasons(&metrics, None), Vec::<String>::new());
        assert_eq!(reasons(&metrics, Some(NOW + CLOCK_TOLERANCE)), Vec::<String>::new());
        let told = reasons(&metrics, Some(NOW + 3600));
        assert!(
            matches!(&told[..], [reason] if reason.contains("signed at 2026-01-31T13:00:00Z") && reason.contains("clock says 2026-01-31T12:00:00Z")),
            "{told:?}"
        );
    }
}
