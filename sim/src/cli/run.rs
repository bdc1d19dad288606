//! `sim run`: runs a deployment in the live world or the virtual one.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use quiver_ainq::StrategyKind;
use quiver_kem::KemSetting;
use quiver_report::{OutputArgs, complain, length_of_time, open};
use quiver_world::admission::{FENCE, MAX_TEXT};
use quiver_world::trace::Trace;

use super::{check_results, probe, show};
use crate::live::RankLine;
use crate::plan::quorum::MAX_KGCS;
use crate::plan::relays::MAX_RELAYS;
use crate::plan::{MAX_DEPUTIES, Plan, TransportKind, WorldKind};
use crate::report::{ReportDraft, RunOutcome, RunReport};
use crate::{Result, SimError, interrupt, live, logging, ranks, replay, virtual_world};

/// Description of a run in its replay.
const ABOUT: &str = "Drones enrol, form a group, follow its leader's new keys, leave, join and send messages; then the leader restarts.";

#[derive(Clone, Debug, Args)]
pub(super) struct RunArgs {
    /// Drones in the group when it is formed
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    drones: u32,
    /// Live world: network between them. Memory if not given
    #[arg(long, value_enum)]
    transport: Option<TransportKind>,
    /// Re-key strategy of the leader: flat or tree
    #[arg(long, value_name = "STRATEGY", default_value_t)]
    strategy: StrategyKind,
    /// Second factor of the keys between drones and leaders: none, ml-kem-768 or ml-kem-1024
    #[arg(long, value_name = "SET", default_value_t, hide_short_help = true)]
    kem: KemSetting,
    /// World of the drones
    #[arg(long, value_enum, default_value_t)]
    world: WorldKind,
    /// Virtual world: the radio, such as 802.15.4, ble, lora-sf7 or wifi. Drones then
    /// enrol and ask to join one after the other, as fast as its channel carries it, and wait for answers for
    /// as long as it may take
    #[arg(long, value_name = "PRESET")]
    radio: Option<String>,
    /// Virtual world: the radio (or `ideal`, a cable) with which drones enrol and join before all change to
    /// --radio
    #[arg(long, value_name = "PRESET", requires = "radio", hide_short_help = true)]
    depot: Option<String>,
    /// Virtual world: compute in a toy group that hides nothing, a hundred times faster
    #[arg(long, hide_short_help = true)]
    toy: bool,
    /// Virtual world: compute what many drones check alike (a header's signature) once per
    /// distinct input
    #[arg(long, conflicts_with = "toy", hide_short_help = true)]
    share_verifications: bool,
    /// Virtual world: print a digest of every step, the same on any number of threads and ranks
    #[arg(long, hide_short_help = true)]
    digest: bool,
    /// Seed for all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let group keys expire after this time, in place of a command to the leader to re-key
    #[arg(long, value_name = "DURATION", value_parser = length_of_time, hide_short_help = true)]
    expiry: Option<Duration>,
    /// Percentage of the drones that leave
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, hide_short_help = true)]
    leave_percent: f64,
    /// Number of drones that join the group later, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, hide_short_help = true)]
    join_percent: f64,
    /// Number of group messages, by turns from the leader and from drones
    #[arg(long, value_name = "COUNT", default_value_t = 10, hide_short_help = true)]
    messages: u32,
    /// Let up to 2,000 drones send MAVLink telemetry to a ground station. It sends them commands, both in the group's
    /// datagrams over a medium that loses 20 %; halfway one is evicted, and reads and says nothing from then on. In the
    /// live world
    #[arg(long)]
    mavlink: bool,
    /// Write the datagrams of --mavlink as a capture for Wireshark: UDP as carriers send it, with a comment on each that is lost
    #[arg(long, value_name = "FILE", requires = "mavlink", hide_short_help = true)]
    pcapng: Option<PathBuf>,
    /// Give the drones attributes, seal envelopes to some of them, and check that exactly those open them
    #[arg(long, hide_short_help = true)]
    envelopes: bool,
    /// KGCs: one, or a quorum. More than half of them, or --threshold, issue a key together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_KGCS)))]
    kgcs: u16,
    /// Number of KGCs that must agree: more than half of them
    #[arg(long, value_name = "T", requires = "kgcs", hide_short_help = true, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_KGCS)))]
    threshold: Option<u16>,
    /// Seal an order to the mission's second phase, and check that it opens nowhere before the KGCs release
    /// that phase's key and everywhere afterwards
    #[arg(long, hide_short_help = true)]
    orders: bool,
    /// Let drones join anonymously, and check that exactly those are members whom a policy admits, and that
    /// nothing the leader sees links two memberships of a drone. The policy is in the file, over x and y
    /// (metres from -1000 to 1000) and battery (percent); without a file it is a circle
    #[arg(long, value_name = "POLICYFILE", hide_short_help = true)]
    admission: Option<Option<PathBuf>>,
    /// Do not kill and rebuild the leader at the end
    #[arg(long, hide_short_help = true)]
    no_restart_leader: bool,
    /// Kill the leader at the end and rebuild it from its records (the default without --deputies)
    #[arg(long, conflicts_with_all = ["no_restart_leader", "deputies"], hide_short_help = true)]
    restart_leader: bool,
    /// Number of deputies of the leader. With them the leader is lost at the end, for good, and one of them
    /// takes over
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_DEPUTIES)))]
    deputies: u32,
    /// Number of relays between the drones and the leader. Each holds the connections of its share of the drones and one to
    /// the leader; they run where the drones do, at least one at each rank that hosts drones
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_RELAYS)))]
    relays: u32,
    /// Host of the first rank, under which those on other hosts reach its KGCs and leaders; as its name says if not given
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    bind: Option<String>,
    /// Live world: time limit of a single step; 120s if not given
    #[arg(long, value_name = "DURATION", value_parser = length_of_time, hide_short_help = true)]
    timeout: Option<Duration>,
    /// Open the report in a browser when the run is over
    #[arg(long, conflicts_with = "no_results")]
    open: bool,
    /// Virtual world: write the run as one page that plays it, by default as replay.html beside the report
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    replay: Option<Option<PathBuf>>,
    #[command(flatten)]
    output: OutputArgs,
}

impl RunArgs {
    fn plan(&self) -> Result<Plan> {
        self.check_world()?;
        let usual = Plan::default();
        let plan = Plan {
            world: self.world,
            drones: self.drones,
            transport: self.transport.unwrap_or(usual.transport),
            strategy: self.strategy,
            kem: self.kem,
            seed: self.seed,
            expiry: self.expiry,
            leave_percent: self.leave_percent,
            join_percent: self.join_percent,
            messages: self.messages,
            mavlink: self.mavlink,
            capture: self.pcapng.is_some(),
            envelopes: self.envelopes,
            kgcs: self.kgcs,
            threshold: self.threshold.unwrap_or(self.kgcs / 2 + 1),
            orders: self.orders,
            admission: self.admission.as_ref().map(|file| policy(file.as_deref())).transpose()?,
            restart_leader: !self.no_restart_leader,
            deputies: self.deputies,
            relays: self.relays,
            workers: if self.world == WorldKind::Live { ranks::count() - 1 } else { 0 },
            bind: self.bind.clone(),
            timeout: self.timeout.unwrap_or(usual.timeout),
            radio: self.radio.clone(),
            depot: self.depot.clone(),
            toy: self.toy,
            share_verifications: self.share_verifications,
            digest: self.digest,
        };
        plan.check()?;
        self.check_replay(&plan)?;
        self.pcapng.as_deref().map_or(Ok(()), |file| probe("--pcapng", file))?;
        Ok(plan)
    }

    /// Refuses flags of the live world that have the value which they have without being given: the virtual world would
    /// ignore them.
    fn check_world(&self) -> Result<()> {
        if self.world == WorldKind::Live {
            return Ok(());
        }
        let given = [
            ("--transport", self.transport.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--bind", self.bind.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(SimError::Usage(format!("{flag} is for --world live"))),
            None => Ok(()),
        }
    }

    fn check_replay(&self, plan: &Plan) -> Result<()> {
        match &self.replay {
            None => Ok(()),
            Some(_) if plan.world == WorldKind::Live => Err(SimError::Usage(
                "--replay plays virtual time: give --world virtual too, or `sim scenario NAME --replay FILE`"
                    .into(),
            )),
            Some(None) if self.output.no_results => {
                Err(SimError::Usage("--replay: with --no-results it needs a FILE of its own".into()))
            }
            Some(file) => {
                replay::check(plan.drones + plan.newcomers())?;
                file.as_deref().map_or(Ok(()), |file| probe("--replay", file))
            }
        }
    }
}

/// The policy in a file, or that of a circle.
fn policy(file: Option<&Path>) -> Result<String> {
    let Some(path) = file else { return Ok(FENCE.into()) };
    let failed = |error: std::io::Error| SimError::Usage(format!("--admission {}: {error}", path.display()));
    let mut text = String::new();
    // A longer policy is refused as too long.
    let most = MAX_TEXT as u64 + 1;
    File::open(path).map_err(failed)?.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Runs the plan in its world and prints the report.
pub(super) fn run(args: &RunArgs) -> Result<RunOutcome> {
    ranks::together(|| match args.world {
        WorldKind::Live => ranks::beside_lines(|lines| play(args, lines)),
        WorldKind::Virtual => play(args, Vec::new()),
    })
}

fn play(args: &RunArgs, mut lines: Vec<RankLine>) -> Result<RunOutcome> {
    let output = ranks::output(&args.output);
    let args = &RunArgs { open: args.open && ranks::is_first(), output, ..args.clone() };
    let plan = args.plan()?;
    check_results(&args.output)?;
    let progress = args.output.progress();
    logging::start(&progress)?;
    interrupt::listen()?;
    if !ranks::is_first()
        && let Some(line) = lines.pop()
    {
        return live::work(line);
    }
    // The starter of ranks ends all of them if one is lost.
    let kept = args.output.folder().filter(|_| ranks::count() > 1);
    let mut draft = ReportDraft::default();
    let mut watch = |report: RunReport| {
        if let Some(results) = kept {
            draft.keep(results, &report);
        }
    };
    let (report, trace) = match plan.world {
        WorldKind::Live => (live::run_over(&plan, &progress, lines, &mut watch)?, None),
        WorldKind::Virtual => virtual_world::run(&plan, &progress, args.replay.is_some(), &mut watch)?,
    };
    let outcome = present(&report, trace.as_ref(), args, draft)?;
    match report.lost().next() {
        // The others wait for it: an error ends them.
        Some((worker, why)) => Err(SimError::Worker { who: worker.who.clone(), why: why.into() }),
        None => Ok(outcome),
    }
}

/// Writes and prints the report. A report that cannot be written costs no figure: it is printed all the same.
fn present(
    report: &RunReport,
    trace: Option<&Trace>,
    args: &RunArgs,
    draft: ReportDraft,
) -> Result<RunOutcome> {
    let write_replay =
        |file: &Path, trace| replay::write(file, &report.title(), ABOUT, &report.command, trace);
    let own = args.replay.clone().flatten();
    let beside = trace.filter(|_| own.is_none());
    let more = |folder: &Path| beside.map_or(Ok(()), |trace| write_replay(&folder.join(replay::PAGE), trace));
    let folder = args.output.folder().map(|results| draft.finish(results, report, more)).transpose();
    let replayed = match (&own, trace, &folder) {
        (Some(file), Some(trace), _) => write_replay(file, trace).map(|()| Some(file.clone())),
        (None, Some(_), Ok(Some(folder))) => Ok(Some(folder.join(replay::PAGE))),
        _ => Ok(None),
    };
    let file = replayed.as_ref().ok().cloned().flatten();
    let named = file.as_ref().map_or_else(String::new, |file| format!("\nReplay: {}", file.display()));
    let captured = match (&args.pcapng, &report.capture) {
        (Some(file), Some(capture)) => std::fs::write(file, capture)
            .map_err(|source| quiver_report::ReportError::File { path: file.clone(), source }.into()),
        _ => Ok(()),
    };
    let shown = show(&args.output, folder, args.open, || report.json(), || report.table() + &named);
    if let Some(file) = file.filter(|_| args.open) {
        open(&file)?;
    }
    if report.outcome() == RunOutcome::Failed && ranks::is_first() {
        complain(&report.failures());
    }
    shown.and(captured).and(replayed.map(drop))?;
    Ok(report.outcome())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::parse_run as parse;

    #[test]
    fn what_belongs_to_the_other_world_is_refused() {
        for words in [&["--toy"][..], &["--radio", "ble"], &["--share-verifications"], &["--digest"]] {
            let refusal = parse(words).plan().unwrap_err();
            assert!(refusal.to_string().contains("--world virtual"), "{refusal}");
        }
        for words in [
            &["--transport", "tcp"][..],
            &["--transport", "memory"],
            &["--timeout", "120s"],
            &["--expiry", "5s"],
            &["--mavlink"],
            &["--deputies", "2"],
            &["--relays", "2"],
            &["--bind", "127.0.0.1"],
        ] {
            let refusal = parse(&[&["--world", "virtual"], words].concat()).plan().unwrap_err();
            assert_eq!(refusal.to_string(), format!("{} is for --world live", words[0]));
        }
        parse(&["--world", "live"]).plan().unwrap();
    }

    #[test]
    fn either_strategy_is_to_be_had_and_flat_is_the_default() {
        for choice in [StrategyKind::Flat, StrategyKind::Tree] {
            assert_eq!(parse(&["--strategy", &choice.to_string()]).plan().unwrap().strategy, choice);
        }
        assert_eq!(parse(&[]).plan().unwrap().strategy, StrategyKind::Flat);
    }

    #[test]
    fn a_quorum_is_more_than_half_of_the_kgcs_unless_it_is_said() {
        let quorum = |words: &[&str]| parse(words).plan().map(|plan| (plan.kgcs, plan.threshold));
        assert_eq!(quorum(&[]).unwrap(), (1, 1));
        assert_eq!(quorum(&["--kgcs", "5"]).unwrap(), (5, 3));
        assert_eq!(quorum(&["--kgcs", "5", "--threshold", "4"]).unwrap(), (5, 4));
        assert!(quorum(&["--kgcs", "5", "--threshold", "2"]).is_err());
    }

    #[test]
    fn durations_are_human() {
        let plan = parse(&["--expiry", "1m 30s", "--timeout", "5m"]).plan().unwrap();
        assert_eq!(plan.expiry, Some(Duration::from_secs(90)));
        assert_eq!(plan.timeout, Duration::from_secs(300));
    }

    #[test]
    fn run_is_the_default_command() {
        assert_eq!(parse(&[]).plan().unwrap(), Plan::default());
        assert_eq!(parse(&["-n", "2000"]).plan().unwrap(), parse(&["run", "-n", "2000"]).plan().unwrap());
        assert_eq!(parse(&["-n", "2000"]).drones, 2000);
    }
}
