//! Leaders that contradicted themselves: refused for good, by every node that saw the proof, under whatever
//! key they sign next.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, DronePublicKey, EquivocationProof, Serial, Suite};
use quiver_message::{MAX_MESSAGE_LEN, Message};

/// Maximum number of refused leaders. Each had a token for leading a group: more keys of one leader take no
/// more room.
const MAX_REFUSED: usize = 64;
/// Maximum length of a proof that is kept for distribution, in bytes.
const MAX_KEPT: usize = 1 << 16;

/// The leaders refused, with the proofs as messages at nodes that serve them: an edge passes a proof on once,
/// when it is news, and keeps none of it, so that it has at most 64 serials of 16 bytes to remember.
#[derive(Debug)]
pub(crate) struct RefusedLeaders {
    proofs: BTreeMap<Serial, Vec<u8>>,
}

impl RefusedLeaders {
    pub(crate) fn new() -> Self {
        Self { proofs: BTreeMap::new() }
    }

    pub(crate) fn names<S: Suite>(&self, leader: &DronePublicKey<S>) -> bool {
        self.proofs.contains_key(&leader.identity.serial)
    }

    /// Refuses a leader from now on; `proof` is empty where none is kept. Returns false if it was refused
    /// before, or if there is no room.
    pub(crate) fn insert(&mut self, leader: Serial, proof: Vec<u8>) -> bool {
        // §10.9: 64 leaders.
        let room = self.proofs.len() < MAX_REFUSED && !self.proofs.contains_key(&leader);
        if room {
            let proof = if proof.len() <= MAX_KEPT { proof } else { Vec::new() };
            self.proofs.insert(leader, proof);
        }
        room
    }

    /// The proof against a leader as a message, if one is kept.
    #[allow(dead_code, reason = "boards serve none")]
    pub(crate) fn proof<S: Suite>(&self, leader: &DronePublicKey<S>) -> Option<&[u8]> {
        self.proofs.get(&leader.identity.serial).map(Vec::as_slice)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Serial, &[u8])> {
        self.proofs.iter().map(|(serial, proof)| (serial, proof.as_slice()))
    }
}

/// The proof as a message, if it fits one.
pub(crate) fn encode_proof<S: Suite>(
    deployment: &Deployment<S>,
    proof: &EquivocationProof<S>,
) -> Option<Vec<u8>> {
    let message = Message::EquivocationProof(Box::new(proof.clone())).encode(deployment);
    (message.len() <= MAX_MESSAGE_LEN).then_some(message)
}
