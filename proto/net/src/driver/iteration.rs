//! An iteration of the driver's loop: gives the machine a batch of inputs, and carries out its outputs.

use std::task::{Context, Poll};
use std::time::Duration;

use quiver_machine::{Destination, FinishedJob, Input, Machine, Misdeed, Output, Peer, Route, Via};
use tokio::time::Instant;
use tracing::Span;

use super::Driver;
use crate::clock_sync::ClockReply;
use crate::frame::RequestFrame;
use crate::handle::{CommandWaiter, PendingCommand};
use crate::host::Host;
use crate::network::{AnswerChannel, ClockAnswer, ClockQuestion, Incoming};
use crate::request::RequestId;

/// The shortest time between two wake-ups that a machine asked for: one that asks for the past does not spin.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// An input, owned.
pub(super) enum OwnedInput<C> {
    Timeout,
    Connected {
        peer: Peer,
        route: Route,
        place: String,
    },
    Disconnected {
        peer: Peer,
    },
    Resumed,
    Message {
        from: Peer,
        via: Via,
        bytes: Vec<u8>,
        request: Option<RequestId>,
        answer: Option<AnswerChannel>,
    },
    Command(PendingCommand<C>),
    Finished(FinishedJob),
}

/// Action to carry out once the records are durable.
pub(super) enum DriverAction<E> {
    Answer {
        to: Peer,
        answer: AnswerChannel,
        request: RequestId,
        message: Option<Vec<u8>>,
    },
    Send {
        to: Peer,
        frame: RequestFrame,
    },
    Publish {
        message: Vec<u8>,
    },
    Block {
        peer: Peer,
    },
    Disconnect {
        peer: Peer,
    },
    Relay {
        peer: Peer,
        allowed: bool,
    },
    Penalize {
        peer: Peer,
        misdeed: Misdeed,
    },
    /// An event with its request.
    Event(E, Option<RequestId>),
    /// Reports that all outputs of an earlier command are carried out.
    Done(CommandWaiter),
}

/// The request that caused an input, and the channel for its answer.
#[derive(Default)]
struct InputCause {
    /// The request goes on with its own peer only.
    request: Option<(Peer, RequestId)>,
    /// The peer that waits for an answer.
    asked: Option<(Peer, AnswerChannel)>,
}

impl InputCause {
    fn id(&self) -> Option<RequestId> {
        self.request.map(|(_, id)| id)
    }

    /// The id of a message to this peer.
    fn id_to(&self, to: Peer) -> RequestId {
        // §23.3: an answer goes under the number of the request that it answers.
        if let Some((from, id)) = self.request
            && from == to
        {
            return id;
        }
        let id = RequestId::random();
        tracing::debug!(request = %id, to = to.0, "begins a request");
        id
    }
}

impl<M: Machine, H: Host<M>> Driver<M, H> {
    /// Shows the machine to those who asked to look at it.
    pub(super) fn serve_inspections(&mut self, cx: &mut Context<'_>) {
        // Once all handles are gone there are no more; polling on costs nothing.
        while let Poll::Ready(Some(look)) = self.requests.inspections.poll_recv(cx) {
            look(&self.machine);
        }
    }

    /// Takes the questions for confirmations, after the commands before them: the messages that a
    /// confirmation follows were handed over before it was asked for.
    pub(super) fn take_confirmations(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some((peer, waiting))) = self.requests.confirmations.poll_recv(cx) {
            self.network.confirm(peer, waiting);
        }
    }

    pub(super) fn take_commands(&mut self, cx: &mut Context<'_>) {
        // A batch is bounded, so that its records are soon durable and its answers soon leave.
        while self.arrivals.len() < self.batch
            && let Poll::Ready(Some(order)) = self.requests.commands.poll_recv(cx)
        {
            self.arrivals.push(OwnedInput::Command(order));
        }
    }

    /// Takes the results of jobs that the machine gave out.
    pub(super) fn take_finished(&mut self, cx: &mut Context<'_>) {
        while self.arrivals.len() < self.batch
            && let Poll::Ready(Some(done)) = self.finished.poll_recv(cx)
        {
            self.arrivals.push(OwnedInput::Finished(done));
        }
    }

    /// Work that takes long is done beside the loop, on threads that may be blocked.
    fn hand_out_jobs(&mut self) {
        while let Some(job) = self.machine.take_job() {
            let finishing = self.finishing.clone();
            tokio::task::spawn_blocking(move || {
                // A node that has stopped wants no results.
                let _ = finishing.send(job.run());
            });
        }
    }

    pub(super) fn take_incoming(&mut self, incoming: Incoming) {
        self.arrivals.push(match incoming {
            Incoming::Connected { peer, route, place } => OwnedInput::Connected { peer, route, place },
            Incoming::Disconnected { peer } => OwnedInput::Disconnected { peer },
            Incoming::Message { from, via, bytes, request, answer } => {
                OwnedInput::Message { from, via, bytes, request, answer }
            }
            Incoming::ClockAsked(question) => return self.send_time(question),
            Incoming::ClockAnswered(answer) => return self.record_clock(&answer),
            Incoming::Duplicate { peer } => {
                let drone = self.host.drone(&self.machine, peer);
                return self.network.name_duplicate(peer, drone);
            }
            Incoming::Listening { address } => {
                tracing::debug!(%address, "listening");
                self.host.listening(&address);
                self.requests.listening.send_modify(|addresses| addresses.push(address));
                return;
            }
        });
    }

    /// Only peers that this node dialled learn which drone signs: another could be anybody.
    fn send_time(&mut self, question: ClockQuestion) {
        let unix = self.clock.now().unix;
        let voucher = if question.dialled {
            let statement = self.network.statement_to(&question, unix);
            self.host.vouch(&self.machine, &statement)
        } else {
            Vec::new()
        };
        self.network.send_time(question, ClockReply { unix, voucher });
    }

    fn record_clock(&mut self, answer: &ClockAnswer) {
        let drone = if answer.dialled {
            None
        } else {
            // §16.1: of one that dialled us, only a time that a drone signed counts.
            match self.host.voucher(&self.machine, &answer.statement, &answer.reply.voucher) {
                Some(drone) => Some(drone),
                None => return,
            }
        };
        self.network.record_clock(answer, drone, self.clock.now().unix);
    }

    /// The machine has outputs before its first input.
    pub(super) fn drain_initial(&mut self) {
        self.host.before_inputs();
        self.drain(InputCause::default());
        self.host.after_inputs();
    }

    pub(super) fn handle_arrivals(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.host.before_inputs();
        // §13.9: the clocks are compared before each batch of inputs.
        if self.clock.jumped() {
            // §13.9: a copy that was restored goes on as after a start, before anything else is handled.
            self.metrics.clock_jumps.inc();
            tracing::warn!(
                "the wall clock has jumped: this machine may have been brought back from a snapshot of its memory, so that \
                 the node goes on as after a start; if the clock was merely set, nothing else is to be done"
            );
            self.network.renew_instance();
            self.handle(OwnedInput::Resumed);
        }
        for arrival in arrivals.drain(..) {
            self.handle(arrival);
        }
        self.host.after_inputs();
        // A batch may have been large; most are not.
        arrivals.shrink_to(SMALL_BATCH);
        self.arrivals = arrivals;
    }

    fn handle(&mut self, arrival: OwnedInput<M::Command>) {
        let mut cause = InputCause::default();
        let mut done = None;
        let received;
        let input = match arrival {
            OwnedInput::Timeout => Input::Timeout,
            OwnedInput::Connected { peer, route, place } => {
                // The host knows a peer before events name it.
                self.host.connected(peer, route, &place);
                Input::Connected { peer, route }
            }
            OwnedInput::Disconnected { peer } => {
                self.host.disconnected(peer);
                Input::Disconnected { peer }
            }
            OwnedInput::Resumed => Input::Resumed,
            OwnedInput::Finished(finished) => {
                self.machine.finish_job(self.clock.now(), finished, &mut *self.rng);
                return self.drain(cause);
            }
            OwnedInput::Command(order) => {
                done = order.done;
                Input::Command(order.command)
            }
            OwnedInput::Message { from, via, bytes, request, answer } => {
                cause.request = request.map(|request| (from, request));
                cause.asked = answer.map(|answer| (from, answer));
                received = bytes;
                let id = request.as_ref().map_or(&[][..], |request| request.as_bytes());
                if let Some(peer) = self.network.peer_id(from) {
                    self.host.frame(Some(&peer), id, &received);
                }
                Input::Received { from, via, bytes: &received }
            }
        };
        let span = cause.id().map(|id| id.span());
        let _within = span.as_ref().map(Span::enter);
        self.machine.handle_input(self.clock.now(), input, &mut *self.rng);
        self.drain(cause);
        self.actions.extend(done.map(DriverAction::Done));
    }

    /// Collects the machine's outputs. The first message back to the peer that is waiting for an answer
    /// becomes that answer, which saves a stream; without one the answer is empty.
    fn drain(&mut self, mut cause: InputCause) {
        loop {
            let action = match self.machine.poll_output() {
                Output::Persist(record) => {
                    self.records.push(record);
                    continue;
                }
                Output::Transmit { to: Destination::Peer(to), payload } => match cause.asked.take() {
                    // §23.3: a response may carry the message that answers, unless it would overtake earlier
                    // ones.
                    Some((from, answer))
                        if from == to && !payload.is_empty() && !self.network.has_queue(to) =>
                    {
                        DriverAction::Answer { to, answer, request: cause.id_to(to), message: Some(payload) }
                    }
                    unanswered => {
                        cause.asked = unanswered;
                        let frame = RequestFrame { request: cause.id_to(to), message: payload };
                        DriverAction::Send { to, frame }
                    }
                },
                Output::Transmit { to: Destination::Group, payload } => {
                    DriverAction::Publish { message: payload }
                }
                Output::Event(event) => DriverAction::Event(event, cause.id()),
                Output::Block(peer) => DriverAction::Block { peer },
                Output::Disconnect(peer) => DriverAction::Disconnect { peer },
                Output::Relay { peer, allowed } => DriverAction::Relay { peer, allowed },
                Output::Penalize { peer, misdeed } => DriverAction::Penalize { peer, misdeed },
                Output::Timeout(at) => {
                    self.deadline = at.and_then(|at| self.clock.instant(at));
                    break;
                }
            };
            self.actions.push(action);
        }
        if let Some((from, answer)) = cause.asked.take() {
            let request = cause.id_to(from);
            self.actions.push(DriverAction::Answer { to: from, answer, request, message: None });
        }
        self.hand_out_jobs();
        // A machine that asks to be woken in the past would take all of a core.
        let soonest = Instant::now() + SHORTEST_TIMEOUT;
        self.deadline = self.deadline.map(|deadline| deadline.max(soonest));
    }

    /// Carries out what the machine wants done. Its records are durable.
    pub(super) fn perform(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        // Whether a message to the group was handed to anybody, until its command is done.
        let mut handed = false;
        for action in actions.drain(..) {
            match action {
                DriverAction::Answer { to, answer, request, message } => {
                    if let Some(peer) = self.network.peer_id(to) {
                        self.host.frame(
                            Some(&peer),
                            request.as_bytes(),
                            message.as_deref().unwrap_or_default(),
                        );
                    }
                    self.network.answer(to, answer, request, message);
                }
                DriverAction::Send { to, frame } => {
                    if let Some(peer) = self.network.peer_id(to) {
                        self.host.frame(Some(&peer), frame.request.as_bytes(), &frame.message);
                    }
                    self.network.send(to, frame);
                }
                DriverAction::Publish { message } => {
                    self.host.frame(None, &[], &message);
                    // §23.4: to all subscribers of the topic, once.
                    handed = self.network.publish(&message);
                }
                DriverAction::Block { peer } => self.network.block(peer),
                DriverAction::Disconnect { peer } => self.network.disconnect(peer),
                DriverAction::Relay { peer, allowed } => {
                    let member = allowed.then(|| self.host.member(&self.machine, peer)).flatten();
                    self.network.set_relayed(peer, allowed, member);
                }
                DriverAction::Penalize { peer, misdeed } => self.network.penalize(peer, misdeed),
                DriverAction::Event(event, request) => {
                    let span = request.map(|id| id.span());
                    let _within = span.as_ref().map(Span::enter);
                    self.host.event(&self.machine, event);
                }
                // The sender of the command may have stopped waiting.
                DriverAction::Done(CommandWaiter::CarriedOut(waiting)) => {
                    let _ = waiting.send(());
                }
                DriverAction::Done(CommandWaiter::Published(answer)) => {
                    let handed = std::mem::take(&mut handed);
                    let _ = answer.send(if handed { self.network.subscribers() } else { Vec::new() });
                }
            }
        }
        actions.shrink_to(SMALL_BATCH);
        self.actions = actions;
    }
}

/// The room kept between turns.
const SMALL_BATCH: usize = 8;
