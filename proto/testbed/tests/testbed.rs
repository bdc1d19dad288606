//! Nets of counters: each sends its count to all it is connected to whenever it is told to, and stores it
//! before.

use std::collections::VecDeque;
use std::time::Duration;

use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use quiver_testbed::{DiskState, LinkFaults, Net, Partition};
use rand_core::CryptoRngCore;

const SECOND: Duration = Duration::from_secs(1);

/// Counts what it is told, and tells others.
#[derive(Debug, Default)]
struct Counter {
    count: u8,
    peers: Vec<Peer>,
    outputs: VecDeque<Output<u8, u8>>,
    deadline: Option<Duration>,
    /// The first random number of its life.
    drawn: Option<u32>,
}

enum Order {
    Tell,
    Publish,
    Alarm(Duration),
}

impl Counter {
    fn restored(records: &[u8]) -> Self {
        Self { count: records.last().copied().unwrap_or(0), ..Self::default() }
    }
}

impl Machine for Counter {
    type Command = Order;
    type Event = u8;
    type Record = u8;

    fn handle_input(&mut self, now: Now, input: Input<'_, Order>, rng: &mut dyn CryptoRngCore) {
        self.drawn.get_or_insert_with(|| rng.next_u32());
        match input {
            Input::Connected { peer, .. } => self.peers.push(peer),
            Input::Disconnected { peer } => self.peers.retain(|known| *known != peer),
            Input::Received { bytes, via, .. } => {
                let heard = bytes[0] + if via == Via::Group { 100 } else { 0 };
                self.outputs.push_back(Output::Event(heard));
            }
            Input::Command(Order::Tell) => {
                self.count += 1;
                self.outputs.push_back(Output::Persist(self.count));
                for peer in &self.peers {
                    let (to, payload) = (Destination::Peer(*peer), vec![self.count]);
                    self.outputs.push_back(Output::Transmit { to, payload });
                }
            }
            Input::Command(Order::Publish) => {
                let payload = vec![self.count];
                self.outputs.push_back(Output::Transmit { to: Destination::Group, payload });
            }
            Input::Command(Order::Alarm(after)) => self.deadline = Some(now.monotonic + after),
            Input::Timeout if self.deadline.is_some_and(|at| at <= now.monotonic) => {
                self.deadline = None;
                self.outputs.push_back(Output::Event(255));
            }
            Input::Timeout | Input::Resumed => {}
        }
    }

    fn poll_output(&mut self) -> Output<u8, u8> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.deadline))
    }
}

/// Network of `count` counters, each connected with the first.
fn star(seed: u64, count: u8) -> Net<u8> {
    let mut net = Net::new(seed);
    for id in 0..count {
        net.start(id, Counter::default());
        net.subscribe(id);
    }
    (1..count).for_each(|id| net.connect(id, 0, Route::Leader));
    net
}

fn heard(net: &Net<u8>, id: u8) -> &[u8] {
    &net.node::<Counter>(id).events
}

fn tell(net: &mut Net<u8>, id: u8) {
    net.command::<Counter>(id, Order::Tell);
}

#[test]
fn messages_arrive_in_order_and_before_deadlines() {
    let mut net = star(1, 3);
    net.command::<Counter>(1, Order::Alarm(Duration::ZERO));
    tell(&mut net, 0);
    tell(&mut net, 0);
    net.run_for(SECOND);
    assert_eq!((heard(&net, 1), heard(&net, 2)), (&[1, 2, 255][..], &[1, 2][..]));
    assert_eq!((net.recorded.len(), net.time()), (4, SECOND));
}

#[test]
fn what_is_published_reaches_every_subscriber_through_whoever_is_connected() {
    let mut net = star(1, 4);
    net.command::<Counter>(3, Order::Publish);
    net.run_for(SECOND);
    assert_eq!([0, 1, 2, 3].map(|id| heard(&net, id).len()), [1, 1, 1, 0]);
    assert_eq!(heard(&net, 1), [100]);
}

#[test]
fn a_node_that_crashes_has_stored_what_it_sent_and_comes_back_with_it() {
    for outputs in 0..3 {
        let mut net = star(1, 3);
        let before = net.machine::<Counter>(0).drawn;
        net.crash_after(0, outputs);
        tell(&mut net, 0);
        net.run_for(SECOND);
        assert!(!net.alive(0) && net.peer(1, 0).is_none(), "after {outputs}");
        let sent = outputs.saturating_sub(1) as usize;
        assert_eq!(heard(&net, 1).len() + heard(&net, 2).len(), sent, "after {outputs}");
        let records = net.node::<Counter>(0).records().to_vec();
        assert!(records.len() >= sent.min(1), "record before message");
        net.start(0, Counter::restored(&records));
        net.connect(1, 0, Route::Leader);
        assert_ne!(net.machine::<Counter>(0).drawn, before, "other random numbers in another life");
        tell(&mut net, 0);
        net.run_for(SECOND);
        assert_eq!(heard(&net, 1).last(), Some(&(records.len() as u8 + 1)));
    }
}

#[test]
fn a_message_dies_with_its_connection() {
    let mut net = star(1, 2);
    tell(&mut net, 0);
    net.disconnect(0, 1);
    net.connect(1, 0, Route::Leader);
    net.run_for(SECOND);
    assert!(heard(&net, 1).is_empty());
}

#[test]
fn a_node_whose_disk_is_full_sends_nothing_until_it_is_not() {
    let mut net = star(1, 2);
    *net.faults(0).disk = DiskState::Full;
    tell(&mut net, 0);
    net.run_for(SECOND);
    assert!(heard(&net, 1).is_empty());
    *net.faults(0).disk = DiskState::Sound;
    net.run_until("it has said so", |net| heard(net, 1) == [1]);
}

#[test]
fn an_adversary_sees_every_message_and_delivers_what_it_likes() {
    let mut net = star(1, 3);
    net.tamper = Some(Box::new(|mut packet| {
        packet.bytes[0] += 10;
        if packet.to == 1 { vec![packet.clone(), packet] } else { vec![] }
    }));
    tell(&mut net, 0);
    net.inject(2, 0, &[7]);
    net.run_for(SECOND);
    assert_eq!((heard(&net, 0), heard(&net, 1), heard(&net, 2).len()), (&[7][..], &[11, 11][..], 0));
    assert!(net.recorded.iter().all(|packet| packet.bytes == [1]));
}

#[test]
fn partitions_and_faults_of_links_are_the_networks() {
    let mut net = star(1, 3);
    net.network.part(Partition::island([1]));
    tell(&mut net, 0);
    net.run_for(SECOND);
    assert_eq!((heard(&net, 1).len(), heard(&net, 2).len()), (0, 1));
    net.network.heal();
    net.network.set_faults(LinkFaults { delay: SECOND * 5, ..LinkFaults::INSTANT });
    tell(&mut net, 0);
    net.run_for(SECOND);
    assert!(heard(&net, 1).is_empty());
    net.run_for(SECOND * 5);
    assert_eq!(heard(&net, 1), [2]);
}

#[test]
fn a_test_can_choose_what_arrives_next() {
    let mut net = star(1, 3);
    tell(&mut net, 0);
    assert_eq!(net.pending().iter().map(|packet| packet.to).collect::<Vec<_>>(), [1, 2]);
    net.deliver(1);
    assert_eq!((heard(&net, 1).len(), heard(&net, 2).len(), net.pending().len()), (0, 1, 1));
}

#[test]
#[should_panic(expected = "not reached in 300s: the impossible")]
fn what_never_comes_about_is_said() {
    star(1, 2).run_until("the impossible", |_| false);
}
