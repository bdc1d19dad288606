//! The report of a run in either world: a table for people, JSON and CSV for machines.

mod csv;
mod json;
mod page;
mod record;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quiver_report::{Machine, RunName, counted, write, write_run};
use quiver_world::run::{Operation, Pairs, Violation};
use serde::Serialize;

use crate::Result;
use crate::plan::Plan;

/// Name of the page to look at.
pub const PAGE: &str = "report.html";

/// State of a worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerReport {
    /// Number and address of the worker.
    pub who: String,
    /// Number of drones that it hosted.
    pub drones: usize,
    /// Cause of its loss, with which its drones count as crashed; `None` if it went on to the end.
    pub crashed: Option<String>,
    /// CPU time that it took; unknown if it is lost.
    #[serde(rename = "cpu_s", serialize_with = "seconds")]
    pub cpu: Option<Duration>,
    /// The most memory it ever had resident, in bytes.
    #[serde(rename = "peak_memory_bytes")]
    pub peak_memory: Option<u64>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every invariant held at every drone.
    Passed,
    /// Some did not.
    Failed,
    /// The user ended the run; what was finished by then held.
    Interrupted,
}

impl Outcome {
    /// Returns true if it passed; `None` for a run that did not come to its end.
    #[must_use]
    pub const fn passed(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::Failed => Some(false),
            Self::Interrupted => None,
        }
    }
}

/// The outcome of a run in either world. `None` where a world does not have a quantity.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The plan.
    pub plan: Plan,
    /// The machine that ran it.
    pub machine: Machine,
    /// Time of its beginning.
    pub started: SystemTime,
    /// The operations in order.
    pub operations: Vec<Operation>,
    /// The processes that hosted the drones, if not this one.
    pub workers: Vec<WorkerReport>,
    /// The invariants that did not hold.
    pub violations: Vec<Violation>,
    /// True if the user ended the run before its last operation.
    pub interrupted: bool,
    /// Pairs of a member and its leader at the end; `None` if no leader led.
    pub pairs: Option<Pairs>,
    /// Comparisons made.
    pub checks: u64,
    /// Steps of machines: in the virtual world.
    pub steps: Option<u64>,
    /// Notes for readers of the figures.
    pub notes: Vec<String>,
    /// Complaints of nodes about each other, with how often they came. In a world without faults there should
    /// be none.
    pub offences: BTreeMap<String, u64>,
    /// CPU time of the KGC's machine: in the live world.
    pub kgc_cpu: Option<Duration>,
    /// Time from start to end.
    pub wall: Duration,
    /// The most memory ever resident, in bytes.
    pub peak_memory: Option<u64>,
    /// Resident memory over the time since the start, in bytes.
    pub memory: Vec<(Duration, u64)>,
    /// The command line.
    pub command: String,
    /// Digest of the keys that the enrolled drones chose, the same for the same seed: in the live world.
    pub keys_digest: Option<[u8; 32]>,
    /// Digest of which drones left and which sent messages, the same for the same seed: in the live world.
    pub choices_digest: Option<[u8; 32]>,
}

impl RunReport {
    /// Outcome of the run, which passed if every invariant held and no worker was lost. Workers of an
    /// interrupted run may have been interrupted with it.
    pub fn outcome(&self) -> Outcome {
        match (self.violations.is_empty(), self.interrupted) {
            (true, true) => Outcome::Interrupted,
            (true, false) if self.lost().next().is_none() => Outcome::Passed,
            _ => Outcome::Failed,
        }
    }

    /// The workers that were lost, with the reason.
    fn lost(&self) -> impl Iterator<Item = (&WorkerReport, &str)> {
        self.workers.iter().filter_map(|worker| Some((worker, worker.crashed.as_deref()?)))
    }

    /// The operation of this name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name() == name)
    }

    /// Title of the run, in a line.
    pub fn title(&self) -> String {
        table::title(self)
    }

    /// The report as text for people.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// The report as one JSON object.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// Numbers of invariants that failed and of workers that were lost, then each of them in a line, with the
    /// drones concerned.
    pub fn failures(&self) -> String {
        let lost = self.lost().map(|(worker, why)| {
            let drones = counted(worker.drones as u64, "drone");
            format!("{} is lost with {drones}, which count as crashed: {why}", worker.who)
        });
        let lines: Vec<String> = self.violations.iter().map(Violation::to_string).chain(lost).collect();
        format!("{}\n{}", self.failed(), lines.join("\n"))
    }

    /// Numbers of failures: `2 invariants failed, 1 worker lost`.
    fn failed(&self) -> String {
        let invariants = (self.violations.len(), "invariant", "failed");
        let workers = (self.lost().count(), "worker", "lost");
        let told = [invariants, workers].into_iter().filter(|(count, ..)| *count > 0);
        let told = told.map(|(count, what, how)| format!("{} {how}", counted(count as u64, what)));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Writes `report.html`, `operations.csv`, `memory.csv`, `summary.json`, and `latencies.csv` if there are any,
    /// and whatever `more` writes, into a new folder under `results`, named by the start, the plan and the
    /// outcome. Gives the folder.
    pub fn write_under(&self, results: &Path, more: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let passed = self.outcome().passed();
        let ending = if passed.is_none() { "-interrupted" } else { "" };
        let what = format!("run-{}-{}{ending}", self.plan.world.name(), self.plan.drones);
        write_run(results, RunName { started: self.started, what: &what, passed }, |folder| {
            write(folder, "operations.csv", &csv::operations(self))?;
            if self.operations.iter().any(|operation| !operation.latencies.is_empty()) {
                write(folder, "latencies.csv", &csv::latencies(self))?;
            }
            write(folder, "memory.csv", &csv::memory(self))?;
            write(folder, "summary.json", &(json::render(self) + "\n"))?;
            write(folder, PAGE, &page::report(self).page()?)?;
            more(folder)
        })
    }
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn seconds<S: serde::Serializer>(
    duration: &Option<Duration>,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    duration.map(|taken| taken.as_secs_f64()).serialize(out)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use quiver_world::Invariant;
    use quiver_world::run::Phase;

    pub(crate) fn sample() -> RunReport {
        RunReport {
            plan: Plan { drones: 2, ..Plan::default() },
            machine: Machine {
                cpu: "Test CPU".into(),
                cores: 2,
                memory: None,
                rustc: "rustc 1.91".into(),
                system: "linux x86_64".into(),
                commit: "0123456789abcdef".into(),
                optimised: true,
            },
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            operations: vec![
                Operation::new(Phase::Enrol, 2, Duration::from_millis(5))
                    .with_latencies(vec![(0, Duration::from_millis(2)), (1, Duration::from_millis(4))]),
                Operation {
                    leader_cpu: Some(Duration::from_micros(1500)),
                    leader_bytes: Some(12_345),
                    epochs: 1,
                    ..Operation::new(Phase::Form, 2, Duration::from_millis(1500))
                }
                .with_latencies(vec![(0, Duration::from_millis(20)), (1, Duration::from_millis(1400))]),
            ],
            workers: vec![],
            violations: vec![],
            interrupted: false,
            pairs: Some(Pairs { hybrid: 2, classical: 0 }),
            checks: 7,
            steps: None,
            notes: vec![],
            offences: BTreeMap::new(),
            kgc_cpu: Some(Duration::from_millis(9)),
            wall: Duration::from_secs(3),
            peak_memory: Some(73 << 20),
            memory: vec![(Duration::ZERO, 1 << 20), (Duration::from_secs(3), 73 << 20)],
            command: "sim -n 2".into(),
            keys_digest: Some([0xab; 32]),
            choices_digest: Some([0xcd; 32]),
        }
    }

    #[test]
    fn a_violation_makes_the_run_fail_and_names_the_drones() {
        let mut report = sample();
        assert_eq!(report.outcome(), Outcome::Passed);
        report.violations.push(Violation {
            invariant: Invariant::Agreement,
            step: "form".into(),
            drones: vec!["drone-00001".into()],
            detail: "holds another key than the leader".into(),
        });
        assert_eq!(report.outcome(), Outcome::Failed);
        let text = report.failures();
        assert!(text.starts_with("1 invariant failed\n"), "{text}");
        assert!(text.contains("agreement") && text.contains("drone-00001"), "{text}");
    }

    #[test]
    fn an_interrupted_run_neither_passed_nor_failed_and_its_folder_says_so() {
        let mut report = RunReport { interrupted: true, ..sample() };
        assert_eq!(report.outcome(), Outcome::Interrupted);
        let results = tempfile::tempdir().unwrap();
        let folder = report.write_under(results.path(), |_| Ok(())).unwrap();
        assert!(folder.ends_with("2001-09-09T01-46-40Z-run-live-2-interrupted"), "{folder:?}");
        let summary: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!((&summary["passed"], &summary["interrupted"]), (&serde_json::Value::Null, &true.into()));
        assert!(report.table().contains("INTERRUPTED after 2 operations"), "{}", report.table());
        assert!(
            fs::read_to_string(results.path().join("index.html")).unwrap().contains("<td>interrupted</td>")
        );
        // What failed before is not hidden by it.
        report.violations.push(Violation {
            invariant: Invariant::Agreement,
            step: "form".into(),
            drones: Vec::new(),
            detail: "holds another key than the leader".into(),
        });
        assert_eq!(report.outcome(), Outcome::Failed);
    }

    #[test]
    fn a_lost_worker_makes_the_run_fail_and_is_named() {
        let mut report = sample();
        let worker = |who: &str, crashed| WorkerReport {
            who: who.into(),
            drones: 1,
            crashed,
            cpu: Some(Duration::from_millis(1500)),
            peak_memory: None,
        };
        report.workers = vec![worker("worker 1", None)];
        assert_eq!(report.outcome(), Outcome::Passed);
        report.workers.push(worker("worker 2", Some("its connection is gone".into())));
        assert_eq!(report.outcome(), Outcome::Failed);
        let text = report.failures();
        assert!(text.starts_with("1 worker lost\n"), "{text}");
        assert!(report.table().contains("FAILED: 1 worker lost"), "{}", report.table());
        assert!(
            text.contains("worker 2") && text.contains("connection is gone") && !text.contains("worker 1")
        );
        let summary: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(summary["workers"][0]["cpu_s"], 1.5);
        assert_eq!(summary["workers"][1]["crashed"], "its connection is gone");
        assert!(report.table().contains("worker 2"));
    }

    #[test]
    fn results_go_to_a_folder_of_their_own_every_time() {
        let results = tempfile::tempdir().unwrap();
        let first = sample().write_under(results.path(), |_| Ok(())).unwrap();
        let second = sample().write_under(results.path(), |_| Ok(())).unwrap();
        assert_ne!(first, second);
        assert!(first.ends_with("2001-09-09T01-46-40Z-run-live-2-passed"), "{first:?}");
        for name in ["operations.csv", "latencies.csv", "memory.csv", "summary.json", PAGE] {
            assert!(second.join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn unwritable_results_are_an_error_that_names_the_path() {
        let results = tempfile::tempdir().unwrap();
        let file = results.path().join("file");
        fs::write(&file, "").unwrap();
        let error = sample().write_under(&file, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
