//! Removes members: by the operator's word, by a revocation list, and those without a message for long.

use alloc::vec::Vec;

use quiver_ainq::{Name, Slot, Suite};

use super::Term;
use super::absent_members::note_away;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;

impl<S: Suite> Term<S> {
    /// Evicts the member of this name, or a drone that was one, and keeps it out. Waits for no batch.
    pub(in crate::leader) fn evict_name(&mut self, cx: &mut LeaderContext<'_, S>, name: Name) {
        let slot =
            self.roster().iter().find(|(_, public)| public.identity.name == name).map(|(slot, _)| slot);
        match slot {
            None => self.evict_absent(cx, name),
            Some(slot) => self.evict(cx, &[slot]),
        }
    }

    /// Evicts the holder of this slot, a member by name or an anonymous one.
    pub(in crate::leader) fn evict_slot(&mut self, cx: &mut LeaderContext<'_, S>, slot: Slot) {
        if self.roster().get(slot).is_some() {
            return self.evict(cx, &[slot]);
        }
        if self.roster().anonymous(slot).is_none() {
            return cx.event(LeaderEvent::NobodyInSlot(slot));
        }
        self.pending.remove([slot]);
        self.rekey(cx);
    }

    /// Evicts the members that the revocation list held names.
    pub(in crate::leader) fn evict_revoked(&mut self, cx: &mut LeaderContext<'_, S>) {
        // §12.3: whom a newer list names is out at once.
        let revoked = self.roster().iter().filter(|(_, public)| cx.store.revocations.names(public));
        let revoked: Vec<Slot> = revoked.map(|(slot, _)| slot).collect();
        self.evict(cx, &revoked);
    }

    fn evict(&mut self, cx: &mut LeaderContext<'_, S>, slots: &[Slot]) {
        let members = slots.iter().filter_map(|slot| self.roster().get(*slot));
        let serials: Vec<_> = members.map(|public| public.identity.serial).collect();
        // §12.2: at once, in an epoch of its own if need be.
        if !serials.is_empty() {
            self.pending.evict(serials);
            self.rekey(cx);
        }
    }

    /// Removes the members without any message in this term.
    pub(super) fn expire_silent_members(&mut self, cx: &mut LeaderContext<'_, S>) {
        let slots = self.roster().iter().map(|(slot, _)| slot);
        // §12.1: neither acknowledged nor connected in this term for `absence`.
        let silent: Vec<Slot> = slots.filter(|slot| self.acknowledgements.is_silent(*slot)).collect();
        if !silent.is_empty() {
            let members = silent.iter().filter_map(|slot| self.roster().get(*slot));
            let changes: Vec<_> = members.map(|member| note_away(cx.store, member)).collect();
            cx.persist(&changes);
            self.pending.remove(silent);
            self.rekey(cx);
        }
    }

    /// Keeps out a drone that is no member just now, but was one before it lost its slot by being away.
    fn evict_absent(&mut self, cx: &mut LeaderContext<'_, S>, name: Name) {
        let Some(serial) = cx.store.away.get(&name).copied() else {
            return cx.event(LeaderEvent::NoSuchMember(name));
        };
        // §12.2: a drone that lost its slot while it was away is evicted by its name all the same.
        if !self.roster().is_evicted(&serial) {
            self.pending.evict([serial]);
            self.rekey(cx);
        }
        if self.flush_evictions(cx) {
            cx.store.away.remove(&name);
            cx.event(LeaderEvent::Barred(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Name, RevocationStatement, Revoked, StrategyKind};

    use super::super::super::test_support::{LeaderFixture, S, name};
    use super::super::super::{LeaderCommand, LeaderEvent};
    use super::super::pending_changes::MAX_REMOVED;
    use super::*;
    use quiver_machine::Peer;
    use quiver_machine::{Input, Output, Via};
    use quiver_message::Message;
    use quiver_message::RefusalReason;

    /// Three epochs are not enough to remove as many.
    const MEMBERS: u32 = 3 * MAX_REMOVED as u32 + 10;

    /// A list by which everybody but the first so many is revoked.
    fn revoke_all_but(fixture: &mut LeaderFixture, left: Slot) -> Vec<u8> {
        let drone = |(_, public): (Slot, &quiver_ainq::DronePublicKey<S>)| Revoked::from(&public.identity);
        let revoked = fixture.leader.roster().iter().skip(left as usize).map(drone).collect();
        let list = RevocationStatement { number: 1, issued: 1, next_update: 2_000_000, revoked };
        let list =
            fixture.master.sign_revocations(&fixture.deployment, list, &mut fixture.rng).unwrap().encode();
        Message::<S>::RevocationList(quiver_message::RevocationList { list }).encode(&fixture.deployment)
    }

    fn is_evicted(fixture: &LeaderFixture, member: &Name) -> bool {
        fixture.leader.members().all(|(_, name)| name != member)
    }

    #[test]
    fn a_leader_that_crashes_between_the_epochs_of_a_mass_eviction_forgets_none_of_it() {
        for checkpoint in [false, true] {
            let mut fixture = LeaderFixture::new(StrategyKind::Tree, 0..MEMBERS);
            let list = revoke_all_but(&mut fixture, 2);
            fixture.input(Input::Received { from: Peer(1), via: Via::Peer, bytes: &list });
            // The operator's word waits behind those, and nothing but a record remembers it.
            fixture.command(LeaderCommand::Evict(name("drone-1")));
            assert!(!is_evicted(&fixture, &name("drone-1")));
            if checkpoint {
                fixture.records = fixture.leader.checkpoint();
            }
            fixture.restart();
            assert!(is_evicted(&fixture, &name("drone-1")), "from a checkpoint: {checkpoint}");
            let members: Vec<_> = fixture.leader.members().map(|(slot, _)| slot).collect();
            assert_eq!(members, [0]);
        }
    }

    #[test]
    fn revoked_members_are_blocked_whichever_epoch_puts_them_out() {
        let mut fixture = LeaderFixture::new(StrategyKind::Tree, 0..MEMBERS);
        for slot in 0..MEMBERS {
            // Two at a time behind one gateway.
            fixture.term().acknowledgements.connect(slot, Peer(u64::from(slot / 2)));
        }
        let list = revoke_all_but(&mut fixture, 1);
        let mut outputs =
            fixture.input(Input::Received { from: Peer(u64::MAX), via: Via::Peer, bytes: &list });
        while fixture.leader.roster().len() > 1 {
            outputs.extend(fixture.input(Input::Timeout));
        }
        let blocked = outputs.iter().filter_map(|output| match output {
            Output::Block(peer) => Some(peer.0),
            _ => None,
        });
        // The first gateway carries one that stays.
        assert_eq!(blocked.collect::<Vec<_>>(), (1..u64::from(MEMBERS / 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_revoked_member_is_sent_the_list_before_it_is_disconnected_however_long_the_list_is() {
        let mut fixture = LeaderFixture::new(StrategyKind::Tree, 0..8);
        for slot in 0..8 {
            fixture.term().acknowledgements.connect(slot, Peer(u64::from(slot)));
        }
        let member = Revoked::from(&fixture.leader.roster().get(5).unwrap().identity);
        let others = (0..2_000_u64).map(|number| {
            let mut serial = [0xff; 16];
            serial[..8].copy_from_slice(&number.to_be_bytes());
            Revoked { serial, not_after: 2_000_000, leader: false }
        });
        let mut list = RevocationStatement {
            number: 1,
            issued: 1,
            next_update: 2_000_000,
            revoked: others.chain([member]).collect(),
        };
        list.sort();
        let list =
            fixture.master.sign_revocations(&fixture.deployment, list, &mut fixture.rng).unwrap().encode();
        assert!(list.len() > 40_000);
        let message = Message::<S>::RevocationList(quiver_message::RevocationList { list });
        let bytes = message.encode(&fixture.deployment);
        let outputs = fixture.input(Input::Received { from: Peer(100), via: Via::Peer, bytes: &bytes });
        let concerns: Vec<_> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Transmit { to: quiver_machine::Destination::Peer(Peer(5)), payload } => {
                    (*payload == bytes).then_some("the list")
                }
                Output::Block(Peer(5)) => Some("the end"),
                Output::Event(LeaderEvent::Removed { slot: 5, evicted: true, revoked: true, .. }) => {
                    Some("revoked")
                }
                _ => None,
            })
            .collect();
        assert_eq!(concerns.iter().filter(|what| **what == "the list").count(), 1, "{concerns:?}");
        assert_eq!(concerns.last(), Some(&"the end"), "{concerns:?}");
        assert!(concerns.contains(&"revoked"));
    }

    #[test]
    fn a_short_list_is_sent_to_each_of_many_revoked_members() {
        const MANY: u32 = 600;
        let mut fixture = LeaderFixture::new(StrategyKind::Tree, 0..MANY);
        for slot in 0..MANY {
            fixture.term().acknowledgements.connect(slot, Peer(u64::from(slot)));
        }
        let list = revoke_all_but(&mut fixture, 1);
        // Together they take more than a leader sends of longer lists.
        assert!(list.len() < 16 * 1024 && list.len() * MANY as usize > 8 << 20);
        let mut outputs =
            fixture.input(Input::Received { from: Peer(u64::MAX), via: Via::Peer, bytes: &list });
        while fixture.leader.roster().len() > 1 {
            outputs.extend(fixture.input(Input::Timeout));
        }
        let mut told: Vec<_> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Transmit { to: quiver_machine::Destination::Peer(peer), payload } => {
                    (*payload == list).then_some(peer.0)
                }
                _ => None,
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, (1..u64::from(MANY)).collect::<Vec<_>>());
    }

    #[test]
    fn a_leader_speaks_under_no_key_that_those_to_be_put_out_hold() {
        let mut fixture = LeaderFixture::new(StrategyKind::Tree, 0..MEMBERS);
        let list = revoke_all_but(&mut fixture, 2);
        fixture.input(Input::Received { from: Peer(1), via: Via::Peer, bytes: &list });
        assert!(fixture.term().pending.evicts());
        let outputs = fixture.command(LeaderCommand::Send { channel: name("orders"), data: alloc::vec![1] });
        assert_eq!(fixture.leader.roster().len(), 2);
        let said = outputs.iter().find_map(|output| match output {
            Output::Transmit { payload, .. } => match Message::<S>::decode(&fixture.deployment, payload) {
                Ok(Message::GroupMessage(message)) => Some(message),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(Some(said.unwrap().epoch), Some(fixture.epoch()));
        let failed =
            |output: &Output<LeaderEvent, _>| matches!(output, Output::Event(LeaderEvent::SendFailed(_)));
        assert!(!outputs.iter().any(failed));
    }

    #[test]
    fn nobody_is_let_in_under_a_stale_list_where_that_is_refused() {
        for (refused, stale) in [(false, true), (true, false), (true, true)] {
            let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..2);
            if refused {
                let leader = core::mem::replace(
                    &mut fixture.leader,
                    LeaderFixture::new(StrategyKind::Flat, 0..1).leader,
                );
                fixture.leader = leader.with_stale_lists_refused();
            }
            let next_update = if stale { fixture.now.unix - 1 } else { fixture.now.unix };
            let list = RevocationStatement { number: 1, issued: 1, next_update, revoked: Vec::new() };
            let list = fixture
                .master
                .sign_revocations(&fixture.deployment, list, &mut fixture.rng)
                .unwrap()
                .encode();
            let list = Message::<S>::RevocationList(quiver_message::RevocationList { list });
            fixture.input(Input::Received {
                from: Peer(1),
                via: Via::Peer,
                bytes: &list.encode(&fixture.deployment.clone()),
            });
            let hello = quiver_message::JoinHello {
                group: name("alpha"),
                drone: alloc::vec![2; 16],
                nonce: [1; 16],
                kem: None,
            };
            let hello = Message::<S>::JoinHello(hello).encode(&fixture.deployment);
            let outputs = fixture.input(Input::Received { from: Peer(2), via: Via::Peer, bytes: &hello });
            let not_ready = |output: &Output<LeaderEvent, _>| {
                matches!(output, Output::Event(LeaderEvent::Refused { reason: RefusalReason::NotReady, .. }))
            };
            assert_eq!(outputs.iter().any(not_ready), refused && stale, "{refused} {stale}");
            assert_eq!(fixture.leader.status().revocations_next_update, Some(next_update));
        }
    }
}
