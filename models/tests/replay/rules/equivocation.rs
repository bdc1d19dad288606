//! A leader with two keys under one serial that makes every epoch twice (docs/protocol.md, §2.2, §10.7): whom its
//! headers convince, who follows which of them, and what a proof against it leads to.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{
    DronePublicKey, Epoch, EquivocationProof, Header, HeaderCore, Name, Role, SignedRevocationList,
};
use quiver_crypto::Digest;
use quiver_message::{Message, RevocationList};

use super::{Made, Rules, S, Verdict, bad, require};
use crate::recording::{GROUP, Node};

#[derive(Clone, Default)]
pub(super) struct Contradictions {
    /// Headers of epochs beside the first that anybody was sent.
    others: BTreeMap<(Epoch, Digest), Made>,
    /// Headers of epochs that were made twice, by the nodes that were sent them.
    shown: BTreeMap<(Node, Epoch), BTreeSet<Digest>>,
    /// Proofs by the nodes that were sent them.
    accused: BTreeSet<(Node, Epoch)>,
    /// Nodes that refuse the leader, and those that were started with proof: one may have refused the leader and died
    /// before it said so.
    convicted: BTreeSet<Node>,
    restarted: BTreeSet<Node>,
    /// The one header of an epoch that a member follows.
    followed: BTreeMap<(Node, Epoch), Digest>,
    /// Newest revocation list that each KGC has sent, and that of a KGC when it had proof.
    lists: BTreeMap<Node, u64>,
    revoking: BTreeMap<Node, u64>,
}

/// The headers in a message.
fn headers(message: &Message<S>) -> Vec<&Header<S>> {
    match message {
        Message::Rekey(rekey) => vec![&rekey.header],
        Message::EpochChanges(changes) => vec![&changes.header],
        Message::EquivocationProof(proof) => vec![&proof.first, &proof.second],
        _ => Vec::new(),
    }
}

impl Rules<'_> {
    /// Returns true if the leader with two keys opened the term of this epoch.
    pub(super) fn is_made_twice(&self, epoch: Epoch) -> bool {
        self.run.group.two_keys.is_some_and(|leader| self.run.group.opener(epoch) == Some(leader))
    }

    /// §2.2: all its keys have one serial, and the same role.
    pub(super) fn one_of_two_keys(&mut self, leader: Node, core: &HeaderCore<S>) -> Verdict {
        let identity = &core.leader.identity;
        require(identity.name.as_bytes() == leader.as_bytes(), "another's key")?;
        let leads = Role::Leader { group: Name::new(GROUP).map_err(bad)?, ordinal: core.epoch.ordinal() };
        require(identity.role == leads, "no leader of the group")?;
        let known: &DronePublicKey<S> = self.keys.entry(leader).or_insert_with(|| core.leader.clone());
        require(known.identity == *identity, "a key under another serial")
    }

    /// Another header of an epoch that is known.
    pub(super) fn made_twice(&mut self, header: &Header<S>, d0: Digest, digest: Digest) {
        let (root, tag) = (header.entries_root, header.tag);
        let made = || Made { core: header.core.clone(), digest, d0, root, tag, key: None };
        self.contradictions.others.entry((header.core.epoch, digest)).or_insert_with(made);
    }

    /// The header of an epoch that has this D.
    pub(super) fn header(&self, epoch: Epoch, digest: &Digest) -> Option<&Made> {
        let first = self.made.get(&epoch).filter(|made| made.digest == *digest);
        first.or_else(|| self.contradictions.others.get(&(epoch, *digest)))
    }

    pub(super) fn header_mut(&mut self, epoch: Epoch, digest: &Digest) -> Option<&mut Made> {
        let first = self.made.get_mut(&epoch).filter(|made| made.digest == *digest);
        first.or_else(|| self.contradictions.others.get_mut(&(epoch, *digest)))
    }

    /// A node is sent headers, of which it remembers those of the leader with two keys.
    pub(super) fn show_headers(&mut self, to: Node, message: &Message<S>) -> Verdict {
        for header in headers(message) {
            let epoch = header.core.epoch;
            if self.is_made_twice(epoch) {
                let digest = self.epoch(header)?;
                self.contradictions.shown.entry((to, epoch)).or_default().insert(digest);
            }
        }
        Ok(())
    }

    /// §7.3: a member follows one header of an epoch at most.
    pub(super) fn one_header(&mut self, member: Node, epoch: Epoch, digest: Digest) -> Verdict {
        if !self.is_made_twice(epoch) {
            return Ok(());
        }
        let followed = *self.contradictions.followed.entry((member, epoch)).or_insert(digest);
        require(followed == digest, "it follows two headers of one epoch")
    }

    /// §10.7: a member follows no key of a leader against which it has proof.
    pub(super) fn follows(&mut self, member: Node, epoch: Epoch, digest: Digest) -> Verdict {
        let refused = self.is_made_twice(epoch) && self.contradictions.convicted.contains(member);
        require(!refused, "it has proof against that leader")?;
        self.one_header(member, epoch, digest)
    }

    /// Returns true if a node may have the key of an epoch of which this is D. Of an epoch that was made twice it is the
    /// header that it follows, and the key is erased once it has proof.
    pub(super) fn opens(&self, node: Node, epoch: Epoch, digest: &Digest) -> bool {
        let Contradictions { followed, convicted, .. } = &self.contradictions;
        !self.is_made_twice(epoch)
            || followed.get(&(node, epoch)) == Some(digest) && !convicted.contains(node)
    }

    /// Returns true if a node has seen that an epoch was made twice: it was sent a proof, or another header than the one
    /// that it holds.
    fn has_proof(&self, node: Node, epoch: Epoch) -> bool {
        let Contradictions { shown, accused, .. } = &self.contradictions;
        let holds = self.run.group.leads(node) || self.given.contains_key(&(node, epoch));
        let both = holds && shown.get(&(node, epoch)).is_some_and(|digests| digests.len() > 1);
        both || accused.contains(&(node, epoch))
    }

    /// A node says that it has proof.
    pub(super) fn convicts(&mut self, at: Node, epoch: Epoch) -> Verdict {
        require(self.has_proof(at, epoch), "nobody showed it proof")?;
        if at.starts_with("kgc") {
            let newest = self.contradictions.lists.get(at).copied().unwrap_or_default();
            self.contradictions.revoking.entry(at).or_insert(newest);
            return Ok(());
        }
        require(self.contradictions.convicted.insert(at), "it refused that leader before")
    }

    pub(super) fn restarts_with_proof(&mut self, node: Node) {
        let epochs: BTreeSet<Epoch> = self.contradictions.shown.keys().map(|(_, epoch)| *epoch).collect();
        if epochs.into_iter().any(|epoch| self.has_proof(node, epoch)) {
            self.contradictions.restarted.insert(node);
        }
        // A proof is in the memory of a KGC until there is a list.
        self.contradictions.revoking.remove(node);
    }

    /// §10.7: two headers of one epoch under one serial, which hold, from a node that refuses their leader.
    pub(super) fn proof(&mut self, from: Node, to: Node, proof: &EquivocationProof<S>) -> Verdict {
        let (first, second) = (self.epoch(&proof.first)?, self.epoch(&proof.second)?);
        let (one, other) = (&proof.first.core, &proof.second.core);
        require(one.epoch == other.epoch && first != second, "headers that do not contradict each other")?;
        require(one.leader.identity.serial == other.leader.identity.serial, "headers of two leaders")?;
        let Contradictions { convicted, restarted, .. } = &self.contradictions;
        require(convicted.contains(from) || restarted.contains(from), "it has not found that out")?;
        self.contradictions.accused.insert((to, one.epoch));
        Ok(())
    }

    /// §10.7: the list of a KGC that had proof names the leader. What a quorum revokes takes the signatures of others.
    pub(super) fn revocation_list(&mut self, from: Node, list: &RevocationList) -> Verdict {
        let alone = matches!(&self.run.group.kgcs[..], [kgc] if *kgc == from);
        let Some(leader) = self.run.group.two_keys.filter(|_| alone) else { return Ok(()) };
        let list = SignedRevocationList::<S>::decode(&list.list).map_err(bad)?;
        let list = list.verify(&self.run.deployment).map_err(bad)?;
        let newest = self.contradictions.lists.entry(from).or_default();
        *newest = (*newest).max(list.number);
        if self.contradictions.revoking.get(from).is_some_and(|before| list.number > *before) {
            let serial = self.keys.get(leader).ok_or("nobody knows that leader's key")?.identity.serial;
            require(list.names_serial(&serial), "a list without the leader that it revoked")?;
        }
        Ok(())
    }
}
