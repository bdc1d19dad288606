//! Signed notices of eviction: kept, honoured, and shown to whoever leads next.
//!
//! What a leader evicted stands in its roster. A notice says the same to leaders that have another roster: a deputy that
//! takes over before it was told, and the leader of the other side after a partition.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, Epoch, Error, Handle, Label, Role, Suite};
use quiver_message::{EvictionNotice, MAX_EVICTED, Message};
use rand_core::CryptoRngCore;

use super::memory::Change;
use super::{Leader, RestoreError};
use crate::{Now, Peer, statements};

/// How many notices are kept, the newest ones.
const MAX_NOTICES: usize = 64;
/// How many drones that are no members a leader bars at most on the word of others.
const MAX_STRANGERS: usize = 1 << 16;

/// The notices that this leader signed, and those it heard while standing by.
#[derive(Debug)]
pub(super) struct Notices<S: Suite> {
    kept: VecDeque<EvictionNotice<S>>,
}

impl<S: Suite> Notices<S> {
    pub(super) fn new() -> Self {
        Self { kept: VecDeque::new() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EvictionNotice<S>> {
        self.kept.iter()
    }

    /// Everybody named.
    pub(super) fn handles(&self) -> impl Iterator<Item = &Handle> {
        self.kept.iter().flat_map(|notice| &notice.handles)
    }

    fn knows(&self, notice: &EvictionNotice<S>) -> bool {
        self.kept.iter().any(|kept| {
            kept.epoch == notice.epoch && kept.handles == notice.handles && kept.leader == notice.leader
        })
    }

    fn keep(&mut self, notice: EvictionNotice<S>) {
        if self.kept.len() >= MAX_NOTICES {
            self.kept.pop_front();
        }
        self.kept.push_back(notice);
    }

    /// Takes a stored notice.
    pub(super) fn recall(&mut self, deployment: &Deployment<S>, message: &[u8]) -> Result<(), RestoreError> {
        match Message::decode(deployment, message) {
            Ok(Message::EvictionNotice(notice)) if !self.knows(&notice) => self.keep(notice),
            Ok(Message::EvictionNotice(_)) => {}
            _ => return Err(RestoreError::Damaged),
        }
        Ok(())
    }
}

impl<S: Suite> Leader<S> {
    pub(super) fn notice_change(&self, notice: &EvictionNotice<S>) -> Change {
        Change::Notice(Message::EvictionNotice(notice.clone()).encode(&self.config.deployment))
    }

    fn keep_notice(&mut self, notice: EvictionNotice<S>) {
        self.persist(&[self.notice_change(&notice)]);
        self.memory.notices.keep(notice);
    }

    /// Signs and spreads who was put out, for deputies and for the evicted themselves.
    pub(super) fn give_notice(&mut self, epoch: Epoch, handles: &[Handle], rng: &mut dyn CryptoRngCore) {
        for handles in handles.chunks(MAX_EVICTED) {
            let Some(keypair) = &self.memory.keypair else { return };
            let group = self.config.group.clone();
            let statement = statements::evict(&group, epoch, handles);
            let signature = keypair.sign(&self.config.deployment, Label::Evict, &statement, rng);
            let leader = keypair.public().clone();
            let notice = EvictionNotice { group, leader, epoch, handles: handles.to_vec(), signature };
            self.keep_notice(notice.clone());
            self.out.send_to_group(&self.config.deployment, &Message::EvictionNotice(notice));
        }
    }

    /// Another leader's notice, from anyone. Who leads puts them out too; who stands by does when it takes over.
    pub(super) fn eviction_notice(
        &mut self,
        now: Now,
        from: Peer,
        notice: EvictionNotice<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        if notice.group != self.config.group {
            return;
        }
        let roster = self.roster();
        let news = notice.handles.iter().filter(|handle| !roster.is_evicted(handle));
        let mut news: Vec<Handle> = news.copied().collect();
        // Our own notice passed on by the group, or one known long since, costs no curve arithmetic.
        if news.is_empty() || (self.lead.is_none() && self.memory.notices.knows(&notice)) {
            return;
        }
        if let Err(error) = self.believe(now, &notice) {
            return self.blame(from, error);
        }
        if self.lead.is_none() {
            return self.keep_notice(notice);
        }
        let roster = self.roster();
        if roster.evicted().nth(MAX_STRANGERS).is_some() {
            news.retain(|handle| roster.find(handle).is_some());
        }
        if !news.is_empty() {
            self.backlog.evict(news);
            self.rekey(now, rng);
        }
    }

    fn believe(&self, now: Now, notice: &EvictionNotice<S>) -> Result<(), Error> {
        let leader = &notice.leader;
        let leads = match &leader.identity.role {
            Role::Leader { group, ordinal } => *group == notice.group && *ordinal == notice.epoch.ordinal(),
            Role::Edge => false,
        };
        if !leads || self.memory.refused.names(leader) {
            return Err(Error::NotALeader);
        }
        if self.memory.revocations.names(leader) {
            return Err(Error::Revoked);
        }
        if now.unix >= leader.identity.not_after {
            return Err(Error::Expired);
        }
        let statement = statements::evict(&notice.group, notice.epoch, &notice.handles);
        notice.signature.verify(&self.config.deployment, leader, Label::Evict, &statement)
    }

    /// What a deputy takes over, less everybody whom a notice names.
    pub(super) fn unseat_the_evicted(&mut self) -> Vec<Change> {
        let memory = &mut self.memory;
        let named = memory.notices.handles().filter(|handle| !memory.roster.is_evicted(handle));
        let named: Vec<Handle> = named.copied().collect();
        let mut changes = Vec::new();
        for handle in named {
            if let Some(slot) = memory.roster.evict(handle) {
                memory.remove_spare(slot);
                changes.push(Change::Vacated(slot));
            }
            changes.push(Change::Evicted(*handle.as_bytes()));
        }
        changes
    }

    /// Shows the leader we stand by for whom its roster does not bar although a notice says so.
    pub(super) fn show_notices(&mut self, to: Peer) {
        let roster = &self.memory.roster;
        let unheard =
            |notice: &&EvictionNotice<S>| notice.handles.iter().any(|handle| !roster.is_evicted(handle));
        let messages = self
            .memory
            .notices
            .iter()
            .filter(unheard)
            .map(|notice| Message::EvictionNotice(notice.clone()).encode(&self.config.deployment));
        for message in messages.collect::<Vec<_>>() {
            self.out.send_encoded(to, message);
        }
    }
}
