//! The contract between a role and whatever drives it: two calls, no I/O.
//!
//! [`Machine::handle_input`] takes a timeout, a received message or a command together with the time and a
//! source of randomness; [`Machine::poll_output`] yields what to do. The shape follows the sans-IO libraries
//! of the field (quinn-proto, str0m). Bytes go in and bytes come out, so that a driver knows neither suite
//! nor message.
//!
//! A driver keeps four rules:
//!
//! 1. After construction and after every input it drains [`Machine::poll_output`] until [`Output::Timeout`].
//! 2. Every [`Output::Persist`] is durable before any [`Output::Transmit`] that follows it leaves. If it
//!    cannot be made durable, nothing is transmitted and no further input is taken until it is.
//! 3. On start the machine is rebuilt from what was persisted.
//! 4. Transmission is one-way and may fail silently; machines keep their own deadlines.

use alloc::vec::Vec;
use core::time::Duration;

pub use quiver_ainq::KgcId;
use quiver_ainq::{Slot, UnixTime};
pub use quiver_message::MAX_MESSAGE_LEN;
use rand_core::CryptoRngCore;

use crate::job::{FinishedJob, Job};

/// Readings of the driver's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time since an arbitrary start; never goes back. Deadlines are on this clock.
    pub monotonic: Duration,
    /// Seconds since 1970-01-01T00:00:00Z. Validity is on this clock; it may jump.
    pub unix: UnixTime,
}

/// Tolerated difference between the clocks of two machines, in seconds. A greater one is reported to people.
pub const CLOCK_TOLERANCE: UnixTime = 600;

/// A connection partner, named by the driver. A handle is not reused while the machine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub u64);

impl Peer {
    /// Set in the handles of peers that are reached through a relay.
    const RELAYED: u64 = 1 << 63;

    /// The peer of this number behind a relay. A driver numbers its own from the other end.
    #[must_use]
    pub const fn relayed(number: u64) -> Self {
        Self(number | Self::RELAYED)
    }

    /// Returns true if the peer is reached through a relay (docs/protocol.md, §21).
    #[must_use]
    pub const fn is_relayed(self) -> bool {
        self.0 & Self::RELAYED != 0
    }
}

/// Route of a connection, by the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// An address configured as a KGC's, which this node dialled.
    Kgc,
    /// An address configured as a leader's, which this node dialled.
    Leader,
    /// The peer dialled this node.
    Inbound,
    /// The peer is this KGC of this node's own quorum, whichever of both dialled: its transport identity is
    /// pinned, and the driver has authenticated it.
    Member(KgcId),
    /// The peer is a relay of this leader: its transport identity is pinned, and the driver has authenticated
    /// it. The drones behind it said what it says.
    Relay,
}

impl Route {
    /// Returns true if the peer dialled this node, so that nothing is known of it but what it proves.
    #[must_use]
    pub const fn is_inbound(self) -> bool {
        matches!(self, Self::Inbound | Self::Relay)
    }
}

/// Way by which a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// Received over the connection with the peer named as its sender: that peer sent it.
    Peer,
    /// Received by the group's topic: the peer passed it on, and is not known to have written it.
    Group,
}

/// Input of a machine, from its driver.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a, C> {
    /// The deadline of the last [`Output::Timeout`] has come (or might have: early calls are harmless).
    Timeout,
    /// A connection stands.
    Connected {
        /// The partner.
        peer: Peer,
        /// Route of the connection.
        route: Route,
    },
    /// The last connection to the partner is gone.
    Disconnected {
        /// The partner.
        peer: Peer,
    },
    /// A message came. At most [`MAX_MESSAGE_LEN`] bytes; longer ones are blamed on the sender.
    Received {
        /// The peer that delivered it (not necessarily its author).
        from: Peer,
        /// Way of the message: a message by the group may have been published by anybody.
        via: Via,
        /// The encoded message.
        bytes: &'a [u8],
    },
    /// The machine may be a copy of what it was before, brought back with its memory, and another copy may be
    /// running: the clocks have jumped apart. Treated as a start is, but for connections: what must not
    /// happen twice begins anew.
    Resumed,
    /// The operator or the application wants something.
    Command(C),
}

impl<'a, C> Input<'a, C> {
    /// The same with another machine's kind of commands, for a machine within another; `None` for a command that is none
    /// of them.
    pub fn filter_map<D>(self, command: impl FnOnce(C) -> Option<D>) -> Option<Input<'a, D>> {
        Some(match self {
            Self::Timeout => Input::Timeout,
            Self::Connected { peer, route } => Input::Connected { peer, route },
            Self::Disconnected { peer } => Input::Disconnected { peer },
            Self::Received { from, via, bytes } => Input::Received { from, via, bytes },
            Self::Resumed => Input::Resumed,
            Self::Command(what) => Input::Command(command(what)?),
        })
    }
}

/// Destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A connection partner.
    Peer(Peer),
    /// All subscribers of the group's topic.
    Group,
}

/// Reason to disconnect a peer: no honest peer does it, at whatever time its messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Misdeed {
    /// The peer sent, over its own connection, an invalid signature.
    Forgery,
    /// The peer sent many messages that cannot be read, or whose authentication codes do not verify.
    Garbage,
}

impl Misdeed {
    /// Name of the misdeed in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forgery => "forgery",
            Self::Garbage => "garbage",
        }
    }
}

/// Output of a machine, in order.
#[derive(Debug)]
pub enum Output<E, R> {
    /// Make this durable before anything that follows is transmitted.
    Persist(R),
    /// Send an encoded message.
    Transmit {
        /// The destination.
        to: Destination,
        /// The encoded message, at most [`MAX_MESSAGE_LEN`] bytes.
        payload: Vec<u8>,
    },
    /// An event that the operator or the application may want to know.
    Event(E),
    /// Disconnect this peer and never talk to it again.
    Block(Peer),
    /// Disconnect this peer, which may come again at once.
    Disconnect(Peer),
    /// Sets if a hub relays and processes this peer's group messages. It relays none without this output; it
    /// ends with the connection.
    Relay {
        /// The peer.
        peer: Peer,
        /// True if they are relayed.
        allowed: bool,
    },
    /// Disconnect this peer and refuse it for a while: for longer each time. A driver never disconnects a
    /// peer that it dialled.
    Penalize {
        /// The peer to disconnect.
        peer: Peer,
        /// The reason.
        misdeed: Misdeed,
    },
    /// Rest: no more to do until an input comes or the monotonic clock reaches the deadline.
    Timeout(Option<Duration>),
}

impl<E, R> Output<E, R> {
    /// The same with another machine's kinds of events and records: for a machine that is several in one.
    pub fn map<F, Q>(self, event: impl FnOnce(E) -> F, record: impl FnOnce(R) -> Q) -> Output<F, Q> {
        match self {
            Self::Persist(what) => Output::Persist(record(what)),
            Self::Transmit { to, payload } => Output::Transmit { to, payload },
            Self::Event(what) => Output::Event(event(what)),
            Self::Block(peer) => Output::Block(peer),
            Self::Disconnect(peer) => Output::Disconnect(peer),
            Self::Relay { peer, allowed } => Output::Relay { peer, allowed },
            Self::Penalize { peer, misdeed } => Output::Penalize { peer, misdeed },
            Self::Timeout(deadline) => Output::Timeout(deadline),
        }
    }
}

/// A message for members behind relays, each of whom needs another part of it ([`Machine::take_broadcast`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedBroadcast {
    /// An encoded re-key with all wraps.
    pub message: Vec<u8>,
    /// The members, behind relays ([`Peer::is_relayed`]).
    pub members: Vec<(Peer, Slot)>,
}

/// A role: deterministic, given its inputs.
pub trait Machine {
    /// Command of the operator or the application.
    type Command;
    /// Event reported to the application.
    type Event;
    /// Record that must survive a crash.
    type Record;

    /// Takes one input. Never panics and never fails: what is wrong with an input is an event that blames its
    /// sender.
    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore);

    /// The next thing to do. Ends with [`Output::Timeout`].
    fn poll_output(&mut self) -> Output<Self::Event, Self::Record>;

    /// Work for another thread, if the machine was set up to let its driver do some: the driver asks after
    /// every input until there is none, does the work on other threads, and gives each result to
    /// [`finish_job`](Self::finish_job).
    fn take_job(&mut self) -> Option<Job> {
        None
    }

    /// A broadcast that relays are sent once, and that they cut for their drones (docs/protocol.md, 21.3): asked for
    /// behind the outputs that follow an input, until there is none.
    fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
        None
    }

    /// Takes what came of a job. To be followed by what follows an input.
    fn finish_job(&mut self, _now: Now, _done: FinishedJob, _rng: &mut dyn CryptoRngCore) {}
}
