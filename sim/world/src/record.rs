//! Records as the simulated world's disks hold them: counted, compacted, traced.

use std::convert::Infallible;

use quiver_enrolment::KgcRecord;
use quiver_group::LeaderRecord;
use quiver_machine::{Either, Snapshot};

/// A record of a node, as the world stores it.
pub(crate) trait Record: Clone {
    /// Bytes on the disk.
    fn bytes(&self) -> usize;
    /// The record in no more memory than it needs.
    fn compact(self) -> Self;
    /// Feeds the record's content to a digest.
    fn digest(&self, sink: &mut dyn FnMut(&[u8]));
    /// Returns true if it binds a token to a key.
    fn is_pin(&self) -> bool {
        false
    }
}

/// Records that are bytes and nothing else.
macro_rules! stored_as_bytes {
    ($($record:ty),+) => {$(
        impl Record for $record {
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

/// Records of a node that persists nothing.
impl Record for Infallible {
    fn bytes(&self) -> usize {
        match *self {}
    }

    fn compact(self) -> Self {
        self
    }

    fn digest(&self, _: &mut dyn FnMut(&[u8])) {
        match *self {}
    }
}

/// Records of a role and of the parts beside it.
impl<L: Record, R: Record> Record for Either<L, R> {
    fn bytes(&self) -> usize {
        match self {
            Self::Left(record) => record.bytes(),
            Self::Right(record) => record.bytes(),
        }
    }

    fn compact(self) -> Self {
        match self {
            Self::Left(record) => Self::Left(record.compact()),
            Self::Right(record) => Self::Right(record.compact()),
        }
    }

    fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Left(record) => record.digest(sink),
            Self::Right(record) => record.digest(sink),
        }
    }

    fn is_pin(&self) -> bool {
        match self {
            Self::Left(record) => record.is_pin(),
            Self::Right(record) => record.is_pin(),
        }
    }
}

impl Record for KgcRecord {
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
    fn is_pin(&self) -> bool {
        // A drone's proof of its key binds its token as well.
        matches!(self, Self::Pinned { .. } | Self::Enrolled { .. })
    }
}
