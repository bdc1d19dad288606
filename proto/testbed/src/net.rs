//! Connects machines of any kinds and runs them in virtual time: the bench on which protocols are tested.

mod test_node;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Duration;

use quiver_crypto::Hasher;
use quiver_machine::{Destination, Job, Machine, Misdeed, Now, Peer, Route, Via};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use self::test_node::AnyNode;
pub use self::test_node::TestNode;
use crate::{
    CompactRng, EPOCH_START, Effects, EventQueue, FaultInjection, Keep, LinkFaults, NEVER, Network, SimNode,
    Stimulus, nanos,
};

/// More steps than any test takes: the machines keep each other busy for ever.
const MAX_STEPS: u32 = 2_000_000;
/// Maximum time for which a test waits, in virtual time.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Name of a node.
pub trait Id: Copy + Ord + Debug {}

impl<N: Copy + Ord + Debug> Id for N {}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<N> {
    /// The sender.
    pub from: N,
    /// Receiver of the packet.
    pub to: N,
    /// Way of the packet: sent to this node alone, or published to the group.
    pub via: Via,
    /// The message.
    pub bytes: Vec<u8>,
}

/// Called for every message that is sent; gives what is delivered in its place.
pub type Tamper<N> = Box<dyn FnMut(Packet<N>) -> Vec<Packet<N>>>;

/// Event of the net.
enum PacketEvent<N> {
    /// A packet arrives over this connection of its receiver. `None`: over whichever there is then.
    Arrival(Packet<N>, Option<(N, Peer)>),
    /// The first notices that the second crashed.
    Lost(N, N),
}

/// Machines, the connections and messages between them, and the clock.
///
/// Nodes are [started](Self::start) and [connected](Self::connect). Links are instant and sound unless
/// [`network`](Self::network) is told otherwise: messages then arrive in the order in which they were sent,
/// before any deadline. A message dies with the connection over which it was sent.
pub struct Net<N> {
    seed: u64,
    now: u64,
    nodes: BTreeMap<N, Box<dyn AnyNode>>,
    subscribers: BTreeSet<N>,
    /// Number of outputs after which nodes crash that are yet to be started.
    crashing: BTreeMap<N, u32>,
    skew: i64,
    queue: EventQueue<PacketEvent<N>>,
    /// Handles under which the first knows the second, and the nodes that the first knows under each handle.
    peers: BTreeMap<(N, N), Peer>,
    behind: BTreeMap<(N, Peer), N>,
    last_peer: u64,
    /// Faults of links, and partitions.
    pub network: Network<N>,
    /// Nodes that nobody hears and that hear nobody.
    pub isolated: BTreeSet<N>,
    /// An adversary on all links.
    pub tamper: Option<Tamper<N>>,
    /// True if messages are recorded.
    pub recording: bool,
    /// Every message that was ever sent, before anybody tampered with it.
    pub recorded: Vec<Packet<N>>,
    /// Pairs (a, b) where a asked for b to be disconnected for good. The connection stays, so that a test
    /// goes on.
    pub blocked: Vec<(N, N)>,
    /// Pairs (a, b) where a disconnected b, which may come again.
    pub disconnected: Vec<(N, N)>,
    /// Pairs (a, b) where a asked for b to be disconnected for a while, and the reason. The connection stays,
    /// so that a test goes on.
    pub penalized: Vec<(N, N, Misdeed)>,
    /// Pairs (a, b) where a asked for b's group messages to be relayed from then on, or no more. It makes no
    /// difference but for gates.
    pub relayed: Vec<(N, N, bool)>,
    /// Nodes whose publications reach those alone that they have relayed before, as a leader's do over libp2p (§13.7).
    pub gates: BTreeSet<N>,
    /// Pairs (a, b) where a had b's group messages relayed.
    known: BTreeSet<(N, N)>,
    /// Messages that no node was there to receive.
    pub unheard: Vec<(N, Destination)>,
    /// Work that machines let their drivers do, the oldest first. It is done when no message is to arrive,
    /// and outlives its machine.
    pub jobs: VecDeque<(N, Job)>,
    /// True if jobs are left undone.
    pub jobs_held: bool,
}

impl<N: Id> Net<N> {
    /// A net without nodes. All random numbers of nodes and links come from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let rng = ChaCha8Rng::from_seed(Hasher::new("quiver/1 testbed links").u64(seed).finish());
        Self {
            seed,
            now: 0,
            nodes: BTreeMap::new(),
            subscribers: BTreeSet::new(),
            crashing: BTreeMap::new(),
            skew: 0,
            queue: EventQueue::default(),
            peers: BTreeMap::new(),
            behind: BTreeMap::new(),
            last_peer: 0,
            network: Network::new(rng, LinkFaults::INSTANT),
            isolated: BTreeSet::new(),
            tamper: None,
            recording: true,
            recorded: Vec::new(),
            blocked: Vec::new(),
            disconnected: Vec::new(),
            penalized: Vec::new(),
            relayed: Vec::new(),
            gates: BTreeSet::new(),
            known: BTreeSet::new(),
            unheard: Vec::new(),
            jobs: VecDeque::new(),
            jobs_held: false,
        }
    }

    /// Virtual time.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Readings of correct clocks that started with the net.
    pub fn clock(&self) -> Now {
        Now { monotonic: self.time(), unix: EPOCH_START + self.now / 1_000_000_000 }
    }

    /// Readings of a node's clocks.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn clock_of(&self, id: N) -> Now {
        self.any(id).clock(self.now)
    }

    /// Lets time pass without anything happening: what is due meanwhile happens late.
    pub fn skip(&mut self, time: Duration) {
        self.now += nanos(time);
    }

    /// Puts a node in that is switched off and holds these records.
    pub fn add<M: Machine<Event: Debug> + 'static>(&mut self, id: N, records: Vec<M::Record>) {
        let mut sim = SimNode::<M>::new(Keep::All, records, CompactRng::new([0; 32]));
        sim.skew = self.skew;
        self.nodes.insert(id, Box::new(TestNode { sim, events: Vec::new() }));
    }

    /// Switches a node on with the machine that its records made; one that is not there yet is put in with
    /// none.
    ///
    /// # Panics
    /// If it had another kind of machine before.
    pub fn start<M: Machine<Event: Debug> + 'static>(&mut self, id: N, machine: M) {
        if !self.nodes.contains_key(&id) {
            self.add::<M>(id, Vec::new());
        }
        let (now, seed, crash_after) = (self.now, self.seed, self.crashing.remove(&id));
        let label = format!("{id:?}");
        let node = &mut self.node_mut::<M>(id).sim;
        let hasher = Hasher::new("quiver/1 testbed node").u64(seed).lp(label.as_bytes()).u32(node.life);
        node.power_on(now, machine, CompactRng::new(hasher.finish()));
        node.crash_after = crash_after;
        self.feed(id, Stimulus::Start);
    }

    /// Lets a node hear what is published to the group.
    pub fn subscribe(&mut self, id: N) {
        self.subscribers.insert(id);
    }

    /// A node.
    ///
    /// # Panics
    /// If there is no such node with such a machine.
    pub fn node<M: Machine<Event: Debug> + 'static>(&self, id: N) -> &TestNode<M> {
        let node = self.any(id).as_any().downcast_ref();
        node.unwrap_or_else(|| panic!("{id:?} is not what it is taken for"))
    }

    /// A node.
    ///
    /// # Panics
    /// If there is no such node with such a machine.
    pub fn node_mut<M: Machine<Event: Debug> + 'static>(&mut self, id: N) -> &mut TestNode<M> {
        let node = self.any_mut(id).as_any_mut().downcast_mut();
        node.unwrap_or_else(|| panic!("{id:?} is not what it is taken for"))
    }

    /// A node's machine.
    ///
    /// # Panics
    /// If there is no such node with such a machine, or if it is switched off.
    pub fn machine<M: Machine<Event: Debug> + 'static>(&self, id: N) -> &M {
        self.node(id).machine().unwrap_or_else(|| panic!("{id:?} is switched off"))
    }

    /// All nodes, in order.
    pub fn ids(&self) -> Vec<N> {
        self.nodes.keys().copied().collect()
    }

    /// Returns true if there is such a node, switched on or off.
    pub fn has(&self, id: N) -> bool {
        self.nodes.contains_key(&id)
    }

    /// Returns true if a node is there and switched on.
    pub fn alive(&self, id: N) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.alive())
    }

    /// Switches a node off: what it had in memory and its connections are gone, and with them what was on its
    /// way over them.
    pub fn stop(&mut self, id: N) {
        self.any_mut(id).power_off();
        self.disconnect_all(id);
    }

    /// The faults that can be injected into a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn faults(&mut self, id: N) -> FaultInjection<'_> {
        self.any_mut(id).faults()
    }

    /// A node crashes after so many more outputs, from now or from its next start on: what it had yet to
    /// persist or send is lost.
    pub fn crash_after(&mut self, id: N, outputs: u32) {
        if self.alive(id) {
            *self.faults(id).crash_after = Some(outputs);
        } else {
            self.crashing.insert(id, outputs);
        }
    }

    /// A node does not crash after all.
    pub fn spare(&mut self, id: N) {
        self.crashing.remove(&id);
        *self.faults(id).crash_after = None;
    }

    /// Sets the wall clocks of all nodes, and of those that are yet to come, so many seconds ahead of the
    /// right time.
    pub fn skew_all(&mut self, seconds: i64) {
        self.skew = seconds;
        self.nodes.values_mut().for_each(|node| *node.faults().skew = seconds);
    }

    /// The handle under which a node knows another, if they are connected.
    pub fn peer(&self, at: N, of: N) -> Option<Peer> {
        self.peers.get(&(at, of)).copied()
    }

    /// The node behind this handle at another, if they are connected.
    pub fn behind(&self, at: N, peer: Peer) -> Option<N> {
        self.behind.get(&(at, peer)).copied()
    }

    /// Connects two nodes that are switched on and not connected. The second, which was dialled, is told
    /// first.
    pub fn connect(&mut self, dialler: N, listener: N, route: Route) {
        self.link(dialler, listener, (route, Route::Inbound));
    }

    /// The same with the route that either end is told.
    pub fn link(&mut self, dialler: N, listener: N, (of_dialler, of_listener): (Route, Route)) {
        if self.peers.contains_key(&(dialler, listener)) && self.peers.contains_key(&(listener, dialler)) {
            return;
        }
        // One that crashed is back before the other has noticed.
        self.disconnect(dialler, listener);
        for (at, of, route) in [(listener, dialler, of_listener), (dialler, listener, of_dialler)] {
            // Feeding the first may have been the end of it.
            if !self.alive(dialler) || !self.alive(listener) {
                return;
            }
            self.last_peer += 1;
            let peer = Peer(self.last_peer);
            self.peers.insert((at, of), peer);
            self.behind.insert((at, peer), of);
            self.feed(at, Stimulus::Connected(peer, route));
        }
    }

    /// Ends the connection between two nodes.
    pub fn disconnect(&mut self, a: N, b: N) {
        for (at, of) in [(a, b), (b, a)] {
            if let Some(peer) = self.forget(at, of) {
                self.feed(at, Stimulus::Disconnected(peer));
            }
        }
    }

    /// Ends all connections of a node.
    pub fn disconnect_all(&mut self, id: N) {
        let gone: Vec<_> = self.peers.keys().copied().filter(|(at, of)| *at == id || *of == id).collect();
        for (at, of) in gone {
            if let Some(peer) = self.forget(at, of) {
                self.feed(at, Stimulus::Disconnected(peer));
            }
        }
    }

    fn forget(&mut self, at: N, of: N) -> Option<Peer> {
        let peer = self.peers.remove(&(at, of))?;
        self.behind.remove(&(at, peer));
        Some(peer)
    }

    /// Has a node do something. One that is switched off does nothing.
    ///
    /// # Panics
    /// If there is no such node with such a machine.
    pub fn command<M: Machine<Event: Debug> + 'static>(&mut self, id: N, command: M::Command) {
        let now = self.now;
        let effects = self.node_mut::<M>(id).take(now, Stimulus::Command(command));
        self.apply(id, effects);
    }

    /// Tells a machine that it may be a copy of what it was before.
    pub fn resume(&mut self, id: N) {
        self.feed(id, Stimulus::Resumed);
    }

    /// Loses every message, from now on, of which this holds.
    pub fn lose_where(&mut self, mut lost: impl FnMut(&Packet<N>) -> bool + 'static) {
        self.tamper = Some(Box::new(move |packet| if lost(&packet) { Vec::new() } else { vec![packet] }));
    }

    /// Changes messages on their way, from now on.
    pub fn change_with(&mut self, mut change: impl FnMut(&mut Packet<N>) + 'static) {
        self.tamper = Some(Box::new(move |mut packet| {
            change(&mut packet);
            vec![packet]
        }));
    }

    /// Gives bytes to a node as if another had sent them. Links do nothing to them.
    pub fn inject(&mut self, from: N, to: N, bytes: &[u8]) {
        self.insert(Packet { from, to, via: Via::Peer, bytes: bytes.to_vec() });
    }

    /// Gives bytes to all subscribers as if a node had published them. Links do nothing to them.
    pub fn publish(&mut self, from: N, bytes: &[u8]) {
        for to in self.audience(from) {
            self.insert(Packet { from, to, via: Via::Group, bytes: bytes.to_vec() });
        }
    }

    /// Puts a packet on its way that arrives over whichever connection there is then.
    pub fn insert(&mut self, packet: Packet<N>) {
        let at = self.now + nanos(self.network.faults().delay);
        self.queue.push(at, PacketEvent::Arrival(packet, None));
    }

    /// The messages on their way, in order.
    pub fn pending(&self) -> Vec<&Packet<N>> {
        self.numbered().into_iter().map(|(_, packet)| packet).collect()
    }

    /// Delivers the message at this place among the [pending](Self::pending).
    ///
    /// # Panics
    /// If there are not so many.
    pub fn deliver(&mut self, place: usize) {
        if let PacketEvent::Arrival(packet, over) = self.take_pending(place) {
            self.arrive(packet, over);
        }
    }

    /// Delivers the message at this place among the [pending](Self::pending) with other bytes.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn deliver_changed(&mut self, place: usize, bytes: Vec<u8>) {
        if let PacketEvent::Arrival(packet, over) = self.take_pending(place) {
            self.arrive(Packet { bytes, ..packet }, over);
        }
    }

    /// Loses the message at this place among the [pending](Self::pending).
    ///
    /// # Panics
    /// If there are not so many.
    pub fn lose(&mut self, place: usize) {
        self.take_pending(place);
    }

    /// Loses all messages on their way.
    pub fn lose_all(&mut self) {
        while !self.pending().is_empty() {
            self.lose(0);
        }
    }

    fn take_pending(&mut self, place: usize) -> PacketEvent<N> {
        let (number, _) = *self.numbered().get(place).expect("so many messages");
        self.queue.remove(number).expect("it is there").event
    }

    fn numbered(&self) -> Vec<(u64, &Packet<N>)> {
        let arrivals = self.queue.in_order().into_iter().filter_map(|queued| match &queued.event {
            PacketEvent::Arrival(packet, _) => Some((queued.number, packet)),
            PacketEvent::Lost(..) => None,
        });
        arrivals.collect()
    }

    /// Delivers the next message, or goes on to the next deadline, but not beyond `end`. Returns false at the
    /// end.
    pub fn step(&mut self, end: Duration) -> bool {
        let (arrival, end) = (self.queue.next_at().unwrap_or(NEVER), nanos(end));
        if arrival > self.now && !self.jobs_held && self.work() {
            return true;
        }
        let deadline = self.next_deadline().map_or(NEVER, |(at, _)| at);
        if arrival == NEVER || arrival > end || arrival > deadline {
            return self.wait(Duration::from_nanos(end));
        }
        self.now = self.now.max(arrival);
        match self.queue.pop().map(|queued| queued.event) {
            Some(PacketEvent::Arrival(packet, over)) => self.arrive(packet, over),
            Some(PacketEvent::Lost(at, of)) if !self.peers.contains_key(&(of, at)) => self.disconnect(at, of),
            Some(PacketEvent::Lost(..)) | None => {}
        }
        true
    }

    /// Goes on to the next deadline alone, but not beyond `end`: no message arrives. Returns false if there
    /// is none.
    pub fn wait(&mut self, end: Duration) -> bool {
        let end = nanos(end);
        match self.next_deadline() {
            Some((deadline, node)) if deadline <= end => {
                self.now = self.now.max(deadline);
                self.feed(node, Stimulus::Deadline);
                true
            }
            _ => {
                self.now = self.now.max(end);
                false
            }
        }
    }

    /// Time at which the next message arrives or the next deadline comes.
    pub fn due(&self) -> Option<Duration> {
        let deadline = self.next_deadline().map(|(at, _)| at);
        self.queue.next_at().into_iter().chain(deadline).min().map(Duration::from_nanos)
    }

    fn next_deadline(&self) -> Option<(u64, N)> {
        let deadlines = self.nodes.iter().map(|(id, node)| (node.deadline(), *id));
        deadlines.min().filter(|(deadline, _)| *deadline != NEVER)
    }

    /// Does the oldest job. Returns false if there is none.
    pub fn work(&mut self) -> bool {
        let Some((id, job)) = self.jobs.pop_front() else { return false };
        let (now, done) = (self.now, job.run());
        if let Some(node) = self.nodes.get_mut(&id) {
            let effects = node.finish_job(now, done);
            self.apply(id, effects);
        }
        true
    }

    /// Runs for so long.
    ///
    /// # Panics
    /// If the machines never come to rest.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.time() + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < MAX_STEPS, "the machines never come to rest");
        }
    }

    /// Runs until something is so, for [`PATIENCE`] at most.
    ///
    /// # Panics
    /// If it does not come about.
    pub fn run_until(&mut self, what: &str, reached: impl Fn(&Self) -> bool) {
        run_until(&mut Alone(self), PATIENCE, what, |alone| reached(alone.0));
    }

    /// The last events of every node, for people.
    pub fn last_events(&self) -> String {
        self.nodes.iter().map(|(id, node)| format!("\n{id:?}: {}", node.last_events())).collect()
    }

    /// Feeds a node with anything but a command, as its driver would.
    pub fn feed(&mut self, id: N, stimulus: Stimulus<std::convert::Infallible>) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let effects = node.feed(now, stimulus);
        self.apply(id, effects);
    }

    fn apply(&mut self, id: N, effects: Effects) {
        for (peer, misdeed) in effects.penalized {
            self.penalized.extend(self.behind(id, peer).map(|other| (id, other, misdeed)));
        }
        for peer in effects.blocked {
            self.blocked.extend(self.behind(id, peer).map(|other| (id, other)));
        }
        self.jobs.extend(effects.jobs.into_iter().map(|job| (id, job)));
        let mut relayed = effects.relayed.into_iter().peekable();
        for (index, (to, bytes)) in effects.sent.into_iter().enumerate() {
            while let Some((peer, allowed, _)) = relayed.next_if(|(_, _, before)| *before <= index) {
                self.relay(id, peer, allowed);
            }
            let (via, targets): (_, Vec<N>) = match to {
                Destination::Peer(peer) => (Via::Peer, self.behind(id, peer).into_iter().collect()),
                Destination::Group => (Via::Group, self.audience(id)),
            };
            if targets.is_empty() {
                self.unheard.push((id, to));
            }
            for to in targets {
                self.send(Packet { from: id, to, via, bytes: bytes.clone() });
            }
        }
        for (peer, allowed, _) in relayed {
            self.relay(id, peer, allowed);
        }
        for peer in effects.disconnected {
            if let Some(other) = self.behind(id, peer) {
                self.disconnected.push((id, other));
                self.disconnect(id, other);
            }
        }
        if effects.crashed {
            self.bury(id);
        }
    }

    fn relay(&mut self, id: N, peer: Peer, allowed: bool) {
        let Some(other) = self.behind(id, peer) else { return };
        self.relayed.push((id, other, allowed));
        if allowed {
            self.known.insert((id, other));
        }
    }

    /// Messages that a node sent before it crashed are on their way; then the others notice.
    fn bury(&mut self, id: N) {
        self.known.retain(|(at, _)| *at != id);
        let faults = self.network.faults();
        let noticed = self.now + nanos(faults.delay + faults.jitter);
        let others: Vec<_> = self.peers.keys().copied().filter(|(at, _)| *at == id).collect();
        for (at, of) in others {
            self.forget(at, of);
            self.queue.push(noticed, PacketEvent::Lost(of, at));
        }
    }

    /// Receivers of a node's publications: all subscribers that can be reached by relays.
    fn audience(&self, from: N) -> Vec<N> {
        let passes = |id: &N| !self.gates.contains(&from) || self.known.contains(&(from, *id));
        let hears = |id: &N| *id != from && passes(id) && self.alive(*id) && self.route(from, *id).is_some();
        self.subscribers.iter().copied().filter(hears).collect()
    }

    fn send(&mut self, packet: Packet<N>) {
        if self.recording {
            self.recorded.push(packet.clone());
        }
        let packets = match self.tamper.take() {
            None => vec![packet],
            Some(mut tamper) => {
                let packets = tamper(packet);
                self.tamper = Some(tamper);
                packets
            }
        };
        for packet in packets {
            let Packet { from, to, via, bytes } = packet;
            let over = self.route(from, to);
            let (now, queue) = (self.now, &mut self.queue);
            self.network.carry(from, to, &Arc::from(bytes), &mut |arrival| {
                let packet = Packet { from, to, via, bytes: arrival.payload.to_vec() };
                queue.push(now.saturating_add(arrival.after), PacketEvent::Arrival(packet, over));
            });
        }
    }

    /// Finds the connection over which a node hears another: their own, or that of somebody who passes it on.
    fn route(&self, from: N, to: N) -> Option<(N, Peer)> {
        let direct = self.peer(to, from).map(|peer| (from, peer));
        let relays = self.subscribers.iter().rev().filter(|relay| **relay != to);
        direct.or_else(|| relays.copied().find_map(|relay| Some((relay, self.peer(to, relay)?))))
    }

    fn arrive(&mut self, packet: Packet<N>, over: Option<(N, Peer)>) {
        let Packet { from, to, via, bytes } = packet;
        if self.isolated.contains(&from) || self.isolated.contains(&to) || !self.network.reaches(from, to) {
            return;
        }
        let over = match over {
            Some((relay, peer)) => Some(peer).filter(|peer| self.peer(to, relay) == Some(*peer)),
            None => self.route(from, to).map(|(_, peer)| peer),
        };
        if let Some(peer) = over {
            self.feed(to, Stimulus::Received(peer, via, bytes.into()));
        }
    }

    fn any(&self, id: N) -> &dyn AnyNode {
        self.nodes.get(&id).unwrap_or_else(|| panic!("there is no {id:?}")).as_ref()
    }

    fn any_mut(&mut self, id: N) -> &mut dyn AnyNode {
        self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no {id:?}")).as_mut()
    }
}

/// Runs what a test has built around a net until something is so.
///
/// # Panics
/// If it does not come about in so long.
pub fn run_until<N: Id, T: DerefMut<Target = Net<N>>>(
    world: &mut T,
    patience: Duration,
    what: &str,
    mut reached: impl FnMut(&T) -> bool,
) {
    let end = world.time() + patience;
    while !reached(world) {
        assert!(world.step(end), "not reached in {patience:?}: {what}; {}", world.last_events());
    }
}

/// A net with nothing around it.
#[derive(derive_more::Deref, derive_more::DerefMut)]
struct Alone<'a, N>(
    #[deref(forward)]
    #[deref_mut(forward)]
    &'a mut Net<N>,
);
