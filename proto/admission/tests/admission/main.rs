//! Admission by certified fields: a gate, applicants, attackers between them; and the groups that result.

mod applicants;
mod hostile;
mod hybrid;
mod jobs;
mod lives;
mod membership;
mod membership_end;
mod swarm;
mod world;
