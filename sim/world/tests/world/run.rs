//! Runs over a radio: all drones enrol, join and follow, however many they are for its channel; an impossible
//! plan is refused.

use std::ops::ControlFlow;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Loss, Preset};
use quiver_world::run::{FinishedPart, Pacing, Phase, PhaseCosts, Run, RunPlan, run, run_while};
use quiver_world::{AirSetup, WorldSuite};

fn air(radio: &str) -> AirSetup {
    let preset: Preset = radio.parse().unwrap();
    AirSetup { profile: preset.profile(), loss: Loss::None, arithmetic: Arithmetic::default() }
}

fn plan(drones: u32, strategy: StrategyKind, radio: &str) -> RunPlan {
    RunPlan {
        drones,
        strategy,
        kem: KemSetting::None,
        seed: 1,
        leavers: drones.div_ceil(100),
        newcomers: drones / 10,
        messages: 4,
        envelopes: false,
        kgcs: 1,
        threshold: 1,
        orders: false,
        admission: None,
        share_verifications: false,
        restart_leader: true,
        air: Some(air(radio)),
        depot: None,
        traced: false,
        ranks: None,
    }
}

fn run_plan(plan: &RunPlan) -> Run {
    let run = run(WorldSuite::Toy, plan, &mut |_| {}).unwrap();
    assert_eq!(run.violations, [], "{plan:?}");
    assert_eq!(run.operations.len(), 8, "{plan:?}");
    run
}

fn operation(run: &Run, phase: Phase) -> &PhaseCosts {
    run.operations.iter().find(|operation| operation.phase == phase).unwrap()
}

fn airtime(operation: &PhaseCosts) -> Duration {
    operation.radio.unwrap().airtime
}

const STRATEGIES: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];

/// Were all of them to enrol at once, the channel would be taken for longer than anybody waits for an answer.
#[test]
fn hundreds_of_drones_share_a_slow_channel() {
    for radio in ["802.15.4", "ble", "wifi"] {
        for strategy in STRATEGIES {
            let plan = plan(300, strategy, radio);
            let run = run_plan(&plan);
            let enrolment = operation(&run, Phase::Enrol);
            // NoObserver had to ask twice: hello, cookie, request, answer. The leader enrols by other means.
            assert!(enrolment.messages.unwrap() < 4 * (330 + 1) + 10, "{radio}: {:?}", enrolment.messages);
            assert!(
                operation(&run, Phase::Form).epochs <= 2,
                "{radio}: joins that come one by one make one epoch"
            );
            let airtime = airtime(enrolment) / u32::try_from(enrolment.drones).unwrap();
            let every = Pacing::of(&plan).unwrap().enrolment;
            assert!(airtime < every && every < airtime * 30, "{radio}: {airtime:?} of every {every:?}");
        }
    }
}

#[test]
fn a_radio_that_takes_no_time_needs_no_pace() {
    for air in [None, Some(air("ideal"))] {
        let plan = RunPlan { air, ..plan(50, StrategyKind::Flat, "wifi") };
        let pace = Pacing::of(&plan).unwrap();
        assert!(pace.enrolment.is_zero() && pace.join.is_zero() && pace.rekey.is_zero());
        run_plan(&plan);
    }
}

#[test]
fn a_slower_radio_sets_a_slower_pace_and_more_drones_take_longer_to_follow() {
    let pace = |drones, radio| Pacing::of(&plan(drones, StrategyKind::Flat, radio)).unwrap();
    let (slow, fast) = (pace(100, "802.15.4"), pace(100, "wifi"));
    assert!(slow.enrolment > fast.enrolment * 4 && slow.join > fast.join * 4);
    let (few, many) = (pace(100, "802.15.4"), pace(1_000, "802.15.4"));
    assert_eq!((few.enrolment, few.join), (many.enrolment, many.join));
    assert!(many.rekey > few.rekey * 9 && many.opening > few.opening * 9);
}

#[test]
fn a_radio_that_must_keep_silent_for_too_long_is_refused_unless_there_is_a_depot() {
    let plan = plan(20, StrategyKind::Tree, "lora-sf7");
    let refusal = Pacing::of(&plan).unwrap_err();
    assert!(refusal.contains("lora-sf7") && refusal.contains("--depot"), "{refusal}");
    assert_eq!(run(WorldSuite::Toy, &plan, &mut |_| {}).unwrap_err().to_string(), refusal);
    for strategy in STRATEGIES {
        let run = run_plan(&RunPlan { strategy, depot: Some(air("wifi")), ..plan.clone() });
        // Newcomers join at the depot too.
        let (enrol, join, expire) =
            (operation(&run, Phase::Enrol), operation(&run, Phase::Join), operation(&run, Phase::Rekey));
        assert!(airtime(join) < Duration::from_secs(1));
        // Drones that come back all at once publish their spare points again and again only if they may.
        let restart = operation(&run, Phase::RestartLeader);
        assert!(restart.messages.unwrap() < 12 * 22, "{:?} messages", restart.messages);
        assert!(airtime(enrol) < Duration::from_secs(1) && airtime(expire) > Duration::from_secs(1));
    }
}

#[test]
fn a_group_too_large_for_its_radio_is_refused() {
    let plan = RunPlan { depot: Some(air("wifi")), ..plan(2_000, StrategyKind::Flat, "lora-sf12") };
    let refusal = Pacing::of(&plan).unwrap_err();
    assert!(refusal.contains("2200 drones"), "{refusal}");
}

#[test]
fn sealed_orders_open_at_exactly_those_they_are_for() {
    let plan =
        RunPlan { envelopes: true, restart_leader: false, air: None, ..plan(60, StrategyKind::Flat, "wifi") };
    let run = run(WorldSuite::Toy, &plan, &mut |_| {}).unwrap();
    assert_eq!(run.violations, []);
    let envelopes = run.operations.iter().filter(|operation| operation.phase == Phase::Envelope);
    let orders: Vec<usize> = envelopes.map(|operation| operation.drones).collect();
    // A quarter of 66 drones but one that left, twice; then half of them.
    assert_eq!((orders.len(), orders[0]), (3, orders[1]), "{orders:?}");
    assert!((15..=17).contains(&orders[0]) && (31..=34).contains(&orders[2]), "{orders:?}");
}

#[test]
fn an_order_waits_for_its_phase_under_a_quorum_and_under_a_single_kgc() {
    for (kgcs, threshold) in [(1, 1), (5, 3)] {
        let plan = RunPlan {
            kgcs,
            threshold,
            orders: true,
            restart_leader: false,
            air: None,
            ..plan(20, StrategyKind::Flat, "wifi")
        };
        let run = run(WorldSuite::Toy, &plan, &mut |_| {}).unwrap();
        assert_eq!(run.violations, [], "{kgcs}");
        assert_eq!(operation(&run, Phase::Release).drones, 21);
    }
}

#[test]
fn a_broadcast_counts_once_on_air_and_once_for_each_receiver() {
    let run = run_plan(&plan(100, StrategyKind::Tree, "802.15.4"));
    let leave = operation(&run, Phase::Leave);
    let (air, receivers) = (leave.air_bytes.unwrap(), leave.receiver_bytes.unwrap());
    assert!(air * 2 < receivers, "{air} and {receivers}");
    // 250 kbit/s: the octets on air take no longer than the channel is kept.
    let sending = Duration::from_secs_f64(air as f64 * 8.0 / 250_000.0);
    assert!(sending <= airtime(leave) && sending * 3 > airtime(leave), "{sending:?} of {:?}", airtime(leave));
    let ideal = run_plan(&RunPlan { air: None, ..plan(20, StrategyKind::Tree, "wifi") });
    let leave = operation(&ideal, Phase::Leave);
    assert!(leave.air_bytes.is_none() && leave.receiver_bytes.unwrap() > 0, "{leave:?}");
}

#[test]
fn an_interrupted_run_has_what_was_finished_and_nothing_that_was_not() {
    let plan = plan(30, StrategyKind::Flat, "ideal");
    let whole = run(WorldSuite::Toy, &plan, &mut |_| {}).unwrap();
    for phase in [Phase::Enrol, Phase::Rekey, Phase::Join, Phase::RestartLeader] {
        let mut told = 0;
        let mut watch = |state: quiver_world::run::RunProgress, part: FinishedPart<'_>| {
            told = part.operations.len();
            if state.phase == phase { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (part, _) = run_while(WorldSuite::Toy, &plan, false, &mut watch).unwrap();
        assert!(part.interrupted && part.violations.is_empty(), "{phase}: {:?}", part.violations);
        let names = |run: &Run| run.operations.iter().map(PhaseCosts::name).collect::<Vec<_>>();
        let finished = whole.operations.iter().take_while(|operation| operation.phase != phase).count();
        assert_eq!(names(&part), names(&whole)[..finished], "{phase}");
        assert_eq!(told, finished, "{phase}: the watcher knows what was finished");
    }
    assert!(!whole.interrupted);
}
