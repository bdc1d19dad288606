//! State of a leader, for status queries.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use quiver_ainq::{
    Anonymous, DroneKeypair, DronePublicKey, Epoch, EpochKeys, Label, Name, Signature, Slot, Suite, UnixTime,
};
use quiver_crypto::Secret;
use quiver_kem::KemSetting;
use quiver_machine::{Now, Offence, Peer};
use rand_core::CryptoRngCore;

use super::Leader;
use super::context::Base;
use super::failover::standby::stands_by;
use super::term::Term;
use crate::KemState;
use crate::group_channel::SenderPolicy;

/// State of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderStatus {
    /// Name of the leader, once enrolled.
    pub name: Option<Name>,
    /// The group it leads.
    pub group: Name,
    /// The epoch in force; `None` before a term is open or after stepping down.
    pub epoch: Option<Epoch>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Time at which that epoch was made.
    pub issued_at: Option<UnixTime>,
    /// Members on the roster.
    pub members: usize,
    /// Number of anonymous members among them.
    pub anonymous: usize,
    /// Number of members that have a key in this term: only they can acknowledge. The others have been away
    /// since before it.
    pub keyed: usize,
    /// Members whose connection is known.
    pub connected: usize,
    /// Members that acknowledged the epoch.
    pub acknowledged: usize,
    /// Number of drones that wait for admission.
    pub pending_joins: usize,
    /// End of the key's validity.
    pub valid_until: Option<UnixTime>,
    /// The newest revocation list held, 0 for none.
    pub revocation_number: u64,
    /// Time at which that list becomes stale; `None` without a list.
    pub revocations_next_update: Option<UnixTime>,
    /// Stance of the leader.
    pub stance: Stance,
    /// Number of deputies that stand by for it.
    pub deputies: usize,
}

/// A member that has not acknowledged the epoch in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laggard {
    /// Slot of the member.
    pub slot: Slot,
    /// Name of the member; `None` if it is anonymous.
    pub name: Option<Name>,
    /// True if its connection is known.
    pub connected: bool,
    /// Counter of the newest epoch of this term that it acknowledged; `None` if it acknowledged no epoch of
    /// this term.
    pub acknowledged: Option<u64>,
    /// Time of its last message, by the leader's clock; `None` if there was none since the leader started.
    pub last_heard: Option<UnixTime>,
}

/// Role of a leader at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stance {
    /// The leader has no key yet.
    Enrolling,
    /// The leader's term is in force.
    Leading,
    /// Another leads, or none yet; it takes over if it receives no answers.
    StandingBy {
        /// The leader whose answers it receives.
        leader: Option<Name>,
        /// The epoch whose roster it holds.
        held: Option<Epoch>,
    },
    /// The leader does not lead: it contradicted itself, or another's term is higher and it was configured
    /// with no other leaders. Then it leads again when that term's keys have run out.
    Retired,
}

impl<S: Suite> Leader<S> {
    /// The state of the leader.
    pub fn status(&self) -> LeaderStatus {
        let (store, term) = (&self.base.store, self.term.as_ref());
        let core = term.map(|term| &term.header().core);
        LeaderStatus {
            name: self.keypair().map(|keypair| keypair.public().identity.name.clone()),
            group: self.base.config.group.clone(),
            epoch: term.map(Term::epoch),
            digest: term.map(|term| *term.digest()),
            issued_at: core.map(|core| core.issued_at),
            members: self.roster().len(),
            anonymous: self.roster().anonymous_members().count(),
            keyed: term.map_or(0, Term::keyed),
            connected: term.map_or(0, |term| term.acknowledgements.connected()),
            acknowledged: term.map_or(0, |term| term.acknowledgements.acknowledged()),
            pending_joins: self.joining.queue.len() + term.map_or(0, |term| term.pending.joins()),
            valid_until: core.map(|core| core.valid_until),
            revocation_number: store.revocations.number(),
            revocations_next_update: store.revocations.next_update(),
            stance: self.stance(),
            deputies: term.map_or(0, |term| term.replication.len()),
        }
    }

    fn stance(&self) -> Stance {
        let Base { config, store, .. } = &self.base;
        if self.term.is_some() {
            Stance::Leading
        } else if store.keypair.is_none() {
            Stance::Enrolling
        } else if stands_by(config, store, false) {
            let leader = self.failover.active_leader().map(|leader| leader.identity.name.clone());
            Stance::StandingBy { leader, held: store.held.map(|(epoch, _)| epoch) }
        } else {
            Stance::Retired
        }
    }

    /// The leader's own key, once enrolled.
    pub fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.base.store.keypair.as_ref()
    }

    /// The number of the term in force, while it leads.
    pub fn term(&self) -> Option<u64> {
        self.term.as_ref().map(|term| term.epoch().term)
    }

    /// A secret that all synced members of the epoch can derive under this name.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        Some(self.term.as_ref()?.export(name))
    }

    /// Keys of the epoch in force for the group's datagrams (§20.2). `None` unless this leader leads, and
    /// while a member that is to be evicted holds the key: who sends datagrams asks after each input.
    pub fn epoch_keys(&self, now: Now) -> Option<EpochKeys<S>> {
        self.term.as_ref()?.epoch_keys(now, self.keypair()?)
    }

    /// Signs a statement of this leader's datagrams (§20.5); `None` unless it leads.
    pub fn sign_datagram(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Signature<S>> {
        let keypair = self.keypair().filter(|_| self.term.is_some())?;
        Some(keypair.sign(&self.base.config.deployment, Label::Datagram, statement, rng))
    }

    /// Checks that this drone may sign datagrams from this slot: its own on the roster, not revoked, refused
    /// or expired (§13.4). The signature is the caller's to verify.
    ///
    /// # Errors
    /// Reason against it.
    pub fn may_sign_datagrams(&self, now: Now, slot: Slot, drone: &DronePublicKey<S>) -> Result<(), Offence> {
        let store = &self.base.store;
        let policy = SenderPolicy {
            deployment: &self.base.config.deployment,
            revocations: &store.revocations,
            refused: &store.refused,
            expected: None,
            roster: Some(self.roster()),
        };
        policy.may_sign(now, slot, drone)
    }

    /// The members by name.
    pub fn members(&self) -> impl Iterator<Item = (Slot, &Name)> {
        self.roster().iter().map(|(slot, public)| (slot, &public.identity.name))
    }

    /// Second factor that the deployment says.
    pub const fn kem_setting(&self) -> KemSetting {
        self.base.store.kem.setting()
    }

    /// State of κ with the member in a slot; `None` if there is none, and for an anonymous one.
    pub fn kem_state(&self, slot: Slot) -> Option<KemState> {
        self.roster().get(slot).and_then(|public| self.base.store.kem.state(&public.handle()))
    }

    /// Number of members with a key whose pair with this leader has a second factor.
    pub fn hybrid_pairs(&self) -> usize {
        self.term.as_ref().filter(|term| term.kem().is_some()).map_or(0, Term::keyed)
    }

    /// Number of members whose pair with this leader rests on the curve alone: all that have a key in a term
    /// without a second factor.
    pub fn classical_pairs(&self) -> usize {
        self.term.as_ref().filter(|term| term.kem().is_none()).map_or(0, Term::keyed)
    }

    /// The anonymous members.
    pub fn anonymous_members(&self) -> impl Iterator<Item = (Slot, &Anonymous)> {
        self.roster().anonymous_members()
    }

    /// The drone behind this connection: a member whose message came over it, or a deputy. One of them, if it
    /// carries several.
    pub fn drone_behind(&self, peer: Peer) -> Option<&Name> {
        let (roster, term) = (self.roster(), self.term.as_ref());
        let member = term.and_then(|term| {
            let mut slots = term.acknowledgements.slots_of(peer);
            slots.find_map(|slot| roster.get(slot))
        });
        let hinted = || {
            let mut serials = self.failover.hints.behind(peer);
            serials.find_map(|serial| roster.get(roster.find(&serial)?))
        };
        let drone = member.or_else(hinted).or_else(|| term?.replication.deputy_behind(peer));
        drone.map(|public| &public.identity.name)
    }

    /// The connections over which members are reached, each once.
    pub fn member_connections(&self) -> impl Iterator<Item = Peer> + '_ {
        self.term.iter().flat_map(|term| term.acknowledgements.peers())
    }

    /// Lists the `worst` members that have not acknowledged the epoch in force, the worst first: connected
    /// ones before absent ones, then those further behind, then those silent for longer. Takes time
    /// proportional to the roster, and memory proportional to the result.
    pub fn laggards(&self, worst: usize) -> Vec<Laggard> {
        let Some(term) = &self.term else { return Vec::new() };
        let mut found = BinaryHeap::new();
        let anonymous = self.roster().anonymous_members().map(|(slot, _)| slot);
        for slot in self.roster().iter().map(|(slot, _)| slot).chain(anonymous) {
            let Some(lagging) = term.acknowledgements.lagging(slot, term.epoch().counter) else { continue };
            found.push((Reverse(lagging.connected), lagging.acknowledged, lagging.last_seen, slot));
            if found.len() > worst {
                found.pop();
            }
        }
        let laggard = |(Reverse(connected), acknowledged, last_heard, slot)| {
            let name = self.roster().get(slot).map(|public| public.identity.name.clone());
            Laggard { slot, name, connected, acknowledged, last_heard }
        };
        found.into_sorted_vec().into_iter().map(laggard).collect()
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::StrategyKind;

    use super::super::test_support::LeaderFixture;
    use super::*;

    #[test]
    fn worst_laggards_come_first_and_no_more_than_asked_for() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..1000);
        let counter = fixture.epoch().counter;
        let links = &mut fixture.term().acknowledgements;
        for slot in 0..1000 {
            links.connect(slot, Peer(slot.into()));
            links.acknowledge(slot, counter);
        }
        fixture.command(super::super::LeaderCommand::Rekey);
        let links = &mut fixture.term().acknowledgements;
        for slot in (0..1000).filter(|slot| ![7, 8, 9, 10].contains(slot)) {
            links.acknowledge(slot, counter + 1);
        }
        // 7 is away, 8 sent a message of late, 9 none, 10 has nothing of this term.
        links.disconnect(Peer(7));
        links.saw(8, 1_000_100);
        links.remove(10);
        links.connect(10, Peer(10));
        let laggards = fixture.leader.laggards(20);
        let told: Vec<_> = laggards
            .iter()
            .map(|late| (late.slot, late.connected, late.acknowledged, late.last_heard))
            .collect();
        let before = Some(counter);
        let expected = [
            (10, true, None, None),
            (9, true, before, None),
            (8, true, before, Some(1_000_100)),
            (7, false, before, None),
        ];
        assert_eq!(told, expected);
        assert_eq!(laggards.first().unwrap().name.as_ref().unwrap().as_str(), "drone-10");
        assert_eq!(fixture.leader.laggards(2), laggards[..2]);
        assert_eq!(fixture.leader.laggards(0), []);
        assert_eq!(fixture.leader.status().acknowledged, 996);
    }

    #[test]
    fn member_is_behind_the_connection_that_it_was_heard_over() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        fixture.term().acknowledgements.connect(1, Peer(7));
        let serial = fixture.leader.roster().get(2).unwrap().identity.serial;
        fixture.leader.failover.hints.insert(serial, Peer(8));
        let behind = |peer| fixture.leader.drone_behind(Peer(peer)).map(Name::as_str);
        assert_eq!([behind(7), behind(8), behind(9)], [Some("drone-1"), Some("drone-2"), None]);
    }

    #[test]
    fn member_that_never_had_a_link_is_a_laggard() {
        let fixture = LeaderFixture::new(StrategyKind::Flat, [3]);
        let laggards = fixture.leader.laggards(5);
        assert_eq!(laggards.len(), 1);
        assert!(laggards.iter().all(|late| !late.connected && late.acknowledged.is_none()));
    }
}
