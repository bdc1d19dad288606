//! The border: no panic crosses it, and every error becomes a code and words that its thread can ask for.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use quiver_edge::{Error, ErrorKind, Result};

use crate::QUIVER_OK;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Does what a function of the interface does, and says its code.
pub(crate) fn guard(work: impl FnOnce() -> Result<()>) -> i32 {
    // A panic may have left half done only what the handle has, whose locks are whole between two statements.
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Panicked, "libquiver has panicked: this is a bug in Quiver"))
    });
    match done {
        Ok(()) => QUIVER_OK,
        Err(error) => {
            // Words with a NUL in them come from arguments.
            let words = CString::new(error.to_string().replace('\0', "\\0")).unwrap_or_default();
            // While a thread ends it has no words.
            let _ = LAST_ERROR.try_with(|last| last.replace(words));
            error.kind() as i32
        }
    }
}

/// The words of the last error on this thread; valid until the next one.
pub(crate) fn last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QUIVER_ERROR_PANICKED, QUIVER_ERROR_USAGE};

    fn words() -> String {
        LAST_ERROR.with(|last| last.borrow().to_string_lossy().into_owned())
    }

    #[test]
    fn panic_becomes_a_code_and_the_thread_goes_on() {
        assert_eq!(guard(|| panic!("a bug")), QUIVER_ERROR_PANICKED);
        assert!(words().contains("panicked"));
        assert_eq!(guard(|| Ok(())), QUIVER_OK);
    }

    #[test]
    fn words_are_the_threads_own_and_may_contain_anything() {
        assert_eq!(guard(|| Err(Error::new(ErrorKind::Usage, "a\0b"))), QUIVER_ERROR_USAGE);
        assert_eq!(words(), "a\\0b");
        std::thread::spawn(|| assert_eq!(words(), "")).join().expect("joins");
    }

    #[test]
    fn every_function_of_the_interface_is_guarded() {
        let source = include_str!("interface.rs");
        let functions: Vec<_> = source.split("extern \"C\" fn ").skip(1).collect();
        assert!(functions.len() > 10);
        for function in functions {
            let name = function.split('(').next().unwrap_or_default();
            let unguarded = ["quiver_version", "quiver_abi_version", "quiver_last_error"].contains(&name);
            let body = function.split("\n}\n").next().unwrap_or_default();
            assert!(unguarded || body.contains("guard("), "{name}");
        }
    }
}
