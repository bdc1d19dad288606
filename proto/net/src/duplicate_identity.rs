//! Detects a second process under one transport key: a cloned volume, which no lock of files sees.
//!
//! | module | what it has |
//! |---|---|
//! | [`dial`] | before the start: dials the node's own addresses |
//! | [`gossip`] | while it runs: tells those it dialled a number that each process draws, and asks for others |
//! | [`sightings`] | at those who are asked: which numbers came under one key, in which order |

pub(crate) mod dial;
pub(crate) mod gossip;
mod sightings;

pub(crate) use sightings::Sightings;
