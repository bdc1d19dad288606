//! Prints the state of every drone of a shipped scenario at some times, by what the world itself says of it:
//! `states NAME SECONDS...`, one line per time and drone: seconds, drone, state, epoch held.
//!
//! No recorder is involved, so a replay's page can be compared with it.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::{Epoch, Suite};
use quiver_group::LeaderEvent;
use quiver_world::scenario::{ReadOptions, Scenario, shipped};
use quiver_world::{Action, InsecureToy, NodeEvent, NodeId, Step, StepObserver, World};

/// The newest epoch that a leader made, and the captured drones: the world does not remember them.
#[derive(Default)]
struct Seen {
    newest: Option<Epoch>,
    captured: BTreeSet<u32>,
}

impl<S: Suite> StepObserver<S> for Seen {
    fn on_step(&mut self, _: &World<S>, step: &Step) {
        for event in step.events() {
            if let NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) = event {
                self.newest = self.newest.max(Some(*epoch));
            }
        }
    }

    fn on_action(&mut self, _: &World<S>, _: Duration, action: &Action) {
        if let Action::Capture(edge) = action {
            self.captured.insert(*edge);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("which scenario?")?;
    let times = words.map(|word| word.parse()).collect::<Result<Vec<f64>, _>>()?;
    let text = shipped(&name).ok_or("no such scenario")?;
    let scenario = Scenario::parse(&name, text, ReadOptions::default())?;
    let mut world = World::<InsecureToy>::new(scenario.setup.clone())?;
    for (at, action) in scenario.script {
        world.schedule(at, action);
    }
    world.schedule(scenario.duration, Action::Calm);
    let mut seen = Seen::default();
    for time in times {
        world.run_until(Duration::from_secs_f64(time), &mut seen);
        for number in 0..world.edge_count() {
            let held = world.edge(number).and_then(|edge| edge.status().epoch);
            let state = match held {
                _ if !world.alive(NodeId::Edge(number)) => "down",
                _ if seen.captured.contains(&number) => "captured",
                None => "out",
                _ if held == seen.newest => "current",
                _ => "behind",
            };
            println!("{time} edge-{number} {state} {}", held.map_or("-".into(), |epoch| epoch.to_string()));
        }
    }
    Ok(())
}
