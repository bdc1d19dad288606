//! Names of drones, groups and deployments.

use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

use crate::Error;

/// 1 to 64 characters out of `A-Z a-z 0-9 . _ -`.
///
/// So small an alphabet has one spelling per name, and needs no escaping in a file name, a topic or a log
/// line.
///
/// Shared by its clones: a header is cloned, and has several names.
#[derive(Clone, Eq, PartialOrd, Ord, derive_more::Debug)]
#[debug("{_0:?}")]
pub struct Name(Arc<str>);

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Name {
    /// Bytes a name may have.
    pub const MAX_LEN: usize = 64;

    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::InvalidName`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > Self::MAX_LEN || !name.bytes().all(allowed) {
            return Err(Error::InvalidName);
        }
        Ok(Self(name.into()))
    }

    /// Checks a name that came as bytes.
    ///
    /// # Errors
    /// [`Error::InvalidName`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::new(core::str::from_utf8(bytes).map_err(|_| Error::InvalidName)?)
    }

    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The characters as bytes, 1 to 64.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl TryFrom<&str> for Name {
    type Error = Error;

    fn try_from(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
