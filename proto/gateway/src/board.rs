//! A board: its endpoint, and its nodes on the network.

mod peers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quiver_link::{
    EndpointLimits, GatewayEndpoint, GatewayEvent, LinkError, MESSAGE_OVERHEAD, ToBoard, Wants,
};
use quiver_machine::{Destination, Route, Via};
use rand::Rng;
use rand::rngs::OsRng;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, sleep_until};

use self::peers::{BoardNode, BoardPeers};
use crate::broadcasts::Notice;
use crate::line::Leaving;
use crate::rate_limits::StartLimiter;
use crate::relay::{BoardCommand, BoardNodeEvent, GatewayNode};
use crate::{GatewayConfig, LineAddress};

/// The longest message in bytes to or from a board: a group message of 64 KiB with all that is around it.
const MAX_MESSAGE: usize = 72 * 1024;
/// Broadcasts that it did not confirm and that wait to be sent in its session.
const MISSED: usize = 16;
/// The time between two starts of a node for one board.
const BETWEEN_STARTS: Duration = Duration::from_secs(1);
/// Time for which a board that has gone is remembered.
const REMEMBERED: Duration = Duration::from_secs(30);

/// Line and address of a board.
#[derive(Clone, Debug)]
pub(crate) struct BoardAddress {
    pub(crate) line: LineAddress,
    pub(crate) address: u16,
}

impl fmt::Display for BoardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            0 => write!(f, "{}", self.line),
            address => write!(f, "{}#{address:04x}", self.line),
        }
    }
}

/// A board's task.
pub(crate) struct BoardTask {
    config: Arc<GatewayConfig>,
    place: BoardAddress,
    inbox: mpsc::Receiver<Vec<u8>>,
    leaving: mpsc::Sender<Leaving>,
    broadcasts: mpsc::Sender<Notice>,
    /// Broadcasts that the board did not confirm, if it takes any.
    missed: Option<mpsc::Receiver<Vec<u8>>>,
    /// Fragments that the endpoint had sent, and repeated, when that was last said.
    fragments: (u64, u64),
    starts: Arc<StartLimiter>,
    begun: Instant,
    endpoint: GatewayEndpoint,
    /// A datagram that waits for the line.
    pending: Option<Vec<u8>>,
    leaders: Option<GatewayNode>,
    kgcs: Option<GatewayNode>,
    peers: BoardPeers,
    /// Connections that the board wants, while there is a session.
    wants: Option<Wants>,
    /// The longest payload it takes in bytes.
    longest: usize,
    /// Time from which on nodes may be started, if some are to be.
    start_at: Option<Instant>,
    last_start: Option<Instant>,
    dropped: Dropped,
    /// Time since which there is no session.
    idle_since: Instant,
}

/// Messages of this session that were not relayed.
#[derive(Clone, Copy, Debug, Default)]
struct Dropped {
    /// Messages longer than the board takes.
    too_long: u64,
    /// Messages of the board without a receiver, or faster than the network takes them.
    from_board: u64,
}

/// Event that woke a board's task.
enum TaskWakeup {
    Datagram(Option<Vec<u8>>),
    Node(BoardNode, Option<BoardNodeEvent>),
    Missed(Option<Vec<u8>>),
    Room,
    Time,
}

impl BoardTask {
    pub(crate) fn new(
        config: Arc<GatewayConfig>,
        place: BoardAddress,
        inbox: mpsc::Receiver<Vec<u8>>,
        (leaving, broadcasts): (mpsc::Sender<Leaving>, mpsc::Sender<Notice>),
        starts: Arc<StartLimiter>,
    ) -> Self {
        // Address 0 is the board at the end of the line; others are behind a dongle's radio.
        let limits = if place.address == 0 {
            EndpointLimits::line(MAX_MESSAGE)
        } else {
            EndpointLimits::radio(MAX_MESSAGE)
        };
        let now = Instant::now();
        Self {
            config,
            place,
            inbox,
            leaving,
            broadcasts,
            missed: None,
            fragments: (0, 0),
            starts,
            begun: now,
            endpoint: GatewayEndpoint::new(limits, OsRng.r#gen()),
            pending: None,
            leaders: None,
            kgcs: None,
            peers: BoardPeers::default(),
            wants: None,
            longest: 0,
            start_at: None,
            last_start: None,
            dropped: Dropped::default(),
            idle_since: now,
        }
    }

    /// Serves the board until it has been gone for a while.
    pub(crate) async fn serve(mut self) {
        loop {
            self.settle();
            match self.wait().await {
                TaskWakeup::Datagram(Some(datagram)) => {
                    let now = self.now();
                    self.endpoint.handle_datagram(now, &datagram);
                }
                // The line ended this board.
                TaskWakeup::Datagram(None) => return,
                TaskWakeup::Node(side, Some(event)) => self.handle_node_event(side, event),
                TaskWakeup::Node(side, None) => self.node_stopped(side),
                TaskWakeup::Missed(Some(bytes)) => self.send_publication(bytes),
                // The line's broadcasts go on for as long as it is served.
                TaskWakeup::Missed(None) => self.missed = None,
                TaskWakeup::Room => {}
                TaskWakeup::Time => {
                    let now = self.now();
                    self.endpoint.handle_timeout(now);
                    self.start_nodes();
                    // Its place is for another board, until it says hello again.
                    if self.wants.is_none() && self.idle_since.elapsed() >= REMEMBERED {
                        return;
                    }
                }
            }
        }
    }

    async fn wait(&mut self) -> TaskWakeup {
        let at = self.wake_at();
        tokio::select! {
            datagram = self.inbox.recv() => TaskWakeup::Datagram(datagram),
            event = next(&mut self.leaders) => TaskWakeup::Node(BoardNode::Leaders, event),
            event = next(&mut self.kgcs) => TaskWakeup::Node(BoardNode::Kgcs, event),
            missed = next_missed(&mut self.missed) => TaskWakeup::Missed(missed),
            room = self.leaving.reserve(), if self.pending.is_some() => {
                if let (Ok(room), Some(datagram)) = (room, self.pending.take()) {
                    // One datagram at a time is taken from the endpoint, so that a slow line holds up the
                    // session, not the memory.
                    room.send((self.place.address, datagram));
                }
                TaskWakeup::Room
            }
            () = sleep_until(at) => TaskWakeup::Time,
        }
    }

    fn wake_at(&self) -> Instant {
        let forgotten = self.idle_since + REMEMBERED;
        let forgotten = self.wants.is_none().then_some(forgotten);
        let endpoint = self.endpoint.timeout().map(|at| self.begun + at);
        let times = [forgotten, endpoint, self.start_at];
        // There is a session, which has a timeout, or there is none, which ends.
        times.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + REMEMBERED)
    }

    /// The endpoint's clock.
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Executes the board's messages and makes the next datagram.
    fn settle(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.carry_out(event);
        }
        if self.pending.is_none() {
            let (now, unix_time) = (self.now(), (self.config.unix_time)());
            self.pending = self.endpoint.poll_datagram(now, unix_time);
        }
    }

    fn carry_out(&mut self, event: GatewayEvent) {
        match event {
            GatewayEvent::Begun { wants, max_message } => self.begin(wants, max_message),
            GatewayEvent::Wants(wants) => self.want(wants),
            GatewayEvent::Transmit { to, payload } => self.transmit(to, payload),
            GatewayEvent::Block { peer } => self.block(peer),
            GatewayEvent::Report(report) => tracing::info!(board = %self.place, "report: {report}"),
            GatewayEvent::TakesBroadcasts { max_message } => self.take_broadcasts(max_message),
            GatewayEvent::HasBroadcast { digest } => {
                self.notify(Notice::Has { board: self.place.address, digest });
            }
            GatewayEvent::Lost => self.end(),
        }
    }

    /// The board takes coded broadcasts: on the radio, where others hear them, too.
    fn take_broadcasts(&mut self, max_message: u32) {
        let board = self.place.address;
        // A line has one board: a broadcast would save nothing.
        if board != 0 {
            let (sender, missed) = mpsc::channel(MISSED);
            let longest = usize::try_from(max_message).unwrap_or(MAX_MESSAGE).min(self.longest);
            if self.notify(Notice::Takes { board, longest, missed: sender }) {
                self.missed = Some(missed);
            }
        }
    }

    /// Tells the line's broadcasts something; whether they have room for it.
    fn notify(&self, notice: Notice) -> bool {
        self.broadcasts.try_send(notice).is_ok()
    }

    /// Sends what was published to the group as a broadcast, or in the session if too much waits.
    fn publish(&mut self, message: Vec<u8>) {
        let (sent, repeated) = (self.endpoint.fragments(), self.endpoint.counters().repeated);
        let (sent_before, repeated_before) = self.fragments;
        let notice = Notice::Published {
            board: self.place.address,
            message,
            sent: sent.saturating_sub(sent_before),
            repeated: repeated.saturating_sub(repeated_before),
        };
        match self.broadcasts.try_send(notice) {
            Ok(()) => self.fragments = (sent, repeated),
            // The broadcasts are behind: it is sent in the board's session, as without them.
            Err(TrySendError::Full(Notice::Published { message, .. })) => self.send_publication(message),
            Err(_) => {}
        }
    }

    /// Sends in the session what was published to the group, which is as good from any leader.
    fn send_publication(&mut self, bytes: Vec<u8>) {
        if let Some(from) = self.peers.first(BoardNode::Leaders) {
            self.send_to_board(&ToBoard::Received { from, via: quiver_link::Via::Group, bytes });
        }
    }

    fn forget_broadcasts(&mut self) {
        if self.missed.take().is_some() {
            // Without room for the notice, the board is one that confirms nothing.
            self.notify(Notice::Gone { board: self.place.address });
        }
    }

    fn begin(&mut self, wants: Wants, max_message: u32) {
        tracing::info!(
            board = %self.place, group = wants.group().unwrap_or("-"), kgc = wants.kgc, max_message, "board connected"
        );
        self.longest = usize::try_from(max_message).unwrap_or(MAX_MESSAGE).min(MAX_MESSAGE);
        // A longer message is dropped at the node, before it waits anywhere.
        self.longest = self.longest.saturating_sub(MESSAGE_OVERHEAD);
        self.dropped = Dropped::default();
        self.forget_broadcasts();
        self.want(wants);
    }

    /// Stops nodes that are no longer wanted, and starts those that are wanted now.
    fn want(&mut self, wants: Wants) {
        let foreign = wants.group().is_some_and(|group| group != self.config.group);
        if foreign {
            let group = wants.group().unwrap_or_default();
            tracing::warn!(board = %self.place, group, "the board wants another group than this leader's");
        }
        // A node has one topic from its start on, so that another group takes another node.
        if self.leaders.is_some() && self.topic(self.wants.as_ref()) != self.topic(Some(&wants)) {
            self.stop(BoardNode::Leaders);
        }
        if !wants.kgc {
            self.stop(BoardNode::Kgcs);
        }
        self.wants = Some(wants);
        self.start_soon();
    }

    /// The group whose topic is subscribed.
    fn topic<'a>(&self, wants: Option<&'a Wants>) -> Option<&'a str> {
        wants.and_then(Wants::group).filter(|group| *group == self.config.group)
    }

    fn is_wanted(&self, side: BoardNode) -> bool {
        match (side, &self.wants) {
            (_, None) => false,
            (BoardNode::Leaders, Some(_)) => self.leaders.is_none(),
            (BoardNode::Kgcs, Some(wants)) => wants.kgc && self.kgcs.is_none(),
        }
    }

    fn start_soon(&mut self) {
        if self.start_at.is_none() && (self.is_wanted(BoardNode::Leaders) || self.is_wanted(BoardNode::Kgcs))
        {
            let now = Instant::now();
            // Bounded for each board and each line: a start draws a key and dials.
            let own = self.last_start.map_or(now, |last| last + BETWEEN_STARTS);
            self.start_at = Some(self.starts.next(now).max(own));
        }
    }

    fn start_nodes(&mut self) {
        if self.start_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.start_at = None;
        self.last_start = Some(Instant::now());
        let group = self.topic(self.wants.as_ref());
        let config = &self.config;
        let started = [(BoardNode::Leaders, Route::Leader, group), (BoardNode::Kgcs, Route::Kgc, None)].map(
            |(side, route, group)| {
                self.is_wanted(side).then(|| GatewayNode::start(config, route, group, self.longest))
            },
        );
        let [leaders, kgcs] = started.map(|node| match node {
            Some(Err(error)) => {
                tracing::warn!(board = %self.place, "no node for the board: {error}; trying again");
                None
            }
            Some(Ok(node)) => Some(node),
            None => None,
        });
        self.leaders = self.leaders.take().or(leaders);
        self.kgcs = self.kgcs.take().or(kgcs);
        // One that failed to start is tried again.
        self.start_soon();
    }

    /// Stops a node; its peers are gone.
    fn stop(&mut self, side: BoardNode) {
        match side {
            BoardNode::Leaders => self.leaders = None,
            BoardNode::Kgcs => self.kgcs = None,
        }
        for peer in self.peers.remove_all(side) {
            // The board's machine must not wait for answers of peers that it lost.
            self.send_to_board(&ToBoard::Disconnected { peer });
        }
    }

    fn node_stopped(&mut self, side: BoardNode) {
        self.stop(side);
        self.start_soon();
    }

    /// The session is over.
    fn end(&mut self) {
        let Dropped { too_long, from_board } = self.dropped;
        tracing::info!(board = %self.place, too_long, from_board, "board gone");
        self.wants = None;
        self.start_at = None;
        self.leaders = None;
        self.kgcs = None;
        // Numbers of peers are of a session, and the next one begins without any.
        self.peers = BoardPeers::default();
        self.forget_broadcasts();
        self.idle_since = Instant::now();
    }

    fn handle_node_event(&mut self, side: BoardNode, event: BoardNodeEvent) {
        match event {
            BoardNodeEvent::Connected { peer, route } => {
                if let Some((peer, route)) = self.peers.add(side, peer, route) {
                    self.send_to_board(&ToBoard::Connected { peer, route });
                }
            }
            BoardNodeEvent::Disconnected { peer } => {
                if let Some(peer) = self.peers.remove(side, peer) {
                    self.send_to_board(&ToBoard::Disconnected { peer });
                }
            }
            // A board that takes broadcasts is sent a publication once for all of the line's boards.
            BoardNodeEvent::Received { from, via: Via::Group, bytes } if self.missed.is_some() => {
                if self.peers.number(side, from).is_some() {
                    self.publish(bytes);
                }
            }
            BoardNodeEvent::Received { from, via, bytes } => {
                let via = match via {
                    Via::Peer => quiver_link::Via::Peer,
                    Via::Group => quiver_link::Via::Group,
                };
                if let Some(from) = self.peers.number(side, from) {
                    self.send_to_board(&ToBoard::Received { from, via, bytes });
                }
            }
            BoardNodeEvent::TooLong { bytes } => self.too_long(bytes),
        }
    }

    fn send_to_board(&mut self, message: &ToBoard) {
        if let Err(LinkError::MessageTooLong { len, .. }) = self.endpoint.send(message) {
            self.too_long(len);
        }
    }

    fn too_long(&mut self, bytes: usize) {
        if self.dropped.too_long == 0 {
            let longest = self.longest;
            tracing::warn!(board = %self.place, bytes, longest, "a message is longer than the board takes");
        }
        self.dropped.too_long += 1;
    }

    fn transmit(&mut self, to: quiver_link::Destination, payload: Vec<u8>) {
        let (node, to) = match to {
            quiver_link::Destination::Group => (self.leaders.as_ref(), Some(Destination::Group)),
            quiver_link::Destination::Peer(peer) => match self.peers.find(peer) {
                Some((side, peer)) => (self.node(side), Some(Destination::Peer(peer))),
                None => (None, None),
            },
        };
        // Without a topic there is no group to send to.
        let to = to.filter(|to| *to != Destination::Group || self.topic(self.wants.as_ref()).is_some());
        let taken = match (node, to) {
            (Some(node), Some(to)) => node.order(BoardCommand::Transmit { to, payload }),
            _ => false,
        };
        self.dropped.from_board += u64::from(!taken);
    }

    fn block(&mut self, peer: u64) {
        if let Some((side, peer)) = self.peers.find(peer)
            && let Some(node) = self.node(side)
        {
            // If there is no room, the board will find fault with it again.
            node.order(BoardCommand::Block(peer));
        }
    }

    fn node(&self, side: BoardNode) -> Option<&GatewayNode> {
        match side {
            BoardNode::Leaders => self.leaders.as_ref(),
            BoardNode::Kgcs => self.kgcs.as_ref(),
        }
    }
}

/// The next broadcast that the board did not confirm; never, if it takes none.
async fn next_missed(missed: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match missed {
        Some(missed) => missed.recv().await,
        None => std::future::pending().await,
    }
}

/// The next event of a node; never, if there is none.
async fn next(node: &mut Option<GatewayNode>) -> Option<BoardNodeEvent> {
    match node {
        Some(node) => node.next_event().await,
        None => std::future::pending().await,
    }
}
