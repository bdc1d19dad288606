//! Prints figures: a table for people, in Markdown, or JSON.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::budget::{Budget, count};
use crate::measurement::Measurement;
use crate::site::Rekeys;

/// An attack, and how it stands to its budget.
#[derive(Debug)]
pub(crate) struct AttackRow {
    pub(crate) measured: Measurement,
    pub(crate) budget: Budget,
    /// Re-keys without an attack.
    pub(crate) quiet: Rekeys,
    /// Budgets that were passed.
    pub(crate) passed: Vec<String>,
}

impl AttackRow {
    pub(crate) fn name(&self) -> String {
        format!("{}: {}", self.measured.run.target.name(), self.measured.run.attack.name())
    }

    fn cells(&self) -> [String; 11] {
        let (measured, budget) = (&self.measured, &self.budget);
        let [quiet, attacked] = [&self.quiet, &measured.rekeys].map(|rekeys| millis(rekeys.percentile(99)));
        let seconds = |time: Option<Duration>| {
            time.map_or("NEVER".into(), |time| format!("{:.1} s", time.as_secs_f64()))
        };
        [
            self.name(),
            format!("{} over {}", bytes(measured.sent), measured.connections),
            format!("{} of {}", bytes(measured.memory), bytes(budget.memory)),
            bytes(measured.memory_kept),
            format!("{} of {}", measured.descriptors, budget.descriptors),
            format!("{} of {}", bytes(measured.log), bytes(budget.log)),
            format!("{:.2} of {:.1} s", measured.processor.as_secs_f64(), budget.processor.as_secs_f64()),
            per_byte(measured),
            format!("{attacked} ({quiet})"),
            seconds(measured.evicted),
            seconds(measured.returned),
        ]
    }

    fn json(&self) -> Value {
        let (measured, budget) = (&self.measured, &self.budget);
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let rekeys = |rekeys: &Rekeys| [50, 99, 100].map(|share| rekeys.percentile(share).as_secs_f64());
        json!({
            "target": measured.run.target.name(),
            "attack": measured.run.attack.name(),
            "seconds": measured.time.as_secs_f64(),
            "sent_bytes": measured.sent,
            "connections": measured.connections,
            "connected": measured.connected,
            "memory": measured.memory,
            "memory_budget": budget.memory,
            "memory_kept": measured.memory_kept,
            "memory_kept_budget": budget.memory_kept,
            "descriptors": measured.descriptors,
            "descriptors_budget": budget.descriptors,
            "log_bytes": measured.log,
            "log_budget": budget.log,
            "processor_seconds": measured.processor.as_secs_f64(),
            "processor_budget": budget.processor.as_secs_f64(),
            "quiet_rekeys_p50_p99_max": rekeys(&self.quiet),
            "rekeys_p50_p99_max": rekeys(&measured.rekeys),
            "rekeys_p99_budget": budget.rekeys.as_secs_f64(),
            "evicted_seconds": seconds(measured.evicted),
            "returned_seconds": seconds(measured.returned),
            "passed": self.passed,
        })
    }
}

const HEAD: [&str; 11] = [
    "attack on",
    "sent, over connections",
    "memory",
    "kept",
    "descriptors",
    "log",
    "processor",
    "log, memory, processor per byte",
    "re-keys: 99 of 100 (quiet)",
    "eviction",
    "a drone's return",
];

/// The table, as Markdown.
pub(crate) fn table(lines: &[AttackRow]) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rows = lines.iter().map(|line| row(&line.cells()));
    let rule = format!("|{}\n", "---|".repeat(HEAD.len()));
    let unoptimised = if cfg!(debug_assertions) {
        "\nBuilt without optimisation: processor time is not judged.\n"
    } else {
        ""
    };
    format!("{}{rule}{}\n{}{unoptimised}", row(&HEAD.map(String::from)), rows.collect::<String>(), machine())
}

/// The same as JSON.
pub(crate) fn json(lines: &[AttackRow]) -> String {
    let lines: Vec<_> = lines.iter().map(AttackRow::json).collect();
    format!(
        "{:#}\n",
        json!({"machine": machine().trim(), "optimised": !cfg!(debug_assertions), "attacks": lines})
    )
}

/// The processor.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = name.map_or("unknown processor", |(_, name)| name.trim());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {threads} hardware threads\n")
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{number} B"),
        10_000..10_000_000 => format!("{:.0} kB", count(number) / 1e3),
        _ => format!("{:.1} MB", count(number) / 1e6),
    }
}

/// Cost per byte sent; "–" for idle strangers, who send none to speak of.
fn per_byte(measured: &Measurement) -> String {
    if measured.sent < 1_000_000 {
        return "–".into();
    }
    let sent = count(measured.sent);
    let (log, memory) = (count(measured.log) / sent, count(measured.memory) / sent);
    let nanos = measured.processor.as_secs_f64() * 1e9 / sent;
    format!("{log:.4} B, {memory:.2} B, {nanos:.0} ns")
}
