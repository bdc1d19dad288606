//! Waits for the signal that ends a service.

use tokio::signal::unix::{Signal, SignalKind, signal};

use std::path::Path;

use crate::{Error, Result};

/// The signals that end a service: SIGTERM (from a service manager, or to PID 1 of a container) and SIGINT
/// (Ctrl-C).
#[derive(Debug)]
pub struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Listens from now on. Call it early: a signal that comes before ends the process the hard way.
    pub fn listen() -> Result<Self> {
        let hear =
            |kind| signal(kind).map_err(|source| Error::io("listen for", Path::new("signals"), source));
        Ok(Self { terminate: hear(SignalKind::terminate())?, interrupt: hear(SignalKind::interrupt())? })
    }

    /// Resolves to the signal's name when one has come. Cancel-safe.
    pub async fn requested(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
