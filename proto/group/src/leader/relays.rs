//! Whose group messages this hub passes on, and who is disconnected for what it sent.
//!
//! A leader is the hub of its group, and anybody may connect to it. It passes on what members, deputies and other leaders
//! publish, once their connections are proven; strangers' messages go nowhere.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_ainq::Suite;

use super::Leader;
use quiver_machine::{Offence, Peer, Via};

/// Peers whose group messages are passed on.
#[derive(Debug, Default)]
pub(super) struct Relays {
    allowed: BTreeSet<Peer>,
    /// Peers of which that may have changed with this input.
    changed: Vec<Peer>,
}

impl Relays {
    pub(super) fn changed(&mut self, peers: impl IntoIterator<Item = Peer>) {
        self.changed.extend(peers);
    }

    /// Much has changed: everybody is looked at again.
    pub(super) fn all_changed(&mut self) {
        self.changed.extend(&self.allowed);
    }
}

impl<S: Suite> Leader<S> {
    /// Whether a peer has shown who it is: it is a leader that we dialled, a member is reached over it, a deputy asks over it,
    /// or a member showed us its spare point over it while another leads.
    fn is_proven(&self, peer: Peer) -> bool {
        self.leaders.contains(&peer)
            || self.links.carries(peer)
            || self.deputies.behind(peer).is_some()
            || self.hints.behind(peer).next().is_some()
    }

    /// Tells the driver whose group messages are passed on from now on, if that changed.
    pub(super) fn settle_relays(&mut self) {
        let mut changed = core::mem::take(&mut self.relays.changed);
        changed.extend(self.links.take_changed());
        changed.extend(self.hints.take_changed());
        for peer in changed {
            let proven = self.is_proven(peer);
            let allowed = &mut self.relays.allowed;
            let news = if proven { allowed.insert(peer) } else { allowed.remove(&peer) };
            if news {
                self.out.relay(peer, proven);
            }
        }
    }

    /// The peer is gone, and its handle is not used again.
    pub(super) fn forget_stranger(&mut self, peer: Peer) {
        self.relays.allowed.remove(&peer);
        self.waiting.disconnected(peer);
        self.misdeeds.disconnected(peer);
        self.list_answers.disconnected(peer);
        self.catch_ups.disconnected(peer);
        self.bare_catch_ups.disconnected(peer);
    }

    /// Who sends forgeries over its own connection is cut off for a while. What came by the group was written by somebody
    /// else; KGCs and leaders that we dialled are needed.
    pub(super) fn penalize(&mut self, peer: Peer, offence: &Offence) {
        if self.via == Via::Group || self.leaders.contains(&peer) || self.kgcs.contains(&peer) {
            return;
        }
        if let Some(misdeed) = self.misdeeds.weigh(peer, offence) {
            self.waiting.distrust(peer);
            self.out.penalize(peer, misdeed);
        }
    }
}
