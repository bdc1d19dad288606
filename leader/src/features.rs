//! Features of this build, an entry each. A feature's code stands in its own crates, and nothing else here
//! names it.

use quiver_service::drone::feature::Features;

/// The features.
pub(crate) const FEATURES: Features = &[
    #[cfg(feature = "admission")]
    &quiver_admission_drone::AdmittingLeaderFeature,
    #[cfg(feature = "boards")]
    // Boards speak no MAVLink, and make no new key.
    &quiver_boards::BoardFeature {
        withheld: &[
            quiver_bridge::SYSTEM_IDS_CHANNEL,
            quiver_bridge::SYSTEM_IDS_REQUEST_CHANNEL,
            quiver_bridge::FORGERIES_CHANNEL,
        ],
    },
    #[cfg(feature = "attributes")]
    &quiver_attributes::AttributeFeature,
    #[cfg(feature = "conditions")]
    &quiver_conditions::ConditionFeature,
    #[cfg(feature = "relays")]
    &quiver_relays::RelayedLeaderFeature,
];
