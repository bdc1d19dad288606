//! Recovery of the revocation list at a KGC whose state went back, for instance after a restore from a
//! backup: it notices by the first peer that holds a list with a number above its own, and signs none before
//! it has that.
//!
//! A claim of such a number is an unsigned query. So the claimant is asked for its list, and a claim alone
//! stops nothing for longer than [`PATIENCE`], once in [`REST`].

use alloc::collections::BTreeMap;
use core::time::Duration;

use quiver_ainq::{RevocationStatement, Suite};
use quiver_machine::{Now, Offence, Peer, due};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use super::{Kgc, KgcEvent, KgcRecord};

/// Time for which nothing is signed after a peer claimed to hold a newer list: enough for an answer, also
/// over a bad line.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Time after that for which claims stop nothing, unless a list came: strangers can claim anything.
const REST: Duration = Duration::from_secs(3600);
/// Interval at which one peer is asked.
const ASK_EVERY: Duration = Duration::from_secs(60);
/// Greatest number of remembered peers that were asked.
const MAX_ASKED: usize = 4096;

/// Lists above our own that peers claim to hold.
#[derive(Debug)]
pub(super) struct ListRecovery {
    /// Peers asked for their lists, the times at which they may be asked again, and whether an answer is due.
    asked: BTreeMap<Peer, (Duration, bool)>,
    /// Time until which nothing is signed.
    until: Option<Duration>,
    /// Time from which on a claim stops signing again.
    rested: Duration,
}

impl ListRecovery {
    pub(super) const fn new() -> Self {
        Self { asked: BTreeMap::new(), until: None, rested: Duration::ZERO }
    }

    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.asked.remove(&peer);
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.until
    }

    /// Time for which nothing is signed yet.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.until.map(|until| until.saturating_sub(now)).filter(|wait| !wait.is_zero())
    }

    /// Returns true, once, if it is time to sign without a list that was claimed. Returns true once.
    pub(super) fn has_waited(&mut self, now: Duration) -> bool {
        let over = due(self.until, now);
        if over {
            self.until = None;
        }
        over
    }

    fn defer(&mut self, now: Duration) {
        // §12.5: a claim without a list delays revocations for a minute, once in an hour.
        if self.until.is_none() && now >= self.rested {
            self.until = Some(now.saturating_add(PATIENCE));
            self.rested = now.saturating_add(REST);
        }
    }

    /// Returns true if this peer is to be asked now; then an answer of it is due.
    fn ask(&mut self, now: Duration, peer: Peer) -> bool {
        let recently = self.asked.get(&peer).is_some_and(|(again, _)| now < *again);
        if recently || (self.asked.len() >= MAX_ASKED && !self.asked.contains_key(&peer)) {
            return false;
        }
        self.asked.insert(peer, (now.saturating_add(ASK_EVERY), true));
        true
    }

    /// Returns true if an answer was due of this peer. One at a time.
    fn answered(&mut self, peer: Peer) -> bool {
        self.asked.get_mut(&peer).is_some_and(|(_, due)| core::mem::take(due))
    }
}

impl<S: Suite> Kgc<S> {
    /// Handles a peer's claim to hold a list with a higher number than ours.
    pub(super) fn revocations_claimed(&mut self, now: Now, peer: Peer, claimed: u64) {
        if !self.list_recovery.ask(now.monotonic, peer) {
            return;
        }
        // §5.4: in a quorum the other members refuse what contradicts their signatures.
        if self.signs_alone() {
            self.list_recovery.defer(now.monotonic);
        }
        let held = self.revocations.number();
        self.out.event(KgcEvent::RevocationListClaimed { peer, claimed, held });
        let query = Message::<S>::RevocationQuery(self.revocations.query());
        self.out.send(&self.config.deployment, peer, &query);
    }

    /// A list that is due to be renewed as the KGC starts may be that of a backup: others come first.
    pub(super) fn defer_renewal(&mut self, now: Now) {
        // §12.5: a KGC whose list is due as it starts waits that minute too.
        if self.signs_alone() && self.revocations.number() > 0 && now.unix >= self.renewal_time() {
            self.list_recovery.defer(now.monotonic);
        }
    }

    /// Takes the list of a peer that was asked for it. It is in force again if it is ours, and waiting
    /// revocations are signed after it.
    pub(super) fn revocation_list(
        &mut self,
        now: Now,
        from: Peer,
        bytes: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) {
        // §12.5: only a list that was asked for.
        if !self.list_recovery.answered(from) {
            return self.blame(from, Offence::OutOfPlace("message to a KGC"));
        }
        let former: RevocationStatement = self.revocations.list().clone();
        // §12.5: adopted if this KGC's own key has signed it.
        match self.revocations.offer(&self.config.deployment, bytes) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.blame(from, error.into()),
        }
        let number = self.revocations.number();
        self.out.persist(KgcRecord::RevocationList { number, list: bytes.to_vec() });
        self.out.event(KgcEvent::RevocationListAdopted { number });
        self.list_recovery = ListRecovery {
            until: None,
            rested: now.monotonic,
            ..core::mem::replace(&mut self.list_recovery, ListRecovery::new())
        };
        self.list_in_force();
        // §12.5: entries signed after the restore, and before this list came.
        self.revoke_drones(now, former.revoked, rng);
        self.renew_list(now, rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_asked_again_as_soon_as_its_minute_is_over_and_not_before() {
        let mut recovery = ListRecovery::new();
        let (start, peer) = (Duration::from_secs(1000), Peer(1));
        assert!(recovery.ask(start, peer));
        assert!(!recovery.ask(start + ASK_EVERY - Duration::from_nanos(1), peer));
        assert!(recovery.ask(start + ASK_EVERY, Peer(2)), "another peer has a minute of its own");
        assert!(recovery.ask(start + ASK_EVERY, peer));
    }

    #[test]
    fn no_more_peers_are_remembered_than_the_bound_says() {
        let mut recovery = ListRecovery::new();
        let peers = 0..MAX_ASKED as u64;
        assert!(peers.map(Peer).all(|peer| recovery.ask(Duration::ZERO, peer)));
        assert!(!recovery.ask(ASK_EVERY, Peer(u64::MAX)));
        assert!(recovery.ask(ASK_EVERY, Peer(7)), "one that is remembered is asked again");
        recovery.disconnected(Peer(7));
        assert!(recovery.ask(ASK_EVERY, Peer(u64::MAX)));
    }
}
