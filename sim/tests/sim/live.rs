//! Whole runs of the live world, in this process.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_report::Progress;
use quiver_sim::live;
use quiver_sim::plan::{Plan, TransportKind};
use quiver_sim::report::{RunOutcome, RunReport};
use quiver_world::run::{Phase, PhaseCosts};

fn plan(drones: u32) -> Plan {
    Plan { drones, messages: 4, leave_percent: 10.0, timeout: Duration::from_secs(60), ..Plan::default() }
}

/// Plays it and expects every invariant to hold.
fn pass(plan: &Plan) -> RunReport {
    let report = live::run(plan, &Progress::hidden()).unwrap();
    assert_eq!(report.outcome(), RunOutcome::Passed, "{}", report.failures());
    assert!(report.offences.is_empty(), "{:?}", report.offences);
    report
}

fn names(report: &RunReport) -> Vec<String> {
    report.operations.iter().map(PhaseCosts::name).collect()
}

#[test]
fn twenty_drones_hold_every_invariant_over_memory() {
    let report = pass(&plan(20));
    assert_eq!(
        names(&report),
        [
            "enrol",
            "connect",
            "form group",
            "re-key",
            "leave (2)",
            "join (2)",
            "messages (2 by leader)",
            "messages (2 by drones)",
            "restart leader",
        ]
    );
    let drones = |name: &str| report.operation(name).unwrap().drones;
    // The newcomers and the outsider enrol as well.
    assert_eq!(drones("enrol"), 23);
    assert_eq!(drones("form group"), 20);
    assert_eq!(drones("leave (2)"), 18);
    assert_eq!(drones("join (2)"), 20);
    let rekey = report.operation("re-key").unwrap();
    assert_eq!(rekey.epochs, 1);
    assert_eq!(rekey.latencies.len(), 20);
    assert!(rekey.leader_cpu.unwrap() > Duration::ZERO);
    assert!(rekey.leader_bytes.unwrap() > 20 * 32);
    assert!(report.checks > 200);
}

#[test]
fn drones_without_a_name_are_members_exactly_if_they_are_inside_the_fence() {
    for transport in [TransportKind::Memory, TransportKind::Tcp] {
        let admission = Some(quiver_world::admission::FENCE.into());
        let report = pass(&Plan { admission, transport, ..plan(12) });
        let named = |beginning: &str| {
            let found = report.operations.iter().find(|it| it.name().starts_with(beginning));
            found.unwrap_or_else(|| panic!("{beginning} is not among {:?}", names(&report)))
        };
        let (first, again) = (named("form group ("), named("come again ("));
        assert!(first.name().ends_with(" of 12 admitted)"), "{}", first.name());
        // Some are inside and some are not.
        assert!((1..12).contains(&first.drones), "{}", first.drones);
        for admission in [first, again] {
            assert_eq!(admission.latencies.len(), admission.drones);
            // An offer to each, at least.
            assert!(admission.leader_bytes.unwrap() > 12 * 8_000, "{:?}", admission.leader_bytes);
            assert!(admission.leader_cpu.unwrap() > Duration::ZERO);
        }
        assert_eq!(named("restart leader").drones, again.drones);
    }
}

#[test]
fn sealed_orders_open_at_exactly_those_they_are_for() {
    let report = pass(&Plan { envelopes: true, restart_leader: false, ..plan(20) });
    let orders = report.operations.iter().filter(|operation| operation.phase == Phase::Envelope);
    let told: Vec<usize> = orders.map(|operation| operation.drones).collect();
    // All 20 members judge the first; the others are waited for at those they are for: a quarter, then half,
    // as far as those who left and joined go.
    assert_eq!((told.len(), told[0]), (3, 20));
    assert!((4..=6).contains(&told[1]) && (8..=12).contains(&told[2]), "{told:?}");
}

#[test]
fn vehicles_speak_mavlink_with_a_ground_station_and_an_evicted_one_no_more() {
    let report =
        pass(&Plan { mavlink: true, restart_leader: false, strategy: StrategyKind::Tree, ..plan(20) });
    let named = |name: &str| report.operations.iter().find(|operation| operation.name() == name).unwrap();
    let flight = named(&format!("MAVLink ({} vehicles)", named("evict (1)").drones + 1));
    // 18 in a second, for ten seconds, each 41 bytes as a frame.
    let (datagrams, bytes) = (flight.messages.unwrap(), flight.air_bytes.unwrap());
    assert!((170..190).contains(&(datagrams / flight.drones as u64)), "{datagrams}");
    assert!(bytes < datagrams * (41 + 13), "{bytes} bytes of {datagrams} datagrams");
}

#[test]
fn twenty_drones_hold_every_invariant_over_tcp() {
    pass(&Plan { transport: TransportKind::Tcp, ..plan(20) });
}

#[cfg(feature = "quic")]
#[test]
fn twenty_drones_hold_every_invariant_over_quic() {
    pass(&Plan { transport: TransportKind::Quic, ..plan(20) });
}

#[test]
fn single_drone_is_a_group_too() {
    let report = pass(&plan(1));
    assert!(!names(&report).iter().any(|name| name.starts_with("leave")));
}

#[test]
fn key_really_expires() {
    // Whole seconds count, and a busy machine may need some for what is checked under the key.
    let expiry = Duration::from_secs(10);
    let report = pass(&Plan { expiry: Some(expiry), restart_leader: false, ..plan(5) });
    assert!(names(&report).contains(&"re-key on expiry".into()), "{:?}", names(&report));
    // The leader renews when four fifths of the validity have passed.
    assert!(report.wall > expiry.mul_f64(0.7), "{:?}", report.wall);
}

#[test]
fn a_deputy_takes_over_from_a_leader_that_is_lost_for_good() {
    let report = pass(&Plan { deputies: 1, ..plan(8) });
    let last = report.operations.last().unwrap();
    assert_eq!(last.name(), "leader lost (a deputy opens a term)");
    assert_eq!((last.drones, last.epochs), (last.latencies.len(), 1));
}

#[test]
fn drones_without_a_name_apply_again_to_the_deputy_of_a_leader_that_is_lost_for_good() {
    let admission = Some(quiver_world::admission::FENCE.into());
    let strategy = StrategyKind::Tree;
    let report = pass(&Plan { admission, strategy, deputies: 1, ..plan(8) });
    let last = report.operations.last().unwrap();
    assert_eq!(last.name(), "leader lost (a deputy opens a term)");
    assert!(last.drones >= 1 && last.latencies.len() == last.drones);
}

#[test]
fn same_seed_gives_the_same_keys_and_choices() {
    let quick = Plan { restart_leader: false, ..plan(10) };
    let digests = |plan: &Plan| {
        let report = pass(plan);
        (report.keys_digest, report.choices_digest)
    };
    let first = digests(&quick);
    assert_eq!(first, digests(&quick));
    let other = digests(&Plan { seed: 2, ..quick });
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1);
}

#[test]
fn drones_that_are_late_break_convergence() {
    let hurried = Plan { timeout: Duration::from_millis(1), ..plan(20) };
    match live::run(&hurried, &Progress::hidden()) {
        // Not even the leader was up.
        Err(error) => assert!(error.to_string().contains(" within 0.001 s"), "{error}"),
        Ok(report) => {
            assert_eq!(report.outcome(), RunOutcome::Failed);
            assert!(report.failures().contains("convergence"), "{}", report.failures());
        }
    }
}

#[test]
fn any_three_of_five_kgcs_issue_keys_and_release_an_order() {
    let report = pass(&Plan { kgcs: 5, threshold: 3, orders: true, restart_leader: false, ..plan(20) });
    assert!(report.operation("key generation (5 KGCs)").unwrap().took > Duration::ZERO);
    assert_eq!(report.operation("enrol").unwrap().drones, 23);
    assert_eq!(report.operation("phase 2 requested early (20 refused)").unwrap().latencies, []);
    assert_eq!(report.operation("phase 2 released (3 of 5)").unwrap().latencies.len(), 20);
}

#[test]
fn a_single_kgc_releases_an_order_as_well() {
    let report = pass(&Plan { orders: true, restart_leader: false, ..plan(10) });
    assert_eq!(report.operation("phase 2 released (1 of 1)").unwrap().latencies.len(), 10);
}
