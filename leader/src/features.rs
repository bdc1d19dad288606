//! Features of this build, a line each. What a feature brings stands in its own crates, and nothing else here names it.

use quiver_service::drone::feature::Features;

/// The features.
pub(crate) const FEATURES: Features = &[
    #[cfg(feature = "boards")]
    &quiver_boards::BoardFeature,
    #[cfg(feature = "conditions")]
    &quiver_conditions::ConditionFeature,
];
