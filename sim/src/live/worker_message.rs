//! Messages between a run and its workers: one JSON value per line over TCP.
//!
//! Messages are neither encrypted nor authenticated, tokens included. The drones are simulated and so are
//! their keys; even so the port belongs on a private network.
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
//! run → worker      Finish                     answered by Finished, and both hang up
//! worker → run      Failed                     in place of any answer
//! ```

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use quiver_ainq::KgcId;
use quiver_kem::KemSetting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

use super::drone_event::{DroneEvent, Exported};
use super::swarm::{OrderTerms, Request};
use crate::plan::TransportKind;

/// Version that both programs must share: each refuses another.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/5");
/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;
/// Greatest number of drones in one line.
pub(crate) const PER_LINE: usize = 512;

/// A command of a run to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerCommand {
    /// Settings that all drones share.
    Setup(Box<Setup>),
    /// Drones to host, with their tokens in hexadecimal digits; the last of several commands is marked.
    Drones { tokens: Vec<(u32, String)>, last: bool },
    /// Read the worker's clock.
    Clock,
    /// Enrol all, so many at a time.
    Enrol { kgcs: Vec<String>, at_once: usize },
    /// Start those from `first` to before `end`.
    Start { leaders: Vec<String>, first: u32, end: u32 },
    /// Ask these to do something.
    Ask { drones: Vec<u32>, request: Request },
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
pub(crate) struct Setup {
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

/// The checkpoint whose credentials drones have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AdmissionSetup {
    /// The period that it is.
    pub(crate) period: u64,
    /// Drones below this number join anonymously.
    pub(crate) certified: u32,
    /// Bytes of the checkpoint in hexadecimal digits.
    pub(crate) checkpoint: String,
}

/// A message of a worker to its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The worker is there.
    Hello { version: String },
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

impl WorkerMessage {
    /// Returns true if it is the last message of a worker.
    pub(crate) const fn is_last(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed { .. })
    }
}

/// Reason why a line could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    /// The other end is gone.
    #[error("the connection is closed")]
    Closed,
    /// A line is too long, or the network failed.
    #[error(transparent)]
    Line(#[from] tokio_util::codec::LinesCodecError),
    /// A line is malformed.
    #[error("not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// Reads messages, one a line.
#[derive(Debug)]
pub(crate) struct MessageReader(FramedRead<OwnedReadHalf, LinesCodec>);

/// Writes messages, one a line.
#[derive(Debug)]
pub(crate) struct MessageWriter(FramedWrite<OwnedWriteHalf, LinesCodec>);

/// Splits a connection into its two directions.
pub(crate) fn ends(stream: TcpStream) -> (MessageReader, MessageWriter) {
    // Latencies are measured through it. Where it cannot be had, they are a little longer.
    let _ = stream.set_nodelay(true);
    let (reading, writing) = stream.into_split();
    let codec = || LinesCodec::new_with_max_length(LONGEST);
    (MessageReader(FramedRead::new(reading, codec())), MessageWriter(FramedWrite::new(writing, codec())))
}

impl MessageReader {
    /// The next line.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, MessageError> {
        let line = self.0.next().await.ok_or(MessageError::Closed)??;
        Ok(serde_json::from_str(&line)?)
    }
}

impl MessageWriter {
    /// Writes a line, and what was fed before.
    pub(crate) async fn send(&mut self, what: &impl Serialize) -> Result<(), MessageError> {
        self.feed(what).await?;
        self.flush().await
    }

    /// Takes a line to be written with the next that is sent, or with the next flush.
    pub(crate) async fn feed(&mut self, what: &impl Serialize) -> Result<(), MessageError> {
        Ok(self.0.feed(serde_json::to_string(what)?).await?)
    }

    /// Writes what was fed.
    pub(crate) async fn flush(&mut self) -> Result<(), MessageError> {
        Ok(SinkExt::<String>::flush(&mut self.0).await?)
    }
}
