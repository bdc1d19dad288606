//! Loading, saving and wiping the state.

use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::{Secret, Zeroizing};
use quiver_group::edge::Provisioning;
use quiver_link::Counter;
use rand_core::CryptoRngCore;

use super::{Attributes, BoardEdgeNode, GroupDatagrams, RETRY, RETRY_MAX, S};
use crate::StorageError;
use crate::stored_state;

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Looks at the flash, once it can be read.
    pub(super) async fn load(&mut self, now: Duration) {
        match self.storage.load().await {
            Err(error) => {
                self.retry_at = now.saturating_add(RETRY);
                self.report_storage_error(&error);
            }
            Ok(state) => {
                self.loaded = true;
                if self.storage.counters().damaged > 0 {
                    self.print_line(format_args!(
                        "fault stored state is damaged: provision anew, with a fresh token"
                    ));
                }
                match state.as_deref().map(|bytes| stored_state::decode(bytes)) {
                    Some(Some(stored)) => self.set_up(now, stored).await,
                    Some(None) => {
                        self.report.add(Counter::StateDamaged);
                        self.print_line(format_args!(
                            "fault stored state is of another version: wipe, then provision"
                        ));
                    }
                    None => self.print_line(format_args!("unprovisioned")),
                }
            }
        }
    }

    /// Makes durable what must be. False if that failed; it is tried again after a while.
    pub(super) async fn save(&mut self, now: Duration) -> bool {
        let Some(mut bytes) = self.unsaved_state() else { return true };
        if bytes.len() > self.storage.limit() && self.forget_attributes() {
            bytes = self.unsaved_state().unwrap_or(bytes);
        }
        match self.store(now, &bytes).await {
            Ok(()) => {
                if let Some(state) = self.unsaved.take() {
                    self.attributes.stored(state);
                }
                self.patience = RETRY;
                true
            }
            Err(error) => {
                self.report_storage_error(&error);
                if matches!(error, StorageError::Full { .. }) {
                    self.give_up(now);
                } else {
                    // Trying wears the flash as well.
                    self.retry_at = now.saturating_add(self.patience);
                    self.patience = (2 * self.patience).min(RETRY_MAX);
                }
                false
            }
        }
    }

    /// The encoded state that is not durable yet.
    fn unsaved_state(&self) -> Option<Zeroizing<Vec<u8>>> {
        let state = self.unsaved.as_ref()?;
        Some(stored_state::encode(self.settings.as_ref()?, &self.attributes.encoded(), Some(state)))
    }

    /// Discards the state that the flash has no room for, and goes back to the stored one: of the new one
    /// nothing was sent, so nobody counts on it. The cause of its length comes again, each time after a
    /// longer while, since every start writes a state.
    fn give_up(&mut self, now: Duration) {
        (self.machine, self.unsaved, self.held, self.deadline) = (None, None, None, None);
        self.attributes = Attributes::none();
        self.group_datagrams.machine_changed();
        self.loaded = false;
        self.retry_at = now.saturating_add(self.relapse);
        self.relapse = (2 * self.relapse).min(RETRY_MAX);
        let seconds = self.relapse.as_secs() / 2;
        self.print_line(format_args!("fault back to the state before, in {seconds} s"));
    }

    /// Keeps new settings, with their token.
    pub(super) async fn save_settings(
        &mut self,
        now: Duration,
        settings: &Provisioning<S>,
    ) -> Result<(), StorageError> {
        let bytes = stored_state::encode(settings, &[], None);
        self.store(now, &bytes).await
    }

    async fn store(&mut self, now: Duration, bytes: &[u8]) -> Result<(), StorageError> {
        // Without randomness the node does not come here.
        let rng = self.random.generator(now).ok_or(StorageError::NoKey)?;
        let key = Secret::random(rng);
        self.storage.replace(bytes, key).await
    }

    /// Forgets everything.
    pub(super) async fn wipe(&mut self) {
        (self.machine, self.settings, self.unsaved, self.held) = (None, None, None, None);
        self.attributes = Attributes::none();
        self.group_datagrams = GroupDatagrams::none();
        self.deadline = None;
        self.moved = Some(None);
        match self.storage.wipe().await {
            Ok(()) => self.print_line(format_args!("wiped")),
            Err(error) => self.report_storage_error(&error),
        }
        self.loaded = true;
    }
}
