//! Detection of duplicate identities in the running network: this node's own, and its peers'.

use libp2p::PeerId;
use libp2p::request_response::Message;
use quiver_machine::{Peer, Route};
use rand::Rng;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{DriverNetwork, Incoming};
use crate::duplicate_identity::Sightings;
use crate::duplicate_identity::gossip::{DuplicateReport, GossipEvent, Instance, InstancePoll};

/// State of the detection.
pub(super) struct DuplicateIdentity {
    /// Questions of this node.
    pub(super) poll: InstancePoll,
    reports: watch::Sender<Vec<DuplicateReport>>,
    /// Questions of its peers.
    sightings: Sightings,
}

impl DuplicateIdentity {
    pub(super) fn new(own: Instance) -> Self {
        let reports = watch::Sender::new(Vec::new());
        Self { poll: InstancePoll::new(own), reports, sightings: Sightings::default() }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        [self.poll.wake_at(), self.sightings.wake_at()].into_iter().flatten().min()
    }
}

impl DriverNetwork {
    /// Watches the reports that another process uses this node's identity.
    pub(crate) fn reports(&self) -> watch::Receiver<Vec<DuplicateReport>> {
        self.duplicates.reports.subscribe()
    }

    /// Asks under another number from now on, as after a start.
    pub(crate) fn renew_instance(&mut self) {
        // §13.9: another number, which distinguishes this process from a copy of it.
        self.duplicates.poll.renew(rand::rngs::OsRng.r#gen());
    }

    pub(super) fn poll_duplicates(&mut self, now: Instant) {
        self.duplicates.poll.tick(&self.peers, self.swarm.behaviour_mut().duplicates.as_mut(), now);
        for drone in self.duplicates.sightings.over(now) {
            tracing::info!(drone, "no other process was seen to run with its identity for 15 s");
        }
        self.count_duplicates();
    }

    fn count_duplicates(&self) {
        let named = self.duplicates.sightings.named();
        self.metrics.duplicated_peers.set(i64::try_from(named).unwrap_or(i64::MAX));
    }

    pub(super) fn forget_duplicates(&mut self, id: &PeerId) {
        self.duplicates.sightings.disconnected(id);
        self.count_duplicates();
        if self.duplicates.poll.silent(id) {
            self.publish_reports();
        }
    }

    pub(super) fn on_duplicate_event(&mut self, event: GossipEvent) {
        let now = Instant::now();
        match event {
            GossipEvent::Message { peer, message: Message::Request { request, channel, .. }, .. } => {
                // Without a handle the peer has just left or is blocked.
                let Some(handle) = self.peers.handle(&peer) else { return };
                let answer = self.duplicates.sightings.asked(peer, request, now);
                if let Some(duplicates) = self.swarm.behaviour_mut().duplicates.as_mut() {
                    // A peer that stopped waiting asks again.
                    let _ = duplicates.send_response(channel, answer);
                }
                // §16.2: the machine may know whose identity two processes run with.
                if self.duplicates.sightings.is_nameless(&peer) {
                    self.incoming.push_back(Incoming::Duplicate { peer: handle });
                }
            }
            GossipEvent::Message { peer, message: Message::Response { response, .. }, .. } => {
                let Some(route) = self.peers.route(&peer) else { return };
                if self.duplicates.poll.answered(peer, route, response, now) {
                    self.publish_reports();
                }
            }
            // §16: builds that do not know the stream refuse it, and nothing is concluded from that.
            GossipEvent::OutboundFailure { peer, error, .. } => {
                tracing::debug!(%peer, "did not say whether another process has this one's identity: {error}");
                if self.duplicates.poll.silent(&peer) {
                    self.publish_reports();
                }
            }
            GossipEvent::InboundFailure { .. } | GossipEvent::ResponseSent { .. } => {}
        }
    }

    /// Logs the name of the identity that two processes use, if it is known: from the machine, or from the
    /// drone that vouched for its clock.
    pub(crate) fn name_duplicate(&mut self, peer: Peer, drone: Option<String>) {
        let Some(id) = self.peers.id(peer) else { return };
        let member = || match self.peers.route(&id) {
            Some(Route::Member(kgc)) => Some(format!("KGC {kgc}")),
            _ => None,
        };
        match drone.or_else(|| self.poll.drone(&id)).or_else(member) {
            Some(name) => {
                tracing::warn!(
                    drone = name,
                    peer = %id,
                    "two processes run with one identity, and both ask: end the copy, and delete its volume"
                );
                self.duplicates.sightings.name(&id, name);
                self.count_duplicates();
            }
            None => tracing::debug!(peer = %id, "two processes run with one identity, whose it is not known"),
        }
    }

    fn publish_reports(&self) {
        let reports = self.duplicates.poll.reports();
        self.metrics.duplicate_identity_reports.set(i64::try_from(reports.len()).unwrap_or(i64::MAX));
        match &reports[..] {
            [] => tracing::info!("nobody hears another process with this one's identity any more"),
            [.., newest] => tracing::warn!(
                reports = reports.len(),
                "another process runs with a copy of this one's identity: both asked {newest}; end the copy"
            ),
        }
        self.duplicates.reports.send_replace(reports);
    }
}
