//! Ranks: processes that play one world together, each with the machines of its share of the drones.
//!
//! All ranks hold the schedule, the network, the KGCs, the leaders and the relays, and compute them alike. A drone's
//! machine (its state, its keys and its computing) is one rank's: that of its number modulo the number of ranks. In a
//! stretch of time so short that nothing sent in it arrives in it, each rank takes the steps of its drones and hands
//! all others what came of them; all apply them in the order of time, node and sequence. So every rank draws the
//! same randomness of the network in the same order, and the trace of the world is that of one process by construction.

pub(crate) mod wire;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Carries bytes between the ranks of a run.
pub trait Exchange: Send + Sync {
    /// Number of this rank, from 0.
    fn rank(&self) -> u32;

    /// Number of ranks.
    fn count(&self) -> u32;

    /// Hands these bytes to all ranks, and gives those of all, in their order; `None` if a rank is lost.
    ///
    /// Every rank calls it as often as all others do, and in the same order.
    fn all_gather(&self, bytes: &[u8]) -> Option<Vec<Vec<u8>>>;
}

/// The ranks of a run, as one of them sees them.
#[derive(Clone)]
pub struct Ranks(Arc<Inner>);

struct Inner {
    exchange: Box<dyn Exchange>,
    lost: AtomicBool,
}

impl Ranks {
    /// Ranks that exchange bytes in this way.
    pub fn new(exchange: impl Exchange + 'static) -> Self {
        Self(Arc::new(Inner { exchange: Box::new(exchange), lost: AtomicBool::new(false) }))
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

    /// Returns true if another rank was lost, or sent what cannot be read.
    pub fn is_broken(&self) -> bool {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Notes that another rank sent what cannot be read.
    pub(crate) fn give_up(&self) {
        self.0.lost.store(true, Ordering::Relaxed);
    }

    /// Hands these bytes to all ranks, and gives those of all, in their order; these alone if a rank is lost.
    pub fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if !self.is_broken() {
            match self.0.exchange.all_gather(bytes) {
                Some(all) => return all,
                None => self.give_up(),
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

    fn all_gather(&self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let bytes: Arc<[u8]> = bytes.into();
        self.senders.iter().try_for_each(|sender| sender.send(Arc::clone(&bytes)).ok())?;
        let receive = |receiver: &Inbox| {
            // A receiver is whole even after a panic.
            Some(receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()?.to_vec())
        };
        self.receivers.iter().map(receive).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_rank_gets_the_bytes_of_all_in_order_and_notices_a_lost_one() {
        let of_rank = |ranks: Ranks| {
            for round in 0..50_u32 {
                let own = vec![ranks.rank() as u8; (round + ranks.rank()) as usize];
                let all = ranks.all_gather(&own);
                let expected: Vec<Vec<u8>> =
                    (0..3).map(|rank| vec![rank as u8; (round + rank) as usize]).collect();
                assert_eq!(all, expected);
            }
            if ranks.rank() == 1 {
                return false;
            }
            assert_eq!(ranks.all_gather(&[7]), [[7]]);
            ranks.is_broken()
        };
        let threads: Vec<_> =
            Ranks::threads(3).into_iter().map(|ranks| thread::spawn(move || of_rank(ranks))).collect();
        let broken: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(broken, [true, false, true]);
    }
}
