//! The board's state in flash: its settings, and the machine's state once there is one.
//!
//! ```text
//! kept = 1 ‖ lp(settings) ‖ state   or, of a board that holds something of attribute authorities,   2 ‖ lp(settings) ‖ lp(keyring) ‖ state
//! ```

use alloc::vec::Vec;

use quiver_ainq::Ristretto255;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_group::edge::{MAX_PROVISIONING_LEN, Provisioning};
use quiver_machine::Snapshot;

const VERSION: u8 = 1;
/// Version of a state with a keyring. An image without envelopes refuses it: it would store a state without
/// the keys.
const WITH_KEYRING: u8 = 2;
/// Bytes of the longest keyring that is read.
const MAX_KEYRING_LEN: usize = 16 * 1024;

/// Settings with a token, or without one and a state.
pub(crate) struct StoredState {
    pub(crate) settings: Provisioning<Ristretto255>,
    /// Encoded; empty if nothing is held.
    pub(crate) keyring: Zeroizing<Vec<u8>>,
    pub(crate) state: Option<Snapshot>,
}

/// The encoding; `keyring` is encoded, or empty if nothing is held.
pub(crate) fn encode(
    settings: &Provisioning<Ristretto255>,
    keyring: &[u8],
    state: Option<&Snapshot>,
) -> Zeroizing<Vec<u8>> {
    let settings = settings.encode();
    let state = state.map(Snapshot::as_bytes).unwrap_or_default();
    let mut writer = Writer::with_capacity(9 + settings.len() + keyring.len() + state.len());
    if keyring.is_empty() {
        writer.u8(VERSION).lp(&settings);
    } else {
        writer.u8(WITH_KEYRING).lp(&settings).lp(keyring);
    }
    writer.fixed(state);
    Zeroizing::new(writer.finish())
}

/// Decodes what [`encode`] wrote; `None` if it is something else.
pub(crate) fn decode(bytes: &[u8]) -> Option<StoredState> {
    let mut reader = Reader::new(bytes);
    let version = reader.u8().ok()?;
    if version != VERSION && !(cfg!(feature = "envelopes") && version == WITH_KEYRING) {
        return None;
    }
    let settings = Provisioning::decode(reader.lp(MAX_PROVISIONING_LEN).ok()?).ok()?;
    let keyring = if version == WITH_KEYRING { reader.lp(MAX_KEYRING_LEN).ok()? } else { &[] };
    let keyring = Zeroizing::new(keyring.to_vec());
    let state = reader.take(reader.remaining()).ok()?;
    let state = (!state.is_empty()).then(|| Snapshot::new(state.to_vec()));
    Some(StoredState { settings, keyring, state })
}
