//! Receiving across the change from one epoch to the next.

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::Zeroizing;

use super::{Frame, Receiver};
use crate::{Error, Kind, Name, Suite, VerifiedHeader};

/// The receiver of the current epoch, and for a short overlap the previous one's.
///
/// The previous key is kept only if nobody was removed in between; otherwise an evicted drone, which holds it, could go on
/// speaking as anyone. It is erased in the same step then.
#[derive(Default)]
pub struct Reception {
    current: Option<Receiver>,
    previous: Option<Receiver>,
}

impl Reception {
    /// Receives nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { current: None, previous: None }
    }

    /// Goes over to the epoch of `header`. Whether the overlap is allowed is decided here: same term, nobody removed, and
    /// no epoch missed in between, in which somebody might have been.
    pub fn activate<S: Suite>(&mut self, next: Receiver, header: &VerifiedHeader<S>) {
        let core = header.core();
        let kept = core.kind == Kind::Rekey && core.removed.is_empty();
        self.previous = self.current.take().filter(|last| kept && *last.digest() == core.prev);
        self.current = Some(next);
    }

    /// Ends the overlap: the previous key is erased.
    pub fn end_overlap(&mut self) {
        self.previous = None;
    }

    /// Forgets both keys.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The receiver of the current epoch.
    pub const fn current(&mut self) -> Option<&mut Receiver> {
        self.current.as_mut()
    }

    /// Whether messages of the previous epoch are still opened.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.previous.is_some()
    }

    /// Opens a message of the current epoch, or else of the previous one.
    ///
    /// # Errors
    /// As [`Receiver::open`]; [`Error::SealBroken`] if there is no key at all.
    pub fn open(&mut self, frame: &Frame, channel: &Name) -> Result<Zeroizing<Vec<u8>>, Error> {
        let current = self.current.as_mut().ok_or(Error::SealBroken)?;
        match (current.open(frame, channel), &mut self.previous) {
            (Err(error @ (Error::SealBroken | Error::Replay)), Some(previous)) => {
                previous.open(frame, channel).map_err(|_| error)
            }
            (opened, _) => opened,
        }
    }
}

impl fmt::Debug for Reception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reception").field("current", &self.current).field("previous", &self.previous).finish()
    }
}
