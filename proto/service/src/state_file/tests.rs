//! State files: round trips, one corruption at a time, interrupted and failed writes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn owner() -> Owner {
    Owner { role: "leader".into(), deployment: "alps".into(), fingerprint: [9; 32] }
}

fn key() -> Protection {
    Protection::Key(Secret::new([5; 32]))
}

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("tempdir") }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// A file with a snapshot of two records and three frames behind it.
    fn filled(&self) -> Vec<Vec<u8>> {
        let mut state = StateFile::create(&self.path(), &owner(), &key(), &["one", "two"]).expect("create");
        state.append(&["three"]).expect("append");
        state.append(&["four", "five"]).expect("append");
        state.append(&["six"]).expect("append");
        ["one", "two", "three", "four", "five", "six"].map(|text| text.as_bytes().to_vec()).to_vec()
    }

    fn open(&self) -> Result<(StateFile, Records)> {
        StateFile::open(&self.path(), &owner(), &key())
    }

    fn records(&self) -> Vec<Vec<u8>> {
        plain(&self.open().expect("open").1)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("read")
    }

    fn set_bytes(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("write");
    }
}

fn plain(records: &Records) -> Vec<Vec<u8>> {
    records.iter().map(|record| record.to_vec()).collect()
}

#[test]
fn records_come_back_in_order_after_reopening() {
    let bench = Bench::new();
    let expected = bench.filled();
    assert_eq!(bench.records(), expected);
    let mode = fs::metadata(bench.path()).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn appending_goes_on_after_reopening_and_replacing() {
    let bench = Bench::new();
    bench.filled();
    let (mut state, _) = bench.open().expect("open");
    state.replace(&["snapshot"]).expect("replace");
    state.append(&["delta"]).expect("append");
    drop(state);
    assert_eq!(bench.records(), [b"snapshot".to_vec(), b"delta".to_vec()]);
}

#[test]
fn nothing_of_a_record_stands_in_the_file() {
    let bench = Bench::new();
    let secret = b"a secret that must not be seen";
    StateFile::create(&bench.path(), &owner(), &key(), &[secret])
        .expect("create")
        .append(&[secret])
        .expect("append");
    assert!(!bench.bytes().windows(8).any(|window| secret.windows(8).any(|part| part == window)));
}

#[test]
fn replaced_file_shares_no_key_with_its_predecessor() {
    let bench = Bench::new();
    let mut state = StateFile::create(&bench.path(), &owner(), &key(), &["same"]).expect("create");
    let first = bench.bytes();
    state.replace(&["same"]).expect("replace");
    let second = bench.bytes();
    assert_eq!(first.len(), second.len());
    assert_ne!(first[first.len() - 24..], second[second.len() - 24..]);
    assert_ne!(state.header.file_key(&state.root).expose(), &[0; 32]);
}

#[test]
fn passphrase_opens_what_it_sealed_and_another_does_not() {
    let bench = Bench::new();
    let right = Protection::from_passphrase_text(b"correct horse", "t").expect("good");
    let wrong = Protection::from_passphrase_text(b"correct house", "t").expect("good");
    drop(StateFile::create(&bench.path(), &owner(), &right, &["one"]).expect("create"));
    assert_eq!(plain(&StateFile::open(&bench.path(), &owner(), &right).expect("open").1), [b"one".to_vec()]);
    let error = StateFile::open(&bench.path(), &owner(), &wrong).expect_err("refused");
    assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    let error = StateFile::open(&bench.path(), &owner(), &key()).expect_err("refused");
    assert!(matches!(error, Error::WrongProtection { flag: "--passphrase-file", .. }), "{error}");
}

#[test]
fn foreign_file_is_named_before_any_key_is_tried() {
    let bench = Bench::new();
    bench.filled();
    let wrong_key = Protection::Key(Secret::new([6; 32]));
    for other in [
        Owner { role: "edge".into(), ..owner() },
        Owner { deployment: "jura".into(), ..owner() },
        Owner { fingerprint: [8; 32], ..owner() },
    ] {
        let error = StateFile::open(&bench.path(), &other, &wrong_key).expect_err("refused");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("the leader of deployment alps"), "{error}");
    }
    assert!(matches!(StateFile::open(&bench.path(), &owner(), &wrong_key), Err(Error::WrongKey { .. })));
}

#[test]
fn file_of_something_else_or_of_the_future_is_refused() {
    let bench = Bench::new();
    bench.filled();
    let mut bytes = bench.bytes();
    bytes[9] = 2;
    bench.set_bytes(&bytes);
    assert!(matches!(bench.open(), Err(Error::NewerFormat { version: 2, .. })));
    bench.set_bytes(b"SQLite format 3\0 and so on");
    assert!(matches!(bench.open(), Err(Error::NotAStateFile { .. })));
    bench.set_bytes(b"");
    assert!(matches!(bench.open(), Err(Error::Corrupt { what: "the file is empty", .. })));
}

#[test]
fn file_that_others_may_read_is_refused() {
    let bench = Bench::new();
    bench.filled();
    fs::set_permissions(bench.path(), fs::Permissions::from_mode(0o644)).expect("chmod");
    assert!(matches!(bench.open(), Err(Error::TooOpen { mode: 0o644, .. })));
}

#[test]
fn two_processes_cannot_share_a_file() {
    let bench = Bench::new();
    bench.filled();
    let first = bench.open().expect("open");
    assert!(matches!(bench.open(), Err(Error::InUse { .. })));
    drop(first);
    bench.open().expect("open again");
}

#[test]
fn existing_file_is_never_created_over() {
    let bench = Bench::new();
    let expected = bench.filled();
    let error = StateFile::create(&bench.path(), &owner(), &key(), &["new"]).expect_err("refused");
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert_eq!(bench.records(), expected);
}

#[test]
fn interrupted_append_is_dropped_wherever_it_stopped() {
    let bench = Bench::new();
    let mut expected = bench.filled();
    let whole = bench.bytes();
    expected.pop();
    let last_frame = 32 + 4 + 3 + 16;
    for missing in 1..=last_frame {
        bench.set_bytes(&whole[..whole.len() - missing]);
        let (mut state, records) = bench.open().expect("open");
        assert_eq!(plain(&records), expected, "{missing} bytes missing");
        state.append(&["anew"]).expect("append");
        drop(state);
        assert_eq!(bench.records().last().expect("one"), b"anew");
    }
}

#[test]
fn file_that_grew_without_its_content_is_an_interrupted_append() {
    let bench = Bench::new();
    let expected = bench.filled();
    let whole = bench.bytes();
    for zeros in [1, 31, 32, 100, 5000] {
        bench.set_bytes(&[whole.clone(), vec![0; zeros]].concat());
        assert_eq!(bench.records(), expected, "{zeros} zeros");
    }
    let mut unwritten = whole;
    let end = unwritten.len();
    unwritten[end - 20..].fill(0);
    bench.set_bytes(&unwritten);
    assert_eq!(bench.records(), expected[..5]);
}

/// A file with a long last frame, where that begins, and its records.
fn with_long_last_frame(bench: &Bench) -> (Vec<u8>, usize, Vec<Vec<u8>>) {
    let expected = bench.filled();
    let start = bench.bytes().len();
    let (mut state, _) = bench.open().expect("open");
    state.append(&[vec![9; 10_000]]).expect("append");
    drop(state);
    (bench.bytes(), start, expected)
}

#[test]
fn append_of_which_any_blocks_did_not_reach_the_disk_is_an_interrupted_one() {
    let bench = Bench::new();
    let (whole, start, expected) = with_long_last_frame(&bench);
    let first = start.next_multiple_of(512);
    let starts = [start].into_iter().chain((first..whole.len()).step_by(512));
    let blocks: Vec<_> = starts.map(|from| from..(from + 1).next_multiple_of(512).min(whole.len())).collect();
    let zeroed = |lost: &mut dyn FnMut(usize) -> bool| {
        let mut bytes = whole.clone();
        for (number, block) in blocks.iter().enumerate() {
            if lost(number) {
                bytes[block.clone()].fill(0);
            }
        }
        bytes
    };
    // Each by itself; all up to one, its end being there; all from one on; every other one.
    let count = blocks.len();
    let patterns = (0..count).flat_map(|at| {
        [
            zeroed(&mut |block| block == at),
            zeroed(&mut |block| block < at + 1),
            zeroed(&mut |block| block >= at),
        ]
    });
    for bytes in patterns.chain([zeroed(&mut |block| block % 2 == 0), zeroed(&mut |block| block % 2 == 1)]) {
        bench.set_bytes(&bytes);
        let (mut state, records) = bench.open().expect("open");
        assert_eq!(plain(&records), expected);
        state.append(&["anew"]).expect("append");
        drop(state);
        assert_eq!(bench.records().last().expect("one"), b"anew");
    }
    // Also of pages that are written byte by byte.
    for unwritten in 8..100 {
        let mut bytes = whole.clone();
        bytes[start..start + unwritten].fill(0);
        bench.set_bytes(&bytes);
        assert_eq!(bench.records(), expected, "{unwritten} bytes at the start");
    }
}

#[test]
fn frame_that_was_acknowledged_is_damaged_whatever_part_of_it_is_lost() {
    let bench = Bench::new();
    let (whole, start, expected) = with_long_last_frame(&bench);
    let (mut state, _) = bench.open().expect("open");
    state.append(&["behind it"]).expect("append");
    state.append(&["and behind that"]).expect("append");
    drop(state);
    let longer = bench.bytes();
    for lost in [start..start + 20, start..start + 32, start..start + 4000, start + 600..start + 700] {
        let mut bytes = longer.clone();
        bytes[lost.clone()].fill(0);
        bench.set_bytes(&bytes);
        assert!(matches!(bench.open(), Err(Error::Corrupt { .. })), "{lost:?}");
    }
    // With small frames in the same block.
    let mut bytes = longer.clone();
    bytes[start - 100..whole.len() - 5000].fill(0);
    bench.set_bytes(&bytes);
    assert!(matches!(bench.open(), Err(Error::Corrupt { .. })));
    bench.set_bytes(&longer);
    assert_eq!(bench.records().len(), expected.len() + 3);
}

#[test]
fn last_frame_with_bytes_that_were_never_written_so_is_damaged() {
    let bench = Bench::new();
    let (whole, start, _) = with_long_last_frame(&bench);
    for at in [start, start + 3, start + 20, start + 40, start + 5000, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bench.set_bytes(&bytes);
        assert!(matches!(bench.open(), Err(Error::Corrupt { .. })), "{at}");
    }
}

#[test]
fn truncated_snapshot_is_damage() {
    let bench = Bench::new();
    drop(StateFile::create(&bench.path(), &owner(), &key(), &["one"]).expect("create"));
    let whole = bench.bytes();
    bench.set_bytes(&whole[..whole.len() - 1]);
    assert!(matches!(bench.open(), Err(Error::Corrupt { what: "the snapshot is cut short", .. })));
}

#[test]
fn frames_cannot_be_swapped_or_left_out() {
    let bench = Bench::new();
    let mut state = StateFile::create(&bench.path(), &owner(), &key(), &["0"]).expect("create");
    let start = bench.bytes().len();
    state.append(&["1"]).expect("append");
    state.append(&["2"]).expect("append");
    drop(state);
    let whole = bench.bytes();
    let frame = (whole.len() - start) / 2;
    let (head, frames) = whole.split_at(start);
    let (first, second) = frames.split_at(frame);
    bench.set_bytes(&[head, second, first].concat());
    assert!(matches!(bench.open(), Err(Error::Corrupt { .. })));
    bench.set_bytes(&[head, second].concat());
    assert!(matches!(bench.open(), Err(Error::Corrupt { .. })));
    bench.set_bytes(&[head, first, first].concat());
    assert!(matches!(bench.open(), Err(Error::Corrupt { .. })));
}

#[test]
fn full_disk_is_named_and_what_was_acknowledged_stays() {
    let bench = Bench::new();
    let mut expected = bench.filled();
    let (mut state, _) = bench.open().expect("open");
    // A device whose every write says that there is no space left.
    let full = OpenOptions::new().write(true).open("/dev/full").expect("open");
    let good = std::mem::replace(&mut state.file, full);
    let acknowledged = std::mem::take(&mut state.acknowledged);
    let error = state.append(&["lost"]).expect_err("disk full");
    assert!(error.to_string().contains("no space left"), "{error}");
    (state.file, state.acknowledged) = (good, acknowledged);
    // Half a frame, as a disk that fills up in the middle of it leaves it.
    let half = [bench.bytes(), vec![3; 17]].concat();
    bench.set_bytes(&half);
    state.append(&["kept"]).expect("append");
    drop(state);
    expected.push(b"kept".to_vec());
    assert_eq!(bench.records(), expected);
}

#[test]
fn failed_replacement_leaves_the_old_file() {
    let bench = Bench::new();
    let expected = bench.filled();
    let (mut state, _) = bench.open().expect("open");
    // A directory under the temporary name cannot be removed as a file.
    fs::create_dir(private_file::beside(&bench.path(), ".new")).expect("mkdir");
    state.replace(&["new"]).expect_err("fails");
    state.append(&["seven"]).expect("the old file still works");
    drop(state);
    assert_eq!(bench.records()[..6], expected);
}

#[test]
fn journal_is_outgrown_only_beyond_a_megabyte_and_the_snapshot() {
    let bench = Bench::new();
    let mut state = StateFile::create(&bench.path(), &owner(), &key(), &["one"]).expect("create");
    state.append(&[vec![0; 1 << 20]]).expect("append");
    assert!(state.journal_outgrown());
    state.replace(&[vec![0; 2 << 20]]).expect("replace");
    state.append(&[vec![0; 3 << 19]]).expect("append");
    assert!(!state.journal_outgrown());
}

#[test]
fn file_is_never_appended_to_beyond_what_is_read_at_a_start() {
    let bench = Bench::new();
    let mut expected = bench.filled();
    let (mut state, _) = bench.open().expect("open");
    let frame = 32 + 4 + 5 + 16;
    state.limit = state.acknowledged + frame;
    state.append(&["seven"]).expect("just fits");
    expected.push(b"seven".to_vec());
    let error = state.append(&["8"]).expect_err("no room");
    assert!(matches!(error, Error::JournalFull { .. }), "{error}");
    drop(state);
    assert_eq!(bench.records(), expected, "what was acknowledged is read");
    let (mut state, _) = bench.open().expect("open");
    state.limit = bench.bytes().len() as u64;
    state.append(&["8"]).expect_err("no room");
    state.replace(&["all of it"]).expect("a snapshot makes room");
    state.append(&["8"]).expect("there is room");
    drop(state);
    assert_eq!(bench.records(), [b"all of it".to_vec(), b"8".to_vec()]);
}

#[test]
fn kill_at_any_point_of_a_replacement_loses_nothing_acknowledged() {
    let bench = Bench::new();
    let before = bench.filled();
    let old = bench.bytes();
    let (mut state, _) = bench.open().expect("open");
    state.replace(&["all of it"]).expect("replace");
    drop(state);
    let new = bench.bytes();
    let beside = private_file::beside(&bench.path(), ".new");
    // Until it is renamed, the new file is beside the old one, as long as it got.
    for length in 0..=new.len() {
        bench.set_bytes(&old);
        fs::write(&beside, &new[..length]).expect("write");
        let (mut state, records) = bench.open().expect("open");
        assert_eq!(plain(&records), before, "killed after {length} bytes");
        if length % 16 == 0 {
            state.append(&["after"]).expect("the old file goes on");
            state.replace(&["all of it", "after"]).expect("a leftover is in nobody's way");
            drop(state);
            assert_eq!(bench.records(), [b"all of it".to_vec(), b"after".to_vec()]);
        }
    }
    // Renamed, and killed before anything was appended, or in the middle of that.
    for rest in 0..40 {
        bench.set_bytes(&[new.clone(), vec![0; rest]].concat());
        assert_eq!(bench.records(), [b"all of it".to_vec()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No single flipped bit goes unnoticed: the file opens with an error, or (if the flip made the last
    /// frame look interrupted, which only zeroing its tag could) not at all differently.
    #[test]
    fn any_flipped_bit_is_an_error(position in 0usize..10_000, bit in 0u8..8) {
        let bench = Bench::new();
        bench.filled();
        let mut bytes = bench.bytes();
        let position = position % bytes.len();
        bytes[position] ^= 1 << bit;
        bench.set_bytes(&bytes);
        prop_assert!(bench.open().is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let bench = Bench::new();
        drop(StateFile::create(&bench.path(), &owner(), &key(), &["one"]).expect("create"));
        let head = bench.bytes();
        bench.set_bytes(&bytes);
        fs::set_permissions(bench.path(), fs::Permissions::from_mode(0o600)).expect("chmod");
        prop_assert!(bench.open().is_err());
        bench.set_bytes(&[&head[..10], &bytes].concat());
        prop_assert!(bench.open().is_err());
    }
}
