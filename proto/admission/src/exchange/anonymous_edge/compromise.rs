//! Returns the secrets of an anonymous edge's run, as an adversary that compromised it has them: for
//! simulations and tests.

use quiver_ainq::{AgreedSecret, KemKey, Pseudonym, Suite};
use quiver_group::edge::compromise::CompromisedState;
use quiver_message::Nonce;

use super::{AdmissionProgress, AdmittedRun, AnonymousEdge};
use crate::AnyEdge;

/// Secrets of a run, from the leader's confirmation to the welcome.
#[derive(Clone, Copy)]
pub struct CompromisedRun<'a, S: Suite> {
    /// Nonce of the run, which the welcome names.
    pub nonce: &'a Nonce,
    /// Pseudonym of the membership to come.
    pub pseudonym: &'a Pseudonym,
    /// W of the exchange: all that discrete logarithms give.
    pub secret: &'a AgreedSecret,
    /// κ of the run, where there is a second factor.
    pub kem: Option<&'a KemKey<S>>,
}

impl<S: Suite> AnonymousEdge<S> {
    /// The secrets of its run; `None` before the leader has confirmed it, and once the welcome has come.
    pub const fn compromised_run(&self) -> Option<CompromisedRun<'_, S>> {
        let AdmissionProgress::Admitted(AdmittedRun { nonce, pseudonym, secret, kem, .. }) = &self.run else {
            return None;
        };
        Some(CompromisedRun { nonce, pseudonym, secret, kem: kem.as_ref() })
    }
}

impl<S: Suite> AnyEdge<S> {
    /// Returns the compromised state, as [`Edge::compromised_state`](quiver_group::Edge::compromised_state) does.
    pub fn compromised_state(&self) -> Option<CompromisedState<S>> {
        match self {
            Self::Named(edge) => edge.compromised_state(),
            Self::Anonymous(_) => None,
        }
    }

    /// Returns the secrets of an anonymous edge's run, as [`AnonymousEdge::compromised_run`] does.
    pub const fn compromised_run(&self) -> Option<CompromisedRun<'_, S>> {
        match self {
            Self::Named(_) => None,
            Self::Anonymous(edge) => edge.compromised_run(),
        }
    }
}
