//! Measures what false frames cost the receiver of a coded broadcast: decodings, memory, frames, and from
//! when on the broadcast is spoilt.
//!
//!     cargo run --release -p quiver-link --example jammer

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::Duration;

use quiver_link::erasure::{
    Assembler, AssemblerCounters, AssemblerLimits, CodedFrame, code_broadcast, parity_for,
};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const TRIALS: u32 = 2_000;
const LEADER: u64 = 0;
const MESSAGE: usize = 700;
const LOSS: f64 = 0.1;
/// Time between frames: a full one of IEEE 802.15.4, with its access to the channel.
const PACE: Duration = Duration::from_millis(6);

fn main() {
    println!("false pieces of the broadcast itself, under the leader's address:");
    for false_frames in [0, 1, 2, 3, 4, 6, 8, 12] {
        report(&format!("{false_frames}"), |rng| {
            let frames = broadcast(rng);
            let mut air: Vec<_> = frames.iter().map(|frame| (LEADER, frame.clone())).collect();
            air.retain(|_| rng.gen_bool(1.0 - LOSS));
            air.extend((0..false_frames).map(|_| (LEADER, forged(&frames, rng))));
            air.shuffle(rng);
            air
        });
    }
    println!("frames of other messages between each two, under the leader's address:");
    for between in [1, 3, 7, 8, 16] {
        report(&format!("{between}"), |rng| flood(between, |_| LEADER, rng));
    }
    println!("the same, each under an address of its own:");
    for between in [1, 7, 8, 16] {
        report(&format!("{between}"), |rng| flood(between, |number| 1 + number, rng));
    }
}

/// The frames of a genuine broadcast.
fn broadcast(rng: &mut StdRng) -> Vec<Vec<u8>> {
    let message: Vec<u8> = (0..MESSAGE).map(|_| rng.r#gen()).collect();
    code_broadcast(&message, 116, |data| parity_for(data, LOSS)).expect("a short message")
}

/// A false piece with the header of these frames.
fn forged(frames: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    let frame = CodedFrame::decode(&frames[0]).expect("a frame");
    let piece: Vec<u8> = frame.piece.iter().map(|_| rng.r#gen()).collect();
    CodedFrame { index: rng.gen_range(0..frames.len()) as u8, piece: &piece, ..frame }.encode()
}

/// A genuine broadcast with so many frames of other messages behind each of its own.
fn flood(between: u64, address: impl Fn(u64) -> u64, rng: &mut StdRng) -> Vec<(u64, Vec<u8>)> {
    let mut air = Vec::new();
    for frame in broadcast(rng) {
        if rng.gen_bool(1.0 - LOSS) {
            air.push((LEADER, frame));
        }
        for _ in 0..between {
            air.push((address(air.len() as u64), broadcast(rng).swap_remove(0)));
        }
    }
    air
}

fn report(what: &str, mut air: impl FnMut(&mut StdRng) -> Vec<(u64, Vec<u8>)>) {
    let rng = &mut StdRng::seed_from_u64(1);
    let (mut whole, mut frames, mut held) = (0, 0, 0);
    let mut sum = AssemblerCounters::default();
    for _ in 0..TRIALS {
        let mut assembler = Assembler::new(AssemblerLimits::new(2_048));
        let (mut now, mut genuine, mut got) = (Duration::ZERO, 0, false);
        for (source, frame) in air(rng) {
            now += PACE;
            genuine += u32::from(source == LEADER && !got);
            got |= assembler.handle_frame(now, source, &frame, |_| true).is_some();
            held = held.max(assembler.held_bytes());
        }
        whole += u32::from(got);
        frames += if got { genuine } else { 0 };
        let counters = assembler.counters();
        sum.spoilt += counters.spoilt;
        sum.skipped += counters.skipped;
        sum.given_up += counters.given_up;
    }
    let mean = |count: u64| count as f64 / f64::from(TRIALS);
    println!(
        "  {what:>3}: whole {:.1} %, after {:.1} frames under the address; decodings in vain {:.1}, not tried {:.1}, \
         given up {:.2}; at most {held} bytes",
        100.0 * f64::from(whole) / f64::from(TRIALS),
        f64::from(frames) / f64::from(whole.max(1)),
        mean(sum.spoilt),
        mean(sum.skipped),
        mean(sum.given_up),
    );
}
