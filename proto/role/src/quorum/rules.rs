//! What a member signs: what its own state and its own operator bear out, whoever proposes it.
//!
//! | purpose | signed if |
//! |---|---|
//! | `quorum` | it is the encoding of the public shares in force here |
//! | `revocation` | its number is above that of every list signed here before, it names all that these name, whatever is new in it is wished by the operator here or proven, and its times fit the clock here; with nothing new, if it is due |
//! | `parameters` | its first word is not `abke-policy`, and the operator here has approved it, or it is about the proposer's part in identity-based encryption, with the public shares in force here |
//! | `abke-policy` | its first word is `abke-policy`, and the operator here has approved it |
//!
//! So t operators must agree to revoke, and fewer than t liars get nothing signed.

use alloc::vec::Vec;

use quiver_ainq::{AuthorityStatement, KgcId, Purpose, RevocationList, UnixTime};
use quiver_message::quorum::SignRefusalReason;
use quiver_quorum::QuorumSuite;

use super::interface::{approval, proposed, renewal_time};
use super::{QuorumNode, ibe_name};
use crate::CLOCK_TOLERANCE;

/// How far a list's number may be ahead of the newest list: numbers of lists that came to nothing are not used again.
pub(super) const MAX_AHEAD: u64 = 1024;

/// Why not; with the highest number signed for, if that is why.
pub(super) type Refused = (SignRefusalReason, u64);

const fn refused(reason: SignRefusalReason) -> Refused {
    (reason, 0)
}

impl<S: QuorumSuite> QuorumNode<S> {
    /// Whether this member signs what `by` proposes.
    pub(super) fn judge(
        &self,
        now: UnixTime,
        by: KgcId,
        version: u32,
        purpose: Purpose,
        body: &[u8],
    ) -> Result<(), Refused> {
        let keys = self.keys.as_ref().ok_or(refused(SignRefusalReason::Version))?;
        if keys.version() != version {
            return Err(refused(SignRefusalReason::Version));
        }
        match purpose {
            Purpose::Quorum if keys.ainq().public().encode() == body => Ok(()),
            Purpose::Revocation => {
                let list = RevocationList::decode(body).map_err(|_| refused(SignRefusalReason::Content))?;
                self.judge_list(now, &list)
            }
            Purpose::Parameters | Purpose::AbkePolicy
                if purpose == proposed(body) && self.statements.approvals.contains(&approval(body)) =>
            {
                Ok(())
            }
            Purpose::Parameters if self.is_about_ibe(by, body) => Ok(()),
            Purpose::Parameters | Purpose::AbkePolicy => Err(refused(SignRefusalReason::NotApproved)),
            _ => Err(refused(SignRefusalReason::Content)),
        }
    }

    fn judge_list(&self, now: UnixTime, list: &RevocationList) -> Result<(), Refused> {
        let (known, bound) = (self.statements.list.list(), self.statements.bound.as_ref());
        let again = bound == Some(list);
        let signed = known.number.max(bound.map_or(0, |bound| bound.number));
        if list.number <= known.number || (list.number <= signed && !again) {
            return Err((SignRefusalReason::Superseded, signed));
        }
        if list.number > signed.saturating_add(MAX_AHEAD) {
            return Err(refused(SignRefusalReason::Content));
        }
        if !includes(list, known) || bound.is_some_and(|bound| !includes(list, bound)) {
            return Err((SignRefusalReason::Superseded, signed));
        }
        let wishes = &self.statements.wishes;
        let named =
            |handle| known.names_handle(handle) || bound.is_some_and(|bound| bound.names_handle(handle));
        let has = |list: &RevocationList, serial| list.serials.binary_search(serial).is_ok();
        let handles = list.handles.iter().all(|handle| named(handle) || wishes.handles.contains(handle));
        let serials = list.serials.iter().all(|serial| {
            has(known, serial)
                || bound.is_some_and(|bound| has(bound, serial))
                || wishes.serials.contains(serial)
        });
        if !handles || !serials {
            return Err(refused(SignRefusalReason::NotApproved));
        }
        let new = list.handles.len() > known.handles.len() || list.serials.len() > known.serials.len();
        let life = list.next_update.checked_sub(list.issued);
        let timely = list.issued.abs_diff(now) <= CLOCK_TOLERANCE
            && life == Some(self.config.revocation_validity.max(1));
        if timely && (new || self.renewal_is_due(now.saturating_add(CLOCK_TOLERANCE))) {
            Ok(())
        } else {
            Err(refused(SignRefusalReason::Times))
        }
    }

    /// Whether the newest list must be signed anew.
    pub(super) fn renewal_is_due(&self, now: UnixTime) -> bool {
        let list = self.statements.list.list();
        list.number > 0 && now >= renewal_time(list.next_update, self.config.revocation_validity)
    }

    /// Whether this is about the authority that the proposer is for identity-based encryption, and no other.
    pub(super) fn is_about_ibe(&self, by: KgcId, body: &[u8]) -> bool {
        let (Ok(statement), Some(keys)) = (AuthorityStatement::<S>::decode(body), &self.keys) else {
            return false;
        };
        statement.kind.as_str() == "ibe"
            && Some(&statement.name) == ibe_name(by).as_ref()
            && statement.schema.is_empty()
            && statement.parameters == (self.config.ibe_parameters)(keys.ibe().public())
    }

    /// The list that this member would have signed, if there is any reason for one.
    pub(super) fn next_list(&self, now: UnixTime) -> Option<RevocationList> {
        let statements = &self.statements;
        let enough = usize::from(self.config.charter.parameters().threshold());
        let (known, bound) = (statements.list.list(), statements.bound.as_ref());
        let wished = statements.wished_by(enough);
        let bound_handles = bound.map(|bound| bound.handles.as_slice()).unwrap_or_default();
        let bound_serials = bound.map(|bound| bound.serials.as_slice()).unwrap_or_default();
        let mut handles: Vec<_> =
            known.handles.iter().chain(&wished.handles).chain(bound_handles).copied().collect();
        let mut serials: Vec<_> =
            known.serials.iter().chain(&wished.serials).chain(bound_serials).copied().collect();
        handles.sort_unstable();
        handles.dedup();
        serials.sort_unstable();
        serials.dedup();
        let new = handles.len() > known.handles.len() || serials.len() > known.serials.len();
        if !new && !self.renewal_is_due(now) {
            return None;
        }
        let signed = known.number.max(bound.map_or(0, |bound| bound.number)).max(self.signing.highest);
        Some(RevocationList {
            number: signed.saturating_add(1),
            issued: now,
            next_update: now.saturating_add(self.config.revocation_validity.max(1)),
            handles,
            serials,
        })
    }
}

/// Whether a list names all that another names.
fn includes(list: &RevocationList, other: &RevocationList) -> bool {
    other.handles.iter().all(|handle| list.names_handle(handle))
        && other.serials.iter().all(|serial| list.serials.binary_search(serial).is_ok())
}
