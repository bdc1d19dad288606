//! Envelopes over a toy KEM, which tests the envelope alone; and over every scheme of the crate.

mod schemes;
mod sessions;
mod streams;
mod tampered_envelopes;
mod toy;
mod vectors;
