//! KGCs that release key shares, and drones that collect them, on a virtual clock.

mod hostile;
mod releaser;
mod share_collection;
mod share_refresh;
mod single;
mod world;
