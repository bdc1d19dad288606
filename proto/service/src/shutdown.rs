//! Waits for what ends a service: a signal, or the request of the application that it is part of.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use std::path::Path;

use crate::{Error, Result};

/// What ends a service.
#[derive(Debug)]
pub struct Shutdown(Source);

#[derive(Debug)]
enum Source {
    /// SIGTERM (from a service manager, or to PID 1 of a container) and SIGINT (Ctrl-C).
    Signals { terminate: Signal, interrupt: Signal },
    /// The application.
    Application(watch::Receiver<bool>),
}

/// Ends the services of one application. Dropping it ends them, too.
#[derive(Debug)]
pub struct ShutdownRequest(watch::Sender<bool>);

impl ShutdownRequest {
    /// Requests the end.
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Listens for signals from now on. Call it early: one that comes before ends the process the hard way.
    pub fn listen() -> Result<Self> {
        let hear =
            |kind| signal(kind).map_err(|source| Error::io("listen for", Path::new("signals"), source));
        let (terminate, interrupt) = (hear(SignalKind::terminate())?, hear(SignalKind::interrupt())?);
        Ok(Self(Source::Signals { terminate, interrupt }))
    }

    /// For services within another program: no signal is listened for.
    pub fn by_request() -> (ShutdownRequest, Self) {
        let (request, requested) = watch::channel(false);
        (ShutdownRequest(request), Self(Source::Application(requested)))
    }

    /// Resolves to what ends the service, for the log: the signal's name. Cancel-safe.
    pub async fn requested(&mut self) -> &'static str {
        match &mut self.0 {
            Source::Signals { terminate, interrupt } => tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            },
            Source::Application(requested) => {
                // An error means that the request's owner is gone.
                let _ = requested.wait_for(|requested| *requested).await;
                "the application"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn application_ends_its_service_by_request_or_by_dropping_it() {
        let (request, mut shutdown) = Shutdown::by_request();
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), shutdown.requested());
        assert!(early.await.is_err(), "not before it is requested");
        request.request();
        assert_eq!(shutdown.requested().await, "the application");
        assert_eq!(shutdown.requested().await, "the application", "asked again");
        let (request, mut shutdown) = Shutdown::by_request();
        drop(request);
        assert_eq!(shutdown.requested().await, "the application");
    }
}
