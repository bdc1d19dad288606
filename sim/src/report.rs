//! The report of a run in either world: a table for people, JSON and CSV for machines.

mod csv;
mod json;
mod page;
mod record;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quiver_report::{Machine, RunName, counted, rename_run, replace, write, write_run};
use quiver_world::run::{Pairs, PhaseCosts, RunViolation};
use serde::Serialize;

use crate::Result;
use crate::plan::Plan;

/// Name of the page to look at.
pub const PAGE: &str = "report.html";

/// State of a rank that hosted drones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerReport {
    /// Number and host of the rank.
    pub who: String,
    /// Number of drones that it hosted.
    pub drones: usize,
    /// Cause of its loss, which ended the run; `None` if it went on to the end.
    pub lost: Option<String>,
    /// CPU time that it took; unknown if it is lost.
    #[serde(rename = "cpu_s", serialize_with = "seconds")]
    pub cpu: Option<Duration>,
    /// The most memory it ever had resident, in bytes.
    #[serde(rename = "peak_memory_bytes")]
    pub peak_memory: Option<u64>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every invariant held at every drone.
    Passed,
    /// Some did not.
    Failed,
    /// The user ended the run; what was finished by then held.
    Interrupted,
}

impl RunOutcome {
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
    pub operations: Vec<PhaseCosts>,
    /// The processes that hosted the drones, if not this one.
    pub workers: Vec<WorkerReport>,
    /// The invariants that did not hold.
    pub violations: Vec<RunViolation>,
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
    /// The group's datagrams in pcapng, if they were captured: in the live world.
    pub capture: Option<Vec<u8>>,
}

impl RunReport {
    /// Outcome of the run, which passed if every invariant held and no rank was lost. Those of an interrupted run may
    /// have been interrupted with it.
    pub fn outcome(&self) -> RunOutcome {
        match (self.violations.is_empty(), self.interrupted) {
            (true, true) => RunOutcome::Interrupted,
            (true, false) if self.lost().next().is_none() => RunOutcome::Passed,
            _ => RunOutcome::Failed,
        }
    }

    /// The ranks that were lost, with the reason.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (&WorkerReport, &str)> {
        self.workers.iter().filter_map(|worker| Some((worker, worker.lost.as_deref()?)))
    }

    /// The operation of this name.
    pub fn operation(&self, name: &str) -> Option<&PhaseCosts> {
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

    /// Numbers of invariants that failed and of ranks that were lost, then each of them in a line, with the drones
    /// concerned.
    pub fn failures(&self) -> String {
        let lost = self.lost().map(|(worker, why)| {
            let drones = counted(worker.drones as u64, "drone");
            let finished = counted(self.operations.len() as u64, "operation");
            format!("{} is lost with {drones}, and the run is over after {finished}: {why}", worker.who)
        });
        let lines: Vec<String> = self.violations.iter().map(RunViolation::to_string).chain(lost).collect();
        format!("{}\n{}", self.failed(), lines.join("\n"))
    }

    /// Numbers of failures: `2 invariants failed, 1 worker lost`.
    fn failed(&self) -> String {
        let invariants = (self.violations.len(), "invariant", "failed");
        let ranks = (self.lost().count(), "rank", "lost");
        let told = [invariants, ranks].into_iter().filter(|(count, ..)| *count > 0);
        let told = told.map(|(count, what, how)| format!("{} {how}", counted(count as u64, what)));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Name of its folder, without time and outcome.
    fn slug(&self) -> String {
        format!("run-{}-{}", self.plan.world.name(), self.plan.drones)
    }

    /// Writes `report.html`, `operations.csv`, `memory.csv`, `summary.json`, and `latencies.csv` if there are any,
    /// and whatever `more` writes, into a new folder under `results`, named by the start, the plan and the
    /// outcome. Gives the folder.
    pub fn write_under(&self, results: &Path, more: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        write_run(results, self.run_name(&self.ending()), |folder| {
            self.write_files(folder)?;
            more(folder)
        })
    }

    /// Name of its folder, without time and outcome, if it is over.
    fn ending(&self) -> String {
        self.slug() + if self.outcome().passed().is_none() { "-interrupted" } else { "" }
    }

    fn run_name<'a>(&self, what: &'a str) -> RunName<'a> {
        RunName { started: self.started, what, passed: self.outcome().passed() }
    }

    fn write_files(&self, folder: &Path) -> quiver_report::Result<()> {
        self.files()?.into_iter().try_for_each(|(name, text)| write(folder, name, &text))
    }

    /// Writes all files anew. Each is at any time the old one or the new one.
    fn replace_files(&self, folder: &Path) -> quiver_report::Result<()> {
        self.files()?.into_iter().try_for_each(|(name, text)| replace(folder, name, &text))
    }

    /// Names and texts of all files.
    fn files(&self) -> quiver_report::Result<Vec<(&'static str, String)>> {
        let mut files = vec![("operations.csv", csv::operations(self)), ("memory.csv", csv::memory(self))];
        if self.operations.iter().any(|operation| !operation.latencies.is_empty()) {
            files.push(("latencies.csv", csv::latencies(self)));
        }
        files.push(("summary.json", json::render(self) + "\n"));
        files.push((PAGE, page::report(self).page()?));
        Ok(files)
    }
}

/// The folder of a run that goes on: what is finished is written as soon as it is, because whoever starts ranks ends all of
/// them without warning if one is lost.
#[derive(Debug, Default)]
pub struct ReportDraft(Option<PathBuf>);

impl ReportDraft {
    /// Writes what is finished of a run under `results`, over what was finished before. A part that cannot be
    /// written now is no error: the whole report comes.
    pub fn keep(&mut self, results: &Path, report: &RunReport) {
        let written = match self.0.take() {
            Some(folder) => report.replace_files(&folder).map(|()| folder),
            None => {
                let what = report.slug() + "-unfinished";
                let name = RunName { started: report.started, what: &what, passed: None };
                write_run(results, name, |folder| report.write_files(folder))
            }
        };
        self.0 = written.inspect_err(|error| tracing::warn!(%error, "not written")).ok();
    }

    /// Writes the whole report in its place, as [`RunReport::write_under`] writes one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(
        self,
        results: &Path,
        report: &RunReport,
        more: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let Some(folder) = self.0 else { return report.write_under(results, more) };
        report.replace_files(&folder)?;
        more(&folder)?;
        Ok(rename_run(results, &folder, report.run_name(&report.ending()))?)
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
    use quiver_world::run::{KeptFactors, Phase};

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
                PhaseCosts::new(Phase::Enrol, 2, Duration::from_millis(5))
                    .with_latencies(vec![(0, Duration::from_millis(2)), (1, Duration::from_millis(4))]),
                PhaseCosts {
                    leader_cpu: Some(Duration::from_micros(1500)),
                    leader_bytes: Some(12_345),
                    epochs: 1,
                    ..PhaseCosts::new(Phase::Form, 2, Duration::from_millis(1500))
                }
                .with_latencies(vec![(0, Duration::from_millis(20)), (1, Duration::from_millis(1400))]),
            ],
            workers: vec![],
            violations: vec![],
            interrupted: false,
            pairs: Some(Pairs {
                hybrid: 2,
                classical: 0,
                kept: Some(KeptFactors { terms: 3, youngest_s: 4, oldest_s: 65 }),
            }),
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
            capture: None,
        }
    }

    #[test]
    fn a_violation_makes_the_run_fail_and_names_the_drones() {
        let mut report = sample();
        assert_eq!(report.outcome(), RunOutcome::Passed);
        report.violations.push(RunViolation {
            invariant: Invariant::Agreement,
            step: "form".into(),
            drones: vec!["drone-00001".into()],
            detail: "holds another key than the leader".into(),
        });
        assert_eq!(report.outcome(), RunOutcome::Failed);
        let text = report.failures();
        assert!(text.starts_with("1 invariant failed\n"), "{text}");
        assert!(text.contains("agreement") && text.contains("drone-00001"), "{text}");
    }

    #[test]
    fn an_interrupted_run_neither_passed_nor_failed_and_its_folder_says_so() {
        let mut report = RunReport { interrupted: true, ..sample() };
        assert_eq!(report.outcome(), RunOutcome::Interrupted);
        let results = tempfile::tempdir().unwrap();
        let folder = report.write_under(results.path(), |_| Ok(())).unwrap();
        assert!(folder.ends_with("2001-09-09T01-46-40Z-run-live-2-interrupted"), "{folder:?}");
        let summary: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!((&summary["passed"], &summary["interrupted"]), (&serde_json::Value::Null, &true.into()));
        assert!(report.table().contains("INTERRUPTED after 2 operations"), "{}", report.table());
        assert!(
            fs::read_to_string(results.path().join("index.html")).unwrap().contains("<td>interrupted</td>")
        );
        // It hides no earlier failure.
        report.violations.push(RunViolation {
            invariant: Invariant::Agreement,
            step: "form".into(),
            drones: Vec::new(),
            detail: "holds another key than the leader".into(),
        });
        assert_eq!(report.outcome(), RunOutcome::Failed);
    }

    #[test]
    fn a_lost_rank_makes_the_run_fail_and_is_named() {
        let mut report = sample();
        let worker = |who: &str, lost| WorkerReport {
            who: who.into(),
            drones: 1,
            lost,
            cpu: Some(Duration::from_millis(1500)),
            peak_memory: None,
        };
        report.workers = vec![worker("rank 1 on a", None)];
        assert_eq!(report.outcome(), RunOutcome::Passed);
        report.workers.push(worker("rank 2 on b", Some("it is gone".into())));
        assert_eq!(report.outcome(), RunOutcome::Failed);
        let text = report.failures();
        assert!(text.starts_with("1 rank lost\n"), "{text}");
        assert!(report.table().contains("FAILED: 1 rank lost"), "{}", report.table());
        assert!(
            text.contains("rank 2 on b is lost with 1 drone")
                && text.contains("after 2 operations: it is gone")
                && !text.contains("rank 1")
        );
        let summary: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(summary["workers"][0]["cpu_s"], 1.5);
        assert_eq!(summary["workers"][1]["lost"], "it is gone");
        assert!(report.table().contains("rank 2 on b"));
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
    fn what_is_finished_is_there_before_the_run_is_over_and_goes_when_it_is() {
        let results = tempfile::tempdir().unwrap();
        let whole = RunReport { interrupted: true, ..sample() };
        let mut draft = ReportDraft::default();
        let folder = results.path().join("2001-09-09T01-46-40Z-run-live-2-unfinished");
        for finished in 1..=2 {
            let operations = whole.operations.iter().take(finished).cloned().collect();
            draft.keep(results.path(), &RunReport { operations, ..whole.clone() });
            let table = fs::read_to_string(folder.join("operations.csv")).unwrap();
            assert_eq!(table.lines().count(), 1 + finished, "{table}");
            let summary = fs::read_to_string(folder.join("summary.json")).unwrap();
            let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
            assert_eq!(summary["operations"].as_array().unwrap().len(), finished);
            assert_eq!(summary["passed"], serde_json::Value::Null);
        }
        assert!(folder.join(PAGE).is_file() && folder.join("latencies.csv").is_file());
        assert!(
            fs::read_dir(&folder)
                .unwrap()
                .all(|file| file.unwrap().path().extension() != Some("draft".as_ref()))
        );
        let over = RunReport { interrupted: false, checks: 8, ..whole.clone() };
        let named = draft.finish(results.path(), &over, |folder| Ok(write(folder, "more", "")?)).unwrap();
        assert!(named.ends_with("2001-09-09T01-46-40Z-run-live-2-passed") && named.join("more").is_file());
        assert!(!folder.exists());
        let index = fs::read_to_string(results.path().join("index.html")).unwrap();
        assert!(index.contains("-passed") && !index.contains("unfinished"), "{index}");

        // The end says what could not be written before.
        let mut nowhere = ReportDraft::default();
        let file = results.path().join("file");
        fs::write(&file, "").unwrap();
        nowhere.keep(&file, &whole);
        assert!(nowhere.finish(&file, &whole, |_| Ok(())).unwrap_err().to_string().contains("file"));
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
