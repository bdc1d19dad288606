//! Records a drone's inputs from joining a group of a hundred to a few re-keys later.

#[path = "site.rs"]
mod site;

use std::time::Duration;

use quiver_ainq::{Name, StrategyKind};
use quiver_bench::ainq::{Cue, Script, ScriptInput};
use quiver_group::LeaderCommand;
use quiver_machine::Route;

use self::site::{BenchNode, GROUP, InputRecord, RecordedInput, RecordingSite, UNIX};

const MEMBERS: usize = 100;
const SEED: u64 = 2;
/// Re-keys on expiry.
const REKEYS: usize = 3;
/// Number of the drone's keys in a tree that are new after each removal. That depends on how near its leaf
/// the removed member's was: between two of a hundred members it is one in 46 of 100 cases, two in 23, all
/// seven in one, and 2.1 in the mean, as here.
const NEW_KEYS: [u32; 7] = [1, 2, 1, 7, 1, 2, 1];

/// The script of a group under this strategy, encoded.
pub(crate) fn record(strategy: StrategyKind) -> Vec<u8> {
    let mut site = RecordingSite::new(strategy);
    for _ in 1..MEMBERS {
        let drone = BenchNode::Drone(site.enrol());
        site.connect(drone, BenchNode::Leader, Route::Leader);
    }
    site.run(Duration::from_secs(20));
    assert!(site.drones.iter().all(|drone| drone.keys > 0), "all are members");
    let subject = site.enrol();
    let state = site.restart(subject, SEED);
    site.connect(BenchNode::Drone(subject), BenchNode::Leader, Route::Leader);
    let mut cues = vec![Cue::Welcome];
    site.run(Duration::from_secs(10));
    for _ in 0..REKEYS {
        site.lead(LeaderCommand::Rekey);
        site.run(Duration::from_secs(10));
        cues.push(Cue::Rekey);
    }
    for count in NEW_KEYS {
        let member = member_at(&site, subject, count);
        site.lead(LeaderCommand::Evict(member));
        site.run(Duration::from_secs(10));
        cues.push(Cue::Evict);
    }
    let drone = &site.drones[subject];
    let inputs = drone.inputs.clone();
    let script = Script {
        deployment: site.deployment.clone(),
        group: Name::new(GROUP).unwrap(),
        members: MEMBERS as u32,
        unix: UNIX,
        seed: SEED,
        state,
        steps: steps(&inputs, cues),
    };
    script.encode()
}

/// A member whose removal from a tree renews so many of the subject's keys: the root's, and one more for each
/// level that the two have in common beneath it.
fn member_at(site: &RecordingSite, subject: usize, new_keys: u32) -> Name {
    let slot = |place: usize| site.drones[place].edge.status().slot;
    let own = slot(subject).expect("the subject is a member");
    let height = (MEMBERS as u32 - 1).ilog2() + 1;
    let apart = |place: &usize| {
        slot(*place).is_some_and(|slot| slot != own && height - (slot ^ own).ilog2() == new_keys)
    };
    let place = (0..MEMBERS - 1).find(apart).expect("a member at that distance");
    Name::new(&format!("drone-{place}")).unwrap()
}

/// The steps of a script; those that bring keys have their cues.
fn steps(inputs: &[InputRecord], cues: Vec<Cue>) -> Vec<ScriptInput<'_>> {
    let mut cues = cues.into_iter();
    let mut steps = Vec::new();
    for InputRecord { at, input, activates } in inputs {
        let (cue, bytes): (_, &[u8]) = match input {
            RecordedInput::Timeout => (Cue::Timeout, &[]),
            RecordedInput::Connected(BenchNode::Leader, Route::Leader) => (Cue::Connected, &[]),
            RecordedInput::Received(BenchNode::Leader, _, bytes) if *activates => {
                (cues.next().expect("a cue for every key"), bytes)
            }
            RecordedInput::Received(BenchNode::Leader, _, bytes) => (Cue::Message, bytes),
            other => panic!("a drone in a group hears {other:?}"),
        };
        steps.push(ScriptInput { at: at.as_millis().try_into().unwrap(), cue, bytes });
    }
    assert_eq!(cues.next(), None, "every key came by one message");
    steps
}
