//! Order of payloads: kept on a carrier that is not short, whether they are signed or not.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use quiver_ainq::Label;
use quiver_datagram::{Config, Event, Payload, Priority, SigningRequest};

use crate::swarm::Swarm;

const STEP: Duration = Duration::from_millis(1);

/// A sender whose signatures take a while, and a receiver.
struct Slow {
    swarm: Swarm,
    delay: Duration,
    requests: VecDeque<(Duration, SigningRequest)>,
}

impl Slow {
    fn new(delay: Duration) -> Self {
        let mut swarm = Swarm::new(2, Config::default());
        // The receiver knows the sender and its key.
        swarm.command(1, &[0xee], true);
        swarm.settle();
        assert_eq!(swarm.nodes[0].payloads(), [[0xee]]);
        swarm.nodes[0].inbox.clear();
        Self { swarm, delay, requests: VecDeque::new() }
    }

    fn send(&mut self, bytes: &[u8], command: bool, sign: bool) {
        let priority = if command { Priority::Command } else { Priority::Telemetry };
        let now = self.swarm.now;
        self.swarm.nodes[1].datagrams.send(now, Payload { bytes: bytes.to_vec(), priority, sign }).unwrap();
        self.work();
    }

    /// Provides signatures whose time has come, and delivers what may leave.
    fn work(&mut self) {
        loop {
            let (now, deployment) = (self.swarm.now, self.swarm.deployment.clone());
            let node = &mut self.swarm.nodes[1];
            while let Some(event) = node.datagrams.poll_event() {
                if let Event::SignatureWanted(request) = event {
                    self.requests.push_back((now + self.delay, request));
                }
            }
            let mut worked = false;
            while self.requests.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, request)) = self.requests.pop_front() else { break };
                let signature =
                    node.keypair.sign(&deployment, Label::Datagram, &request.statement, &mut node.rng);
                node.datagrams.provide_signature(now, request.id, &signature);
                worked = true;
            }
            while let Some(datagram) = self.swarm.nodes[1].datagrams.poll_datagram(now) {
                self.swarm.deliver(0, &datagram);
                worked = true;
            }
            if !worked {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.swarm.now + time;
        while self.swarm.now < end {
            self.swarm.now += STEP;
            let now = self.swarm.now;
            if self.swarm.nodes[1].datagrams.timeout().is_some_and(|at| at <= now) {
                self.swarm.nodes[1].datagrams.handle_timeout(now);
            }
            self.work();
        }
    }

    fn arrived(&self) -> Vec<u8> {
        self.swarm.nodes[0].payloads().iter().map(|payload| payload[0]).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn payloads_arrive_in_the_order_in_which_they_were_sent(
        sent in prop::collection::vec((0..8_u64, any::<bool>(), any::<bool>()), 1..40),
        // All signatures together take less than the time for which payloads stay in order.
        delay in 0..=8_u64,
    ) {
        let mut slow = Slow::new(Duration::from_millis(delay));
        for (number, (pause, command, sign)) in (0..).zip(&sent) {
            slow.pass(Duration::from_millis(*pause));
            slow.send(&[number; 30], *command, *sign);
        }
        slow.pass(Duration::from_secs(2));
        prop_assert_eq!(slow.arrived(), (0..).take(sent.len()).collect::<Vec<u8>>());
        prop_assert_eq!(slow.swarm.nodes[1].datagrams.counters().dropped_telemetry, 0);
    }
}

#[test]
fn burst_of_signed_and_unsigned_payloads_arrives_in_order() {
    let mut slow = Slow::new(Duration::from_millis(2));
    for number in 0..40 {
        slow.send(&[number; 40], number % 3 == 0, number % 5 == 0);
    }
    slow.pass(Duration::from_secs(1));
    assert_eq!(slow.arrived(), (0..40).collect::<Vec<u8>>());
}

#[test]
fn what_follows_a_signature_that_does_not_come_waits_half_a_second() {
    let mut slow = Slow::new(Duration::from_secs(3_600));
    slow.send(&[1; 40], true, true);
    slow.send(&[2; 40], false, false);
    slow.pass(Duration::from_millis(499));
    assert!(slow.arrived().is_empty());
    slow.pass(Duration::from_millis(2));
    assert_eq!(slow.arrived(), [2]);
    slow.pass(Duration::from_secs(2));
    assert_eq!(slow.arrived(), [2]);
    assert_eq!(slow.swarm.nodes[1].datagrams.counters().dropped_commands, 1);
}

#[test]
fn command_overtakes_telemetry_where_the_carrier_is_short() {
    let telemetry_for = Duration::from_secs(60);
    let config = Config { bit_rate: Some(8_000), burst: 100, telemetry_for, ..Config::default() };
    let mut swarm = Swarm::new(2, config);
    // No two in a datagram, and each takes most of a second.
    for number in 0..10 {
        swarm.telemetry(1, &[number; 700]);
    }
    swarm.run_for(Duration::from_millis(300), Duration::from_millis(10));
    swarm.command(1, &[100; 40], false);
    swarm.run_for(Duration::from_secs(10), Duration::from_millis(10));
    let arrived: Vec<u8> = swarm.nodes[0].payloads().iter().map(|payload| payload[0]).collect();
    let place = arrived.iter().position(|number| *number == 100).expect("it arrived");
    assert!(place < arrived.len() - 1, "{arrived:?}");
}
