//! The keyring in a drone's state file, shared by the tasks of one process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keyring::{ATTACHMENT, Keyring, KeyringEntry};
use crate::node_state::NodeState;
use quiver_ainq::{Deployment, Ristretto255, SignedRevocationList};
use quiver_delivery::attributes::HeldAuthority;
use tokio::sync::watch;

use crate::drone::{Error, Result};

/// Attachment: the newest revocation list that was fetched from the KGC.
const REVOCATIONS: &str = "revocations";

/// A state file that several tasks use.
pub type SharedState = Arc<Mutex<NodeState>>;

/// The state file, also if a task panicked with it: it is whole after every change.
pub fn locked(state: &Mutex<NodeState>) -> MutexGuard<'_, NodeState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keyring of a drone. Clones are of the same one.
#[derive(Clone, Debug)]
pub struct Keys {
    state: SharedState,
    deployment: Deployment<Ristretto255>,
    /// Counts changes.
    changes: Arc<watch::Sender<u64>>,
}

impl Keys {
    /// The keyring in this state file.
    pub fn new(state: SharedState, deployment: Deployment<Ristretto255>) -> Self {
        Self { state, deployment, changes: Arc::new(watch::Sender::new(0)) }
    }

    /// The deployment.
    pub fn deployment(&self) -> &Deployment<Ristretto255> {
        &self.deployment
    }

    /// Watches changes of the keys, for users of them.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The state file, in which features have attachments of their own.
    pub fn state(&self) -> &SharedState {
        &self.state
    }

    /// Reads the keyring and verifies every statement. Empty if nothing was ever fetched.
    ///
    /// # Errors
    /// [`Error::Keyring`].
    pub fn keyring(&self) -> Result<Keyring<Ristretto255>> {
        match locked(&self.state).attachment(ATTACHMENT) {
            Some(bytes) => Keyring::decode(bytes, &self.deployment).map_err(Error::Keyring),
            None => Ok(Keyring::default()),
        }
    }

    /// Takes an entry, durably. Returns whether that changes anything.
    ///
    /// # Errors
    /// [`Error::Keyring`], and those of writing the file.
    pub fn put(&self, entry: KeyringEntry<Ristretto255>) -> Result<bool> {
        let mut keyring = self.keyring()?;
        let changed = keyring.put(entry).map_err(Error::Keyring)?;
        if changed {
            locked(&self.state).attach(ATTACHMENT, &keyring.encode())?;
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(changed)
    }

    /// The newest revocation list fetched from the KGC, as signed; `None` before the first.
    pub fn revocations(&self) -> Option<Vec<u8>> {
        locked(&self.state).attachment(REVOCATIONS).map(<[u8]>::to_vec)
    }

    /// Number of the newest list, 0 for none.
    ///
    /// # Errors
    /// [`Error::Keyring`] if what is stored is no list of this deployment.
    pub(crate) fn revocation_number(&self) -> Result<u64> {
        let Some(list) = self.revocations() else { return Ok(0) };
        let list = SignedRevocationList::<Ristretto255>::decode(&list)
            .and_then(|list| list.verify(&self.deployment));
        Ok(list.map_err(Error::Keyring)?.number)
    }

    /// Takes a verified list, durably.
    ///
    /// # Errors
    /// Those of writing the file.
    pub(crate) fn put_revocations(&self, list: &[u8]) -> Result<()> {
        Ok(locked(&self.state).attach(REVOCATIONS, list)?)
    }

    /// The statements and grants held, for a fetcher.
    pub(crate) fn held(&self) -> Result<Vec<HeldAuthority>> {
        let keyring = self.keyring()?;
        let held = keyring.entries().map(|entry| HeldAuthority {
            statement: entry.authority.bytes(),
            grant: entry.key.as_ref().map(|key| key.grant),
        });
        Ok(held.collect())
    }
}
