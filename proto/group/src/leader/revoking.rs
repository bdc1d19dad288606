//! Who may no longer be here: evictions by the operator, revocations by the KGC.

use core::time::Duration;

use alloc::vec::Vec;

use quiver_ainq::{Serial, Slot, Suite};
use quiver_message::{Message, RevocationQuery};
use rand_core::CryptoRngCore;

use super::memory::Change;
use super::{Leader, LeaderEvent};
use quiver_machine::{Now, Peer};

/// How often a leader asks its KGCs for a newer list.
const ASK_EVERY: Duration = Duration::from_secs(60);

impl<S: Suite> Leader<S> {
    /// Puts members out and keeps them out. Waits for no batch.
    pub(super) fn evict(&mut self, now: Now, slots: &[Slot], rng: &mut dyn CryptoRngCore) {
        let serials: Vec<_> = slots
            .iter()
            .filter_map(|slot| self.roster().get(*slot))
            .map(|public| public.identity.serial)
            .collect();
        if !serials.is_empty() {
            self.backlog.evict(serials);
            self.rekey(now, rng);
        }
    }

    /// Puts out whoever sits in a slot, in by name or without one.
    pub(super) fn evict_slot(&mut self, now: Now, slot: Slot, rng: &mut dyn CryptoRngCore) {
        if self.roster().get(slot).is_some() {
            return self.evict(now, &[slot], rng);
        }
        if self.roster().anonymous(slot).is_none() {
            return self.out.event(LeaderEvent::NobodyInSlot(slot));
        }
        self.backlog.remove([slot]);
        self.rekey(now, rng);
    }

    /// Makes the epochs that are left of a mass eviction, so that nobody who is to be put out reads what is said next.
    /// Returns whether they were made.
    pub(super) fn put_out_the_rest(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> bool {
        while self.backlog.evicts() {
            let before = self.epoch();
            self.rekey(now, rng);
            if self.epoch() == before {
                return false;
            }
        }
        true
    }

    /// Who is still to be put out when another leader's term is seen: the notice of it is for that one.
    pub(super) fn hand_over_evictions(&mut self, rng: &mut dyn CryptoRngCore) {
        let left: Vec<Serial> = self.backlog.evictions().chain(self.backlog.barred()).copied().collect();
        if let Some(epoch) = self.epoch() {
            self.give_notice(epoch, &left, rng);
        }
    }

    pub(super) fn ask_for_revocations(&mut self, now: Now) {
        self.ask_revocations = (!self.kgcs.is_empty()).then(|| now.monotonic + ASK_EVERY);
        let query = Message::<S>::RevocationQuery(self.memory.revocations.query());
        for kgc in &self.kgcs {
            self.out.send(&self.config.deployment, *kgc, &query);
        }
    }

    pub(super) fn revocation_query(&mut self, now: Now, from: Peer, query: &RevocationQuery) {
        if !self.list_answers.take(now.monotonic, from) {
            return;
        }
        if let Some(list) = self.memory.revocations.answer(query) {
            self.out.send(&self.config.deployment, from, &list);
        }
    }

    /// A list from anywhere. Members that a newer one names are put out at once, and their connections are cut.
    pub(super) fn revocation_list(
        &mut self,
        now: Now,
        from: Peer,
        bytes: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) {
        match self.memory.revocations.offer(&self.config.deployment, bytes) {
            Ok(false) => {}
            Err(error) => self.blame(from, error),
            Ok(true) => {
                self.persist(&[Change::Revocations(bytes.to_vec())]);
                self.out.event(LeaderEvent::RevocationList { number: self.memory.revocations.number() });
                self.evict_revoked(now, rng);
            }
        }
    }

    fn evict_revoked(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let roster = self.roster().iter();
        let revoked =
            roster.filter(|(_, public)| self.memory.revocations.names(public)).map(|(slot, _)| slot);
        let revoked: Vec<Slot> = revoked.collect();
        self.evict(now, &revoked, rng);
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Name, RevocationList, Revoked, StrategyKind};

    use super::super::backlog::MAX_REMOVED_TREE;
    use super::super::crowd::{Crowd, S, name};
    use super::super::{LeaderCommand, LeaderEvent};
    use super::*;
    use quiver_machine::{Input, Output, Via};
    use quiver_message::Reason;

    /// Three epochs of a tree are not enough to remove as many.
    const CROWD: u32 = 3 * MAX_REMOVED_TREE as u32 + 10;

    /// A list by which everybody but the first so many is revoked.
    fn revoke_all_but(crowd: &mut Crowd, left: Slot) -> Vec<u8> {
        let drone = |(_, public): (Slot, &quiver_ainq::DronePublicKey<S>)| Revoked::from(&public.identity);
        let revoked = crowd.leader.roster().iter().skip(left as usize).map(drone).collect();
        let list = RevocationList { number: 1, issued: 1, next_update: 2_000_000, revoked };
        let list = crowd.master.sign_revocations(&crowd.deployment, list, &mut crowd.rng).unwrap().encode();
        Message::<S>::RevocationList(quiver_message::RevocationList { list }).encode(&crowd.deployment)
    }

    fn put_out(crowd: &Crowd, member: &Name) -> bool {
        crowd.leader.members().all(|(_, name)| name != member)
    }

    #[test]
    fn a_leader_that_crashes_between_the_epochs_of_a_mass_eviction_forgets_none_of_it() {
        for checkpoint in [false, true] {
            let mut crowd = Crowd::new(StrategyKind::Tree, 0..CROWD);
            let list = revoke_all_but(&mut crowd, 2);
            crowd.input(Input::Received { from: Peer(1), via: Via::Peer, bytes: &list });
            // The operator's word waits behind those, and nothing but a record remembers it.
            crowd.command(LeaderCommand::Evict(name("drone-1")));
            assert!(!put_out(&crowd, &name("drone-1")));
            if checkpoint {
                crowd.records = crowd.leader.checkpoint();
            }
            crowd.restart();
            assert!(put_out(&crowd, &name("drone-1")), "from a checkpoint: {checkpoint}");
            let members: Vec<_> = crowd.leader.members().map(|(slot, _)| slot).collect();
            assert_eq!(members, [0]);
        }
    }

    #[test]
    fn revoked_members_are_blocked_whichever_epoch_puts_them_out() {
        let mut crowd = Crowd::new(StrategyKind::Tree, 0..CROWD);
        for slot in 0..CROWD {
            // Two at a time behind one gateway.
            crowd.leader.links.connect(slot, Peer(u64::from(slot / 2)));
        }
        let list = revoke_all_but(&mut crowd, 1);
        let mut outputs = crowd.input(Input::Received { from: Peer(u64::MAX), via: Via::Peer, bytes: &list });
        while crowd.leader.roster().len() > 1 {
            outputs.extend(crowd.input(Input::Timeout));
        }
        let blocked = outputs.iter().filter_map(|output| match output {
            Output::Block(peer) => Some(peer.0),
            _ => None,
        });
        // The first gateway carries one that stays.
        assert_eq!(blocked.collect::<Vec<_>>(), (1..u64::from(CROWD / 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_leader_speaks_under_no_key_that_those_to_be_put_out_hold() {
        let mut crowd = Crowd::new(StrategyKind::Tree, 0..CROWD);
        let list = revoke_all_but(&mut crowd, 2);
        crowd.input(Input::Received { from: Peer(1), via: Via::Peer, bytes: &list });
        assert!(crowd.leader.backlog.evicts());
        let outputs = crowd.command(LeaderCommand::Send { channel: name("orders"), data: alloc::vec![1] });
        assert_eq!(crowd.leader.roster().len(), 2);
        let said = outputs.iter().find_map(|output| match output {
            Output::Transmit { payload, .. } => match Message::<S>::decode(&crowd.deployment, payload) {
                Ok(Message::GroupMessage(message)) => Some(message),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(Some(said.unwrap().epoch), crowd.leader.epoch());
        let failed =
            |output: &Output<LeaderEvent, _>| matches!(output, Output::Event(LeaderEvent::SendFailed(_)));
        assert!(!outputs.iter().any(failed));
    }

    #[test]
    fn nobody_is_let_in_under_a_stale_list_where_that_is_refused() {
        for (refused, stale) in [(false, true), (true, false), (true, true)] {
            let mut crowd = Crowd::new(StrategyKind::Flat, 0..2);
            if refused {
                let leader =
                    core::mem::replace(&mut crowd.leader, Crowd::new(StrategyKind::Flat, 0..1).leader);
                crowd.leader = leader.with_stale_lists_refused();
            }
            let next_update = if stale { crowd.now.unix - 1 } else { crowd.now.unix };
            let list = RevocationList { number: 1, issued: 1, next_update, revoked: Vec::new() };
            let list =
                crowd.master.sign_revocations(&crowd.deployment, list, &mut crowd.rng).unwrap().encode();
            let list = Message::<S>::RevocationList(quiver_message::RevocationList { list });
            crowd.input(Input::Received {
                from: Peer(1),
                via: Via::Peer,
                bytes: &list.encode(&crowd.deployment.clone()),
            });
            let hello =
                quiver_message::JoinHello { group: name("alpha"), drone: alloc::vec![2; 16], nonce: [1; 16] };
            let hello = Message::<S>::JoinHello(hello).encode(&crowd.deployment);
            let outputs = crowd.input(Input::Received { from: Peer(2), via: Via::Peer, bytes: &hello });
            let not_ready = |output: &Output<LeaderEvent, _>| {
                matches!(output, Output::Event(LeaderEvent::Refused { reason: Reason::NotReady, .. }))
            };
            assert_eq!(outputs.iter().any(not_ready), refused && stale, "{refused} {stale}");
            assert_eq!(crowd.leader.status().revocations_next_update, Some(next_update));
        }
    }
}
