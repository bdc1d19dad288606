//! Interface to the release of condition keys at a KGC of a quorum, whose KGCs make the master key together with their
//! own.

use quiver_ainq::{AuthorityStatement, Ristretto255, SignedAuthority, StatementSignature};
use quiver_quorum_node::IbeStatements;

use super::node::QuorumMember;
use crate::config::Config;
use crate::error::Result;
use crate::key_release::{KeyRelease, name_absent};
use crate::store::Store;

/// Release of condition keys by one KGC of several. One that releases none signs no statement about them.
pub(crate) trait QuorumRelease: KeyRelease {
    /// Form of the statements about the master key, which the KGCs sign without an operator's approval.
    const STATEMENTS: Option<IbeStatements> = None;

    /// Puts a KGC to work that has no share until it [takes](Self::take_signed) a statement about one.
    ///
    /// # Errors
    /// The errors of the registry.
    fn open_member(config: &Config, store: &Store) -> Result<(Self, Self::Seen)>;

    /// The body that the quorum is to sign, unless the share in force is released with.
    fn proposal(&self, _member: &QuorumMember) -> Option<Vec<u8>> {
        None
    }

    /// Releases with the share that this statement of the quorum is about, if it is one of the share in force.
    fn take_signed(&mut self, _member: &QuorumMember, _statement: &[u8]) {}

    /// Notes this statement of the quorum in the registry, if it is about the master key.
    fn note_signed(_store: &mut Store, _member: &QuorumMember, _statement: &[u8]) {}
}

impl QuorumRelease for () {
    fn open_member(_: &Config, store: &Store) -> Result<((), ())> {
        name_absent(store).map(|()| ((), ()))
    }
}

/// A statement about an authority that the quorum has signed, encoded; `None` if it is about something else.
pub(super) fn signed_authority(body: &[u8], signature: &[u8]) -> Option<Vec<u8>> {
    let statement = AuthorityStatement::<Ristretto255>::decode(body).ok()?;
    let signature = StatementSignature::decode(signature).ok()?;
    Some(SignedAuthority::new(statement, signature).ok()?.encode())
}
