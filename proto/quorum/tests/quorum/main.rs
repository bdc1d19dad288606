//! The KGCs of a quorum among themselves, on a virtual clock.

mod byzantine_members;
mod crashes;
mod key_generation;
mod share_recovery;
mod signing;
mod world;
