//! A node's disk: keeps persisted records across crashes, can be full or fail.

use quiver_role::{KgcRecord, LeaderRecord, Snapshot};

use crate::kgc_node::KgcNodeRecord;

/// What a record must be for a disk.
pub(crate) trait Stored: Clone {
    /// Bytes on the disk.
    fn bytes(&self) -> usize;
    /// The record in no more memory than it needs.
    fn compact(self) -> Self;
    /// Feeds what the record says to a digest.
    fn digest(&self, sink: &mut dyn FnMut(&[u8]));
    /// Whether it binds a token to a key.
    fn is_pin(&self) -> bool {
        false
    }
}

/// Records that are bytes and nothing else.
macro_rules! stored_as_bytes {
    ($($record:ty),+) => {$(
        impl Stored for $record {
            fn bytes(&self) -> usize {
                self.as_bytes().len()
            }

            fn compact(self) -> Self {
                Self::new(self.as_bytes().to_vec())
            }

            fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
                sink(self.as_bytes());
            }
        }
    )+};
}

stored_as_bytes!(Snapshot, LeaderRecord);

impl Stored for KgcRecord {
    fn bytes(&self) -> usize {
        match self {
            Self::Issued { name, identity, reply, .. } => {
                16 + name.len() + identity.len() + 96 + reply.len() + 8
            }
            Self::Pinned { name, identity, .. } => 16 + name.len() + identity.len() + 64 + 8,
            Self::Contributed { .. } | Self::Enrolled { .. } => 16 + 32 + 8,
            Self::RevocationList { list, .. } => 8 + list.len(),
            Self::TokenRevoked { token_id } => token_id.len(),
        }
    }

    fn compact(self) -> Self {
        self
    }

    fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Issued { token_id, handle, pin, request, reply, .. } => {
                [&token_id[..], &handle[..], &pin[..], &request[..], &reply[..]].into_iter().for_each(sink);
            }
            Self::Pinned { token_id, pin, request, .. } => {
                [&token_id[..], &pin[..], &request[..]].into_iter().for_each(sink);
            }
            Self::Contributed { token_id, handle, .. } | Self::Enrolled { token_id, handle, .. } => {
                [&token_id[..], &handle[..]].into_iter().for_each(sink);
            }
            Self::RevocationList { list, .. } => sink(list),
            Self::TokenRevoked { token_id } => sink(token_id),
        }
    }
}

impl Stored for KgcNodeRecord {
    fn bytes(&self) -> usize {
        match self {
            Self::Kgc(record) => record.bytes(),
            Self::Released(record) => record.condition.as_str().len() + record.name.as_bytes().len() + 88,
        }
    }

    fn compact(self) -> Self {
        self
    }

    fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Kgc(record) => record.digest(sink),
            Self::Released(record) => {
                sink(record.condition.as_str().as_bytes());
                sink(&record.handle);
            }
        }
    }

    fn is_pin(&self) -> bool {
        // That a drone showed its key binds its token as well.
        matches!(self, Self::Kgc(KgcRecord::Pinned { .. } | KgcRecord::Enrolled { .. }))
    }
}

/// How a disk is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskState {
    /// It takes every record.
    #[default]
    Sound,
    /// It takes nothing until somebody makes room.
    Full,
    /// It fails so many writes, then works again.
    Failing(u32),
}

/// What a disk keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Every record.
    All,
    /// The newest record, which replaces all before it.
    Last,
    /// Nothing: the node is never restarted in this world, its writes are only counted.
    Nothing,
}

/// The disk of one node.
#[derive(Clone, Debug)]
pub(crate) struct Disk<R> {
    pub(crate) records: Vec<R>,
    pub(crate) keep: Keep,
    pub(crate) state: DiskState,
}

impl<R: Stored> Disk<R> {
    pub(crate) fn new(keep: Keep, records: Vec<R>) -> Self {
        Self { records, keep, state: DiskState::Sound }
    }

    /// Makes a record durable, or gives it back.
    pub(crate) fn write(&mut self, record: R) -> Result<(), R> {
        match &mut self.state {
            DiskState::Sound => {}
            DiskState::Full => return Err(record),
            DiskState::Failing(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.state = DiskState::Sound;
                }
                return Err(record);
            }
        }
        match self.keep {
            Keep::All => self.records.push(record.compact()),
            Keep::Last => {
                self.records.clear();
                self.records.push(record.compact());
            }
            Keep::Nothing => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(byte: u8) -> Snapshot {
        Snapshot::new(vec![byte])
    }

    #[test]
    fn a_disk_keeps_what_it_shall() {
        let (mut all, mut last) = (Disk::new(Keep::All, Vec::new()), Disk::new(Keep::Last, Vec::new()));
        let mut nothing = Disk::new(Keep::Nothing, Vec::new());
        for byte in 1..=3 {
            for disk in [&mut all, &mut last, &mut nothing] {
                disk.write(record(byte)).unwrap();
            }
        }
        assert_eq!(all.records, [record(1), record(2), record(3)]);
        assert_eq!(last.records, [record(3)]);
        assert!(nothing.records.is_empty());
    }

    #[test]
    fn a_full_disk_takes_nothing_and_a_failing_one_recovers() {
        let mut disk = Disk::new(Keep::All, Vec::new());
        disk.state = DiskState::Full;
        assert_eq!(disk.write(record(1)), Err(record(1)));
        disk.state = DiskState::Failing(2);
        assert_eq!(disk.write(record(1)), Err(record(1)));
        assert_eq!(disk.write(record(1)), Err(record(1)));
        assert_eq!(disk.write(record(1)), Ok(()));
        assert_eq!(disk.records, [record(1)]);
    }
}
