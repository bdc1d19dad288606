//! MPI. The virtual world: one `Allgather` for what is short, and `Allgatherv` for the rest of what is long. The live
//! world: messages from point to point.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};
use quiver_report::complain;
use quiver_world::ranks::{Exchange, Ranks};

use super::{RANKS, current, host};
use crate::live::{LONGEST, RankLine};
use crate::report::RunOutcome;
use crate::{SimError, measure};

/// Bytes of each rank that the first exchange carries, with their number before them.
const SHORT: usize = 1016;
const BLOCK: usize = SHORT + 8;
/// Bytes of all ranks that one exchange carries at most: MPI counts them in 31 bits.
const MOST: usize = 1 << 30;

/// Time after the last message for which the next is waited for without sleep: answers come quickly, and clocks are
/// compared by them.
const AWAKE: Duration = Duration::from_millis(1);
/// Sleep between two looks for messages, after the last and long after it.
const NAP: Duration = Duration::from_micros(200);
const SLEEP: Duration = Duration::from_millis(1);
/// Time after the last message from which sleeps are longer.
const IDLE: Duration = Duration::from_millis(100);

/// Nanoseconds in which this rank was in an exchange.
static WAITED: AtomicU64 = AtomicU64::new(0);

/// Time in which this rank waited for the bytes of others.
pub(super) fn waited() -> Duration {
    Duration::from_nanos(WAITED.load(Ordering::Relaxed))
}

/// Plays with all other processes that the MPI starter started.
pub(super) fn together(play: impl FnOnce() -> crate::Result<RunOutcome>) -> crate::Result<RunOutcome> {
    let session = join()?;
    let played = play();
    session.end(played)
}

/// A run under MPI, which ends in order when it is dropped.
struct MpiSession {
    ranks: Ranks,
    _universe: Universe,
}

/// Joins the other ranks. A rank that is lost, or fails in a call, ends all.
fn join() -> crate::Result<MpiSession> {
    let refused = || SimError::Usage("MPI cannot be started, or was before".into());
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).ok_or_else(refused)?;
    let world = universe.world();
    let number = |of: i32| u32::try_from(of).unwrap_or_default();
    let ranks = Ranks::new(Mpi { rank: number(world.rank()), count: number(world.size()) });
    RANKS.set(ranks.clone()).map_err(|_| refused())?;
    Ok(MpiSession { ranks, _universe: universe })
}

impl MpiSession {
    /// Ends the run. A failure of one rank is one of all: the others may be waiting for this one.
    fn end(self, played: crate::Result<RunOutcome>) -> crate::Result<RunOutcome> {
        if let Err(error) = &played
            && self.ranks.count() > 1
        {
            complain_by_name(&self.ranks, &error.to_string());
            SimpleCommunicator::world().abort(if let SimError::Usage(_) = error { 2 } else { 1 });
        }
        played
    }
}

impl Drop for MpiSession {
    fn drop(&mut self) {
        if thread::panicking() && self.ranks.count() > 1 {
            complain_by_name(&self.ranks, "panicked, and with it the run is over");
            SimpleCommunicator::world().abort(1);
        }
    }
}

/// Plays on a thread of its own, while this one, which has started MPI, makes its calls.
pub(super) fn carry(
    play: impl FnOnce(Vec<RankLine>) -> crate::Result<RunOutcome> + Send,
) -> crate::Result<RunOutcome> {
    let (rank, count) = current().map_or((0, 1), |ranks| (ranks.rank(), ranks.count()));
    // All lines are between the first rank and another.
    let others = if rank == 0 { 1..count } else { 0..1 };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for other in others {
        let (mine, line) = RankLine::pair();
        near.push(mine);
        far.push(FarEnd { rank: i32::try_from(other).unwrap_or(i32::MAX), line: Some(line) });
    }
    thread::scope(|scope| {
        let playing = thread::Builder::new()
            .name("world".into())
            .spawn_scoped(scope, move || play(near))
            .map_err(SimError::Runtime)?;
        let mut carrier = LineCarrier { world: SimpleCommunicator::world(), far, last: measure::now() };
        loop {
            // Messages sent before the end are carried after it.
            let over = playing.is_finished();
            let carried = carrier.send_all() | carrier.receive_all();
            if over && !carried {
                break;
            }
            carrier.rest();
        }
        playing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The far end of the line to a rank.
struct FarEnd {
    rank: i32,
    /// `None` once the rank sent what no message is.
    line: Option<RankLine>,
}

/// Carries messages between lines and MPI.
struct LineCarrier {
    world: SimpleCommunicator,
    far: Vec<FarEnd>,
    /// Time of the last message.
    last: Instant,
}

impl LineCarrier {
    /// Sends what has come out of the lines. Returns whether there was any.
    fn send_all(&mut self) -> bool {
        let mut sent = false;
        for nth in 0..self.far.len() {
            // As many as there are, but so that no line keeps the others waiting.
            for _ in 0..1024 {
                let Some(FarEnd { rank, line: Some(line) }) = self.far.get_mut(nth) else { break };
                let rank = *rank;
                let Ok(message) = line.incoming.try_recv() else { break };
                self.send(rank, &message);
                sent = true;
            }
        }
        sent
    }

    /// Sends a message, and receives others for as long as the receiver does not take it: it may be sending, too.
    fn send(&mut self, rank: i32, message: &[u8]) {
        mpi::request::scope(|scope| {
            let world = SimpleCommunicator::world();
            let mut sending = world.process_at_rank(rank).immediate_send(scope, message);
            while let Err(pending) = sending.test() {
                sending = pending;
                if !self.receive_all() {
                    thread::yield_now();
                }
            }
        });
        self.last = measure::now();
    }

    /// Puts what has arrived into the lines. Returns whether there was any.
    fn receive_all(&mut self) -> bool {
        let mut received = false;
        while let Some((message, status)) = self.world.any_process().immediate_matched_probe() {
            let length = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(usize::MAX);
            let from = self.far.iter_mut().find(|end| end.rank == status.source_rank());
            // Longer ones than any are taken, too, or MPI would keep them, and are the sender's last.
            let mut bytes = vec![0; length];
            message.matched_receive_into(&mut bytes[..]);
            if let Some(end) = from {
                if length > LONGEST {
                    end.line = None;
                } else if let Some(line) = &end.line {
                    // The player may be at its end.
                    let _ = line.outgoing.send(bytes);
                }
            }
            received = true;
            self.last = measure::now();
        }
        received
    }

    /// Lets others compute, the longer the longer no message came.
    fn rest(&self) {
        match self.last.elapsed() {
            idle if idle < AWAKE => thread::yield_now(),
            idle if idle < IDLE => thread::sleep(NAP),
            _ => thread::sleep(SLEEP),
        }
    }
}

struct Mpi {
    rank: u32,
    count: u32,
}

impl Mpi {
    /// Hands these bytes to all ranks, a part at a time.
    fn exchange(&self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let world = SimpleCommunicator::world();
        let count = self.count as usize;
        let mut block = [0; BLOCK];
        let (length, start) = block.split_first_chunk_mut::<8>()?;
        *length = (bytes.len() as u64).to_be_bytes();
        let short = bytes.len().min(SHORT);
        start.get_mut(..short)?.copy_from_slice(bytes.get(..short)?);
        let mut blocks = vec![0; BLOCK * count];
        world.all_gather_into(&block[..], &mut blocks[..]);
        let mut lengths = Vec::new();
        let mut all = Vec::new();
        for block in blocks.chunks_exact(BLOCK) {
            let (length, start) = block.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            all.push(start.get(..length.min(SHORT))?.to_vec());
            lengths.push(length);
        }
        let longest = lengths.iter().copied().max()?;
        let part = MOST / count;
        let mut done = SHORT;
        while done < longest {
            let next = |length: usize| length.clamp(done, done + part) - done;
            let counts: Vec<i32> =
                lengths.iter().map(|length| i32::try_from(next(*length)).ok()).collect::<Option<_>>()?;
            let mut places = Vec::new();
            let mut total = 0;
            for count in &counts {
                places.push(total);
                total += count;
            }
            let mut received = vec![0; usize::try_from(total).ok()?];
            let own = bytes.get(done..).unwrap_or_default();
            let own = own.get(..next(bytes.len()))?;
            world.all_gather_varcount_into(
                own,
                &mut PartitionMut::new(&mut received[..], &counts[..], &places[..]),
            );
            let mut rest = &received[..];
            for (of_rank, count) in all.iter_mut().zip(&counts) {
                let (bytes, others) = rest.split_at_checked(usize::try_from(*count).ok()?)?;
                of_rank.extend_from_slice(bytes);
                rest = others;
            }
            done += part;
        }
        Some(all)
    }
}

impl Exchange for Mpi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, u32> {
        let begin = measure::now();
        let all = self.exchange(bytes);
        let waited = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        WAITED.fetch_add(waited, Ordering::Relaxed);
        // MPI ends this process before a call returns without another rank. A length that cannot be counted
        // is too much for this one.
        all.ok_or(self.rank)
    }
}

/// Complains in the name of this rank.
fn complain_by_name(ranks: &Ranks, text: &str) {
    complain(&format!("rank {} of {} on {}: {text}", ranks.rank(), ranks.count(), host()));
}
