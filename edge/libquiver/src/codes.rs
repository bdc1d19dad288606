//! Numbers of the interface. They do not change; new ones may come.

/// Version of the interface that this header describes: for `quiver_open`.
pub const QUIVER_ABI_VERSION: u32 = 1;

/// The longest message, in bytes.
pub const QUIVER_MAX_MESSAGE: usize = 65536;
/// Length of an exported key, in bytes.
pub const QUIVER_KEY_LEN: usize = 32;

/// Done.
pub const QUIVER_OK: i32 = 0;
/// It failed for a reason that has no code of its own.
pub const QUIVER_ERROR_FAILED: i32 = 1;
/// An argument, an option or a file that was given is wrong.
pub const QUIVER_ERROR_USAGE: i32 = 2;
/// A service understood and refused.
pub const QUIVER_ERROR_REFUSED: i32 = 3;
/// Another process or another drone of this one uses the data directory.
pub const QUIVER_ERROR_BUSY: i32 = 5;
/// Wrong passphrase or key, or a file that others may read.
pub const QUIVER_ERROR_LOCKED: i32 = 6;
/// The state file is damaged, or of another role or deployment.
pub const QUIVER_ERROR_BAD_STATE: i32 = 7;
/// Not done in the time given.
pub const QUIVER_ERROR_TIMED_OUT: i32 = 8;
/// The drone is not, or not yet, in step with its group.
pub const QUIVER_ERROR_NOT_JOINED: i32 = 9;
/// The drone was closed.
pub const QUIVER_ERROR_CLOSED: i32 = 10;
/// The library has another version than the header that the application was compiled with.
pub const QUIVER_ERROR_VERSION: i32 = 11;
/// The process is a fork of the one that opened the drone.
pub const QUIVER_ERROR_FORKED: i32 = 12;
/// The library has panicked: a bug.
pub const QUIVER_ERROR_PANICKED: i32 = 13;

/// The KGC has issued this drone's key: `name` is the drone's.
pub const QUIVER_EVENT_ENROLLED: u32 = 1;
/// There is a connection with a `service`.
pub const QUIVER_EVENT_CONNECTED: u32 = 2;
/// A connection with a `service` is lost; a leader is dialled again.
pub const QUIVER_EVENT_DISCONNECTED: u32 = 3;
/// The key of the epoch `term`, `counter` with this `digest` is in use; this drone has the `slot`. The first
/// one says that the drone has joined.
pub const QUIVER_EVENT_EPOCH: u32 = 4;
/// A message with `data` on a `channel`. If `is_signed`, the drone `name` has signed it, which is a leader if
/// `is_leader`; else some member sent it, which claims the `slot`.
pub const QUIVER_EVENT_MESSAGE: u32 = 5;
/// A `service` refuses this drone for a `reason`. If `is_transient`, the same request may succeed later.
pub const QUIVER_EVENT_REFUSED: u32 = 6;
/// The drone has left the group, as it was told.
pub const QUIVER_EVENT_LEFT: u32 = 7;
/// The drone was evicted from the group.
pub const QUIVER_EVENT_EVICTED: u32 = 8;
/// The leader `name` has signed two headers for one epoch, and is refused for good.
pub const QUIVER_EVENT_LEADER_REFUSED: u32 = 9;

/// A key generation centre.
pub const QUIVER_SERVICE_KGC: u32 = 1;
/// A leader or a deputy.
pub const QUIVER_SERVICE_LEADER: u32 = 2;

/// It asks the KGC for its key.
pub const QUIVER_STANDING_ENROLLING: u32 = 0;
/// It asks to be admitted, or is not in step with the group: it neither sends nor receives.
pub const QUIVER_STANDING_JOINING: u32 = 1;
/// It is a member, in step with the group.
pub const QUIVER_STANDING_MEMBER: u32 = 2;
/// It has left, as it was told.
pub const QUIVER_STANDING_LEFT: u32 = 3;
/// It was evicted.
pub const QUIVER_STANDING_EVICTED: u32 = 4;
/// The KGC has revoked it: it is not admitted again under its key.
pub const QUIVER_STANDING_REVOKED: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_edge::{ErrorKind, MAX_MESSAGE, MembershipStanding};

    #[test]
    fn numbers_are_those_of_the_library() {
        let errors = [
            (QUIVER_ERROR_FAILED, ErrorKind::Failed),
            (QUIVER_ERROR_USAGE, ErrorKind::Usage),
            (QUIVER_ERROR_REFUSED, ErrorKind::Refused),
            (QUIVER_ERROR_BUSY, ErrorKind::Busy),
            (QUIVER_ERROR_LOCKED, ErrorKind::Locked),
            (QUIVER_ERROR_BAD_STATE, ErrorKind::BadState),
            (QUIVER_ERROR_TIMED_OUT, ErrorKind::TimedOut),
            (QUIVER_ERROR_NOT_JOINED, ErrorKind::NotJoined),
            (QUIVER_ERROR_CLOSED, ErrorKind::Closed),
            (QUIVER_ERROR_VERSION, ErrorKind::Version),
            (QUIVER_ERROR_FORKED, ErrorKind::Forked),
            (QUIVER_ERROR_PANICKED, ErrorKind::Panicked),
        ];
        errors.iter().for_each(|(code, kind)| assert_eq!(*code, *kind as i32));
        let standings = [
            (QUIVER_STANDING_ENROLLING, MembershipStanding::Enrolling),
            (QUIVER_STANDING_JOINING, MembershipStanding::Joining),
            (QUIVER_STANDING_MEMBER, MembershipStanding::Member),
            (QUIVER_STANDING_LEFT, MembershipStanding::Left),
            (QUIVER_STANDING_EVICTED, MembershipStanding::Evicted),
            (QUIVER_STANDING_REVOKED, MembershipStanding::Revoked),
        ];
        standings.iter().for_each(|(code, standing)| assert_eq!(*code, *standing as u32));
        assert_eq!(QUIVER_MAX_MESSAGE, MAX_MESSAGE);
    }
}
