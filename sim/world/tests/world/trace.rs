//! A trace says what the world says of itself: every drone of every shipped scenario, all along.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_kem::KemSetting;
use quiver_world::scenario::{ReadOptions, SHIPPED, Scenario, shipped};
use quiver_world::trace::{EventKind, PURPOSES, Trace, TraceRecorder, What};
use quiver_world::{
    Action, Hop, InsecureToy, NoObserver, NodeId, Setup, Step, StepObserver, World, WorldSuite,
};

/// Interval at which trace and world are compared.
const EVERY: Duration = Duration::from_millis(700);

fn read(name: &str) -> Scenario {
    Scenario::parse(name, shipped(name).unwrap(), ReadOptions::default()).unwrap()
}

fn record(name: &str) -> Trace {
    read(name).record(WorldSuite::Toy).unwrap().1
}

/// A world in which the scenario is about to happen.
fn world(scenario: &Scenario, hops: bool) -> World<InsecureToy> {
    let mut world = World::new(Setup { hops, ..scenario.setup.clone() }).unwrap();
    for (at, action) in &scenario.script {
        world.schedule(*at, action.clone());
    }
    world.schedule(scenario.duration, Action::Calm);
    world
}

/// Power and epoch of every node, folded from a trace as a player does it.
struct Fold<'a> {
    trace: &'a Trace,
    next: usize,
    /// Microseconds until the last fact.
    at: u64,
    nodes: Vec<(bool, Option<Epoch>)>,
}

impl<'a> Fold<'a> {
    fn new(trace: &'a Trace) -> Self {
        let nodes = usize::from(trace.kgcs) + usize::from(trace.leaders) + trace.edges as usize;
        Self { trace, next: 0, at: 0, nodes: vec![(false, None); nodes] }
    }

    fn until(&mut self, micros: u64) {
        while let Some((after, node, what, argument)) = self.trace.facts.get(self.next) {
            if self.at + after > micros {
                return;
            }
            (self.at, self.next) = (self.at + after, self.next + 1);
            let (on, epoch) = &mut self.nodes[*node as usize];
            match *what {
                what if what == What::On as u8 => *on = true,
                what if what == What::Off as u8 => *on = false,
                what if what == What::Holds as u8 || what == What::Leads as u8 => {
                    *epoch = usize::try_from(*argument).ok().map(|index| self.trace.epochs[index]);
                }
                _ => {}
            }
        }
    }
}

/// Scenarios whose effects on a trace are unlike those of the others: losses and returns of leaders, disks that refuse, a quorum, two
/// hops, drones that come and go, groups that part and merge.
const UNLIKE: [&str; 6] = [
    "disk_full_at_the_kgc",
    "flapping_drone",
    "leader_lost_during_rekey",
    "partition_then_merge",
    "quorum_split_in_two",
    "two_hops",
];

#[test]
fn trace_of_a_shipped_scenario_is_what_the_world_says_of_itself() {
    assert!(UNLIKE.iter().all(|name| SHIPPED.iter().any(|(shipped, _)| shipped == name)));
    UNLIKE.into_iter().for_each(trace_is_what_the_world_says);
}

#[test]
#[ignore = "takes a minute; `.ci/seeds` runs it"]
fn trace_of_every_shipped_scenario_is_what_the_world_says_of_itself() {
    SHIPPED.iter().for_each(|(name, _)| trace_is_what_the_world_says(name));
}

fn trace_is_what_the_world_says(name: &str) {
    let (scenario, trace) = (read(name), record(name));
    let (mut world, mut fold) = (world(&scenario, false), Fold::new(&trace));
    let hubs = usize::from(trace.kgcs) + usize::from(trace.leaders);
    let end = Duration::from_micros(trace.end);
    let mut held = 0;
    while world.time() < end {
        world.run_for(EVERY, &mut NoObserver);
        fold.until(world.time().as_micros().try_into().unwrap());
        for ordinal in 0..trace.leaders {
            let leader = world.leader(ordinal);
            let said = (leader.is_some(), leader.and_then(|leader| leader.status().epoch));
            let index = usize::from(trace.kgcs + ordinal);
            // While its disk refuses a record, a machine is ahead of what it says.
            if world.stalled(NodeId::Leader(ordinal)) {
                continue;
            }
            assert_eq!(fold.nodes[index], said, "{name}, leader-{ordinal} at {:?}", world.time());
        }
        for number in 0..trace.edges {
            let edge = world.edge(number);
            let said = (edge.is_some(), edge.and_then(|edge| edge.status().epoch));
            let index = hubs + number as usize;
            assert_eq!(fold.nodes[index], said, "{name}, edge-{number} at {:?}", world.time());
            held += usize::from(said.1.is_some());
        }
    }
    assert!(held > 0, "{name}: nobody ever had a key");
}

#[test]
fn recording_changes_nothing_and_one_seed_gives_one_trace() {
    let scenario = read("flapping_drone");
    let (recorded, trace) = scenario.record(WorldSuite::Toy).unwrap();
    assert_eq!(recorded.trace, scenario.run(WorldSuite::Toy).unwrap().trace);
    assert_eq!(format!("{trace:?}"), format!("{:?}", record("flapping_drone")));
}

/// Counts hops.
#[derive(Default)]
struct Count(u64, u64);

impl StepObserver<InsecureToy> for Count {
    fn on_step(&mut self, _: &World<InsecureToy>, _: &Step) {}

    fn on_hop(&mut self, hop: &Hop) {
        self.0 += 1;
        self.1 += u64::from(hop.arrives.is_none());
        assert!(hop.arrives.is_none_or(|arrives| arrives >= hop.sent), "{hop:?}");
    }
}

#[test]
fn every_message_of_the_network_is_a_hop_and_the_lost_ones_are_lost() {
    for name in ["thirty_percent_burst_loss", "partition_then_merge", "deltas_lost_on_a_lora_link"] {
        let scenario = read(name);
        let (mut world, mut count) = (world(&scenario, true), Count::default());
        world.run_until(scenario.duration, &mut count);
        assert_eq!((count.0, count.1), (world.traffic().sent, world.traffic().lost), "{name}");
        assert!(count.1 > 0, "{name}");
    }
}

/// Drones that hold a key when a trace ends, with the index of their second factor.
fn members_at_the_end(trace: &Trace) -> BTreeMap<u32, i64> {
    let (mut held, mut shared) = (BTreeMap::new(), BTreeMap::new());
    for (_, node, what, argument) in &trace.facts {
        if *what == What::Holds as u8 {
            held.insert(*node, *argument);
        } else if *what == What::SecondFactor as u8 {
            shared.insert(*node, *argument);
        }
    }
    held.retain(|_, epoch| *epoch >= 0);
    held.into_keys().map(|node| (node, shared.get(&node).copied().unwrap_or(-1))).collect()
}

#[test]
fn second_factors_of_drones_are_in_the_trace_with_set_terms_and_time() {
    let classical = record("leader_lost_during_rekey");
    assert!(classical.kems.is_empty());
    assert!(members_at_the_end(&classical).values().all(|shared| *shared == -1));
    let mut scenario = read("leader_lost_during_rekey");
    scenario.setup.kem = KemSetting::MlKem768;
    let trace = scenario.record(WorldSuite::Toy).unwrap().1;
    let members = members_at_the_end(&trace);
    assert_eq!(members.len(), members_at_the_end(&classical).len());
    let factors = members.values().map(|shared| &trace.kems[usize::try_from(*shared).unwrap()]);
    let factors: Vec<_> = factors.collect();
    assert!(factors.iter().all(|(set, terms, made)| set == "ml-kem-768" && *terms > 0 && *made < trace.end));
    // The leader's next term steps them, and is no new exchange.
    let stepped = |(_, terms, made): &&&(String, u64, u64)| {
        trace.kems.iter().any(|(_, before, at)| at == made && before < terms)
    };
    assert_eq!(factors.iter().filter(stepped).count(), factors.len());
}

#[test]
fn faults_last_until_they_are_over() {
    let trace = record("partition_then_merge");
    let partitions: Vec<(u64, Option<u64>)> = trace
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Fault)
        .map(|event| (event.at / 1_000_000, event.until.map(|until| until / 1_000_000)))
        .collect();
    assert_eq!(partitions, [(40, Some(130)), (200, Some(250))]);
    // Twenty drones are cut off and come back, then ten that hear nothing.
    let cut = trace.facts.iter().filter(|fact| fact.2 == What::CutOff as u8);
    assert_eq!(cut.clone().filter(|fact| fact.3 == 1).count(), 30);
    assert_eq!(cut.filter(|fact| fact.3 == 0).count(), 30);
}

#[test]
fn leaders_that_are_lost_and_take_over_are_on_the_time_line() {
    let trace = record("leader_lost_for_good");
    let told = |kind, word: &str| {
        trace.events.iter().filter(|event| event.kind == kind && event.text.contains(word)).count()
    };
    assert!(told(EventKind::Leader, "takes over") >= 2, "{:?}", trace.events);
    assert_eq!(
        told(EventKind::Epoch, "opens a term"),
        trace.epochs.iter().filter(|it| it.counter == 1).count()
    );
    assert_eq!(told(EventKind::Command, "evicts edge-8"), 1);
    assert!(trace.failures.is_empty() && trace.left_out.is_empty());
}

#[test]
fn drones_that_fly_are_within_range_exactly_while_they_are_not_cut_off() {
    let scenario = read("drones_flying_out_of_range");
    let (trace, json) = (record("drones_flying_out_of_range"), serde_json(&scenario));
    let hubs = u32::from(trace.kgcs) + u32::from(trace.leaders);
    // Flights last from 40 s to 5 minutes, in steps of a second.
    let (mut at, mut cut, mut compared) = (0, BTreeMap::new(), 0);
    let mut facts = trace.facts.iter().peekable();
    for second in 40..300_u64 {
        while let Some((after, node, what, argument)) =
            facts.next_if(|fact| at + fact.0 <= second * 1_000_000)
        {
            at += after;
            if *what == What::CutOff as u8 {
                cut.insert(*node - hubs, *argument == 1);
            }
        }
        for (edge, path) in json.iter().enumerate() {
            let (x, y) = place(path, second as f64);
            let away = (x * x + y * y).sqrt();
            // Places are rounded to decimetres.
            if (away - 400.0).abs() > 0.2 {
                let edge = u32::try_from(edge).unwrap();
                assert_eq!(cut.get(&edge).copied().unwrap_or(false), away > 400.0, "edge-{edge}, {second} s");
                compared += 1;
            }
        }
    }
    assert!(compared > 7_000, "{compared}");
}

/// Time in seconds, and place in metres.
type Path = Vec<(f64, f64, f64)>;

/// The paths of a scenario, as its page has them.
fn serde_json(scenario: &Scenario) -> Vec<Path> {
    let json: serde_json::Value = serde_json::to_value(scenario.places.as_ref().unwrap()).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let place = |place: &serde_json::Value| (number(&place[0]) / 1e6, number(&place[1]), number(&place[2]));
    let path = |path: &serde_json::Value| path.as_array().unwrap().iter().map(place).collect();
    json["paths"].as_array().unwrap().iter().map(path).collect()
}

fn place(path: &Path, second: f64) -> (f64, f64) {
    let after = path.iter().position(|place| place.0 > second).unwrap_or(path.len() - 1);
    let (from, to) = (path[after.saturating_sub(1)], path[after]);
    let part = if to.0 > from.0 { (second - from.0) / (to.0 - from.0) } else { 0.0 };
    (from.1 + (to.1 - from.1) * part, from.2 + (to.2 - from.2) * part)
}

#[test]
fn hops_name_what_messages_are_for() {
    let trace = record("mass_join");
    let mut counts = BTreeMap::new();
    for (_, _, _, purpose, _) in &trace.hops {
        *counts.entry(PURPOSES[usize::from(*purpose)]).or_insert(0) += 1;
    }
    for purpose in ["enrolment", "joining", "keys", "acknowledgements"] {
        assert!(counts.get(purpose).is_some_and(|count| *count > 50), "{counts:?}");
    }
}

#[test]
fn drones_that_a_policy_admits_stand_where_they_are_certified() {
    let trace = record("drones_flying_into_and_out_of_a_fence");
    let json = serde_json::to_value(&trace).unwrap();
    let path = |edge: usize| json["places"]["paths"][edge].as_array().unwrap().clone();
    let last = |edge| path(edge).last().unwrap().as_array().unwrap()[1..].to_vec();
    assert_eq!(last(9), [0.0, 0.0]);
    assert_eq!(last(0), [10.0, 10.0]);
    // The stranger has no certificate. The middle of the map is admitted, its corners are not.
    assert!(path(12).is_empty());
    let rows: Vec<&str> =
        json["places"]["admitted"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!((rows.len(), &rows[30][30..31], &rows[0][..1]), (61, "1", "0"));
}

#[test]
fn trace_of_a_world_that_fails_goes_until_then_and_says_so() {
    let mut world = World::<InsecureToy>::new(Setup { members: 3, ..Setup::default() }).unwrap();
    world.start_everyone();
    let mut recorder = TraceRecorder::new(&world, None);
    world.run_until(Duration::from_secs(10), &mut recorder);
    let failure = (Some(Duration::from_secs(9)), Some(NodeId::Edge(2)), "agreement at 9 s".to_owned());
    let trace = recorder.finish(world.time(), &[failure]);
    assert_eq!((trace.end, trace.failures.as_slice()), (10_000_000, &["agreement at 9 s".to_owned()][..]));
    let violation = trace.events.iter().find(|event| event.kind == EventKind::Violation).unwrap();
    assert_eq!((violation.at, violation.node), (9_000_000, Some(4)));
}
