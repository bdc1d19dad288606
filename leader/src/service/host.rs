//! Hosts the machine: persists its records, logs its events and passes them to subcommands that wait for one.

use std::convert::Infallible;

use quiver_admission::AdmittingLeaderEvent;
use quiver_ainq::{Name, Suite};
use quiver_envelope::EnvelopeEvent;
use quiver_group::{LeaderEvent, LeaderRecord};
use quiver_machine::{Either, Peer, Reason};
use quiver_net::{Host, HostError, Multiaddr, PeerId};
use quiver_service::clock;
use quiver_service::drone::Store;
use quiver_service::drone::output::Output;
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};

use super::LeaderNode;
use crate::metrics::{Metrics, Wave};
use crate::store;

/// Records of the machine.
type Record = Either<LeaderRecord, Infallible>;

/// The host of a leader.
pub(super) struct LeaderHost {
    pub(super) store: Store,
    pub(super) peer_id: PeerId,
    pub(super) group: String,
    pub(super) output: Output,
    pub(super) events: broadcast::Sender<LeaderEvent>,
    /// Why something was not sent.
    pub(super) failures: broadcast::Sender<&'static str>,
    /// The KGC refuses, and no retry will change that.
    pub(super) refused: mpsc::Sender<Reason>,
    pub(super) metrics: Metrics,
    pub(super) wave: Wave,
}

impl<S: Suite> Host<LeaderNode<S>> for LeaderHost {
    fn persist(&mut self, records: &[Record]) -> Result<(), HostError> {
        let records: Vec<_> = records.iter().filter_map(Either::left).map(LeaderRecord::as_bytes).collect();
        tokio::task::block_in_place(|| self.store.append(&records)).map_err(Into::into)
    }

    fn persist_of(&mut self, machine: &LeaderNode<S>, records: &[Record]) -> Result<(), HostError> {
        // The records of the leader itself are all there are.
        let records: Vec<_> = records.iter().filter_map(Either::left).cloned().collect();
        tokio::task::block_in_place(|| store::persist(&self.store, machine, &records)).map_err(Into::into)
    }

    fn event(&mut self, _: &LeaderNode<S>, event: Either<AdmittingLeaderEvent, EnvelopeEvent>) {
        let event = match event {
            Either::Left(AdmittingLeaderEvent::Leader(event)) => event,
            Either::Left(AdmittingLeaderEvent::Denied { peer, why }) => {
                tracing::warn!(peer = peer.0, %why, "not admitted");
                return self.metrics.count_denied();
            }
            Either::Right(EnvelopeEvent::NotSent(reason)) => LeaderEvent::SendFailed(reason),
            Either::Right(event) => return self.output.envelope(&self.group, &event),
        };
        self.log(&event);
        self.wave.follow(&event, &self.metrics);
        self.metrics.count(&event);
        // There may be no waiting caller.
        let _ = self.events.send(event);
    }

    fn vouch(&mut self, machine: &LeaderNode<S>, statement: &[u8]) -> Vec<u8> {
        machine.vouch(statement, &mut OsRng).unwrap_or_default()
    }

    fn voucher(&mut self, machine: &LeaderNode<S>, statement: &[u8], signed: &[u8]) -> Option<String> {
        let drone = machine.vouched(statement, signed).ok()?;
        Some(drone.to_string())
    }

    fn drone(&mut self, machine: &LeaderNode<S>, peer: Peer) -> Option<String> {
        machine.drone_behind(peer).map(Name::to_string)
    }

    fn listening(&mut self, address: &Multiaddr) {
        self.output.line(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}

impl LeaderHost {
    fn log(&self, event: &LeaderEvent) {
        match event {
            LeaderEvent::Enrolled { name } => tracing::info!(%name, "enrolled"),
            LeaderEvent::EpochActivated { epoch, kind, members, added, removed } => {
                let (term, counter) = (epoch.term, epoch.counter);
                tracing::info!(term, counter, ?kind, members, added, removed, "epoch activated");
            }
            LeaderEvent::Delivered { epoch, members } => {
                tracing::info!(term = epoch.term, counter = epoch.counter, members, "epoch delivered");
            }
            LeaderEvent::Joined { name, slot } => tracing::info!(%name, slot, "joined"),
            LeaderEvent::Admitted { pseudonym, slot, until } => {
                let until = clock::format(*until);
                tracing::info!(%pseudonym, slot, until, "admitted anonymously");
            }
            LeaderEvent::Parted { pseudonym, slot } => tracing::info!(%pseudonym, slot, "parted"),
            LeaderEvent::Removed { name, slot, evicted } => tracing::info!(%name, slot, evicted, "removed"),
            LeaderEvent::Barred(name) => tracing::info!(%name, "away, and evicted"),
            LeaderEvent::NobodyInSlot(slot) => tracing::warn!(slot, "nobody sits in this slot"),
            LeaderEvent::NoSuchMember(name) => tracing::warn!(%name, "no such member"),
            LeaderEvent::NotLeading => tracing::warn!("not done: this leader does not lead"),
            LeaderEvent::Refused { peer, reason } => tracing::warn!(peer = peer.0, %reason, "refused"),
            LeaderEvent::EnrolmentRefused(reason) => self.enrolment_refused(*reason),
            LeaderEvent::EnrolmentTrouble(trouble) => tracing::warn!(%trouble, "enrolment"),
            LeaderEvent::Message { channel, data, source } => {
                self.output.message(&self.group, channel, data, source);
            }
            LeaderEvent::SecondKey { name, handle, evident: true } => {
                tracing::error!(%name, %handle, "a second key was presented for one identity and refused: evidence against the KGC, kept");
            }
            LeaderEvent::SecondKey { name, handle, evident: false } => {
                tracing::warn!(%name, %handle, "a second key was presented for one identity and refused: revoke the drone if it goes on");
            }
            LeaderEvent::RekeyFailed(error) => tracing::error!(%error, "no new key; trying again"),
            LeaderEvent::SendFailed(reason) => {
                tracing::warn!(reason, "message not sent");
                // There may be no waiting caller.
                let _ = self.failures.send(reason);
            }
            LeaderEvent::RevocationList { number } => tracing::info!(number, "revocation list in force"),
            LeaderEvent::SteppedDown { term } => {
                tracing::error!(term, "stepped down: another leader opened a higher term");
            }
            LeaderEvent::StandingBy { leader, epoch, members } => {
                tracing::info!(%leader, %epoch, members, "standing by");
            }
            LeaderEvent::TookOver { from } => match from {
                Some(epoch) => tracing::warn!(%epoch, "no word from the leader: taking over its group"),
                None => tracing::warn!("no word from a leader: opening a term without its roster"),
            },
            LeaderEvent::Replicated { epoch, names, deputy } => {
                let deputy = deputy.as_ref().map_or("", Name::as_str);
                tracing::info!(%epoch, ?names, deputy, "evictions replicated");
            }
            LeaderEvent::Equivocation { leader, epoch } => {
                tracing::error!(%leader, %epoch, "a leader signed two headers for one epoch and is refused for good");
            }
            LeaderEvent::OwnHeader { epoch } => tracing::warn!(%epoch, "{}", crate::metrics::COPY_REASON),
            LeaderEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
        }
    }

    fn enrolment_refused(&self, reason: Reason) {
        if reason.is_transient() {
            tracing::warn!(%reason, "the KGC refuses for now");
        } else {
            // One refusal is enough to end.
            let _ = self.refused.try_send(reason);
        }
    }
}
