//! Hosts the machine: persists its state, logs its events and tells the observer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use quiver_group::EdgeEvent;
use quiver_group::edge::EdgeStatus;
use quiver_machine::{Either, Peer, RefusalReason, Route, Snapshot};
use quiver_net::{Host, HostError};
use quiver_service::clock;
use quiver_service::drone::StateStore;
use quiver_service::drone::feature::{GroupEdgeEvent, MembershipEvent, RoleEvent, RunningParts};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};

use super::ServiceEdge;
use super::connection_history::ConnectionHistory;
use super::observer::{EdgeNodeEvent, Observer, refuser};
use crate::metrics::EdgeMetrics;

/// The owner of the state that the host stores.
pub(super) enum Keeping {
    /// The drone's own.
    Own,
    /// State of a membership that a feature makes.
    Attachment {
        /// Attachment that keeps it.
        name: &'static str,
        /// Receives the event that ends the membership.
        over: mpsc::Sender<Box<dyn MembershipEvent>>,
    },
}

/// The host of an edge.
pub(super) struct EdgeHost {
    pub(super) store: StateStore,
    pub(super) keeping: Keeping,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) connections: ObservedConnections,
    /// The key came and holds.
    pub(super) enrolled: mpsc::Sender<()>,
    /// The KGC refuses, and no retry will change that.
    pub(super) refused: mpsc::Sender<RefusalReason>,
    /// Reason why something was not sent.
    pub(super) failures: broadcast::Sender<&'static str>,
    pub(super) metrics: EdgeMetrics,
    pub(super) history: ConnectionHistory,
    pub(super) parts: RunningParts,
}

impl Host<ServiceEdge> for EdgeHost {
    fn persist(&mut self, records: &[Either<Snapshot, Infallible>]) -> Result<(), HostError> {
        // Each is the whole state: only the newest counts.
        let Some(newest) = records.last().and_then(Either::left) else {
            return Ok(());
        };
        let persist = || match &self.keeping {
            Keeping::Own => self.store.replace(&[newest.as_bytes()]),
            Keeping::Attachment { name, .. } => self.store.attach(name, newest.as_bytes()),
        };
        tokio::task::block_in_place(persist).map_err(Into::into)
    }

    fn vouch(&mut self, machine: &ServiceEdge, statement: &[u8]) -> Vec<u8> {
        machine.vouch(statement, &mut OsRng).unwrap_or_default()
    }

    fn connected(&mut self, peer: Peer, route: Route, place: &str) {
        self.history.connected(peer, route, place, clock::unix_now());
        self.connections.open(peer, route, place);
    }

    fn disconnected(&mut self, peer: Peer) {
        self.history.disconnected(peer, clock::unix_now());
        self.connections.close(peer);
    }

    fn event(&mut self, machine: &ServiceEdge, event: EdgeNodeEvent) {
        let status = machine.status();
        if let Either::Left(GroupEdgeEvent::Edge(event)) = &event
            && self.parts.take(RoleEvent::Edge { event, epoch: status.epoch })
        {
            return;
        }
        self.observer.event(&status, &event);
        match event {
            Either::Left(GroupEdgeEvent::Edge(event)) => self.edge_event(&status, event),
            Either::Left(GroupEdgeEvent::Membership(event)) => self.membership_event(event),
            Either::Right(event) => {
                if let Some(reason) = event.failure() {
                    self.edge_event(&status, EdgeEvent::SendFailed(reason));
                }
            }
        }
    }
}

impl EdgeHost {
    /// Counts and logs an event, and tells whoever waits for it.
    fn edge_event(&self, status: &EdgeStatus, event: EdgeEvent) {
        self.metrics.count(&event, status.name.is_some());
        self.history.note(&event, status.group.is_some(), clock::unix_now());
        match event {
            EdgeEvent::Enrolled { name } => {
                tracing::info!(%name, "enrolled as {name}");
                // Only an enrolment waits for it.
                let _ = self.enrolled.try_send(());
            }
            EdgeEvent::KeyActivated { epoch, slot, .. } => tracing::info!(%epoch, slot, "key activated"),
            EdgeEvent::Message { .. } => {}
            EdgeEvent::SendFailed(reason) => {
                tracing::warn!(reason, "message not sent: {reason}");
                // There may be no waiting caller.
                let _ = self.failures.send(reason);
            }
            EdgeEvent::Left => tracing::info!("left the group"),
            EdgeEvent::Evicted => tracing::warn!("evicted from the group"),
            EdgeEvent::Refused(reason) => self.refused(refuser(status), reason),
            EdgeEvent::EnrolmentTrouble(trouble) => tracing::warn!("enrolment goes on: {trouble}"),
            EdgeEvent::RevocationsStale => {
                tracing::warn!(
                    "not joining under a revocation list that is past its next update; asked the leader for a newer one"
                );
            }
            EdgeEvent::RevocationList { number } => {
                tracing::info!(number, "revocation list {number} is in force");
            }
            EdgeEvent::MembershipDropped { error } => tracing::warn!(
                "the stored membership cannot be restored and is dropped: the drone keeps its key and joins its group \
                 anew ({error})"
            ),
            EdgeEvent::Equivocation { leader, epoch } => tracing::error!(
                "the leader {leader} signed two headers for epoch {epoch} and is refused for good"
            ),
            EdgeEvent::KemDiffers { own, leader } => tracing::error!(
                %own, %leader,
                "not joining: `kem` is \"{leader}\" in the leader's deployment file and \"{own}\" in this drone's"
            ),
            EdgeEvent::Blamed { peer, offence } => {
                tracing::warn!(%offence, "rejected a message from {}: {offence}", self.connections.place(peer));
            }
        }
    }

    /// Logs an event of a membership that a feature makes, and passes on that it is over.
    fn membership_event(&self, event: Box<dyn MembershipEvent>) {
        event.log();
        if let Some(exclusion) = event.exclusion() {
            self.history.note_exclusion(exclusion, clock::unix_now());
        }
        if let Keeping::Attachment { over, .. } = &self.keeping
            && event.is_end()
        {
            // It is over once.
            let _ = over.try_send(event);
        }
    }

    fn refused(&self, by: &'static str, reason: RefusalReason) {
        if by == "kgc" && !reason.is_transient() {
            // One refusal is enough to end, and how it ends is said then.
            let _ = self.refused.try_send(reason);
        } else {
            if reason == RefusalReason::Revoked {
                return tracing::warn!("revoked by the KGC: this drone is not admitted again under its key");
            }
            let whom = if by == "kgc" { "KGC" } else { by };
            tracing::warn!(by, %reason, "refused by the {whom}: {reason}");
        }
    }
}

/// The connections of one driver, told to the observer; what is left of them is lost with it.
pub(super) struct ObservedConnections {
    observer: Arc<dyn Observer>,
    /// Routes, with addresses for people.
    routes: BTreeMap<Peer, (Route, String)>,
}

impl ObservedConnections {
    pub(super) fn new(observer: &Arc<dyn Observer>) -> Self {
        Self { observer: Arc::clone(observer), routes: BTreeMap::new() }
    }

    /// A peer, for people.
    fn place(&self, peer: Peer) -> String {
        match self.routes.get(&peer) {
            Some((Route::Kgc, place)) => format!("the KGC at {place}"),
            Some((_, place)) => format!("the leader at {place}"),
            None => "a peer that is gone".into(),
        }
    }

    fn open(&mut self, peer: Peer, route: Route, place: &str) {
        self.routes.insert(peer, (route, place.into()));
        self.observer.connected(route);
    }

    fn close(&mut self, peer: Peer) {
        if let Some((route, _)) = self.routes.remove(&peer) {
            self.observer.disconnected(route);
        }
    }
}

impl Drop for ObservedConnections {
    fn drop(&mut self) {
        while let Some((_, (route, _))) = self.routes.pop_first() {
            self.observer.disconnected(route);
        }
    }
}
