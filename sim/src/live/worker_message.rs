//! Messages between the rank that coordinates a run and those that host its drones: one JSON value each.
//!
//! ```text
//! worker → run      Hello
//! run → worker      Setup, Drones …            whom it hosts; answered by Ready
//! run → worker      Clock                      several times; answered by Clock
//! run → worker      Enrol | Start | Ask        one at a time; answered by Done
//! run → worker      AttributeKeys              answered by Done
//! run → worker      ReadOrders                 answered by OrdersRead
//! run → worker      Export                     answered by Exports
//! worker → run      Event, Blamed              whenever a drone reports something
//! run → worker      Finish                     answered by Finished, the worker's last message
//! worker → run      Failed                     in place of any answer, and the last
//! ```

use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_kem::KemSetting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::admission::AdmissionSetup;
use super::conditions::OrderTerms;
use super::drone_event::{DroneEvent, Exported};
use super::rank_line::{LONGEST, RankLine};
use super::swarm::SwarmRequest;
use crate::plan::TransportKind;

/// Version that all ranks must share: their programs may be of different nodes.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/6");
/// Greatest number of drones in one message.
pub(crate) const PER_MESSAGE: usize = 512;

/// A command of a run to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerCommand {
    /// Settings that all drones share.
    Setup(Box<WorkerSetup>),
    /// Drones to host, with their tokens in hexadecimal digits; the last of several commands is marked.
    Drones { tokens: Vec<(u32, String)>, last: bool },
    /// Read the worker's clock.
    Clock,
    /// Enrol all, so many at a time.
    Enrol { kgcs: Vec<String>, at_once: usize },
    /// Start those from `first` to before `end`.
    Start { leaders: Vec<String>, first: u32, end: u32 },
    /// Ask these to do something.
    Ask { drones: Vec<u32>, request: SwarmRequest },
    /// Hand all the attribute keys of their roles.
    AttributeKeys,
    /// Let these collect the key of an order's condition and open the order with it.
    ReadOrders { kgcs: Vec<String>, drones: Vec<u32>, terms: OrderTerms },
    /// Export the keys of these.
    Export { drones: Vec<u32> },
    /// The run is over.
    Finish,
}

/// Settings that all drones share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerSetup {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) kem: KemSetting,
    pub(crate) deputies: u32,
    /// The numbers of the relays that the worker hosts, in front of its drones.
    pub(crate) relays: Vec<u32>,
    /// Drones of the whole run.
    pub(crate) swarm: u32,
    /// The deployment's name.
    pub(crate) deployment: String,
    /// The KGC's public key in hexadecimal digits.
    pub(crate) master: String,
    /// The ids of the KGCs.
    pub(crate) kgcs: Vec<KgcId>,
    /// Checkpoint, if drones join anonymously.
    pub(crate) admission: Option<AdmissionSetup>,
}

/// A message of a worker to its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The worker is there, on the host of this name.
    Hello { version: String, host: String },
    /// The worker hosts this number of drones.
    Ready { drones: usize },
    /// Microseconds on its clock.
    Clock { micros: u64 },
    /// Done.
    Done,
    /// The drones that opened their order.
    OrdersRead(Vec<u32>),
    /// The exported keys.
    Exports(Vec<(u32, Option<Exported>)>),
    /// An event of a drone, at that time of the worker's clock in microseconds.
    Event { drone: u32, micros: u64, what: DroneEvent },
    /// A drone blamed a peer.
    Blamed { who: String, offence: String },
    /// The worker has finished: its CPU time and peak memory.
    Finished { cpu: Duration, peak_memory: Option<u64> },
    /// The worker has failed.
    Failed { why: String },
}

/// Reason why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    /// The other rank is gone.
    #[error("it is gone")]
    Closed,
    /// The message is longer than a line takes.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    /// The message is malformed.
    #[error("not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// Reads messages.
#[derive(Debug)]
pub(crate) struct MessageReader(mpsc::UnboundedReceiver<Vec<u8>>);

/// Writes messages.
#[derive(Clone, Debug)]
pub(crate) struct MessageWriter(mpsc::UnboundedSender<Vec<u8>>);

/// Splits a line into its two directions.
pub(crate) fn ends(line: RankLine) -> (MessageReader, MessageWriter) {
    let RankLine { outgoing, incoming } = line;
    (MessageReader(incoming), MessageWriter(outgoing))
}

impl MessageReader {
    /// The next message.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, MessageError> {
        let message = self.0.recv().await.ok_or(MessageError::Closed)?;
        Ok(serde_json::from_slice(&message)?)
    }
}

impl MessageWriter {
    /// Hands a message to the line, which carries it in order.
    pub(crate) fn send(&self, what: &impl Serialize) -> Result<(), MessageError> {
        let message = serde_json::to_vec(what)?;
        if message.len() > LONGEST {
            return Err(MessageError::TooLong(message.len()));
        }
        self.0.send(message).map_err(|_| MessageError::Closed)
    }
}
