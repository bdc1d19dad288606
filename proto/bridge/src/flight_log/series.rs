//! A series of files, `quiver-NUMBER` and an ending: each has a length at most, and the oldest makes room for the next.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::records::Records;

const PREFIX: &str = "quiver-";
/// Digits of a file's number, so that names sort as numbers do.
const DIGITS: usize = 8;
/// Digits of the highest number.
const MOST_DIGITS: usize = 18;
/// Files of a series, because each start of a service begins one, however short.
const MOST_FILES: usize = 64;
/// Full files of a series.
const FULL_FILES: u64 = 8;

/// The file that is written.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    /// Bytes of whole records.
    len: u64,
    /// True if all of them are on the disk.
    synced: bool,
}

/// Files with one ending in a directory.
#[derive(Debug)]
pub(super) struct Series {
    directory: PathBuf,
    ending: &'static str,
    /// Bytes of all of them.
    limit: u64,
    current: Option<OpenFile>,
}

impl Series {
    pub(super) const fn new(directory: PathBuf, ending: &'static str, limit: u64) -> Self {
        Self { directory, ending, limit, current: None }
    }

    /// Appends records, in as many files as they need. Returns how many of them are written, and what hindered the
    /// others, with the place.
    pub(super) fn append(&mut self, records: &Records) -> (usize, u64, Result<(), (PathBuf, io::Error)>) {
        let (mut written, mut bytes) = (0, 0);
        while written < records.len() {
            match self.append_some(records, written) {
                Ok((some, len)) => (written, bytes) = (written + some, bytes + len),
                Err((place, error)) => {
                    self.abandon();
                    return (written, bytes, Err((place, error)));
                }
            }
        }
        (written, bytes, Ok(()))
    }

    fn append_some(&mut self, records: &Records, first: usize) -> Result<(usize, u64), (PathBuf, io::Error)> {
        let most = self.limit / FULL_FILES;
        let room =
            |current: &OpenFile| usize::try_from(most.saturating_sub(current.len)).unwrap_or(usize::MAX);
        let fits = self.current.as_ref().is_some_and(|current| records.fitting(first, room(current)).1 > 0);
        if !fits {
            // Before the file is left, because later syncs are of the next one alone.
            self.sync()?;
            let opened = self.open_next().map_err(|error| (self.directory.clone(), error))?;
            self.current = Some(opened);
        }
        let Some(current) = &mut self.current else { return Ok((0, 0)) };
        let (chunk, count) = records.fitting(first, room(current));
        if count == 0 {
            // Longer than a file can be: no record is.
            return Ok((1, 0));
        }
        current.file.write_all(chunk).map_err(|error| (current.path.clone(), error))?;
        (current.len, current.synced) = (current.len + chunk.len() as u64, false);
        Ok((count, chunk.len() as u64))
    }

    /// Has the disk take what is written, so that a loss of power costs a few seconds of a log.
    pub(super) fn sync(&mut self) -> Result<(), (PathBuf, io::Error)> {
        let Some(current) = self.current.as_mut().filter(|current| !current.synced) else { return Ok(()) };
        // Also if it fails: a second `fsync` may succeed although the system has dropped the pages.
        current.synced = true;
        current.file.sync_data().map_err(|error| (current.path.clone(), error))
    }

    /// Closes the file after a failure, without the part of a record that may have been written: a reader would
    /// take what follows it for the rest. The next record begins another file.
    pub(super) fn abandon(&mut self) {
        if let Some(current) = self.current.take() {
            // If that fails, too, readers meet a torn end.
            let _ = current.file.set_len(current.len);
        }
    }

    /// Begins the next file, once there is room for it.
    fn open_next(&self) -> io::Result<OpenFile> {
        // For this user alone, because a log shows where a vehicle was.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut held = self.held()?;
        let mut total: u64 = held.iter().map(|(_, len)| len).sum();
        let next = held.last().map_or(1, |(number, _)| number + 1);
        let most = self.limit / FULL_FILES;
        // Room for a full file, so that the series keeps to its limit while the file grows.
        while held.len() >= MOST_FILES || total + most > self.limit {
            if held.is_empty() {
                break;
            }
            let (oldest, len) = held.remove(0);
            fs::remove_file(self.path(oldest))?;
            total -= len;
        }
        let path = self.path(next);
        // New, because a file or link that somebody put there must not be written to.
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        Ok(OpenFile { file, path, len: 0, synced: true })
    }

    /// Numbers and lengths of the files that are there, the oldest first.
    fn held(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut held = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if let Some(number) = self.number(Path::new(&entry.file_name())) {
                held.push((number, entry.metadata()?.len()));
            }
        }
        // By number and not by time, because a vehicle's clock is often set after the start.
        held.sort_unstable();
        Ok(held)
    }

    /// The number in a file's name, if the file is of this series.
    fn number(&self, name: &Path) -> Option<u64> {
        let digits = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(self.ending)?;
        let is_number = (DIGITS..=MOST_DIGITS).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return None;
        }
        let number = digits.parse().ok()?;
        // A name with more zeros stands for the same number, and the series would remove the wrong file.
        (self.path(number).file_name() == name.file_name()).then_some(number)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{PREFIX}{number:0DIGITS$}{}", self.ending))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::records::{FlightRecordKind, RecordQueue};
    use super::*;

    const LIMIT: u64 = 80_000;

    fn records(count: usize, len: usize) -> Records {
        let queue = RecordQueue::default();
        (0..count).for_each(|number| queue.push(FlightRecordKind::Passed, &[&vec![number as u8; len]]));
        let [records, _] = queue.wait(Duration::ZERO).unwrap();
        assert_eq!(records.len(), count);
        records
    }

    fn files(directory: &Path) -> Vec<(String, u64)> {
        let mut files: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn files_are_bounded_hold_whole_records_and_the_oldest_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        // Files of others, which nobody counts or removes.
        for other in ["quiver-00000001.txt", "quiver-1.tlog", "flight.tlog", "quiver-x0000001.tlog"] {
            fs::write(directory.path().join(other), vec![0; 100_000]).unwrap();
        }
        let mut series = Series::new(directory.path().into(), ".tlog", LIMIT);
        for _ in 0..100 {
            let (written, bytes, result) = series.append(&records(30, 300));
            assert_eq!((written, bytes), (30, 9_000));
            result.unwrap();
            let ours: Vec<_> = files(directory.path())
                .into_iter()
                .filter(|(name, _)| series.number(Path::new(name)).is_some())
                .collect();
            assert!(ours.iter().map(|(_, len)| len).sum::<u64>() <= LIMIT, "{ours:?}");
            assert!(ours.iter().all(|(_, len)| *len <= LIMIT / 8 && len % 300 == 0), "{ours:?}");
        }
        let ours: Vec<_> = files(directory.path())
            .into_iter()
            .filter(|(name, _)| series.number(Path::new(name)).is_some())
            .collect();
        assert_eq!(ours.len(), 8);
        // 100 times 9,000 bytes in files of 9,900.
        assert_eq!(ours.last().unwrap().0, "quiver-00000091.tlog");
        assert_eq!(files(directory.path()).len(), 12);
    }

    #[test]
    fn starts_without_traffic_leave_a_bounded_number_of_files() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 * MOST_FILES {
            let mut series = Series::new(directory.path().into(), ".tlog", LIMIT);
            series.append(&records(1, 10)).2.unwrap();
        }
        assert_eq!(files(directory.path()).len(), MOST_FILES);
        assert_eq!(files(directory.path()).last().unwrap().0, format!("quiver-{:08}.tlog", 2 * MOST_FILES));
    }

    #[test]
    fn failure_names_the_place_keeps_what_was_written_and_begins_another_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut series = Series::new(directory.path().into(), ".tlog", LIMIT);
        series.append(&records(3, 100)).2.unwrap();
        // A descriptor that nothing can be written to, after part of a record was.
        let current = series.current.as_mut().unwrap();
        current.file.write_all(b"part of a record").unwrap();
        let read_only = File::open(&current.path).unwrap();
        let writable = std::mem::replace(&mut current.file, read_only);
        let (written, _, result) = series.append(&records(1, 100));
        let (place, _) = result.unwrap_err();
        assert_eq!((written, place), (0, directory.path().join("quiver-00000001.tlog")));
        drop(writable);
        series.append(&records(1, 100)).2.unwrap();
        assert_eq!(files(directory.path()).len(), 2);
        assert_eq!(files(directory.path())[1], ("quiver-00000002.tlog".into(), 100));
    }

    #[test]
    fn part_of_a_record_is_cut_off_when_a_file_is_abandoned() {
        let directory = tempfile::tempdir().unwrap();
        let mut series = Series::new(directory.path().into(), ".tlog", LIMIT);
        series.append(&records(3, 100)).2.unwrap();
        series.current.as_mut().unwrap().file.write_all(b"part of a record").unwrap();
        series.abandon();
        assert_eq!(files(directory.path()), [("quiver-00000001.tlog".into(), 300)]);
    }
}
