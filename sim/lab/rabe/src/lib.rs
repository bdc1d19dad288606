//! Quiver's attribute-based schemes beside those of the crate [`rabe`] (Fraunhofer AISEC, over the BN curve
//! of `rabe-bn`).
//!
//! All contenders do the same work: a conjunction of n attributes is the policy, and exactly these n
//! attributes are the set.
//!
//! | scheme of rabe | kind | counterparts here |
//! |---|---|---|
//! | `yct14` | key policy, broken | FABEO22 KP, GPSW06, YCT14 |
//! | `lsw` | key policy, large universe | FABEO22 KP, GPSW06 |
//! | `ac17` | key policy and ciphertext policy, large universe | FABEO22 KP and CP |
//!
//! Differences between the two: rabe encrypts a message of 32 bytes with AES where we derive a secret of 32
//! bytes; it reads policies from text in key generation and decryption, where we hold them parsed; its curve
//! is of 254 bits where ours is of 381, so each of its field operations is cheaper.
//!
//! `prepared` has made fixed-base tables beforehand, as an authority or a frequent sender does.

mod contender;
mod cpu_time;
mod ours;
mod theirs;
pub mod verdict;

pub use contender::{AbeContender, Contenders, Operation};
pub use cpu_time::CpuTime;
