//! KGC, leader and edges together on a virtual clock.

mod catching_up;
mod crashes;
mod distribution;
mod enrolment;
mod evictions;
mod group_messages;
mod hostile;
mod hostile_leader;
mod membership;
mod misled;
mod one_time_secrets;
mod recovery;
mod restarts;
mod stranded;
mod strangers;
pub(crate) mod world;
