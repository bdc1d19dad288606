//! A machine that sends messages on command and reports its inputs: for a peer that a test plays itself.

use std::collections::VecDeque;
use std::convert::Infallible;

use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use rand_core::CryptoRngCore;

/// Sends what a test tells it to, and reports as events what it receives.
#[derive(Debug, Default)]
pub struct Puppet(VecDeque<Output<PuppetEvent, Infallible>>);

/// Event of a puppet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PuppetEvent {
    /// A connection stands.
    Connected(Peer, Route),
    /// A connection is gone.
    Disconnected(Peer),
    /// A message came.
    Received(Peer, Via, Vec<u8>),
}

impl Machine for Puppet {
    type Command = (Destination, Vec<u8>);
    type Event = PuppetEvent;
    type Record = Infallible;

    fn handle_input(&mut self, _: Now, input: Input<'_, Self::Command>, _: &mut dyn CryptoRngCore) {
        self.0.push_back(match input {
            Input::Timeout | Input::Resumed => return,
            Input::Connected { peer, route } => Output::Event(PuppetEvent::Connected(peer, route)),
            Input::Disconnected { peer } => Output::Event(PuppetEvent::Disconnected(peer)),
            Input::Received { from, via, bytes } => {
                Output::Event(PuppetEvent::Received(from, via, bytes.to_vec()))
            }
            Input::Command((to, payload)) => Output::Transmit { to, payload },
        });
    }

    fn poll_output(&mut self) -> Output<PuppetEvent, Infallible> {
        self.0.pop_front().unwrap_or(Output::Timeout(None))
    }
}
