//! The figures of a run that are compared over the sizes of groups.

use std::time::Duration;

use quiver_report::Unit::{self, Bytes, Seconds};
use quiver_world::run::Phase::{self, Form, Leave, LoseLeader, Rekey};
use quiver_world::run::PhaseCosts;

use crate::report::RunReport;

/// A figure of an operation.
#[derive(Debug)]
pub(super) struct ScaleQuantity {
    /// Name in CSV and JSON.
    pub(super) key: &'static str,
    /// Name for people.
    pub(super) title: &'static str,
    pub(super) phase: Phase,
    pub(super) unit: Unit,
    pub(super) of: fn(&PhaseCosts) -> Option<f64>,
    /// Title of its axis if it is drawn.
    pub(super) axis: Option<&'static str>,
}

impl ScaleQuantity {
    const fn new(
        key: &'static str,
        title: &'static str,
        phase: Phase,
        unit: Unit,
        of: fn(&PhaseCosts) -> Option<f64>,
    ) -> Self {
        Self { key, title, phase, unit, of, axis: None }
    }

    const fn drawn(self, axis: &'static str) -> Self {
        Self { axis: Some(axis), ..self }
    }

    /// The figure of a run; `None` where its world does not measure it.
    pub(super) fn figure(&self, run: &RunReport) -> Option<f64> {
        (self.of)(operation(run, self.phase)?)
    }
}

/// The first operation of a phase.
pub(super) fn operation(run: &RunReport, phase: Phase) -> Option<&PhaseCosts> {
    run.operations.iter().find(|operation| operation.phase == phase)
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn bytes(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

fn leader_cpu(operation: &PhaseCosts) -> Option<f64> {
    seconds(operation.leader_cpu)
}

fn leader_bytes(operation: &PhaseCosts) -> Option<f64> {
    bytes(operation.leader_bytes)
}

fn receiver_bytes(operation: &PhaseCosts) -> Option<f64> {
    bytes(operation.receiver_bytes)
}

fn air_bytes(operation: &PhaseCosts) -> Option<f64> {
    bytes(operation.air_bytes)
}

fn airtime(operation: &PhaseCosts) -> Option<f64> {
    seconds(operation.radio.map(|radio| radio.airtime))
}

fn p50(operation: &PhaseCosts) -> Option<f64> {
    seconds(operation.to_all.map(|all| all.p50))
}

fn p99(operation: &PhaseCosts) -> Option<f64> {
    seconds(operation.to_all.map(|all| all.p99))
}

/// All quantities. A world has those that it measures.
pub(super) static QUANTITIES: [ScaleQuantity; 16] = [
    ScaleQuantity::new("rekey_cpu_seconds", "re-key: CPU time of the leader", Rekey, Seconds, leader_cpu)
        .drawn("CPU time of the leader"),
    ScaleQuantity::new("rekey_bytes", "re-key: sent by the leader", Rekey, Bytes, leader_bytes)
        .drawn("sent by the leader"),
    ScaleQuantity::new("rekey_air_bytes", "re-key: bytes on air", Rekey, Bytes, air_bytes)
        .drawn("bytes on air"),
    ScaleQuantity::new("rekey_airtime_seconds", "re-key: airtime", Rekey, Seconds, airtime).drawn("airtime"),
    ScaleQuantity::new("rekey_receiver_bytes", "re-key: bytes at receivers", Rekey, Bytes, receiver_bytes),
    ScaleQuantity::new("rekey_p50_seconds", "re-key: half of the drones have it", Rekey, Seconds, p50)
        .drawn("time until half have it"),
    ScaleQuantity::new("rekey_p99_seconds", "re-key: 99 % have it", Rekey, Seconds, p99)
        .drawn("time until 99 % have it"),
    ScaleQuantity::new("leave_cpu_seconds", "1 % leave: CPU time of the leader", Leave, Seconds, leader_cpu),
    ScaleQuantity::new("leave_bytes", "1 % leave: sent by the leader", Leave, Bytes, leader_bytes),
    ScaleQuantity::new("leave_air_bytes", "1 % leave: bytes on air", Leave, Bytes, air_bytes),
    ScaleQuantity::new("leave_airtime_seconds", "1 % leave: airtime", Leave, Seconds, airtime),
    ScaleQuantity::new("leave_receiver_bytes", "1 % leave: bytes at receivers", Leave, Bytes, receiver_bytes),
    ScaleQuantity::new("leave_p99_seconds", "1 % leave: 99 % have the next key", Leave, Seconds, p99),
    ScaleQuantity::new("form_cpu_seconds", "form: CPU time of the leader", Form, Seconds, leader_cpu),
    ScaleQuantity::new("form_p99_seconds", "form: 99 % have it", Form, Seconds, p99),
    ScaleQuantity::new("loss_p99_seconds", "leader lost: 99 % have a deputy's key", LoseLeader, Seconds, p99),
];
