//! Flight logs: what passed, as tlogs that ground stations replay, and what was dropped and why, as JSON lines.
//!
//! The bridge's task formats a record into a bounded queue, and never waits for a disk. A thread for blocking
//! work writes the queue into files. A record that does not fit into the queue, or cannot be written, is
//! counted, and the link goes on.

mod records;
mod series;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quiver_mavlink::Frame;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use self::records::{FlightRecordKind, RecordQueue};
use crate::frame_drop::FrameDrop;
use crate::report::FrameDirection;

/// Messages with a key or a password in them: `AUTH_KEY`, `SETUP_SIGNING`, `WIFI_CONFIG_AP`, `CELLULAR_CONFIG`.
/// A log must not hold them, because it is copied to where keys are not meant to be.
const SECRET: [u32; 4] = [7, 256, 299, 336];

/// Settings of flight logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightLogSettings {
    directory: PathBuf,
    limit: u64,
}

impl FlightLogSettings {
    /// Bytes of all logs of a directory unless set.
    pub const LIMIT: u64 = 256 << 20;
    /// The fewest bytes that they can be bounded to.
    pub const SMALLEST_LIMIT: u64 = 1 << 20;

    /// Logs in this directory, which is this service's alone and is made if need be. Together they have `limit`
    /// bytes at most, and not less than [`SMALLEST_LIMIT`](Self::SMALLEST_LIMIT).
    #[must_use]
    pub fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit: limit.max(Self::SMALLEST_LIMIT) }
    }
}

/// State of flight logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlightLogStatus {
    /// Directory of the logs.
    pub directory: String,
    /// Records written since the start.
    pub written: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Records that were not written: the disk is full, read-only or too slow.
    pub lost: u64,
    /// Frames with a key or a password, which no log holds.
    pub withheld: u64,
    /// Reason why records are not written, for people.
    pub trouble: Option<String>,
}

/// Logs that are being written. Dropping it ends them; what waits is written before the runtime ends.
#[derive(Debug)]
pub(crate) struct FlightLog {
    directory: String,
    queue: Arc<RecordQueue>,
}

impl FlightLog {
    /// Begins to write logs. Must be called inside a tokio runtime.
    pub(crate) fn start(settings: FlightLogSettings) -> Self {
        let queue = Arc::<RecordQueue>::default();
        let (directory, writers) = (settings.directory.display().to_string(), Arc::clone(&queue));
        // The runtime waits for this thread when it ends, so that what waits is written.
        spawn_blocking(move || writer::run(&writers, &settings));
        Self { directory, queue }
    }

    /// Logs a frame that at least one receiver is handed.
    pub(crate) fn passed(&self, way: FrameDirection, bytes: &[u8]) {
        if is_secret(bytes) {
            return self.queue.withhold();
        }
        // MAVProxy keeps the number of a link in the two lowest bits: 1 is the group.
        let link = u64::from(way == FrameDirection::FromGroup);
        let stamp = (micros() & !3 | link).to_be_bytes();
        self.queue.push(FlightRecordKind::Passed, &[&stamp, bytes]);
    }

    /// Logs what was dropped: a frame, or bytes that are none.
    pub(crate) fn dropped(&self, way: FrameDirection, reason: FrameDrop, bytes: &[u8]) {
        let reason = reason.label();
        let frame = Frame::parse(bytes).ok();
        let is_withheld = is_secret(bytes);
        if is_withheld {
            self.queue.withhold();
        }
        let of_frame =
            |number: fn(Frame<'_>) -> u64| frame.map_or("null".to_owned(), |frame| number(frame).to_string());
        // Bytes that are no frame are not shown, because they may have a key in them.
        let shown = frame.filter(|_| !is_withheld).map(|frame| format!("\"{}\"", hex::encode(frame.bytes())));
        // Numbers, digits and texts of this crate, which need no escapes.
        let line = format!(
            "{{\"time_us\":{},\"way\":\"{}\",\"reason\":\"{reason}\",\"system\":{},\"component\":{},\"message\":{},\
             \"bytes\":{},\"frame\":{}}}\n",
            micros(),
            way.name(),
            of_frame(|frame| u64::from(frame.system_id())),
            of_frame(|frame| u64::from(frame.component_id())),
            of_frame(|frame| u64::from(frame.message_id())),
            bytes.len(),
            shown.as_deref().unwrap_or("null"),
        );
        self.queue.push(FlightRecordKind::Dropped, &[line.as_bytes()]);
    }

    pub(crate) fn status(&self) -> FlightLogStatus {
        FlightLogStatus { directory: self.directory.clone(), ..self.queue.status() }
    }
}

impl Drop for FlightLog {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Tells whether a log must not hold the frame.
fn is_secret(bytes: &[u8]) -> bool {
    Frame::parse(bytes).is_ok_and(|frame| SECRET.contains(&frame.message_id()))
}

/// Microseconds since 1970, by this machine's clock, be it set or not: a log is of use either way.
fn micros() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bridge is a driver, and tlogs are stamped with the wall clock"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    /// Frames with their stamps, as a reader of tlogs takes them.
    fn read_tlog(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some((stamp, rest)) = bytes.split_first_chunk::<8>() {
            let Ok((frame, rest)) = Frame::split(rest) else { break };
            frames.push((u64::from_be_bytes(*stamp), frame.bytes().to_vec()));
            bytes = rest;
        }
        frames
    }

    /// A frame of a system and a message, whose check sum is not looked at.
    fn frame(system: u8, id: u32, payload: &[u8]) -> Vec<u8> {
        let (len, [low, middle, high, _]) = (u8::try_from(payload.len()).unwrap(), id.to_le_bytes());
        let header = [0xfd, len, 0, 0, 0, system, 1, low, middle, high];
        [&header[..], payload, &[0, 0]].concat()
    }

    fn text(system: u8, text: &str) -> Vec<u8> {
        frame(system, 253, text.as_bytes())
    }

    fn of_message(id: u32) -> Vec<u8> {
        frame(7, id, &[0x5e, 0xc4])
    }

    fn content(directory: &Path, ending: &str) -> Vec<u8> {
        let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.to_string_lossy().ends_with(ending));
        paths.sort();
        paths.iter().flat_map(|path| fs::read(path).unwrap()).collect()
    }

    /// Ends the log and waits until all is written.
    fn run(directory: &Path, log: impl FnOnce(&FlightLog)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            log(&FlightLog::start(FlightLogSettings::new(directory.into(), 0)));
        });
    }

    #[test]
    fn what_passed_is_a_tlog_and_what_was_dropped_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("logs");
        let before = micros();
        run(&inside, |log| {
            log.passed(FrameDirection::ToGroup, &text(7, "one"));
            log.passed(FrameDirection::FromGroup, &text(9, "two"));
            log.dropped(FrameDirection::FromGroup, FrameDrop::UnsignedCommand, &text(9, "three"));
            log.dropped(FrameDirection::FromGroup, FrameDrop::Malformed, b"rubbish");
            log.dropped(FrameDirection::Local, FrameDrop::BadLocalSignature, b"");
        });
        let frames = read_tlog(&content(&inside, ".tlog"));
        assert_eq!(
            frames.iter().map(|(_, frame)| frame.clone()).collect::<Vec<_>>(),
            [text(7, "one"), text(9, "two")]
        );
        assert_eq!(frames.iter().map(|(stamp, _)| stamp & 3).collect::<Vec<_>>(), [0, 1]);
        assert!(frames.iter().all(|(stamp, _)| (before - 3..micros() + 1).contains(stamp)));
        let lines = String::from_utf8(content(&inside, ".dropped.jsonl")).unwrap();
        let frame = hex::encode(text(9, "three"));
        let expected = [
            format!(
                "\"way\":\"from group\",\"reason\":\"unsigned command\",\"system\":9,\"component\":1,\"message\":253,\
                 \"bytes\":17,\"frame\":\"{frame}\"}}"
            ),
            "\"way\":\"from group\",\"reason\":\"malformed\",\"system\":null,\"component\":null,\"message\":null,\
             \"bytes\":7,\"frame\":null}"
                .to_owned(),
            "\"way\":\"local\",\"reason\":\"bad local signature\",\"system\":null,\"component\":null,\
             \"message\":null,\"bytes\":0,\"frame\":null}"
                .to_owned(),
        ];
        assert_eq!(lines.lines().count(), 3);
        for (line, expected) in lines.lines().zip(expected) {
            let (time, rest) = line.strip_prefix("{\"time_us\":").unwrap().split_once(',').unwrap();
            assert!((before..=micros()).contains(&time.parse::<u64>().unwrap()), "{line}");
            assert_eq!(rest, expected);
        }
        // Flights are nobody else's business.
        for entry in fs::read_dir(&inside).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn keys_and_passwords_are_in_no_log() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), |log| {
            for id in SECRET {
                log.passed(FrameDirection::ToGroup, &of_message(id));
                log.dropped(FrameDirection::ToGroup, FrameDrop::NoKey, &of_message(id));
                // Within what is no frame, too.
                log.dropped(
                    FrameDirection::FromGroup,
                    FrameDrop::Malformed,
                    &[b"..".to_vec(), of_message(id)].concat(),
                );
            }
            log.passed(FrameDirection::ToGroup, &of_message(30));
            assert_eq!(log.status().withheld, 2 * SECRET.len() as u64);
        });
        assert_eq!(read_tlog(&content(directory.path(), ".tlog")).len(), 1);
        let lines = String::from_utf8(content(directory.path(), ".dropped.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 2 * SECRET.len());
        assert!(!lines.contains("5ec4"), "{lines}");
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_its_reason_named() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("taken");
        fs::write(&taken, "a file where the directory is to be").unwrap();
        run(&taken, |log| {
            let began = tokio::time::Instant::now();
            log.passed(FrameDirection::ToGroup, &text(7, "one"));
            while log.status().trouble.is_none() {
                assert!(began.elapsed() < Duration::from_secs(60), "in vain");
                std::thread::sleep(Duration::from_millis(5));
            }
            log.passed(FrameDirection::ToGroup, &text(7, "two"));
            while log.status().lost < 2 {
                assert!(began.elapsed() < Duration::from_secs(60), "in vain");
                std::thread::sleep(Duration::from_millis(5));
            }
            let status = log.status();
            assert_eq!((status.written, status.bytes), (0, 0));
            assert!(status.trouble.unwrap().contains("taken"));
        });
        assert!(fs::read_to_string(&taken).unwrap().starts_with("a file"));
    }
}
