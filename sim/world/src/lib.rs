//! A deterministic virtual world for the Quiver roles: an event queue, a radio model, faults, and invariants.

pub mod radio;
