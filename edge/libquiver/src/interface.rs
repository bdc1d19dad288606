//! The functions of the interface.
#![expect(unsafe_code, reason = "functions for C take pointers and have names of their own")]

use std::ffi::{CStr, c_char};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use quiver_edge::{Edge, Error, ErrorKind, Result};

use crate::event::OwnedEvent;
use crate::guard::{guard, last_error};
use crate::pointers::{reference, slice, text, write};
use crate::{
    QUIVER_ABI_VERSION, QUIVER_KEY_LEN, QUIVER_MAX_MESSAGE, QuiverEvent, QuiverOptions, QuiverState,
};

/// The version of the crate, with a NUL at its end.
const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// A drone.
pub struct QuiverEdge(Edge);

impl fmt::Debug for QuiverEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The version of the library, for people: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn quiver_version() -> *const c_char {
    CStr::from_bytes_with_nul(VERSION).unwrap_or_default().as_ptr()
}

/// The version of the interface that the library has: QUIVER_ABI_VERSION of its own header.
#[unsafe(no_mangle)]
pub extern "C" fn quiver_abi_version() -> u32 {
    QUIVER_ABI_VERSION
}

/// Whether the library has the interface of this version. Pass QUIVER_ABI_VERSION. `quiver_open` checks it,
/// too.
#[unsafe(no_mangle)]
pub extern "C" fn quiver_check_version(abi_version: u32) -> i32 {
    guard(|| check_version(abi_version))
}

fn check_version(given: u32) -> Result<()> {
    if given == QUIVER_ABI_VERSION {
        return Ok(());
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "the application was compiled for version {given} of libquiver's interface, this library ({version}) has version \
         {QUIVER_ABI_VERSION}: compile it with this library's quiver.h, or install the other library"
    );
    Err(Error::new(ErrorKind::Version, text))
}

/// Reason of the last failure on this thread; empty if there was none. Valid until the next one
/// on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn quiver_last_error() -> *const c_char {
    last_error()
}

/// Opens the state in the data directory, and starts the drone: it enrols if it has not, joins its group and
/// stays in it. Returns once the state file is open and everything that was given fits together; it does not
/// wait for any service. `abi_version`: QUIVER_ABI_VERSION.
///
/// # Safety
/// `options` and every pointer in it is NULL or points to what is described; `edge` to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_open(
    abi_version: u32,
    options: *const QuiverOptions,
    edge: *mut *mut QuiverEdge,
) -> i32 {
    guard(|| {
        // Before anything is read: another version may have other options.
        check_version(abi_version)?;
        // SAFETY: as the caller vouches. On failure there is no drone.
        unsafe { write("edge", edge, std::ptr::null_mut()) }?;
        // SAFETY: as the caller vouches.
        let options = unsafe { reference("options", options) }?;
        // SAFETY: as the caller vouches.
        let opened = Edge::open(unsafe { options.read() }?)?;
        // SAFETY: as above. `quiver_free` takes the box back.
        unsafe { write("edge", edge, Box::into_raw(Box::new(QuiverEdge(opened)))) }
    })
}

/// Waits until the drone is a member of its group, in step with it. One that has left joins again.
///
/// # Safety
/// `edge` is NULL or a drone that was opened and not freed; so in all functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_join(edge: *const QuiverEdge, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller vouches.
    guard(|| unsafe { reference("edge", edge) }?.0.join(time(timeout_ms)))
}

/// Gives the next event, to be freed with `quiver_event_free`; QUIVER_ERROR_TIMED_OUT and NULL if there is
/// none in this time. After the last one, the error says why there will be no more.
///
/// # Safety
/// As `quiver_join`; `event` is NULL or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_next_event(
    edge: *const QuiverEdge,
    event: *mut *mut QuiverEvent,
    timeout_ms: i64,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches. Before an event is taken, which would be lost.
        unsafe { write("event", event, std::ptr::null_mut()) }?;
        // SAFETY: as the caller vouches.
        let edge = unsafe { reference("edge", edge) }?;
        let next = edge.0.next_event(time(timeout_ms))?;
        let next = next.ok_or_else(|| Error::new(ErrorKind::TimedOut, "no event in the time given"))?;
        let owned = Box::into_raw(OwnedEvent::of(next));
        // SAFETY: as above. `quiver_event_free` takes the box back; the event is the first field.
        unsafe { write("event", event, owned.cast()) }
    })
}

/// Frees an event, and erases its content. NULL is fine.
///
/// # Safety
/// `event` is NULL, or from `quiver_next_event` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_event_free(event: *mut QuiverEvent) {
    guard(|| {
        if !event.is_null() {
            // SAFETY: the box that `quiver_next_event` gave away, as the caller vouches.
            drop(unsafe { Box::from_raw(event.cast::<OwnedEvent>()) });
        }
        Ok(())
    });
}

/// Sends `data_len` bytes, at most QUIVER_MAX_MESSAGE, to the group on a channel of the application's (1 to 64
/// characters out of `A-Z a-z 0-9 . _ -`); signed if the others shall know who sent it. Returns once the
/// message was handed to the connection of the leader, without waiting for an answer: that is `quiver_flush`.
/// Members do not acknowledge messages.
///
/// # Safety
/// As `quiver_join`; `channel` is NULL or a string, `data` NULL or so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_send(
    edge: *const QuiverEdge,
    channel: *const c_char,
    data: *const u8,
    data_len: usize,
    is_signed: bool,
    timeout_ms: i64,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let edge = unsafe { reference("edge", edge) }?;
        // SAFETY: as the caller vouches.
        let channel = unsafe { text("channel", channel) }?;
        // SAFETY: as the caller vouches.
        let data = unsafe { slice(("data", QUIVER_MAX_MESSAGE), data, data_len) }?;
        edge.0.send(channel, data, is_signed, time(timeout_ms))
    })
}

/// Waits until the leader has answered after every message that was sent since the last call: one round trip,
/// at most five seconds, however many messages. QUIVER_ERROR_FAILED if some of them may be lost.
///
/// # Safety
/// As `quiver_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_flush(edge: *const QuiverEdge, timeout_ms: i64) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let edge = unsafe { reference("edge", edge) }?;
        edge.0.flush(time(timeout_ms))
    })
}

/// Writes a key of QUIVER_KEY_LEN bytes that every member that is in step derives under this name (1 to 64
/// characters out of `A-Z a-z 0-9 . _ -`), another one in each epoch, and the epoch's term and counter, where
/// these are not NULL. Erase the key after use.
///
/// # Safety
/// As `quiver_join`; `name` is NULL or a string, `key` NULL or `key_len` bytes, `term` and `counter` NULL or
/// room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_export_key(
    edge: *const QuiverEdge,
    name: *const c_char,
    key: *mut u8,
    key_len: usize,
    term: *mut u64,
    counter: *mut u64,
    timeout_ms: i64,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let edge = unsafe { reference("edge", edge) }?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text("name", name) }?;
        if key_len != QUIVER_KEY_LEN {
            let text = format!("`key_len` is {key_len}, a key has {QUIVER_KEY_LEN} bytes");
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let exported = edge.0.export_key(name, time(timeout_ms))?;
        // SAFETY: NULL, or room for 32 bytes, of which none needs an alignment.
        unsafe { write("key", key.cast::<[u8; QUIVER_KEY_LEN]>(), *exported.key.expose()) }?;
        for (place, number) in [(term, exported.term), (counter, exported.counter)] {
            if !place.is_null() {
                // SAFETY: as the caller vouches.
                unsafe { write("epoch", place, number) }?;
            }
        }
        Ok(())
    })
}

/// Writes how the drone is doing.
///
/// # Safety
/// As `quiver_join`; `state` is NULL or points to room for a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_status(edge: *const QuiverEdge, state: *mut QuiverState) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let status = unsafe { reference("edge", edge) }?.0.status()?;
        // SAFETY: as the caller vouches.
        unsafe { write("state", state, status.into()) }
    })
}

/// A file descriptor that is readable while an event is queued, and once the drone has ended: for `poll` and
/// the like. It is not to be read, written or closed, and valid until `quiver_free`. -1 for NULL.
///
/// # Safety
/// As `quiver_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_fd(edge: *const QuiverEdge) -> i32 {
    let mut descriptor = -1;
    guard(|| {
        // SAFETY: as the caller vouches.
        descriptor = unsafe { reference("edge", edge) }?.0.as_fd().as_raw_fd();
        Ok(())
    });
    descriptor
}

/// Leaves the group, and waits until the leader has made a key without this drone. `quiver_join` joins again.
///
/// # Safety
/// As `quiver_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_leave(edge: *const QuiverEdge, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller vouches.
    guard(|| unsafe { reference("edge", edge) }?.0.leave(time(timeout_ms)))
}

/// Stops the drone: it stays a member, and the next start goes on. Takes two seconds at most, after which the
/// data directory is free. Calls that wait, and later ones, fail with QUIVER_ERROR_CLOSED.
///
/// # Safety
/// As `quiver_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_close(edge: *const QuiverEdge) -> i32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        unsafe { reference("edge", edge) }?.0.close();
        Ok(())
    })
}

/// Closes the drone, if that was not done, and frees it. NULL is fine.
///
/// # Safety
/// `edge` is NULL or a drone that was opened and not freed, and no other call with it is under way or follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quiver_free(edge: *mut QuiverEdge) {
    guard(|| {
        if !edge.is_null() {
            // SAFETY: the box that `quiver_open` gave away, as the caller vouches.
            drop(unsafe { Box::from_raw(edge) });
        }
        Ok(())
    });
}

/// Less than 0 is for ever.
fn time(milliseconds: i64) -> Duration {
    u64::try_from(milliseconds).map_or(Duration::MAX, Duration::from_millis)
}
