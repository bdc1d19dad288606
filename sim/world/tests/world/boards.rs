//! Members that repeat a leader's broadcasts to those out of its range.

use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_group::leader::LeaderTiming;
use quiver_link::TrickleConfig;
use quiver_world::boards::Repeats;
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Loss, Preset};
use quiver_world::{Action, AirSetup, NoObserver, Setup, TwoHops, TwoHopsReport};

use crate::radio::world::formed;

/// Measures a leave's re-key with some members out of range, and the share of members with the newest key
/// five seconds later.
fn two_hops(repeated: bool, hostile: u32) -> (TwoHopsReport, f64) {
    let trickle = TrickleConfig::new(Duration::from_millis(500), 2, 2).unwrap();
    let repeats = repeated.then_some(Repeats { trickle, intervals: 3 });
    let mut world = formed(Setup {
        members: 60,
        strategy: StrategyKind::Tree,
        shared_medium: true,
        air: Some(AirSetup {
            profile: Preset::Ieee802154.profile().with_coding(),
            loss: Loss::independent(0.1).unwrap(),
            arithmetic: Arithmetic::Portable,
        }),
        two_hops: Some(TwoHops { spread: 1.5, repeats, hostile }),
        leader_timing: LeaderTiming { resend: Duration::from_secs(60), ..LeaderTiming::default() },
        ..Setup::default()
    });
    world.run_for(Duration::from_secs(120), &mut NoObserver);
    let before = world.two_hops().unwrap();
    world.schedule(world.time(), Action::Leave(30));
    world.run_for(Duration::from_secs(5), &mut NoObserver);
    let after = world.two_hops().unwrap();
    let leader = world.leader(0).unwrap().status();
    let newest = leader.epoch;
    let have = (0..60).filter(|edge| {
        let edge = world.edge(*edge).and_then(|edge| edge.named());
        edge.and_then(|edge| edge.status().epoch) == newest
    });
    let report = TwoHopsReport {
        from_leader: after.from_leader - before.from_leader,
        from_members: after.from_members - before.from_members,
        repetitions: after.repetitions - before.repetitions,
        false_repetitions: after.false_repetitions - before.false_repetitions,
        ..after
    };
    (report, have.count() as f64 / 59.0)
}

#[test]
fn members_repeat_a_rekey_to_those_out_of_range() {
    let (alone, have_alone) = two_hops(false, 0);
    assert!((20..45).contains(&alone.out_of_range), "{alone:?}");
    assert_eq!((alone.from_members, alone.repetitions), (0, 0));
    assert!(have_alone < 0.7, "{have_alone}");
    let (repeated, have) = two_hops(true, 0);
    assert!(repeated.from_members + 2 >= u64::from(repeated.out_of_range), "{repeated:?}");
    assert!(have > 0.95, "{have}");
    assert!(repeated.repetitions < 60, "fewer than each one: {repeated:?}");
}

#[test]
fn those_who_repeat_false_frames_silence_nobody() {
    let (repeated, have) = two_hops(true, 6);
    assert!(repeated.false_repetitions > 0);
    assert!(repeated.from_members + 2 >= u64::from(repeated.out_of_range), "{repeated:?}");
    assert!(have > 0.95, "{have}");
}
