//! Hello and welcome, which begin a session.

use alloc::string::String;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::LinkError;

/// Bytes that a group's name may have.
pub const MAX_GROUP_LEN: usize = 64;

/// The connections that a board wants. It always wants a leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    group: Option<String>,
    /// True if the board wants connections to the KGCs.
    pub kgc: bool,
}

impl Wants {
    /// Wants the messages of the group `group`, and the KGCs if `kgc`.
    ///
    /// # Errors
    /// [`LinkError::InvalidGroup`] unless the name has 1 to 64 letters, digits, `.`, `_` or `-`.
    pub fn new(group: Option<&str>, kgc: bool) -> Result<Self, LinkError> {
        if group.is_some_and(|name| !is_group(name.as_bytes())) {
            return Err(LinkError::InvalidGroup);
        }
        Ok(Self { group: group.map(String::from), kgc })
    }

    /// The group whose messages it wants.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }
}

fn is_group(name: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_GROUP_LEN).contains(&name.len()) && name.iter().all(allowed)
}

/// A board's first datagram, repeated whenever its wants change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Number of the start of the board, or of its session.
    pub boot: u32,
    /// Number of its wants: incremented with every change, modulo 256.
    pub revision: u8,
    /// The longest encoded message it takes, in bytes.
    pub max_message: u32,
    /// Number of fragments that may be under way to it.
    pub window: u8,
    /// Wants of the board.
    pub wants: Wants,
}

impl Hello {
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.boot).u8(self.revision).u32(self.max_message).u8(self.window);
        writer.u8(self.wants.kgc.into()).fixed(self.wants.group().unwrap_or_default().as_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (boot, revision) = (reader.u32()?, reader.u8()?);
        let (max_message, window) = (reader.u32()?, reader.u8()?);
        let kgc = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed("flag")),
        };
        let name = reader.take(reader.remaining())?;
        let group = match core::str::from_utf8(name) {
            Ok("") => None,
            Ok(text) => Some(text),
            Err(_) => return Err(Malformed("group")),
        };
        let wants = Wants::new(group, kgc).map_err(|_| Malformed("group"))?;
        Ok(Self { boot, revision, max_message, window, wants })
    }
}

/// A gateway's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayWelcome {
    /// The board's start that it answers.
    pub boot: u32,
    /// The board's wants that it has understood.
    pub revision: u8,
    /// The session.
    pub session: u32,
    /// The longest encoded message the gateway takes, in bytes.
    pub max_message: u32,
    /// Number of fragments that may be under way to it.
    pub window: u8,
    /// Seconds since 1970-01-01T00:00:00Z, as the gateway claims.
    pub unix_time: u64,
}

impl GatewayWelcome {
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.boot).u8(self.revision).u32(self.session);
        writer.u32(self.max_message).u8(self.window).u64(self.unix_time);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            boot: reader.u32()?,
            revision: reader.u8()?,
            session: reader.u32()?,
            max_message: reader.u32()?,
            window: reader.u8()?,
            unix_time: reader.u64()?,
        })
    }
}
