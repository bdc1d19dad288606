//! Opinions of the other KGCs about this machine's clock, which dates what it wants signed.

use quiver_ainq::{KgcId, Purpose};
use quiver_message::quorum::SignRefusalReason;
use quiver_quorum_node::QuorumEvent;

use crate::metrics::KgcMetrics;

/// Notes the KGCs that did not sign a revocation list because its times are not theirs.
pub(super) fn compare_clocks(metrics: &KgcMetrics, event: &QuorumEvent) {
    let refusing: Vec<KgcId> = match event {
        QuorumEvent::NotSigned { purpose: Purpose::Revocation, unwilling, .. } => {
            let of_another_time = unwilling.iter().filter(|(_, why)| *why == SignRefusalReason::Times);
            of_another_time.map(|(kgc, _)| *kgc).collect()
        }
        QuorumEvent::RevocationList { .. } => Vec::new(),
        _ => return,
    };
    metrics.set_other_clocks(refusing);
}

#[cfg(test)]
mod tests {
    use quiver_service::monitoring::Readiness;

    use super::*;

    const NOW: u64 = 1_769_860_800;

    fn reasons(metrics: &KgcMetrics, issued: Option<u64>) -> Vec<String> {
        let mut readiness = Readiness::ready();
        metrics.check_clock(&mut readiness, issued, NOW);
        readiness.reasons
    }

    #[test]
    fn clock_is_doubted_when_most_others_do_and_until_a_list_is_signed() {
        let metrics = KgcMetrics::default();
        metrics.quorum_members.set(5);
        let not_signed = |unwilling: &[(KgcId, SignRefusalReason)]| QuorumEvent::NotSigned {
            purpose: Purpose::Revocation,
            willing: vec![1],
            unwilling: unwilling.to_vec(),
            silent: vec![],
        };
        let times = SignRefusalReason::Times;
        compare_clocks(&metrics, &not_signed(&[(2, times), (3, times), (4, SignRefusalReason::Busy)]));
        assert_eq!(reasons(&metrics, None), Vec::<String>::new());
        compare_clocks(&metrics, &not_signed(&[(2, times), (3, times), (5, times)]));
        let told = reasons(&metrics, None);
        assert!(
            matches!(&told[..], [reason] if reason.contains("KGC 2, 3, 5 sign no revocation list")),
            "{told:?}"
        );
        compare_clocks(&metrics, &QuorumEvent::RevocationList { number: 7 });
        assert_eq!(reasons(&metrics, None), Vec::<String>::new());
    }
}
