//! What a run and its workers say to each other: one JSON value per line over TCP.
//!
//! Nothing of it is encrypted or authenticated, tokens included. The drones are simulated and so are their keys; even so the
//! port belongs on a network that nobody else is on.
//!
//! ```text
//! worker → run      Hello
//! run → worker      Setup, Drones …            whom it hosts; answered by Ready
//! run → worker      Clock                      several times; answered by Clock
//! run → worker      Enrol | TakeOff | Ask      one at a time; answered by Done
//! run → worker      Export                     answered by Exports
//! worker → run      Happened, Blamed           whenever a drone has something to say
//! run → worker      Finish                     answered by Finished, and both hang up
//! worker → run      Failed                     in place of any answer
//! ```

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use quiver_ainq::KgcId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

use super::happening::{Exported, Happening};
use super::swarm::Request;
use crate::plan::{SuiteKind, TransportKind};

/// What both must be built from: the one refuses another's.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");
/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;
/// How many drones one line is about at most.
pub(crate) const PER_LINE: usize = 512;

/// What a run says to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// What all drones share.
    Setup(Box<Setup>),
    /// Drones to host, with their tokens in hexadecimal digits. The last of several says so.
    Drones { tokens: Vec<(u32, String)>, last: bool },
    /// What time is it there?
    Clock,
    /// Enrol all, so many at a time.
    Enrol { kgcs: Vec<String>, at_once: usize },
    /// Start those from `first` to before `end`.
    TakeOff { leaders: Vec<String>, first: u32, end: u32 },
    /// Ask these to do something.
    Ask { drones: Vec<u32>, request: Request },
    /// What do these export?
    Export { drones: Vec<u32> },
    /// The run is over.
    Finish,
}

/// What all drones share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) suite: SuiteKind,
    pub(crate) deputies: u32,
    /// Drones of the whole run.
    pub(crate) swarm: u32,
    /// The deployment's name.
    pub(crate) deployment: String,
    /// The KGC's public key in hexadecimal digits.
    pub(crate) master: String,
    /// The ids of the KGCs.
    pub(crate) kgcs: Vec<KgcId>,
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Here it is.
    Hello { version: String },
    /// It hosts so many drones.
    Ready { drones: usize },
    /// Microseconds on its clock.
    Clock { micros: u64 },
    /// Done.
    Done,
    /// What the drones export.
    Exports(Vec<(u32, Option<Exported>)>),
    /// Something happened to a drone, at that time of the worker's clock in microseconds.
    Happened { drone: u32, micros: u64, what: Happening },
    /// A drone blamed somebody.
    Blamed { who: String, offence: String },
    /// What it took.
    Finished { cpu: Duration, peak_memory: Option<u64> },
    /// It cannot go on.
    Failed { why: String },
}

impl Word {
    /// Whether a worker says nothing after it.
    pub(crate) const fn is_last(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed { .. })
    }
}

/// Why a line could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The other end is gone.
    #[error("the connection is closed")]
    Closed,
    /// A line is too long, or the network failed.
    #[error(transparent)]
    Line(#[from] tokio_util::codec::LinesCodecError),
    /// A line is not what it should be.
    #[error("not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// Where lines come from.
#[derive(Debug)]
pub(crate) struct Incoming(FramedRead<OwnedReadHalf, LinesCodec>);

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Outgoing(FramedWrite<OwnedWriteHalf, LinesCodec>);

/// Both directions of a connection.
pub(crate) fn ends(stream: TcpStream) -> (Incoming, Outgoing) {
    // Latencies are measured through it. Where it cannot be had, they are a little longer.
    let _ = stream.set_nodelay(true);
    let (reading, writing) = stream.into_split();
    let codec = || LinesCodec::new_with_max_length(LONGEST);
    (Incoming(FramedRead::new(reading, codec())), Outgoing(FramedWrite::new(writing, codec())))
}

impl Incoming {
    /// The next line.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let line = self.0.next().await.ok_or(WireError::Closed)??;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Outgoing {
    /// Writes a line, and what was fed before.
    pub(crate) async fn send(&mut self, what: &impl Serialize) -> Result<(), WireError> {
        self.feed(what).await?;
        self.flush().await
    }

    /// Takes a line to be written with the next that is sent, or with the next flush.
    pub(crate) async fn feed(&mut self, what: &impl Serialize) -> Result<(), WireError> {
        Ok(self.0.feed(serde_json::to_string(what)?).await?)
    }

    /// Writes what was fed.
    pub(crate) async fn flush(&mut self) -> Result<(), WireError> {
        Ok(SinkExt::<String>::flush(&mut self.0).await?)
    }
}
