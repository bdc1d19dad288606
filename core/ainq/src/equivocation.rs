//! Proofs of equivocation: two different headers for one epoch, signed by one leader, under one of its keys
//! or two.

use crate::{Deployment, DronePublicKey, Error, Header, Name, Suite};

/// Two headers that contradict each other. Anybody can check it, so it can be handed on.
#[derive(Clone, Debug)]
pub struct EquivocationProof<S: Suite> {
    /// A header.
    pub first: Header<S>,
    /// The other one.
    pub second: Header<S>,
}

impl<S: Suite> EquivocationProof<S> {
    /// Verifies the evidence and returns the culprit: the drone with this key's serial, whatever other keys
    /// it has.
    ///
    /// Two leaders contradict each other if their serials are equal. A drone of a quorum can make itself any
    /// of several keys, so two signatures under two keys of one serial are one drone's statements as much as
    /// two under one key.
    ///
    /// # Errors
    /// [`Error::WrongGroup`] if a header is of another group; [`Error::Malformed`] if the headers are of
    /// different leaders or epochs or say the same; [`Error::InvalidSignature`] or [`Error::NotALeader`] if
    /// one of them is none.
    pub fn verify(mut self, deployment: &Deployment<S>, group: &Name) -> Result<DronePublicKey<S>, Error> {
        let (first, second) = (&self.first.core, &self.second.core);
        // §10.7: one group, one epoch, one serial.
        if first.group != *group || second.group != *group {
            return Err(Error::WrongGroup);
        }
        if first.epoch != second.epoch || first.leader.identity.serial != second.leader.identity.serial {
            return Err(Error::Malformed("headers that do not contradict each other"));
        }
        // §10.7: both signatures, and that the signer leads this group under the term's ordinal.
        let (_, first) = self.first.verify_signer(deployment)?;
        let (_, second) = self.second.verify_signer(deployment)?;
        // §10.7: two signatures over the same D are no contradiction.
        if first == second {
            return Err(Error::Malformed("headers that do not contradict each other"));
        }
        Ok(self.second.core.leader)
    }
}
