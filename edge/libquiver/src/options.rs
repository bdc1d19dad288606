//! Options of a drone, as C gives them.
#![expect(unsafe_code, reason = "the pointers in the structure are read here")]

use std::ffi::c_char;
use std::time::Duration;

use quiver_edge::{Error, ErrorKind, Options, Result, Token, Unlock};

use crate::pointers::{optional_path, optional_text, slice, text};

/// The longest secret given as bytes, and the most addresses.
const MAX_SECRET: usize = 4096;
const MAX_ADDRESSES: usize = 64;

/// Options of a drone. Set all to zero, then what is needed.
#[repr(C)]
#[derive(Debug)]
pub struct QuiverOptions {
    /// Directory of the drone's state; made at the first start.
    pub data_dir: *const c_char,
    /// The passphrase of the state file. Either this or `key_file`.
    pub passphrase: *const u8,
    /// Its length.
    pub passphrase_len: usize,
    /// File with a key of 64 hex digits (mode 0600), or NULL.
    pub key_file: *const c_char,
    /// The public deployment file; needed at the first start, else NULL.
    pub deployment: *const c_char,
    /// File of the token to enrol with (mode 0600); needed at the first start, else NULL.
    pub token_file: *const c_char,
    /// Content of that file, in place of it, or NULL.
    pub token: *const u8,
    /// Its length.
    pub token_len: usize,
    /// The group to join. NULL: the one joined before, or the only one in the token.
    pub group: *const c_char,
    /// Multiaddresses of the group's leader and its deputies: at least one.
    pub leaders: *const *const c_char,
    /// How many.
    pub leaders_len: usize,
    /// Multiaddresses of KGCs, in place of those in the deployment file, or NULL.
    pub kgcs: *const *const c_char,
    /// How many.
    pub kgcs_len: usize,
    /// How long enrolling may take, in milliseconds; 0 for a minute.
    pub enrol_timeout_ms: u32,
}

impl QuiverOptions {
    /// Copies everything.
    ///
    /// # Safety
    /// Every pointer is NULL, or points to what its field says, which is not changed meanwhile.
    pub(crate) unsafe fn read(&self) -> Result<Options> {
        let usage = |text: &str| Err(Error::new(ErrorKind::Usage, text));
        // SAFETY: as the caller vouches; so are all below.
        let Some(data_dir) = (unsafe { optional_path("data_dir", self.data_dir) })? else {
            return usage("`data_dir` is NULL");
        };
        // SAFETY: see above.
        let passphrase = unsafe { slice(("passphrase", MAX_SECRET), self.passphrase, self.passphrase_len) }?;
        // SAFETY: see above.
        let unlock = match unsafe { optional_path("key_file", self.key_file) }? {
            None => Unlock::passphrase(passphrase),
            Some(path) if passphrase.is_empty() => Unlock::KeyFile(path),
            Some(_) => return usage("both `passphrase` and `key_file` are given: give one"),
        };
        let mut options = Options::new(data_dir, unlock);
        // SAFETY: see above.
        options.deployment = unsafe { optional_path("deployment", self.deployment) }?;
        // SAFETY: see above.
        let token = unsafe { slice(("token", MAX_SECRET), self.token, self.token_len) }?;
        // SAFETY: see above.
        options.token = match unsafe { optional_path("token_file", self.token_file) }? {
            Some(path) if token.is_empty() => Some(Token::File(path)),
            Some(_) => return usage("both `token_file` and `token` are given: give one"),
            None if token.is_empty() => None,
            None => Some(Token::text(token)),
        };
        // SAFETY: see above.
        options.group = unsafe { optional_text("group", self.group) }?.map(String::from);
        // SAFETY: see above.
        options.leaders = unsafe { addresses("leaders", self.leaders, self.leaders_len) }?;
        // SAFETY: see above.
        options.kgcs = unsafe { addresses("kgcs", self.kgcs, self.kgcs_len) }?;
        if self.enrol_timeout_ms > 0 {
            options.enrol_timeout = Duration::from_millis(self.enrol_timeout_ms.into());
        }
        Ok(options)
    }
}

/// # Safety
/// The pointer is NULL, or points to so many strings.
unsafe fn addresses(what: &str, pointer: *const *const c_char, length: usize) -> Result<Vec<String>> {
    // SAFETY: as the caller vouches.
    let list = unsafe { slice((what, MAX_ADDRESSES), pointer, length) }?;
    // SAFETY: as the caller vouches.
    list.iter().map(|&address| unsafe { text(what, address) }.map(String::from)).collect()
}
