//! A member's part beside a header, in the three messages that carry it.

use alloc::vec::Vec;

use quiver_ainq::{Delta, Entry, EpochPart, PathMessage};

use crate::wire::{catch_up_reply, rekey, welcome};
use crate::{MessageError, field, wire};

pub(crate) fn entry_from_wire(wire: &wire::Entry) -> Result<Entry, MessageError> {
    Ok(Entry { slot: wire.slot, q: wire.q, wrap: field::array("wrap", &wire.wrap)? })
}

pub(crate) fn entry_to_wire(entry: &Entry) -> wire::Entry {
    wire::Entry { slot: entry.slot, q: entry.q, wrap: entry.wrap.to_vec() }
}

fn path_from_wire(bytes: &[u8]) -> Result<PathMessage, MessageError> {
    PathMessage::decode(bytes).map_err(|error| MessageError::Field { field: "path", error })
}

fn delta_from_wire(bytes: Vec<u8>) -> Result<Delta, MessageError> {
    Delta::from_bytes(bytes).map_err(|error| MessageError::Field { field: "delta", error })
}

pub(crate) fn of_welcome(wire: &welcome::Part) -> Result<EpochPart, MessageError> {
    Ok(match wire {
        welcome::Part::Entry(entry) => EpochPart::Entry(entry_from_wire(entry)?),
        welcome::Part::Path(path) => EpochPart::Path(path_from_wire(path)?),
    })
}

/// A delta is for all members; it has no place here.
pub(crate) fn to_welcome(part: &EpochPart) -> Option<welcome::Part> {
    match part {
        EpochPart::Entry(entry) => Some(welcome::Part::Entry(entry_to_wire(entry))),
        EpochPart::Path(path) => Some(welcome::Part::Path(path.encode())),
        EpochPart::Delta(_) => None,
    }
}

pub(crate) fn of_rekey(wire: rekey::Part) -> Result<EpochPart, MessageError> {
    Ok(match wire {
        rekey::Part::Entry(entry) => EpochPart::Entry(entry_from_wire(&entry)?),
        rekey::Part::Delta(delta) => EpochPart::Delta(delta_from_wire(delta)?),
        rekey::Part::Path(path) => EpochPart::Path(path_from_wire(&path)?),
    })
}

pub(crate) fn to_rekey(part: &EpochPart) -> rekey::Part {
    match part {
        EpochPart::Entry(entry) => rekey::Part::Entry(entry_to_wire(entry)),
        EpochPart::Delta(delta) => rekey::Part::Delta(delta.encode()),
        EpochPart::Path(path) => rekey::Part::Path(path.encode()),
    }
}

pub(crate) fn of_reply(wire: &catch_up_reply::Part) -> Result<EpochPart, MessageError> {
    Ok(match wire {
        catch_up_reply::Part::Entry(entry) => EpochPart::Entry(entry_from_wire(entry)?),
        catch_up_reply::Part::Path(path) => EpochPart::Path(path_from_wire(path)?),
    })
}

/// A delta is for all members; it has no place here.
pub(crate) fn to_reply(part: &EpochPart) -> Option<catch_up_reply::Part> {
    match part {
        EpochPart::Entry(entry) => Some(catch_up_reply::Part::Entry(entry_to_wire(entry))),
        EpochPart::Path(path) => Some(catch_up_reply::Part::Path(path.encode())),
        EpochPart::Delta(_) => None,
    }
}
