//! Leaders that contradicted themselves: refused for good, by everybody who saw the proof.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, DronePublicKey, EquivocationProof, Handle, Suite};
use quiver_message::{MAX_MESSAGE_LEN, Message};

/// How many leaders are refused at most. Each has a key that the KGC issued for leading a group.
const MAX_REFUSED: usize = 64;
/// How long a proof may be that is kept to be handed on.
const MAX_KEPT: usize = 1 << 16;

/// The leaders refused, with the proofs as messages where somebody will ask for them: an edge hands a proof on once, when it is news,
/// and keeps none of it, so that it has at most 64 handles of 32 bytes to remember.
#[derive(Debug)]
pub(crate) struct Refused {
    proofs: BTreeMap<Handle, Vec<u8>>,
}

impl Refused {
    pub(crate) fn new() -> Self {
        Self { proofs: BTreeMap::new() }
    }

    pub(crate) fn names<S: Suite>(&self, leader: &DronePublicKey<S>) -> bool {
        !self.proofs.is_empty() && self.proofs.contains_key(&leader.handle())
    }

    /// Refuses a leader from now on; `proof` is empty where none is kept. Returns false if it was refused before, or if there is no room.
    pub(crate) fn insert(&mut self, leader: Handle, proof: Vec<u8>) -> bool {
        let room = self.proofs.len() < MAX_REFUSED && !self.proofs.contains_key(&leader);
        if room {
            let proof = if proof.len() <= MAX_KEPT { proof } else { Vec::new() };
            self.proofs.insert(leader, proof);
        }
        room
    }

    /// The proof against a leader as a message, if one is kept.
    #[cfg(feature = "services")]
    pub(crate) fn proof<S: Suite>(&self, leader: &DronePublicKey<S>) -> Option<&[u8]> {
        self.proofs.get(&leader.handle()).map(Vec::as_slice)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Handle, &[u8])> {
        self.proofs.iter().map(|(handle, proof)| (handle, proof.as_slice()))
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
