//! The actions of a scenario file, and their times.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_world::scenario::{ReadOptions, Scenario};
use quiver_world::{Action, NodeId};

use super::{read, with};

fn seconds(at: Duration) -> f64 {
    at.as_secs_f64()
}

/// The actions after all were switched on and joined.
fn later(scenario: &Scenario) -> Vec<(f64, Action)> {
    let early = |action: &Action| matches!(action, Action::Start(_) | Action::Join(_));
    let script = scenario.script.iter().filter(|(at, action)| seconds(*at) > 4.0 || !early(action));
    script.map(|(at, action)| (seconds(*at), action.clone())).collect()
}

#[test]
fn everybody_is_switched_on_and_members_want_in() {
    let scenario =
        read(&with("strangers = 3\noff = [\"leader-1\", \"edge-9\"]\nstay-out = [\"edge-0..1\"]\n")).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.edges()), ("test", 13));
    let started: BTreeSet<NodeId> = scenario
        .script
        .iter()
        .filter_map(|(at, action)| match action {
            Action::Start(node) if at.is_zero() => Some(*node),
            _ => None,
        })
        .collect();
    assert_eq!(started.len(), 1 + 1 + 12);
    assert!(started.contains(&NodeId::Kgc(1)) && started.contains(&NodeId::Edge(12)));
    assert!(!started.contains(&NodeId::Leader(1)) && !started.contains(&NodeId::Edge(9)));
    let joined: Vec<u32> = scenario
        .script
        .iter()
        .filter_map(|(_, action)| match action {
            Action::Join(edge) => Some(*edge),
            _ => None,
        })
        .collect();
    assert_eq!(joined, (2..9).collect::<Vec<_>>());
}

#[test]
fn events_repeat_and_spread() {
    let text = with(
        "[[event]]\nat = \"10s\"\nover = \"4s\"\nrepeat = { every = \"20s\", times = 2 }\nleave = [\"edge-0..3\"]\n",
    );
    let expected: Vec<(f64, Action)> = [10.0, 30.0]
        .into_iter()
        .flat_map(|at| (0..4).map(move |edge| (at + f64::from(edge), Action::Leave(edge))))
        .collect();
    assert_eq!(later(&read(&text).unwrap()), expected);
}

#[test]
fn script_is_in_order_of_time_and_keeps_the_order_of_the_file_within_a_moment() {
    let text = with(
        "[[event]]\nat = \"30s\"\nrekey = true\n[[event]]\nat = \"10s\"\nheal = true\n[[event]]\nat = \"30s\"\nleave = [\"edge-1\"]\n",
    );
    let script = later(&read(&text).unwrap());
    assert_eq!(script, [(10.0, Action::Heal), (30.0, Action::Rekey), (30.0, Action::Leave(1))]);
}

#[test]
fn messages_are_numbered_so_that_listeners_can_tell_them_apart() {
    let text = with(
        "[[event]]\nat = \"10s\"\nrepeat = { every = \"1s\", times = 3 }\ntalk = { nodes = [\"leader-0\", \"edge-2\"] }\n",
    );
    let numbers: Vec<u32> = later(&read(&text).unwrap())
        .into_iter()
        .filter_map(|(_, action)| match action {
            Action::Talk { number, .. } => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
}

const CHURN: &str = "[churn]\nfrom = \"20s\"\nuntil = \"80s\"\nedges = [\"edge-0..7\"]\n\
    leaves-per-minute = 30\njoins-per-minute = 20\ncrashes-per-minute = 6\n";

#[test]
fn churn_comes_at_its_rate_and_lets_nobody_leave_twice() {
    let scenario = read(&with(CHURN)).unwrap();
    let (mut outside, mut leaves, mut crashes) = (BTreeSet::new(), 0, 0);
    for (at, action) in later(&scenario) {
        assert!((20.0..80.0).contains(&at), "{at}");
        match action {
            Action::Leave(edge) => {
                assert!(edge < 8 && outside.insert(edge), "edge-{edge} left twice");
                leaves += 1;
            }
            Action::Join(edge) => assert!(outside.remove(&edge), "edge-{edge} was in"),
            Action::Crash { .. } => crashes += 1,
            other => panic!("{other}"),
        }
    }
    // A leave finds no member when all eight are out.
    assert!((20..=30).contains(&leaves), "{leaves}");
    assert!((4..=6).contains(&crashes), "{crashes}");
}

#[test]
fn same_seed_gives_the_same_churn_and_another_seed_another() {
    let with_seed = |seed| {
        let reading = ReadOptions { seed, ..ReadOptions::default() };
        Scenario::parse("test.toml", &with(CHURN), reading).unwrap().script
    };
    assert_eq!(with_seed(None), with_seed(Some(1)));
    assert_ne!(with_seed(Some(1)), with_seed(Some(2)));
}

#[test]
fn drones_that_fly_out_of_range_are_not_heard_until_they_come_back() {
    let scenario = read(&with(
        "[mobility]\nfrom = \"10s\"\nuntil = \"110s\"\nedges = [\"edges\"]\nside-metres = 1000\nrange-metres = 400\n\
         metres-per-second = 30\n",
    ))
    .unwrap();
    let mut silent = BTreeSet::new();
    let mut changes = 0;
    for (_, action) in later(&scenario) {
        match action {
            Action::LinksOf(node, Some(faults)) => {
                assert_eq!(faults.loss.to_bits(), 1.0f64.to_bits());
                assert!(silent.insert(node), "{node} fell silent twice");
            }
            Action::LinksOf(node, None) => assert!(silent.remove(&node), "{node} was heard"),
            other => panic!("{other}"),
        }
        changes += 1;
    }
    assert!(silent.is_empty(), "{silent:?} stay silent for ever");
    // A circle of radius 400 covers half of the square: ten drones cross its edge many times in 3 km each.
    assert!((20..400).contains(&changes), "{changes}");
}
