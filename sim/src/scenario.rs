//! The report of a scenario: a table for people, JSON and CSV for machines.

mod csv;
mod json;
mod page;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quiver_report::{RunName, write, write_run};
use quiver_world::scenario::{Scenario, ScenarioRun};

use crate::Result;
use crate::report::{PAGE, RunOutcome};

/// A scenario, what came of it, and how it was run.
#[derive(Clone, Debug)]
pub struct ScenarioReport {
    /// The scenario.
    pub scenario: Scenario,
    /// Result of the scenario.
    pub run: ScenarioRun,
    /// The group the cryptography computed in.
    pub suite: &'static str,
    /// Time of its beginning.
    pub started: SystemTime,
    /// CPU time it took.
    pub cpu: Duration,
    /// The command line.
    pub command: String,
    /// The command that plays it again.
    pub again: String,
}

impl ScenarioReport {
    /// Outcome of the scenario, which passed if every invariant held and every expectation was met.
    pub fn outcome(&self) -> RunOutcome {
        match (self.run.failed(), self.run.interrupted) {
            (true, _) => RunOutcome::Failed,
            (false, true) => RunOutcome::Interrupted,
            (false, false) => RunOutcome::Passed,
        }
    }

    /// The report as text for people.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// The report as one JSON object.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// One CSV line per drone.
    pub fn drones_csv(&self) -> String {
        csv::drones(&self.run)
    }

    /// One CSV line per re-key.
    pub fn rekeys_csv(&self) -> String {
        csv::rekeys(&self.run)
    }

    /// The invariants that did not hold and the expectations that were not met, one per line, and how to see
    /// it again.
    pub fn failures(&self) -> String {
        let violations = self.run.violations.iter().map(ToString::to_string);
        let lines: Vec<String> = violations.chain(self.run.unmet.iter().cloned()).collect();
        format!("{} failed\n{}\nAgain: {}", self.scenario.name, lines.join("\n"), self.again)
    }

    /// Writes `report.html`, `drones.csv`, `rekeys.csv` and `summary.json` into a new folder under `results`, named by the
    /// start, the scenario and the outcome. Gives the folder.
    ///
    /// # Errors
    /// If the folder or a file cannot be written.
    pub fn write_under(&self, results: &Path) -> Result<PathBuf> {
        let name = Path::new(&self.scenario.name).file_stem().unwrap_or_default().to_string_lossy();
        let passed = self.outcome().passed();
        let ending = if passed.is_none() { "-interrupted" } else { "" };
        let what = format!("scenario-{name}{ending}");
        let files = [
            ("drones.csv", self.drones_csv()),
            ("rekeys.csv", self.rekeys_csv()),
            ("summary.json", self.json() + "\n"),
            (PAGE, page::report(self).page()?),
        ];
        let write_all =
            |folder: &Path| files.iter().try_for_each(|(name, content)| write(folder, name, content));
        Ok(write_run(results, RunName { started: self.started, what: &what, passed }, write_all)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use quiver_world::WorldSuite;
    use quiver_world::scenario::ReadOptions;

    use super::*;

    /// A quiet life of five drones over IEEE 802.15.4, with one leave.
    pub(super) fn sample() -> ScenarioReport {
        let text = "title = \"Sample\"\nabout = \"\"\nduration = \"40s\"\n[fleet]\nmembers = 5\n[radio]\npreset = \"802.15.4\"\n\
                    [[event]]\nat = \"20s\"\nleave = [\"edge-1\"]\n[expect]\nmembers = 4\n";
        let scenario = Scenario::parse("sample.toml", text, ReadOptions::default()).unwrap();
        let run = scenario.run(WorldSuite::Toy).unwrap();
        ScenarioReport {
            scenario,
            run,
            suite: "toy",
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            cpu: Duration::from_millis(1500),
            command: "sim scenario sample.toml".into(),
            again: "sim scenario sample.toml --seed 1".into(),
        }
    }

    #[test]
    fn table_shows_what_drones_and_rekeys_cost() {
        let text = sample().table();
        assert!(text.contains("Sample") && text.contains("over 802.15.4"), "{text}");
        for heading in ["per drone", "per re-key", "airtime", "retransmissions", "energy"] {
            assert!(text.contains(heading), "{heading} is not in\n{text}");
        }
        assert!(text.contains("All ") && text.contains("checks passed"), "{text}");
    }

    #[test]
    fn failures_are_named_with_the_command_that_shows_them_again() {
        let mut report = sample();
        assert_eq!(report.outcome(), RunOutcome::Passed);
        report.run.unmet.push("3 drones hold the newest key, not 4".into());
        assert_eq!(report.outcome(), RunOutcome::Failed);
        let text = report.failures();
        assert!(
            text.contains("3 drones hold") && text.contains("sim scenario sample.toml --seed 1"),
            "{text}"
        );
        assert!(report.table().contains("FAILED"), "{}", report.table());
    }

    #[test]
    fn files_have_a_line_per_drone_and_per_rekey() {
        let report = sample();
        let results = tempfile::tempdir().unwrap();
        let folder = report.write_under(results.path()).unwrap();
        assert!(folder.ends_with("2001-09-09T01-46-40Z-scenario-sample-passed"), "{folder:?}");
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("drones.csv").lines().count(), 1 + 5);
        assert_eq!(read("rekeys.csv").lines().count(), 1 + report.run.ledger.rekeys().len());
        let json: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!((&json["passed"], &json["command"]), (&true.into(), &"sim scenario sample.toml".into()));
        assert_eq!(json["per_drone"]["count"], 5);
        assert!(read(PAGE).contains("Sample"));
        let index = fs::read_to_string(results.path().join("index.html")).unwrap();
        assert!(index.contains(&format!("sample-passed/{PAGE}")), "{index}");
        assert_eq!(json["machine"]["commit"], quiver_report::Machine::here().commit);
        assert!(json["per_rekey"]["airtime_s"]["max"].as_f64().unwrap() > 0.0);
    }
}
