//! Carriers in memory, for tests and simulations: a list of members that all hear each other, until a filter
//! loses what it is asked about.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::{CarrierCommand, CarrierContext, OpenCarrier, WAITING};

/// Decides about a datagram from one member to another, by number: 0 loses it, 2 doubles it.
type LossFilter = dyn FnMut(usize, usize, &[u8]) -> usize + Send;

/// Medium on which each member receives from each other.
struct MemoryMedium {
    members: Vec<mpsc::Sender<Vec<u8>>>,
    filter: Box<LossFilter>,
}

/// One member's place on a medium in memory: [`Bridge::open_in_memory`](crate::Bridge::open_in_memory).
pub struct MemoryCarrier {
    number: usize,
    medium: Arc<Mutex<MemoryMedium>>,
    inbox: mpsc::Receiver<Vec<u8>>,
}

/// A medium of so many members. The filter is asked about each datagram with the numbers of its sender and
/// receiver, and says how often it arrives.
#[must_use]
pub fn memory(
    members: usize,
    filter: impl FnMut(usize, usize, &[u8]) -> usize + Send + 'static,
) -> Vec<MemoryCarrier> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..members).map(|_| mpsc::channel(1_024)).unzip();
    let medium = Arc::new(Mutex::new(MemoryMedium { members: senders, filter: Box::new(filter) }));
    let carrier = |(number, inbox)| MemoryCarrier { number, medium: Arc::clone(&medium), inbox };
    inboxes.into_iter().enumerate().map(carrier).collect()
}

impl MemoryCarrier {
    /// Puts something on the medium, as a stranger would.
    pub fn inject(&self, datagram: &[u8]) {
        transmit(&self.medium, self.number, datagram);
    }

    /// The next datagram that is heard here.
    pub async fn hear(&mut self) -> Option<Vec<u8>> {
        self.inbox.recv().await
    }

    pub(crate) fn open(self, shared: &CarrierContext, tasks: &mut tokio::task::JoinSet<()>) -> OpenCarrier {
        let (port, opened) = shared.port(0, "memory".into(), WAITING);
        tasks.spawn(serve(port, self));
        opened
    }
}

fn transmit(medium: &Mutex<MemoryMedium>, from: usize, datagram: &[u8]) {
    let mut medium = medium.lock().unwrap_or_else(PoisonError::into_inner);
    let MemoryMedium { members, filter } = &mut *medium;
    for (to, member) in members.iter().enumerate().filter(|(to, _)| *to != from) {
        for _ in 0..filter(from, to, datagram) {
            // A member that is behind loses it, as on any medium.
            let _ = member.try_send(datagram.to_vec());
        }
    }
}

async fn serve(mut port: super::CarrierPort, mut carrier: MemoryCarrier) {
    loop {
        tokio::select! {
            Some(datagram) = carrier.inbox.recv() => port.receive(None, &datagram),
            order = port.order() => match order {
                Some(CarrierCommand::Send(datagram)) => {
                    port.counters.sent(datagram.len());
                    transmit(&carrier.medium, carrier.number, &datagram);
                }
                Some(_) => {}
                None => return,
            },
        }
    }
}

impl std::fmt::Debug for MemoryCarrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryCarrier").field("number", &self.number).finish_non_exhaustive()
    }
}
