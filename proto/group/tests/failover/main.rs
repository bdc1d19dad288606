//! Several leaders of one group on a virtual clock: replication, silence, takeover, return, partition,
//! contradiction.

mod barring;
mod clocks;
mod contradicting;
mod copies;
mod crashing;
mod going_ahead;
mod growing;
mod hostile;
mod leaving;
mod measuring;
mod parting;
mod replicating;
mod returning;
mod stranded;
mod taking_over;
pub(crate) mod world;
