//! Small groups through all events.

use std::time::SystemTime;

use super::*;
use crate::ainq::Making;

fn small() -> ComparisonPlan {
    let effort = Effort { budget: Duration::ZERO, least: 1, most: 1 };
    ComparisonPlan { drones: vec![8, 23], onward: false, effort, ..ComparisonPlan::default() }
}

fn making() -> Making {
    Making { date: SystemTime::UNIX_EPOCH, version: "0.1.0".into(), command: "cargo lab compare".into() }
}

#[test]
fn every_system_goes_through_every_event() {
    let mut rows = Vec::new();
    let comparison = measure(&small(), &mut (), &mut |finished| rows.push(finished.rows.len())).unwrap();
    assert!(rows.len() == 2 * System::ALL.len() && rows.is_sorted() && rows[0] > 0, "{rows:?}");
    assert_eq!(comparison.cuts, []);
    for drones in [8, 23] {
        for (system, event) in
            System::ALL.into_iter().flat_map(|system| MembershipEvent::ALL.map(|event| (system, event)))
        {
            let Some(cost) = comparison.cost(drones, system, event) else {
                assert_eq!((system, event), (System::MlsWarm, MembershipEvent::Form));
                continue;
            };
            assert!(cost.leader.median > 0.0 && cost.broadcast > 0, "{system:?} {event:?} {cost:?}");
            assert_eq!(cost.member.is_some(), event != MembershipEvent::Form, "{system:?} {event:?}");
            let comes = matches!(
                event,
                MembershipEvent::Form | MembershipEvent::JoinOne | MembershipEvent::JoinTenth
            );
            assert_eq!(cost.newcomer.is_some(), comes, "{system:?} {event:?}");
            assert!(cost.unicast == 0 || comes, "{system:?} {event:?}");
        }
    }
}

#[test]
fn tree_sends_less_than_flat_and_flat_less_than_one_committer_of_mls() {
    let comparison = measure(&ComparisonPlan { drones: vec![200], ..small() }, &mut (), &mut |_| ()).unwrap();
    let bytes = |system| comparison.cost(200, system, MembershipEvent::LeaveOne).unwrap().bytes();
    let [one, warm, flat, tree] = System::ALL.map(bytes);
    assert!(tree < warm && warm < flat && flat < one, "{one} {warm} {flat} {tree}");
}

#[test]
fn spent_budget_cuts_a_system_and_spares_it_the_larger_sizes() {
    let comparison =
        measure(&ComparisonPlan { budget: Duration::ZERO, onward: true, ..small() }, &mut (), &mut |_| ())
            .unwrap();
    assert_eq!(comparison.rows, []);
    let cuts: Vec<(u32, System)> = comparison.cuts.iter().map(|cut| (cut.drones, cut.system)).collect();
    assert_eq!(cuts, System::ALL.map(|system| (8, system)));
    let report = report(&comparison, making());
    assert!(report.highlights.is_empty());
    assert!(report.tables().all(|table| table.rows.is_empty() && table.notes.len() == 4));
    assert!(report.tables().next().unwrap().notes[1].contains("warming the tree"));
}

#[test]
fn sizes_double_until_mls_is_cut_or_the_end_is_reached() {
    let plan = ComparisonPlan { drones: vec![100, 500], onward: true, ..ComparisonPlan::default() };
    assert_eq!(plan.size_after(0, None, false), Some(100));
    assert_eq!(plan.size_after(1, Some(100), true), Some(500));
    assert_eq!(plan.size_after(2, Some(500), false), Some(1000));
    assert_eq!(plan.size_after(2, Some(500), true), None);
    assert_eq!(plan.size_after(9, Some(ComparisonPlan::MOST), false), None);
    assert_eq!(ComparisonPlan { onward: false, ..plan }.size_after(2, Some(500), false), None);
}

#[test]
fn report_has_a_table_per_event_and_a_plot_per_quantity() {
    let comparison = measure(&ComparisonPlan { drones: vec![8], ..small() }, &mut (), &mut |_| ()).unwrap();
    let report = report(&comparison, making());
    assert_eq!(report.tables().count(), MembershipEvent::ALL.len());
    let rows: Vec<usize> = report.tables().map(|table| table.rows.len()).collect();
    assert_eq!(rows, [3, 4, 4, 4, 4, 4]);
    assert_eq!(report.plots().map(|plot| plot.panels.len()).collect::<Vec<_>>(), [6, 6, 6]);
    assert_eq!(report.highlights.len(), 3);
    assert!(report.page().unwrap().contains("MLS, one committer"));
    let leave = report.tables().find(|table| table.slug == "compare-leave-one").unwrap();
    let tree = leave.figure(&[8_u32.into(), "Quiver, tree".into()], "bytes_over_tree");
    assert_eq!(tree, Some(1.0));
}
