//! The roles, taken to some state and then fed with anything.
//!
//! One honest run of a KGC, a leader, its deputy and five edges is recorded per strategy: what went into each
//! machine, and every message. A machine is a function of its inputs and its random numbers, so playing its
//! trace up to a mark brings it into a state of that run in a millisecond: fresh, enrolled, serving a group
//! or being in it, and after churn. From there the fuzzer's bytes are a script: connections, disconnections,
//! clock jumps, commands, noise, recorded messages with one change, and what a leader gone bad signs.
//!
//! Invariants of every input: no panic; outputs end; timeouts settle; no message is too long; a machine
//! restores from what it persisted, at any time; epochs never go back; an edge activates no epoch that the
//! honest leader did not make; a KGC issues no key but to holders of its operator's tokens.

mod deputy;
mod rogue;
mod roles;
mod script;
mod trace;
mod world;

use quiver_ainq::{Ristretto255, StrategyKind};
use quiver_enrolment::Kgc;
use quiver_group::LeaderRecord;
use quiver_machine::{Either, Snapshot};

use self::deputy::Deputy;
use self::roles::{FuzzEdge, FuzzLeader, FuzzMachine};
use self::world::{STRATEGIES, recording};
use crate::decoders::message_with_two_bodies;

/// The suite of the machines.
pub(crate) type S = Ristretto255;

/// A script for a KGC.
pub fn kgc_input(bytes: &[u8]) {
    script::perform::<Kgc<S>>(|run| &run.kgc, bytes);
}

/// A script for a leader.
pub fn leader_input(bytes: &[u8]) {
    script::perform::<FuzzLeader>(|run| &run.leader, bytes);
}

/// A script for a leader that is a deputy.
pub fn deputy_input(bytes: &[u8]) {
    script::perform::<Deputy>(|run| &run.deputy, bytes);
}

/// A script for an edge.
pub fn edge_input(bytes: &[u8]) {
    script::perform::<FuzzEdge>(|run| &run.edges[0], bytes);
}

/// An edge's state at rest: it restores or is refused; a restored edge runs.
pub fn edge_snapshot(bytes: &[u8]) {
    if let Ok(machine) = FuzzEdge::restart(&[Either::Left(Snapshot::new(bytes.to_vec()))], StrategyKind::Tree)
    {
        script::exercise(machine);
    }
}

/// A leader's records at rest, each after its length in four bytes.
pub fn leader_records(bytes: &[u8]) {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((len, behind)) = rest.split_first_chunk::<4>() {
        let len = (u32::from_be_bytes(*len) as usize).min(behind.len());
        let (record, behind) = behind.split_at(len);
        records.push(Either::Left(LeaderRecord::new(record.to_vec())));
        rest = behind;
    }
    if let Ok(machine) = FuzzLeader::restart(&records, StrategyKind::Tree) {
        script::exercise(machine);
    }
}

/// Every message of the honest runs.
pub fn message_seeds() -> Vec<Vec<u8>> {
    let recorded = STRATEGIES.iter().flat_map(|strategy| recording(*strategy).messages.clone());
    recorded.chain([message_with_two_bodies::<S>()]).collect()
}

/// Scripts to start from: each state with a few steps.
pub fn script_seeds() -> Vec<Vec<u8>> {
    let tail: Vec<u8> = (0..=255).collect();
    let states = (0..2_u8).flat_map(|strategy| (0..4_u8).map(move |state| [strategy, state]));
    states.map(|start| [&start[..], &tail].concat()).collect()
}

/// An edge's states in the honest runs.
pub fn edge_snapshot_seeds() -> Vec<Vec<u8>> {
    let records = STRATEGIES.iter().flat_map(|strategy| &recording(*strategy).edges[0].records);
    records.filter_map(Either::left).map(|snapshot| snapshot.as_bytes().to_vec()).collect()
}

/// A leader's log of the honest run, as it grew and as a checkpoint.
pub fn leader_record_seeds() -> Vec<Vec<u8>> {
    let recorded = &recording(StrategyKind::Tree).leader.records;
    let log: Vec<_> = recorded.iter().filter_map(Either::left).cloned().collect();
    let pack = |records: &[LeaderRecord]| {
        let framed = records.iter().map(|record| {
            let bytes = record.as_bytes();
            [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
        });
        framed.collect::<Vec<_>>().concat()
    };
    let checkpoint = FuzzLeader::restart(recorded, StrategyKind::Tree).expect("the honest log").checkpoint();
    vec![pack(&log), pack(&log[..log.len() / 2]), pack(&checkpoint)]
}
