//! What a drone reports of a quorum that does not do its part.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_machine::Peer;
use quiver_message::Reason;

/// A quorum that does not do its part. Enrolment goes on with the KGCs that do, and begins anew with all of them once
/// those are too few.
///
/// Nothing here is proof: a share travels sealed to the drone but not signed by the KGC, so whoever stands between the two
/// can spoil it as well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolmentTrouble {
    /// The share of this KGC is wrong, or nothing that opens. It is left out.
    #[error("KGC {kgc} sent a wrong share and is left out")]
    WrongShare {
        /// Which.
        kgc: KgcId,
        /// Who handed it over.
        peer: Peer,
    },
    /// This KGC committed itself and then did not sign in time. It is left out.
    #[error("KGC {kgc} did not sign in time and is left out")]
    Silent {
        /// Which.
        kgc: KgcId,
        /// Who should have handed its share over.
        peer: Peer,
    },
    /// A KGC refuses. It is left out.
    #[error("peer {} refuses and is left out: {reason}", peer.0)]
    Refused {
        /// Who handed it over.
        peer: Peer,
        /// Why.
        reason: Reason,
    },
    /// Fewer KGCs are at hand than it takes.
    #[error("{} KGCs answered {answered:?}, of {} that it takes; no usable answer of {missing:?}", answered.len(), number(*threshold))]
    TooFew {
        /// Those that answered, and whose answers can be used.
        answered: Vec<KgcId>,
        /// All others.
        missing: Vec<KgcId>,
        /// How many it takes; none if no KGC has said so.
        threshold: Option<u16>,
    },
}

fn number(threshold: Option<u16>) -> String {
    threshold.map_or_else(|| "an unknown number".into(), |threshold| threshold.to_string())
}
