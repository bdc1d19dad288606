//! Ends of anonymous memberships: with the period, with the leader's term, or because no further demand is
//! answered.

use std::time::Duration;

use quiver_admission::{AdmissionError, AdmittingLeaderCommand, AnonymousEvent, Ending, Exhausted};
use quiver_ainq::StrategyKind;
use quiver_group::{LeaderCommand, LeaderEvent};

use crate::swarm::Swarm;
use crate::world::{MOST, PERIOD};

const BOTH: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];
const A_WHILE: Duration = Duration::from_secs(20);

#[test]
fn memberships_end_with_the_period_and_only_who_has_a_new_credential_comes_back() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(1, strategy);
        let (stays, revoked) = (swarm.add(100, -50, false), swarm.add(100, -51, false));
        let old = swarm.world.credential(100, -51, false);
        swarm.run(A_WHILE);
        swarm.assert_in(&[stays, revoked]);
        // No key of an epoch with them is valid for longer.
        let until = swarm.leader().status().valid_until.unwrap();
        let ends = (swarm.world.clock().unix / PERIOD + 1) * PERIOD;
        assert!(until <= ends, "{until} {ends}");
        swarm.run_to_the_next_period();
        swarm.assert_in(&[]);
        for drone in [stays, revoked] {
            assert_eq!(swarm.ending(drone), Some(&Ending::PeriodOver));
        }
        let parted = swarm.events().into_iter().filter(|event| matches!(event, LeaderEvent::Parted { .. }));
        assert_eq!(parted.count(), 2);
        let keys = swarm.world.slot_keys();
        swarm.lead(AdmittingLeaderCommand::SlotKeys(keys));
        let new = swarm.world.credential(100, -50, false);
        swarm.apply(stays, &new);
        // A credential of the last period, shown by a drone that claims it is of this one.
        swarm.apply(revoked, &old);
        swarm.run(A_WHILE);
        swarm.assert_in(&[stays]);
        assert_eq!(swarm.denied().len(), 1);
    }
}

#[test]
fn period_that_ends_while_nobody_is_connected_ends_all_the_same() {
    let mut swarm = Swarm::new(2, StrategyKind::Tree);
    let drones = [swarm.add(100, -50, false), swarm.add(100, -51, false)];
    swarm.run(A_WHILE);
    swarm.assert_in(&drones);
    drones.iter().for_each(|drone| swarm.hang_up(*drone));
    swarm.run_to_the_next_period();
    swarm.assert_in(&[]);
    for drone in drones {
        assert_eq!(swarm.ending(drone), Some(&Ending::PeriodOver), "the drone's own clock says so");
    }
}

#[test]
fn leader_that_restarts_has_forgotten_those_without_a_name_and_lets_them_in_again() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(3, strategy);
        let drones = [swarm.add(100, -50, false), swarm.add(100, -51, false)];
        swarm.run(A_WHILE);
        swarm.assert_in(&drones);
        let before = swarm.leader().status().epoch.unwrap();
        swarm.crash_leader();
        swarm.run(A_WHILE);
        swarm.start_leader();
        assert_eq!(swarm.leader().status().members, 0);
        assert!(swarm.leader().status().epoch.unwrap() > before);
        // They reconnect as they were, are told that nobody knows them, and are over.
        drones.iter().for_each(|drone| swarm.dial(*drone));
        swarm.run(A_WHILE);
        swarm.assert_in(&[]);
        for drone in drones {
            assert_eq!(swarm.ending(drone), Some(&Ending::Dropped));
            let credential = swarm.world.credential(100, -50, false);
            swarm.apply(drone, &credential);
        }
        swarm.run(A_WHILE);
        swarm.assert_in(&drones);
    }
}

#[test]
fn leader_without_the_slot_keys_of_the_period_lets_nobody_in_until_it_has_them() {
    let mut swarm = Swarm::new(4, StrategyKind::Flat);
    swarm.crash_leader();
    swarm.start_leader_without_slot_keys();
    let drone = swarm.add(100, -50, false);
    swarm.run(A_WHILE);
    swarm.assert_in(&[]);
    assert_eq!(swarm.ending(drone), None, "nothing was shown: it tries again over the same connection");
    let keys = swarm.world.slot_keys();
    swarm.lead(AdmittingLeaderCommand::SlotKeys(keys));
    swarm.run(Duration::from_secs(60));
    swarm.assert_in(&[drone]);
}

#[test]
fn drone_that_crashes_comes_back_as_somebody_else_as_often_as_its_ledger_allows() {
    let mut swarm = Swarm::new(5, StrategyKind::Flat);
    let drone = swarm.add(100, -50, false);
    let credential = swarm.world.credential(100, -50, false);
    for again in 0..MOST {
        if again > 0 {
            swarm.apply(drone, &credential);
        }
        swarm.run(A_WHILE);
        let status = swarm.drone(drone).status();
        assert!(status.synced, "{:?}", swarm.events_of(drone));
        assert_eq!(status.boot_no, 1, "a number that counts starts would tell who it is");
    }
    swarm.apply(drone, &credential);
    swarm.run(A_WHILE);
    let exhausted = Ending::Denied(AdmissionError::Exhausted(Exhausted::Leader(MOST)));
    assert_eq!(swarm.ending(drone), Some(&exhausted));
    // In the next period it is answered again.
    swarm.run_to_the_next_period();
    let keys = swarm.world.slot_keys();
    swarm.lead(AdmittingLeaderCommand::SlotKeys(keys));
    let credential = swarm.world.credential(100, -50, false);
    swarm.apply(drone, &credential);
    swarm.run(A_WHILE);
    swarm.assert_in(&[drone]);
}

#[test]
fn drone_that_loses_its_connection_in_the_middle_of_a_run_is_over_and_the_leader_forgets_it() {
    let mut swarm = Swarm::new(6, StrategyKind::Flat);
    let drone = swarm.add(100, -50, false);
    swarm.run(Duration::from_millis(20));
    swarm.hang_up(drone);
    swarm.run(A_WHILE);
    assert_eq!(swarm.ending(drone), Some(&Ending::Denied(AdmissionError::Silent)));
    swarm.assert_in(&[]);
    assert!(!swarm.events_of(drone).iter().any(|event| matches!(event, AnonymousEvent::Admitted { .. })));
}

#[test]
fn drone_without_a_name_is_put_out_by_its_slot_and_holds_no_later_key() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(7, strategy);
        let drones = [swarm.add(100, -50, false), swarm.add(100, -51, false)];
        swarm.run(A_WHILE);
        swarm.assert_in(&drones);
        let slot = swarm.drone(drones[0]).status().slot.unwrap();
        swarm.lead(LeaderCommand::EvictSlot(slot));
        swarm.run(A_WHILE);
        swarm.assert_in(&drones[1..]);
        assert_eq!(swarm.ending(drones[0]), Some(&Ending::Evicted));
        let parted = swarm
            .events()
            .iter()
            .any(|event| matches!(event, LeaderEvent::Parted { slot: of, .. } if *of == slot));
        assert!(parted, "{:?}", swarm.events());
        swarm.lead(LeaderCommand::EvictSlot(slot));
        assert_eq!(swarm.events().last(), Some(&&LeaderEvent::NobodyInSlot(slot)));
        // An anonymous member cannot be barred for good: the holder of its credential may show it again.
        let credential = swarm.world.credential(100, -50, false);
        swarm.apply(drones[0], &credential);
        swarm.run(A_WHILE);
        swarm.assert_in(&drones);
    }
}
