//! Several leaders of one group on a virtual clock: replication, silence, takeover, return, partition,
//! contradiction.

mod clocks;
mod copies;
mod crashes;
mod departed_members;
mod durations;
mod equivocation;
mod eviction_notices;
mod going_ahead;
mod hostile;
mod partitions;
mod record_sizes;
mod replication;
mod returned_leader;
mod stranded;
mod taking_over;
pub(crate) mod world;
