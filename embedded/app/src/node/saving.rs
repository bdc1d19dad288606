//! Loading, saving and wiping the state.

use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::Secret;
use quiver_link::Counter;
use quiver_role::edge::Provisioning;
use rand_core::CryptoRngCore;

use super::{Node, RETRY, RETRY_MAX, S};
use crate::StorageError;
use crate::kept;

impl<F: MultiwriteNorFlash, R: CryptoRngCore> Node<F, R> {
    /// Looks at the flash, once it can be read.
    pub(super) async fn load(&mut self, now: Duration) {
        match self.storage.load().await {
            Err(error) => {
                self.retry_at = now.saturating_add(RETRY);
                self.tell_storage(&error);
            }
            Ok(state) => {
                self.loaded = true;
                if self.storage.counters().damaged > 0 {
                    self.tell_line(format_args!(
                        "fault stored state is damaged: provision anew, with a fresh token"
                    ));
                }
                match state.as_deref().map(|bytes| kept::decode(bytes)) {
                    Some(Some(kept)) => self.set_up(now, kept).await,
                    Some(None) => {
                        self.report.add(Counter::StateDamaged);
                        self.tell_line(format_args!(
                            "fault stored state is of another version: wipe, then provision"
                        ));
                    }
                    None => self.tell_line(format_args!("unprovisioned")),
                }
            }
        }
    }

    /// Makes durable what must be. False if that failed; it is tried again after a while.
    pub(super) async fn save(&mut self, now: Duration) -> bool {
        let (Some(state), Some(settings)) = (&self.unsaved, &mut self.settings) else { return true };
        let bytes = kept::encode(settings, Some(state));
        match self.store(now, &bytes).await {
            Ok(()) => {
                self.unsaved = None;
                self.patience = RETRY;
                true
            }
            Err(error) => {
                // Trying wears the flash as well.
                self.retry_at = now.saturating_add(self.patience);
                self.patience = (2 * self.patience).min(RETRY_MAX);
                self.tell_storage(&error);
                false
            }
        }
    }

    /// Keeps new settings, with their token.
    pub(super) async fn keep(
        &mut self,
        now: Duration,
        settings: &Provisioning<S>,
    ) -> Result<(), StorageError> {
        let bytes = kept::encode(settings, None);
        self.store(now, &bytes).await
    }

    async fn store(&mut self, now: Duration, bytes: &[u8]) -> Result<(), StorageError> {
        // Nobody gets here without randomness.
        let rng = self.random.generator(now).ok_or(StorageError::NoKey)?;
        let key = Secret::random(rng);
        self.storage.replace(bytes, key).await
    }

    /// Forgets everything.
    pub(super) async fn wipe(&mut self) {
        (self.machine, self.settings, self.unsaved, self.held) = (None, None, None, None);
        self.deadline = None;
        self.moved = Some(None);
        match self.storage.wipe().await {
            Ok(()) => self.tell_line(format_args!("wiped")),
            Err(error) => self.tell_storage(&error),
        }
        self.loaded = true;
    }
}
