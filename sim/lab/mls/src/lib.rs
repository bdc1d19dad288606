//! The membership events of a Quiver group, carried out by MLS (RFC 9420) for comparison.
//!
//! A thin driver over [`mls_rs`], which does all the work for real: [`MlsMember::commit`] adds, removes and
//! updates, [`MlsMember::follow`] applies another member's commit, [`Candidate::join`] joins. Everything goes in
//! and out serialised, so that sizes are those of the wire and times include parsing.
//!
//! # Choices in favour of MLS
//! * The mandatory ciphersuite `MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519` over aws-lc, the fastest
//!   provider that builds with a Rust toolchain and a C compiler; see [`provider`].
//! * Basic credentials (a name), not certificates. Commits go as signed public messages: encrypted ones are
//!   longer.
//! * Additions and removals are proposed by value within the commit. By reference, each proposal would be a
//!   message of its own.
//! * A commit that only adds renews no path; neither does an epoch of Quiver that only adds.
//! * The ratchet tree goes beside the `Welcome`, once for all newcomers, who share one `Welcome`. Inside it,
//!   as the default has it, each newcomer's secret would be encrypted over the whole tree: time with the
//!   square of the group.
//! * `mls-rs` is built without private messages, proposals by reference, pre-shared keys, past epochs and
//!   X.509. No event needs them, and each would add work.
//! * Key packages are made beforehand and their upload is not counted. The one committer is never
//!   contradicted. External senders and external commits are not used: the leader is a member.
//! * Next to the tree as one committer leaves it there is the warm one ([`warm_group`]), in which others have
//!   committed.
//!
//! The time of `mls-rs` is not that of MLS: it copies and encodes the whole tree with every commit, which is
//! most of the time over a warm tree of a thousand members. Sizes are the protocol's.
//!
//! | module | what it has |
//! |---|---|
//! | [`library`] | a group by this library or another |
//! | [`member`] | candidates, members, and what a commit sends |
//! | `openmls_member` | the same by `openmls`, with an ML-KEM suite; behind the feature `openmls` |
//! | [`warm`] | a group whose tree is filled |
//! | [`provider`] | the ciphersuite over aws-lc |

mod error;
pub mod library;
pub mod member;
#[cfg(feature = "openmls")]
pub mod openmls_member;
pub mod provider;
pub mod warm;

pub use error::{Error, Result};
pub use library::{GroupCandidate, GroupMember};
pub use member::{Candidate, CommitChanges, CommitMessages, Invitation, Leaf, MlsMember, SECRET_LEN};
pub use warm::warm_group;
