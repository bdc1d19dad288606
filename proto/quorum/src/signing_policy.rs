//! Signing policy of a quorum member: it signs only what its own state and operator confirm, whoever proposes
//! it (docs/protocol.md §5.4).
//!
//! | purpose | signed if |
//! |---|---|
//! | `quorum` | it is the encoding of the public shares in force here |
//! | `revocation` | its number is above that of every list signed here before, it names all that these name but those whose identity has ended by what these say, whatever is new in it is proposed by the operator here or proven, and its times fit the clock here; with nothing new, if it is due |
//! | `parameters` | its first word is not `abke-policy`, and the operator here has approved it, or it is about the proposer's part in identity-based encryption, with the public shares in force here, in a form that this program knows |
//! | `abke-policy` | its first word is `abke-policy`, and the operator here has approved it |
//!
//! So t operators must agree to revoke, and fewer than t liars get nothing signed.

use quiver_ainq::{
    AuthorityStatement, KgcId, MAX_REVOCATION_LIST_LEN, Purpose, RevocationStatement, Revoked,
    StatementSignature, UnixTime,
};
use quiver_machine::CLOCK_TOLERANCE;
use quiver_message::quorum::SignRefusalReason;
use quiver_quorum::QuorumSuite;

use super::context::MemberContext;
use super::interface::{approval, proposed, renewal_time};
use super::keys::QuorumKeys;
use super::statements::StatementBook;
use super::{QuorumConfig, ibe_name};

/// Greatest distance of a list's number from the newest list's: numbers of failed lists are not used again.
pub(super) const MAX_AHEAD: u64 = 1024;

/// Reason for a refusal to sign; with the highest number signed for, if that is it.
pub(super) type SigningRefusal = (SignRefusalReason, u64);

const fn refused(reason: SignRefusalReason) -> SigningRefusal {
    (reason, 0)
}

/// Rules of a member, over its own state.
pub(super) struct SigningPolicy<'a, S: QuorumSuite> {
    config: &'a QuorumConfig,
    /// The shares in force.
    keys: Option<&'a QuorumKeys<S>>,
    statements: &'a StatementBook<S>,
}

impl<'a, S: QuorumSuite> SigningPolicy<'a, S> {
    pub(super) const fn new<'b: 'a>(cx: &MemberContext<'b, S>, statements: &'a StatementBook<S>) -> Self {
        Self { config: cx.config, keys: cx.keys, statements }
    }

    /// Decides if this member signs a proposal of `by`.
    pub(super) fn authorize(
        &self,
        now: UnixTime,
        by: KgcId,
        version: u32,
        purpose: Purpose,
        body: &[u8],
    ) -> Result<(), SigningRefusal> {
        let keys = self.keys.ok_or(refused(SignRefusalReason::Version))?;
        // §5.4: shares of one version make a signature.
        if keys.version() != version {
            return Err(refused(SignRefusalReason::Version));
        }
        match purpose {
            // §5.4, `quorum`: the encoding of the public shares in force here.
            Purpose::Quorum if keys.ainq().public().encode() == body => Ok(()),
            Purpose::Revocation => {
                let list =
                    RevocationStatement::decode(body).map_err(|_| refused(SignRefusalReason::Content))?;
                self.authorize_list(now, &list)
            }
            // §5.4, `parameters`, and §A3: its own operator approved this very body by its hash.
            Purpose::Parameters | Purpose::AbkePolicy
                if purpose == proposed(body) && self.statements.approvals.contains(&approval(body)) =>
            {
                Ok(())
            }
            // §5.4: or the proposer's own statement of kind `ibe`, with the shares in force.
            Purpose::Parameters if self.is_about_ibe(by, body) => Ok(()),
            Purpose::Parameters | Purpose::AbkePolicy => Err(refused(SignRefusalReason::NotApproved)),
            _ => Err(refused(SignRefusalReason::Content)),
        }
    }

    fn authorize_list(&self, now: UnixTime, list: &RevocationStatement) -> Result<(), SigningRefusal> {
        let (known, bound) = (self.statements.list.list(), self.statements.bound.as_ref());
        let again = bound == Some(list);
        let signed = known.number.max(bound.map_or(0, |bound| bound.number));
        // §5.4: the number is above that of every list it has signed a share of.
        if list.number <= known.number || (list.number <= signed && !again) {
            return Err((SignRefusalReason::Superseded, signed));
        }
        // §5.4: at most 1,024 ahead of that and of its clock.
        if list.number > signed.max(now).saturating_add(MAX_AHEAD) || too_long::<S>(list) {
            return Err(refused(SignRefusalReason::Content));
        }
        // §5.4: names everything that those name, except identities that ended a day ago.
        if !carries_on(list, known) || bound.is_some_and(|bound| !carries_on(list, bound)) {
            return Err((SignRefusalReason::Superseded, signed));
        }
        // §5.4: whatever is new is wanted by its own operator, or proven.
        if !list.revoked.iter().all(|drone| self.confirms(drone)) {
            return Err(refused(SignRefusalReason::NotApproved));
        }
        let new = list.revoked.iter().any(|drone| known.find(&drone.serial) != Some(drone));
        let life = list.next_update.checked_sub(list.issued);
        // §5.4: issued within 10 min of its own clock, with the configured life.
        let timely = list.issued.abs_diff(now) <= CLOCK_TOLERANCE
            && life == Some(self.config.revocation_validity.max(1));
        if timely && (new || self.renewal_is_due(now.saturating_add(CLOCK_TOLERANCE))) {
            Ok(())
        } else {
            Err(refused(SignRefusalReason::Times))
        }
    }

    /// Returns true if this member knows of a revocation as it is in a list, or its operator proposes it, if
    /// not for longer and for more readers.
    fn confirms(&self, drone: &Revoked) -> bool {
        let statements = &self.statements;
        let known = statements.list.list().find(&drone.serial);
        let bound = statements.bound.as_ref().and_then(|bound| bound.find(&drone.serial));
        let both = known.zip(bound).map(|(known, bound)| known.and(bound));
        let proposal = statements.pending.drones.get(&drone.serial);
        known == Some(drone)
            || bound == Some(drone)
            || both == Some(*drone)
            || proposal.is_some_and(|proposal| drone.covers(proposal))
    }

    /// Returns true if the newest list must be signed anew.
    fn renewal_is_due(&self, now: UnixTime) -> bool {
        let list = self.statements.list.list();
        list.number > 0 && now >= renewal_time(list.next_update, self.config.revocation_validity)
    }

    /// Returns true if this is about the authority that the proposer is for identity-based encryption, and no
    /// other.
    pub(super) fn is_about_ibe(&self, by: KgcId, body: &[u8]) -> bool {
        let (Ok(statement), Some(keys), Some(form)) =
            (AuthorityStatement::<S>::decode(body), self.keys, &self.config.ibe_statements)
        else {
            return false;
        };
        statement.kind.as_str() == "ibe"
            && Some(&statement.name) == ibe_name(by).as_ref()
            && statement.scheme.as_str() == form.scheme
            && statement.schema.is_empty()
            && statement.delivery == *keys.ainq().public().master()
            && statement.parameters == (form.parameters)(keys.ibe().public())
    }

    /// The list that this member would have signed, if there is any reason for one: with those whom enough
    /// members propose to revoke, and a number above `highest`.
    pub(super) fn next_list(
        &self,
        now: UnixTime,
        proposed: &[Revoked],
        highest: u64,
    ) -> Option<RevocationStatement> {
        let list = self.list_with(now, proposed, highest);
        // §12.3: one that names too many must not keep those from being renewed that it names already.
        if too_long::<S>(&list) && self.renewal_is_due(now) {
            return Some(self.list_with(now, &[], highest));
        }
        let known = self.statements.list.list();
        let new = list.revoked.iter().any(|drone| known.find(&drone.serial) != Some(drone));
        (new || self.renewal_is_due(now)).then_some(list)
    }

    /// A list of all entries ever signed here, and of these, without those whose identity has ended.
    fn list_with(&self, now: UnixTime, proposed: &[Revoked], highest: u64) -> RevocationStatement {
        let (known, bound) = (self.statements.list.list(), self.statements.bound.as_ref());
        let bound_drones = bound.map(|bound| bound.revoked.as_slice()).unwrap_or_default();
        let revoked = known.revoked.iter().chain(bound_drones).chain(proposed);
        let signed = known.number.max(bound.map_or(0, |bound| bound.number)).max(highest);
        let mut list = RevocationStatement {
            // §12.5: at least the time: members whose state went back do not count from there.
            number: signed.saturating_add(1).max(now),
            issued: now,
            next_update: now.saturating_add(self.config.revocation_validity.max(1)),
            revoked: revoked.filter(|drone| !drone.has_ended(now)).copied().collect(),
        };
        list.sort();
        list
    }
}

/// Returns true if a list may replace another: it names all that the other names, for as long and for as many
/// readers, but those whose identity has ended.
fn carries_on(list: &RevocationStatement, other: &RevocationStatement) -> bool {
    other.revoked.iter().all(|drone| {
        list.find(&drone.serial).is_some_and(|named| named.covers(drone)) || drone.has_ended(list.issued)
    })
}

/// Returns true if a list would be too long once it is signed.
fn too_long<S: QuorumSuite>(list: &RevocationStatement) -> bool {
    list.encode().len() + StatementSignature::<S>::LEN > MAX_REVOCATION_LIST_LEN
}
