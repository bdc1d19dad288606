//! State of a drone, as C reads it.

use std::ffi::c_char;

use quiver_edge::Status;

/// State of a drone.
#[repr(C)]
#[derive(Debug)]
pub struct QuiverState {
    /// One of `QUIVER_STANDING_…`.
    pub standing: u32,
    /// Its slot, if it has an epoch.
    pub slot: u32,
    /// Leaders and deputies that it has a connection with.
    pub leaders: u32,
    /// Whether it holds an epoch: the fields that follow count.
    pub has_epoch: bool,
    /// Term of the epoch: 65,536 times its round, plus the ordinal of the leader that opened it. The programs write round 3,
    /// ordinal 1 and counter 17 as `3-1.17`.
    pub term: u64,
    /// Counter of the epoch.
    pub counter: u64,
    /// End of the key's validity, seconds since 1970; 0 if that is not known.
    pub valid_until: u64,
    /// Messages that were dropped because the application took none for too long.
    pub dropped: u64,
    /// D of the epoch.
    pub digest: [u8; 32],
    /// Its name; empty before it has enrolled.
    pub name: [c_char; 65],
    /// The group that it is in or wants to be in; empty before that is known.
    pub group: [c_char; 65],
}

impl From<Status> for QuiverState {
    fn from(status: Status) -> Self {
        let (term, counter) = status.epoch.unwrap_or_default();
        Self {
            standing: status.standing as u32,
            slot: status.slot.unwrap_or_default(),
            leaders: status.leaders,
            has_epoch: status.epoch.is_some(),
            term,
            counter,
            valid_until: status.valid_until.unwrap_or_default(),
            dropped: status.dropped,
            digest: status.digest.unwrap_or_default(),
            name: array(status.name),
            group: array(status.group),
        }
    }
}

/// A name, of at most 64 bytes, and a NUL.
fn array(name: Option<String>) -> [c_char; 65] {
    let mut shown = [0; 65];
    let (room, text) = (shown.iter_mut().take(64), name.unwrap_or_default());
    room.zip(text.bytes()).for_each(|(to, from)| *to = from as c_char);
    shown
}
