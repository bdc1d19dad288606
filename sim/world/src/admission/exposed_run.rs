//! A run of an anonymous drone, as the adversary that computes discrete logarithms has it (§A5.1).

use quiver_ainq::{
    AgreedSecret, EpochPart, Error, GroupContext, GroupMembership, KemKey, Pseudonym, Suite, VerifiedHeader,
};
use quiver_message::Nonce;

use super::anonymous_edge;
use crate::{Sabotage, World};

/// Secrets of the newest run of an anonymous drone.
///
/// The world takes W out of the machine, because the exchange is over another group, in which nothing here
/// computes a logarithm.
#[derive(Clone)]
pub(crate) struct ExposedRun<S: Suite> {
    nonce: Nonce,
    pseudonym: Pseudonym,
    /// W of the exchange.
    secret: AgreedSecret,
    /// κ of the run, if the drone's log has it.
    logged: Option<KemKey<S>>,
}

impl<S: Suite> ExposedRun<S> {
    /// The run of an edge that a leader has confirmed; `None` if it is in none.
    pub(crate) fn of(world: &World<S>, edge: u32) -> Option<Self> {
        let run = anonymous_edge(world.edge(edge)?)?.compromised_run()?;
        // Sabotage: a driver that writes into its log what the machine has in memory.
        let logged = run.kem.filter(|_| world.setup().sabotage == Sabotage::LogRunKem).cloned();
        Some(Self { nonce: *run.nonce, pseudonym: *run.pseudonym, secret: run.secret.clone(), logged })
    }

    /// Nonce of the run, which its welcome names.
    pub(crate) const fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// κ of the run, if the drone's log has it.
    pub(crate) const fn logged(&self) -> Option<&KemKey<S>> {
        self.logged.as_ref()
    }

    /// The membership that begins with an epoch for the run, if κ is that of the run or there is none.
    ///
    /// # Errors
    /// Errors of [`GroupMembership::admitted`].
    pub(crate) fn enter(
        &self,
        context: &GroupContext<S>,
        kem: Option<&KemKey<S>>,
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<GroupMembership<S>, Error> {
        GroupMembership::admitted(context, &self.pseudonym, (&self.secret, kem), header, part)
    }
}
