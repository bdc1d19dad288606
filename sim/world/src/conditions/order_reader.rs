//! Reads IBE orders on a drone: an edge's companion that collects the keys of their conditions.
//!
//! Orders arrive over a channel of the group. A drone keeps the received ones in memory, asks the KGCs for
//! the key of each condition until it has it, and then opens them; one that is switched off forgets them, as
//! if their files were lost.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Suite};
use quiver_delivery::Standalone;
use quiver_group::EdgeEvent;
use quiver_ibe::{Condition, IdentityKey};
use quiver_key_release::{CollectCommand, CollectEvent, CollectTiming, Collector};
use quiver_machine::{Input, Machine, Now, Output, Peer, Route};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::{CHANNEL, ConditionNodeEvent, SealedOrder};
use crate::drone_node::DroneCompanion;
use crate::{DroneNodeCommand, DroneRole, NodeEvent};

/// Time for which a drone asks for a key.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);
/// Orders a drone keeps at most.
const MAX_ORDERS: usize = 64;

/// Orders that wait for their keys, and the collector of the keys.
pub(crate) struct OrderReader<S: Suite> {
    deployment: Deployment<S>,
    /// Once the drone is enrolled.
    collector: Option<Standalone<S, Collector<S>>>,
    kgcs: Vec<Peer>,
    orders: Vec<SealedOrder>,
    /// Conditions whose keys are not collected yet.
    fresh: Vec<Condition>,
    opened: VecDeque<Vec<u8>>,
}

impl<S: Suite> OrderReader<S> {
    /// A reader without orders.
    pub(crate) const fn new(deployment: Deployment<S>) -> Self {
        Self {
            deployment,
            collector: None,
            kgcs: Vec::new(),
            orders: Vec::new(),
            fresh: Vec::new(),
            opened: VecDeque::new(),
        }
    }

    /// Refusals of KGCs are: an enrolled drone asks them for nothing else.
    fn is_about_keys(&self, from: Peer, bytes: &[u8]) -> bool {
        if self.collector.is_none() || !self.kgcs.contains(&from) {
            return false;
        }
        let message = Message::<S>::decode(&self.deployment, bytes);
        matches!(message, Ok(Message::DeliveryChallenge(_) | Message::DeliveryReply(_) | Message::Refusal(_)))
    }

    fn collected(&mut self, condition: &Condition, key: &IdentityKey) {
        let (met, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.orders).into_iter().partition(|order| order.condition() == condition);
        self.orders = rest;
        self.opened.extend(met.iter().filter_map(|order| Some(order.open(key).ok()?.to_vec())));
    }
}

impl<S: Suite> DroneCompanion<S> for OrderReader<S> {
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

    /// Begins to collect as soon as the drone has a key of its own.
    fn follow(&mut self, now: Now, drone: &DroneRole<S>, rng: &mut dyn CryptoRngCore) {
        if self.fresh.is_empty() {
            return;
        }
        if self.collector.is_none() {
            let Some(keypair) = drone.keypair() else { return };
            let secret = keypair.to_bytes();
            let keypair = DroneKeypair::restore(&self.deployment, keypair.public().clone(), &secret);
            let keypair = keypair.expect("a drone's own key");
            let collector = Collector::new(None, CollectTiming::default());
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

    fn poll(&mut self, drone: &DroneRole<S>) -> Output<NodeEvent, Infallible> {
        if let Some(text) = self.opened.pop_front() {
            return Output::Event(ConditionNodeEvent::Opened(text).into());
        }
        let output = match &mut self.collector {
            None => Output::Timeout(None),
            Some(collector) => collector.poll_output(),
        };
        match output {
            // Collecting cannot begin here: that takes the time and some randomness.
            Output::Timeout(_) if !self.fresh.is_empty() && drone.keypair().is_some() => {
                Output::Timeout(Some(Duration::ZERO))
            }
            Output::Event(event) => {
                if let CollectEvent::Collected { condition, key } = &event {
                    self.collected(condition, key);
                }
                Output::Event(ConditionNodeEvent::Collector(event).into())
            }
            output => output.map(|event| ConditionNodeEvent::Collector(event).into(), |never| never),
        }
    }
}
