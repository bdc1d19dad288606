//! What a board keeps in flash: its settings, and the machine's state once there is one.

use alloc::vec::Vec;

use quiver_ainq::Ristretto255;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_role::Snapshot;
use quiver_role::edge::{MAX_PROVISIONING_LEN, Provisioning};

const VERSION: u8 = 1;

/// Settings with a token, or without one and a state.
pub(crate) struct Kept {
    pub(crate) settings: Provisioning<Ristretto255>,
    pub(crate) state: Option<Snapshot>,
}

/// version ‖ lp(settings) ‖ state.
pub(crate) fn encode(settings: &Provisioning<Ristretto255>, state: Option<&Snapshot>) -> Zeroizing<Vec<u8>> {
    let settings = settings.encode();
    let state = state.map(Snapshot::as_bytes).unwrap_or_default();
    let mut writer = Writer::with_capacity(5 + settings.len() + state.len());
    writer.u8(VERSION).lp(&settings).fixed(state);
    Zeroizing::new(writer.finish())
}

/// Reads what [`encode`] wrote; none if it is something else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Kept> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != VERSION {
        return None;
    }
    let settings = Provisioning::decode(reader.lp(MAX_PROVISIONING_LEN).ok()?).ok()?;
    let state = reader.take(reader.remaining()).ok()?;
    let state = (!state.is_empty()).then(|| Snapshot::new(state.to_vec()));
    Some(Kept { settings, state })
}
