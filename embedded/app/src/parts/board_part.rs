//! The seam between a node and its optional parts. Each image uses of it what its parts use.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt::Arguments;
use core::time::Duration;

use quiver_crypto::Zeroizing;
use quiver_enrolment::Kgcs;
use quiver_group::Edge;
use quiver_group::edge::{EdgeCommand, EdgeEvent, Provisioning};
use quiver_machine::{Either, MachinePart, Now, Peer, Route, Snapshot, earlier};
use rand_core::CryptoRngCore;

use crate::console::{ConsoleLine, ConsoleOutput};
use crate::node::{BoardState, S};

/// State of the node that a part reads and changes while it is called.
pub(crate) struct PartContext<'a, R> {
    /// Time since the start.
    pub(crate) now: Duration,
    /// True if a request can be executed: all state is durable, and randomness is well.
    pub(crate) is_ready: bool,
    /// True if a machine beside the edge takes messages of its own.
    pub(crate) takes_extensions: bool,
    /// The edge, once the board is provisioned.
    pub(crate) edge: Option<&'a Edge<S>>,
    /// Bytes of the longest state that the flash has room for.
    pub(crate) state_limit: usize,
    /// Connections, console, clock, randomness, settings.
    pub(crate) board: &'a mut BoardState<R>,
}

impl<R: CryptoRngCore> PartContext<'_, R> {
    /// Returns true if the drone has its key.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.edge.is_some_and(|edge| edge.keypair().is_some())
    }

    /// The machine's clocks.
    pub(crate) fn times(&self) -> Now {
        self.board.times(self.now)
    }

    /// Prints one line on the console.
    pub(crate) fn print_line(&mut self, line: Arguments<'_>) {
        self.board.console.print_line(line);
    }
}

/// Request of a part that takes the machine or the flash: only the node has those.
pub(crate) enum PartRequest<C> {
    /// Hands the edge a command (left), or the machine beside it (right).
    Command(Either<EdgeCommand, C>),
    /// Hands the machine a message that was published to the group, as if this peer had relayed it.
    Publication {
        /// Peer that is connected.
        from: Peer,
        /// The encoded message.
        bytes: Vec<u8>,
    },
    /// Stores this state of the machine, which was stored before, once more, because the part's own stored state is
    /// another now.
    Store(Snapshot),
}

/// Answer of a part to a line on the console.
pub(crate) enum CommandAnswer<C> {
    /// The command is not one of this part's.
    Unknown,
    /// The command is executed, and the part has printed what came of it.
    Done,
    /// The command is malformed, for this reason.
    Malformed(&'static str),
    /// The command is one for the machine beside the edge.
    Command(C),
}

/// Command of a part's machine beside the edge.
pub(crate) type BesideCommand<P> = <<P as BoardPart>::Beside as MachinePart<S>>::Command;
/// Event of a part's machine beside the edge.
pub(crate) type BesideEvent<P> = <<P as BoardPart>::Beside as MachinePart<S>>::Event;

/// An optional part of a node. Everything but [`Beside`](Self::Beside) does nothing unless a part says otherwise.
///
/// Two parts are one, so that a list of them is. All calls are static: an image pays for the parts it has.
pub(crate) trait BoardPart {
    /// The machine beside the edge, `()` if the part has none. It keeps no records. Only the first part of a list may
    /// have one, because a pair of machines has a queue of outputs more for each input, for which images with two parts
    /// and no such machine would pay as well.
    type Beside: MachinePart<S, Record = Infallible>;

    /// Version of the [stored state](crate::stored_state) that has a record of this part, if it has any. Only the first
    /// part of a list may have one, because there is room for one record.
    const STATE_VERSION: Option<u8> = None;

    /// True if the board enrols with several KGCs as well.
    const TAKES_QUORUMS: bool = false;

    /// Makes the machine beside the edge.
    fn beside() -> Self::Beside;

    /// The KGCs of these settings; `None` if the part leaves that to others.
    fn kgcs(_settings: &Provisioning<S>) -> Option<Kgcs<S>> {
        None
    }

    /// Returns true if a datagram for everybody on a radio is one that the part takes. Asked before the node is, so
    /// that what nobody takes fills no queue.
    fn is_heard(_datagram: &[u8], _from_gateway: bool) -> bool {
        false
    }

    /// Takes a datagram from the medium; false if it is none of the part's.
    fn handle_datagram<R: CryptoRngCore>(&mut self, _cx: &mut PartContext<'_, R>, _datagram: &[u8]) -> bool {
        false
    }

    /// The next datagram for the gateway, beside those of the link. The clock is a function, because reading it costs
    /// something and most images never do.
    fn poll_datagram<R>(&mut self, _board: &BoardState<R>, _clock: fn() -> Duration) -> Option<Vec<u8>> {
        None
    }

    /// The next datagram for everybody on the medium.
    fn poll_broadcast(&mut self, _clock: fn() -> Duration) -> Option<Vec<u8>> {
        None
    }

    /// A session with the gateway has begun.
    fn session_began<R>(&mut self, _board: &mut BoardState<R>) {}

    /// A connection stands.
    fn connected<R: CryptoRngCore>(&mut self, _cx: &mut PartContext<'_, R>, _peer: Peer, _route: Route) {}

    /// A connection is gone.
    fn disconnected<R: CryptoRngCore>(&mut self, _cx: &mut PartContext<'_, R>, _peer: Peer) {}

    /// Takes a message from a peer; false if it is for the machine.
    fn received<R: CryptoRngCore>(
        &mut self,
        _cx: &mut PartContext<'_, R>,
        _from: Peer,
        _bytes: &[u8],
    ) -> bool {
        false
    }

    /// Returns true if the part needs connections to the KGCs.
    fn wants_kgcs(&self) -> bool {
        false
    }

    /// Does what is due, and returns the next request to the node. Called until there is none, while the node
    /// [is ready](PartContext::is_ready).
    fn poll_request<R: CryptoRngCore>(
        &mut self,
        _cx: &mut PartContext<'_, R>,
    ) -> Option<PartRequest<BesideCommand<Self>>> {
        None
    }

    /// Follows the machine and does what is due. Called after everything else, ready or not.
    fn step<R: CryptoRngCore>(&mut self, _cx: &mut PartContext<'_, R>) {}

    /// Deadline of the next [`poll_request`](Self::poll_request) or [`step`](Self::step).
    fn due<R: CryptoRngCore>(&self, _cx: &PartContext<'_, R>) -> Option<Duration> {
        None
    }

    /// The machine took an input, or there is another machine, or none.
    fn machine_changed(&mut self) {}

    /// Handles an event of the edge before the node does.
    fn edge_event<R>(&mut self, _board: &mut BoardState<R>, _event: &EdgeEvent) {}

    /// Handles an event of the machine beside the edge.
    fn beside_event<R>(&mut self, _board: &mut BoardState<R>, _event: BesideEvent<Self>) {}

    /// The medium is another: its datagrams have another length.
    fn medium_changed(&mut self) {}

    /// The part's record in the stored state; empty if there is nothing to store.
    fn record(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::default()
    }

    /// Takes the part's record and the machine's state as they are stored, for a new machine. The record is empty if
    /// none was stored.
    fn restore<R>(&mut self, _board: &mut BoardState<R>, _record: &[u8], _state: Option<&Snapshot>) {}

    /// The machine's state is stored, and with it the part's record.
    fn stored(&mut self, _state: Snapshot) {}

    /// Erases the record, because the state is too long beside it. False if there is none.
    fn erase_record<R>(&mut self, _board: &mut BoardState<R>) -> bool {
        false
    }

    /// The machine was dropped, because its state cannot be stored: the one stored before is restored later.
    fn discard_state(&mut self) {}

    /// Forgets everything.
    fn wipe(&mut self) {}

    /// Executes a command of the console.
    fn command<R: CryptoRngCore>(
        &mut self,
        _cx: &mut PartContext<'_, R>,
        _line: &ConsoleLine<'_>,
    ) -> CommandAnswer<BesideCommand<Self>> {
        CommandAnswer::Unknown
    }

    /// Prints a line of help for each command.
    fn print_help(_console: &mut ConsoleOutput) {}

    /// Prints the part's lines of the answer to `status`.
    fn print_status(&self, _console: &mut ConsoleOutput) {}
}

/// No part: the end of every list.
pub(crate) struct NoPart;

impl BoardPart for NoPart {
    type Beside = ();

    fn beside() {}
}

/// Two parts: the first is asked first, and it alone may have a machine and stored state.
impl<A: BoardPart, B: BoardPart<Beside = ()>> BoardPart for (A, B) {
    type Beside = A::Beside;

    const STATE_VERSION: Option<u8> = {
        assert!(B::STATE_VERSION.is_none(), "a stored state has room for the first part's record alone");
        A::STATE_VERSION
    };

    const TAKES_QUORUMS: bool = A::TAKES_QUORUMS || B::TAKES_QUORUMS;

    fn beside() -> A::Beside {
        A::beside()
    }

    fn kgcs(settings: &Provisioning<S>) -> Option<Kgcs<S>> {
        A::kgcs(settings).or_else(|| B::kgcs(settings))
    }

    fn is_heard(datagram: &[u8], from_gateway: bool) -> bool {
        A::is_heard(datagram, from_gateway) || B::is_heard(datagram, from_gateway)
    }

    fn handle_datagram<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, datagram: &[u8]) -> bool {
        self.0.handle_datagram(cx, datagram) || self.1.handle_datagram(cx, datagram)
    }

    fn poll_datagram<R>(&mut self, board: &BoardState<R>, clock: fn() -> Duration) -> Option<Vec<u8>> {
        self.0.poll_datagram(board, clock).or_else(|| self.1.poll_datagram(board, clock))
    }

    fn poll_broadcast(&mut self, clock: fn() -> Duration) -> Option<Vec<u8>> {
        self.0.poll_broadcast(clock).or_else(|| self.1.poll_broadcast(clock))
    }

    fn session_began<R>(&mut self, board: &mut BoardState<R>) {
        self.0.session_began(board);
        self.1.session_began(board);
    }

    fn connected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer, route: Route) {
        self.0.connected(cx, peer, route);
        self.1.connected(cx, peer, route);
    }

    fn disconnected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer) {
        self.0.disconnected(cx, peer);
        self.1.disconnected(cx, peer);
    }

    fn received<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, from: Peer, bytes: &[u8]) -> bool {
        self.0.received(cx, from, bytes) || self.1.received(cx, from, bytes)
    }

    fn wants_kgcs(&self) -> bool {
        self.0.wants_kgcs() || self.1.wants_kgcs()
    }

    fn poll_request<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
    ) -> Option<PartRequest<BesideCommand<Self>>> {
        if let Some(request) = self.0.poll_request(cx) {
            return Some(request);
        }
        self.1.poll_request(cx).map(|request| match request {
            PartRequest::Command(command) => PartRequest::Command(Either::Left(command.into_left())),
            PartRequest::Publication { from, bytes } => PartRequest::Publication { from, bytes },
            PartRequest::Store(state) => PartRequest::Store(state),
        })
    }

    fn step<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>) {
        self.0.step(cx);
        self.1.step(cx);
    }

    fn due<R: CryptoRngCore>(&self, cx: &PartContext<'_, R>) -> Option<Duration> {
        earlier(self.0.due(cx), self.1.due(cx))
    }

    fn machine_changed(&mut self) {
        self.0.machine_changed();
        self.1.machine_changed();
    }

    fn edge_event<R>(&mut self, board: &mut BoardState<R>, event: &EdgeEvent) {
        self.0.edge_event(board, event);
        self.1.edge_event(board, event);
    }

    fn beside_event<R>(&mut self, board: &mut BoardState<R>, event: BesideEvent<Self>) {
        self.0.beside_event(board, event);
    }

    fn medium_changed(&mut self) {
        self.0.medium_changed();
        self.1.medium_changed();
    }

    fn record(&self) -> Zeroizing<Vec<u8>> {
        self.0.record()
    }

    fn restore<R>(&mut self, board: &mut BoardState<R>, record: &[u8], state: Option<&Snapshot>) {
        self.0.restore(board, record, state);
    }

    fn stored(&mut self, state: Snapshot) {
        self.0.stored(state);
    }

    fn erase_record<R>(&mut self, board: &mut BoardState<R>) -> bool {
        self.0.erase_record(board)
    }

    fn discard_state(&mut self) {
        self.0.discard_state();
        self.1.discard_state();
    }

    fn wipe(&mut self) {
        self.0.wipe();
        self.1.wipe();
    }

    fn command<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        line: &ConsoleLine<'_>,
    ) -> CommandAnswer<BesideCommand<Self>> {
        match self.0.command(cx, line) {
            CommandAnswer::Unknown => {}
            answer => return answer,
        }
        match self.1.command(cx, line) {
            CommandAnswer::Unknown => CommandAnswer::Unknown,
            CommandAnswer::Done => CommandAnswer::Done,
            CommandAnswer::Malformed(reason) => CommandAnswer::Malformed(reason),
            CommandAnswer::Command(never) => match never {},
        }
    }

    fn print_help(console: &mut ConsoleOutput) {
        A::print_help(console);
        B::print_help(console);
    }

    fn print_status(&self, console: &mut ConsoleOutput) {
        self.0.print_status(console);
        self.1.print_status(console);
    }
}
