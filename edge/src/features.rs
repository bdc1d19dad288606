//! Features of this build, a line each. A feature's code stands in its own crates, and nothing else here
//! names it.

use quiver_service::drone::feature::Features;

/// The features.
pub(crate) const FEATURES: Features = &[
    #[cfg(feature = "admission")]
    &quiver_admission_drone::AnonymousEdgeFeature,
    #[cfg(feature = "attributes")]
    &quiver_attributes::AttributeFeature,
    #[cfg(feature = "conditions")]
    &quiver_conditions::ConditionFeature,
    #[cfg(feature = "quorum")]
    &quiver_quorum_drone::QuorumFeature,
    #[cfg(feature = "relays")]
    &quiver_relays::RelayFeature,
    #[cfg(feature = "datagrams")]
    &quiver_datagrams::DatagramFeature,
];
