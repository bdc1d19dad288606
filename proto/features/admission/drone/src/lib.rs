//! Anonymous admission in the programs of edges and leaders.
//!
//! An edge's program lists [`AnonymousEdgeFeature`] among its features, a leader's [`AdmittingLeaderFeature`]; nothing
//! else of them names this crate.
//!
//! | module | what it has |
//! |---|---|
//! | `abke` | the subcommand `abke`: certified fields as shown |
//! | `memberships` | an edge's anonymous memberships, one after another |
//! | `member` | the machine of one of them |
//! | `gate` | the policy of `leader serve --admission`, and the slot keys of each period |
//! | `gated_leader` | the machine of a leader with its gate |
//! | `edge_settings`, `leader_settings` | flags and settings of both |

mod abke;
mod edge_settings;
mod gate;
mod gated_leader;
mod leader_settings;
mod member;
mod memberships;

use quiver_ainq::{Ristretto255, UnixTime};
use quiver_service::drone::feature::{CommandFeature, DroneFeature, ServiceFeature};
use quiver_service::keyring::Keyring;

/// Anonymous admission of an edge: the subcommand `abke`, and memberships without a name.
#[derive(Clone, Copy, Debug)]
pub struct AnonymousEdgeFeature;

/// Anonymous admission of a leader: a policy that whoever joins has to satisfy.
#[derive(Clone, Copy, Debug)]
pub struct AdmittingLeaderFeature;

impl DroneFeature for AnonymousEdgeFeature {
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("run --leader … --anonymous", "prove what the leader demands, not who one is"),
            ("abke status", "which fields are certified, until when"),
        ]
    }

    fn commands(&self) -> Vec<&dyn CommandFeature> {
        vec![self]
    }

    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }

    fn first_end(&self, keyring: &Keyring<Ristretto255>) -> Option<UnixTime> {
        abke::first_end(keyring)
    }
}

impl DroneFeature for AdmittingLeaderFeature {
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("serve --admission geofence.policy", "who satisfies it joins, nobody else"),
            ("evict --slot 12", "also an anonymous member"),
        ]
    }

    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }

    fn first_end(&self, keyring: &Keyring<Ristretto255>) -> Option<UnixTime> {
        abke::first_end(keyring)
    }
}
