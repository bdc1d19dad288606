//! Describes the quorum's events in words: for the log, the audit table and refusals.

use quiver_ainq::KgcId;
use quiver_message::quorum::{CeremonyKind, SignRefusalReason};
use quiver_quorum_node::{AbortCause, QuorumEvent};

/// A ceremony.
pub(crate) const fn kind(kind: CeremonyKind) -> &'static str {
    match kind {
        CeremonyKind::Generation => "key generation",
        CeremonyKind::Refresh => "refresh",
    }
}

/// Some KGCs.
pub(crate) fn list(kgcs: &[KgcId]) -> String {
    match kgcs {
        [] => "none".into(),
        kgcs => kgcs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Some KGCs in a sentence: `KGC 3`, `KGCs 3, 4 and 5`.
pub(crate) fn some(kgcs: &[KgcId]) -> String {
    match kgcs {
        [] => "no other KGC".into(),
        [kgc] => format!("KGC {kgc}"),
        [first @ .., last] => format!("KGCs {} and {last}", list(first)),
    }
}

/// Explains why a statement is not signed: who would sign it, who does not and why, who says nothing.
pub(crate) fn not_signed(
    willing: &[KgcId],
    unwilling: &[(KgcId, SignRefusalReason)],
    silent: &[KgcId],
) -> String {
    let mut parts = Vec::new();
    if !willing.is_empty() {
        parts.push(format!("{} would sign", some(willing)));
    }
    parts.extend(unwilling.iter().map(|(kgc, reason)| format!("KGC {kgc} does not ({reason})")));
    if !silent.is_empty() {
        parts.push(format!("no answer from {}", some(silent)));
    }
    parts.join("; ")
}

/// Explains why a ceremony ended without result.
pub(crate) fn cause(cause: &AbortCause) -> String {
    match cause {
        AbortCause::Fault { culprit, fault } => format!("KGC {culprit} is to blame: {fault}"),
        AbortCause::Transcript { sender, reporter } => format!(
            "KGC {reporter} says that KGC {sender} sent it other commitments than were sent here: one of the two lies"
        ),
        AbortCause::Left { member, blames: Some(culprit) } => {
            format!("KGC {member} left and blames KGC {culprit}")
        }
        AbortCause::Left { member, blames: None } => format!("KGC {member} left"),
        AbortCause::Restarted { member } => format!("KGC {member} began anew"),
        AbortCause::Abandoned => "abandoned by this KGC's operator".into(),
        AbortCause::Internal(what) => format!("this KGC cannot do its part: {what}"),
        _ => "for a reason unknown to this version".into(),
    }
}

/// The audit table's row of an event: action, subject, detail. `None` for events that a stranger can cause at
/// will.
pub(crate) fn audited(event: &QuorumEvent) -> Option<(&'static str, String, String)> {
    Some(match event {
        QuorumEvent::SharesMade { kind: of, version } => {
            ("shares made", format!("version {version}"), kind(*of).into())
        }
        QuorumEvent::SharesInForce { version } => {
            ("shares in force", format!("version {version}"), "older ones are erased".into())
        }
        QuorumEvent::Aborted { kind: of, cause: why } => ("aborted", kind(*of).into(), cause(why)),
        QuorumEvent::Helped { member } => ("helped to repair", format!("KGC {member}"), String::new()),
        QuorumEvent::Recovered { version } => {
            ("shares repaired", format!("version {version}"), String::new())
        }
        QuorumEvent::WrongShare { by } => {
            ("wrong signature share", format!("KGC {by}"), "left out of the next attempts".into())
        }
        QuorumEvent::RevocationList { number } => {
            ("revocation list signed by the quorum", number.to_string(), String::new())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kgcs_are_listed_as_a_sentence_has_them() {
        assert_eq!(
            [&[][..], &[3], &[3, 4], &[3, 4, 5]].map(some),
            ["no other KGC", "KGC 3", "KGCs 3 and 4", "KGCs 3, 4 and 5"]
        );
        let reason = SignRefusalReason::NotApproved;
        assert_eq!(
            not_signed(&[1, 2], &[(3, reason)], &[4]),
            "KGCs 1 and 2 would sign; KGC 3 does not (its operator has not asked for this); no answer from KGC 4"
        );
    }
}
