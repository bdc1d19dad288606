//! `sim check`: checks all invariants after every step of random runs in the virtual world.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use cpu_time::ProcessTime;
use quiver_ainq::StrategyKind;
use quiver_crypto::Hasher;
use quiver_kem::KemSetting;
use quiver_report::{Progress, complain, counted, print};
use quiver_world::WorldSuite;
use quiver_world::check::{CheckSetup, FailingSeed, SeedChecker, SeedOutcome as Life, find_canary};
use quiver_world::ranks::Ranks;
use rayon::prelude::*;

use crate::report::RunOutcome;
use crate::{Result, SimError, interrupt, measure, ranks};

/// Failing seeds that are shrunk and printed.
const TOLD: usize = 3;
/// Longest search for the planted flaw.
const CANARY_LIMIT: Duration = Duration::from_secs(60);
/// More edges than this are for `sim run`.
const MAX_EDGES: u32 = 1_000;

const EXAMPLES: &str = "\
Examples:
  sim check                            1,000 random runs of 20 drones, both strategies
  sim check --seeds 20000              what a release has to pass
  sim check --seed 4711                one of them again, with its steps if it fails
  sim check --leaders 3                with deputies that take over from each other
  sim check --relays 3                 with drones behind relays that crash, are cut off and turn hostile
  sim check --admission --seeds 50     with a policy that drones satisfy anonymously
  sim check --kgcs 3                   with a quorum of KGCs that crash, lie and fall to the adversary
  sim check --kem none                 without a second factor of ML-KEM, which else half of the seeds have

Before the seeds of each strategy a flaw is planted in a world of its own; a check that does not find it fails.

Exit codes:
  0  every invariant held after every step of every seed, and the planted flaw was found
  1  an invariant broke: seed, replay command and shrunk plan are printed; or the planted flaw was not found
  2  wrong usage
  130, 143  interrupted (Ctrl-C, SIGTERM); the seeds that were finished are reported";

/// Arguments of `sim check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// Number of seeds, from --first on
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first: u64,
    /// Run this seed alone, to replay a failure
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// Task of an array: skip as many portions of --seeds as its number says, so that tasks from 0 on take seeds of their own
    #[arg(long, value_name = "N", conflicts_with = "seed", default_value_t = 0, hide_short_help = true)]
    task: u64,
    /// Drones that may be in the group; two strangers beside them try to join
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_EDGES)))]
    drones: u32,
    /// Leaders of the group: with more than one, deputies take over from each other
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    leaders: u16,
    /// Relays of each leader, which drones dial in its place: they crash, are cut off from leader or drones, and are
    /// hostile for a while
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=16))]
    relays: u16,
    /// KGCs: with more than one, more than half of them issue a key, and some crash, lie or are taken over by
    /// the adversary
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    kgcs: u16,
    /// Leaders demand a policy, and drones join anonymously: credentials last 40 s, are renewed and revoked
    #[arg(long)]
    admission: bool,
    /// Re-key strategy, flat or tree; without it, every seed runs under both
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<StrategyKind>,
    /// Second factor of pairwise secrets: none, ml-kem-768 or ml-kem-1024; without it, each seed draws one.
    /// An adversary computes discrete logarithms of all that was sent: without one it opens every epoch, with
    /// one none but what a captured drone gives it
    #[arg(long, value_name = "SET")]
    kem: Option<KemSetting>,
    /// Print a digest of every step of all lives, the same on any number of ranks
    #[arg(long, hide_short_help = true)]
    digest: bool,
    /// Print nothing but failures
    #[arg(long, short)]
    quiet: bool,
}

impl CheckArgs {
    fn strategies(&self) -> Vec<StrategyKind> {
        self.strategy.map_or_else(|| StrategyKind::ALL.to_vec(), |one| vec![one])
    }

    /// The first seed and how many there are. A first seed beyond all is the last there is, which [`Self::check`] refuses.
    fn first_and_count(&self) -> (u64, u64) {
        let first = self.first.saturating_add(self.task.saturating_mul(self.seeds));
        self.seed.map_or((first, self.seeds), |seed| (seed, 1))
    }

    /// Ranks that share the lives; this process alone, if only their digest is wanted.
    fn ranks(&self) -> Option<Ranks> {
        ranks::current().cloned().or_else(|| Ranks::threads(u32::from(self.digest)).pop())
    }

    fn seeds(&self) -> Range<u64> {
        let (first, count) = self.first_and_count();
        first..first.saturating_add(count)
    }

    fn check(&self) -> Result<()> {
        let usage = |text: String| Err(SimError::Usage(text));
        if self.drones == 0 || self.drones > MAX_EDGES {
            return usage(format!("{} drones cannot be checked: give -n 1 to {MAX_EDGES}", self.drones));
        }
        if self.leaders == 0 || self.leaders > 16 {
            return usage(format!("{} leaders: give 1 to 16", self.leaders));
        }
        if self.relays > 16 {
            return usage(format!("{} relays: give 0 to 16", self.relays));
        }
        if self.kgcs == 0 || self.kgcs > 16 {
            return usage(format!("{} KGCs: give 1 to 16", self.kgcs));
        }
        if self.seed.is_none() && (self.seeds == 0 || self.seeds > 100_000_000) {
            return usage(format!("{}: give 1 to 100000000", counted(self.seeds, "seed")));
        }
        let (first, count) = self.first_and_count();
        if first.checked_add(count).is_none() {
            return usage(format!("seeds end at {}", u64::MAX - 1));
        }
        Ok(())
    }

    /// The command that lives through one seed again.
    fn replay(&self, seed: u64, strategy: StrategyKind) -> String {
        let mut command = format!("sim check --seed {seed} --strategy {}", strategy);
        if self.drones != 20 {
            command += &format!(" -n {}", self.drones);
        }
        if self.kgcs != 1 {
            command += &format!(" --kgcs {}", self.kgcs);
        }
        if self.leaders != 1 {
            command += &format!(" --leaders {}", self.leaders);
        }
        if self.relays != 0 {
            command += &format!(" --relays {}", self.relays);
        }
        if self.admission {
            command += " --admission";
        }
        if let Some(kem) = self.kem {
            command += &format!(" --kem {kem}");
        }
        command
    }
}

/// Totals of the seeds of one strategy.
#[derive(Default)]
struct Sums {
    /// Number of seeds that were run.
    seeds: u64,
    /// Number of them that were run over ristretto255.
    real: u64,
    turns: u64,
    epochs: u64,
    checks: u64,
    slowest: Duration,
    failed: Vec<u64>,
}

impl Sums {
    fn of(seed: u64, life: &Life) -> Self {
        Self {
            seeds: 1,
            real: u64::from(SeedChecker::suite(seed) != WorldSuite::Toy),
            turns: life.steps,
            epochs: life.epochs as u64,
            checks: life.checks,
            slowest: life.convergence,
            failed: life.violation.iter().map(|_| seed).collect(),
        }
    }

    fn and(mut self, mut other: Self) -> Self {
        self.failed.append(&mut other.failed);
        Self {
            seeds: self.seeds + other.seeds,
            real: self.real + other.real,
            turns: self.turns + other.turns,
            epochs: self.epochs + other.epochs,
            checks: self.checks + other.checks,
            slowest: self.slowest.max(other.slowest),
            failed: self.failed,
        }
    }
}

/// Checks seeds.
pub(super) fn check(args: &CheckArgs) -> Result<RunOutcome> {
    ranks::together(|| check_seeds(args))
}

fn check_seeds(args: &CheckArgs) -> Result<RunOutcome> {
    let args = &CheckArgs { quiet: args.quiet || !ranks::is_first(), ..args.clone() };
    args.check()?;
    interrupt::listen()?;
    let mut outcome = RunOutcome::Passed;
    for strategy in args.strategies() {
        if ranks::is_interrupted() {
            break;
        }
        let setup = CheckSetup {
            admission: args.admission,
            edges: args.drones,
            kgcs: args.kgcs,
            leaders: args.leaders,
            relays: args.relays,
            strategy,
            kem: args.kem,
            ..CheckSetup::default()
        };
        let canary = ProcessTime::now();
        let canary = canary_text(find_canary(strategy)?, canary.elapsed());
        match canary {
            Ok(text) if !args.quiet => print(&format!("{strategy}: {text}"))?,
            Ok(_) => {}
            Err(text) => {
                outcome = RunOutcome::Failed;
                complain(&format!("{strategy}: {text}"));
            }
        }
        if let Some(ranks) = args.ranks() {
            let checker = SeedChecker::over(setup, &ranks)?;
            let (wall, cpu) = (measure::now(), ProcessTime::now());
            let (sums, digest) = share_lives(args, strategy, &checker)?;
            if !args.quiet {
                print(&summary(args, strategy, &sums, wall.elapsed(), cpu.elapsed()))?;
                print(&format!("{strategy}: {}", ranks::digest(&digest)))?;
            }
            if !sums.failed.is_empty() {
                outcome = RunOutcome::Failed;
            }
            continue;
        }
        let checker = SeedChecker::new(setup)?;
        let (wall, cpu) = (measure::now(), ProcessTime::now());
        let sums = live(args, strategy, &checker)?;
        if !args.quiet {
            print(&summary(args, strategy, &sums, wall.elapsed(), cpu.elapsed()))?;
        }
        if !sums.failed.is_empty() {
            outcome = RunOutcome::Failed;
            complain(&format!("{} of {} failed", sums.failed.len(), counted(sums.seeds, "seed")));
        }
        for seed in sums.failed.iter().take(TOLD) {
            if let Some(failure) = checker.explain(*seed)? {
                print(&failure_text(args, strategy, &failure))?;
            }
        }
        if sums.failed.len() > TOLD {
            let others: Vec<String> = sums.failed.iter().skip(TOLD).take(100).map(u64::to_string).collect();
            print(&format!("also failing: {}", others.join(" ")))?;
        }
    }
    let interrupted = outcome == RunOutcome::Passed && ranks::is_interrupted();
    if !args.quiet {
        // Every rank asks for them.
        ranks::costs().iter().try_for_each(|cost| print(cost))?;
    } else {
        ranks::costs();
    }
    Ok(if interrupted { RunOutcome::Interrupted } else { outcome })
}

/// Lives through all seeds one after the other, each life shared by the ranks; returns their sums, and the digest of all
/// their steps.
fn share_lives(
    args: &CheckArgs,
    strategy: StrategyKind,
    checker: &SeedChecker,
) -> std::result::Result<(Sums, [u8; 32]), quiver_world::WorldError> {
    let (mut sums, mut hasher) = (Sums::default(), Hasher::new("quiver/1 digest of lives"));
    for seed in args.seeds() {
        if ranks::is_interrupted() {
            break;
        }
        let life = checker.check(seed)?;
        if let Some(violation) = life.violation.as_ref().filter(|_| ranks::is_first()) {
            complain(&format!("seed {seed}: {violation}\nreplay: {}", args.replay(seed, strategy)));
        }
        hasher = hasher.fixed(&life.trace.unwrap_or_default());
        sums = sums.and(Sums::of(seed, &life));
    }
    Ok((sums, hasher.finish()))
}

/// Text about the search for the planted flaw: which seed found it, after how many CPU seconds; an error if none did, or too
/// late.
fn canary_text(found: Option<u64>, took: Duration) -> std::result::Result<String, String> {
    let why = match found {
        Some(seed) if took <= CANARY_LIMIT => {
            return Ok(format!("planted flaw found by seed {seed} in {:.1} s", took.as_secs_f64()));
        }
        Some(seed) => format!("was found by seed {seed} after {:.0} s of CPU time only", took.as_secs_f64()),
        None => "was not found".to_string(),
    };
    Err(format!(
        "a planted flaw (a disk that loses records) {why}: that the seeds pass says nothing. Look for what keeps the \
         invariants from seeing it: cargo test -p quiver-world --test world mutations"
    ))
}

/// Runs all seeds on all cores, until the user interrupts. The result of one does not depend on the others.
fn live(
    args: &CheckArgs,
    strategy: StrategyKind,
    checker: &SeedChecker,
) -> Result<Sums, quiver_world::WorldError> {
    let seeds = args.seeds();
    let progress = Progress::new(!args.quiet);
    let count = usize::try_from(seeds.end - seeds.start).unwrap_or(usize::MAX);
    let bar = progress.step(format!("check {}", strategy), count);
    let done = AtomicUsize::new(0);
    let run = |seed: u64| -> Result<Sums, quiver_world::WorldError> {
        let life = checker.check(seed)?;
        bar.done(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(Sums::of(seed, &life))
    };
    // Ends at once: of a hundred million seeds those that are left took ten seconds to be passed over.
    let wanted = seeds.into_par_iter().take_any_while(|_| !interrupt::is_requested());
    let mut sums = wanted.map(run).try_reduce(Sums::default, |one, other| Ok(one.and(other)))?;
    sums.failed.sort_unstable();
    Ok(sums)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn summary(args: &CheckArgs, strategy: StrategyKind, sums: &Sums, wall: Duration, cpu: Duration) -> String {
    let Range { start, end } = args.seeds();
    let left_out = match end - start - sums.seeds {
        0 => String::new(),
        left => format!(", INTERRUPTED with {left} to go"),
    };
    format!(
        "{strategy}: {} ({} over ristretto255) {}{left_out}: {}, {}, {}\n\
         {:.1} s, {:.0} seeds per minute and core; slowest convergence after the last fault {:.0} s",
        counted(sums.seeds, "seed"),
        sums.real,
        if sums.failed.is_empty() { "passed".into() } else { format!("run, {} FAILED", sums.failed.len()) },
        counted(sums.turns, "step"),
        counted(sums.epochs, "epoch"),
        counted(sums.checks, "comparison"),
        wall.as_secs_f64(),
        sums.seeds as f64 * 60.0 / cpu.as_secs_f64().max(f64::MIN_POSITIVE),
        sums.slowest.as_secs_f64(),
    )
}

/// A failure as text for people: the violation, the command that replays it, the shrunk plan, the last steps.
fn failure_text(args: &CheckArgs, strategy: StrategyKind, failure: &FailingSeed) -> String {
    format!(
        "\nseed {} ({}): {}\nreplay: {}\n{} of the {} planned actions suffice:\n{}\nthe last steps:\n{}",
        failure.seed,
        strategy,
        failure.violation,
        args.replay(failure.seed, strategy),
        failure.plan.actions.len(),
        failure.planned,
        failure.plan,
        failure.story.join("\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: CheckArgs,
    }

    #[test]
    fn tasks_of_an_array_take_seeds_of_their_own_without_a_gap() {
        let args = |words: &[&str]| {
            <Words as clap::Parser>::try_parse_from(std::iter::once(&"check").chain(words)).unwrap().args
        };
        let mut next = 5;
        for task in ["0", "1", "2"] {
            let seeds = args(&["--first", "5", "--seeds", "30", "--task", task]).seeds();
            assert_eq!((seeds.start, seeds.end - seeds.start), (next, 30));
            next = seeds.end;
        }
        let beyond = args(&["--seeds", "100000000", "--task", "18446744073709551615"]);
        assert!(beyond.check().unwrap_err().to_string().contains("seeds end at"));
    }

    #[test]
    fn a_check_that_does_not_find_the_planted_flaw_within_a_minute_fails() {
        let minute = Duration::from_secs(60);
        assert_eq!(
            canary_text(Some(7), Duration::from_millis(90)).unwrap(),
            "planted flaw found by seed 7 in 0.1 s"
        );
        assert!(canary_text(Some(7), minute).is_ok());
        let late = canary_text(Some(7), minute + Duration::from_millis(1)).unwrap_err();
        assert!(late.contains("found by seed 7 after 60 s of CPU time only"), "{late}");
        let missed = canary_text(None, Duration::ZERO).unwrap_err();
        assert!(missed.contains("was not found: that the seeds pass says nothing"), "{missed}");
    }
}
