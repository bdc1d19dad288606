//! Anonymous admission in a plan.

use quiver_world::admission::{FIELDS, MAX_ANONYMOUS};

use super::Plan;

impl Plan {
    /// Refuses policies that cannot be demanded, and more drones than there is patience for.
    pub(crate) fn check_admission(&self) -> Result<(), String> {
        let Some(policy) = &self.admission else { return Ok(()) };
        if self.drones > MAX_ANONYMOUS {
            return Err(format!(
                "--admission: {} drones are too many: each makes several runs of the exchange; at most {MAX_ANONYMOUS}",
                self.drones
            ));
        }
        if self.mavlink {
            return Err("--admission: the ground station of --mavlink knows vehicles by name".into());
        }
        if self.envelopes || self.orders {
            return Err("--admission: anonymous drones have no key to open --envelopes or to collect the keys of --orders with".into());
        }
        quiver_world::admission::check(policy)
            .map_err(|error| format!("--admission: {error} (the fields are {FIELDS})"))
    }
}
