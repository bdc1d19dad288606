//! The process that a drone belongs to. A fork has none of the drone's threads, and perhaps a lock that one of
//! them held: it must be told before anything is locked.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Index of the start time in `/proc/self/stat`, counted from behind the name, which may contain anything.
const START: usize = 19;

/// Marks that distinguish a process from its forks. The number alone does not: a child in a PID namespace of its own
/// can have its parent's, and so can a later descendant once the parent has ended. Where there is no `/proc`, it
/// has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    number: u32,
    /// Device and inode of the PID namespace.
    namespace: Option<(u64, u64)>,
    /// Ticks from the machine's start to the process's.
    start: Option<u64>,
}

impl ProcessIdentity {
    /// The process that calls.
    pub(super) fn current() -> Self {
        Self { number: std::process::id(), namespace: namespace(), start: start() }
    }

    /// The number in its namespace.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// One with the same number, as a process has that was forked into a PID namespace of its own.
    #[cfg(test)]
    pub(super) fn fork_in_another_namespace(self) -> Self {
        Self { namespace: self.namespace.map(|(device, inode)| (device, inode + 1)), ..self }
    }

    /// Compares it with the process that calls. Values that cannot be read, as after a `chroot`, count as equal.
    pub(super) fn is_current(&self) -> bool {
        self.number == std::process::id() && !differ(self.namespace, namespace) && !differ(self.start, start)
    }
}

/// Tells that two values are known and not equal.
fn differ<T: PartialEq>(known: Option<T>, now: impl FnOnce() -> Option<T>) -> bool {
    known.is_some_and(|known| now().is_some_and(|now| now != known))
}

fn namespace() -> Option<(u64, u64)> {
    let found = fs::metadata("/proc/self/ns/pid").ok()?;
    Some((found.dev(), found.ino()))
}

fn start() -> Option<u64> {
    start_in(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn start_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(START)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_told_from_others_with_its_number() {
        let this = ProcessIdentity::current();
        assert!(this.is_current());
        assert!(this.namespace.is_some(), "Linux has namespaces");
        let start = this.start.expect("a start");
        for other in [
            ProcessIdentity { number: this.number + 1, ..this },
            this.fork_in_another_namespace(),
            ProcessIdentity { start: Some(start + 1), ..this },
        ] {
            assert!(!other.is_current(), "{other:?}");
        }
        assert!(
            ProcessIdentity { namespace: None, start: None, ..this }.is_current(),
            "unknown is no difference"
        );
    }

    #[test]
    fn start_time_is_found_behind_any_name() {
        let fields = (3..=52).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        for name in ["edge", "a b) (c", ")"] {
            assert_eq!(start_in(&format!("7 ({name}) {fields}\n")), Some(22));
        }
        for text in ["", "7 (edge)", "7 (edge) S 1", "7"] {
            assert_eq!(start_in(text), None);
        }
    }
}
