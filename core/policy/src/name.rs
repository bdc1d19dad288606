//! Names of attributes.

use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::Fault;

/// Words that mean something in a policy, however they are written.
const KEYWORDS: [&str; 4] = ["and", "or", "of", "not"];

/// 1 to 128 bytes of printable characters, out of any script.
///
/// Two names are the same if their bytes are: `é` written as one character and as two are different names.
/// Control characters, spaces other than U+0020, and characters that show nothing or turn the reading
/// direction are refused, because a person must see what is granted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Debug)]
#[debug("{_0:?}")]
pub struct AttributeName(Arc<str>);

impl AttributeName {
    /// Bytes a name may have.
    pub const MAX_LEN: usize = 128;

    /// Checks a name.
    ///
    /// # Errors
    /// [`Fault::NameLength`], [`Fault::NameCharacter`].
    pub fn new(name: &str) -> Result<Self, Fault> {
        if name.is_empty() || name.len() > Self::MAX_LEN {
            return Err(Fault::NameLength);
        }
        match name.chars().find(|&c| !shows(c)) {
            Some(hidden) => Err(Fault::NameCharacter(hidden)),
            None => Ok(Self(name.into())),
        }
    }

    /// The characters, without quotation marks.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.lp(self.0.as_bytes());
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bytes = reader.lp(Self::MAX_LEN)?;
        let name = core::str::from_utf8(bytes).map_err(|_| Malformed("a name is not UTF-8"))?;
        Self::new(name).map_err(|_| Malformed("not a name"))
    }
}

/// Returns true if a character may be part of a name unquoted.
pub(crate) const fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-' | '/')
}

/// Returns true if a word is a keyword.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// Returns true if a character is visible and prints only itself: no control, no format character, no space
/// but U+0020, no private use.
pub(crate) fn shows(c: char) -> bool {
    let hidden = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || hidden)
}

impl fmt::Display for AttributeName {
    /// Writes the name as in a policy: quoted if it has to be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.chars().all(is_bare) && !is_keyword(&self.0) {
            return f.write_str(&self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

impl FromStr for AttributeName {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        Self::new(name)
    }
}

impl TryFrom<&str> for AttributeName {
    type Error = Fault;

    fn try_from(name: &str) -> Result<Self, Fault> {
        Self::new(name)
    }
}

impl Borrow<str> for AttributeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
