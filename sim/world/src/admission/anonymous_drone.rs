//! The state of an anonymous drone: credential shown, periods used, when it comes back.
//!
//! Its machine makes one run and has one membership, and is then over. The decision about the next one is
//! here, as the service makes it.

use std::time::Duration;

use quiver_abke::Credential;

use super::CertifiedFields;
use crate::step::MachineEnd;

/// Delay before a drone returns, at first and at most.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A credential and its fields.
#[derive(Clone)]
pub(crate) struct Showing {
    pub(crate) credential: Credential,
    pub(crate) period: u64,
    /// True if its fields satisfy the policy.
    pub(crate) suffices: bool,
}

/// An anonymous drone, from the first time that it wants to join.
pub(crate) struct AnonymousDrone {
    /// True if it wants to be in the group.
    pub(crate) wants: bool,
    /// The fields that the operator certifies.
    pub(crate) fields: CertifiedFields,
    /// True if nothing is certified for it any more, from the next period on.
    pub(crate) revoked: bool,
    /// Credential of the drone.
    pub(crate) held: Option<Showing>,
    /// True if the credential of its present machine, or of its last one, satisfies the policy; and its
    /// period.
    pub(crate) shown: Option<(bool, u64)>,
    /// The period whose credential has no further use.
    pub(crate) spent: Option<u64>,
    pause: Duration,
    /// True if its return is planned.
    pub(crate) returns: bool,
}

/// Time at which a drone whose machine is over returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// The drone returns after about this long.
    After(Duration),
    /// The drone returns in the next period.
    WithThePeriod,
    /// Never.
    Never,
}

impl AnonymousDrone {
    pub(crate) const fn new(fields: CertifiedFields) -> Self {
        Self {
            wants: true,
            fields,
            revoked: false,
            held: None,
            shown: None,
            spent: None,
            pause: PAUSE,
            returns: false,
        }
    }

    /// Sets the fields that the operator certifies. They are proved in the next run.
    pub(crate) fn certified(&mut self, fields: CertifiedFields) {
        (self.fields, self.revoked, self.held, self.spent) = (fields, false, None, None);
    }

    /// Notes that it is a member.
    pub(crate) const fn admitted(&mut self) {
        self.pause = PAUSE;
    }

    /// Handles the end of its machine.
    pub(crate) fn over(&mut self, end: MachineEnd) -> Return {
        if end == MachineEnd::Left {
            self.wants = false;
        }
        if !self.wants {
            return Return::Never;
        }
        if end == MachineEnd::Final {
            self.spent = self.held.as_ref().map(|held| held.period);
            return Return::WithThePeriod;
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        Return::After(pause)
    }

    /// The credential that it can prove in this period, without asking the authority.
    pub(crate) fn credential_for(&self, period: u64) -> Option<&Showing> {
        self.held.as_ref().filter(|held| held.period == period)
    }

    /// Returns true if it has a useful credential to prove in this period.
    pub(crate) fn has_credential_for(&self, period: u64) -> bool {
        self.wants && self.spent != Some(period) && (!self.revoked || self.credential_for(period).is_some())
    }
}
