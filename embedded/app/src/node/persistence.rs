//! Loading, saving and wiping the state.

use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_crypto::{Secret, Zeroizing};
use quiver_group::edge::Provisioning;
use quiver_link::Counter;
use quiver_machine::{Destination, Snapshot};
use rand_core::CryptoRngCore;

use super::{BoardEdgeNode, S};
use crate::StorageError;
use crate::parts::BoardPart;
use crate::storage::{Storage, StorageCounters};
use crate::stored_state::{self, PartRecord};

/// Delay before a failed operation is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// The same for writes to flash that fail again and again.
const RETRY_MAX: Duration = Duration::from_secs(600);

/// The state in flash, and what waits until it is durable there.
pub(super) struct FlashStore<F> {
    storage: Storage<F>,
    /// True if the flash has been looked at.
    is_loaded: bool,
    /// Time of the next try, of what failed.
    retry_at: Duration,
    /// Delay after the next write that fails.
    patience: Duration,
    /// Delay before the state that was replaced by a too long one is restored.
    relapse: Duration,
    /// Snapshot that must be durable before the held message is sent.
    unsaved: Option<Snapshot>,
    held: Option<(Destination, Vec<u8>)>,
}

impl<F: MultiwriteNorFlash> FlashStore<F> {
    pub(super) const fn new(storage: Storage<F>) -> Self {
        Self {
            storage,
            is_loaded: false,
            retry_at: Duration::ZERO,
            patience: RETRY,
            relapse: RETRY,
            unsaved: None,
            held: None,
        }
    }

    /// Returns true if the flash has been looked at.
    pub(super) const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Returns true if nothing waits.
    pub(super) const fn is_durable(&self) -> bool {
        self.unsaved.is_none() && self.held.is_none()
    }

    /// Returns true if what failed may be tried again.
    pub(super) fn may_retry(&self, now: Duration) -> bool {
        self.retry_at <= now
    }

    /// Time before which nothing can be done; `None` if there is no reason to wait.
    pub(super) fn blocked_until(&self) -> Option<Duration> {
        (!self.is_loaded || self.unsaved.is_some()).then_some(self.retry_at)
    }

    /// Notes a snapshot, in place of one that waits: of several in a row only the last one matters, and flash wears.
    pub(super) fn must_save(&mut self, state: Snapshot) {
        self.unsaved = Some(state);
    }

    /// Holds a message until the snapshots before it are durable.
    pub(super) fn hold(&mut self, to: Destination, payload: Vec<u8>) {
        self.held = Some((to, payload));
    }

    /// Returns true if a message is held.
    pub(super) const fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the held message, once what it waits for is durable.
    pub(super) const fn take_held(&mut self) -> Option<(Destination, Vec<u8>)> {
        self.held.take()
    }

    /// Bytes of the longest state that there is room for.
    pub(super) fn limit(&self) -> usize {
        self.storage.limit()
    }

    pub(super) const fn counters(&self) -> StorageCounters {
        self.storage.counters()
    }

    /// Writing failed: it wears the flash as well, so it is tried later each time.
    fn write_failed(&mut self, now: Duration) {
        self.retry_at = now.saturating_add(self.patience);
        self.patience = (2 * self.patience).min(RETRY_MAX);
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore, P: BoardPart> BoardEdgeNode<F, R, P> {
    /// Looks at the flash, once it can be read.
    pub(super) async fn load(&mut self, now: Duration) {
        let state = match self.store.storage.load().await {
            Ok(state) => state,
            Err(error) => {
                self.store.retry_at = now.saturating_add(RETRY);
                return self.board.report_storage_error(&error);
            }
        };
        self.store.is_loaded = true;
        if self.store.storage.counters().damaged > 0 {
            self.print_line(format_args!(
                "fault stored state is damaged: provision anew, with a fresh token"
            ));
        }
        let Some(bytes) = state else { return self.print_line(format_args!("unprovisioned")) };
        let is_restored = self.restore(now, &bytes);
        // Erased now, because what follows takes long.
        drop(bytes);
        if is_restored {
            self.connect_machine(now).await;
        }
    }

    /// Creates the machine of a stored state. False if the state is of another version.
    #[inline(never)]
    fn restore(&mut self, now: Duration, bytes: &[u8]) -> bool {
        let Some(stored) = stored_state::decode(bytes, P::STATE_VERSION) else {
            self.board.report.add(Counter::StateDamaged);
            self.print_line(format_args!("fault stored state is of another version: wipe, then provision"));
            return false;
        };
        self.create_machine(now, stored);
        true
    }

    /// Makes durable what must be. False if that failed; it is tried again after a while.
    pub(super) async fn save(&mut self, now: Duration) -> bool {
        let Some(mut bytes) = self.unsaved_state() else { return true };
        // Rather a part less than no group.
        if bytes.len() > self.store.limit() && self.parts.erase_record(&mut self.board) {
            bytes = self.unsaved_state().unwrap_or(bytes);
        }
        match self.replace_state(now, &bytes).await {
            Ok(()) => {
                if let Some(state) = self.store.unsaved.take() {
                    self.parts.stored(state);
                }
                self.store.patience = RETRY;
                true
            }
            Err(error) => {
                self.board.report_storage_error(&error);
                match error {
                    StorageError::Full { .. } => self.give_up(now),
                    _ => self.store.write_failed(now),
                }
                false
            }
        }
    }

    /// The encoded state that is not durable yet.
    fn unsaved_state(&self) -> Option<Zeroizing<Vec<u8>>> {
        let state = self.store.unsaved.as_ref()?;
        let bytes = self.parts.record();
        let record =
            P::STATE_VERSION.filter(|_| !bytes.is_empty()).map(|version| PartRecord { version, bytes });
        Some(stored_state::encode(self.board.settings.as_ref()?, record.as_ref(), Some(state)))
    }

    /// Discards the state that the flash has no room for, and goes back to the stored one: of the new one
    /// nothing was sent, so nobody counts on it. The cause of its length comes again, each time after a
    /// longer while, since every start writes a state.
    fn give_up(&mut self, now: Duration) {
        (self.machine, self.deadline) = (None, None);
        (self.store.unsaved, self.store.held) = (None, None);
        self.parts.discard_state();
        self.store.is_loaded = false;
        self.store.retry_at = now.saturating_add(self.store.relapse);
        self.store.relapse = (2 * self.store.relapse).min(RETRY_MAX);
        let seconds = self.store.relapse.as_secs() / 2;
        self.print_line(format_args!("fault back to the state before, in {seconds} s"));
    }

    /// Keeps new settings, with their token.
    pub(super) async fn save_settings(
        &mut self,
        now: Duration,
        settings: &Provisioning<S>,
    ) -> Result<(), StorageError> {
        let bytes = stored_state::encode(settings, None, None);
        self.replace_state(now, &bytes).await
    }

    async fn replace_state(&mut self, now: Duration, bytes: &[u8]) -> Result<(), StorageError> {
        // Without randomness the node does not come here.
        let rng = self.board.random.generator(now).ok_or(StorageError::NoKey)?;
        let key = Secret::random(rng);
        self.store.storage.replace(bytes, key).await
    }

    /// Forgets everything.
    pub(crate) async fn wipe(&mut self) {
        (self.machine, self.deadline, self.board.settings) = (None, None, None);
        (self.store.unsaved, self.store.held) = (None, None);
        self.parts.wipe();
        self.moved = Some(None);
        match self.store.storage.wipe().await {
            Ok(()) => self.print_line(format_args!("wiped")),
            Err(error) => self.board.report_storage_error(&error),
        }
        self.store.is_loaded = true;
    }
}
