//! Reads and writes what C points to. Here and in `interface` is all `unsafe` of the crate.
#![expect(unsafe_code, reason = "pointers from C become references here, each with its reason")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use quiver_edge::{Error, ErrorKind, Result};

/// The longest text, in bytes.
const MAX_TEXT: usize = 4096;

fn usage(text: String) -> Error {
    Error::new(ErrorKind::Usage, text)
}

/// The value that a pointer of this name points to.
///
/// # Safety
/// It is NULL, or points to a valid value that lives and is not changed for as long as `'a`.
pub(crate) unsafe fn reference<'a, T>(what: &str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: NULL becomes `None`; the caller vouches for the rest.
    unsafe { pointer.as_ref() }.ok_or_else(|| usage(format!("`{what}` is NULL")))
}

/// Writes a value to where a pointer of this name points.
///
/// # Safety
/// It is NULL, or points to room for a value, aligned.
pub(crate) unsafe fn write<T>(what: &str, pointer: *mut T, value: T) -> Result<()> {
    if pointer.is_null() {
        return Err(usage(format!("`{what}` is NULL")));
    }
    // SAFETY: not NULL; the caller vouches for the rest. The memory's former content is not read.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The text at a pointer of this name; `None` if it is NULL.
///
/// # Safety
/// It is NULL, or points to bytes that end with a NUL and live and are not changed for as long as `'a`.
pub(crate) unsafe fn optional_text<'a>(what: &str, pointer: *const c_char) -> Result<Option<&'a str>> {
    // SAFETY: handed on.
    let Some(bytes) = (unsafe { optional_string(what, pointer) })? else { return Ok(None) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(usage(format!("`{what}` is not UTF-8 at byte {}", error.valid_up_to()))),
    }
}

/// The same of a text that must be given.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str> {
    // SAFETY: handed on.
    unsafe { optional_text(what, pointer) }?.ok_or_else(|| usage(format!("`{what}` is NULL")))
}

/// The path at a pointer of this name: any bytes; `None` if it is NULL.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn optional_path(what: &str, pointer: *const c_char) -> Result<Option<PathBuf>> {
    // SAFETY: handed on.
    let bytes = unsafe { optional_string(what, pointer) }?;
    Ok(bytes.map(|bytes| OsStr::from_bytes(bytes).into()))
}

/// # Safety
/// As [`optional_text`].
unsafe fn optional_string<'a>(what: &str, pointer: *const c_char) -> Result<Option<&'a [u8]>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL; the caller vouches for the rest.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    if bytes.len() > MAX_TEXT {
        return Err(usage(format!("`{what}` has {} bytes, more than {MAX_TEXT}", bytes.len())));
    }
    Ok(Some(bytes))
}

/// `length` values at a pointer of this name, at most `most`; none if it is NULL, which only no values may be.
///
/// # Safety
/// It is NULL, or points to so many values that live and are not changed for as long as `'a`.
pub(crate) unsafe fn slice<'a, T>(
    (what, most): (&str, usize),
    pointer: *const T,
    length: usize,
) -> Result<&'a [T]> {
    match length {
        0 => Ok(&[]),
        _ if pointer.is_null() => Err(usage(format!("`{what}` is NULL, and its length is {length}"))),
        _ if length > most => Err(usage(format!("`{what}` has length {length}, more than {most}"))),
        // SAFETY: not NULL; at most `most` values, which the caller vouches for.
        _ => Ok(unsafe { std::slice::from_raw_parts(pointer, length) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn null_long_and_garbled_arguments_are_named() {
        let long = std::ffi::CString::new(vec![b'x'; MAX_TEXT + 1]).expect("no NUL");
        let latin = c"Z\xfcrich";
        // SAFETY: NULL or a string that lives.
        let refusal = |pointer| unsafe { text("channel", pointer) }.expect_err("refused").to_string();
        assert_eq!(refusal(null()), "`channel` is NULL");
        assert_eq!(refusal(latin.as_ptr()), "`channel` is not UTF-8 at byte 1");
        assert_eq!(refusal(long.as_ptr()), "`channel` has 4097 bytes, more than 4096");
        // SAFETY: NULL, or an array that lives; the length is looked at first.
        let refusal =
            |pointer, length| unsafe { slice::<u8>(("data", 3), pointer, length) }.expect_err("refused");
        assert_eq!(refusal(null(), 1).to_string(), "`data` is NULL, and its length is 1");
        assert_eq!(refusal([0; 4].as_ptr(), 4).to_string(), "`data` has length 4, more than 3");
        // SAFETY: NULL.
        assert_eq!(unsafe { slice::<u8>(("data", 3), null(), 0) }, Ok(&[][..]));
        // SAFETY: NULL.
        assert!(unsafe { reference::<u8>("edge", null()) }.is_err());
    }
}
