//! `libquiver`: Quiver's edge drone for C and whatever speaks C. [`quiver_edge`] does the work; here pointers
//! become references, errors become codes, and panics stop.
//!
//! Rules of the interface, for whoever calls it:
//!
//! * Functions return `QUIVER_OK` or a `QUIVER_ERROR_…`; `quiver_last_error` then says what and where, in
//!   words, on the thread that called.
//! * Strings are UTF-8 and end with a NUL; they and all bytes given are copied before a function returns.
//! * Time limits are milliseconds; less than 0 is for ever, 0 does not wait.
//! * Any thread may call, several at once with one drone, except `quiver_free`, which is the last.
//! * `quiver_open` is given the version of the header that the application was compiled with. Another version
//!   of the library refuses it.
//! * No signal handler and no logger is installed, nothing is printed, and the threads of a drone take no
//!   signals. After `fork`, the child's calls fail with `QUIVER_ERROR_FORKED`; `quiver_free` is fine there.
//! * A panic, which is a bug, ends at the border as `QUIVER_ERROR_PANICKED`.
//!
//! The header `quiver.h` is made from this crate by cbindgen and checked in; a test compares them.

mod codes;
mod event;
mod guard;
mod interface;
mod options;
mod pointers;
mod state;

pub use self::codes::*;
pub use self::event::QuiverEvent;
pub use self::interface::*;
pub use self::options::QuiverOptions;
pub use self::state::QuiverState;
