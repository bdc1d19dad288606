//! The KGCs of a quorum among themselves, on a virtual clock.

mod crashing;
mod generating;
mod lying;
mod recovering;
mod signing;
mod world;
