//! Proof against a leader: two headers that it signed for one epoch.

use quiver_ainq::{EquivocationProof, Suite};

use crate::epoch::{header_from_wire, header_to_wire};
use crate::{MessageError, field, wire};

pub(crate) fn from_wire<S: Suite>(
    wire: &wire::EquivocationProof,
) -> Result<EquivocationProof<S>, MessageError> {
    Ok(EquivocationProof {
        first: header_from_wire(field::present("first", wire.first.as_ref())?, None)?,
        second: header_from_wire(field::present("second", wire.second.as_ref())?, None)?,
    })
}

pub(crate) fn to_wire<S: Suite>(proof: &EquivocationProof<S>) -> wire::EquivocationProof {
    wire::EquivocationProof {
        first: Some(header_to_wire(&proof.first)),
        second: Some(header_to_wire(&proof.second)),
    }
}
