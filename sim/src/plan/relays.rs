//! Relays in a plan.

use super::Plan;

/// The most relays.
pub const MAX_RELAYS: u32 = 1024;

impl Plan {
    /// Refuses relays that cannot be between drones and leader.
    pub(super) fn check_relays(&self) -> Result<(), String> {
        let Self { relays, workers, .. } = *self;
        if relays == 0 {
            return Ok(());
        }
        if relays > MAX_RELAYS {
            return Err(format!("{relays} relays are too many: at most {MAX_RELAYS}"));
        }
        if relays < workers {
            return Err(format!(
                "{relays} relays for {workers} ranks that host drones are too few: each has one at least"
            ));
        }
        if self.deputies > 0 || self.admission.is_some() {
            return Err("--relays: drones behind relays reach one leader, by name; leave out --deputies and --admission".into());
        }
        Ok(())
    }
}
