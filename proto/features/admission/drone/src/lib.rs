//! Anonymous admission in the programs of edges and leaders.
//!
//! A leader's program lists [`AdmittingLeaderFeature`] among its features; nothing else of it names this crate.
//!
//! | module | what it has |
//! |---|---|
//! | `gate` | the policy of `leader serve --admission`, and the slot keys of each period |
//! | `gated_leader` | the machine of a leader with its gate |
//! | `leader_settings` | flag and setting |

mod gate;
mod gated_leader;
mod leader_settings;

use quiver_service::drone::feature::{DroneFeature, ServiceFeature};

/// Anonymous admission of a leader: a policy that whoever joins has to satisfy.
#[derive(Clone, Copy, Debug)]
pub struct AdmittingLeaderFeature;

impl DroneFeature for AdmittingLeaderFeature {
    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }
}
