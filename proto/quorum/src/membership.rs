//! Membership of a quorum, pinned before it makes a key: n, t, and the members' transport identities
//! (docs/protocol.md §5.1).

use alloc::vec::Vec;

use quiver_ainq::{KgcId, Name, Suite};
use quiver_crypto::Hasher;
use quiver_message::quorum::{Both, CeremonyKind, Helper};
use quiver_quorum::{Error as QuorumError, QuorumParameters};

/// Bytes a member's transport identity may have.
pub const MAX_IDENTITY_LEN: usize = 128;

/// Membership of a quorum, identical in every member's configuration. Its fingerprint stands in every message
/// between members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumMembership {
    name: Name,
    parameters: QuorumParameters,
    identities: Vec<Vec<u8>>,
    fingerprint: [u8; 32],
}

/// Reason why this is no quorum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// n and t do not fit.
    #[error(transparent)]
    Parameters(#[from] QuorumError),
    /// A member's transport identity is empty, too long, or another member's.
    #[error("KGC {0} has no transport identity of its own")]
    Identity(KgcId),
}

impl QuorumMembership {
    /// A quorum with this threshold. `identities` authenticate the members 1, 2, … in the transport, in this
    /// order: opaque here, 1 to [`MAX_IDENTITY_LEN`] bytes each.
    ///
    /// # Errors
    /// [`MembershipError`].
    pub fn new<S: Suite>(
        name: Name,
        threshold: u16,
        identities: Vec<Vec<u8>>,
    ) -> Result<Self, MembershipError> {
        let members = u16::try_from(identities.len()).unwrap_or(u16::MAX);
        let parameters = QuorumParameters::new(members, threshold)?;
        for (kgc, (place, identity)) in parameters.kgcs().zip(identities.iter().enumerate()) {
            // §5.1: both ends are authenticated by the transport: an identity for each member.
            let fits = (1..=MAX_IDENTITY_LEN).contains(&identity.len());
            if !fits || identities.iter().take(place).any(|other| other == identity) {
                return Err(MembershipError::Identity(kgc));
            }
        }
        // §5.1: what all must have pinned alike: suite, name, n, t, identities in order.
        let hash = Hasher::new("quiver/1 quorum")
            .lp(S::ID.as_bytes())
            .lp(name.as_bytes())
            .u16(members)
            .u16(threshold);
        let fingerprint = identities.iter().fold(hash, |hash, identity| hash.lp(identity)).finish();
        Ok(Self { name, parameters, identities, fingerprint })
    }

    /// The deployment's name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// n and t.
    #[must_use]
    pub const fn parameters(&self) -> QuorumParameters {
        self.parameters
    }

    /// H("quiver/1 quorum", suite, name, n, t, identities): 32 bytes, for operators to compare.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Transport identities of the members, in the order of their identifiers.
    #[must_use]
    pub fn identities(&self) -> &[Vec<u8>] {
        &self.identities
    }

    /// Names a session after everything that its members brought to it.
    pub(super) fn session<'a>(
        &self,
        kind: CeremonyKind,
        keys: Option<&[u8; 32]>,
        nonces: impl IntoIterator<Item = (u64, &'a [u8; 32])>,
    ) -> [u8; 32] {
        let kind: &[u8] = match kind {
            CeremonyKind::Generation => b"generation",
            CeremonyKind::Refresh => b"refresh",
        };
        // §5.2: H(membership, kind, shares, all attempts and nonces).
        let hash = Hasher::new("quiver/1 quorum session").fixed(&self.fingerprint).lp(kind);
        let hash = hash.lp(keys.map_or(&[], |keys| keys.as_slice()));
        nonces.into_iter().fold(hash, |hash, (attempt, nonce)| hash.u64(attempt).fixed(nonce)).finish()
    }

    /// Digest by which a member's commitments in a session are compared.
    pub(super) fn commitments(session: &[u8; 32], kgc: KgcId, commitments: &Both<Vec<u8>>) -> [u8; 32] {
        let hash = Hasher::new("quiver/1 quorum commitments").fixed(session).u16(kgc);
        hash.lp(&commitments.ainq).lp(&commitments.ibe).finish()
    }

    /// Names a repair after the member's nonce and the helpers'.
    pub(super) fn repair(
        &self,
        member: KgcId,
        nonce: &[u8; 32],
        version: u32,
        helpers: &[Helper],
    ) -> [u8; 32] {
        // §5.3: of member, nonces and helpers: what was drawn before a restart fits no session.
        let hash = Hasher::new("quiver/1 quorum repair").fixed(&self.fingerprint);
        let hash = hash.u16(member).fixed(nonce).u32(version);
        helpers.iter().fold(hash, |hash, helper| hash.u16(helper.kgc).fixed(&helper.nonce)).finish()
    }
}
