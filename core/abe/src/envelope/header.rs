//! The header of an envelope: the bytes before the chunks.
//!
//! ```text
//! envelope  = "QvE" ‖ version 1 ‖ lp(header) ‖ chunks
//! opening   = 1 ‖ prelude ‖ lp(KEM ciphertext) ‖ c2 (32)
//! prelude   = lp(scheme) ‖ lp(group) ‖ created (8) ‖ seconds (4) ‖ messages (4) ‖ lp(sender) ‖ signature length (2)
//! following = 2 ‖ session (32) ‖ number (4)
//! ```
//!
//! A sender is named if and only if it signs. The group is the one it is said to, and empty for what is said
//! to none, as a file: without it, what was signed for one group could be shown as said in another. The KEM
//! ciphertext names its authority and its policy or attributes.

use alloc::string::String;
use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_crypto::{Digest, Hasher};

use super::{EnvelopeError, MAX_AHEAD};

/// The format's name and version, at the start of an envelope.
const MAGIC: [u8; 4] = *b"QvE\x01";
/// Magic and length, in bytes.
const PREFIX_LEN: usize = 8;
const OPENING: u8 = 1;
const FOLLOWING: u8 = 2;

/// Longest KEM ciphertext in bytes.
pub const MAX_CIPHERTEXT_LEN: usize = 512 * 1024;
/// Longest public key of a sender in bytes.
pub const MAX_SENDER_LEN: usize = 2048;
/// Longest signature of a sender in bytes.
pub const MAX_SIGNATURE_LEN: usize = 512;
/// Longest header with all that precedes the chunks, in bytes.
pub const MAX_HEADER_LEN: usize = PREFIX_LEN + 1 + MAX_PRELUDE_LEN + 4 + MAX_CIPHERTEXT_LEN + 32;
const MAX_PRELUDE_LEN: usize = 4 + MAX_SCHEME_LEN + 4 + MAX_GROUP_LEN + 16 + 4 + MAX_SENDER_LEN + 2;
const MAX_SCHEME_LEN: usize = 32;
/// Longest name of a group in bytes.
pub const MAX_GROUP_LEN: usize = 64;

/// Time and number of messages of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    seconds: u32,
    messages: u32,
}

impl Lifetime {
    /// The longest time in seconds: seven days.
    pub const MAX_SECONDS: u32 = 7 * 86_400;
    /// The most messages.
    pub const MAX_MESSAGES: u32 = 1 << 20;
    /// A message, as in a file. Nothing follows, so no time matters.
    pub const SINGLE: Self = Self { seconds: 0, messages: 1 };

    /// A session of so many messages, within so many seconds of its opening.
    ///
    /// # Errors
    /// [`EnvelopeError::OutOfBounds`] if either is zero or above its bound.
    pub const fn new(seconds: u32, messages: u32) -> Result<Self, EnvelopeError> {
        if seconds == 0 || seconds > Self::MAX_SECONDS {
            return Err(EnvelopeError::OutOfBounds("the session's time"));
        }
        if messages == 0 || messages > Self::MAX_MESSAGES {
            return Err(EnvelopeError::OutOfBounds("the session's number of messages"));
        }
        Ok(Self { seconds, messages })
    }

    /// Lifetime in seconds.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.seconds
    }

    /// Number of messages.
    #[must_use]
    pub const fn messages(self) -> u32 {
        self.messages
    }

    /// Seconds after its opening for which a session is remembered. A single message cannot be followed, but
    /// it can be played again: it is remembered for a day.
    pub(super) const fn remembered(self) -> u32 {
        if self.seconds == 0 { 86_400 } else { self.seconds }
    }
}

impl Default for Lifetime {
    /// A day, 4,096 messages: [`MAX_AHEAD`](super::MAX_AHEAD), so that a receiver of only the first and the
    /// last opens both.
    fn default() -> Self {
        Self { seconds: 86_400, messages: MAX_AHEAD }
    }
}

/// Content of an opening before its key is encapsulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prelude {
    pub(super) scheme: String,
    /// The group of the session; empty if it has none.
    pub(super) group: String,
    pub(super) created: u64,
    pub(super) lifetime: Lifetime,
    /// Public key of the sender, in its own encoding; empty if it is unsigned.
    pub(super) sender: Vec<u8>,
    /// Bytes of each signature of the session; zero if it is unsigned.
    pub(super) signature_len: u16,
}

impl Prelude {
    pub(super) fn check(&self) -> Result<(), Malformed> {
        // §E1: the sender is empty if nobody signs, and only then.
        let unsigned = (self.sender.is_empty(), self.signature_len == 0);
        if unsigned.0 != unsigned.1 || usize::from(self.signature_len) > MAX_SIGNATURE_LEN {
            return Err(Malformed("sender and signature do not fit together"));
        }
        let Lifetime { seconds, messages } = self.lifetime;
        let session = Lifetime::new(seconds, messages).is_ok();
        if session || self.lifetime == Lifetime::SINGLE { Ok(()) } else { Err(Malformed("lifetime")) }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        // §E1: the prelude, in its order.
        writer.lp(self.scheme.as_bytes()).lp(self.group.as_bytes()).u64(self.created);
        writer.u32(self.lifetime.seconds).u32(self.lifetime.messages);
        writer.lp(&self.sender).u16(self.signature_len).finish()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let scheme = text(reader.lp(MAX_SCHEME_LEN)?, "scheme")?;
        let group = text(reader.lp(MAX_GROUP_LEN)?, "group")?;
        let created = reader.u64()?;
        let lifetime = Lifetime { seconds: reader.u32()?, messages: reader.u32()? };
        let prelude = Self {
            scheme,
            group,
            created,
            lifetime,
            sender: reader.lp(MAX_SENDER_LEN)?.to_vec(),
            signature_len: reader.u16()?,
        };
        prelude.check()?;
        Ok(prelude)
    }
}

fn text(bytes: &[u8], what: &'static str) -> Result<String, Malformed> {
    core::str::from_utf8(bytes).map(String::from).map_err(|_| Malformed(what))
}

/// The header of a session's first message: the encapsulated key and all it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    pub(super) prelude: Prelude,
    pub(super) ciphertext: Vec<u8>,
    /// c2: the seed under a mask that only the encapsulated key gives.
    pub(super) masked: [u8; 32],
}

impl Opening {
    /// Name of the scheme that encapsulates the key.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.prelude.scheme
    }

    /// The group of the session; `None` without one, as in a file. Genuine if it opens.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        Some(&*self.prelude.group).filter(|group| !group.is_empty())
    }

    /// Time at which the session began, in seconds since 1970, by its sender's clock.
    #[must_use]
    pub const fn created(&self) -> u64 {
        self.prelude.created
    }

    /// Time and number of messages of the session.
    #[must_use]
    pub const fn lifetime(&self) -> Lifetime {
        self.prelude.lifetime
    }

    /// The encoded KEM ciphertext, which names authority and policy or attributes.
    #[must_use]
    pub fn ciphertext(&self) -> &[u8] {
        &self.ciphertext
    }

    /// H(sender ‖ KEM ciphertext), which names the session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        // §E2: session = H("quiver/1 envelope session", sender, C).
        SessionId(
            Hasher::new("quiver/1 envelope session").lp(&self.prelude.sender).lp(&self.ciphertext).finish(),
        )
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let prelude = Prelude::read(reader)?;
        let ciphertext = reader.lp(MAX_CIPHERTEXT_LEN)?.to_vec();
        Ok(Self { prelude, ciphertext, masked: reader.array()? })
    }

    fn write(&self, writer: &mut Writer) {
        // §E1: 1 ‖ prelude ‖ lp(C) ‖ c2 opens a session, ...
        writer.u8(OPENING).fixed(&self.prelude.encode()).lp(&self.ciphertext).fixed(&self.masked);
    }
}

/// Names a session: 32 bytes, public.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 32]);

impl core::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl core::fmt::Display for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The header of a message after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    /// The session.
    pub session: SessionId,
    /// The message's number in it, from 1.
    pub number: u32,
}

/// The header before an envelope's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeHeader {
    /// The first message of a session.
    Opening(Opening),
    /// One of the others.
    Following(Following),
}

impl EnvelopeHeader {
    /// The session it belongs to.
    #[must_use]
    pub fn session(&self) -> SessionId {
        match self {
            Self::Opening(opening) => opening.session(),
            Self::Following(following) => following.session,
        }
    }

    /// The message's number in its session, from 0.
    #[must_use]
    pub const fn number(&self) -> u32 {
        match self {
            Self::Opening(_) => 0,
            Self::Following(following) => following.number,
        }
    }

    /// The encoding, with magic and length; at most [`MAX_HEADER_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Writer::new();
        match self {
            Self::Opening(opening) => opening.write(&mut body),
            Self::Following(following) => {
                // §E1: ... 2 ‖ session ‖ number goes on with it.
                body.u8(FOLLOWING).fixed(&following.session.0).u32(following.number);
            }
        }
        // §E1: "QvE" ‖ version 1 ‖ lp(header).
        Writer::new().fixed(&MAGIC).lp(&body.finish()).finish()
    }

    /// Bytes of the header that starts like this; `None` if the start is too short to tell. Nothing more than
    /// this many bytes needs to be read before [`decode`](Self::decode).
    ///
    /// # Errors
    /// [`EnvelopeError::NotAnEnvelope`], or [`EnvelopeError::Header`] if it is longer than
    /// [`MAX_HEADER_LEN`].
    pub fn len_of(start: &[u8]) -> Result<Option<usize>, EnvelopeError> {
        let shown = start.len().min(MAGIC.len());
        if start.get(..shown) != MAGIC.get(..shown) {
            return Err(EnvelopeError::NotAnEnvelope);
        }
        let Some((prefix, _)) = start.split_first_chunk::<PREFIX_LEN>() else {
            return Ok(None);
        };
        let [.., a, b, c, d] = *prefix;
        match usize::try_from(u32::from_be_bytes([a, b, c, d])) {
            Ok(len) if len <= MAX_HEADER_LEN - PREFIX_LEN => Ok(Some(PREFIX_LEN + len)),
            _ => Err(Malformed("header too long").into()),
        }
    }

    /// Decodes a header at the front of `bytes`, and returns the rest.
    ///
    /// # Errors
    /// [`EnvelopeError::NotAnEnvelope`], [`EnvelopeError::Truncated`], or [`EnvelopeError::Header`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), EnvelopeError> {
        let len = Self::len_of(bytes)?.ok_or(EnvelopeError::Truncated)?;
        let (header, rest) = bytes.split_at_checked(len).ok_or(EnvelopeError::Truncated)?;
        let mut reader = Reader::new(header);
        reader.take(PREFIX_LEN)?;
        let header = match reader.u8()? {
            OPENING => Self::Opening(Opening::read(&mut reader)?),
            FOLLOWING => Self::Following(read_following(&mut reader)?),
            _ => return Err(Malformed("kind of message").into()),
        };
        reader.end()?;
        Ok((header, rest))
    }

    /// The digest to which every chunk is bound.
    pub(super) fn digest(encoded: &[u8]) -> Digest {
        // §E3: the AAD of every chunk; K_0 is made of it, too (§E2).
        Hasher::new("quiver/1 envelope header").lp(encoded).finish()
    }
}

fn read_following(reader: &mut Reader<'_>) -> Result<Following, Malformed> {
    let following = Following { session: SessionId(reader.array()?), number: reader.u32()? };
    // Number 0 is the opening's.
    if (1..Lifetime::MAX_MESSAGES).contains(&following.number) {
        Ok(following)
    } else {
        Err(Malformed("number of the message"))
    }
}
