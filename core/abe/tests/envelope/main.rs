//! Envelopes over a toy KEM, so that what is tested is the envelope; and over every scheme of the crate.

mod schemes;
mod sessions;
mod streaming;
mod tampering;
mod toy;
mod vectors;
