//! Groups by one library or another: what the arena of schemes needs of both.

use crate::Result;
use crate::member::{Candidate, CommitChanges, CommitMessages, Invitation, MlsMember, SECRET_LEN};
use crate::provider::Provider;

/// Member of a group, with its own copy of the tree.
pub trait GroupMember: Sized {
    /// The library's provider, or its ciphersuite.
    type Setup: Clone;
    /// Member before it joins.
    type Candidate: GroupCandidate<Member = Self>;

    /// Founds a group and is alone in it.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the library refuses.
    fn found(name: &str, setup: &Self::Setup) -> Result<Self>;

    /// Checks the key packages, commits, serialises and applies its own commit. There is a path unless there are
    /// only additions.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the library refuses.
    fn commit(&mut self, change: CommitChanges<'_>) -> Result<CommitMessages>;

    /// Applies another member's commit. False if it removed this member.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the commit is not for this epoch or does not hold.
    fn follow(&mut self, commit: &[u8]) -> Result<bool>;

    /// Exports a secret that the members of this epoch alone share.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the exporter fails.
    fn secret(&self) -> Result<[u8; SECRET_LEN]>;

    /// Epoch, from 0.
    fn epoch(&self) -> u64;
}

/// Joining member: a signing key and one published key package.
pub trait GroupCandidate: Sized {
    /// Member after it has joined.
    type Member: GroupMember<Candidate = Self>;

    /// Makes the keys and signs the key package.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the library refuses.
    fn new(name: &str, setup: &<Self::Member as GroupMember>::Setup) -> Result<Self>;

    /// Key package for a committer, serialised.
    fn key_package(&self) -> &[u8];

    /// Joins the group that a commit added it to: checks the whole tree.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the welcome is for others or the tree does not hold.
    fn join(&self, invitation: &Invitation) -> Result<Self::Member>;
}

impl GroupMember for MlsMember {
    type Setup = Provider;
    type Candidate = Candidate;

    fn found(name: &str, setup: &Provider) -> Result<Self> {
        Self::found(name, setup)
    }

    fn commit(&mut self, change: CommitChanges<'_>) -> Result<CommitMessages> {
        self.commit(change)
    }

    fn follow(&mut self, commit: &[u8]) -> Result<bool> {
        self.follow(commit)
    }

    fn secret(&self) -> Result<[u8; SECRET_LEN]> {
        self.secret()
    }

    fn epoch(&self) -> u64 {
        self.epoch()
    }
}

impl GroupCandidate for Candidate {
    type Member = MlsMember;

    fn new(name: &str, setup: &Provider) -> Result<Self> {
        Self::new(name, setup)
    }

    fn key_package(&self) -> &[u8] {
        self.key_package()
    }

    fn join(&self, invitation: &Invitation) -> Result<MlsMember> {
        self.join(invitation)
    }
}
