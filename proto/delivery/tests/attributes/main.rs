//! Attribute authorities beside a KGC, and drones that fetch their keys, on a virtual clock.

mod attribute_keys;
mod certified_fields;
mod crashes;
mod hostile;
mod issuer;
mod lives;
mod world;
