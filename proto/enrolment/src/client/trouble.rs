//! Reports of a drone about a misbehaving quorum.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_machine::Peer;
use quiver_message::RefusalReason;

/// Misbehaviour of a quorum's KGCs. Enrolment goes on with the KGCs that do, and begins anew with all of them
/// once those are too few.
///
/// Nothing here is proof: a share travels sealed to the drone but not signed by the KGC, so an attacker
/// between the two can alter it as well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolmentTrouble {
    /// The share of this KGC is wrong, or nothing that opens. It is left out.
    #[error("KGC {kgc} sent a wrong share and is left out")]
    WrongShare {
        /// The KGC.
        kgc: KgcId,
        /// The peer of the connection.
        peer: Peer,
    },
    /// This KGC committed itself and then did not sign in time. It is left out.
    #[error("KGC {kgc} did not sign in time and is left out")]
    Silent {
        /// The KGC.
        kgc: KgcId,
        /// The peer that should have sent its share.
        peer: Peer,
    },
    /// A KGC refuses. It is left out.
    #[error("peer {} refuses and is left out: {reason}", peer.0)]
    Refused {
        /// The peer of the connection.
        peer: Peer,
        /// The reason.
        reason: RefusalReason,
    },
    /// Too few KGCs are available.
    #[error("{} KGCs answered {answered:?}, of {} that it takes; no usable answer of {missing:?}", answered.len(), number(*threshold))]
    TooFew {
        /// KGCs with usable answers.
        answered: Vec<KgcId>,
        /// All others.
        missing: Vec<KgcId>,
        /// The threshold; `None` if no KGC has sent it.
        threshold: Option<u16>,
    },
    /// Enough KGCs are available, and too few of them have shares of one version: one was put back from a copy of before
    /// a refresh.
    #[error(
        "KGCs answered with shares that differ ({}), and {threshold} of one version are needed: those of an older version \
         need `kgc quorum repair`",
        versions(.shares)
    )]
    SharesDiffer {
        /// KGCs with usable answers, and the versions of their shares.
        shares: Vec<(KgcId, u32)>,
        /// The threshold.
        threshold: u16,
    },
}

fn versions(shares: &[(KgcId, u32)]) -> String {
    let shown: Vec<_> = shares.iter().map(|(kgc, version)| format!("KGC {kgc}: version {version}")).collect();
    shown.join(", ")
}

fn number(threshold: Option<u16>) -> String {
    threshold.map_or_else(|| "an unknown number".into(), |threshold| threshold.to_string())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn too_few_kgcs_are_told_with_what_is_known_of_the_threshold() {
        let text = |threshold| {
            EnrolmentTrouble::TooFew { answered: vec![1], missing: vec![2, 3], threshold }.to_string()
        };
        assert!(
            text(Some(2)).starts_with("1 KGCs answered [") && text(Some(2)).contains(", of 2 that it takes;")
        );
        assert!(text(None).contains(", of an unknown number that it takes;"), "{}", text(None));
    }
}
