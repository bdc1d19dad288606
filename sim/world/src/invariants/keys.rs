//! Checks keys: agreement, forward and backward secrecy, no epoch regression.

use quiver_ainq::{Epoch, Suite};
use quiver_group::{EdgeEvent, LeaderEvent};

use super::{Held, Invariant, Invariants, Made, died};
use crate::{NodeEvent, Step, World};
use quiver_testbed::matching;

impl<S: Suite> Invariants<S> {
    pub(super) fn observe_leader(&mut self, world: &World<S>, step: &Step, ordinal: u16) {
        let made: Vec<Epoch> = step
            .events()
            .filter_map(matching!(NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) => *epoch))
            .collect();
        let last = made.last().copied();
        for epoch in made {
            let newest =
                self.epochs.iter().rev().find(|(_, made)| made.leader == ordinal).map(|(epoch, _)| *epoch);
            self.require(
                Invariant::NoEpochRegression,
                step,
                newest.is_none_or(|newest| newest < epoch),
                || format!("made epoch {} after {}", show(epoch), newest.map(show).unwrap_or_default()),
            );
            let known = self.epochs.contains_key(&epoch);
            self.require(Invariant::Agreement, step, !known, || {
                format!("made epoch {} a second time", show(epoch))
            });
            let made = self.made(world, step, ordinal, last == Some(epoch));
            self.epochs.insert(epoch, made);
        }
        if last.is_some() && !died(step) {
            self.check_roster(world, step, ordinal, last.unwrap_or(Epoch { term: 0, counter: 0 }));
        }
    }

    /// The known data of an epoch: complete if it is the leader's newest and the leader lives.
    fn made(&self, world: &World<S>, step: &Step, ordinal: u16, newest: bool) -> Made {
        let nothing = Made { digest: None, key: None, members: None, anonymous: None, leader: ordinal };
        if !newest || died(step) {
            return nothing;
        }
        let Some(leader) = world.leader(ordinal) else { return nothing };
        Made {
            digest: leader.status().digest,
            key: leader.export(&self.channel).map(|key| *key.expose()),
            members: Some(leader.members().filter_map(|(_, name)| number(name.as_str())).collect()),
            anonymous: Some(leader.anonymous_members().map(|(_, member)| member.pseudonym.0).collect()),
            leader: ordinal,
        }
    }

    pub(super) fn observe_edge(&mut self, world: &World<S>, step: &Step, number: u32) {
        let place = number as usize;
        self.observe_anonymous(world, step, number);
        for event in step.events() {
            if let NodeEvent::Edge(EdgeEvent::KeyActivated { epoch, .. }) = event {
                self.rises(step, place, *epoch, "went back");
            }
        }
        let held = self.holds(world, number);
        // While the disk holds a step up, the machine is ahead of its outputs: it may yet have to report an
        // epoch that it is past. The key that it can use when it is done with the step counts.
        if let Some(held) = held.filter(|_| !world.stalled(step.node)) {
            self.rises(step, place, held.epoch, "goes back with the key that it exports");
        }
        let before = self.held.get_mut(place).and_then(|before| std::mem::replace(before, held));
        if let Some(held) = held.filter(|held| before != Some(*held)) {
            match world.doubled(held.epoch) {
                Some(doubled) => self.check_doubled(step, doubled, &held),
                None => {
                    self.check_key(step, number, &held);
                    self.require_open(world, step, held.epoch);
                }
            }
        }
        self.observe_second_header(world, step, number, before);
        self.observe_forgery(world, step, number, before);
    }

    /// An edge reported or can use this epoch: none before was newer.
    fn rises(&mut self, step: &Step, place: usize, epoch: Epoch, what: &str) {
        let newest = self.newest.get(place).copied().flatten();
        self.require(Invariant::NoEpochRegression, step, newest <= Some(epoch), || {
            format!("{what} from {} to {}", newest.map(show).unwrap_or_default(), show(epoch))
        });
        if let Some(slot) = self.newest.get_mut(place) {
            *slot = newest.max(Some(epoch));
        }
    }

    /// Key that an edge could use now.
    pub(super) fn holds(&self, world: &World<S>, number: u32) -> Option<Held> {
        let edge = world.edge(number)?;
        let key = *edge.export(&self.channel)?.expose();
        let status = edge.status();
        Some(Held { epoch: status.epoch?, digest: status.digest?, key })
    }

    /// Compares a key with the leader's.
    fn check_key(&mut self, step: &Step, number: u32, held: &Held) {
        let pseudonym = self.anonymous.pseudonym(number);
        let Some(made) = self.epochs.get_mut(&held.epoch) else {
            let detail = format!("holds epoch {}, which no leader made", show(held.epoch));
            return self.violate(Invariant::Agreement, step.at, Some(step.node), detail);
        };
        // Of a leader that died at once the first member's key is taken: the others must agree with it.
        let (digest, key) = (*made.digest.get_or_insert(held.digest), *made.key.get_or_insert(held.key));
        let is_member = match pseudonym {
            Some(pseudonym) => made.anonymous.as_ref().is_none_or(|members| members.contains(&pseudonym)),
            None => made.members.as_ref().is_none_or(|members| members.contains(&number)),
        };
        self.require(Invariant::Agreement, step, digest == held.digest && key == held.key, || {
            format!("holds another key of epoch {} than the leader", show(held.epoch))
        });
        if !is_member {
            let invariant = self.outsider(number, held.epoch);
            let detail = format!("holds the key of epoch {}, of which it is not a member", show(held.epoch));
            self.violate(invariant, step.at, Some(step.node), detail);
        }
    }

    /// The invariant that an edge violates by holding the key of an epoch without it.
    pub(super) fn outsider(&self, number: u32, epoch: Epoch) -> Invariant {
        let is_in = |made: &Made| {
            let mut anonymous = made.anonymous.iter().flatten();
            made.members.as_ref().is_some_and(|members| members.contains(&number))
                || anonymous.any(|pseudonym| self.anonymous.whose(pseudonym) == Some(number))
        };
        if self.epochs.range(..epoch).any(|(_, made)| is_in(made)) {
            Invariant::ForwardSecrecyAfterLeave
        } else if self.epochs.range(epoch..).any(|(_, made)| is_in(made)) {
            Invariant::BackwardSecrecyBeforeJoin
        } else {
            Invariant::NoUnauthorisedMember
        }
    }
}

/// An epoch as text: round, ordinal of the leader, counter.
pub(super) fn show(epoch: Epoch) -> String {
    format!("{}.{}/{}", epoch.round(), epoch.ordinal(), epoch.counter)
}

/// The number in an edge's name.
pub(super) fn number(name: &str) -> Option<u32> {
    name.strip_prefix("edge-")?.parse().ok()
}
