//! The board's state in flash: its settings, the record of a part, and the machine's state once there is one.
//!
//! ```text
//! kept = 1 ‖ lp(settings) ‖ state   or, if a part has a record,   version of the part ‖ lp(settings) ‖ lp(record) ‖ state
//! ```
//!
//! An image without the part refuses the part's version: it would store a state without the record.

use alloc::vec::Vec;

use quiver_ainq::Ristretto255;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_group::edge::{MAX_PROVISIONING_LEN, Provisioning};
use quiver_machine::Snapshot;

/// Version of a state without a record.
const VERSION: u8 = 1;
/// Bytes of the longest record that is read.
const MAX_RECORD_LEN: usize = 16 * 1024;

/// Record of a part, which is not empty.
pub(crate) struct PartRecord {
    /// Version of a state with records of this part.
    pub(crate) version: u8,
    /// The part's own encoding.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

/// Settings with a token, or without one and a state.
pub(crate) struct StoredState {
    pub(crate) settings: Provisioning<Ristretto255>,
    /// Record of a part; empty if there is none.
    pub(crate) record: Zeroizing<Vec<u8>>,
    pub(crate) state: Option<Snapshot>,
}

/// Encodes a state.
pub(crate) fn encode(
    settings: &Provisioning<Ristretto255>,
    record: Option<&PartRecord>,
    state: Option<&Snapshot>,
) -> Zeroizing<Vec<u8>> {
    let settings = settings.encode();
    let state = state.map(Snapshot::as_bytes).unwrap_or_default();
    let record_len = record.map_or(0, |record| record.bytes.len());
    let mut writer = Writer::with_capacity(9 + settings.len() + record_len + state.len());
    match record {
        None => writer.u8(VERSION).lp(&settings),
        Some(PartRecord { version, bytes }) => writer.u8(*version).lp(&settings).lp(bytes),
    };
    writer.fixed(state);
    Zeroizing::new(writer.finish())
}

/// Decodes what [`encode`] wrote; `None` if it is something else. `with_record` is the version of states with records
/// of this image's part, if it has any.
pub(crate) fn decode(bytes: &[u8], with_record: Option<u8>) -> Option<StoredState> {
    let mut reader = Reader::new(bytes);
    let version = reader.u8().ok()?;
    let has_record = Some(version) == with_record;
    if version != VERSION && !has_record {
        return None;
    }
    let settings = Provisioning::decode(reader.lp(MAX_PROVISIONING_LEN).ok()?).ok()?;
    let record = if has_record { reader.lp(MAX_RECORD_LEN).ok()? } else { &[] };
    let record = Zeroizing::new(record.to_vec());
    let state = reader.take(reader.remaining()).ok()?;
    let state = (!state.is_empty()).then(|| Snapshot::new(state.to_vec()));
    Some(StoredState { settings, record, state })
}
