//! The fuzzer's bytes as a script.

use std::time::Duration;

use arbitrary::Unstructured;
use quiver_ainq::StrategyKind;
use quiver_role::{Now, Peer, Route, Via};

use super::rogue;
use super::roles::Player;
use super::tape::{Deck, Step, Tape};
use super::world::{Recording, STRATEGIES, recording};
use crate::mutation::mutate;
use crate::scene::START;

/// The most steps of one script.
const LONGEST: usize = 48;

/// Brings a machine into the state that the first bytes name, and performs the rest.
pub(crate) fn perform<M: Player>(tape: fn(&'static Recording) -> &'static Tape<M>, bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let Ok(strategy) = u.choose(&STRATEGIES).copied() else { return };
    let tape = tape(recording(strategy));
    let Ok(mark) = u.int_in_range(0..=tape.marks.len() - 1) else { return };
    let (mut deck, mut now) = tape.play(mark);
    for _ in 0..LONGEST {
        if u.is_empty() || act(&mut deck, &mut now, tape, &mut u).is_err() {
            break;
        }
        deck.machine.check();
    }
    deck.restart();
    deck.expire(&mut now);
}

/// A machine that came from bytes at rest: it runs, meets its peers, and what it persists restores.
pub(crate) fn exercise<M: Player>(machine: M) {
    machine.check();
    let mut deck = Deck::with(machine, 5, StrategyKind::Tree);
    deck.witness.trusting = true;
    let mut now = Now { monotonic: Duration::from_secs(7), unix: START + 500 };
    let meet = [Step::Timeout, Step::Connected(Peer(1), Route::Kgc), Step::Connected(Peer(2), Route::Leader)];
    for step in &meet {
        deck.take(now, step);
    }
    for _ in 0..4 {
        deck.expire(&mut now);
    }
    deck.machine.check();
    deck.restart();
    deck.take(now, &Step::Timeout);
}

fn act<M: Player>(
    deck: &mut Deck<M>,
    now: &mut Now,
    tape: &Tape<M>,
    u: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    let step = match u.int_in_range(0..=15_u8)? {
        0 => {
            deck.expire(now);
            return Ok(());
        }
        1 => Step::Timeout,
        2 => Step::Connected(some_peer(u)?, *u.choose(&[Route::Kgc, Route::Leader, Route::Inbound])?),
        3 => Step::Disconnected(some_peer(u)?),
        4 => Step::Command(M::command(u)?),
        5 => {
            pass(now, u)?;
            return Ok(());
        }
        6 => {
            deck.restart();
            return Ok(());
        }
        7 => {
            let len = u.int_in_range(0..=64)?;
            Step::Received(some_peer(u)?, some_way(u)?, u.bytes(len)?.to_vec())
        }
        8..=10 => own_message(tape, u)?,
        11..=12 => Step::Received(some_peer(u)?, some_way(u)?, rogue::message(u)?),
        _ => Step::Received(some_peer(u)?, some_way(u)?, any_message(u)?),
    };
    deck.take(*now, &step);
    Ok(())
}

/// Time passes, or the wall clock jumps.
fn pass(now: &mut Now, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
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
            ])?
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

fn some_way(u: &mut Unstructured<'_>) -> arbitrary::Result<Via> {
    Ok(*u.choose(&[Via::Peer, Via::Group])?)
}

/// A step of the machine's own tape, from the past or from what would have come; its message perhaps changed.
fn own_message<M: Player>(tape: &Tape<M>, u: &mut Unstructured<'_>) -> arbitrary::Result<Step<M::Command>> {
    let (_, step) = &tape.steps[u.choose_index(tape.steps.len())?];
    Ok(match step {
        Step::Received(from, via, bytes) => {
            let other = any_message(u)?;
            Step::Received(*from, *via, mutate(u, bytes.clone(), &other)?)
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
