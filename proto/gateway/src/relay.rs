//! The machine of a node that passes on what it does not understand, and a running one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use quiver_net::{Driver, Handle, Host, HostError, NetError, NodeConfig, NodeKey, Transport, group_topic};
use rand::rngs::OsRng;
use rand_core::CryptoRngCore;
use tokio::sync::{mpsc, oneshot};

use crate::GatewayConfig;

/// Greatest number of events of a node that wait for its board.
const MAX_EVENTS: usize = 64;

/// A command of a board to its node.
#[derive(Debug)]
pub(crate) enum BoardCommand {
    Transmit { to: Destination, payload: Vec<u8> },
    Block(Peer),
}

/// An event of a node for its board.
#[derive(Debug)]
pub(crate) enum BoardNodeEvent {
    Connected {
        peer: Peer,
        route: Route,
    },
    Disconnected {
        peer: Peer,
    },
    Received {
        from: Peer,
        via: Via,
        bytes: Vec<u8>,
    },
    /// A message that is longer than the board takes.
    TooLong {
        bytes: usize,
    },
}

/// A machine that executes a board's commands and reports its inputs as events.
#[derive(Debug)]
struct BoardRelay {
    longest: usize,
    /// Configuration, for the channels whose messages are not passed on.
    config: Arc<GatewayConfig>,
    outputs: VecDeque<Output<BoardNodeEvent, Infallible>>,
}

impl BoardRelay {
    fn is_withheld(&self, message: &[u8]) -> bool {
        let channel = quiver_message::group_message_channel(message);
        channel.is_some_and(|channel| self.config.withheld.iter().any(|withheld| withheld == channel))
    }
}

impl Machine for BoardRelay {
    type Command = BoardCommand;
    type Event = BoardNodeEvent;
    type Record = Infallible;

    fn handle_input(&mut self, _: Now, input: Input<'_, BoardCommand>, _: &mut dyn CryptoRngCore) {
        self.outputs.push_back(match input {
            // It has no state that a copy could spoil: the board's machine has.
            Input::Timeout | Input::Resumed => return,
            Input::Received { bytes, .. } if self.is_withheld(bytes) => return,
            Input::Connected { peer, route } => Output::Event(BoardNodeEvent::Connected { peer, route }),
            Input::Disconnected { peer } => Output::Event(BoardNodeEvent::Disconnected { peer }),
            Input::Received { from, via, bytes } if bytes.len() <= self.longest => {
                Output::Event(BoardNodeEvent::Received { from, via, bytes: bytes.into() })
            }
            Input::Received { bytes, .. } => Output::Event(BoardNodeEvent::TooLong { bytes: bytes.len() }),
            Input::Command(BoardCommand::Transmit { to, payload }) => Output::Transmit { to, payload },
            Input::Command(BoardCommand::Block(peer)) => Output::Block(peer),
        });
    }

    fn poll_output(&mut self) -> Output<BoardNodeEvent, Infallible> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}

/// Passes on events while there is room. Messages for which there is none are dropped, as on any network; a
/// connection that the board cannot be told of ends the node.
struct EventSink(Option<mpsc::Sender<BoardNodeEvent>>);

impl Host<BoardRelay> for EventSink {
    fn persist(&mut self, _: &[Infallible]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &BoardRelay, event: BoardNodeEvent) {
        let may_be_dropped =
            matches!(event, BoardNodeEvent::Received { .. } | BoardNodeEvent::TooLong { .. });
        if self.0.as_ref().is_some_and(|sink| sink.try_send(event).is_err()) && !may_be_dropped {
            // A connection that the board was not told of would confuse its machine: the node is stopped, and
            // begun anew.
            self.0 = None;
        }
    }
}

/// A running node. Stops when dropped, once it has sent its last messages.
#[derive(Debug)]
pub(crate) struct GatewayNode {
    handle: Handle<BoardRelay>,
    events: mpsc::Receiver<BoardNodeEvent>,
    _stop: oneshot::Sender<Infallible>,
}

impl GatewayNode {
    /// Starts a node with a fresh transport key that keeps connections to these addresses, and subscribes to
    /// the group's topic if there is a group. Messages longer than `longest` bytes are reported but not
    /// passed on.
    pub(crate) fn start(
        config: &Arc<GatewayConfig>,
        route: Route,
        group: Option<&str>,
        longest: usize,
    ) -> Result<Self, NetError> {
        let addresses = match route {
            Route::Kgc => &config.kgcs,
            _ => &config.leaders,
        };
        let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng)?, Transport::SERVICE);
        node.dial = addresses.iter().map(|address| (route, address.clone())).collect();
        node.topic = group.map(group_topic);
        let (sink, events) = mpsc::channel(MAX_EVENTS);
        let machine = BoardRelay { longest, config: Arc::clone(config), outputs: VecDeque::new() };
        let (driver, handle) = Driver::new(&node, machine, EventSink(Some(sink)), OsRng)?;
        let (stop, stopped) = oneshot::channel::<Infallible>();
        tokio::spawn(async move {
            let until = async {
                // Nothing is ever sent: the sender is dropped.
                let _ = stopped.await;
            };
            if let Err(error) = driver.run(until).await {
                tracing::warn!("a board's node stopped: {error}");
            }
        });
        Ok(Self { handle, events, _stop: stop })
    }

    /// The next event; `None` if it has stopped.
    pub(crate) async fn next_event(&mut self) -> Option<BoardNodeEvent> {
        self.events.recv().await
    }

    /// Gives it an order if it has room for one.
    pub(crate) fn order(&self, order: BoardCommand) -> bool {
        self.handle.try_command(order).is_ok()
    }
}
