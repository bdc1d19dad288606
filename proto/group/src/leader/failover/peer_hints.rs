//! Hints where members are connected, at a deputy: they send every leader their spare point. docs/protocol.md
//! §10.5.
//!
//! A hint is no proof: the statement may be played again from elsewhere. It decides where an opening's entry
//! is sent first, which is of use to its member alone; a member that gets none asks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{Serial, Suite};
use quiver_machine::Peer;
use quiver_message::SparePublication;

use crate::leader::context::LeaderContext;
use crate::leader::store::{Spare, spare_change};

/// The connection of each member's last message.
#[derive(Debug, Default)]
pub(in crate::leader) struct PeerHints {
    by_serial: BTreeMap<Serial, Peer>,
    /// The same the other way round: connections come and go, and few of them are anybody's.
    by_peer: BTreeSet<(Peer, Serial)>,
    /// Connections that members came to or left.
    changed: Vec<Peer>,
}

impl PeerHints {
    /// Hints at a connection, unless another that the member came over is there.
    pub(in crate::leader) fn insert_first(&mut self, member: Serial, peer: Peer) {
        if !self.by_serial.contains_key(&member) {
            self.insert(member, peer);
        }
    }

    /// Hints at a connection in place of any other.
    pub(in crate::leader) fn insert(&mut self, member: Serial, peer: Peer) {
        if let Some(before) = self.by_serial.insert(member, peer) {
            self.by_peer.remove(&(before, member));
            self.changed.push(before);
        }
        self.by_peer.insert((peer, member));
        self.changed.push(peer);
    }

    /// The connections that members came to or left since this was asked.
    pub(in crate::leader) fn take_changed(&mut self) -> Vec<Peer> {
        core::mem::take(&mut self.changed)
    }

    pub(in crate::leader) fn get(&self, member: &Serial) -> Option<Peer> {
        self.by_serial.get(member).copied()
    }

    /// The members whose last message came over this connection.
    pub(in crate::leader) fn behind(&self, peer: Peer) -> impl Iterator<Item = Serial> + '_ {
        let hinted = self.by_peer.range((peer, [0; 16])..=(peer, [u8::MAX; 16]));
        hinted.map(|(_, member)| *member)
    }

    pub(in crate::leader) fn disconnect(&mut self, peer: Peer) {
        for member in self.behind(peer).collect::<Vec<_>>() {
            self.by_peer.remove(&(peer, member));
            self.by_serial.remove(&member);
        }
    }

    pub(in crate::leader) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All connections, once each.
    pub(in crate::leader) fn peers(&self) -> BTreeSet<Peer> {
        self.by_peer.iter().map(|(peer, _)| *peer).collect()
    }
}

/// A member sends a deputy its spare point: kept if it is the newest, though only the active leader
/// acknowledges it. Gives the member, if the statement is its own, and whether it is news.
pub(in crate::leader) fn receive_spare<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    from: Peer,
    message: &SparePublication<S>,
) -> Option<(Serial, bool)> {
    // The copy of the roster may be older than the member's slot: a member that is not hinted at sends a
    // catch-up request.
    let public = cx.store.roster.get(message.slot)?;
    let (serial, spare) = (public.identity.serial, &message.spare);
    let known = cx.store.spare(message.slot);
    let news = known.is_none_or(|known| !known.is(&Spare::of(spare)));
    if news {
        // Older, spent, or two points under one number; or a newer one so soon that it costs neither curve
        // arithmetic nor a record.
        let old = known.is_some_and(|known| known.q >= spare.q);
        let used = cx.store.spare_allowance(message.slot, spare.q, cx.now).filter(|_| !old)?;
        // §10.9: a failure is spent, too.
        if !cx.peers.affords_check(cx.now.monotonic, from) {
            return None;
        }
        if let Err(error) = spare.verify(&cx.config.deployment, &message.group, public) {
            // The slot may be another's by now.
            cx.report_offence(from, error);
            return None;
        }
        let spare = Spare::of(spare).with_allowance(used);
        cx.persist(&[spare_change::<S>(message.slot, &spare)]);
        cx.store.set_spare(message.slot, spare);
    }
    Some((serial, news))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_goes_takes_its_own_hints_along() {
        let member = |n| [n; 16];
        let mut hints = PeerHints::default();
        for (n, peer) in [(0, 1), (1, 1), (255, 1), (2, 2), (1, 2)] {
            hints.insert(member(n), Peer(peer));
        }
        assert_eq!(hints.peers(), BTreeSet::from([Peer(1), Peer(2)]));
        hints.disconnect(Peer(1));
        hints.disconnect(Peer(3));
        assert_eq!(hints.peers(), BTreeSet::from([Peer(2)]));
        let found = [0, 1, 2, 255].map(|n| hints.get(&member(n)));
        assert_eq!(found, [None, Some(Peer(2)), Some(Peer(2)), None]);
        hints.disconnect(Peer(2));
        assert!(hints.peers().is_empty() && hints.get(&member(1)).is_none());
    }
}
