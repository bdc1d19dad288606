//! Verification of headers, check by check (§7.3).

use quiver_crypto::Digest;

use super::{Epoch, EpochKind, Header, HeaderCore, StrategyKind, header_digest};
use crate::slots::MAX_LISTED;
use crate::tree::MAX_HEIGHT;
use crate::{Deployment, Error, Label, Name, RevocationStatement, Role, Suite, UnixTime};

/// A header whose signature, signer and validity were verified. Whether its key fits shows when an entry is
/// opened.
#[derive(Clone, Debug)]
pub struct VerifiedHeader<S: Suite> {
    header: Header<S>,
    d0: Digest,
    digest: Digest,
}

impl<S: Suite> VerifiedHeader<S> {
    /// Fields of the header that do not depend on the epoch's key.
    #[must_use]
    pub const fn core(&self) -> &HeaderCore<S> {
        &self.header.core
    }

    /// The epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.header.core.epoch
    }

    /// D.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The header as it came.
    #[must_use]
    pub const fn header(&self) -> &Header<S> {
        &self.header
    }

    /// The header as it came.
    #[must_use]
    pub fn into_header(self) -> Header<S> {
        self.header
    }

    pub(crate) const fn d0(&self) -> &Digest {
        &self.d0
    }
}

/// Greatest number of rounds by which a term may be ahead of the newest one seen. Rounds advance by one at
/// every opening; without a bound, a captured leader could sign one opening in the last round there is, and
/// no term could follow it, ever.
const MAX_ROUND_JUMP: u64 = 1 << 20;

impl<S: Suite> Header<S> {
    /// Verifies a header. The order is: shape and group, newer than `newest`, signature, the signer's role
    /// and ordinal, revocation, validity at `now`.
    ///
    /// The leader's key in the result remembers its Y.
    ///
    /// `newest` is the newest epoch of this group the caller ever accepted, in whatever membership.
    ///
    /// # Errors
    /// In that order [`Error::Malformed`] or [`Error::WrongGroup`]; [`Error::Stale`]; [`Error::TermTooFar`];
    /// [`Error::InvalidSignature`]; [`Error::NotALeader`]; [`Error::Revoked`]; [`Error::Expired`].
    pub fn verify(
        mut self,
        deployment: &Deployment<S>,
        group: &Name,
        newest: Option<Epoch>,
        revocations: &RevocationStatement,
        now: UnixTime,
    ) -> Result<VerifiedHeader<S>, Error> {
        // §7.3, 1: shape and group.
        self.core.check_shape(&self.entries_root)?;
        if self.core.group != *group {
            return Err(Error::WrongGroup);
        }
        // §7.3, 2: newer than every epoch accepted before, and not too many rounds ahead.
        if newest.is_some_and(|newest| self.core.epoch <= newest) {
            return Err(Error::Stale);
        }
        if newest
            .is_some_and(|newest| self.core.epoch.round().saturating_sub(newest.round()) > MAX_ROUND_JUMP)
        {
            return Err(Error::TermTooFar);
        }
        // §7.3, 3: signature, the signer's role and ordinal, revocation.
        let (d0, digest) = self.verify_signer(deployment)?;
        if revocations.names(&self.core.leader) {
            return Err(Error::Revoked);
        }
        // §7.3, 4: validity.
        if now >= self.core.valid_until || now >= self.core.leader.identity.not_after {
            return Err(Error::Expired);
        }
        Ok(VerifiedHeader { header: self, d0, digest })
    }

    /// Checks the signature, and that the signer leads this group under the ordinal of the term. Returns D0
    /// and D.
    ///
    /// In place: moved headers would take 3 KB of stack under the deepest calls that a board makes.
    pub(crate) fn verify_signer(&mut self, deployment: &Deployment<S>) -> Result<(Digest, Digest), Error> {
        let d0 = self.core.digest(deployment);
        let digest = header_digest(&d0, &self.entries_root, &self.tag);
        self.core.leader.remember_implicit(deployment)?;
        let leader = &self.core.leader;
        // §7.1: D is signed with label "header".
        self.signature.verify(deployment, leader, Label::Header, &digest)?;
        check_leader(&leader.identity.role, &self.core.group, self.core.epoch.term)?;
        Ok((d0, digest))
    }
}

/// Checks that a role may lead a term of a group.
pub(crate) fn check_leader(role: &Role, group: &Name, term: u64) -> Result<(), Error> {
    let epoch = Epoch { term, counter: 0 };
    match role {
        Role::Leader { group: leads, ordinal } if leads == group && *ordinal == epoch.ordinal() => Ok(()),
        _ => Err(Error::NotALeader),
    }
}

impl<S: Suite> HeaderCore<S> {
    /// Checks that the fields fit each other.
    pub(crate) fn check_shape(&self, entries_root: &Digest) -> Result<(), Error> {
        // §7.3, 1: of every kind of epoch: later state counts on from it.
        if !self.epoch.is_within_bounds() {
            return Err(Error::Malformed("epoch"));
        }
        let kind_fits = match self.kind {
            EpochKind::Open => self.epoch.counter == 1 && self.removed.is_empty() && self.added.is_empty(),
            EpochKind::Rekey => {
                self.epoch.counter > 1
                    && self.absent.is_empty()
                    && (self.changes.is_some() || self.point.is_some() != self.added.is_empty())
            }
        };
        let strategy_fits = match self.strategy {
            StrategyKind::Flat => self.height == 0,
            StrategyKind::Tree => (1..=MAX_HEIGHT).contains(&self.height),
        };
        // §7.1: entries authenticate themselves; only wraps of a tree have to be bound.
        let tree = self.strategy == StrategyKind::Tree;
        let root_fits = tree || *entries_root == [0; 32];
        // §7.1: many slots have their digest within a tree's term, and nowhere else; few are listed.
        let listed = self.removed.runs().len() + self.added.runs().len();
        let changes_fit = match self.changes {
            Some(_) => tree && self.kind == EpochKind::Rekey && listed == 0,
            None => !tree || listed <= MAX_LISTED,
        };
        if !(kind_fits && strategy_fits && root_fits && changes_fit && self.issued_at < self.valid_until) {
            return Err(Error::Malformed("header"));
        }
        Ok(())
    }
}
