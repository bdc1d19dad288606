//! The host of a KGC's machine in a quorum: the member's records go into the encrypted file, the KGC's into
//! the registry; what happened into the audit table and the log.

use quiver_machine::{Peer, Route};
use quiver_net::{Host, HostError, Multiaddr, PeerId};
use quiver_quorum_node::{QuorumEvent, approval};
use quiver_service::{clock, terminal};
use tokio::sync::{broadcast, mpsc};

use super::clocks::compare_clocks;
use super::control::ControlEvent;
use super::describe;
use super::node::{QuorumKgc, QuorumKgcEvent, QuorumKgcRecord};
use super::release::{QuorumRelease, signed_authority};
use super::sealed::QuorumState;
use crate::audit_head::{SharedFile, lock};
use crate::event_log::EventLog;
use crate::features::Release;
use crate::metrics::KgcMetrics;
use crate::store::Store;

/// The host.
pub(crate) struct QuorumHost {
    pub(crate) store: Store,
    pub(crate) state: SharedFile<QuorumState>,
    pub(crate) events: broadcast::Sender<ControlEvent>,
    /// Wakes the task that opens the KGC for drones and keeps the deployment file.
    pub(crate) ready: mpsc::UnboundedSender<()>,
    pub(crate) peer_id: PeerId,
    pub(crate) metrics: KgcMetrics,
    pub(crate) log: EventLog,
}

impl QuorumHost {
    fn of_the_member(&mut self, event: QuorumEvent) {
        if let Some((action, subject, detail)) = describe::audited(&event) {
            let noted =
                tokio::task::block_in_place(|| self.store.note(clock::unix_now(), action, &subject, &detail));
            if let Err(error) = noted {
                tracing::error!(%error, action, subject, detail, "not in the audit table");
            }
        }
        self.log_of_the_member(&event);
        compare_clocks(&self.metrics, &event);
        self.notify(ControlEvent::Event(event));
    }

    fn notify(&self, told: ControlEvent) {
        // Mostly there is no receiver.
        let _ = self.events.send(told);
    }
}

impl Host<QuorumKgc> for QuorumHost {
    fn persist(&mut self, records: &[QuorumKgcRecord]) -> Result<(), HostError> {
        let (mut members, mut issued) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                QuorumKgcRecord::Member(record) => members.push(record),
                QuorumKgcRecord::Kgc(record) => issued.push(record.clone()),
            }
        }
        tokio::task::block_in_place(|| {
            lock(&self.state).persist(&members)?;
            if issued.is_empty() { Ok(()) } else { self.store.persist(&issued, clock::unix_now()) }
        })
        .map_err(Into::into)
    }

    fn event(&mut self, machine: &QuorumKgc, event: QuorumKgcEvent) {
        if let QuorumKgcEvent::Kgc(event) = &event {
            self.metrics.count(event);
        }
        match event {
            QuorumKgcEvent::Member(QuorumEvent::Signed { body, signature }) => {
                if let Some(statement) = signed_authority(&body, &signature) {
                    Release::note_signed(&mut self.store, machine.member(), &statement);
                }
                self.of_the_member(QuorumEvent::Signed { body, signature });
            }
            QuorumKgcEvent::Member(event) => self.of_the_member(event),
            QuorumKgcEvent::Kgc(event) => self.log.log(event),
            QuorumKgcEvent::Taken { number } => self.notify(ControlEvent::Taken(number)),
            // The receiver ends with the service.
            QuorumKgcEvent::Ready => {
                let _ = self.ready.send(());
            }
            QuorumKgcEvent::SharesReplaced { version } => {
                tracing::info!(version, "drones are served with the new shares");
                let _ = self.ready.send(());
            }
            QuorumKgcEvent::Stranger(peer) => self.log.log_stranger(peer),
        }
    }

    fn connected(&mut self, peer: Peer, route: Route, place: &str) {
        self.log.connected(peer, route, place);
    }

    fn disconnected(&mut self, peer: Peer) {
        self.log.disconnected(peer);
    }

    fn voucher(&mut self, machine: &QuorumKgc, statement: &[u8], signed: &[u8]) -> Option<String> {
        let drone = machine.kgc()?.vouched(statement, signed).ok()?;
        Some(drone.to_string())
    }

    fn listening(&mut self, address: &Multiaddr) {
        let line = format!("listening on {address}/p2p/{}", self.peer_id);
        if let Err(error) = terminal::line(&line) {
            tracing::warn!(%error, "standard output");
        }
    }
}

impl QuorumHost {
    fn log_of_the_member(&self, event: &QuorumEvent) {
        match event {
            QuorumEvent::Invited { by, kind } => {
                tracing::warn!(
                    "KGC {by} has begun a {}, in which this one takes no part",
                    describe::kind(*kind)
                );
            }
            QuorumEvent::SessionBegun { kind } => {
                tracing::info!("{}: all KGCs are there; the rounds begin", describe::kind(*kind));
            }
            QuorumEvent::SharesMade { kind, version } => {
                tracing::info!(version, "{}: shares made and stored", describe::kind(*kind));
            }
            QuorumEvent::SharesInForce { version } => tracing::info!(version, "shares in force"),
            QuorumEvent::Aborted { kind, cause } => {
                tracing::error!("{} aborted: {}", describe::kind(*kind), describe::cause(cause));
            }
            QuorumEvent::Refused(reason) => tracing::warn!("command refused: {reason}"),
            QuorumEvent::HelpWanted { by } => {
                tracing::warn!(
                    "KGC {by} asks for its shares; if it is the right one: kgc quorum approve --repair {by}"
                );
            }
            QuorumEvent::HelpWantedAgain { by } => {
                tracing::warn!(
                    "KGC {by} asks for its shares again and is not helped: the approval was good for one repair. If it is \
                     the right one and lost them once more: kgc quorum approve --repair {by}"
                );
            }
            QuorumEvent::Helped { member } => tracing::info!("helped KGC {member} to its shares"),
            QuorumEvent::Recovered { version } => tracing::info!(version, "shares repaired"),
            QuorumEvent::RecoveryFailed { helpers, culprits } => tracing::error!(
                culprits = describe::list(culprits),
                "what {} sent makes no shares; trying again",
                describe::some(helpers)
            ),
            QuorumEvent::RevocationList { number } => {
                tracing::info!(number, "the quorum signed a revocation list");
            }
            QuorumEvent::QuorumStatement { version } => {
                tracing::info!(version, "the quorum signed its public shares");
            }
            QuorumEvent::NotSigned { purpose, willing, unwilling, silent } => tracing::info!(
                purpose = purpose.as_str(),
                "not signed for now: {}",
                describe::not_signed(willing, unwilling, silent)
            ),
            QuorumEvent::WrongShare { by } => {
                tracing::error!("KGC {by} sent a wrong share of a signature");
            }
            QuorumEvent::Equivocation { name, handle } => {
                tracing::error!(%handle, "the leader {name} signed two headers for one epoch: to be revoked");
            }
            QuorumEvent::Blamed { member, offence } => {
                tracing::warn!("rejected a message from KGC {member}: {offence}");
            }
            QuorumEvent::Signed { body, .. } => {
                tracing::info!(digest = hex::encode(approval(body)), "the quorum signed a statement");
            }
            QuorumEvent::Stranger(peer) => self.log.log_stranger(*peer),
            QuorumEvent::TooMany => {
                tracing::warn!("too many proposals or approvals wait; the last was not taken");
            }
            _ => tracing::debug!("another event of the quorum"),
        }
    }
}
