//! Confirms that a peer was there after messages were handed to its connection: it is asked the time, which every
//! node answers (docs/protocol.md, 16.1).
//!
//! One question to a peer is under way at a time. A caller that asks meanwhile waits for the next one, which
//! is behind its messages: many wait for one answer, and none for more than two round trips.

use std::collections::HashMap;

use libp2p::PeerId;
use libp2p::request_response::OutboundRequestId;
use tokio::sync::oneshot;

use crate::clock_sync::Behaviour;

/// Learns that the peer has answered; dropped if it did not.
pub(crate) type ConfirmationWaiter = oneshot::Sender<()>;

/// The questions under way, by the peer that is asked.
#[derive(Default)]
pub(crate) struct Confirmations(HashMap<PeerId, PendingConfirmation>);

struct PendingConfirmation {
    request: OutboundRequestId,
    /// Callers that wait for the answer to this request.
    waiting: Vec<ConfirmationWaiter>,
    /// Callers that wait for the answer to the next one, because they came after this request was sent.
    late: Vec<ConfirmationWaiter>,
}

impl Confirmations {
    /// Asks a peer, or will.
    pub(crate) fn ask(&mut self, peer: PeerId, waiting: ConfirmationWaiter, clocks: &mut Behaviour) {
        match self.0.get_mut(&peer) {
            Some(question) => question.late.push(waiting),
            None => self.begin(peer, vec![waiting], clocks),
        }
    }

    fn begin(&mut self, peer: PeerId, mut waiting: Vec<ConfirmationWaiter>, clocks: &mut Behaviour) {
        waiting.retain(|waiting| !waiting.is_closed());
        if !waiting.is_empty() {
            let request = clocks.send_request(&peer, rand::random());
            self.0.insert(peer, PendingConfirmation { request, waiting, late: Vec::new() });
        }
    }

    /// A question was answered, or will not be. Returns whether it was one of these.
    pub(crate) fn ended(
        &mut self,
        (peer, request): (PeerId, OutboundRequestId),
        answered: bool,
        clocks: &mut Behaviour,
    ) -> bool {
        if self.0.get(&peer).is_none_or(|question| question.request != request) {
            return false;
        }
        let Some(PendingConfirmation { waiting, late, .. }) = self.0.remove(&peer) else { return false };
        if answered {
            for waiting in waiting {
                // It may have stopped waiting.
                let _ = waiting.send(());
            }
        }
        self.begin(peer, late, clocks);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_asks_while_a_question_is_under_way_waits_for_the_next_one() {
        let mut clocks = crate::clock_sync::behaviour(Duration::from_secs(1));
        let (mut confirmations, peer) = (Confirmations::default(), PeerId::random());
        let (first, mut early) = oneshot::channel();
        let (second, mut late) = oneshot::channel();
        confirmations.ask(peer, first, &mut clocks);
        confirmations.ask(peer, second, &mut clocks);
        let request = confirmations.0[&peer].request;
        assert!(confirmations.ended((peer, request), true, &mut clocks));
        assert!(early.try_recv().is_ok() && late.try_recv().is_err());
        assert!(!confirmations.ended((peer, request), true, &mut clocks), "its answer came");
        let next = confirmations.0[&peer].request;
        assert!(confirmations.ended((peer, next), false, &mut clocks));
        assert_eq!(
            late.try_recv(),
            Err(oneshot::error::TryRecvError::Closed),
            "no answer is no confirmation"
        );
        assert!(confirmations.0.is_empty());
    }
}
