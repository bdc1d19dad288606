//! Telemetry in the group's datagrams: what arrives is opened once and by members, whatever radio, links and
//! a captured vehicle do.

use std::time::Duration;

use quiver_world::scenario::{ReadOptions, Scenario, ScenarioRun, shipped};
use quiver_world::{
    Action, DatagramEvent, DatagramEventKind, InsecureToy, Invariants, LinkFaults, MavlinkSetup, NodeId,
    Setup, Step, StepObserver, World, WorldError, WorldSuite,
};

/// The shipped scenario with some of its text replaced.
fn scenario(replaced: &[(&str, &str)], seed: u64) -> Scenario {
    let mut text = shipped("mavlink").unwrap().to_owned();
    for (old, new) in replaced {
        assert!(text.contains(old), "{old} is not in the scenario");
        text = text.replace(old, new);
    }
    let reading = ReadOptions { seed: Some(seed), ..ReadOptions::default() };
    Scenario::parse("mavlink.toml", &text, reading).unwrap_or_else(|error| panic!("{error}"))
}

fn played(replaced: &[(&str, &str)], seed: u64) -> ScenarioRun {
    scenario(replaced, seed).run(WorldSuite::Toy).unwrap()
}

#[test]
fn a_radio_that_loses_nothing_costs_no_frame_but_at_a_removal() {
    for seed in 1..4 {
        let run = played(&[("loss = 0.02", "loss = 0.0")], seed);
        assert!(run.passed(), "{:?} {:?}", run.violations, run.unmet);
        let report = run.mavlink.unwrap();
        assert_eq!((report.lost, report.unopened), (0, 0));
        let unopened = report.unopened_at_removal + report.unopened_at_first;
        assert_eq!(report.delivered + unopened, report.arrived);
        assert!(report.sent > 4_000 && unopened * 200 < report.arrived, "{report:?}");
        assert_eq!(report.suspicions, 0);
    }
}

/// Counts what the captured vehicle opens, by the time.
struct Captive {
    invariants: Invariants<InsecureToy>,
    opened: Vec<Duration>,
    sealed: Vec<Duration>,
}

impl StepObserver<InsecureToy> for Captive {
    fn on_step(&mut self, world: &World<InsecureToy>, step: &Step) {
        self.invariants.on_step(world, step);
    }

    fn on_action(&mut self, world: &World<InsecureToy>, at: Duration, action: &Action) {
        self.invariants.on_action(world, at, action);
    }

    fn on_datagram(&mut self, world: &World<InsecureToy>, event: &DatagramEvent) {
        self.invariants.on_datagram(world, event);
        if event.node == NodeId::Edge(5) {
            match event.kind {
                DatagramEventKind::Sealed { .. } => self.sealed.push(event.at),
                DatagramEventKind::Opened { .. } => self.opened.push(event.at),
                DatagramEventKind::Transmitted { .. } => {}
            }
        }
    }
}

#[test]
fn a_captured_vehicle_opens_until_it_is_evicted_and_sends_on_in_vain() {
    let scenario = scenario(&[], 1);
    let mut world = World::<InsecureToy>::new(scenario.setup.clone()).unwrap();
    let invariants = Invariants::new(&world, false);
    let mut captive = Captive { invariants, opened: Vec::new(), sealed: Vec::new() };
    for (at, action) in &scenario.script {
        world.schedule(*at, action.clone());
    }
    world.run_until(Duration::from_secs(44), &mut captive);
    assert_eq!(captive.invariants.violations(), []);
    let within = |times: &[Duration], from: u64, until: u64| {
        times.iter().filter(|at| (from..until).contains(&at.as_secs())).count()
    };
    // Captured at 20 s, evicted at 30 s; within two seconds all others have the next key.
    assert!(within(&captive.opened, 20, 30) > 500, "{}", within(&captive.opened, 20, 30));
    assert_eq!(within(&captive.opened, 32, 60), 0);
    assert!(within(&captive.sealed, 32, 44) > 30, "{}", within(&captive.sealed, 32, 44));
}

#[test]
fn the_same_seed_gives_the_same_telemetry() {
    let (one, again, other) = (played(&[], 5), played(&[], 5), played(&[], 6));
    assert_eq!((one.trace, &one.mavlink), (again.trace, &again.mavlink));
    assert_ne!(one.trace, other.trace);
}

#[test]
fn bounds_that_are_not_kept_are_named() {
    let run = played(
        &[
            ("min-delivered = 0.96", "min-delivered = 0.999"),
            ("max-outage-at-removal = \"3s\"", "max-outage-at-removal = \"1ms\""),
            ("max-unopened-at-removal = 0.01", "max-unopened-at-removal = 0.0001"),
            ("max-added-bytes = 13.0", "max-added-bytes = 1.0"),
            ("max-shaped = 100", "max-shaped = 0"),
            ("max-air = 0.25", "max-air = 0.01"),
            ("min-hostile = 200", "min-hostile = 20000"),
            ("min-refused = 2000", "min-refused = 200000"),
        ],
        1,
    );
    assert!(run.violations.is_empty() && !run.passed());
    for what in [
        "share of frames delivered: 0.9",
        "seconds without telemetry at a removal: ",
        "share of copies not opened after a removal: ",
        "bytes added to a frame: ",
        "frames dropped by shaping: ",
        "share of the air: ",
        "datagrams of captured vehicles: ",
        "datagrams not taken: ",
    ] {
        assert!(run.unmet.iter().any(|unmet| unmet.starts_with(what)), "{what}: {:?}", run.unmet);
    }
}

#[test]
fn a_station_keeps_to_its_bit_rate_and_drops_the_oldest() {
    const RATE: u64 = 900;
    let run = played(
        &[
            ("frames-per-second = 5.0", "frames-per-second = 5.0\nbit-rate = 900"),
            ("max-shaped = 100", "max-shaped = 1000000"),
            ("min-delivered = 0.96", "min-delivered = 0.9"),
            ("max-added-bytes = 13.0", "max-added-bytes = 20.0"),
        ],
        1,
    );
    assert!(run.violations.is_empty(), "{:?}", run.violations);
    let report = run.mavlink.unwrap();
    assert!(report.shaped > report.sent, "{report:?}");
    // Headers of the frame and of its PHY: 11 and 6 bytes.
    let octets =
        report.datagram_bytes + report.announcement_bytes + 17 * (report.datagrams + report.announcements);
    // Frames of the captured vehicle after its removal are not among them.
    let allowed = 17 * (RATE * 60 / 8 + 2 * (116 + 17) + 133);
    assert!(octets <= allowed && octets * 2 > allowed, "{octets} of {allowed}");
}

#[test]
fn nothing_passes_twice_or_changed_on_links_that_double_reorder_and_corrupt() {
    let faults = LinkFaults { loss: 0.05, duplicate: 0.2, corrupt: 0.05, reorder: 0.2, ..LinkFaults::SOUND };
    for (seed, parallel) in [(1, false), (2, false), (3, true)] {
        let mavlink =
            Some(MavlinkSetup { frame_every: Duration::from_millis(100), ..MavlinkSetup::default() });
        let setup =
            Setup { seed, members: 8, faults, mavlink, parallel, recording: true, ..Setup::default() };
        let mut world = World::<InsecureToy>::new(setup).unwrap();
        let mut invariants = Invariants::new(&world, false);
        world.start_everyone();
        for edge in 0..8 {
            world.schedule(Duration::from_secs(2), Action::Join(edge));
        }
        let crash = |node| Action::Crash { node, after: 2, down_for: Duration::from_secs(2) };
        for (second, action) in [
            (15, crash(NodeId::Leader(0))),
            (20, Action::Capture(3)),
            (22, crash(NodeId::Edge(6))),
            (25, Action::Evict(3)),
            (28, Action::Leave(2)),
            (32, Action::Rekey),
        ] {
            world.schedule(Duration::from_secs(second), action);
        }
        world.run_until(Duration::from_secs(40), &mut invariants);
        assert_eq!(invariants.violations().first(), None, "seed {seed}");
        let report = world.mavlink().unwrap();
        assert!(report.delivered > 5_000, "{report:?}");
        for reason in ["replayed", "forged", "old_epoch"] {
            assert!(report.refused.get(reason).is_some_and(|count| *count > 10), "{reason}: {report:?}");
        }
    }
}

#[test]
fn drones_without_a_system_id_are_too_many() {
    let setup = Setup { members: 250, mavlink: Some(MavlinkSetup::default()), ..Setup::default() };
    let error = World::<InsecureToy>::new(setup).err();
    assert_eq!(error, Some(WorldError::SystemIds(251)));
}
