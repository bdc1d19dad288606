//! Tests of policies: language, formulas, encodings, refusals.

mod encodings;
mod formulas;
mod properties;
mod refusals;
mod serde;
