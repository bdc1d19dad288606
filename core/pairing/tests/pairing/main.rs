//! Tests of the pairing: both back ends, encodings, hashing, laws.

mod backends;
mod curve_points;
mod encodings;
mod hashing;
mod laws;
