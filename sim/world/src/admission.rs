//! Drones that pass a leader's gate without a name: what they have certified, what the leader demands, and what it may learn.
//!
//! A [`Checkpoint`] is a certification authority, a policy that the KGCs signed, and a leader's gate. Every drone has fields that follow from the
//! seed: where it is, and how much battery it has left. Each makes [`RUNS`] runs, every one over a connection of its own, by the very machines
//! that a leader and a drone have for it ([`Guard`], [`Visitor`]); then a [`Verdict`] says whether exactly those got in whom the policy lets in,
//! and whether anything of what the leader saw tells that two runs were one drone's.
//!
//! | module | what it has |
//! |---|---|
//! | `checkpoint` | the authority, the policy, the drones' fields |
//! | `parties` | both machines, and what came of a run |
//! | `links` | looking for what two runs have in common |
//! | `passage` | all runs in virtual time |

mod checkpoint;
mod links;
mod parties;
mod passage;
mod verdict;

pub use self::checkpoint::{Checkpoint, CheckpointError, FENCE, FIELDS, Place, RUNS, check};
pub use self::links::{COMPARED, STRETCH, linked};
pub use self::parties::{Guard, GuardEvent, Outcome, Shown, Visit, Visitor, VisitorEvent};
pub use self::passage::{AT_ONCE, Passage, pass};
pub use self::verdict::Verdict;

pub use quiver_garble::policy::MAX_TEXT;

/// The most drones that may want in: each of their runs is two exchanges' worth of computing.
pub const MAX_VISITORS: u32 = 10_000;
