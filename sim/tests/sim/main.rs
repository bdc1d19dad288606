//! Tests of the simulator: command line, live world, virtual world, workers.

mod cli;
mod live;
mod replay;
mod virtual_world;
mod workers;
