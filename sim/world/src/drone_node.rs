//! A drone's composite machine: the edge, and the collector of condition keys in worlds with IBE orders.
//!
//! Orders arrive over a channel of the group. A drone keeps the received ones in memory, asks the KGCs for
//! the key of each condition until it has it, and then opens them; one that is switched off forgets them, as
//! if their files were lost.

use std::collections::VecDeque;
use std::time::Duration;

use quiver_admission::{AnonymousEvent, AnyEdge};
use quiver_ainq::{Deployment, DroneKeypair, Suite};
use quiver_delivery::Standalone;
use quiver_envelope::Envelopes;
use quiver_group::EdgeEvent;
use quiver_ibe::{Condition, IdentityKey};
use quiver_key_release::{CollectCommand, CollectEvent, CollectTiming, Collector};
use quiver_machine::{Either, Input, Machine, Node, Now, Output, Peer, Route, Snapshot};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::conditions::{CHANNEL, ConditionNodeEvent, SealedOrder};
use crate::{DroneNodeCommand, NodeEvent};

/// Time for which a drone asks for a key.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);
/// Orders a drone keeps at most.
const MAX_ORDERS: usize = 64;

/// A drone.
pub(crate) struct DroneNode<S: Suite> {
    pub(crate) edge: Node<AnyEdge<S>, Envelopes>,
    ibe: Option<Box<IbeClient<S>>>,
}

/// Orders that wait for their keys, and the collector of the keys.
struct IbeClient<S: Suite> {
    deployment: Deployment<S>,
    timing: CollectTiming,
    /// Once the drone is enrolled.
    collector: Option<Standalone<S, Collector<S>>>,
    kgcs: Vec<Peer>,
    orders: Vec<SealedOrder>,
    /// Conditions whose keys are not collected yet.
    fresh: Vec<Condition>,
    opened: VecDeque<Vec<u8>>,
}

impl<S: Suite> DroneNode<S> {
    /// A drone with no use for orders, unless there is a timing for collecting their keys.
    pub(crate) fn new(edge: impl Into<AnyEdge<S>>, ibe: Option<(Deployment<S>, CollectTiming)>) -> Self {
        let ibe = ibe.map(|(deployment, timing)| {
            Box::new(IbeClient {
                deployment,
                timing,
                collector: None,
                kgcs: Vec::new(),
                orders: Vec::new(),
                fresh: Vec::new(),
                opened: VecDeque::new(),
            })
        });
        Self { edge: Node::new(edge.into(), Envelopes::default()), ibe }
    }
}

impl<S: Suite> IbeClient<S> {
    /// Handles inputs for the collector. Returns whether the edge need not see them.
    fn take(&mut self, now: Now, input: &Input<'_, DroneNodeCommand>, rng: &mut dyn CryptoRngCore) -> bool {
        let input = match *input {
            Input::Connected { peer, route: Route::Kgc } => {
                self.kgcs.push(peer);
                Input::Connected { peer, route: Route::Kgc }
            }
            Input::Disconnected { peer } => {
                self.kgcs.retain(|kgc| *kgc != peer);
                Input::Disconnected { peer }
            }
            Input::Timeout => Input::Timeout,
            Input::Received { from, via, bytes } if self.is_about_keys(from, bytes) => {
                Input::Received { from, via, bytes }
            }
            Input::Connected { .. } | Input::Received { .. } | Input::Resumed | Input::Command(_) => {
                return false;
            }
        };
        let Some(collector) = &mut self.collector else { return false };
        let taken = matches!(input, Input::Received { .. });
        collector.handle_input(now, input, rng);
        taken
    }

    /// Refusals of KGCs are: an enrolled drone asks them for nothing else.
    fn is_about_keys(&self, from: Peer, bytes: &[u8]) -> bool {
        if self.collector.is_none() || !self.kgcs.contains(&from) {
            return false;
        }
        let message = Message::<S>::decode(&self.deployment, bytes);
        matches!(message, Ok(Message::DeliveryChallenge(_) | Message::DeliveryReply(_) | Message::Refusal(_)))
    }

    /// Begins to collect as soon as the drone has a key of its own.
    fn collect(&mut self, now: Now, edge: &AnyEdge<S>, rng: &mut dyn CryptoRngCore) {
        if self.fresh.is_empty() {
            return;
        }
        if self.collector.is_none() {
            let Some(keypair) = edge.keypair() else { return };
            let secret = keypair.to_bytes();
            let keypair = DroneKeypair::restore(&self.deployment, keypair.public().clone(), &secret);
            let keypair = keypair.expect("a drone's own key");
            let collector = Collector::new(None, self.timing);
            let mut collector = Standalone::client(self.deployment.clone(), keypair, collector);
            for peer in self.kgcs.iter().copied() {
                collector.handle_input(now, Input::Connected { peer, route: Route::Kgc }, rng);
            }
            self.collector = Some(collector);
        }
        let Some(collector) = &mut self.collector else { return };
        for condition in self.fresh.drain(..) {
            let condition = Some(condition);
            let command = CollectCommand::Collect { condition, patience: PATIENCE, wait: true };
            collector.handle_input(now, Input::Command(command), rng);
        }
    }

    /// Handles an event of the edge.
    fn heard(&mut self, event: &EdgeEvent) {
        let EdgeEvent::Message { channel, data, .. } = event else { return };
        if channel.as_str() != CHANNEL || self.orders.len() >= MAX_ORDERS {
            return;
        }
        if let Ok(order) = SealedOrder::decode(data) {
            self.fresh.push(order.condition().clone());
            self.orders.push(order);
        }
    }

    fn collected(&mut self, condition: &Condition, key: &IdentityKey) {
        let (met, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.orders).into_iter().partition(|order| order.condition() == condition);
        self.orders = rest;
        self.opened.extend(met.iter().filter_map(|order| Some(order.open(key).ok()?.to_vec())));
    }

    /// Output of the collector, or its deadline.
    fn poll(&mut self) -> Result<Output<NodeEvent, Snapshot>, Option<Duration>> {
        if let Some(text) = self.opened.pop_front() {
            return Ok(Output::Event(ConditionNodeEvent::Opened(text).into()));
        }
        let Some(collector) = &mut self.collector else { return Err(None) };
        match collector.poll_output() {
            Output::Persist(never) => match never {},
            Output::Transmit { to, payload } => Ok(Output::Transmit { to, payload }),
            Output::Event(event) => {
                if let CollectEvent::Collected { condition, key } = &event {
                    self.collected(condition, key);
                }
                Ok(Output::Event(ConditionNodeEvent::Collector(event).into()))
            }
            Output::Block(peer) => Ok(Output::Block(peer)),
            Output::Disconnect(peer) => Ok(Output::Disconnect(peer)),
            Output::Relay { peer, allowed } => Ok(Output::Relay { peer, allowed }),
            Output::Penalize { peer, misdeed } => Ok(Output::Penalize { peer, misdeed }),
            Output::Timeout(deadline) => Err(deadline),
        }
    }
}

impl<S: Suite> Machine for DroneNode<S> {
    type Command = DroneNodeCommand;
    type Event = NodeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, DroneNodeCommand>, rng: &mut dyn CryptoRngCore) {
        let Some(ibe) = &mut self.ibe else { return self.edge.handle_input(now, input, rng) };
        let taken = ibe.take(now, &input, rng);
        if !taken {
            self.edge.handle_input(now, input, rng);
        }
        ibe.collect(now, &self.edge, rng);
    }

    fn poll_output(&mut self) -> Output<NodeEvent, Snapshot> {
        let edge = match self.edge.poll_output() {
            Output::Persist(record) => return Output::Persist(record.into_left()),
            Output::Transmit { to, payload } => return Output::Transmit { to, payload },
            Output::Event(event) => {
                if let (Some(ibe), Either::Left(AnonymousEvent::Edge(event))) = (&mut self.ibe, &event) {
                    ibe.heard(event);
                }
                return Output::Event(event.into());
            }
            Output::Block(peer) => return Output::Block(peer),
            Output::Disconnect(peer) => return Output::Disconnect(peer),
            Output::Relay { peer, allowed } => return Output::Relay { peer, allowed },
            Output::Penalize { peer, misdeed } => return Output::Penalize { peer, misdeed },
            Output::Timeout(deadline) => deadline,
        };
        let Some(ibe) = &mut self.ibe else { return Output::Timeout(edge) };
        match ibe.poll() {
            Ok(output) => output,
            // Collecting cannot begin here: that takes the time and some randomness.
            Err(_) if !ibe.fresh.is_empty() && self.edge.keypair().is_some() => {
                Output::Timeout(Some(Duration::ZERO))
            }
            Err(deadline) => Output::Timeout(edge.into_iter().chain(deadline).min()),
        }
    }
}
