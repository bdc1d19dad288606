//! No `openmls`: its schemes are refused.

use super::Setting;
use crate::contract::{Contender, ContenderError};

/// True if this build has the library.
pub(crate) const IS_BUILT_IN: bool = false;

/// Refuses the mandatory ciphersuite.
pub(crate) fn x25519(_: Setting) -> Result<Box<dyn Contender>, ContenderError> {
    refused("MLS, openmls")
}

/// Refuses X-Wing.
pub(crate) fn x_wing(_: Setting) -> Result<Box<dyn Contender>, ContenderError> {
    refused("MLS, openmls, X-Wing")
}

fn refused(scheme: &'static str) -> Result<Box<dyn Contender>, ContenderError> {
    Err(ContenderError::Scheme { scheme, what: "this build has no openmls: `--features openmls`".into() })
}
