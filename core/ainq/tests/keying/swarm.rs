//! A leader and its edges in one place, for tests.

use std::collections::BTreeMap;

use quiver_ainq::{
    Batch, Delta, Deployment, DroneKeypair, Element, Entry, EpochKind, EpochOutput, EpochPart, Error,
    GroupContext, GroupMembership, Header, Identity, Join, Leadership, MasterSecret, Name, PathMessage,
    RevocationStatement, Role, Roster, SecretScalar, SecretValue, Slot, SlotChanges, SparePair, StrategyKind,
    Suite, Times, VerifiedHeader, WrapTree,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

pub(crate) const NOW: u64 = 1_700_000_000;

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// A drone that may be a member.
pub(crate) struct Edge<S: Suite> {
    pub(crate) keypair: DroneKeypair<S>,
    pub(crate) membership: Option<GroupMembership<S>>,
    pub(crate) spare: SparePair<S>,
    /// One-time secrets that it ever held, as encodings, for adversaries that kept them.
    pub(crate) kept: Kept,
}

/// Data that an adversary would have copied: encodings, because the secrets themselves are erased.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) scalars: Vec<Vec<u8>>,
    pub(crate) states: Vec<Vec<u8>>,
}

/// An epoch as an eavesdropper records it.
#[derive(Clone)]
pub(crate) struct Broadcast<S: Suite> {
    pub(crate) header: Header<S>,
    pub(crate) changes: SlotChanges,
    pub(crate) entries: Vec<Entry>,
    pub(crate) wraps: Option<WrapTree>,
    /// Every path message that was ever sent for this epoch.
    pub(crate) paths: Vec<PathMessage>,
}

impl<S: Suite> Broadcast<S> {
    pub(crate) fn of(output: &EpochOutput<S>) -> Self {
        let (header, changes) = (output.header.clone(), output.changes.clone());
        let (entries, wraps) = (output.entries.clone(), output.wraps.clone());
        Self { header, changes, entries, wraps, paths: Vec::new() }
    }

    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.slot == slot)
    }

    /// Part of the member in a slot, beside the header.
    pub(crate) fn part(&self, slot: Slot) -> Result<EpochPart, Error> {
        let opens = self.header.core.kind == EpochKind::Open;
        let newcomer = !opens && self.changes.added.contains(slot);
        match &self.wraps {
            // A term opens by the entries as over links, or by the wraps, as over a medium that all share.
            Some(_) if opens && slot.is_multiple_of(3) => {
                self.entry(slot).cloned().map(EpochPart::Entry).ok_or(Error::MissingEntry)
            }
            None => self.entry(slot).cloned().map(EpochPart::Entry).ok_or(Error::MissingEntry),
            Some(_) if newcomer => {
                let path = self.paths.iter().find(|path| path.slot == slot);
                path.cloned().map(EpochPart::Path).ok_or(Error::MissingEntry)
            }
            // Members follow by all wraps and by those on their own path.
            Some(wraps) if slot.is_multiple_of(2) => Ok(EpochPart::Delta(wraps.whole())),
            Some(wraps) => Ok(EpochPart::Delta(wraps.branch(slot))),
        }
    }
}

pub(crate) struct Swarm<S: Suite> {
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) master: MasterSecret<S>,
    pub(crate) leader: DroneKeypair<S>,
    pub(crate) leadership: Leadership<S>,
    pub(crate) edges: Vec<Edge<S>>,
    pub(crate) broadcasts: Vec<Broadcast<S>>,
    /// True if newcomers follow by wraps where they can.
    pub(crate) by_wraps: bool,
}

pub(crate) fn times() -> Times {
    Times { issued_at: NOW - 1, valid_until: NOW + 3600, revocation_number: 0 }
}

pub(crate) fn leader_role(group: &str, ordinal: u16) -> Role {
    Role::Leader { group: name(group), ordinal }
}

impl<S: Suite> Swarm<S> {
    /// An empty group `alpha` in term (1, 1), and `edges` drones outside it.
    pub(crate) fn new(seed: u64, edges: usize) -> Self {
        Self::keyed_by(StrategyKind::Flat, seed, edges)
    }

    /// Makes a swarm as [`new`](Self::new) does, under a strategy.
    pub(crate) fn keyed_by(strategy: StrategyKind, seed: u64, edges: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let leader = enrol(&deployment, &master, leader_role("alpha", 1), &mut rng);
        let context = context_of(&deployment, &leader);
        let (leadership, output) = Leadership::open_term(
            context,
            &leader,
            Roster::new(),
            &BTreeMap::new(),
            1 << 16 | 1,
            [0; 32],
            &times(),
            strategy,
            &mut rng,
        )
        .unwrap();
        let broadcasts = vec![Broadcast::of(&output)];
        let (none, by_wraps) = (Vec::new(), false);
        let mut swarm =
            Self { rng, deployment, master, leader, leadership, edges: none, broadcasts, by_wraps };
        (0..edges).for_each(|_| swarm.add_edge());
        swarm
    }

    /// Makes a swarm as [`new`](Self::new) does, with all edges in the group.
    pub(crate) fn formed(seed: u64, edges: usize) -> Self {
        Self::formed_by(StrategyKind::Flat, seed, edges)
    }

    /// Makes a swarm as [`formed`](Self::formed) does, under a strategy.
    pub(crate) fn formed_by(strategy: StrategyKind, seed: u64, edges: usize) -> Self {
        let mut swarm = Self::keyed_by(strategy, seed, edges);
        swarm.join(&(0..edges).collect::<Vec<_>>());
        swarm
    }

    pub(crate) fn add_edge(&mut self) {
        let keypair = self.enrol(Role::Edge);
        let spare = SparePair::generate(1, &mut self.rng);
        let kept = Kept { scalars: vec![keypair.to_bytes().to_vec()], states: Vec::new() };
        let mut edge = Edge { keypair, membership: None, spare, kept };
        edge.keep_spare();
        self.edges.push(edge);
    }

    pub(crate) fn enrol(&mut self, role: Role) -> DroneKeypair<S> {
        enrol(&self.deployment, &self.master, role, &mut self.rng)
    }

    pub(crate) fn context(&self) -> GroupContext<S> {
        context_of(&self.deployment, &self.leader)
    }

    /// The leader's keypair once more, to sign with what it should not sign.
    pub(crate) fn leader_again(&self) -> DroneKeypair<S> {
        let secret = self.leader.to_bytes();
        DroneKeypair::restore(&self.deployment, self.leader.public().clone(), &secret).unwrap()
    }

    pub(crate) fn last(&self) -> &Broadcast<S> {
        self.broadcasts.last().unwrap()
    }

    /// Makes the next epoch with the drones that join among the edges, and delivers it to all.
    pub(crate) fn rekey(&mut self, joining: &[usize], removals: Vec<Slot>) -> EpochOutput<S> {
        let (output, secrets) = self.rekey_undelivered(joining, removals);
        self.deliver_joins(joining, &secrets, &output);
        for index in 0..self.edges.len() {
            if !joining.contains(&index) {
                let _ = self.deliver(index);
            }
        }
        output
    }

    /// Makes the next epoch without delivering it.
    pub(crate) fn rekey_undelivered(
        &mut self,
        joining: &[usize],
        removals: Vec<Slot>,
    ) -> (EpochOutput<S>, Vec<SecretScalar<S>>) {
        let secrets: Vec<_> = joining.iter().map(|_| SecretScalar::generate(&mut self.rng)).collect();
        let joins = joining.iter().zip(&secrets);
        let joins = joins.map(|(index, e)| {
            let public = self.edges[*index].keypair.public().clone();
            Join::new(&self.deployment, public, e.public()).unwrap()
        });
        let by_wraps = self.by_wraps;
        let batch = Batch { joins: joins.collect(), removals, by_wraps, ..Batch::default() };
        let output = self.leadership.rekey(&self.leader, batch, &times(), &mut self.rng).unwrap();
        self.broadcasts.push(Broadcast::of(&output));
        if output.wraps.is_some() && !output.newcomers_follow {
            output.assigned.iter().for_each(|slot| drop(self.path_message(*slot).unwrap()));
        }
        for (index, e) in joining.iter().zip(&secrets) {
            self.edges[*index].kept.scalars.push(e.to_bytes().to_vec());
        }
        (output, secrets)
    }

    pub(crate) fn deliver_joins(
        &mut self,
        joining: &[usize],
        secrets: &[SecretScalar<S>],
        output: &EpochOutput<S>,
    ) {
        let (context, broadcast) = (self.context(), self.last().clone());
        for ((index, e), slot) in joining.iter().zip(secrets).zip(&output.assigned) {
            let member = if output.newcomers_follow {
                let wraps = broadcast.wraps.as_ref().unwrap();
                // By all wraps or by those on their own path.
                let delta = if slot.is_multiple_of(2) { wraps.whole() } else { wraps.branch(*slot) };
                self.join_by_wraps(*index, e, &broadcast.header, *slot, &delta)
            } else {
                let (header, part) = (self.verified(&broadcast.header), broadcast.part(*slot).unwrap());
                GroupMembership::join(&context, &self.edges[*index].keypair, e, &header, &part)
            };
            self.edges[*index].become_member(member.unwrap());
        }
    }

    /// The membership that an edge has by the wraps of the epoch that adds it.
    pub(crate) fn join_by_wraps(
        &self,
        index: usize,
        e: &SecretScalar<S>,
        header: &Header<S>,
        slot: Slot,
        delta: &Delta,
    ) -> Result<GroupMembership<S>, Error> {
        // A one-time pair as it is stored: q and e.
        let pair = SparePair::decode(&[&[0; 8], e.to_bytes().as_slice()].concat()).unwrap();
        let (context, header) = (self.context(), self.verified(header));
        GroupMembership::join_by_wraps(&context, &self.edges[index].keypair, &pair, &header, slot, delta)
    }

    pub(crate) fn join(&mut self, joining: &[usize]) -> EpochOutput<S> {
        self.rekey(joining, Vec::new())
    }

    pub(crate) fn expire(&mut self) -> EpochOutput<S> {
        self.rekey(&[], Vec::new())
    }

    pub(crate) fn remove(&mut self, index: usize) -> EpochOutput<S> {
        let slot = self.slot(index);
        self.rekey(&[], vec![slot])
    }

    /// Opens the next term with the spare points of the given edges, without delivering it.
    pub(crate) fn open_undelivered(&mut self, with_spares: &[usize]) -> EpochOutput<S> {
        let members = with_spares.iter().map(|index| &self.edges[*index]);
        let spares: BTreeMap<Slot, (u64, Element<S>)> = members
            .map(|edge| (edge.membership.as_ref().unwrap().slot(), (edge.spare.q(), *edge.spare.point())))
            .collect();
        let term = self.leadership.epoch().term + (1 << 16);
        let (leadership, output) = Leadership::open_term(
            self.context(),
            &self.leader,
            self.leadership.roster().clone(),
            &spares,
            term,
            *self.leadership.digest(),
            &times(),
            self.leadership.strategy(),
            &mut self.rng,
        )
        .unwrap();
        self.leadership = leadership;
        self.broadcasts.push(Broadcast::of(&output));
        output
    }

    pub(crate) fn open(&mut self, with_spares: &[usize]) -> EpochOutput<S> {
        let output = self.open_undelivered(with_spares);
        (0..self.edges.len()).for_each(|index| drop(self.deliver(index)));
        output
    }

    /// Makes a path message for the newest epoch, and records it.
    pub(crate) fn path_message(&mut self, slot: Slot) -> Result<PathMessage, Error> {
        let mut r = [0; 16];
        self.rng.fill_bytes(&mut r);
        let path = self.leadership.path_message(slot, &r)?;
        self.broadcasts.last_mut().unwrap().paths.push(path.clone());
        Ok(path)
    }

    /// Delivers the newest epoch to an edge. A term's opening uses up its spare point. Under `tree` an edge
    /// that wraps are of no use to gets a path message, and so does who follows an opening by its entry.
    pub(crate) fn deliver(&mut self, index: usize) -> Result<(), Error> {
        let broadcast = self.last().clone();
        match self.deliver_one(index, &broadcast) {
            Err(Error::Gap | Error::MissingPath) => self.catch_up(index),
            Ok(()) if !self.edges[index].membership.as_ref().unwrap().has_path() => self.catch_up(index),
            heard => heard,
        }
    }

    /// Brings an edge a path message of the newest epoch.
    pub(crate) fn catch_up(&mut self, index: usize) -> Result<(), Error> {
        let slot = self.slot(index);
        let part = EpochPart::Path(self.path_message(slot)?);
        let header = self.last().header.clone();
        self.give(index, &header, &part)
    }

    /// Hands an edge an epoch; it follows or stays as it was.
    pub(crate) fn give(&mut self, index: usize, header: &Header<S>, part: &EpochPart) -> Result<(), Error> {
        let (header, context) = (self.verified(header), self.context());
        let edge = &mut self.edges[index];
        let member = edge.membership.as_ref().ok_or(Error::WrongGroup)?;
        let next = member.advance(&context, &edge.keypair, Some(&edge.spare), &header, part)?;
        if next.epoch().term > member.epoch().term {
            edge.spare = SparePair::generate(edge.spare.q() + 1, &mut self.rng);
            edge.keep_spare();
        }
        edge.become_member(next);
        Ok(())
    }

    pub(crate) fn deliver_one(&mut self, index: usize, broadcast: &Broadcast<S>) -> Result<(), Error> {
        let member = self.edges[index].membership.as_ref().ok_or(Error::WrongGroup)?;
        let part = broadcast.part(member.slot())?;
        self.give(index, &broadcast.header, &part)
    }

    pub(crate) fn verified(&self, header: &Header<S>) -> VerifiedHeader<S> {
        let revocations = RevocationStatement::empty();
        header.clone().verify(&self.deployment, &name("alpha"), None, &revocations, NOW).unwrap()
    }

    pub(crate) fn slot(&self, index: usize) -> Slot {
        self.edges[index].membership.as_ref().unwrap().slot()
    }

    /// Returns true if the edge has the leader's group key of the leader's epoch.
    pub(crate) fn agrees(&self, index: usize) -> bool {
        let Some(member) = &self.edges[index].membership else {
            return false;
        };
        let Some(key) = member.group_key() else {
            return false;
        };
        let (ours, theirs) = (self.leadership.digest(), member.digest());
        let test = name("test");
        ours == theirs
            && self.leadership.epoch() == member.epoch()
            && self.leadership.group_key().export(&test, ours) == key.export(&test, theirs)
            && self.leadership.auth_key(member.slot()) == Some(member.auth_key())
    }
}

impl<S: Suite> Edge<S> {
    pub(crate) fn become_member(&mut self, membership: GroupMembership<S>) {
        self.kept.states.push(membership.encode().to_vec());
        self.membership = Some(membership);
    }

    fn keep_spare(&mut self) {
        let encoded = self.spare.encode();
        self.kept.scalars.push(encoded[8..].to_vec());
    }
}

pub(crate) fn context_of<S: Suite>(deployment: &Deployment<S>, leader: &DroneKeypair<S>) -> GroupContext<S> {
    GroupContext { deployment: deployment.clone(), group: name("alpha"), leader: leader.public().clone() }
}

pub(crate) fn enrol<S: Suite>(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    role: Role,
    rng: &mut ChaCha20Rng,
) -> DroneKeypair<S> {
    let mut serial = [0; 16];
    rng.fill_bytes(&mut serial);
    let called = name(&format!("drone-{:02x}{:02x}{:02x}", serial[0], serial[1], serial[2]));
    let identity =
        Identity { serial, name: called, role, groups: vec![name("alpha")], not_after: NOW + 1_000_000 };
    let secret = SecretValue::generate(rng);
    let partial = master.issue_partial_key(deployment, &identity, &secret.public(), rng);
    partial.verify(deployment, &identity, &secret).unwrap()
}
