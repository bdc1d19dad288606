//! Logs what drones and other KGCs do, and names who did it. The fields have the sentence's content as well,
//! for JSON; a line for people does not repeat it.

use std::collections::BTreeMap;

use quiver_delivery::attributes::IssuerEvent;
use quiver_delivery::kgc::DeliveryEvent;
use quiver_enrolment::KgcEvent;
use quiver_machine::{Either, Offence, Peer, Route};

use crate::features::Release;
use crate::key_release::KeyRelease;
use crate::kgc_machine::ServingEvent;

/// The log of a KGC, and the connected peers' names in it.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    peers: BTreeMap<Peer, String>,
}

impl EventLog {
    /// Names a peer that has connected, by its address.
    pub(crate) fn connected(&mut self, peer: Peer, route: Route, place: &str) {
        let name = match route {
            Route::Member(kgc) => format!("KGC {kgc} at {place}"),
            _ => place.into(),
        };
        self.peers.insert(peer, name);
    }

    /// Forgets a peer.
    pub(crate) fn disconnected(&mut self, peer: Peer) {
        self.peers.remove(&peer);
    }

    /// Names a peer.
    pub(crate) fn name(&self, peer: Peer) -> &str {
        self.peers.get(&peer).map_or("a peer that has left", String::as_str)
    }

    /// Logs an event of the KGC that drones know.
    pub(crate) fn log(&self, event: ServingEvent) {
        match event {
            Either::Left(event) => self.log_enrolment(event),
            Either::Right(DeliveryEvent::Keys(event)) => self.log_attribute_keys(event),
            Either::Right(DeliveryEvent::Shares(event)) => Release::log(self, event),
        }
    }

    fn log_enrolment(&self, event: KgcEvent) {
        match event {
            KgcEvent::Issued { token_id, name, handle } => {
                tracing::info!(%name, serial = hex::encode(token_id), %handle, "key issued");
            }
            KgcEvent::Pinned { token_id, name } => {
                tracing::info!(%name, serial = hex::encode(token_id), "token bound");
            }
            KgcEvent::Contributed { token_id, name, handle } => {
                tracing::info!(%name, serial = hex::encode(token_id), %handle, "contributed to a key");
            }
            KgcEvent::Enrolled { token_id, handle } => {
                tracing::info!(serial = hex::encode(token_id), %handle, "the drone holds its key: no more shares for its token");
            }
            KgcEvent::Repeated { token_id } => {
                tracing::info!(serial = hex::encode(token_id), "reply repeated");
            }
            KgcEvent::Refused { peer, token_id: Some(token_id), reason } => {
                let (token, peer) = (hex::encode(token_id), self.name(peer));
                tracing::warn!(token, peer, %reason, "refused to enrol {peer}: {reason}");
            }
            KgcEvent::Refused { peer, token_id: None, reason } => {
                let peer = self.name(peer);
                tracing::warn!(peer, %reason, "refused to enrol {peer}: {reason}");
            }
            KgcEvent::RevocationListSigned { number } => tracing::info!(number, "revocation list signed"),
            KgcEvent::RevocationListClaimed { peer, claimed, held } => tracing::warn!(
                claimed,
                held,
                "{} claims to hold a newer revocation list than this KGC, and is asked for it; was this KGC put back from a backup?",
                self.name(peer)
            ),
            KgcEvent::RevocationListAdopted { number } => tracing::warn!(
                number,
                "a peer held a newer revocation list of this deployment: in force here again; tokens and grants made since the backup are still missing"
            ),
            KgcEvent::RevocationDeferred { wait } => tracing::warn!(
                "a peer claims to hold a newer revocation list: revocations are signed when it comes, or after {} s",
                wait.as_secs()
            ),
            KgcEvent::RevocationListFills { what, len, limit } => tracing::warn!(
                "the {what} has {len} of {limit} bytes: entries leave it as identities end, so issue tokens for shorter lifetimes"
            ),
            KgcEvent::RevocationListWanted(list) => {
                tracing::info!(number = list.number, "revocation list to be signed by the quorum");
            }
            KgcEvent::RevocationFailed(error) => tracing::error!(
                "no revocation list could be signed, which is tried again with the next revocation or renewal: {error}"
            ),
            KgcEvent::Equivocation { name, handle, epoch } => {
                tracing::error!(%name, %handle, %epoch, "the leader {name} signed two headers for one epoch: revoked");
            }
            KgcEvent::Blamed { peer, offence } => self.log_offence(peer, &offence),
        }
    }

    fn log_attribute_keys(&self, event: IssuerEvent) {
        match event {
            IssuerEvent::Issued { authority, name, revision } => {
                tracing::info!(%name, %authority, revision, "attribute key issued");
            }
            IssuerEvent::HeldAlready { authority, name, revision } => {
                tracing::debug!(%name, %authority, revision, "attribute key held already");
            }
            IssuerEvent::Published { authority, name } => {
                tracing::debug!(%name, %authority, "public part of this period sent to a leader");
            }
            IssuerEvent::Withdrawn { authority, name } => {
                tracing::info!(%name, %authority, "{name} asked for an attribute key: its grant is withdrawn");
            }
            IssuerEvent::NothingGranted { authority, name } => {
                tracing::info!(%name, %authority, "{name} asked for an attribute key: nothing is granted to it");
            }
            IssuerEvent::NotMade { authority, name, error } => {
                tracing::error!(%name, %authority, %error, "no attribute key of {name} can be made for its grant: {error}");
            }
            IssuerEvent::Refused { peer, reason } => {
                let peer = self.name(peer);
                tracing::warn!(peer, %reason, "refused {peer} an attribute key: {reason}");
            }
            IssuerEvent::Blamed { peer, offence } => self.log_offence(peer, &offence),
            _ => {}
        }
    }

    /// Logs an offence of a peer.
    pub(crate) fn log_offence(&self, peer: Peer, offence: &Offence) {
        let peer = self.name(peer);
        tracing::warn!(peer, %offence, "rejected a message from {peer}: {offence}");
    }

    /// Logs that a peer which is no member sent a message for members alone.
    pub(crate) fn log_stranger(&self, peer: Peer) {
        tracing::warn!(
            "rejected a message from {}, which is not a KGC of the quorum: only those may send it",
            self.name(peer)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_named_by_address_or_id_while_they_are_connected() {
        let mut log = EventLog::default();
        log.connected(Peer(1), Route::Inbound, "192.0.2.7:41000");
        log.connected(Peer(2), Route::Member(3), "192.0.2.3:7000");
        assert_eq!(log.name(Peer(1)), "192.0.2.7:41000");
        assert_eq!(log.name(Peer(2)), "KGC 3 at 192.0.2.3:7000");
        log.disconnected(Peer(1));
        assert_eq!(log.name(Peer(1)), "a peer that has left");
    }
}
