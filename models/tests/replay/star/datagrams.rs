//! Datagrams between members of a star.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::EpochKeys;
use quiver_datagram::{Config, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_group::{Edge, Leader};
use quiver_machine::Now;

use super::{LEADERS, S, World};
use crate::recording::{Node, Step};

/// Members that send datagrams.
const SPEAKERS: [Node; 3] = ["leader", "edge-0", "edge-1"];

/// The machines of the members that send datagrams.
pub(super) type Speakers = BTreeMap<Node, Datagrams<S>>;

impl World {
    fn epoch_keys(&self, node: Node, now: Now) -> Option<EpochKeys<S>> {
        if LEADERS.contains(&node) {
            self.net.machine::<Leader<S>>(node).epoch_keys(now)
        } else {
            self.net.machine::<Edge<S>>(node).epoch_keys(now)
        }
    }

    /// Members send datagrams of every kind: signed and not, alone and several together, announcements,
    /// manifests.
    pub(super) fn exchange_datagrams(&mut self) {
        let begin = self.net.time();
        for node in SPEAKERS {
            let keys = self.epoch_keys(node, self.net.clock_of(node)).expect("a member");
            let config = Config { manifest_every: Some(Duration::from_secs(1)), ..Config::default() };
            let machine =
                self.datagrams.entry(node).or_insert_with(|| Datagrams::new(config, self.deployment.clone()));
            machine.set_epoch(begin, keys, &mut self.rng);
        }
        for tenth in 0..25 {
            let now = begin + tenth * Duration::from_millis(100);
            for node in SPEAKERS {
                let machine = self.datagrams.get_mut(node).expect("it speaks");
                // Two at once travel together.
                for (number, sign) in [(0, false), (4, false), (4, false), (8, true), (12, true), (12, true)]
                {
                    if number == tenth {
                        let bytes = format!("{node} {tenth} {sign} {begin:?}").into_bytes();
                        machine.send(now, Payload { bytes, priority: Priority::Command, sign }).unwrap();
                    }
                }
                machine.handle_timeout(now);
                self.answer(node, now);
                while let Some(bytes) =
                    self.datagrams.get_mut(node).and_then(|machine| machine.poll_datagram(now))
                {
                    self.steps.push(Step::Datagram { from: node, bytes: bytes.clone() });
                    for other in SPEAKERS.into_iter().filter(|other| *other != node) {
                        self.datagrams.get_mut(other).expect("it speaks").handle_datagram(now, &bytes);
                        self.answer(other, now);
                    }
                    self.answer(node, now);
                }
            }
        }
    }

    /// Signs what a member's datagrams need signed, and takes up what it hears.
    fn answer(&mut self, node: Node, now: Duration) {
        let (clock, leads) = (self.net.clock_of(node), LEADERS.contains(&node));
        let machine = self.datagrams.get_mut(node).expect("it speaks");
        while let Some(event) = machine.poll_event() {
            match event {
                Event::SignatureWanted(wanted) => {
                    let signature = if leads {
                        self.net.machine::<Leader<S>>(node).sign_datagram(&wanted.statement, &mut self.rng)
                    } else {
                        self.net.machine::<Edge<S>>(node).sign_datagram(&wanted.statement, &mut self.rng)
                    };
                    machine.provide_signature(now, wanted.id, &signature.expect("a member"));
                }
                Event::SignerAnnounced { slot, drone } => {
                    let may = if leads {
                        self.net.machine::<Leader<S>>(node).may_sign_datagrams(clock, slot, &drone)
                    } else {
                        self.net.machine::<Edge<S>>(node).may_sign_datagrams(clock, slot, &drone)
                    };
                    may.unwrap();
                    machine.allow_signer(now, slot, &drone.handle());
                }
                Event::Received { slot, bytes, source } => {
                    let signer = match source {
                        PayloadOrigin::Member => None,
                        PayloadOrigin::Signed { name, .. } => Some(name),
                    };
                    self.steps.push(Step::Heard { at: node, slot, signer, data: bytes });
                }
                _ => {}
            }
        }
    }
}
