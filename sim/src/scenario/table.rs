//! Draws the table of a scenario for people.

use std::fmt::Write as _;
use std::time::Duration;

use quiver_report::{Unit, counted, grid};
use quiver_world::radio::{Spread, Summary};
use quiver_world::{MavlinkReport, TwoHopsReport};

use super::ScenarioReport;
use crate::report::RunOutcome;

pub(super) fn render(report: &ScenarioReport) -> String {
    let ledger = &report.run.ledger;
    let (drones, rekeys) = (ledger.per_drone(), ledger.per_rekey());
    let head_row = vec![
        String::new(),
        format!("per drone ({}): mean", drones.count),
        "p99".into(),
        "max".into(),
        format!("per re-key ({}): mean", rekeys.count),
        "p99".into(),
        "max".into(),
    ];
    let rows = rows(&drones).into_iter().zip(rows(&rekeys));
    let rows = rows.map(|((name, a), (_, b))| std::iter::once(name.into()).chain(a).chain(b).collect());
    let telemetry = report.run.mavlink.as_ref().map(|mavlink| telemetry(report, mavlink)).unwrap_or_default();
    let two_hops = report.run.two_hops.as_ref().map(two_hops).unwrap_or_default();
    format!("{}\n{}\n{telemetry}{two_hops}{}", head(report), grid(head_row, rows), foot(report))
}

/// Describes the outcome of re-keys where members were out of the leader's range.
fn two_hops(report: &TwoHopsReport) -> String {
    format!(
        "two hops: {} out of range; re-keys {} times from the leader, {} times from members, who repeated {} and {} false \
         ones in {}, {} on air\n",
        counted(report.out_of_range, "member"),
        report.from_leader,
        report.from_members,
        report.repetitions,
        report.false_repetitions,
        counted(report.frames, "frame"),
        Unit::duration(report.airtime),
    )
}

/// Name and mean, 99th percentile and maximum of each quantity.
pub(super) fn rows(summary: &Summary) -> [(&'static str, Vec<String>); 7] {
    [
        ("airtime", shown(&summary.airtime, |time| Unit::duration(*time))),
        ("frames", shown(&summary.frames, u64::to_string)),
        ("retransmissions", shown(&summary.retransmissions, u64::to_string)),
        ("bytes on air", shown(&summary.bytes, |count| Unit::bytes(*count))),
        ("radio energy", shown(&summary.radio, ToString::to_string)),
        ("CPU energy", shown(&summary.computing, ToString::to_string)),
        ("energy", shown(&summary.energy, ToString::to_string)),
    ]
}

fn shown<T>(spread: &Spread<T>, show: impl Fn(&T) -> String) -> Vec<String> {
    [&spread.mean, &spread.p99, &spread.max].map(show).to_vec()
}

fn head(report: &ScenarioReport) -> String {
    let scenario = &report.scenario;
    format!("{}\n{}\n{}", scenario.title, scenario.about, setting(report))
}

/// Remarks of the page besides its tables: telemetry and re-keys out of range, if any, and the counts of the
/// run.
pub(super) fn remarks(report: &ScenarioReport) -> Vec<String> {
    let telemetry = report.run.mavlink.as_ref().map(|mavlink| telemetry(report, mavlink)).unwrap_or_default();
    let two_hops = report.run.two_hops.as_ref().map(two_hops).unwrap_or_default();
    let text = format!("{telemetry}{two_hops}{}", foot(report));
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Size, radio and seed in a line.
pub(super) fn setting(report: &ScenarioReport) -> String {
    let scenario = &report.scenario;
    let strategy = match scenario.setup.strategy {
        quiver_ainq::StrategyKind::Flat => "flat",
        quiver_ainq::StrategyKind::Tree => "tree",
    };
    format!(
        "{} and {} over {}, strategy {strategy}, suite {}, seed {}",
        counted(scenario.edges(), "drone"),
        counted(scenario.setup.leaders, "leader"),
        scenario.radio.preset,
        report.suite,
        scenario.setup.seed
    )
}

/// Describes the outcome of MAVLink telemetry in the group's datagrams.
fn telemetry(report: &ScenarioReport, mavlink: &MavlinkReport) -> String {
    let (datagrams, announcements) = report.run.datagram_air();
    let ledger = &report.run.ledger;
    let copies = mavlink.lost + mavlink.arrived;
    let percent = |part: u64| format!("{:.3} %", part as f64 * 100.0 / (copies as f64).max(1.0));
    let rows = [
        (
            "MAVLink frames",
            format!(
                "{} sent in {}; {} dropped by shaping, {} while there was no key",
                mavlink.sent,
                counted(mavlink.datagrams, "datagram"),
                mavlink.shaped,
                mavlink.without_key
            ),
        ),
        (
            "bytes",
            format!(
                "{} of frames, {} of datagrams: {:.1} more for each frame; {} of {}",
                Unit::bytes(mavlink.frame_bytes),
                Unit::bytes(mavlink.datagram_bytes),
                mavlink.added_bytes(),
                Unit::bytes(mavlink.announcement_bytes),
                counted(mavlink.announcements, "announcement")
            ),
        ),
        (
            "copies",
            format!(
                "{copies}: {} delivered, {} lost by the radio; not opened: {} after a removal, {} before the sender was known, {} else",
                percent(mavlink.delivered),
                percent(mavlink.lost),
                percent(mavlink.unopened_at_removal),
                percent(mavlink.unopened_at_first),
                mavlink.unopened
            ),
        ),
        (
            "without telemetry",
            format!(
                "at most {} although it arrived, {} after a removal, {} before the sender was known",
                Unit::duration(mavlink.outage),
                Unit::duration(mavlink.outage_at_removal),
                Unit::duration(mavlink.outage_at_first)
            ),
        ),
        (
            "hostile",
            format!(
                "{} of captured vehicles; {} not taken{}",
                counted(mavlink.hostile, "datagram"),
                mavlink.total_refused(),
                refusals(mavlink)
            ),
        ),
        (
            "air",
            format!(
                "{:.1} % of the time telemetry, {:.2} % announcements; {} and {}",
                datagrams * 100.0,
                announcements * 100.0,
                ledger.datagrams().energy(),
                ledger.announcements().energy()
            ),
        ),
    ];
    rows.iter().map(|(name, text)| format!("{name:17} {text}\n")).collect()
}

/// The reasons for which datagrams were not taken, in parentheses.
fn refusals(mavlink: &MavlinkReport) -> String {
    let reasons: Vec<String> = mavlink
        .refused
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) }
}

fn foot(report: &ScenarioReport) -> String {
    let run = &report.run;
    let (tally, infrastructure) = (&run.tally, run.ledger.infrastructure());
    let mut text = match report.outcome() {
        RunOutcome::Passed => format!("All {} checks passed", run.checks),
        RunOutcome::Failed => format!("{} FAILED", run.violations.len() + run.unmet.len()),
        RunOutcome::Interrupted => format!("INTERRUPTED; until then all {} checks passed", run.checks),
    };
    // Convergence is looked at for the first time a millisecond after the script's end.
    let settled = match run.settled {
        _ if run.interrupted => "expectations not looked at".into(),
        at_once if at_once <= Duration::from_millis(1) => "converged by the end of the script".into(),
        later => format!("converged {} after the end of the script", Unit::duration(later)),
    };
    let _ = write!(
        text,
        "; {}, {} of virtual time in {} of CPU time; {settled}\n\
         {}, {}, {}; {}, {} lost; {}, {}, {}\n\
         Channel in use {}; leaders and KGC sent {} and {} in {}\n\
         Trace of this seed: {}",
        counted(run.steps, "step"),
        Unit::duration(run.lived),
        Unit::duration(report.cpu),
        counted(tally.terms, "term"),
        counted(tally.epochs, "epoch"),
        counted(tally.members.len() as u64, "member"),
        counted(run.traffic.sent, "message"),
        tally.lost,
        if tally.crashes == 1 { "1 crash".into() } else { format!("{} crashes", tally.crashes) },
        counted(tally.stalls, "refused write"),
        counted(tally.blamed, "rejected message"),
        Unit::duration(run.channel),
        counted(infrastructure.frames, "frame"),
        counted(infrastructure.retransmissions, "retransmission"),
        Unit::duration(infrastructure.airtime),
        hex::encode(&run.trace[..8]),
    );
    text
}
