//! `flood`: attacks KGC, leader and relay, as the processes they are, and measures what that costs them and what drones
//! notice. Strangers, who have a connection and no identity, attack over loopback, some of them from the drones' own
//! address. Each attack has a budget for what it may cost ([`budget`]).

mod attack;
mod budget;
mod measurement;
mod site;
mod table;
mod usage;

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Parser;
use quiver_net::check_file_limit;

use self::attack::{Attack, AttackRun, AttackedService};
use self::budget::Budget;
use self::measurement::{Measurement, Quiet};
use self::site::FloodSite;
use self::table::{AttackRow, json, table};

/// Descriptors of the strangers, and of this program.
const FILES: u64 = 16_384;
/// Attacks of a run: each needs a member of its own, for which the leader must have a place.
const MOST_ATTACKS: usize = 36;
/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
/// Time within which this program has noticed a Ctrl-C that ended the services.
const NOTICED: Duration = Duration::from_millis(500);

const AFTER_HELP: &str = "\
KGC, leader and edge are taken from the directory that QUIVER_PROGRAMS names, or from beside this program. Their
descriptors can be counted by root alone.

Exit codes:
  0  every attack stayed within its budget
  1  one did not, or the figures cannot be printed; standard error says which, and by how much
  2  wrong usage
  130  interrupted (Ctrl-C); the attacks that were finished are printed";

/// Attacks the services and measures what that costs
#[derive(Debug, Parser)]
#[command(name = "flood", after_help = AFTER_HELP)]
struct Args {
    /// These attacks alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ATTACK")]
    only: Vec<Attack>,
    /// On these services alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SERVICE")]
    target: Vec<AttackedService>,
    /// Make every attack so often: what is lost with each adds up
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    rounds: u8,
    /// Number of re-keys that are measured, quiet and under each attack
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rekeys: u32,
    /// Drones that follow; every other one is behind the relay
    #[arg(long, value_name = "COUNT", default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=24))]
    drones: u32,
    /// Print the figures as JSON in place of the table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = quiver_arguments::parse::<Args>();
    let runs = runs(&args);
    if runs.len() > MOST_ATTACKS {
        tell(&format!("error: {} attacks, and one evicts a member each: {MOST_ATTACKS} at most", runs.len()));
        return ExitCode::from(2);
    }
    if let Err(error) = check_file_limit(FILES) {
        tell(&format!("error: {error}"));
        return ExitCode::from(2);
    }
    let runtime = strangers_runtime().expect("a runtime");
    let entered = runtime.enter();
    let finished = Arc::new(Finished::default());
    runtime.spawn(report_when_interrupted(Arc::clone(&finished), args.json));
    let measured = catch_unwind(AssertUnwindSafe(|| measure(&args, &runs, &finished)));
    if measured.is_err() {
        // Ctrl-C ends the services, too, and measuring may fail of it first.
        thread::sleep(NOTICED);
    }
    if !finished.is_first_report() {
        // The other report ends the program.
        loop {
            thread::park();
        }
    }
    let all_within = report(&finished.lines(), args.json);
    // The strangers need not end one by one.
    drop(entered);
    runtime.shutdown_background();
    match measured {
        Ok(()) if all_within => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(panic) => resume_unwind(panic),
    }
}

/// Attacks that were finished.
#[derive(Default)]
struct Finished {
    lines: Mutex<Vec<AttackRow>>,
    is_reported: AtomicBool,
}

impl Finished {
    fn lines(&self) -> MutexGuard<'_, Vec<AttackRow>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true once: who is told so reports.
    fn is_first_report(&self) -> bool {
        !self.is_reported.swap(true, Ordering::Relaxed)
    }
}

/// Reports the attacks that were finished when the user presses Ctrl-C, which ends the services, too, and ends the program.
async fn report_when_interrupted(finished: Arc<Finished>, json: bool) {
    if tokio::signal::ctrl_c().await.is_ok() && finished.is_first_report() {
        let lines = finished.lines();
        report(&lines, json);
        tell(&format!("error: interrupted after {} attacks", lines.len()));
        std::process::exit(INTERRUPTED);
    }
}

/// Prints figures, and which exceed their budget. Returns true if none does, and all were printed.
fn report(lines: &[AttackRow], as_json: bool) -> bool {
    let written = if as_json { json(lines) } else { table(lines) };
    let printed = io::stdout().write_all(written.as_bytes()).and_then(|()| io::stdout().flush());
    let printed = printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => {
            tell(&format!("error: cannot print the figures: {error}"));
            Err(error)
        }
    });
    let exceeded = || lines.iter().flat_map(|line| line.passed.iter().map(move |passed| (line, passed)));
    for (line, passed) in exceeded() {
        tell(&format!("error: {}, beyond the budget in {passed}", line.name()));
    }
    printed.is_ok() && exceeded().next().is_none()
}

/// Runtime of the strangers, whose threads give way to services and drones: they would be other machines, and must not cost the services
/// the processor time that a handshake takes them.
fn strangers_runtime() -> io::Result<tokio::runtime::Runtime> {
    let give_way = || {
        // Of the calling thread alone, on Linux.
        let _ = rustix::process::nice(10);
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_start(give_way).build()
}

/// Attacks that were asked for, service by service.
fn runs(args: &Args) -> Vec<AttackRun> {
    let targets = AttackedService::ALL.into_iter();
    let targets = targets.filter(|target| args.target.is_empty() || args.target.contains(target));
    let attacks =
        |target: AttackedService| Attack::ALL.into_iter().filter(move |attack| attack.suits(target));
    let rounds = |target| (0..args.rounds).flat_map(move |_| attacks(target));
    let pairs = targets.flat_map(|target| rounds(target).map(move |attack| (target, attack)));
    let pairs = pairs.filter(|(_, attack)| args.only.is_empty() || args.only.contains(attack));
    (1..).zip(pairs).map(|(number, (target, attack))| AttackRun { target, attack, number }).collect()
}

fn measure(args: &Args, runs: &[AttackRun], finished: &Finished) {
    tell("starting the services and their drones");
    let mut site = FloodSite::start(args.drones, u32::try_from(runs.len()).unwrap_or(u32::MAX));
    let mut quiet: Option<(AttackedService, Quiet)> = None;
    for run in runs {
        if quiet.as_ref().is_none_or(|(target, _)| *target != run.target) {
            quiet = Some((run.target, Quiet::measure(&site, run.target, args.rekeys)));
        }
        let Some((_, quiet)) = &quiet else { continue };
        let measured = Measurement::take(&mut site, *run, quiet);
        let budget = Budget::of(&measured, quiet.rekeys.percentile(99));
        let passed = budget.passed(&measured, !cfg!(debug_assertions));
        let line = AttackRow { measured, budget, quiet: quiet.rekeys.clone(), passed };
        tell(&format!(
            "{}: {}",
            line.name(),
            if line.passed.is_empty() { "within its budget" } else { "NOT within" }
        ));
        finished.lines().push(line);
    }
}

fn tell(line: &str) {
    // Nobody may read it.
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_is_made_where_it_can_be() {
        let of = |args: &[&str]| runs(&Args::parse_from([&["flood"][..], args].concat()));
        assert_eq!(of(&[]).len(), 21, "KGCs have no group, which three attacks are about");
        assert!(of(&[]).windows(2).all(|pair| pair[0].number < pair[1].number));
        assert_eq!(of(&["--target", "kgc", "--only", "idle,own"]).len(), 1);
        assert_eq!(of(&["--target", "kgc", "--rounds", "3"]).len(), 15);
    }
}
