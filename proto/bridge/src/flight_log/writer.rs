//! The thread that writes logs: it alone waits for a disk.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::FlightLogSettings;
use super::records::{FlightRecordKind, RecordQueue, Records};
use super::series::Series;

/// Interval at which the disk has to take what was written.
const SYNC_EVERY: Duration = Duration::from_secs(5);
/// Time after which it is tried again to write, once that has failed.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Time for which a failure is not logged again, although it was over in between: a disk that is nearly full
/// fails often.
const SILENT_FOR: Duration = Duration::from_secs(600);

/// One of the logs.
struct Log {
    kind: FlightRecordKind,
    series: Series,
    /// Time of the next attempt after a failure.
    again_at: Option<Instant>,
}

/// Writes until the queue is closed and empty.
pub(super) fn run(queue: &RecordQueue, settings: &FlightLogSettings) {
    let mut logs = FlightRecordKind::ALL.map(|kind| Log::new(kind, settings));
    // Of all logs together: they are on one disk.
    let (mut synced_at, mut failed_at) = (Instant::now(), None);
    while let Some(records) = queue.wait(SYNC_EVERY) {
        for (log, records) in logs.iter_mut().zip(&records) {
            log.write(queue, records, &mut failed_at);
        }
        if synced_at.elapsed() >= SYNC_EVERY {
            synced_at = Instant::now();
            logs.iter_mut().for_each(|log| log.sync(queue, &mut failed_at));
        }
    }
    logs.iter_mut().for_each(|log| log.sync(queue, &mut failed_at));
}

impl Log {
    fn new(kind: FlightRecordKind, settings: &FlightLogSettings) -> Self {
        // Frames that passed have three quarters of the room: a flood of dropped ones must not displace them.
        let (ending, limit) = match kind {
            FlightRecordKind::Passed => (".tlog", settings.limit / 4 * 3),
            FlightRecordKind::Dropped => (".dropped.jsonl", settings.limit / 4),
        };
        let series = Series::new(settings.directory.clone(), ending, limit);
        Self { kind, series, again_at: None }
    }

    fn write(&mut self, queue: &RecordQueue, records: &Records, failed_at: &mut Option<Instant>) {
        if records.len() == 0 {
            return;
        }
        // A disk that failed is left alone for a while, and what comes meanwhile is counted as lost.
        if self.again_at.is_some_and(|at| Instant::now() < at) {
            return queue.note_lost(records.len());
        }
        let (written, bytes, result) = self.series.append(records);
        queue.note_written(written, bytes);
        match result {
            Ok(()) => {
                if self.again_at.take().is_some() {
                    queue.set_trouble(self.kind, None);
                    tracing::info!("the MAVLink log is written again");
                }
            }
            Err(failure) => {
                queue.note_lost(records.len() - written);
                self.fail(queue, failure, failed_at);
            }
        }
    }

    fn sync(&mut self, queue: &RecordQueue, failed_at: &mut Option<Instant>) {
        if let Err(failure) = self.series.sync() {
            // After a failed sync nobody knows what of the file is on the disk: the next record begins
            // another.
            self.series.abandon();
            self.fail(queue, failure, failed_at);
        }
    }

    /// Notes a failure, and logs it if none was logged lately.
    fn fail(
        &mut self,
        queue: &RecordQueue,
        (place, error): (PathBuf, io::Error),
        failed_at: &mut Option<Instant>,
    ) {
        let (now, place) = (Instant::now(), place.display().to_string());
        self.again_at = Some(now + AGAIN_AFTER);
        queue.set_trouble(self.kind, Some(format!("{place}: {error}")));
        // Said seldom: the disk that is full is often the one that takes the log.
        if failed_at.is_none_or(|at| now.duration_since(at) >= SILENT_FOR) {
            tracing::warn!(
                place,
                %error,
                "the MAVLink log cannot be written: {place}: {error}; frames pass all the same, and those that are not \
                 logged are counted: make room, or give another --mavlink-log"
            );
        }
        *failed_at = Some(now);
    }
}
