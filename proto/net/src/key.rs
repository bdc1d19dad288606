//! The node's transport key.

use libp2p::PeerId;
use libp2p::identity::Keypair;
use rand_core::CryptoRngCore;

use crate::error::NetError;

/// The Ed25519 key that names a node on the transport. It authenticates connections, nothing of the protocol.
#[derive(Clone, derive_more::Debug)]
#[debug("NodeKey({})", self.peer_id())]
pub struct NodeKey(Keypair);

impl NodeKey {
    /// The key with this 32-byte secret. The bytes are erased.
    ///
    /// # Errors
    /// [`NetError::InvalidKey`] if libp2p refuses the bytes.
    pub fn from_seed(mut seed: [u8; 32]) -> Result<Self, NetError> {
        Keypair::ed25519_from_bytes(&mut seed).map(Self).map_err(|_| NetError::InvalidKey)
    }

    /// A fresh key.
    ///
    /// # Errors
    /// As [`NodeKey::from_seed`].
    pub fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Result<Self, NetError> {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        Self::from_seed(seed)
    }

    /// The name others know the node by.
    pub fn peer_id(&self) -> PeerId {
        self.0.public().to_peer_id()
    }

    pub(crate) fn keypair(&self) -> &Keypair {
        &self.0
    }
}
