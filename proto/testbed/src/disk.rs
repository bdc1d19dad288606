//! A node's disk: keeps persisted records across crashes, can be full or fail.

/// State of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Display)]
pub enum DiskState {
    /// The disk takes every record.
    #[default]
    #[display("sound")]
    Sound,
    /// The disk takes nothing until somebody makes room.
    #[display("full")]
    Full,
    /// The disk fails this number of writes, then works again.
    #[display("fails {_0} writes")]
    Failing(u32),
}

/// Retention of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Every record.
    All,
    /// The newest record, which replaces all before it.
    Last,
    /// No records: the node is never restarted, its writes are only counted.
    Nothing,
}

/// The disk of one node.
#[derive(Clone, Debug)]
pub struct Disk<R> {
    /// Records on the disk, the newest last.
    pub records: Vec<R>,
    /// Retention of the records.
    pub keep: Keep,
    /// State of the disk.
    pub state: DiskState,
}

impl<R> Disk<R> {
    /// A sound disk that holds these records.
    pub fn new(keep: Keep, records: Vec<R>) -> Self {
        Self { records, keep, state: DiskState::Sound }
    }

    /// Makes a record durable.
    ///
    /// # Errors
    /// Gives the record back if the disk does not take it.
    pub fn write(&mut self, record: R) -> Result<(), R> {
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
            Keep::All => self.records.push(record),
            Keep::Last => {
                self.records.clear();
                self.records.push(record);
            }
            Keep::Nothing => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_keeps_what_it_shall() {
        let (mut all, mut last) = (Disk::new(Keep::All, Vec::new()), Disk::new(Keep::Last, Vec::new()));
        let mut nothing = Disk::new(Keep::Nothing, Vec::new());
        for byte in 1..=3 {
            for disk in [&mut all, &mut last, &mut nothing] {
                disk.write(byte).unwrap();
            }
        }
        assert_eq!(all.records, [1, 2, 3]);
        assert_eq!(last.records, [3]);
        assert!(nothing.records.is_empty());
    }

    #[test]
    fn a_full_disk_takes_nothing_and_a_failing_one_recovers() {
        let mut disk = Disk::new(Keep::All, Vec::new());
        disk.state = DiskState::Full;
        assert_eq!(disk.write(1), Err(1));
        disk.state = DiskState::Failing(2);
        assert_eq!(disk.write(1), Err(1));
        assert_eq!(disk.write(1), Err(1));
        assert_eq!(disk.write(1), Ok(()));
        assert_eq!(disk.records, [1]);
    }
}
