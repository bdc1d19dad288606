//! Admission by certified fields: a gate, applicants, attackers between them; and the groups that result.

mod admitting;
mod hostile;
mod joining;
mod lives;
mod parting;
mod swarm;
mod working;
mod world;
