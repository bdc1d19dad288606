//! `sim flood`: measures what members of a group notice of floods.

use std::time::Duration;

use clap::Args;
use quiver_ainq::StrategyKind;
use quiver_report::{Progress, Unit, complain, grid, length_of_time, print};
use quiver_world::run::Percentiles;

use crate::live::flood::{
    self, Flood, FloodMeasurement, FloodPlan, FloodReport, MAX_ATTACKERS, MAX_GROWTH, MAX_IDENTITIES,
    MAX_MEMBERS, MAX_RATE, MAX_REKEYS,
};
use crate::plan::TransportKind;
use crate::report::RunOutcome;
use crate::{Result, interrupt};

const EXAMPLES: &str = "\
Examples:
  sim flood                            a leader of 1,000 drones over TCP on loopback, under each flood
  sim flood --only gossip --rate 500   strangers that publish 500 messages per second each
  sim flood -n 200 --anonymous 200     a smaller group
  sim flood --json > flood.json        for scripts

Everything runs in this process and over loopback: leader, members, attackers. Attackers send what was built before;
what they send per second is in the table.

Exit codes:
  0  under every flood the 99th percentile of re-keys stays below twice that of the quiet group
  1  it does not, or a member was without a key for too long
  2  wrong usage
  130, 143  interrupted (Ctrl-C, SIGTERM); the lines that were finished are printed";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FloodArgs {
    /// Members of the group that drones join by name
    #[arg(short = 'n', long, value_name = "N", default_value_t = FloodPlan::default().members, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_MEMBERS)))]
    members: u32,
    /// Members of the group whose leader demands a policy
    #[arg(long, value_name = "N", default_value_t = FloodPlan::default().anonymous, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_MEMBERS)))]
    anonymous: u32,
    /// Drones that join anonymously at once
    #[arg(long, value_name = "N", default_value_t = FloodPlan::default().joiners, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_MEMBERS)))]
    joiners: u32,
    /// These floods alone
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Flood>,
    /// Nodes that attack at a time
    #[arg(long, value_name = "N", default_value_t = FloodPlan::default().attackers, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ATTACKERS)))]
    attackers: u32,
    /// Messages that each of them sends per second; one that shows forged keys shows one under each identity
    #[arg(long, value_name = "COUNT", default_value_t = FloodPlan::default().rate, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RATE)))]
    rate: u32,
    /// Identities that each of them takes on in a second, one after the other, when it is cut off
    #[arg(long, value_name = "COUNT", default_value_t = FloodPlan::default().identities, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_IDENTITIES)))]
    identities: u32,
    /// Number of re-keys for each line of the table
    #[arg(long, value_name = "COUNT", default_value_t = FloodPlan::default().rekeys, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_REKEYS)))]
    rekeys: u32,
    /// Pause of the leader between two of them
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = length_of_time, hide_short_help = true)]
    pause: Duration,
    /// Network the drones are on
    #[arg(long, value_enum, default_value_t = FloodPlan::default().transport)]
    transport: TransportKind,
    /// Re-key strategy of the leader: flat or tree
    #[arg(long, value_name = "STRATEGY", default_value_t, hide_short_help = true)]
    strategy: StrategyKind,
    /// Seed for all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time limit of a single step
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = length_of_time, hide_short_help = true)]
    timeout: Duration,
    /// Print the figures as JSON in place of the table
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

impl FloodArgs {
    fn plan(&self) -> FloodPlan {
        FloodPlan {
            members: self.members,
            anonymous: self.anonymous,
            joiners: self.joiners,
            floods: if self.only.is_empty() { Flood::ALL.to_vec() } else { self.only.clone() },
            attackers: self.attackers,
            rate: self.rate,
            identities: self.identities,
            rekeys: self.rekeys,
            pause: self.pause,
            transport: self.transport,
            strategy: self.strategy,
            seed: self.seed,
            timeout: self.timeout,
        }
    }
}

/// Measures, and prints what came of it.
pub(super) fn flood(args: &FloodArgs) -> Result<RunOutcome> {
    let plan = args.plan();
    plan.check()?;
    interrupt::listen()?;
    let report = flood::run(&plan, &Progress::new(!args.quiet && !args.json))?;
    let mut printed = Ok(());
    if args.json {
        printed = print(&serde_json::to_string_pretty(&report).unwrap_or_default());
    } else if !args.quiet {
        printed = print(&table(&report));
    }
    report.violations.iter().for_each(|violation| complain(violation));
    printed?;
    Ok(report.outcome())
}

fn table(report: &FloodReport) -> String {
    let head = [
        "group and flood",
        "members",
        "sent per second",
        "answers",
        "identities",
        "penalised",
        "refused",
        "joined",
        "re-key: p50",
        "p99",
        "max",
        "p99 to quiet",
    ];
    let table = grid(head.map(String::from).to_vec(), report.lines.iter().map(row));
    let (plan, machine) = (&report.plan, &report.machine);
    let interrupted = if report.interrupted { "INTERRUPTED: further floods were not measured\n" } else { "" };
    format!(
        "{table}\n{interrupted}{} attackers, {} re-keys for each line; a p99 of {MAX_GROWTH} times the quiet one fails\n{} ({}), {} cores, {}{}",
        plan.attackers,
        plan.rekeys,
        machine.cpu,
        instruction_sets().join(", "),
        machine.cores,
        machine.system,
        if machine.optimised { "" } else { " (built without optimisation: times mean nothing)" },
    )
}

/// Instruction sets with which arithmetic is faster.
fn instruction_sets() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let sets = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("bmi2", std::arch::is_x86_feature_detected!("bmi2")),
        ("adx", std::arch::is_x86_feature_detected!("adx")),
        ("sha", std::arch::is_x86_feature_detected!("sha")),
        ("avx512ifma", std::arch::is_x86_feature_detected!("avx512ifma")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let sets: [(&str, bool); 0] = [];
    sets.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn row(line: &FloodMeasurement) -> Vec<String> {
    let rate = |count: u64| count as f64 / line.seconds.max(f64::MIN_POSITIVE);
    let sent = format!("{:.0} messages, {}", rate(line.messages), Unit::Bytes.show(rate(line.bytes)));
    let time = |pick: fn(&Percentiles) -> Duration| {
        line.latencies.as_ref().map(pick).map_or_else(|| "–".into(), Unit::duration)
    };
    vec![
        line.name(),
        match line.missing {
            0 => line.members.to_string(),
            missing => format!("{} ({missing} keys MISSING)", line.members),
        },
        if line.messages == 0 { "–".into() } else { sent },
        line.answers.to_string(),
        line.identities.to_string(),
        line.penalised.to_string(),
        line.refused.to_string(),
        line.joined.to_string(),
        time(|spread| spread.p50),
        time(|spread| spread.p99),
        time(|spread| spread.max),
        line.growth.map_or_else(|| "–".into(), |growth| format!("{growth:.2}")),
    ]
}
