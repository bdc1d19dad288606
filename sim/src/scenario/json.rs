//! Writes the summary of a scenario as one JSON object: times in seconds, energy in joules.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_report::Machine;
use quiver_world::MavlinkReport;
use quiver_world::radio::{Energy, Spread, Summary};
use quiver_world::scenario::ScenarioRun;
use serde::Serialize;

use super::ScenarioReport;

#[derive(Serialize)]
struct Whole<'a> {
    version: &'static str,
    machine: Machine,
    command: &'a str,
    started: String,
    scenario: &'a str,
    title: &'a str,
    seed: u64,
    suite: &'a str,
    radio: String,
    drones: u32,
    leaders: u16,
    passed: Option<bool>,
    interrupted: bool,
    violations: Vec<String>,
    unmet: &'a [String],
    checks: u64,
    steps: u64,
    virtual_s: f64,
    cpu_s: f64,
    settled_s: f64,
    members: usize,
    terms: u64,
    epochs: u64,
    messages: u64,
    messages_lost: u64,
    crashes: u64,
    refused_writes: u64,
    complaints: u64,
    channel_s: f64,
    per_drone: Costs,
    per_rekey: Costs,
    #[serde(skip_serializing_if = "Option::is_none")]
    mavlink: Option<Telemetry<'a>>,
    trace: String,
    again: &'a str,
}

/// Counts of MAVLink telemetry by outcome: frames, their copies at the other members, and what the air
/// carried.
#[derive(Serialize)]
struct Telemetry<'a> {
    frames_sent: u64,
    frames_shaped: u64,
    frames_without_key: u64,
    frame_bytes: u64,
    datagrams: u64,
    datagram_bytes: u64,
    announcements: u64,
    announcement_bytes: u64,
    added_bytes: f64,
    copies_delivered: u64,
    copies_lost: u64,
    copies_unopened: u64,
    copies_unopened_at_removal: u64,
    copies_unopened_at_first: u64,
    outage_s: f64,
    outage_at_removal_s: f64,
    outage_at_first_s: f64,
    hostile: u64,
    refused: &'a BTreeMap<&'static str, u64>,
    suspicions: u64,
    datagrams_air: f64,
    announcements_air: f64,
    datagrams_j: f64,
    announcements_j: f64,
}

impl<'a> Telemetry<'a> {
    fn of(run: &'a ScenarioRun, report: &'a MavlinkReport) -> Self {
        let (datagrams_air, announcements_air) = run.datagram_air();
        Self {
            frames_sent: report.sent,
            frames_shaped: report.shaped,
            frames_without_key: report.without_key,
            frame_bytes: report.frame_bytes,
            datagrams: report.datagrams,
            datagram_bytes: report.datagram_bytes,
            announcements: report.announcements,
            announcement_bytes: report.announcement_bytes,
            added_bytes: report.added_bytes(),
            copies_delivered: report.delivered,
            copies_lost: report.lost,
            copies_unopened: report.unopened,
            copies_unopened_at_removal: report.unopened_at_removal,
            copies_unopened_at_first: report.unopened_at_first,
            outage_s: report.outage.as_secs_f64(),
            outage_at_removal_s: report.outage_at_removal.as_secs_f64(),
            outage_at_first_s: report.outage_at_first.as_secs_f64(),
            hostile: report.hostile,
            refused: &report.refused,
            suspicions: report.suspicions,
            datagrams_air,
            announcements_air,
            datagrams_j: run.ledger.datagrams().energy().joules(),
            announcements_j: run.ledger.announcements().energy().joules(),
        }
    }
}

#[derive(Serialize)]
struct Costs {
    count: usize,
    airtime_s: Three<f64>,
    frames: Three<u64>,
    retransmissions: Three<u64>,
    bytes_on_air: Three<u64>,
    radio_j: Three<f64>,
    cpu_j: Three<f64>,
    energy_j: Three<f64>,
}

#[derive(Serialize)]
struct Three<T> {
    mean: T,
    p99: T,
    max: T,
}

impl<T> Three<T> {
    fn of<U>(spread: &Spread<U>, unit: impl Fn(&U) -> T) -> Self {
        Self { mean: unit(&spread.mean), p99: unit(&spread.p99), max: unit(&spread.max) }
    }
}

impl From<Summary> for Costs {
    fn from(summary: Summary) -> Self {
        Self {
            count: summary.count,
            airtime_s: Three::of(&summary.airtime, Duration::as_secs_f64),
            frames: Three::of(&summary.frames, |count| *count),
            retransmissions: Three::of(&summary.retransmissions, |count| *count),
            bytes_on_air: Three::of(&summary.bytes, |count| *count),
            radio_j: Three::of(&summary.radio, |energy: &Energy| energy.joules()),
            cpu_j: Three::of(&summary.computing, |energy: &Energy| energy.joules()),
            energy_j: Three::of(&summary.energy, |energy: &Energy| energy.joules()),
        }
    }
}

pub(super) fn render(report: &ScenarioReport) -> String {
    let (scenario, run) = (&report.scenario, &report.run);
    let whole = Whole {
        version: env!("CARGO_PKG_VERSION"),
        machine: Machine::here(),
        command: &report.command,
        started: humantime::format_rfc3339_seconds(report.started).to_string(),
        scenario: &scenario.name,
        title: &scenario.title,
        seed: scenario.setup.seed,
        suite: report.suite,
        radio: scenario.radio.preset.to_string(),
        drones: scenario.edges(),
        leaders: scenario.setup.leaders,
        passed: report.outcome().passed(),
        interrupted: run.interrupted,
        violations: run.violations.iter().map(ToString::to_string).collect(),
        unmet: &run.unmet,
        checks: run.checks,
        steps: run.steps,
        virtual_s: run.lived.as_secs_f64(),
        cpu_s: report.cpu.as_secs_f64(),
        settled_s: run.settled.as_secs_f64(),
        members: run.tally.members.len(),
        terms: run.tally.terms,
        epochs: run.tally.epochs,
        messages: run.traffic.sent,
        messages_lost: run.tally.lost,
        crashes: run.tally.crashes,
        refused_writes: run.tally.stalls,
        complaints: run.tally.blamed,
        channel_s: run.channel.as_secs_f64(),
        per_drone: run.ledger.per_drone().into(),
        per_rekey: run.ledger.per_rekey().into(),
        mavlink: run.mavlink.as_ref().map(|report| Telemetry::of(run, report)),
        trace: hex::encode(run.trace),
        again: &report.again,
    };
    // Strings, numbers and lists always serialise.
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}
