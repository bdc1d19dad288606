//! The membership events of a Quiver group, carried out by MLS (RFC 9420) for comparison.
