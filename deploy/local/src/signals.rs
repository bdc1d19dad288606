//! Signals that ask for the end.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use crate::error::{Error, Result};

/// Receiver of SIGINT, SIGTERM and SIGHUP.
#[derive(Debug)]
pub(crate) struct Signals(Receiver<&'static str>);

impl Signals {
    /// Takes these signals from now on. Must be called before other threads are started, which would take them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn listen() -> Result<Self> {
        let failed = |source: io::Error| Error::io("listen for", Path::new("signals"))(source);
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        set.thread_block().map_err(|error| failed(error.into()))?;
        let (sender, receiver) = sync_channel(4);
        let wait = move || {
            while let Ok(signal) = set.wait() {
                // Four that wait are as good as more.
                let _ = sender.try_send(signal.as_str());
            }
        };
        thread::Builder::new().name("signals".into()).spawn(wait).map_err(failed)?;
        Ok(Self(receiver))
    }

    /// Waits for a signal for so long.
    pub(crate) fn wait(&self, time: Duration) -> Option<&'static str> {
        match self.0.recv_timeout(time) {
            Ok(signal) => Some(signal),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                None
            }
        }
    }

    /// Waits for so long, unless a signal comes.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn pause(&self, time: Duration) -> Result<()> {
        self.wait(time).map_or(Ok(()), |signal| Err(Error::Interrupted(signal)))
    }
}
