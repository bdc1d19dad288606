//! Readiness of a leader or an edge for `/readyz`: what its machine lacks, and what went wrong around it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::monitoring::{Monitor, MonitorPlace, Readiness, node};
use prometheus_client::registry::Registry;
use quiver_machine::Machine;
use quiver_net::{Handle, Unreached};

/// Troubles that are not over, one text for each kind. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Troubles {
    fn texts(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        // Each text is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes trouble of this kind, in place of what was noted before.
    pub fn note(&self, kind: &'static str, text: impl Into<String>) {
        self.texts().insert(kind, text.into());
    }

    /// Removes trouble of this kind.
    pub fn over(&self, kind: &'static str) {
        self.texts().remove(kind);
    }

    /// Removes all troubles.
    pub fn all_over(&self) {
        self.texts().clear();
    }

    /// The texts of all troubles.
    pub fn all(&self) -> Vec<String> {
        self.texts().values().cloned().collect()
    }
}

/// Serves metrics and health of a running machine. `register` adds the metrics of its role, and `look` says
/// what the machine lacks; if it lacks something, what went wrong around it is told besides.
///
/// # Errors
/// Those of [`Monitor::start`].
pub async fn monitor<M>(
    place: MonitorPlace<'_>,
    handle: Handle<M>,
    troubles: Troubles,
    register: impl FnOnce(&mut Registry),
    look: impl Fn(&M, &[Unreached]) -> Readiness + Clone + Send + Sync + 'static,
) -> crate::Result<Monitor>
where
    M: Machine + 'static,
    M::Command: Send,
{
    let look = move |machine: &M, unreached: &[Unreached]| {
        let mut readiness = look(machine, unreached);
        if !readiness.is_ready() {
            readiness.reasons.extend(unreached.iter().map(Unreached::to_string));
            readiness.reasons.extend(troubles.all());
        }
        readiness
    };
    node::monitor(place, handle, register, look).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_until_it_is_over_and_the_newest_of_a_kind_alone() {
        let troubles = Troubles::default();
        let other = troubles.clone();
        troubles.note("refusal", "refused: busy");
        troubles.note("refusal", "refused: evicted");
        troubles.note("clock", "the clock is wrong");
        assert_eq!(other.all(), ["the clock is wrong", "refused: evicted"]);
        other.over("clock");
        assert_eq!(troubles.all(), ["refused: evicted"]);
        other.all_over();
        assert!(troubles.all().is_empty());
    }
}
