//! Admission by certified fields: a gate, applicants, and whoever is between them.

mod admitting;
mod hostile;
mod world;
