//! History of groups: the newest epoch of each group that this drone was a member of. Epochs never go back,
//! also across memberships (§7.3).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

use quiver_ainq::{
    Deployment, DronePublicKey, Epoch, Header, HeaderCore, MAX_GROUPS, Name, Signature, Suite,
};
use quiver_machine::Peer;
use quiver_message::{Message, Rekey};

use crate::edge::EdgeContext;

/// Bytes of the longest header that is kept of a group that was left for another. A usual one has 400 to 600.
const MAX_HEADER_LEN: usize = 1024;

/// The newest epoch ever accepted in each group, the group that the drone was in last at the end. As many as
/// an identity names; of more the one it was in the longest ago is forgotten.
#[derive(Debug)]
pub(in crate::edge) struct History<S: Suite>(Vec<PastMembership<S>>);

/// State remembered of a group.
#[derive(Debug)]
pub(in crate::edge) struct PastMembership<S: Suite> {
    pub(in crate::edge) group: Name,
    pub(in crate::edge) epoch: Epoch,
    /// The header of that epoch, while no member of the group: to be shown to a leader that has forgotten how
    /// far its group is.
    pub(in crate::edge) header: Option<KeptHeader<S>>,
}

impl<S: Suite> History<S> {
    pub(in crate::edge) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(in crate::edge) fn iter(&self) -> impl Iterator<Item = &PastMembership<S>> {
        self.0.iter()
    }

    fn find(&self, group: &Name) -> Option<&PastMembership<S>> {
        self.0.iter().find(|past| past.group == *group)
    }

    /// The newest epoch ever accepted in this group.
    pub(in crate::edge) fn newest_in(&self, group: &Name) -> Option<Epoch> {
        self.find(group).map(|past| past.epoch)
    }

    /// Newest header of the group, unless the drone is a member there.
    pub(in crate::edge) fn header_in(&self, group: &Name) -> Option<&KeptHeader<S>> {
        self.find(group)?.header.as_ref()
    }

    /// The header of the group that the drone was in last, unless it is a member there.
    pub(in crate::edge) fn last_header(&mut self) -> Option<&mut KeptHeader<S>> {
        self.0.last_mut()?.header.as_mut()
    }

    /// Remembers an epoch of the group that the drone is in now; its header is the member's.
    pub(in crate::edge) fn accept(&mut self, group: &Name, epoch: Epoch) {
        if let Some(last) = self.0.last_mut().filter(|last| last.group == *group) {
            (last.epoch, last.header) = (epoch, None);
            return;
        }
        self.0.retain(|past| past.group != *group);
        // §7.3: of a former group, a header of at most 1 KiB.
        if let Some(last) = self.0.last_mut() {
            last.header.take_if(|header| header.bytes().len() > MAX_HEADER_LEN);
        }
        self.push(PastMembership { group: group.clone(), epoch, header: None });
    }

    /// Takes in what was stored, in its order.
    pub(in crate::edge) fn push(&mut self, past: PastMembership<S>) {
        // §7.3: the last 16 groups.
        if self.0.len() >= MAX_GROUPS {
            self.0.remove(0);
        }
        // Mostly there is one, and a list grows to four.
        self.0.reserve_exact(1);
        self.0.push(past);
    }

    /// The membership in the last group has ended with this header.
    pub(in crate::edge) fn keep(&mut self, header: KeptHeader<S>) {
        // §10.5: for a leader that has forgotten how far its group is.
        if let Some(last) = self.0.last_mut() {
            last.header = Some(header);
        }
    }
}

/// A header as its canonical bytes: it is stored with every change and looked into hardly ever.
#[derive(Clone, Debug)]
pub(in crate::edge) struct KeptHeader<S: Suite> {
    bytes: Arc<[u8]>,
    suite: PhantomData<S>,
}

impl<S: Suite> KeptHeader<S> {
    pub(super) fn new(header: &Header<S>, deployment: &Deployment<S>) -> Self {
        Self { bytes: header.encode(deployment).into(), suite: PhantomData }
    }

    /// A stored header, which is not decoded yet.
    pub(in crate::edge) fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), suite: PhantomData }
    }

    pub(in crate::edge) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the same bytes in the memory that `shared` gives for them.
    pub(in crate::edge) fn share(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        let equal = shared(&self.bytes);
        if equal == self.bytes {
            self.bytes = equal;
        }
    }

    /// The header. Every header that was encoded in this deployment decodes in it, so there always is one.
    pub(super) fn header(&self, deployment: &Deployment<S>) -> Option<Header<S>> {
        Header::decode(&self.bytes, deployment).ok()
    }

    /// The fields under the tag of the header. Points of the leader's key are not decoded again if it is the expected one.
    pub(super) fn core(
        &self,
        deployment: &Deployment<S>,
        leader: Option<&DronePublicKey<S>>,
    ) -> Option<HeaderCore<S>> {
        HeaderCore::decode_expecting(&self.bytes, deployment, leader).ok()
    }

    /// Returns true if it is the header with this tag and signature, which its bytes end with.
    pub(super) fn ends_with(&self, tag: &[u8; 32], signature: &Signature<S>) -> bool {
        let before = self.bytes.strip_suffix(&signature.encode()[..]);
        before.is_some_and(|before| before.ends_with(tag))
    }

    /// Sends a leader the header, which it or one like it signed.
    #[inline(never)]
    pub(super) fn send(&self, cx: &mut EdgeContext<'_, S>, leader: Peer) {
        if let Some(header) = self.header(cx.deployment) {
            cx.send(leader, &Message::Rekey(Rekey::new(header, None)));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use quiver_ainq::Ristretto255;

    use super::*;

    fn group(number: u64) -> Name {
        Name::new(&format!("group-{number}")).unwrap()
    }

    fn epoch(counter: u64) -> Epoch {
        Epoch { term: 1 << 16, counter }
    }

    #[test]
    fn of_more_groups_than_an_identity_names_the_one_left_longest_ago_is_forgotten() {
        let mut history = History::<Ristretto255>::new();
        let groups = MAX_GROUPS as u64;
        (0..groups).for_each(|number| history.accept(&group(number), epoch(number)));
        history.accept(&group(0), epoch(100));
        history.accept(&group(groups), epoch(1));
        assert_eq!(history.iter().count(), MAX_GROUPS);
        assert_eq!(history.newest_in(&group(1)), None);
        assert_eq!(history.newest_in(&group(0)), Some(epoch(100)));
        assert_eq!(history.newest_in(&group(2)), Some(epoch(2)));
    }

    #[test]
    fn long_headers_are_kept_of_the_last_group_alone() {
        let mut history = History::<Ristretto255>::new();
        for (number, len) in [(0, 500), (1, MAX_HEADER_LEN + 1), (2, MAX_HEADER_LEN + 1)] {
            history.accept(&group(number), epoch(1));
            history.keep(KeptHeader::from_bytes(&alloc::vec![0; len]));
        }
        let kept = |number| history.header_in(&group(number)).is_some();
        assert_eq!([0, 1, 2].map(kept), [true, false, true]);
    }
}
