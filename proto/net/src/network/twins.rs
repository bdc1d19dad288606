//! Whether two processes run with one identity, this node's or a peer's.

use libp2p::PeerId;
use libp2p::request_response::Message;
use quiver_role::{Peer, Route};
use rand::Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Incoming, Network};
use crate::twins::{Asking, Event, Instance, Sightings, Witness};

/// What is known of twins.
pub(super) struct Twins {
    /// Of this node.
    pub(super) asking: Asking,
    witnesses: watch::Sender<Vec<Witness>>,
    /// Of its peers.
    sightings: Sightings,
}

impl Twins {
    pub(super) fn new(own: Instance) -> Self {
        let witnesses = watch::Sender::new(Vec::new());
        Self { asking: Asking::new(own), witnesses, sightings: Sightings::default() }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        [self.asking.wake_at(), self.sightings.wake_at()].into_iter().flatten().min()
    }
}

impl Network {
    /// Who says that another process uses this node's identity, as it is from now on.
    pub(crate) fn witnesses(&self) -> watch::Receiver<Vec<Witness>> {
        self.twins.witnesses.subscribe()
    }

    /// Asks under another number from now on, as after a start.
    pub(crate) fn renew_instance(&mut self) {
        self.twins.asking.renew(rand::rngs::OsRng.r#gen());
    }

    pub(super) fn look_for_twins(&mut self, now: Instant) {
        self.twins.asking.tick(&self.peers, self.swarm.behaviour_mut().twins.as_mut(), now);
        for drone in self.twins.sightings.over(now) {
            tracing::info!(drone, "no other process was seen to run with its identity for half a minute");
        }
        self.count_twins();
    }

    fn count_twins(&self) {
        let named = self.twins.sightings.named();
        self.metrics.peers_with_twins.set(i64::try_from(named).unwrap_or(i64::MAX));
    }

    pub(super) fn forget_twins(&mut self, id: &PeerId) {
        self.twins.sightings.disconnected(id);
        self.count_twins();
        if self.twins.asking.silent(id) {
            self.tell_witnesses();
        }
    }

    pub(super) fn on_twin_event(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Message { peer, message: Message::Request { request, channel, .. }, .. } => {
                // Without a handle the peer has just left or is blocked.
                let Some(handle) = self.peers.handle(&peer) else { return };
                let answer = self.twins.sightings.asked(peer, request, now);
                if let Some(twins) = self.swarm.behaviour_mut().twins.as_mut() {
                    // Whoever does not wait for it asks again.
                    let _ = twins.send_response(channel, answer);
                }
                if self.twins.sightings.is_nameless(&peer) {
                    self.incoming.push_back(Incoming::Twin { peer: handle });
                }
            }
            Event::Message { peer, message: Message::Response { response, .. }, .. } => {
                let Some(route) = self.peers.route(&peer) else { return };
                if self.twins.asking.answered(peer, route, response, now) {
                    self.tell_witnesses();
                }
            }
            Event::OutboundFailure { peer, error, .. } => {
                tracing::debug!(%peer, "did not say whether another process has this one's identity: {error}");
                if self.twins.asking.silent(&peer) {
                    self.tell_witnesses();
                }
            }
            Event::InboundFailure { .. } | Event::ResponseSent { .. } => {}
        }
    }

    /// Says who it is of whom two run, if that is known: the machine's word for it, or whoever vouched for
    /// its clock.
    pub(crate) fn name_twin(&mut self, peer: Peer, drone: Option<String>) {
        let Some(id) = self.peers.id(peer) else { return };
        let member = || match self.peers.route(&id) {
            Some(Route::Member(kgc)) => Some(format!("KGC {kgc}")),
            _ => None,
        };
        match drone.or_else(|| self.asking.drone(&id)).or_else(member) {
            Some(name) => {
                tracing::warn!(
                    drone = name,
                    peer = %id,
                    "two processes run with one identity, and both ask: end the copy, and delete its volume"
                );
                self.twins.sightings.name(&id, name);
                self.count_twins();
            }
            None => tracing::debug!(peer = %id, "two processes run with one identity, whose it is not known"),
        }
    }

    fn tell_witnesses(&self) {
        let witnesses = self.twins.asking.witnesses();
        self.metrics.twin_witnesses.set(i64::try_from(witnesses.len()).unwrap_or(i64::MAX));
        match &witnesses[..] {
            [] => tracing::info!("nobody hears another process with this one's identity any more"),
            [.., newest] => tracing::warn!(
                witnesses = witnesses.len(),
                "another process runs with a copy of this one's identity: both asked {newest}; end the copy"
            ),
        }
        self.twins.witnesses.send_replace(witnesses);
    }
}
