//! MAVLink 2 signing between one endpoint and the program behind it, with a key that both were given.
//!
//! It protects the wire to the autopilot and nothing else: on the air the group's datagrams do. Nothing here
//! ever sends `SETUP_SIGNING`; the key stays what it is while epochs change.
//!
//! A signature is the first 48 bits of SHA-256 over key, frame with check sum, link id and timestamp (mavlink.io,
//! "Message Signing"). The header is covered as it is sent, with the bytes that a source or target of 32 bits has
//! more; such a source is a stream under its whole number. A timestamp counts 10 µs since 2015, grows with each frame
//! of a link, and must not be received twice.
//!
//! Timestamps that were received are not kept over a restart. After one, the clock tells what is new: of a
//! stream that was not heard before, a frame of the last minute. So nothing is signed or verified while the
//! clock is not set: everything ever recorded would be new to a clock that begins in 1970, once for each
//! stream.

use alloc::{collections::BTreeMap, vec::Vec};
use core::{fmt, time::Duration};

use quiver_crypto::{
    Secret, ct_eq,
    sha256::{Digest as _, Sha256},
};

use crate::{
    error::MavlinkError,
    frame::{Frame, SIGNATURE_LEN},
};

/// Seconds from 1970 to 2015, where timestamps begin.
const EPOCH_2015: u64 = 1_420_070_400;
/// Units of a timestamp in a second.
const TICKS_PER_SECOND: u64 = 100_000;
/// Ticks that a timestamp may be behind a stream's first: a minute.
const MAX_BEHIND: u64 = 60 * TICKS_PER_SECOND;
/// Streams whose timestamps are remembered. More are refused, for one that was forgotten could be replayed.
const MAX_STREAMS: usize = 1_024;
/// Timestamps have 48 bits: until 2104.
const MAX_TIMESTAMP: u64 = (1 << 48) - 1;
/// `RADIO_STATUS`, which radios send unsigned.
const RADIO_STATUS: u32 = 109;

/// A key that an endpoint and the program behind it share.
pub struct SigningKey(Secret<32>);

/// Signs and verifies at one endpoint.
#[derive(Debug)]
pub struct Signing {
    key: SigningKey,
    link_id: u8,
    /// The newest timestamp, sent or received.
    newest: u64,
    /// The newest received timestamp of each system, component and link.
    streams: BTreeMap<(u32, u8, u8), u64>,
}

impl SigningKey {
    /// A key of 32 bytes.
    #[must_use]
    pub const fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// Reads a key written as 64 hexadecimal digits; white space around them does not count. Programs that
    /// ask for a passphrase use its SHA-256.
    ///
    /// # Errors
    /// Anything else; what it is is not repeated.
    pub fn from_hex(text: &str) -> Result<Self, MavlinkError> {
        let digits = text.trim().as_bytes();
        let mut key = quiver_crypto::Zeroizing::new([0; 32]);
        if digits.len() != 2 * key.len() {
            return Err(MavlinkError::SigningKey);
        }
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return Err(MavlinkError::SigningKey) };
            let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                return Err(MavlinkError::SigningKey);
            };
            *byte = high << 4 | low;
        }
        Ok(Self(Secret::new(*key)))
    }
}

impl Signing {
    /// Signs as `link_id`, which tells an endpoint's streams from those of another.
    #[must_use]
    pub const fn new(key: SigningKey, link_id: u8) -> Self {
        Self { key, link_id, newest: 0, streams: BTreeMap::new() }
    }

    /// The frame with a signature of the local key, in place of the one it may have. A MAVLink 1 frame cannot
    /// be signed and stays as it is. `since_1970` is the clock's time, `None` if the clock is not set; one
    /// that goes back does no harm while this lives.
    ///
    /// # Errors
    /// The clock is not set.
    pub fn sign(&mut self, since_1970: Option<Duration>, frame: Frame<'_>) -> Result<Vec<u8>, MavlinkError> {
        if frame.version() == crate::Version::V1 {
            return Ok(frame.bytes().to_vec());
        }
        let since_1970 = since_1970.ok_or(MavlinkError::ClockNotSet)?;
        self.newest = timestamp(since_1970).max(self.newest + 1).min(MAX_TIMESTAMP);
        let mut bytes = frame.announcing_signature();
        bytes.push(self.link_id);
        bytes.extend(self.newest.to_le_bytes().into_iter().take(6));
        let signature = self.signature(&bytes);
        bytes.extend_from_slice(&signature);
        Ok(bytes)
    }

    /// The frame without its signature, if that is of the local key and new. `RADIO_STATUS` needs none:
    /// radios have no key.
    ///
    /// # Errors
    /// No signature, another key's, one that was received before, or the clock is not set.
    pub fn verify(
        &mut self,
        since_1970: Option<Duration>,
        frame: Frame<'_>,
    ) -> Result<Vec<u8>, MavlinkError> {
        let Some(attached) = frame.signature() else {
            let is_radio = frame.message_id() == RADIO_STATUS && frame.is_proven();
            return if is_radio { Ok(frame.bytes().to_vec()) } else { Err(MavlinkError::Unsigned) };
        };
        let &[link, t0, t1, t2, t3, t4, t5, ..] = attached else { return Err(MavlinkError::WrongSignature) };
        let (covered, signature) = frame.bytes().split_at(frame.bytes().len() - (SIGNATURE_LEN - 7));
        if !ct_eq(&self.signature(covered), signature) {
            return Err(MavlinkError::WrongSignature);
        }
        let since_1970 = since_1970.ok_or(MavlinkError::ClockNotSet)?;
        let received = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, 0, 0]);
        let stream = (frame.system_id(), frame.component_id(), link);
        let local = timestamp(since_1970).max(self.newest);
        let is_new = match self.streams.get(&stream) {
            Some(last) => received > *last,
            None => received + MAX_BEHIND >= local && self.streams.len() < MAX_STREAMS,
        };
        if !is_new {
            return Err(MavlinkError::OldSignature);
        }
        self.streams.insert(stream, received);
        self.newest = self.newest.max(received);
        Ok(frame.without_signature())
    }

    /// The 48 bits over everything before them.
    fn signature(&self, covered: &[u8]) -> [u8; 6] {
        let mut hash = Sha256::new();
        hash.update(self.key.0.expose());
        hash.update(covered);
        let digest = hash.finalize();
        let mut signature = [0; 6];
        for (to, from) in signature.iter_mut().zip(digest) {
            *to = from;
        }
        signature
    }
}

/// Time since 2015 in 10 µs.
fn timestamp(since_1970: Duration) -> u64 {
    let since_2015 = since_1970.saturating_sub(Duration::from_secs(EPOCH_2015));
    let ticks = since_2015.as_micros() / 10;
    u64::try_from(ticks).unwrap_or(MAX_TIMESTAMP).min(MAX_TIMESTAMP)
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(redacted)")
    }
}
