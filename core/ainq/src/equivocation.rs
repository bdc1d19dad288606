//! Evidence against a leader that signed two different headers for one epoch.

use crate::{Deployment, DronePublicKey, Error, Header, Name, Suite};

/// Two headers that contradict each other. Anybody can check it, so it can be handed on.
#[derive(Clone, Debug)]
pub struct EquivocationProof<S: Suite> {
    /// One header.
    pub first: Header<S>,
    /// The other one.
    pub second: Header<S>,
}

impl<S: Suite> EquivocationProof<S> {
    /// Checks the evidence and says who is to blame.
    ///
    /// # Errors
    /// [`Error::WrongGroup`] if a header is of another group; [`Error::Malformed`] if the headers are of different
    /// leaders or epochs or say the same; [`Error::InvalidSignature`] or [`Error::NotALeader`] if one of them is none.
    pub fn verify(self, deployment: &Deployment<S>, group: &Name) -> Result<DronePublicKey<S>, Error> {
        let (first, second) = (self.first.core.epoch, self.second.core.epoch);
        if self.first.core.group != *group || self.second.core.group != *group {
            return Err(Error::WrongGroup);
        }
        if first != second || self.first.core.leader.handle() != self.second.core.leader.handle() {
            return Err(Error::Malformed("headers that do not contradict each other"));
        }
        let first = self.first.verify_signer(deployment)?;
        let second = self.second.verify_signer(deployment)?;
        // Two signatures over the same D are no contradiction.
        if first.digest() == second.digest() {
            return Err(Error::Malformed("headers that do not contradict each other"));
        }
        Ok(second.into_header().core.leader)
    }
}
