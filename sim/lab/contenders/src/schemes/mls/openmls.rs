//! MLS by `openmls`, over libcrux.

use quiver_mls::openmls_member::{OpenMlsMember, OpenMlsSuite};

use super::{FACTS, Mls, Setting};
use crate::contract::{Contender, ContenderError, Facts};

/// True if this build has the library.
pub(crate) const IS_BUILT_IN: bool = true;

type OpenMls = Mls<OpenMlsMember>;

/// Sets it up with the mandatory ciphersuite.
pub(crate) fn x25519(setting: Setting) -> Result<Box<dyn Contender>, ContenderError> {
    let notes = notes!("Its storage writes the tree as JSON with every commit, which counts.");
    let facts = Facts { notes, ..FACTS };
    Ok(Box::new(OpenMls::with("MLS, openmls", facts, OpenMlsSuite::X25519, setting)))
}

/// Sets it up with X-Wing: ML-KEM-768 and X25519.
pub(crate) fn x_wing(setting: Setting) -> Result<Box<dyn Contender>, ContenderError> {
    let facts = Facts {
        standard: "RFC 9420 with draft-ietf-mls-pq-ciphersuites",
        quantum: "yes: X-Wing (ML-KEM-768 and X25519); signatures are Ed25519",
        notes: notes!("Its storage writes the tree as JSON with every commit, which counts."),
        ..FACTS
    };
    Ok(Box::new(OpenMls::with("MLS, openmls, X-Wing", facts, OpenMlsSuite::XWing, setting)))
}
