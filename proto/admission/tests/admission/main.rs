//! Admission by certified fields: a gate, applicants, and whoever is between them; and the groups that come
//! of it.

mod admitting;
mod hostile;
mod joining;
mod lives;
mod parting;
mod swarm;
mod working;
mod world;
