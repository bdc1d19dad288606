//! Attribute authorities beside a KGC, and drones that fetch their keys, on a virtual clock.

mod certifying;
mod crashing;
mod delivering;
mod hostile;
mod issuer;
mod lives;
mod schemes;
mod world;
