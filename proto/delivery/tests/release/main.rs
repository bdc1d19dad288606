//! KGCs that release key shares, and drones that collect them, on a virtual clock.

mod collecting;
mod hostile;
mod refreshing;
mod releaser;
mod single;
mod world;
