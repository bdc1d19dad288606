//! Tests of the simulator: command line, live world, floods, virtual world, workers.

mod cli;
mod flood;
mod live;
mod replay;
mod virtual_world;
mod workers;
