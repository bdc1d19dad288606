//! Plays the membership events through Quiver, under either strategy.

use std::collections::BTreeMap;

use quiver_ainq::{
    Batch, Delta, Entry, EpochOutput, EpochPart, GroupContext, GroupMembership, Header, Join, Leadership,
    PathMessage, RevocationStatement, Ristretto255, Roster, Slot, StrategyKind, VerifiedHeader,
};
use quiver_message::{Message, ShortRekey};
use rand_core::RngCore;

use super::event::{MembershipEvent, Sample};
use super::system::ComparedSystem;
use crate::ainq::join_request::{SignedJoin, checked, unchecked};
use crate::ainq::swarm::{LabSwarm, NOW, TERM, TIMES, protocol};
use crate::measure::clocked;
use crate::{LabError, Result};

type S = Ristretto255;

/// Number of newcomers from which on they follow by wraps, and bytes of a part, as those of a leader
/// (docs/protocol.md §6.1, §7.5).
const SEVERAL: usize = 8;
const JOINING_PART: usize = 5 * 1024 + 512;
/// Bytes of a member's slot, and of the start of the nonce by which it asked.
const PLACEMENT_LEN: usize = 12;

/// A group under its leader. Of its members one is here in full.
pub(super) struct QuiverGroup {
    swarm: LabSwarm<S>,
    context: GroupContext<S>,
    strategy: StrategyKind,
    leadership: Leadership<S>,
    member: GroupMembership<S>,
    /// The header of the newest epoch, which completes a short one.
    newest: Header<S>,
    /// First members of the group, by slot.
    founders: Vec<SignedJoin<S>>,
    /// Members that join later.
    newcomers: Vec<SignedJoin<S>>,
}

/// An epoch, encoded.
struct EncodedEpoch {
    output: EpochOutput<S>,
    header: Vec<u8>,
    /// Messages with short headers and the wraps in place of both, if members that hold the epoch before follow by them.
    short: Vec<Vec<u8>>,
    /// All entries one after another.
    entries: Vec<u8>,
    /// All wraps, in as few messages as can be, or as many as a leader sends newcomers that follow.
    deltas: Vec<Delta>,
    /// Paths, under `tree`, for each newcomer that does not follow by the wraps.
    paths: Vec<Vec<u8>>,
}

impl QuiverGroup {
    pub(super) fn new(strategy: StrategyKind, drones: u32, seed: u64) -> Result<Self> {
        let mut swarm = LabSwarm::new(seed)?;
        let founders = SignedJoin::many(&mut swarm, drones)?;
        let newcomers = SignedJoin::many(&mut swarm, MembershipEvent::JoinTenth.movers(drones))?;
        let (deployment, leader) = (swarm.deployment.clone(), swarm.leader.public().clone());
        let context = GroupContext { deployment, group: swarm.group.clone(), leader };
        let (leadership, (member, newest), _) = form(&mut swarm, &context, strategy, &founders)?;
        Ok(Self { swarm, context, strategy, leadership, member, newest, founders, newcomers })
    }

    fn form(&mut self) -> Result<Sample> {
        let (leadership, (member, newest), sample) =
            form(&mut self.swarm, &self.context, self.strategy, &self.founders)?;
        (self.leadership, self.member, self.newest) = (leadership, member, newest);
        Ok(sample)
    }

    fn expire(&mut self) -> Result<Sample> {
        let (sent, leader) =
            clocked(|| send(&mut self.swarm, &mut self.leadership, Batch::default(), Some(&self.newest)));
        self.taken(&sent?, leader)
    }

    /// Lets the members of these slots go, in one epoch.
    fn dismiss(&mut self, slots: &[Slot]) -> Result<Sample> {
        let batch = Batch { removals: slots.to_vec(), ..Batch::default() };
        let (sent, leader) =
            clocked(|| send(&mut self.swarm, &mut self.leadership, batch, Some(&self.newest)));
        self.taken(&sent?, leader)
    }

    /// Admits the first so many of the waiting drones. Returns their slots, too.
    fn admit(&mut self, count: u32) -> Result<(Sample, Vec<Slot>)> {
        let Self { swarm, leadership, newcomers, newest, .. } = self;
        let newcomers = newcomers.get(..count as usize).ok_or(LabError::WrongKey("nobody waits"))?;
        let (sent, leader) = clocked(|| {
            let joins = checked(swarm, newcomers)?;
            send(swarm, leadership, joining(joins), Some(newest))
        });
        let sent = sent?;
        let newcomer = self.newcomers.first().ok_or(LabError::WrongKey("nobody waits"))?;
        let (membership, newcomer) = enter(&self.swarm, &self.context, newcomer, &sent, 0)?;
        check(&self.leadership, &membership, "join")?;
        let sample = self.taken(&sent, leader)?;
        Ok((Sample { newcomer: Some(newcomer), ..sample }, sent.output.assigned))
    }

    /// Restores the members that left to their slots.
    fn bring_back(&mut self, slots: &[Slot]) -> Result<()> {
        let mut joins: Vec<Join<S>> = Vec::with_capacity(slots.len());
        for slot in slots {
            let founder = self.founders.get(*slot as usize).ok_or(LabError::WrongKey("no such slot"))?;
            joins.extend(unchecked(&self.swarm, std::slice::from_ref(founder))?);
        }
        let batch = Batch { joins, ..Batch::default() };
        let sent = send(&mut self.swarm, &mut self.leadership, batch, Some(&self.newest))?;
        if sent.output.assigned != slots {
            return Err(LabError::WrongKey("other slots than before"));
        }
        self.taken(&sent, 0.0).map(drop)
    }

    /// The member follows.
    fn taken(&mut self, sent: &EncodedEpoch, leader: f64) -> Result<Sample> {
        let slot = self.member.slot();
        let founder = self.founders.get(slot as usize).ok_or(LabError::WrongKey("no such slot"))?;
        let bytes = sent.bytes(slot)?;
        let (next, member) = clocked(|| {
            let (header, part) = match &bytes {
                Bytes::Short(message) => self.completed(message)?,
                bytes => (sent.verified(&self.swarm)?, bytes.decoded()?),
            };
            let next = self.member.advance(&self.context, &founder.drone.keypair, None, &header, &part);
            next.map_err(protocol("following"))
        });
        self.member = next?;
        self.newest = sent.output.header.clone();
        check(&self.leadership, &self.member, "re-key")?;
        Ok(Sample {
            leader,
            member: Some(member),
            newcomer: None,
            broadcast: sent.broadcast(),
            unicast: sent.unicast(),
        })
    }

    /// The header and the wraps of a message with a short header.
    fn completed(&self, message: &[u8]) -> Result<(VerifiedHeader<S>, EpochPart)> {
        const NONE: LabError = LabError::WrongKey("no short header");
        let Ok(Message::ShortRekey(short)) = Message::decode(&self.swarm.deployment, message) else {
            return Err(NONE);
        };
        let header = short.header.rebuild(&self.newest.core, self.member.digest(), &short.wraps);
        let header = header.map_err(protocol("completing a header"))?;
        Ok((verified(&self.swarm, header)?, EpochPart::Delta(short.wraps)))
    }

    /// Chooses `count` slots, evenly spread, but not the member's.
    fn leavers(&self, count: u32) -> Vec<Slot> {
        let apart = u32::try_from(self.founders.len()).unwrap_or(u32::MAX) / count;
        let slot = |number: u32| number * apart + apart / 2;
        (0..count).map(slot).map(|slot| if slot == self.member.slot() { slot + 1 } else { slot }).collect()
    }
}

impl ComparedSystem for QuiverGroup {
    fn play(&mut self, event: MembershipEvent) -> Result<Sample> {
        let movers = event.movers(u32::try_from(self.founders.len()).unwrap_or(u32::MAX));
        match event {
            MembershipEvent::Form => self.form(),
            MembershipEvent::Expiry => self.expire(),
            MembershipEvent::LeaveOne | MembershipEvent::LeaveTenth => {
                let slots = self.leavers(movers);
                let sample = self.dismiss(&slots)?;
                self.bring_back(&slots)?;
                Ok(sample)
            }
            MembershipEvent::JoinOne | MembershipEvent::JoinTenth => {
                let (sample, slots) = self.admit(movers)?;
                self.dismiss(&slots)?;
                Ok(sample)
            }
        }
    }
}

/// Encoded part of an epoch for one member, beside the header.
enum Bytes {
    /// The whole message, with a short header.
    Short(Vec<u8>),
    Entry(Vec<u8>),
    Delta(Vec<u8>),
    Path(Vec<u8>),
}

impl Bytes {
    fn decoded(&self) -> Result<EpochPart> {
        let part = match self {
            Self::Short(_) => return Err(LabError::WrongKey("no part alone")),
            Self::Entry(bytes) => Entry::decode(bytes).map(EpochPart::Entry),
            Self::Delta(bytes) => Delta::decode(bytes).map(EpochPart::Delta),
            Self::Path(bytes) => PathMessage::decode(bytes).map(EpochPart::Path),
        };
        part.map_err(protocol("decoding"))
    }
}

impl EncodedEpoch {
    /// What a member takes that was there before.
    fn bytes(&self, slot: Slot) -> Result<Bytes> {
        let place = self.deltas.iter().position(|delta| delta.covers(slot));
        let short = place.and_then(|place| self.short.get(place));
        short.map_or_else(|| self.part(slot), |message| Ok(Bytes::Short(message.clone())))
    }

    /// Part of a member that is beside a whole header.
    fn part(&self, slot: Slot) -> Result<Bytes> {
        if let Some(delta) = self.deltas.iter().find(|delta| delta.covers(slot)) {
            return Ok(Bytes::Delta(delta.encode()));
        }
        let entry = self.output.entries.binary_search_by_key(&slot, |entry| entry.slot);
        let entry = entry.ok().and_then(|place| self.output.entries.get(place));
        entry.map(|entry| Bytes::Entry(entry.encode())).ok_or(LabError::WrongKey("no entry"))
    }

    fn verified(&self, swarm: &LabSwarm<S>) -> Result<VerifiedHeader<S>> {
        let header = Header::decode(&self.header, &swarm.deployment);
        verified(swarm, header.map_err(protocol("decoding a header"))?)
    }

    fn broadcast(&self) -> usize {
        if !self.short.is_empty() {
            return self.short.iter().map(Vec::len).sum();
        }
        let wraps: usize = self.deltas.iter().map(|delta| delta.as_bytes().len()).sum();
        let followers = if self.output.newcomers_follow { self.output.assigned.len() } else { 0 };
        self.header.len() * self.deltas.len().max(1) + self.entries.len() + wraps + followers * PLACEMENT_LEN
    }

    fn unicast(&self) -> usize {
        // A newcomer is sent the whole header, if not everybody is.
        let header = if self.short.is_empty() { 0 } else { self.header.len() };
        self.paths.iter().map(|path| header + path.len()).sum()
    }
}

/// The header as a drone believes it.
fn verified(swarm: &LabSwarm<S>, header: Header<S>) -> Result<VerifiedHeader<S>> {
    let header = header.verify(&swarm.deployment, &swarm.group, None, &RevocationStatement::empty(), NOW);
    header.map_err(protocol("verifying a header"))
}

/// A batch of joins as over a medium that all share: several newcomers follow by the wraps under `tree`.
fn joining(joins: Vec<Join<S>>) -> Batch<S> {
    Batch { by_wraps: joins.len() >= SEVERAL, joins, ..Batch::default() }
}

/// All that a leader does for one epoch, which builds on the one with this header.
fn send(
    swarm: &mut LabSwarm<S>,
    leadership: &mut Leadership<S>,
    batch: Batch<S>,
    before: Option<&Header<S>>,
) -> Result<EncodedEpoch> {
    let output =
        leadership.rekey(&swarm.leader, batch, &TIMES, &mut swarm.rng).map_err(protocol("re-keying"))?;
    let header = output.header.encode(&swarm.deployment);
    let most = if output.newcomers_follow { JOINING_PART } else { Delta::MAX_LEN };
    let deltas = output.wraps.as_ref().map(|wraps| wraps.chunks(most)).unwrap_or_default();
    let deltas: Vec<Delta> = deltas.into_iter().map(|(_, delta)| delta).collect();
    // As a leader: newcomers that follow by the wraps hold no epoch before.
    let before = before.filter(|_| !output.newcomers_follow);
    let short = before.and_then(|before| output.header.shorten(&before.core));
    let short = short.map(|header| {
        let message = |wraps: &Delta| {
            let short = ShortRekey { header: header.clone(), wraps: wraps.clone() };
            Message::ShortRekey(short).encode(&swarm.deployment)
        };
        deltas.iter().map(message).collect()
    });
    let entries = output.entries.iter().flat_map(Entry::encode).collect();
    let mut paths = Vec::new();
    if leadership.strategy() == StrategyKind::Tree && !output.newcomers_follow {
        for slot in &output.assigned {
            let mut r = [0; 16];
            swarm.rng.fill_bytes(&mut r);
            paths.push(leadership.path_message(*slot, &r).map_err(protocol("sending a path"))?.encode());
        }
    }
    leadership.settle();
    Ok(EncodedEpoch { output, header, short: short.unwrap_or_default(), entries, deltas, paths })
}

/// A member, and the header of the epoch that it holds.
type HeldEpoch = (GroupMembership<S>, Header<S>);

/// Opens a term without members, and adds all in its next epoch. The member is the one in the middle.
fn form(
    swarm: &mut LabSwarm<S>,
    context: &GroupContext<S>,
    strategy: StrategyKind,
    founders: &[SignedJoin<S>],
) -> Result<(Leadership<S>, HeldEpoch, Sample)> {
    let (roster, spares) = (Roster::new(), BTreeMap::new());
    let (leader, rng) = (&swarm.leader, &mut swarm.rng);
    let opened =
        Leadership::open_term(context.clone(), leader, roster, &spares, TERM, [0; 32], &TIMES, strategy, rng);
    let (mut leadership, _) = opened.map_err(protocol("opening a term"))?;
    let (sent, leader) = clocked(|| {
        let joins = checked(swarm, founders)?;
        send(swarm, &mut leadership, joining(joins), None)
    });
    let (sent, middle) = (sent?, founders.len() / 2);
    let founder = founders.get(middle).ok_or(LabError::WrongKey("nobody is there"))?;
    let (member, newcomer) = enter(swarm, context, founder, &sent, middle)?;
    check(&leadership, &member, "forming")?;
    let (broadcast, unicast) = (sent.broadcast(), sent.unicast());
    let sample = Sample { leader, member: None, newcomer: Some(newcomer), broadcast, unicast };
    Ok((leadership, (member, sent.output.header), sample))
}

/// Admits the newcomer of this number. Returns the seconds it took, too.
fn enter(
    swarm: &LabSwarm<S>,
    context: &GroupContext<S>,
    newcomer: &SignedJoin<S>,
    sent: &EncodedEpoch,
    number: usize,
) -> Result<(GroupMembership<S>, f64)> {
    let slot = *sent.output.assigned.get(number).ok_or(LabError::WrongKey("no slot"))?;
    let part = match sent.paths.get(number) {
        Some(path) => Bytes::Path(path.clone()),
        None => sent.part(slot)?,
    };
    let (joined, taken) = clocked(|| {
        let header = sent.verified(swarm)?;
        let (keypair, ephemeral) = (&newcomer.drone.keypair, &newcomer.drone.ephemeral);
        let joined = match part.decoded()? {
            EpochPart::Delta(delta) => {
                GroupMembership::join_by_wraps(context, keypair, ephemeral, &header, slot, &delta)
            }
            part => GroupMembership::join_with_pair(context, keypair, ephemeral, &header, &part),
        };
        joined.map_err(protocol("joining"))
    });
    Ok((joined?, taken))
}

fn check(leadership: &Leadership<S>, member: &GroupMembership<S>, what: &'static str) -> Result<()> {
    let digest = leadership.digest();
    let own = member.group_key().map(|key| key.fingerprint(digest));
    let leaders = leadership.group_key().fingerprint(digest);
    if own == Some(leaders) { Ok(()) } else { Err(LabError::WrongKey(what)) }
}
