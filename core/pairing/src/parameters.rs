//! The parameters of BLS12-381 for arkworks' generic code: arkworks' own, or with the feature `armv7em` the
//! same with field multiplication in assembly.

#[cfg_attr(not(feature = "armv7em"), path = "parameters/arkworks.rs")]
mod armv7em;

#[allow(unused_imports, reason = "not every back end needs all")]
pub(crate) use armv7em::*;
