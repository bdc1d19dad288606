//! The fuzzer's bytes as a script.

use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::StrategyKind;
use quiver_machine::{Now, Peer, Route, Via};

use super::rogue;
use super::roles::FuzzMachine;
use super::trace::{Harness, Trace, TraceInput};
use super::world::{Recording, STRATEGIES, recording};
use crate::mutation::mutate;
use crate::scene::START;

/// The most steps of one script.
const LONGEST: usize = 48;

/// Brings a machine into the state that the first bytes name, and performs the rest.
pub(crate) fn perform<M: FuzzMachine>(trace: fn(&'static Recording) -> &'static Trace<M>, bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let Ok(strategy) = u.choose(&STRATEGIES).copied() else { return };
    let trace = trace(recording(strategy));
    let Ok(mark) = u.int_in_range(0..=trace.marks.len() - 1) else { return };
    let (mut harness, mut now) = trace.replay(mark);
    for _ in 0..LONGEST {
        if u.is_empty() || apply_step(&mut harness, &mut now, trace, &mut u).is_err() {
            break;
        }
        harness.machine.check();
    }
    harness.restart();
    harness.expire(&mut now);
}

/// Drives a machine restored from bytes at rest: it runs, meets its peers, and restores from what it
/// persists.
pub(crate) fn exercise<M: FuzzMachine>(machine: M) {
    machine.check();
    let mut harness = Harness::with(machine, 5, StrategyKind::Tree);
    harness.checker.trusting = true;
    let mut now = Now { monotonic: Duration::from_secs(7), unix: START + 500 };
    let meet = [
        TraceInput::Timeout,
        TraceInput::Connected(Peer(1), Route::Kgc),
        TraceInput::Connected(Peer(2), Route::Leader),
    ];
    for step in &meet {
        harness.take(now, step);
    }
    for _ in 0..4 {
        harness.expire(&mut now);
    }
    harness.machine.check();
    harness.restart();
    harness.take(now, &TraceInput::Timeout);
}

fn apply_step<M: FuzzMachine>(
    harness: &mut Harness<M>,
    now: &mut Now,
    trace: &Trace<M>,
    u: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    let step = match u.int_in_range(0..=15_u8)? {
        0 => {
            harness.expire(now);
            return Ok(());
        }
        1 => TraceInput::Timeout,
        2 => TraceInput::Connected(some_peer(u)?, *u.choose(&[Route::Kgc, Route::Leader, Route::Inbound])?),
        3 => TraceInput::Disconnected(some_peer(u)?),
        4 => TraceInput::Command(M::command(u)?),
        5 => {
            advance_time(now, u)?;
            return Ok(());
        }
        6 => {
            harness.restart();
            return Ok(());
        }
        7 => {
            let len = u.int_in_range(0..=64)?;
            TraceInput::Received(some_peer(u)?, some_via(u)?, u.bytes(len)?.to_vec())
        }
        8..=10 => own_message(trace, u)?,
        11..=12 => TraceInput::Received(some_peer(u)?, some_via(u)?, rogue::message(u)?),
        _ => TraceInput::Received(some_peer(u)?, some_via(u)?, any_message(u)?),
    };
    harness.take(*now, &step);
    Ok(())
}

/// Time passes, or the wall clock jumps.
fn advance_time(now: &mut Now, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match u.int_in_range(0..=4_u8)? {
        0 => {
            now.unix = *u.choose(&[
                0,
                1,
                START - 1,
                START,
                START + 10_000_000,
                u64::from(u32::MAX),
                i64::MAX as u64,
            ])?;
        }
        1 => now.unix = now.unix.saturating_add(u.arbitrary::<u32>()?.into()),
        2 => now.unix = now.unix.saturating_sub(u.arbitrary::<u32>()?.into()),
        _ => {
            let millis = u64::from(u.arbitrary::<u16>()?) << u.int_in_range(0..=10_u8)?;
            now.monotonic += Duration::from_millis(millis);
            now.unix = now.unix.saturating_add(millis / 1000);
        }
    }
    Ok(())
}

fn some_peer(u: &mut Unstructured<'_>) -> arbitrary::Result<Peer> {
    Ok(Peer(u.int_in_range(0..=40)?))
}

fn some_via(u: &mut Unstructured<'_>) -> arbitrary::Result<Via> {
    Ok(*u.choose(&[Via::Peer, Via::Group])?)
}

/// A step of the machine's own trace, from the past or from what would have come; its message perhaps
/// changed.
fn own_message<M: FuzzMachine>(
    trace: &Trace<M>,
    u: &mut Unstructured<'_>,
) -> arbitrary::Result<TraceInput<M::Command>> {
    let (_, step) = &trace.steps[u.choose_index(trace.steps.len())?];
    Ok(match step {
        TraceInput::Received(from, via, bytes) => {
            let other = any_message(u)?;
            TraceInput::Received(*from, *via, mutate(u, bytes.clone(), &other)?)
        }
        other => other.clone(),
    })
}

/// Any message of the honest run, perhaps changed.
fn any_message(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let messages = &recording(*u.choose(&STRATEGIES)?).messages;
    let (one, other) = (u.choose(messages)?.clone(), u.choose(messages)?);
    mutate(u, one, other)
}
