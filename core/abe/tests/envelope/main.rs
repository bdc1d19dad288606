//! Envelopes over a toy KEM, which tests the envelope alone; and over every scheme of the crate.

mod schemes;
mod sessions;
mod streaming;
mod tampering;
mod toy;
mod vectors;
