//! The bounded queue between a bridge and the thread that writes its logs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::FlightLogStatus;

/// Subject of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlightRecordKind {
    /// A frame that passed.
    Passed,
    /// A frame or datagram that was dropped.
    Dropped,
}

impl FlightRecordKind {
    /// All, in the order in which [`RecordQueue::wait`] returns their records.
    pub(super) const ALL: [Self; 2] = [Self::Passed, Self::Dropped];

    /// Bytes that wait at most. A disk that stands still for a second or two loses nothing of a radio's traffic; and a
    /// flood of what is dropped displaces nothing that passed, because it waits apart.
    const fn limit(self) -> usize {
        match self {
            Self::Passed => 1 << 20,
            Self::Dropped => 256 << 10,
        }
    }
}

/// Records one after the other, and where each ends.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    /// Number of records.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends one, unless there are more than `limit` bytes then.
    fn push(&mut self, limit: usize, parts: &[&[u8]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.bytes.len() + len > limit {
            return false;
        }
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
        true
    }

    /// The records from number `first` that have `room` bytes together, and how many they are.
    pub(super) fn fitting(&self, first: usize, room: usize) -> (&[u8], usize) {
        let end_of =
            |number: usize| number.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        let start = end_of(first);
        let fits = self.ends.iter().skip(first).take_while(|end| **end - start <= room).count();
        (self.bytes.get(start..end_of(first + fits)).unwrap_or_default(), fits)
    }
}

#[derive(Debug, Default)]
struct WaitingRecords {
    records: [Records; 2],
    closed: bool,
}

/// Records that wait, and what became of all others.
#[derive(Debug, Default)]
pub(super) struct RecordQueue {
    waiting: Mutex<WaitingRecords>,
    ready: Condvar,
    written: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    withheld: AtomicU64,
    // Apart from the records, so that a reader of the status holds up no frame.
    troubles: Mutex<[Option<String>; 2]>,
}

impl RecordQueue {
    /// Appends a record, or counts it as lost if too many wait.
    pub(super) fn push(&self, kind: FlightRecordKind, parts: &[&[u8]]) {
        let mut waiting = self.lock();
        // The writer may end at once after it was told: what comes later counts as lost.
        let pushed = !waiting.closed && waiting.records[kind as usize].push(kind.limit(), parts);
        // Unlocked first, or the writer would be woken only to wait for the lock.
        drop(waiting);
        match pushed {
            true => self.ready.notify_one(),
            false => self.note_lost(1),
        }
    }

    /// Takes no more records.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_one();
    }

    /// Takes what waits, for `patience` at most; `None` once the queue is closed and empty.
    pub(super) fn wait(&self, patience: Duration) -> Option<[Records; 2]> {
        let is_idle = |waiting: &mut WaitingRecords| {
            !waiting.closed && waiting.records.iter().all(|records| records.len() == 0)
        };
        let waited = self.ready.wait_timeout_while(self.lock(), patience, is_idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // Taken as a whole, because the bridge must not wait for the lock while a disk writes.
        let records = std::mem::take(&mut waiting.records);
        // What waited when the bridge ended is still written.
        let is_over = waiting.closed && records.iter().all(|records| records.len() == 0);
        (!is_over).then_some(records)
    }

    pub(super) fn note_written(&self, records: usize, bytes: u64) {
        // Relaxed, because nothing is concluded from one number about another.
        self.written.fetch_add(records as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_lost(&self, records: usize) {
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Counts a frame that no log may hold.
    pub(super) fn withhold(&self) {
        self.withheld.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what keeps records from being written, or that nothing does any more.
    pub(super) fn set_trouble(&self, kind: FlightRecordKind, trouble: Option<String>) {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize] = trouble;
    }

    pub(super) fn status(&self) -> FlightLogStatus {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        FlightLogStatus {
            directory: String::new(),
            written: of(&self.written),
            bytes: of(&self.bytes),
            lost: of(&self.lost),
            withheld: of(&self.withheld),
            trouble: troubles.iter().flatten().next().cloned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_a_flood_of_drops_displaces_nothing_that_passed() {
        let queue = RecordQueue::default();
        for _ in 0..1_000 {
            queue.push(FlightRecordKind::Dropped, &[&[7; 1_000]]);
        }
        queue.push(FlightRecordKind::Passed, &[b"stamp", b"frame"]);
        let lost = queue.status().lost;
        assert_eq!(lost, 1_000 - (256 << 10) / 1_000);
        let [passed, dropped] = queue.wait(Duration::ZERO).unwrap();
        assert_eq!((passed.len(), passed.fitting(0, 100)), (1, (&b"stampframe"[..], 1)));
        assert_eq!(dropped.len() as u64 + lost, 1_000);
        queue.close();
        queue.push(FlightRecordKind::Passed, &[b"late"]);
        assert_eq!(queue.status().lost, lost + 1);
        assert!(queue.wait(Duration::from_secs(60)).is_none());
    }

    #[test]
    fn records_are_taken_whole() {
        let mut records = Records::default();
        for part in [&b"one"[..], b"three", b"seven"] {
            assert!(records.push(13, &[part]));
        }
        assert!(!records.push(13, &[b"x"]));
        assert_eq!(records.fitting(0, 7), (&b"one"[..], 1));
        assert_eq!(records.fitting(0, 8), (&b"onethree"[..], 2));
        assert_eq!(records.fitting(1, 100), (&b"threeseven"[..], 2));
        assert_eq!(records.fitting(1, 4), (&b""[..], 0));
        assert_eq!(records.fitting(3, 100), (&b""[..], 0));
    }
}
