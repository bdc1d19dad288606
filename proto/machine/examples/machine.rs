//! A machine of one's own, driven by the deterministic testbed: two beacons, one of which falls silent.
//!
//! `cargo run -p quiver-machine --example machine`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use quiver_machine::{Input, Machine, Now, Outbox, Output, Peer, Route};
use quiver_testbed::Net;
use rand_core::CryptoRngCore;

const INTERVAL: Duration = Duration::from_secs(1);

/// Sends a beacon to every peer once a second, and reports those that it has not heard for three seconds.
struct Beacon {
    heard: BTreeMap<Peer, Duration>,
    next: Duration,
    out: Outbox<Peer, Infallible>,
}

impl Machine for Beacon {
    type Command = Infallible;
    type Event = Peer;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Infallible>, _: &mut dyn CryptoRngCore) {
        match input {
            Input::Connected { peer, .. } | Input::Received { from: peer, .. } => {
                self.heard.insert(peer, now.monotonic);
            }
            Input::Disconnected { peer } => drop(self.heard.remove(&peer)),
            Input::Timeout | Input::Resumed => {}
            Input::Command(never) => match never {},
        }
        if now.monotonic >= self.next {
            self.next = now.monotonic + INTERVAL;
            self.heard.keys().for_each(|peer| self.out.send_encoded(*peer, b"beacon".to_vec()));
            let silent = self.heard.extract_if(.., |_, heard| now.monotonic - *heard >= 3 * INTERVAL);
            silent.for_each(|(peer, _)| self.out.event(peer));
        }
    }

    fn poll_output(&mut self) -> Output<Peer, Infallible> {
        self.out.poll(Some(self.next))
    }
}

fn main() {
    let mut net = Net::new(1);
    for id in [1, 2] {
        net.start(id, Beacon { heard: BTreeMap::new(), next: Duration::ZERO, out: Outbox::new() });
    }
    net.connect(1, 2, Route::Inbound);
    net.run_for(Duration::from_secs(10));
    assert!(net.node::<Beacon>(1).events.is_empty());
    net.isolated.insert(2);
    net.run_until("beacon 1 reports beacon 2", |net| !net.node::<Beacon>(1).events.is_empty());
    println!("{:?}: beacon 1 misses {:?}", net.time(), net.node::<Beacon>(1).events);
    assert_eq!(net.time(), Duration::from_secs(13));
}
