//! Notes the head of the audit table in a file that only the passphrase or key writes, so that a table whose
//! end is missing is told from a whole one. The key that authenticates the registry is in the same file.
//!
//! The registry is durable before anything leaves the KGC. The note follows it, in the background and at most
//! every few seconds, and once more at the end of the service: no enrolment waits for it, and it never names a
//! line that is not on the disk. A crash or a thief can take away unnoticed the lines of the last seconds
//! alone.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::store::{KeptKey, Store};

/// Time between two notes, at least.
const INTERVAL: Duration = Duration::from_secs(5);
/// seq u64 ‖ hash 32 B
const LEN: usize = 40;

/// The last line of an audit table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditHead {
    /// Number of the line, from 1.
    pub(crate) seq: u64,
    /// Hash of the line, and through it that of all before it.
    pub(crate) hash: [u8; 32],
}

impl AuditHead {
    /// Encodes the head as it stands in the file: 40 bytes.
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let (seq, hash) = bytes.split_at_mut(8);
        seq.copy_from_slice(&self.seq.to_be_bytes());
        hash.copy_from_slice(&self.hash);
        bytes
    }

    /// Reads it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (seq, hash) = bytes.split_first_chunk()?;
        Some(Self { seq: u64::from_be_bytes(*seq), hash: hash.try_into().ok()? })
    }
}

/// The file that the head is noted in.
pub(crate) trait HeadFile {
    /// Name of the file.
    fn name(&self) -> &'static str;

    /// The head noted last.
    fn noted(&self) -> Option<AuditHead>;

    /// Notes a head durably, in place of the one before.
    fn note(&mut self, head: AuditHead) -> Result<()>;

    /// The key that authenticates the registry; `None` in a file of an earlier build.
    fn registry_key(&self) -> Option<&KeptKey>;

    /// Keeps that key durably, in place of the one before.
    fn keep_registry_key(&mut self, kept: KeptKey) -> Result<()>;
}

/// A file that a service and the keeper of the head have in common.
pub(crate) type SharedFile<F> = Arc<Mutex<F>>;

/// The file, for a moment.
pub(crate) fn lock<F>(file: &Mutex<F>) -> MutexGuard<'_, F> {
    // It is replaced as a whole or not at all: a thread that panicked left it whole.
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the note while the service runs.
pub(crate) struct HeadKeeper<F> {
    store: Store,
    file: SharedFile<F>,
    /// Reason why the head was not noted, if it was not: said once.
    trouble: Option<String>,
}

impl<F: HeadFile> HeadKeeper<F> {
    /// Checks the table against the head noted last.
    ///
    /// # Errors
    /// [`Error::AuditCut`] if the line that is noted is not in the table.
    pub(crate) fn start(store: Store, file: SharedFile<F>) -> Result<Self> {
        let (noted, name) = {
            let file = lock(&file);
            (file.noted(), file.name())
        };
        check(&store, noted, name)?;
        Ok(Self { store, file, trouble: None })
    }

    /// Notes the head now, whenever it has changed until `ended` is dropped, and then once more.
    pub(crate) async fn keep(mut self, mut ended: oneshot::Receiver<()>) {
        loop {
            tokio::task::block_in_place(|| self.note_or_warn());
            tokio::select! {
                _ = &mut ended => break,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
        tokio::task::block_in_place(|| self.note_or_warn());
    }

    /// A full disk, for one, is no reason to stop.
    fn note_or_warn(&mut self) {
        let trouble = self.note().err().map(|error| error.to_string());
        if trouble != self.trouble
            && let Some(trouble) = &trouble
        {
            let name = lock(&self.file).name();
            tracing::warn!("the head of the audit table could not be noted in {name}: {trouble}");
        }
        self.trouble = trouble;
    }

    fn note(&self) -> Result<()> {
        let Some(head) = self.store.audit().head()? else { return Ok(()) };
        let mut file = lock(&self.file);
        if file.noted() == Some(head) { Ok(()) } else { file.note(head) }
    }
}

/// Checks that a table has the line that was noted in this file.
///
/// # Errors
/// [`Error::AuditCut`].
pub(crate) fn check(store: &Store, noted: Option<AuditHead>, file: &'static str) -> Result<()> {
    let Some(noted) = noted else { return Ok(()) };
    let found = store.audit().hash(noted.seq)?;
    if found == Some(noted.hash) {
        return Ok(());
    }
    let last = store.audit().head()?.map_or(0, |head| head.seq);
    let cut = Cut { noted: noted.seq, last: found.is_none().then_some(last) };
    Err(Error::AuditCut { cut, file })
}

/// Takes the table as it is, and records that: the operator put back an older one.
pub(crate) fn accept(store: &mut Store, file: &mut dyn HeadFile, now: u64) -> Result<()> {
    match check(store, file.noted(), file.name()) {
        Err(Error::AuditCut { cut, .. }) => store.note(now, "audit table accepted", "", &cut.to_string())?,
        checked => checked?,
    }
    store.audit().head()?.map_or(Ok(()), |head| file.note(head))
}

/// Difference between a table and the line that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The number of the line that was noted.
    noted: u64,
    /// The last line of the table; `None` if it has another line of that number.
    last: Option<u64>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "it ends with line {last}, and line {} was noted", self.noted),
            None => write!(f, "line {} is not the one that was noted", self.noted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_comes_back_as_it_was_encoded() {
        let head = AuditHead { seq: 7, hash: [9; 32] };
        assert_eq!(AuditHead::decode(&head.encode()), Some(head));
        assert_eq!(AuditHead::decode(&[0; 39]), None);
        assert_eq!(AuditHead::decode(&[0; 41]), None);
    }
}
