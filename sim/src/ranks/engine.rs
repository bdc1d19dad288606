//! MPI: one `Allgather` for what is short, and `Allgatherv` for the rest of what is long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mpi::Threading;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use quiver_report::complain;
use quiver_world::ranks::{Exchange, Ranks};

use super::host;
use crate::report::Outcome;
use crate::{Result, SimError, measure};

/// Bytes of each rank that the first exchange carries, with their number before them.
const SHORT: usize = 1016;
const BLOCK: usize = SHORT + 8;
/// Bytes of all ranks that one exchange carries at most: MPI counts them in 31 bits.
const MOST: usize = 1 << 30;

/// Nanoseconds in which this rank was in an exchange.
static WAITED: AtomicU64 = AtomicU64::new(0);

/// The time in which this rank was in an exchange.
pub(super) fn waited() -> Duration {
    Duration::from_nanos(WAITED.load(Ordering::Relaxed))
}

/// A run under MPI, which ends in order when it is dropped.
pub(super) struct Session {
    ranks: Ranks,
    _universe: Universe,
}

/// Joins the other ranks. A rank that is lost, or fails in a call, ends all.
pub(super) fn join(place: &OnceLock<Ranks>) -> Result<Session> {
    let refused = || SimError::Usage("MPI cannot be started, or was before".into());
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).ok_or_else(refused)?;
    let world = universe.world();
    let number = |of: i32| u32::try_from(of).unwrap_or_default();
    let ranks = Ranks::new(Mpi { rank: number(world.rank()), count: number(world.size()) });
    place.set(ranks.clone()).map_err(|_| refused())?;
    Ok(Session { ranks, _universe: universe })
}

impl Session {
    /// Ends the run. A failure of one rank is one of all: the others may be waiting for this one.
    pub(super) fn end(self, played: Result<Outcome>) -> Result<Outcome> {
        if let Err(error) = &played
            && self.ranks.count() > 1
        {
            complain_by_name(&self.ranks, &error.to_string());
            SimpleCommunicator::world().abort(if let SimError::Usage(_) = error { 2 } else { 1 });
        }
        played
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() && self.ranks.count() > 1 {
            complain_by_name(&self.ranks, "panicked, and with it the run is over");
            SimpleCommunicator::world().abort(1);
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

    fn all_gather(&self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let begin = measure::now();
        let all = self.exchange(bytes);
        let waited = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        WAITED.fetch_add(waited, Ordering::Relaxed);
        all
    }
}

/// Complains in the name of this rank.
fn complain_by_name(ranks: &Ranks, text: &str) {
    complain(&format!("rank {} of {} on {}: {text}", ranks.rank(), ranks.count(), host()));
}
