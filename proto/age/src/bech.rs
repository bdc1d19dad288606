//! Bech32 texts as age spells recipients and identities: the checksum of [BIP-173] without its limit of 90
//! characters.
//!
//! [BIP-173]: https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki

use age_core::primitives::{bech32_decode, bech32_encode};
use bech32::Hrp;
use quiver_crypto::Zeroizing;

use crate::{Error, Result};

/// A kind of text.
pub(crate) struct Bech32Kind {
    /// Name in errors.
    what: &'static str,
    /// Prefix before the separator `1`.
    prefix: &'static str,
    /// The longest text, in characters.
    limit: usize,
}

/// `age1quiver1…`
pub(crate) const RECIPIENT: Bech32Kind =
    Bech32Kind { what: "recipient of Quiver", prefix: "age1quiver", limit: 1024 };
/// `AGE-PLUGIN-QUIVER-1…`
pub(crate) const IDENTITY: Bech32Kind =
    Bech32Kind { what: "identity of Quiver", prefix: "AGE-PLUGIN-QUIVER-", limit: 64 * 1024 };

impl Bech32Kind {
    /// An error about such a text.
    pub(crate) fn wrong(&self, reason: &'static str) -> Error {
        Error::Text { what: self.what, reason }
    }

    /// Returns true if a text begins as one of this kind.
    pub(crate) fn begins(&self, text: &str) -> bool {
        text.starts_with(self.prefix)
    }

    /// The text of these bytes, in the case that the prefix has.
    pub(crate) fn encode(&self, bytes: &[u8]) -> Zeroizing<String> {
        let mut text = Zeroizing::new(bech32_encode(Hrp::parse_unchecked(self.prefix), bytes));
        if self.prefix.starts_with(|first: char| first.is_ascii_uppercase()) {
            // In place, so that no copy of a secret is left behind.
            text.make_ascii_uppercase();
        }
        text
    }

    /// The bytes of such a text.
    pub(crate) fn decode(&self, text: &str) -> Result<Zeroizing<Vec<u8>>> {
        if text.len() > self.limit {
            return Err(self.wrong("it is too long"));
        }
        let known = |hrp: Hrp| match hrp.as_str() == self.prefix {
            true => Ok(()),
            false => Err(self.wrong("it starts otherwise")),
        };
        let garbled = |_| self.wrong("it was mistyped or cut: the checksum does not fit");
        bech32_decode(text, garbled, known, |_, bytes| {
            // Room for all of it from the start: a growing vector would leave copies behind.
            let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
            decoded.extend(bytes);
            Ok(decoded)
        })
    }
}
