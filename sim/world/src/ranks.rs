//! Ranks: processes that play one world together, each with the machines of its share of the drones.
//!
//! All ranks hold the schedule, the network, the KGCs, the leaders and the relays, and compute them alike. A drone's
//! machine (its state, its keys and its computing) is one rank's: that of its number modulo the number of ranks. In a
//! stretch of time so short that nothing sent in it arrives in it, each rank takes the steps of its drones and hands
//! all others what came of them; all apply them in the order of time, node and sequence. So every rank draws the
//! same randomness of the network in the same order, and the trace of the world is that of one process by construction.

pub(crate) mod wire;

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Carries bytes between the ranks of a run.
pub trait Exchange: Send + Sync {
    /// Number of this rank, from 0.
    fn rank(&self) -> u32;

    /// Number of ranks.
    fn count(&self) -> u32;

    /// Hands these bytes to all ranks, and gives those of all, in their order.
    ///
    /// Every rank calls it as often as all others do, and in the same order.
    ///
    /// # Errors
    /// The number of a rank that is lost.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, u32>;
}

/// The ranks of a run, as one of them sees them.
#[derive(Clone)]
pub struct Ranks(Arc<Inner>);

struct Inner {
    exchange: Box<dyn Exchange>,
    /// The rank that was lost first.
    lost: OnceLock<u32>,
}

impl Ranks {
    /// Ranks that exchange bytes in this way.
    pub fn new(exchange: impl Exchange + 'static) -> Self {
        Self(Arc::new(Inner { exchange: Box::new(exchange), lost: OnceLock::new() }))
    }

    /// Ranks that are threads of this process.
    pub fn threads(count: u32) -> Vec<Self> {
        let mut receivers: Vec<Vec<Inbox>> = (0..count).map(|_| Vec::new()).collect();
        let mut senders: Vec<Vec<Sender<Arc<[u8]>>>> = (0..count).map(|_| Vec::new()).collect();
        for of_sender in &mut senders {
            for of_receiver in &mut receivers {
                let (sender, receiver) = channel();
                of_sender.push(sender);
                of_receiver.push(Mutex::new(receiver));
            }
        }
        let threads = senders.into_iter().zip(receivers).zip(0..);
        threads
            .map(|((senders, receivers), rank)| Self::new(ThreadExchange { rank, senders, receivers }))
            .collect()
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> u32 {
        self.0.exchange.rank()
    }

    /// Number of ranks.
    pub fn count(&self) -> u32 {
        self.0.exchange.count()
    }

    /// The rank that was lost, or sent what cannot be read; `None` if all are there.
    pub fn lost(&self) -> Option<u32> {
        self.0.lost.get().copied()
    }

    /// Notes that a rank is lost, or sent what cannot be read.
    pub(crate) fn give_up(&self, rank: u32) {
        self.0.lost.get_or_init(|| rank);
    }

    /// Hands these bytes to all ranks, and gives those of all, in their order; these alone if a rank is lost.
    pub fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if self.lost().is_none() {
            match self.0.exchange.all_gather(bytes) {
                Ok(all) => return all,
                Err(rank) => self.give_up(rank),
            }
        }
        vec![bytes.to_vec()]
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranks({} of {})", self.rank(), self.count())
    }
}

impl PartialEq for Ranks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Receiver of one thread's bytes.
type Inbox = Mutex<Receiver<Arc<[u8]>>>;

/// A channel from each thread to each.
struct ThreadExchange {
    rank: u32,
    senders: Vec<Sender<Arc<[u8]>>>,
    receivers: Vec<Inbox>,
}

impl Exchange for ThreadExchange {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn count(&self) -> u32 {
        u32::try_from(self.senders.len()).unwrap_or(u32::MAX)
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, u32> {
        let bytes: Arc<[u8]> = bytes.into();
        for sender in &self.senders {
            // One that is lost is found below, by its number: all others get these bytes, so that they find the same one.
            let _ = sender.send(Arc::clone(&bytes));
        }
        let receive = |(receiver, rank): (&Inbox, u32)| {
            // A receiver is whole even after a panic.
            let received = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            received.map(|bytes| bytes.to_vec()).map_err(|_| rank)
        };
        self.receivers.iter().zip(0..).map(receive).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_rank_gets_the_bytes_of_all_in_order_and_names_a_lost_one() {
        let of_rank = |ranks: Ranks| {
            for round in 0..50_u32 {
                let own = vec![ranks.rank() as u8; (round + ranks.rank()) as usize];
                let all = ranks.all_gather(&own);
                let expected: Vec<Vec<u8>> =
                    (0..3).map(|rank| vec![rank as u8; (round + rank) as usize]).collect();
                assert_eq!(all, expected);
            }
            if ranks.rank() == 1 {
                return ranks.lost();
            }
            assert_eq!(ranks.all_gather(&[7]), [[7]]);
            ranks.lost()
        };
        let threads: Vec<_> =
            Ranks::threads(3).into_iter().map(|ranks| thread::spawn(move || of_rank(ranks))).collect();
        let lost: Vec<Option<u32>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(lost, [Some(1), None, Some(1)]);
    }
}
