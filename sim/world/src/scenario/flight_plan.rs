//! Flies the edges of a scenario along movements of a file.

use std::time::Duration;

use super::Scenario;
use crate::formats::movements::Movements;
use crate::trace::{DronePaths, DronePosition};
use crate::{Action, LinkFaults, NodeId};

/// Interval between looks at where an edge is.
const STEP: Duration = Duration::from_secs(1);
/// The most looks at all edges together.
const MAX_LOOKS: u128 = 20_000_000;

impl Scenario {
    /// Flies edge i as node i of the movements does. Leaders and KGCs are in the middle of all places; an edge that is
    /// farther away than `range` metres is heard by nobody, until the last fault is over.
    ///
    /// # Errors
    /// A sentence: for a scenario with places of its own, for more nodes than edges, and for a world that is too large.
    pub fn fly(&mut self, movements: &Movements, range: f64) -> Result<(), String> {
        if self.places.is_some() {
            return Err("the scenario has places of its own ([mobility])".into());
        }
        if !(range > 0.0 && range.is_finite()) {
            return Err(format!("a range of {range} metres is none"));
        }
        let (nodes, edges) = (movements.paths().len(), self.edges());
        if nodes > edges as usize {
            return Err(format!(
                "{nodes} nodes move, and the scenario has {edges} edges: set `members` to {nodes}"
            ));
        }
        let looks = self.duration.as_secs() as u128 * nodes as u128;
        if looks > MAX_LOOKS {
            return Err(format!("{nodes} drones for {} s are too many", self.duration.as_secs()));
        }
        let mut places = DronePaths::new(movements.reach(), Some(range), edges);
        let mut flown = Vec::new();
        for (node, path) in (0..).zip(movements.paths()) {
            path.iter().for_each(|place| places.stand(node, *place));
            let (mut now, mut heard) = (Duration::ZERO, true);
            while now < self.duration {
                let here = movements.at(node as usize, now).is_none_or(|(x, y)| x.hypot(y) <= range);
                if here != heard {
                    flown.push((now, links(node, here)));
                    heard = here;
                }
                now += STEP;
            }
            if let Some(last) = path.last() {
                places.stand(node, DronePosition { at: last.at.max(self.duration), ..*last });
            }
            if !heard {
                flown.push((self.duration, links(node, true)));
            }
        }
        self.script.extend(flown);
        self.script.sort_by_key(|(at, _)| *at);
        self.places = Some(places);
        Ok(())
    }
}

fn links(edge: u32, heard: bool) -> Action {
    let silence = LinkFaults { loss: 1.0, ..LinkFaults::SOUND };
    Action::LinksOf(NodeId::Edge(edge), (!heard).then_some(silence))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::WorldSuite;
    use crate::formats::movements::MovementFormat;
    use crate::scenario::{ReadOptions, Recording};

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "title = \"x\"\nabout = \"\"\nduration = \"40s\"\n[fleet]\nmembers = 3\n{more}[[event]]\nat = \"20s\"\nrekey = true\n"
        );
        Scenario::parse("x.toml", &text, ReadOptions::default()).unwrap()
    }

    /// The second node is out of range from the 11th to the 29th second.
    const MOVES: &str = "0 0 0\n0 0 0 10 0 0 20 1000 0 30 0 0\n0 1000 0 1 -1000 0 2 0 0\n";

    fn moves() -> Movements {
        Movements::read("moves", MOVES.as_bytes()).unwrap()
    }

    #[test]
    fn edges_fly_as_the_file_says_and_are_heard_again() {
        let mut scenario = scenario("");
        scenario.fly(&moves(), 500.0).unwrap();
        let of_one: Vec<(u64, bool)> = scenario
            .script
            .iter()
            .filter_map(|(at, action)| match action {
                Action::LinksOf(NodeId::Edge(1), faults) => Some((at.as_secs(), faults.is_none())),
                _ => None,
            })
            .collect();
        assert_eq!(of_one, [(16, false), (25, true)]);
        let run = scenario.run(WorldSuite::Toy).unwrap();
        assert!(run.passed(), "{:?} {:?}", run.violations, run.unmet);
        let places = Movements::of_places(scenario.places.as_ref().unwrap()).unwrap();
        let again = Movements::read("again", places.write(MovementFormat::BonnMotion).as_bytes()).unwrap();
        assert_eq!(again.at(1, Duration::from_secs(15)), moves().at(1, Duration::from_secs(15)));
    }

    #[test]
    fn what_cannot_fly_is_refused() {
        let mut two = scenario("");
        two.setup.members = 2;
        assert!(two.fly(&moves(), 500.0).unwrap_err().contains("set `members` to 3"));
        assert!(two.fly(&moves(), f64::NAN).is_err());
        let mut own = scenario(
            "[mobility]\nfrom = \"1s\"\nuntil = \"9s\"\nedges = [\"edge-0\"]\nside-metres = 9.0\nrange-metres = 9.0\nmetres-per-second = 1.0\n",
        );
        assert!(own.fly(&moves(), 500.0).unwrap_err().contains("[mobility]"));
    }

    #[test]
    fn a_run_is_captured_and_its_vehicles_are_logged() {
        let scenario = scenario("[mavlink]\nframes-per-second = 2.0\n[links]\nloss = 0.1\n");
        let recording = Recording { trace: false, capture: true, telemetry: true };
        let (run, _, exports) = scenario.play(WorldSuite::Toy, recording).unwrap();
        assert!(run.passed(), "{:?} {:?}", run.violations, run.unmet);
        let capture = exports.capture.unwrap();
        let has = |text: &str| capture.windows(text.len()).any(|window| window == text.as_bytes());
        let texts = [
            "leader-0",
            "edge-2",
            "epoch ",
            "event: ",
            "drop: does not reach ",
            "datagram: announces a signing key",
        ];
        for text in texts {
            assert!(has(text), "{text}");
        }
        // A comment of its own for each datagram: code 1, length 8.
        let comment = [&[1, 0, 8, 0][..], b"datagram"].concat();
        let datagrams = capture.windows(comment.len()).filter(|window| *window == comment).count() as u64;
        assert_eq!(datagrams, run.mavlink.unwrap().datagrams);
        assert_eq!(exports.logs.keys().collect::<Vec<_>>(), ["edge-0", "edge-1", "edge-2"]);
        let mut logged = 0;
        for (number, log) in (1..).zip(exports.logs.values()) {
            let entries = crate::formats::tlog::read("log", log).unwrap();
            let systems: BTreeSet<u32> = entries.iter().map(|entry| entry.frame.system_id()).collect();
            logged += entries.len();
            assert_eq!(systems, BTreeSet::from([number]));
            assert!(entries.is_sorted_by_key(|entry| entry.micros));
        }
        // With losses a vehicle may join late.
        assert!(logged > 60, "{logged} entries");
        assert_eq!(exports.left_out, Vec::<String>::new());
        // A recording changes nothing of the run.
        assert_eq!(scenario.run(WorldSuite::Toy).unwrap().trace, run.trace);
    }
}
