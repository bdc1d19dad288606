//! Deduplicates the headers that many edges hold.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use quiver_ainq::Suite;

use crate::DroneRole;

/// Number of different headers that edges hold at a time, more or less: the newest epochs of a few leaders.
const KEPT: usize = 8;

/// The headers seen last.
#[derive(Debug, Default)]
pub(super) struct Headers(Mutex<VecDeque<Arc<[u8]>>>);

impl Headers {
    /// Lets an edge keep its header in the memory of one seen before, if it is equal.
    pub(super) fn share<S: Suite>(&self, edge: &mut DroneRole<S>) {
        edge.share_header(|header| self.find(header));
    }

    /// The same header, as it was seen first.
    fn find(&self, header: &Arc<[u8]>) -> Arc<[u8]> {
        // A list of headers is whole even after a panic.
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = seen
            .iter()
            .position(|known| Arc::ptr_eq(known, header))
            .or_else(|| seen.iter().position(|known| known == header));
        if let Some(known) = place.and_then(|place| seen.get(place)) {
            return Arc::clone(known);
        }
        seen.truncate(KEPT - 1);
        seen.push_front(Arc::clone(header));
        Arc::clone(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_headers_are_kept_once_and_old_ones_are_forgotten() {
        let headers = Headers::default();
        let header = |byte: u8| -> Arc<[u8]> { Arc::from([byte; 4]) };
        let first = headers.find(&header(0));
        assert!(Arc::ptr_eq(&first, &headers.find(&header(0))));
        assert_eq!(headers.find(&header(1))[..], [1; 4]);
        (1..=8).for_each(|byte| drop(headers.find(&header(byte))));
        assert!(!Arc::ptr_eq(&first, &headers.find(&header(0))));
    }
}
