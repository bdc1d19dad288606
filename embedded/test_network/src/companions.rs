//! Companions: real edges beside the board, on perfect links.

use std::time::Duration;

use quiver_ainq::{Revoked, Role};
use quiver_enrolment::{KgcCommand, Kgcs};
use quiver_group::edge::EdgeTiming;
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Destination, Input, Machine, Output, Peer, Route};

use crate::{GROUP, InFlight, S, TestNetwork, grant, name};

/// Handles of KGC and leader at companions.
pub(crate) const KGC: Peer = Peer(1);
pub(crate) const LEADER: Peer = Peer(2);
/// First handle of companions at KGC and leader, above all others.
const FIRST: u64 = 1 << 32;

pub(crate) struct Companion {
    serial: [u8; 16],
    machine: Edge<S>,
    deadline: Option<Duration>,
    /// Whether it is offline.
    silent: bool,
}

/// Index of the companion with this handle at KGC and leader.
pub(crate) fn index(peer: Peer) -> Option<usize> {
    peer.0.checked_sub(FIRST).and_then(|index| usize::try_from(index).ok())
}

fn peer(index: usize) -> Peer {
    Peer(FIRST + index as u64)
}

impl TestNetwork {
    /// There are so many more drones, which begin to enrol.
    ///
    /// # Panics
    /// If the machines refuse their configuration.
    pub fn add_companions(&mut self, count: usize) {
        for index in self.companions.len()..self.companions.len() + count {
            let grant = grant(&format!("companion-{index}"), Role::Edge);
            let token = self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap();
            let serial = token.token.statement.identity().serial;
            let config = EdgeConfig {
                deployment: self.deployment.clone(),
                group: Some(name(GROUP)),
                token: Some(token),
                kgcs: Kgcs::single(),
                timing: EdgeTiming::default(),
            };
            let machine = Edge::new(config, None).unwrap();
            self.companions.push(Companion { serial, machine, deadline: None, silent: false });
            self.feed_kgc(Input::Connected { peer: peer(index), route: Route::Inbound });
            self.feed_leader(Input::Connected { peer: peer(index), route: Route::Inbound });
            self.feed_companion(index, Input::Connected { peer: KGC, route: Route::Kgc });
            self.feed_companion(index, Input::Connected { peer: LEADER, route: Route::Leader });
        }
    }

    /// Whether all of them hold the leader's key.
    #[must_use]
    pub fn companions_agree(&self) -> bool {
        let epoch = self.leader.status().epoch;
        self.companions.iter().all(|companion| companion.machine.status().epoch == epoch)
    }

    /// Takes the companions with an odd slot offline.
    pub fn silence_every_second(&mut self) {
        for companion in &mut self.companions {
            companion.silent = companion.machine.status().slot.is_some_and(|slot| slot % 2 == 1);
        }
    }

    /// Revokes the companions with an odd slot.
    pub fn revoke_every_second(&mut self) {
        let odd = |companion: &&Companion| companion.machine.status().slot.is_some_and(|slot| slot % 2 == 1);
        let revoked = self.companions.iter().filter(odd).map(|companion| Revoked::unknown(companion.serial));
        let revoked = revoked.collect();
        self.feed_kgc(Input::Command(KgcCommand::RevokeDrones(revoked)));
    }

    /// Another leader, or the same after a start, has their lines.
    pub(crate) fn reconnect_companions(&mut self) {
        for index in 0..self.companions.len() {
            self.feed_companion(index, Input::Disconnected { peer: LEADER });
            self.feed_companion(index, Input::Connected { peer: LEADER, route: Route::Leader });
            if !self.companions[index].silent {
                self.feed_leader(Input::Connected { peer: peer(index), route: Route::Inbound });
            }
        }
    }

    pub(crate) fn companions_due(&self) -> Option<Duration> {
        let awake = self.companions.iter().filter(|companion| !companion.silent);
        awake.filter_map(|companion| companion.deadline).min()
    }

    pub(crate) fn wake_companions(&mut self) {
        for index in 0..self.companions.len() {
            if self.companions[index].deadline.is_some_and(|at| at <= self.now) {
                self.feed_companion(index, Input::Timeout);
            }
        }
    }

    pub(crate) fn feed_companion(&mut self, index: usize, input: Input<'_, quiver_group::EdgeCommand>) {
        let now = self.times();
        let companion = &mut self.companions[index];
        if companion.silent {
            return;
        }
        companion.machine.handle_input(now, input, &mut self.rng);
        loop {
            match companion.machine.poll_output() {
                Output::Timeout(at) => return companion.deadline = at,
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    let flight = if to == KGC { InFlight::Kgc } else { InFlight::Leader };
                    self.flights.push_back(flight(peer(index), payload));
                }
                _ => {}
            }
        }
    }
}
