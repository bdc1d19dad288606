//! A group under its leader, and a drone that follows it.

use quiver_ainq::{
    Batch, EpochOutput, EpochPart, GroupContext, GroupMembership, Join, Leadership, PathMessage,
    RevocationStatement, Slot, Suite, VerifiedHeader,
};
use rand_core::RngCore as _;

pub(super) use quiver_ainq::StrategyKind as Strategy;

use super::swarm::{DroneKeys, Enrolled, LabSwarm, NOW, TIMES, protocol};
use crate::{LabError, Result};

/// A group under its leader.
pub(super) struct MeasuredGroup<S: Suite> {
    pub(super) leadership: Leadership<S>,
}

/// Messages of the leader for an epoch.
pub(super) struct LeaderMessages<S: Suite> {
    /// Message to all members.
    pub(super) output: EpochOutput<S>,
    /// Messages to each newcomer, in a tree.
    pub(super) paths: Vec<PathMessage>,
}

impl<S: Suite> MeasuredGroup<S> {
    /// Makes the next epoch.
    pub(super) fn rekey(&mut self, swarm: &mut LabSwarm<S>, batch: Batch<S>) -> Result<LeaderMessages<S>> {
        let made = self.leadership.rekey(&swarm.leader, batch, &TIMES, &mut swarm.rng);
        let output = made.map_err(protocol("making an epoch"))?;
        let mut paths = Vec::new();
        if self.leadership.strategy() == Strategy::Tree {
            for &slot in &output.assigned {
                paths.push(self.path(swarm, slot)?);
            }
        }
        Ok(LeaderMessages { output, paths })
    }

    /// The keys above one member's leaf.
    pub(super) fn path(&mut self, swarm: &mut LabSwarm<S>, slot: Slot) -> Result<PathMessage> {
        let mut nonce = [0; 16];
        swarm.rng.fill_bytes(&mut nonce);
        self.leadership.path_message(slot, &nonce).map_err(protocol("making a path message"))
    }

    /// Takes in newcomers, nothing checked but that their keys can be used: Y and T for each.
    pub(super) fn admit(
        &mut self,
        swarm: &mut LabSwarm<S>,
        newcomers: &[Enrolled<S>],
    ) -> Result<LeaderMessages<S>> {
        let join = |drone: &Enrolled<S>| Join::new(&swarm.deployment, drone.public.clone(), drone.one_time);
        let joins = newcomers.iter().map(join).collect::<Result<_, _>>().map_err(protocol("joining"))?;
        self.rekey(swarm, Batch { joins, ..Batch::default() })
    }

    /// Lets members go.
    pub(super) fn dismiss(
        &mut self,
        swarm: &mut LabSwarm<S>,
        removals: Vec<Slot>,
    ) -> Result<LeaderMessages<S>> {
        self.rekey(swarm, Batch { removals, ..Batch::default() })
    }
}

impl<S: Suite> LeaderMessages<S> {
    /// Total bytes: header, all wraps and all path messages, each once, in their canonical encoding.
    pub(super) fn bytes(&self, swarm: &LabSwarm<S>) -> usize {
        let entries: usize = self.output.entries.iter().map(|entry| entry.encode().len()).sum();
        let delta = self.output.wraps.as_ref().map_or(0, |wraps| wraps.whole().as_bytes().len());
        let paths: usize = self.paths.iter().map(|path| path.encode().len()).sum();
        self.output.header.encode(&swarm.deployment).len() + entries + delta + paths
    }

    /// Part of the member in a slot, beside the header.
    pub(super) fn part(&self, slot: Slot) -> Result<EpochPart> {
        if let Some(path) = self.paths.iter().find(|path| path.slot == slot) {
            return Ok(EpochPart::Path(path.clone()));
        }
        if let Some(wraps) = &self.output.wraps {
            return Ok(EpochPart::Delta(wraps.whole()));
        }
        let place = self.output.entries.binary_search_by_key(&slot, |entry| entry.slot);
        let place = place.map_err(|_| LabError::WrongKey("no entry"))?;
        Ok(EpochPart::Entry(self.output.entries[place].clone()))
    }

    /// The header as a drone believes it.
    pub(super) fn verified(&self, swarm: &LabSwarm<S>) -> Result<VerifiedHeader<S>> {
        let none = RevocationStatement::empty();
        let header = self.output.header.clone().verify(&swarm.deployment, &swarm.group, None, &none, NOW);
        header.map_err(protocol("verifying a header"))
    }
}

/// A drone that is in the group.
pub(super) struct Follower<S: Suite> {
    drone: DroneKeys<S>,
    membership: GroupMembership<S>,
}

impl<S: Suite> Follower<S> {
    /// A drone joins, and is checked to hold the leader's key. Returns the leader's messages, too.
    pub(super) fn enter(
        swarm: &mut LabSwarm<S>,
        group: &mut MeasuredGroup<S>,
    ) -> Result<(Self, LeaderMessages<S>)> {
        let drone = swarm.drones(1)?.pop().ok_or(LabError::WrongKey("no drone"))?;
        let (public, one_time) = (drone.keypair.public().clone(), *drone.ephemeral.point());
        let sent = group.admit(swarm, &[Enrolled { public, one_time }])?;
        let slot = sent.output.assigned.first().copied().ok_or(LabError::WrongKey("no slot"))?;
        let membership = join(&context(swarm), &drone, &sent.verified(swarm)?, &sent.part(slot)?)?;
        let follower = Self { drone, membership };
        follower.check(group, "join")?;
        Ok((follower, sent))
    }

    /// The drone's slot.
    pub(super) const fn slot(&self) -> Slot {
        self.membership.slot()
    }

    /// The drone.
    pub(super) const fn drone(&self) -> &DroneKeys<S> {
        &self.drone
    }

    /// The drone takes the next epoch.
    pub(super) fn follow(
        &mut self,
        swarm: &LabSwarm<S>,
        group: &MeasuredGroup<S>,
        sent: &LeaderMessages<S>,
    ) -> Result<()> {
        let (header, part) = (sent.verified(swarm)?, sent.part(self.slot())?);
        self.membership = self.advanced(&context(swarm), &header, &part)?;
        self.check(group, "re-key")
    }

    /// State of the drone after an epoch.
    pub(super) fn advanced(
        &self,
        context: &GroupContext<S>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<GroupMembership<S>> {
        let next = self.membership.advance(context, &self.drone.keypair, None, header, part);
        next.map_err(protocol("following"))
    }

    fn check(&self, group: &MeasuredGroup<S>, what: &'static str) -> Result<()> {
        let digest = group.leadership.digest();
        let leaders = group.leadership.group_key().fingerprint(digest);
        let own = self.membership.group_key().map(|key| key.fingerprint(digest));
        if own == Some(leaders) { Ok(()) } else { Err(LabError::WrongKey(what)) }
    }
}

/// KeyRetrieval of a newcomer.
pub(super) fn join<S: Suite>(
    context: &GroupContext<S>,
    drone: &DroneKeys<S>,
    header: &VerifiedHeader<S>,
    part: &EpochPart,
) -> Result<GroupMembership<S>> {
    let joined = GroupMembership::join_with_pair(context, &drone.keypair, &drone.ephemeral, header, part);
    joined.map_err(protocol("joining"))
}

/// The group as a drone knows it.
pub(super) fn context<S: Suite>(swarm: &LabSwarm<S>) -> GroupContext<S> {
    let (deployment, leader) = (swarm.deployment.clone(), swarm.leader.public().clone());
    GroupContext { deployment, group: swarm.group.clone(), leader }
}
