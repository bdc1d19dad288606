//! Tests of the simulator: command line, live world, floods, virtual world, ranks.

mod cli;
mod flood;
mod live;
mod ranks;
mod replay;
mod virtual_world;
