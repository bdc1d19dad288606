//! KGC, leader and edges together on a virtual clock.

mod catching_up;
mod crashing;
mod distributing;
mod enrolling;
mod evicting;
mod grouping;
mod hostile;
mod hostile_leader;
mod misled;
mod recovering;
mod restarting;
mod speaking;
mod stranded;
mod strangers;
pub(crate) mod world;
