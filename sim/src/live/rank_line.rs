//! Lines between ranks: messages in both directions, in the order in which they were sent.
//!
//! Both ends are channels of one process. Ranks that are threads hold an end each. Under MPI the far end is at the
//! thread that makes the calls of MPI: it sends what comes out of it, and puts in what it receives.

use tokio::sync::mpsc;

/// Length of the longest message, in bytes.
pub(crate) const LONGEST: usize = 1 << 20;

/// A line to another rank, as one of the two sees it.
#[derive(Debug)]
pub struct RankLine {
    /// Messages to the other rank. Unbounded, within what the drones of a plan can send: no event may be lost, and no
    /// drone may wait for the network.
    pub outgoing: mpsc::UnboundedSender<Vec<u8>>,
    /// Messages of the other rank; closed once that is gone.
    pub incoming: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl RankLine {
    /// Returns both ends of a new line.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        let ((to_far, from_near), (to_near, from_far)) =
            (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        (Self { outgoing: to_far, incoming: from_far }, Self { outgoing: to_near, incoming: from_near })
    }
}
