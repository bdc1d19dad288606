//! How time passes.

use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_message::quorum::QuorumMessage;
use quiver_role::{Destination, Input, Machine, Output, Peer, QuorumCommand, QuorumNode, Route, Via};
use rand_chacha::rand_core::RngCore;

use super::{Flight, Node, World, kind};

impl World {
    /// Starts a member out of its records, and connects it with all who are up.
    pub(crate) fn start(&mut self, id: KgcId) {
        let records: Vec<_> = self.members[&id].records.values().cloned().collect();
        let node = QuorumNode::new(self.config(id), records).expect("what was stored is taken back");
        let member = self.members.get_mut(&id).unwrap();
        member.node = Some(node);
        member.deadline = Some(Duration::ZERO);
        for other in self.ids() {
            if other != id && self.members[&other].node.is_some() {
                self.connect(id, other);
                self.connect(other, id);
            }
        }
    }

    /// A new connection, with a new handle.
    fn connect(&mut self, at: KgcId, to: KgcId) {
        let peer = Peer(self.next);
        self.next += 1;
        let old = self.members.get_mut(&at).unwrap().links.insert(to, peer);
        if let Some(old) = old {
            self.input(at, Input::Disconnected { peer: old });
        }
        self.input(at, Input::Connected { peer, route: Route::Member(to) });
    }

    /// A member is gone, with all it had in memory.
    pub(crate) fn kill(&mut self, id: KgcId) {
        let member = self.members.get_mut(&id).unwrap();
        (member.node, member.deadline, member.doom) = (None, None, None);
        member.links.clear();
        member.deaths += 1;
        for other in self.ids() {
            if let Some(peer) = self.members.get_mut(&other).unwrap().links.remove(&id) {
                self.input(other, Input::Disconnected { peer });
            }
        }
    }

    pub(crate) fn command(&mut self, id: KgcId, command: QuorumCommand) {
        self.input(id, Input::Command(command));
    }

    pub(crate) fn command_all(&mut self, command: &QuorumCommand) {
        self.ids().into_iter().for_each(|id| self.command(id, command.clone()));
    }

    pub(crate) fn input(&mut self, id: KgcId, input: Input<'_, QuorumCommand>) {
        let now = self.now();
        let member = self.members.get_mut(&id).unwrap();
        let Some(node) = &mut member.node else { return };
        node.handle_input(now, input, &mut self.rng);
        self.drain(id);
    }

    fn drain(&mut self, id: KgcId) {
        loop {
            let member = self.members.get_mut(&id).unwrap();
            let Some(node) = &mut member.node else { return };
            let output = node.poll_output();
            if let Output::Timeout(deadline) = output {
                member.deadline = deadline;
                return;
            }
            if let Some(doom) = &mut member.doom {
                if *doom == 0 {
                    return self.kill(id);
                }
                *doom -= 1;
            }
            match output {
                Output::Persist(record) => {
                    member.records.insert(kind(&record), record);
                }
                Output::Event(event) => member.events.push(event),
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.transmit(id, peer, &payload);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn transmit(&mut self, from: KgcId, peer: Peer, payload: &[u8]) {
        let links = &self.members[&from].links;
        let Some((&to, _)) = links.iter().find(|(_, link)| **link == peer) else { return };
        let message =
            QuorumMessage::decode(self.charter.fingerprint(), payload).expect("what is sent is valid");
        let flight = Flight { from, to, message };
        self.sent.push(flight.clone());
        let flights = match self.tamper.take() {
            None => vec![flight],
            Some(mut tamper) => {
                let flights = tamper(flight);
                self.tamper = Some(tamper);
                flights
            }
        };
        flights.into_iter().for_each(|flight| self.fly(&flight));
    }

    pub(crate) fn fly(&mut self, flight: &Flight) {
        let Flight { from, to, ref message } = *flight;
        let cut = self.cut.contains(&(from, to)) || self.cut.contains(&(to, from));
        let Some(&at) = self.members[&to].links.get(&from) else { return };
        let bytes = message.encode(self.charter.fingerprint());
        let copies = if self.chance(self.weather.twice) { 2 } else { 1 };
        for _ in 0..copies {
            if cut || self.chance(self.weather.lost) {
                continue;
            }
            let late = self.rng.next_u64() % (self.weather.late + 1);
            let when = self.clock + Duration::from_millis(10 + late);
            self.next += 1;
            self.queue.insert((when, self.next), (to, at, bytes.clone()));
        }
    }

    /// The next thing happens. Returns false if nothing ever will before the end.
    fn step(&mut self, end: Duration) -> bool {
        let flight = self.queue.keys().next().map(|(when, _)| *when);
        let timer = self.members.iter().filter_map(|(id, member)| Some((member.deadline?, *id))).min();
        match (flight, timer) {
            (Some(when), timer) if timer.is_none_or(|(deadline, _)| when <= deadline) && when <= end => {
                let (_, (to, from, bytes)) = self.queue.pop_first().unwrap();
                self.clock = self.clock.max(when);
                self.input(to, Input::Received { from, via: Via::Peer, bytes: &bytes });
            }
            (_, Some((deadline, id))) if deadline <= end => {
                self.clock = self.clock.max(deadline);
                self.input(id, Input::Timeout);
            }
            _ => return false,
        }
        true
    }

    /// Lets so much time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.clock + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 20_000, "they never come to rest: {:#?}", &self.sent[self.sent.len() - 10..]);
        }
        self.clock = end;
    }

    /// Lets time pass until this is so, at most twenty minutes. Whoever is down comes up again after a second.
    pub(crate) fn until(&mut self, what: &str, reached: impl Fn(&Self) -> bool) {
        let end = self.clock + Duration::from_secs(1200);
        while !reached(self) {
            let all = self.ids();
            assert!(
                self.clock < end,
                "{what}: {:?}",
                all.iter().map(|id| self.view(*id)).collect::<Vec<_>>()
            );
            self.pass(Duration::from_millis(500));
            for id in all {
                if self.members[&id].node.is_none() {
                    self.pass(Duration::from_secs(1));
                    self.start(id);
                    // An operator whose command died with it gives it again.
                    if let Some(command) = self.wanted.clone() {
                        self.command(id, command);
                    }
                }
            }
        }
    }

    fn view(&self, id: KgcId) -> Option<String> {
        self.members[&id].node.as_ref().map(|node: &Node| format!("{:?}\n", node.view()))
    }

    /// Both keys are made.
    pub(crate) fn generate(&mut self) {
        self.wanted = Some(QuorumCommand::Generate);
        self.command_all(&QuorumCommand::Generate);
        self.until("keys are made", |world| world.all_hold(0));
        self.wanted = None;
    }

    /// Whether all members have shares of this version in force.
    pub(crate) fn all_hold(&self, version: u32) -> bool {
        let holds = |node: &Node| node.keys().is_some_and(|keys| keys.version() == version);
        self.members.values().all(|member| member.node.as_ref().is_some_and(holds))
    }
}
