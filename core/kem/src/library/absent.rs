//! No crate: the implementation in place.

pub(crate) use crate::in_place::{decapsulate, encapsulate, encapsulation_key};
