//! Writes CSV tables of a scenario: times in seconds, energy in joules.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_report::csv;
use quiver_world::radio::Account;
use quiver_world::rekey_number;
use quiver_world::scenario::ScenarioRun;

const COSTS: [&str; 8] = [
    "airtime_s",
    "frames",
    "retransmissions",
    "bytes_on_air",
    "transmit_j",
    "receive_j",
    "cpu_j",
    "energy_j",
];

/// A line per drone.
pub(super) fn drones(run: &ScenarioRun) -> String {
    let rows = run.ledger.drones().iter().enumerate();
    let rows = rows.map(|(number, account)| row([format!("edge-{number}")], costs(account)));
    csv(row(["drone".into()], COSTS.map(Into::into)), rows)
}

/// A line per re-key: its costs for all nodes together.
pub(super) fn rekeys(run: &ScenarioRun) -> String {
    let made = times(run);
    let rows = run.ledger.rekeys().map(|(number, account)| {
        let (at, term, counter) = match made.get(&number) {
            Some((at, epoch)) => (seconds(*at), epoch.term.to_string(), epoch.counter.to_string()),
            None => (String::new(), (number >> 32).to_string(), (number & u64::from(u32::MAX)).to_string()),
        };
        row([at, term, counter], costs(account))
    });
    csv(row(["at_s", "term", "counter"].map(Into::into), COSTS.map(Into::into)), rows)
}

/// Times and epochs of the re-keys, by number.
pub(super) fn times(run: &ScenarioRun) -> BTreeMap<u64, (Duration, Epoch)> {
    run.epochs.iter().map(|(at, epoch)| (rekey_number(*epoch), (*at, *epoch))).collect()
}

fn row<const N: usize>(names: [String; N], costs: [String; 8]) -> Vec<String> {
    names.into_iter().chain(costs).collect()
}

fn costs(account: &Account) -> [String; 8] {
    let joules = |energy: quiver_world::radio::Energy| format!("{:.9}", energy.joules());
    [
        seconds(account.airtime),
        account.frames.to_string(),
        account.retransmissions.to_string(),
        account.bytes.to_string(),
        joules(account.transmitting),
        joules(account.receiving),
        joules(account.computing),
        joules(account.energy()),
    ]
}

fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}
