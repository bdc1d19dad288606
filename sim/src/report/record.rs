//! The figures of an operation under the keys of `summary.json` and `operations.csv`: times in seconds,
//! energy in joules.

use std::time::Duration;

use quiver_world::run::{Phase, PhaseCosts};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct OperationRecord {
    phase: Phase,
    operation: String,
    drones: usize,
    leader_cpu_s: Option<f64>,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
    began_s: f64,
    took_s: f64,
    leader_bytes_sent: Option<u64>,
    epochs: usize,
    messages: Option<u64>,
    receiver_bytes: Option<u64>,
    air_bytes: Option<u64>,
    cpu_s: Option<f64>,
    airtime_s: Option<f64>,
    frames: Option<u64>,
    retransmissions: Option<u64>,
    energy_j: Option<f64>,
}

impl From<&PhaseCosts> for OperationRecord {
    fn from(operation: &PhaseCosts) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let (to_all, radio) = (operation.to_all, operation.radio);
        Self {
            phase: operation.phase,
            operation: operation.name(),
            drones: operation.drones,
            leader_cpu_s: seconds(operation.leader_cpu),
            p50_s: seconds(to_all.map(|all| all.p50)),
            p99_s: seconds(to_all.map(|all| all.p99)),
            max_s: seconds(to_all.map(|all| all.max)),
            began_s: operation.began.as_secs_f64(),
            took_s: operation.took.as_secs_f64(),
            leader_bytes_sent: operation.leader_bytes,
            epochs: operation.epochs,
            messages: operation.messages,
            receiver_bytes: operation.receiver_bytes,
            air_bytes: operation.air_bytes,
            cpu_s: seconds(operation.cpu),
            airtime_s: seconds(radio.map(|radio| radio.airtime)),
            frames: radio.map(|radio| radio.frames),
            retransmissions: radio.map(|radio| radio.retransmissions),
            energy_j: radio.map(|radio| radio.energy.joules()),
        }
    }
}
