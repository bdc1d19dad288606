//! The connections of a leader: which are to KGCs and other leaders, which are relayed, which misbehave.
//!
//! A leader is the hub of its group, and anybody may connect to it. It relays what members, deputies and
//! other leaders publish, once their connections are proven; strangers' messages go nowhere (§13.6).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use core::time::Duration;

use quiver_machine::{Misdeed, Misdeeds, Offence, Peer, REVOCATION_LIST_RATE, Rate, TokenBuckets, Via};

/// Rate at which a connection's catch-up requests are answered: a gateway may carry many members.
const CATCH_UPS: Rate = Rate { burst: 256, refill: Duration::from_millis(50) };
/// Rate for requests without authentication: strangers can send them too.
const UNAUTHENTICATED_CATCH_UPS: Rate = Rate { burst: 4, refill: Duration::from_secs(1) };
/// Rate at which signatures are verified that came without a cookie: over a proven connection, which may carry many
/// members; over any other; and over all others together.
const CHECKS: Rate = Rate { burst: 256, refill: Duration::from_millis(50) };
const UNPROVEN_CHECKS: Rate = Rate { burst: 32, refill: Duration::from_millis(250) };
const ALL_UNPROVEN_CHECKS: Rate = Rate { burst: 256, refill: Duration::from_millis(5) };

/// The connections of a leader.
#[derive(Debug)]
pub(super) struct LeaderPeers {
    /// KGCs that we dialled.
    pub(super) kgcs: BTreeSet<Peer>,
    /// Leaders of the same group that we dialled.
    pub(super) leaders: BTreeSet<Peer>,
    /// Way by which the message being handled came.
    pub(super) via: Via,
    misdeeds: Misdeeds,
    /// Connections over which a join request came whose signatures verified. Later requests over them are
    /// verified with the batch.
    verified: BTreeSet<Peer>,
    /// Connections whose group messages are relayed.
    relayed: BTreeSet<Peer>,
    /// Connections of which that may have changed with this input.
    changed: Vec<Peer>,
    /// Revocation lists that each peer may be sent.
    pub(super) list_answers: TokenBuckets,
    /// Catch-up requests of each peer that are answered: all, and those that nothing authenticates.
    pub(super) catch_ups: TokenBuckets,
    pub(super) unauthenticated_catch_ups: TokenBuckets,
    /// Signatures that are verified for each proven connection, for each other, and for all others.
    checks: TokenBuckets,
    unproven_checks: TokenBuckets,
    all_unproven_checks: TokenBuckets<()>,
    /// Number of signatures that were afforded.
    #[cfg(test)]
    pub(super) checked: usize,
}

impl LeaderPeers {
    pub(super) fn new() -> Self {
        Self {
            kgcs: BTreeSet::new(),
            leaders: BTreeSet::new(),
            via: Via::Peer,
            misdeeds: Misdeeds::default(),
            verified: BTreeSet::new(),
            relayed: BTreeSet::new(),
            changed: Vec::new(),
            list_answers: TokenBuckets::new(REVOCATION_LIST_RATE),
            // §11.4: 256 at once and 20 a second; of those that nothing authenticates 4, and one a second.
            catch_ups: TokenBuckets::new(CATCH_UPS),
            unauthenticated_catch_ups: TokenBuckets::new(UNAUTHENTICATED_CATCH_UPS),
            checks: TokenBuckets::new(CHECKS),
            unproven_checks: TokenBuckets::new(UNPROVEN_CHECKS),
            all_unproven_checks: TokenBuckets::bounded(ALL_UNPROVEN_CHECKS, 1),
            #[cfg(test)]
            checked: 0,
        }
    }

    /// Spends the verification of a signature that came without a cookie, whether it will hold or not. Returns whether
    /// it may be verified. A peer that is refused sends again what matters.
    pub(super) fn affords_check(&mut self, now: Duration, peer: Peer) -> bool {
        // §10.9: no connection, and not all strangers together, oftener than their rate.
        let affords = if self.leaders.contains(&peer) || self.kgcs.contains(&peer) {
            true
        } else if self.relayed.contains(&peer) {
            self.checks.take(now, peer).is_ok()
        } else {
            self.unproven_checks.take(now, peer).is_ok() && self.all_unproven_checks.take(now, ()).is_ok()
        };
        #[cfg(test)]
        {
            self.checked += usize::from(affords);
        }
        affords
    }

    /// The reason to disconnect a peer; `None` if there is none. Published messages are others'; KGCs and
    /// leaders that we dialled are never disconnected.
    pub(super) fn weigh(&mut self, peer: Peer, offence: &Offence) -> Option<Misdeed> {
        // §13.8: not for what came by gossip, and never a peer that the node itself dialled.
        if self.via == Via::Group || self.leaders.contains(&peer) || self.kgcs.contains(&peer) {
            return None;
        }
        let misdeed = self.misdeeds.weigh(peer, offence)?;
        // §6.4: what comes over it next is verified before it is queued.
        self.verified.remove(&peer);
        Some(misdeed)
    }

    /// The same for a signature that does not hold under the key of a slot's holder: the sender may have held the slot
    /// before, so that it counts as a message that cannot be read.
    pub(super) fn weigh_former_holder(&mut self, peer: Peer) -> Option<Misdeed> {
        if self.via == Via::Group || self.leaders.contains(&peer) || self.kgcs.contains(&peer) {
            return None;
        }
        // §13.8: nobody who lost a slot sends more than 16.
        self.misdeeds.weigh_lightly(peer).map(|_| Misdeed::Forgery)
    }

    /// Returns true if a join request came over this connection whose signatures verified.
    pub(super) fn is_verified(&self, peer: Peer) -> bool {
        self.verified.contains(&peer)
    }

    pub(super) fn note_verified(&mut self, peer: Peer) {
        self.verified.insert(peer);
    }

    /// Notes connections that may be relayed from now on, or no more.
    pub(super) fn relays_changed(&mut self, peers: impl IntoIterator<Item = Peer>) {
        self.changed.extend(peers);
    }

    /// Notes that any connection may no longer be relayed.
    pub(super) fn all_relays_changed(&mut self) {
        self.changed.extend(&self.relayed);
    }

    pub(super) fn take_changed(&mut self) -> Vec<Peer> {
        core::mem::take(&mut self.changed)
    }

    /// Relays a connection's group messages from now on, or no more. Returns whether that changed.
    pub(super) fn set_relayed(&mut self, peer: Peer, relayed: bool) -> bool {
        if relayed { self.relayed.insert(peer) } else { self.relayed.remove(&peer) }
    }

    pub(super) fn tick(&mut self, clock: Duration) {
        self.buckets().into_iter().for_each(|buckets| buckets.tick(clock));
    }

    fn buckets(&mut self) -> [&mut TokenBuckets; 5] {
        [
            &mut self.list_answers,
            &mut self.catch_ups,
            &mut self.unauthenticated_catch_ups,
            &mut self.checks,
            &mut self.unproven_checks,
        ]
    }

    /// The connection is gone, and its handle is not used again.
    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.kgcs.remove(&peer);
        self.leaders.remove(&peer);
        self.relayed.remove(&peer);
        self.verified.remove(&peer);
        self.misdeeds.disconnected(peer);
        self.buckets().into_iter().for_each(|buckets| buckets.disconnected(peer));
    }
}
