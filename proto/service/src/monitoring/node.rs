//! Metrics and health of the node that a service runs.

use std::fmt::Display;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use quiver_machine::{Machine, RefusalReason};
use quiver_net::{Handle, Unreached};

use super::{Monitor, MonitorPlace, Readiness, registry};
use crate::clock;

/// Label of a reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: String,
}

/// Counter of refusals, by reason. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Family<Why, Counter>);

impl Refusals {
    /// Registers it, for all reasons that a message may give and for these.
    pub fn register(&self, registry: &mut Registry, help: &str, others: &[&str]) {
        // There from the first, at 0: a rate over a counter that appears with its first count would miss that
        // one.
        let reasons = RefusalReason::all().map(|reason| reason.to_string());
        for reason in reasons.chain(others.iter().copied().map(String::from)) {
            let _ = self.0.get_or_create(&Why { reason });
        }
        registry.register("refusals", help, self.0.clone());
    }

    /// Counts a refusal for this reason.
    pub fn count(&self, reason: impl Display) {
        self.0.get_or_create(&Why { reason: reason.to_string() }).inc();
    }
}

/// Reason why this machine's clock is in doubt, if most of those it asked have another time.
pub fn disagreement<M: Machine>(handle: &Handle<M>) -> Option<String> {
    let others = handle.other_clocks();
    let apart = (others.apart, others.answered);
    others.differ().then(|| clock::disagreement(clock::unix_now(), apart, others.ahead))
}

/// Serves metrics and health of a running machine. `register` adds the metrics of its role, and `look` says
/// what the machine lacks.
///
/// # Errors
/// Those of [`Monitor::start`].
pub async fn monitor<M>(
    place: MonitorPlace<'_>,
    handle: Handle<M>,
    register: impl FnOnce(&mut Registry),
    look: impl Fn(&M, &[Unreached]) -> Readiness + Clone + Send + Sync + 'static,
) -> crate::Result<Monitor>
where
    M: Machine + 'static,
    M::Command: Send,
{
    let mut registry = registry(env!("CARGO_PKG_VERSION"));
    register(&mut registry);
    handle.metrics().register(&mut registry);
    let monitor = Monitor::start(place, registry, "starting").await?;
    monitor.watch(move || {
        let (handle, look) = (handle.clone(), look.clone());
        Box::pin(async move {
            let unreached = handle.unreached();
            let Ok(mut readiness) = handle.inspect(move |machine| look(machine, &unreached)).await else {
                return Readiness::not_ready("the service is ending");
            };
            readiness.reasons.extend(handle.metrics().trouble());
            readiness.reasons.extend(disagreement(&handle));
            readiness.reasons.extend(handle.duplicate_identity());
            readiness
        })
    });
    Ok(monitor)
}
