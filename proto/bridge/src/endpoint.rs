//! Endpoints: where MAVLink programs on this machine, autopilots and ground stations, are connected.
//!
//! Each connection is a *link*: one of a serial line, of a UDP endpoint, of each client of a TCP server.
//! An endpoint that goes away is opened again.

mod cut_frames;
mod serial;
mod tcp;
mod udp;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_mavlink::{Endpoint, EndpointConfig};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cut_frames::WholeFrames;
use crate::error::BridgeError;

/// Frames that wait for one program; beyond they are lost.
const WAITING: usize = 256;
/// Bytes read at a time.
const CHUNK: usize = 4_096;

/// Names a link; never used again for another.
pub(crate) type LinkId = u64;

/// Event at endpoints.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A link has been opened.
    Opened {
        /// The endpoint, by its number.
        endpoint: usize,
        /// The link.
        link: LinkId,
        /// Takes what is sent to the program.
        out: mpsc::Sender<Vec<u8>>,
    },
    /// Bytes came.
    Bytes {
        /// The link.
        link: LinkId,
        /// The bytes.
        bytes: Vec<u8>,
        /// True if the bytes are whole frames.
        whole: bool,
        /// Bytes that came before or among them and belong to no frame.
        skipped: u64,
        /// Time of the arrival.
        at: Instant,
    },
    /// The link is gone.
    Closed {
        /// The link.
        link: LinkId,
    },
}

/// An endpoint's side towards the bridge.
#[derive(Clone, Debug)]
pub(crate) struct EndpointPort {
    endpoint: usize,
    events: mpsc::Sender<LinkEvent>,
    next: Arc<AtomicU64>,
    /// Told when a program has taken something.
    drained: Arc<Notify>,
}

/// One link's side towards the bridge.
#[derive(Debug)]
struct LinkHalves {
    inward: Inward,
    outward: Outward,
}

/// One link's direction to the bridge.
#[derive(Debug)]
struct Inward {
    link: LinkId,
    events: mpsc::Sender<LinkEvent>,
}

/// One link's direction from the bridge.
#[derive(Debug)]
struct Outward {
    frames: mpsc::Receiver<Vec<u8>>,
    drained: Arc<Notify>,
}

/// The bridge is gone.
#[derive(Debug)]
struct Gone;

impl EndpointPort {
    pub(crate) const fn new(
        endpoint: usize,
        events: mpsc::Sender<LinkEvent>,
        next: Arc<AtomicU64>,
        drained: Arc<Notify>,
    ) -> Self {
        Self { endpoint, events, next, drained }
    }

    async fn open(&self) -> Result<LinkHalves, Gone> {
        // Bounded, because a program that hangs must not take memory. More than a datagram's frames, for
        // which the bridge keeps room at each program (`bridge/links.rs`), or all would count as behind.
        let (out, receiver) = mpsc::channel(WAITING);
        let link = self.next.fetch_add(1, Ordering::Relaxed);
        let opened = LinkEvent::Opened { endpoint: self.endpoint, link, out };
        // Waits, unlike datagrams: the bridge reads links only as fast as programs take what they are sent.
        self.events.send(opened).await.map_err(|_| Gone)?;
        let inward = Inward { link, events: self.events.clone() };
        Ok(LinkHalves { inward, outward: Outward { frames: receiver, drained: Arc::clone(&self.drained) } })
    }
}

impl LinkHalves {
    async fn receive(&self, bytes: &[u8]) -> Result<(), Gone> {
        self.inward.receive(bytes).await
    }

    /// Hands whole frames of datagrams to the bridge.
    async fn receive_whole(&self, frames: WholeFrames) -> Result<(), Gone> {
        self.inward.hand_over(frames.bytes, true, frames.skipped).await
    }

    async fn next_frame(&mut self) -> Option<Vec<u8>> {
        self.outward.next_frame().await
    }

    async fn close(self) {
        self.inward.close().await;
    }
}

impl Inward {
    /// Hands bytes to the bridge, and waits while it is behind: the system's buffers hold them meanwhile.
    async fn receive(&self, bytes: &[u8]) -> Result<(), Gone> {
        self.hand_over(bytes.to_vec(), false, 0).await
    }

    async fn hand_over(&self, bytes: Vec<u8>, whole: bool, skipped: u64) -> Result<(), Gone> {
        if bytes.is_empty() && skipped == 0 {
            return Ok(());
        }
        let event = LinkEvent::Bytes { link: self.link, bytes, whole, skipped, at: Instant::now() };
        self.events.send(event).await.map_err(|_| Gone)
    }

    async fn close(self) {
        // The bridge may be gone, and then knows.
        let _ = self.events.send(LinkEvent::Closed { link: self.link }).await;
    }
}

impl Outward {
    /// The next frame for the program; `None` if the bridge is gone.
    async fn next_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.recv().await;
        // The bridge may wait for room at this link.
        self.drained.notify_one();
        frame
    }

    /// Drops the frames that wait.
    fn discard(&mut self) {
        while self.frames.try_recv().is_ok() {}
        self.drained.notify_one();
    }
}

/// Takes the port that an endpoint listens at, and gives it back.
pub(crate) async fn check(endpoint: &Endpoint) -> Result<(), BridgeError> {
    let taken = match endpoint {
        Endpoint::UdpIn(at) => crate::carrier::bind(at).await.map(drop),
        Endpoint::TcpIn(at) => tcp::listen(at).await.map(drop),
        // Others wait for a server, a peer or a device: that none is there yet is no error.
        _ => Ok(()),
    };
    taken.map_err(|source| BridgeError::Open { place: endpoint.to_string(), source })
}

/// Opens an endpoint; its tasks end with `tasks`.
pub(crate) async fn open(
    config: &EndpointConfig,
    port: EndpointPort,
    tasks: &mut JoinSet<()>,
) -> Result<(), BridgeError> {
    let failed = |source| BridgeError::Open { place: config.endpoint.to_string(), source };
    if let Endpoint::UdpIn(at) | Endpoint::TcpIn(at) = &config.endpoint
        && at.host.parse().is_ok_and(|host: IpAddr| host.is_unspecified())
    {
        // MAVLink authenticates nobody without a key for signing: whoever reaches the port gives commands.
        tracing::warn!(
            endpoint = %config.endpoint,
            "{} takes commands from every network of this machine: name the address that programs are to reach, \
             127.0.0.1 for those on this machine",
            config.endpoint
        );
    }
    match &config.endpoint {
        Endpoint::UdpIn(at) => {
            let socket = crate::carrier::bind(at).await.map_err(failed)?;
            tasks.spawn(udp::serve_in(port, socket));
        }
        Endpoint::UdpOut(to) => {
            tasks.spawn(udp::serve_out(port, to.clone()));
        }
        Endpoint::UdpBroadcast(to) => {
            tasks.spawn(udp::serve_broadcast(port, to.clone()));
        }
        Endpoint::TcpIn(at) => {
            let listener = tcp::listen(at).await.map_err(failed)?;
            tasks.spawn(tcp::serve_in(port, listener));
        }
        Endpoint::Tcp(to) => {
            tasks.spawn(tcp::serve_out(port, to.clone(), config.retry_after));
        }
        Endpoint::Serial { device, baud } => {
            tasks.spawn(serial::serve(port, device.clone(), *baud, config.flow_control));
        }
    }
    Ok(())
}
