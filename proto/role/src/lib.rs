//! The roles of Quiver as deterministic state machines.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod machine;

pub use machine::{Destination, Input, MAX_MESSAGE_LEN, Machine, Now, Output, Peer, Route};
