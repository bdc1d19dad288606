//! Members that exchange the group's datagrams with the board: companions that hear whatever it broadcasts,
//! and whom it hears.

use std::time::Duration;

use quiver_crypto::Digest;
use quiver_datagram::{Config, DatagramCounters, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_group::Edge;

use crate::{S, TestNetwork, TestNetworkNode};

/// A companion with its datagrams.
pub(crate) struct Listener {
    node: TestNetworkNode,
    datagrams: Datagrams<S>,
    /// True if it is in other hands: it keeps the keys that it has.
    is_captured: bool,
    /// D, slot and boot number of the keys in use.
    in_use: Option<(Digest, u32, u32)>,
    /// Datagrams received: from whom, as a board's console prints it, and what.
    received: Vec<(String, String)>,
}

impl TestNetwork {
    /// The companion of this number exchanges datagrams from now on.
    pub fn listen(&mut self, companion: usize) {
        let datagrams = Datagrams::new(Config::board(), self.deployment.clone());
        let node = TestNetworkNode::Companion(companion);
        let (is_captured, in_use, received) = (false, None, Vec::new());
        self.listeners.push(Listener { node, datagrams, is_captured, in_use, received });
    }

    /// The companion is in other hands: whatever its machine is told, its datagrams keep the keys they have.
    ///
    /// # Panics
    /// If it does not listen.
    pub fn capture(&mut self, companion: usize) {
        let node = TestNetworkNode::Companion(companion);
        let listener = self.listeners.iter_mut().find(|listener| listener.node == node);
        listener.expect("it listens").is_captured = true;
    }

    fn listener(&self, companion: usize) -> &Listener {
        let node = TestNetworkNode::Companion(companion);
        self.listeners.iter().find(|listener| listener.node == node).expect("it listens")
    }

    /// Sends text in a datagram of this companion's; whether it may.
    ///
    /// # Panics
    /// If it does not listen.
    pub fn send_datagram(&mut self, companion: usize, text: &str, sign: bool) -> bool {
        let (node, now) = (TestNetworkNode::Companion(companion), self.net.time());
        let listener = self.listeners.iter_mut().find(|listener| listener.node == node);
        let priority = if sign { Priority::Command } else { Priority::Telemetry };
        let payload = Payload { bytes: text.into(), priority, sign };
        listener.expect("it listens").datagrams.send(now, payload).is_ok()
    }

    /// Datagrams that this companion received so far: from whom, as a board's console prints it, and what.
    ///
    /// # Panics
    /// If it does not listen.
    #[must_use]
    pub fn datagrams_received(&self, companion: usize) -> &[(String, String)] {
        &self.listener(companion).received
    }

    /// Counts of this companion's datagrams by outcome.
    ///
    /// # Panics
    /// If it does not listen.
    #[must_use]
    pub fn datagram_counters(&self, companion: usize) -> &DatagramCounters {
        self.listener(companion).datagrams.counters()
    }

    /// Puts a datagram on the board's line, and where the companions hear it.
    ///
    /// # Panics
    /// If it is too long for a line.
    pub fn broadcast(&mut self, datagram: &[u8]) {
        self.line.put(datagram);
        self.hear(None, datagram);
    }

    /// Every companion but the sender hears it.
    fn hear(&mut self, from: Option<TestNetworkNode>, datagram: &[u8]) {
        let now = self.net.time();
        for listener in self.listeners.iter_mut().filter(|listener| Some(listener.node) != from) {
            listener.datagrams.handle_datagram(now, datagram);
        }
    }

    /// Takes what the board broadcast.
    pub(crate) fn take_board_datagram(&mut self, datagram: &[u8]) {
        self.board_datagrams.push(datagram.to_vec());
        self.hear(None, datagram);
    }

    pub(crate) fn datagrams_due(&self) -> Option<Duration> {
        self.listeners.iter().filter_map(|listener| listener.datagrams.timeout()).min()
    }

    /// Does what is due. Returns whether there was anything.
    pub(crate) fn work_datagrams(&mut self) -> bool {
        let now = self.net.time();
        let mut busy = false;
        for index in 0..self.listeners.len() {
            self.follow_epoch(index);
            self.answer(index);
            let node = self.listeners[index].node;
            while let Some(datagram) = self.listeners[index].datagrams.poll_datagram(now) {
                busy = true;
                self.line.put(&datagram);
                self.hear(Some(node), &datagram);
                self.member_datagrams.push(datagram);
            }
        }
        busy
    }

    fn follow_epoch(&mut self, index: usize) {
        let (now, listener) = (self.net.time(), &mut self.listeners[index]);
        let edge = self.net.machine::<Edge<S>>(listener.node);
        let keys = edge.epoch_keys(self.net.clock_of(listener.node));
        let newest = keys.as_ref().map(|keys| (keys.digest, keys.slot, keys.boot_no));
        if newest != listener.in_use && !listener.is_captured {
            listener.in_use = newest;
            match keys {
                Some(keys) => listener.datagrams.set_epoch(now, keys, &mut self.rng),
                None => listener.datagrams.close(),
            }
        }
        listener.datagrams.handle_timeout(now);
    }

    fn answer(&mut self, index: usize) {
        let (now, listener) = (self.net.time(), &mut self.listeners[index]);
        let edge = self.net.machine::<Edge<S>>(listener.node);
        let clock = self.net.clock_of(listener.node);
        while let Some(event) = listener.datagrams.poll_event() {
            match event {
                Event::Received { slot, bytes, source } => {
                    let from = match source {
                        PayloadOrigin::Member => format!("slot:{slot}"),
                        PayloadOrigin::Signed { name, .. } => name.to_string(),
                    };
                    listener.received.push((from, bytes.escape_ascii().to_string()));
                }
                Event::SignatureWanted(request) => {
                    if let Some(signature) = edge.sign_datagram(&request.statement, &mut self.rng) {
                        listener.datagrams.provide_signature(now, request.id, &signature);
                    }
                }
                Event::SignerAnnounced { slot, drone }
                    if edge.may_sign_datagrams(clock, slot, &drone).is_ok() =>
                {
                    listener.datagrams.allow_signer(now, slot, &drone.handle());
                }
                _ => {}
            }
        }
    }
}
