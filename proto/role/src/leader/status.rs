//! How a leader is doing.

use quiver_ainq::{Epoch, Name, Slot, Suite, UnixTime};

use super::Leader;

/// How a leader is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderStatus {
    /// Its name, once enrolled.
    pub name: Option<Name>,
    /// The group it leads.
    pub group: Name,
    /// The epoch in force; none before a term is open or after stepping down.
    pub epoch: Option<Epoch>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Members on the roster.
    pub members: usize,
    /// Of them, those without a name.
    pub anonymous: usize,
    /// Members whose connection is known.
    pub connected: usize,
    /// Members that acknowledged the epoch.
    pub acknowledged: usize,
    /// Drones that wait to be let in.
    pub pending_joins: usize,
    /// Until when the key is valid.
    pub valid_until: Option<UnixTime>,
    /// The newest revocation list held, 0 for none.
    pub revocation_number: u64,
    /// Whether it leads.
    pub stance: Stance,
    /// How many deputies stand by for it.
    pub deputies: usize,
}

/// What a leader does at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stance {
    /// It has no key yet.
    Enrolling,
    /// Its term is in force.
    Leading,
    /// Another leads, or nobody yet; it takes over if it hears nothing.
    StandingBy {
        /// Whose answers it hears.
        leader: Option<Name>,
        /// The epoch whose roster it holds.
        held: Option<Epoch>,
    },
    /// It does not lead: it contradicted itself, or another's term is higher and it was told of no other leaders. Then it
    /// leads again when that term's keys have run out.
    Retired,
}

impl<S: Suite> Leader<S> {
    /// How it is doing.
    pub fn status(&self) -> LeaderStatus {
        let epoch = self.epoch();
        LeaderStatus {
            name: self.memory.keypair.as_ref().map(|keypair| keypair.public().identity.name.clone()),
            group: self.config.group.clone(),
            epoch,
            digest: self.lead.as_ref().map(|lead| *lead.leadership.digest()),
            members: self.roster().len(),
            anonymous: self.roster().anonymous_members().count(),
            connected: self.links.connected(),
            acknowledged: self.links.acknowledged(),
            pending_joins: self.waiting.len() + self.backlog.joins(),
            valid_until: self.lead.as_ref().map(|lead| lead.now.header.core.valid_until),
            revocation_number: self.memory.revocations.number(),
            stance: self.stance(),
            deputies: self.deputies.len(),
        }
    }

    fn stance(&self) -> Stance {
        if self.lead.is_some() {
            Stance::Leading
        } else if self.memory.keypair.is_none() {
            Stance::Enrolling
        } else if self.stands_by() {
            let leader = self.standby.leader().map(|leader| leader.identity.name.clone());
            Stance::StandingBy { leader, held: self.memory.held.map(|(epoch, _)| epoch) }
        } else {
            Stance::Retired
        }
    }

    /// Who is on the roster by name.
    pub fn members(&self) -> impl Iterator<Item = (Slot, &Name)> {
        self.roster().iter().map(|(slot, public)| (slot, &public.identity.name))
    }
}
