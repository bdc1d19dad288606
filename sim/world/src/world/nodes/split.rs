//! A world that several ranks play: whose machine a drone's is, and what ranks tell each other of steps.

use std::time::Duration;

use quiver_ainq::Suite;
use quiver_machine::{Destination, Peer};
use quiver_testbed::nanos;

use super::SimNodes;
use crate::air::Air;
use crate::ranks::Ranks;
use crate::ranks::wire::{RankWriter, Reader};
use crate::step::{MachineEnd, StandInAccount, StepAccount};
use crate::{Cause, Effect, NodeId, Step};

/// Steps of one edge.
type EdgeSteps = (u32, Vec<Step>);

/// Share of this process in the world: all of it, unless ranks play it together.
#[derive(Default)]
pub(in crate::world) struct Split {
    ranks: Option<Ranks>,
    /// State of the edges whose machines are other ranks'; `None` for those of this rank.
    away: Vec<Option<AwayEdge>>,
    /// True if this rank's observer wants the world to stop.
    wants_stop: bool,
    /// True if some rank's observer did when ranks last exchanged steps: all ranks learn that at the same step.
    stop: bool,
}

/// State of an edge whose machine is another rank's.
#[derive(Clone, Copy, Debug, Default)]
struct AwayEdge {
    alive: bool,
    stalled: bool,
}

impl Split {
    /// A share of this many edges; `owner` names the edge with which each one stays together.
    pub(in crate::world) fn new(ranks: Ranks, edges: u32, owner: impl Fn(u32) -> u32) -> Self {
        let (rank, count) = (ranks.rank(), ranks.count().max(1));
        let away = |edge| (owner(edge) % count != rank).then(AwayEdge::default);
        Self { away: (0..edges).map(away).collect(), ranks: Some(ranks), wants_stop: false, stop: false }
    }

    fn away(&self, edge: u32) -> Option<&AwayEdge> {
        self.away.get(edge as usize)?.as_ref()
    }

    /// Returns true if the edge's machine is in this process.
    pub(in crate::world) fn has(&self, edge: u32) -> bool {
        self.away(edge).is_none()
    }

    /// Returns true if another rank's edge is switched on; `None` for edges of this rank.
    pub(super) fn alive(&self, edge: u32) -> Option<bool> {
        self.away(edge).map(|away| away.alive)
    }

    /// The same for an edge that its disk holds up.
    pub(super) fn stalled(&self, edge: u32) -> Option<bool> {
        self.away(edge).map(|away| away.stalled)
    }

    /// Notes that another rank's edge is switched off.
    pub(super) fn note_off(&mut self, edge: u32) {
        if let Some(Some(away)) = self.away.get_mut(edge as usize) {
            *away = AwayEdge::default();
        }
    }

    /// Returns true if this process is the one among all ranks that counts what happens to a node: the one with its
    /// machine, and of those that all have, the first.
    pub(in crate::world) fn counts(&self, node: NodeId) -> bool {
        match (&self.ranks, node) {
            (None, _) => true,
            (_, NodeId::Edge(edge)) => self.has(edge),
            (Some(ranks), _) => ranks.rank() == 0,
        }
    }

    /// Returns true if ranks share the world.
    pub(in crate::world) const fn is_split(&self) -> bool {
        self.ranks.is_some()
    }

    /// The rank without which the world cannot go on, if one is lost.
    pub(in crate::world) fn lost(&self) -> Option<u32> {
        self.ranks.as_ref()?.lost()
    }

    /// Gives the bytes of every rank, in their order.
    fn gather(&self, own: RankWriter) -> Vec<Vec<u8>> {
        match &self.ranks {
            None => vec![own.0],
            Some(ranks) => ranks.all_gather(&own.0),
        }
    }

    /// The sums of these numbers over all ranks.
    pub(in crate::world) fn totals<const N: usize>(&self, own: [u64; N]) -> [u64; N] {
        let Some(ranks) = &self.ranks else { return own };
        let mut writer = RankWriter::default();
        for number in own {
            writer.u64(number);
        }
        let mut totals = [0; N];
        for (bytes, rank) in self.gather(writer).into_iter().zip(0..) {
            let mut reader = Reader(&bytes);
            for total in &mut totals {
                match reader.u64() {
                    Some(number) => *total += number,
                    None => ranks.give_up(rank),
                }
            }
        }
        totals
    }

    /// Extends this rank's items by those of all others. `write` and `read` are inverse.
    pub(in crate::world) fn collect<T>(
        &self,
        own: Vec<T>,
        write: impl Fn(&mut RankWriter, &T),
        read: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(ranks) = &self.ranks else { return own };
        let mut writer = RankWriter::default();
        own.iter().for_each(|item| write(&mut writer, item));
        let mut all = Vec::new();
        for (bytes, rank) in ranks.all_gather(&writer.0).into_iter().zip(0..) {
            let mut reader = Reader(&bytes);
            while !reader.is_empty() {
                let Some(item) = read(&mut reader) else {
                    ranks.give_up(rank);
                    break;
                };
                all.push(item);
            }
        }
        all
    }

    /// Returns true if the world stops, as this rank's observer wants or does not. That of another rank stops this one,
    /// too, once it is told.
    pub(in crate::world) fn is_over(&mut self, stops: bool) -> bool {
        match &self.ranks {
            None => stops,
            Some(ranks) => {
                self.wants_stop = stops;
                self.stop || ranks.lost().is_some()
            }
        }
    }
}

impl<S: Suite> SimNodes<S> {
    /// Lets the rank that has the edge do something with it, and tells all ranks what came of it.
    pub(in crate::world) fn at_home(
        &mut self,
        edge: u32,
        air: Option<&Air>,
        act: impl FnOnce(&mut Self) -> Option<Step>,
    ) -> Option<Step> {
        if !self.split.is_split() {
            return act(self);
        }
        let has = self.split.has(edge);
        let own = if has { vec![(edge, act(self).into_iter().collect())] } else { Vec::new() };
        self.share(own, air).pop()?.1.pop()
    }

    /// Tells all ranks the steps of edges of this one, and gives those of all, by edge. The state of the edges of other
    /// ranks is noted.
    pub(super) fn share(&mut self, mut steps: Vec<EdgeSteps>, air: Option<&Air>) -> Vec<EdgeSteps> {
        let Some(ranks) = self.split.ranks.take() else { return steps };
        let mut writer = RankWriter::default();
        writer.bool(self.split.wants_stop);
        for (edge, steps) in &steps {
            self.write_edge(&mut writer, *edge, steps, air);
        }
        let own = ranks.rank();
        for (rank, bytes) in (0..).zip(&ranks.all_gather(&writer.0)) {
            let mut reader = Reader(bytes);
            let stop = reader.bool();
            self.split.stop |= stop == Some(true);
            if rank == own || ranks.lost().is_some() {
                continue;
            }
            while !reader.is_empty() {
                let Some((edge, state, of_edge)) = self.read_edge(&mut reader) else {
                    ranks.give_up(rank);
                    break;
                };
                if let Some(Some(away)) = self.split.away.get_mut(edge as usize) {
                    *away = state;
                }
                steps.push((edge, of_edge));
            }
        }
        self.split.ranks = Some(ranks);
        steps.sort_by_key(|(edge, _)| *edge);
        steps
    }

    fn write_edge(&self, writer: &mut RankWriter, edge: u32, steps: &[Step], air: Option<&Air>) {
        let Some(sim_node) = self.edge_node(edge) else { return };
        writer.u32(edge).u32(sim_node.life).u64(sim_node.boot).u64(sim_node.deadline);
        writer.bool(sim_node.alive()).bool(sim_node.stalled()).u64(steps.len() as u64);
        for step in steps {
            write_step(writer, step, air);
        }
    }

    fn read_edge(&mut self, reader: &mut Reader<'_>) -> Option<(u32, AwayEdge, Vec<Step>)> {
        let edge = reader.u32()?;
        let (life, boot, deadline) = (reader.u32()?, reader.u64()?, reader.u64()?);
        let state = AwayEdge { alive: reader.bool()?, stalled: reader.bool()? };
        let count = reader.u64()?;
        let steps = (0..count).map(|_| read_step(reader, edge)).collect::<Option<Vec<Step>>>()?;
        let sim_node = self.edge_node_mut(edge)?;
        (sim_node.life, sim_node.boot, sim_node.deadline) = (life, boot, deadline);
        Some((edge, state, steps))
    }
}

/// Effects of a step that concern other nodes, and its digest.
fn write_step(writer: &mut RankWriter, step: &Step, air: Option<&Air>) {
    let StandInAccount { admitted, end } = step.stand_in();
    let (cycles, about_an_epoch) = air.map_or((0, false), |air| air.compute_cost(step));
    writer.u64(nanos(step.at)).u64(cycles).bool(about_an_epoch).bool(admitted);
    writer.u8(match end {
        None => 0,
        Some(MachineEnd::Left) => 1,
        Some(MachineEnd::Final) => 2,
        Some(MachineEnd::Passing) => 3,
    });
    match &step.digest {
        None => writer.bool(false),
        Some(digest) => writer.bool(true).fixed(digest),
    };
    for effect in &step.effects {
        match effect {
            Effect::Sent { to: Destination::Group, payload } => writer.u8(1).bytes(payload),
            Effect::Sent { to: Destination::Peer(peer), payload } => writer.u8(2).u64(peer.0).bytes(payload),
            Effect::Blocked(peer) => writer.u8(3).u64(peer.0),
            Effect::Penalized(peer) => writer.u8(4).u64(peer.0),
            Effect::Disconnected(peer) => writer.u8(5).u64(peer.0),
            Effect::Relayed { peer, allowed } => writer.u8(6).u64(peer.0).bool(*allowed),
            Effect::Died => writer.u8(7),
            Effect::Broken => writer.u8(8),
            Effect::Persisted { .. } | Effect::Reported(_) | Effect::Stalled => continue,
        };
    }
    writer.u8(0);
}

/// The step of another rank's edge, whose cause only that rank knows.
fn read_step(reader: &mut Reader<'_>, edge: u32) -> Option<Step> {
    let at = Duration::from_nanos(reader.u64()?);
    let (cycles, about_an_epoch, admitted) = (reader.u64()?, reader.bool()?, reader.bool()?);
    let end = match reader.u8()? {
        0 => None,
        1 => Some(MachineEnd::Left),
        2 => Some(MachineEnd::Final),
        3 => Some(MachineEnd::Passing),
        _ => return None,
    };
    let digest = if reader.bool()? { Some(reader.fixed()?) } else { None };
    let mut effects = Vec::new();
    loop {
        let peer = |reader: &mut Reader<'_>| Some(Peer(reader.u64()?));
        effects.push(match reader.u8()? {
            0 => break,
            1 => Effect::Sent { to: Destination::Group, payload: reader.bytes()?.into() },
            2 => Effect::Sent { to: Destination::Peer(peer(reader)?), payload: reader.bytes()?.into() },
            3 => Effect::Blocked(peer(reader)?),
            4 => Effect::Penalized(peer(reader)?),
            5 => Effect::Disconnected(peer(reader)?),
            6 => Effect::Relayed { peer: peer(reader)?, allowed: reader.bool()? },
            7 => Effect::Died,
            8 => Effect::Broken,
            _ => return None,
        });
    }
    let account =
        Some(Box::new(StepAccount { cycles, about_an_epoch, stand_in: StandInAccount { admitted, end } }));
    let node = NodeId::Edge(edge);
    Some(Step { at, node, cause: Cause::Deadline, effects, cpu: Duration::ZERO, digest, account })
}
