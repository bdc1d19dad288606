//! Hosts the machine: persists its records, logs its events and passes them to subcommands that wait for one.

use std::collections::BTreeMap;
use std::convert::Infallible;

use quiver_ainq::{Epoch, EpochKind, Name};
use quiver_group::{LeaderEvent, LeaderRecord};
use quiver_machine::{Either, Peer, RefusalReason, Route};
use quiver_net::{Host, HostError, Multiaddr, PeerId};
use quiver_service::clock;
use quiver_service::drone::StateStore;
use quiver_service::drone::feature::{AnyPartEvent, GroupLeaderEvent, RoleEvent, RunningParts};
use quiver_service::drone::output::StandardOutput;
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};

use super::ServiceLeader;
use super::refusals::ToldRefusals;
use crate::metrics::{LeaderMetrics, Wave};
use crate::store;

/// Records of the machine.
type LeaderNodeRecord = Either<LeaderRecord, Infallible>;

/// The host of a leader.
pub(super) struct LeaderHost {
    pub(super) store: StateStore,
    /// The state file has a secret that is void.
    pub(super) void: bool,
    pub(super) peer_id: PeerId,
    /// Addresses of the connected peers, for people.
    pub(super) places: BTreeMap<Peer, String>,
    pub(super) group: String,
    pub(super) output: StandardOutput,
    pub(super) events: broadcast::Sender<LeaderEvent>,
    /// Reason why something was not sent.
    pub(super) failures: broadcast::Sender<&'static str>,
    /// The KGC refuses, and no retry will change that.
    pub(super) refused: mpsc::Sender<RefusalReason>,
    pub(super) metrics: LeaderMetrics,
    /// Parts of features; none before the leader can have members.
    pub(super) parts: RunningParts,
    pub(super) wave: Wave,
    pub(super) refusals: ToldRefusals,
    /// Peers with another deployment file.
    pub(super) differing: ToldRefusals,
}

impl Host<ServiceLeader> for LeaderHost {
    fn persist(&mut self, records: &[LeaderNodeRecord]) -> Result<(), HostError> {
        let records: Vec<_> = records.iter().filter_map(Either::left).map(LeaderRecord::as_bytes).collect();
        tokio::task::block_in_place(|| self.store.append(&records)).map_err(Into::into)
    }

    fn persist_of(&mut self, machine: &ServiceLeader, records: &[LeaderNodeRecord]) -> Result<(), HostError> {
        // The records of the leader itself are all there are.
        let records: Vec<_> = records.iter().filter_map(Either::left).cloned().collect();
        tokio::task::block_in_place(|| store::persist(&self.store, &mut self.void, machine, &records))
            .map_err(Into::into)
    }

    fn event(&mut self, machine: &ServiceLeader, event: Either<GroupLeaderEvent, AnyPartEvent>) {
        let event = match event {
            Either::Left(GroupLeaderEvent::Leader(event)) => event,
            Either::Left(GroupLeaderEvent::Denied { peer, why }) => {
                tracing::warn!("did not admit {} anonymously: {why}", self.peer(machine, peer));
                return self.metrics.count_denied();
            }
            Either::Right(event) => match event.failure() {
                Some(reason) => LeaderEvent::SendFailed(reason),
                None => return self.output.part(&self.group, &*event),
            },
        };
        if self.parts.take(RoleEvent::Leader(&event)) {
            return;
        }
        match &event {
            LeaderEvent::Refused { peer, reason } if !self.refusals.is_news(*peer, *reason) => {
                tracing::debug!(%reason, "refused {} again: {reason}", self.peer(machine, *peer));
            }
            // One reason for all: it is told once of each peer.
            LeaderEvent::KemDiffers { peer, own, other }
                if !self.differing.is_news(*peer, RefusalReason::KemNone) =>
            {
                tracing::debug!(%own, %other, "{} still has another deployment file", self.peer(machine, *peer));
            }
            event => self.log(machine, event),
        }
        self.wave.follow(&event, &self.metrics);
        self.metrics.count(&event);
        // There may be no waiting caller.
        let _ = self.events.send(event);
    }

    fn connected(&mut self, peer: Peer, _: Route, place: &str) {
        self.places.insert(peer, place.into());
    }

    fn disconnected(&mut self, peer: Peer) {
        self.places.remove(&peer);
        self.refusals.forget(peer);
        self.differing.forget(peer);
    }

    fn vouch(&mut self, machine: &ServiceLeader, statement: &[u8]) -> Vec<u8> {
        machine.vouch(statement, &mut OsRng).unwrap_or_default()
    }

    fn voucher(&mut self, machine: &ServiceLeader, statement: &[u8], signed: &[u8]) -> Option<String> {
        let drone = machine.vouched(statement, signed).ok()?;
        Some(drone.to_string())
    }

    fn drone(&mut self, machine: &ServiceLeader, peer: Peer) -> Option<String> {
        machine.drone_behind(peer).map(Name::to_string)
    }

    fn listening(&mut self, address: &Multiaddr) {
        self.output.line(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}

impl LeaderHost {
    fn log(&self, machine: &ServiceLeader, event: &LeaderEvent) {
        match event {
            LeaderEvent::Enrolled { name } => tracing::info!(%name, "enrolled as {name}"),
            LeaderEvent::EpochActivated { epoch, kind, members, added, removed } => {
                let what = if *kind == EpochKind::Open { "term opened" } else { "re-keyed" };
                tracing::info!(%epoch, members, added, removed, "{what}");
            }
            LeaderEvent::Delivered { epoch, members } => tracing::info!(%epoch, members, "epoch delivered"),
            LeaderEvent::Joined { name, slot } => tracing::info!(%name, slot, "{name} joined"),
            LeaderEvent::Admitted { pseudonym, slot, until } => {
                tracing::info!(%pseudonym, slot, until = clock::format(*until), "{pseudonym} admitted anonymously");
            }
            LeaderEvent::Parted { pseudonym, slot } => {
                tracing::info!(%pseudonym, slot, "{pseudonym} removed");
            }
            LeaderEvent::Removed { name, slot, revoked: true, .. } => {
                tracing::info!(%name, slot, "{name} is revoked, and out of the group");
            }
            LeaderEvent::Removed { name, slot, evicted: true, .. } => {
                tracing::info!(%name, slot, "{name} evicted");
            }
            LeaderEvent::Removed { name, slot, .. } => tracing::info!(%name, slot, "{name} left"),
            LeaderEvent::Barred(name) => tracing::info!(%name, "{name} evicted while it is away"),
            LeaderEvent::NobodyInSlot(slot) => tracing::warn!("no member is in slot {slot}"),
            LeaderEvent::NoSuchMember(name) => tracing::warn!(%name, "{name} is not a member"),
            LeaderEvent::KemForgotten { keys } => {
                tracing::info!(keys, "second factor forgotten, to be made anew");
            }
            LeaderEvent::NotLeading => tracing::warn!("not done: this leader does not lead"),
            LeaderEvent::Refused { peer, reason } => {
                tracing::warn!(%reason, "refused {}: {reason}", self.peer(machine, *peer));
            }
            LeaderEvent::EnrolmentRefused(reason) => self.enrolment_refused(*reason),
            LeaderEvent::EnrolmentTrouble(trouble) => tracing::warn!("enrolment goes on: {trouble}"),
            LeaderEvent::Message { channel, data, source } => {
                self.output.message(&self.group, channel, data, source);
            }
            LeaderEvent::SecondKey { name, handle, evident: true } => {
                tracing::error!(%name, %handle, "a second key was presented for {name} and refused: evidence against the KGC, kept");
            }
            LeaderEvent::SecondKey { name, handle, evident: false } => {
                tracing::warn!(%name, %handle, "a second key was presented for {name} and refused: revoke the drone if it goes on");
            }
            LeaderEvent::RekeyFailed(error) => tracing::error!("no new key, trying again: {error}"),
            LeaderEvent::SendFailed(reason) => {
                tracing::warn!(reason, "message not sent: {reason}");
                // There may be no waiting caller.
                let _ = self.failures.send(reason);
            }
            LeaderEvent::RevocationList { number } => tracing::info!("revocation list {number} is in force"),
            LeaderEvent::SteppedDown { term } => {
                let opened = Epoch { term: *term, counter: 1 };
                tracing::error!("stepped down: another leader opened a higher term with epoch {opened}");
            }
            LeaderEvent::StandingBy { leader, epoch, members } => {
                let meanwhile: String = self.parts.standing_by().map(|what| format!("; {what}")).collect();
                tracing::info!(%leader, %epoch, members, "standing by for {leader}, holding epoch {epoch}{meanwhile}");
            }
            LeaderEvent::TookOver { from, silent } => match from {
                Some(epoch) => tracing::warn!(
                    "no word from the group's leader for {}: taking over from epoch {epoch}",
                    clock::span(silent.as_secs())
                ),
                None => tracing::warn!(
                    "no word from another leader for {}: opening a term without its roster",
                    clock::span(silent.as_secs())
                ),
            },
            LeaderEvent::Replicated { epoch, names, deputy } => {
                let names = names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
                let deputy = deputy.as_ref().map_or("a deputy", Name::as_str);
                tracing::info!("evictions replicated to {deputy}, as of epoch {epoch}: {names}");
            }
            LeaderEvent::Equivocation { leader, epoch } => tracing::error!(
                "the leader {leader} signed two headers for epoch {epoch} and is refused for good"
            ),
            LeaderEvent::OwnHeader { epoch } => tracing::warn!(%epoch, "{}", crate::metrics::COPY_REASON),
            LeaderEvent::KemDiffers { peer, own, other } => tracing::warn!(
                %own, %other,
                "{} has another deployment file: `kem` is \"{other}\" there and \"{own}\" here",
                self.peer(machine, *peer)
            ),
            LeaderEvent::Blamed { peer, offence } => {
                tracing::warn!(%offence, "rejected a message from {}: {offence}", self.peer(machine, *peer));
            }
        }
    }

    /// A peer by its name, if it is known, and its address, or its relay's.
    fn peer(&self, machine: &ServiceLeader, peer: Peer) -> String {
        let place = self.places.get(&machine.relay_before(peer).unwrap_or(peer));
        let place = place.map_or("a peer that is gone", String::as_str);
        match machine.drone_behind(peer) {
            Some(name) => format!("{name} at {place}"),
            None => place.into(),
        }
    }

    fn enrolment_refused(&self, reason: RefusalReason) {
        if reason.is_transient() {
            tracing::warn!(%reason, "the KGC refuses to enrol this leader for now: {reason}");
        } else {
            // One refusal is enough to end.
            let _ = self.refused.try_send(reason);
        }
    }
}
