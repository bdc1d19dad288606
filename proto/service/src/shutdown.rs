//! Waits for what ends a service: a signal, or the request of the application that it is part of. A signal
//! ends at once a process that is no service yet, or never is one.

use std::io::stdin;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::{Error, Exit, Result, exit};

/// True while a service of this process waits for signals, and ends in its own time.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Time that what blocks a thread gets to end with its program.
const FAREWELL: Duration = Duration::from_secs(5);

/// Carries out work to its end. A name that is being looked up, or a device that opens, on a thread for blocking
/// calls keeps nobody waiting for long afterwards: the service has been told to end.
pub fn block_on<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(FAREWELL);
    done
}

/// Event that ends a service.
#[derive(Debug)]
pub struct Shutdown(ShutdownSource);

#[derive(Debug)]
enum ShutdownSource {
    /// SIGTERM (from a service manager, or to PID 1 of a container) and SIGINT (Ctrl-C).
    Signals { terminate: Signal, interrupt: Signal },
    /// The application.
    Application(watch::Receiver<bool>),
    /// No event.
    Never,
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
    /// Listens for signals from now on.
    pub fn listen() -> Result<Self> {
        let hear =
            |kind| signal(kind).map_err(|source| Error::io("listen for", Path::new("signals"), source));
        let (terminate, interrupt) = (hear(SignalKind::terminate())?, hear(SignalKind::interrupt())?);
        Ok(Self(ShutdownSource::Signals { terminate, interrupt }))
    }

    /// Makes the value for commands that end by themselves: nothing is waited for, and a signal is left to
    /// [`end_on_signal`].
    pub const fn never() -> Self {
        Self(ShutdownSource::Never)
    }

    /// Makes the value for services within another program: no signal is listened for.
    pub fn by_request() -> (ShutdownRequest, Self) {
        let (request, requested) = watch::channel(false);
        (ShutdownRequest(request), Self(ShutdownSource::Application(requested)))
    }

    /// Resolves to what ends the service, for the log: the signal's name. Cancel-safe.
    pub async fn requested(&mut self) -> &'static str {
        match &mut self.0 {
            ShutdownSource::Signals { terminate, interrupt } => {
                AWAITED.store(true, Ordering::SeqCst);
                either(terminate, interrupt).await
            }
            ShutdownSource::Application(requested) => {
                // An error means that the request's owner is gone.
                let _ = requested.wait_for(|requested| *requested).await;
                "the application"
            }
            ShutdownSource::Never => std::future::pending().await,
        }
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// Makes SIGTERM and SIGINT end this process from now on with the exit code of its kind, unless a
/// [`Shutdown`] is waited on: whatever it waits for, be it a file, a terminal or an answer, and also as PID
/// 1. `next` says how to go on.
///
/// # Errors
/// If the system has no thread or no way to listen for signals.
pub fn end_on_signal(program: &'static str, next: &'static str) -> Result<()> {
    let failed = |source| Error::io("listen for", Path::new("signals"), source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let listening = {
        let _within = runtime.enter();
        Shutdown::listen()?
    };
    let terminal = Terminal::save();
    let end = move || {
        let ShutdownSource::Signals { mut terminate, mut interrupt } = listening.0 else { return };
        loop {
            let signal = runtime.block_on(either(&mut terminate, &mut interrupt));
            if !AWAITED.load(Ordering::SeqCst) {
                terminal.restore();
                exit::complain(program, &format!("interrupted by {signal} before it was done; {next}"));
                std::process::exit(i32::from(Exit::after(signal) as u8));
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(end).map(drop).map_err(failed)
}

/// Settings of the terminal, if standard input is one. A prompt for a passphrase switches the echo off.
struct Terminal(Option<Termios>);

impl Terminal {
    fn save() -> Self {
        Self(tcgetattr(stdin()).ok())
    }

    fn restore(&self) {
        if let Some(settings) = &self.0 {
            // Nothing can be done about a terminal that is gone.
            let _ = tcsetattr(stdin(), SetArg::TCSANOW, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_call_that_blocks_does_not_keep_a_program_from_ending() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (release, held) = std::sync::mpsc::channel::<()>();
        // As a name that no server answers for.
        let done = block_on(runtime, async {
            let (began, begun) = tokio::sync::oneshot::channel();
            drop(tokio::task::spawn_blocking(move || {
                let _ = began.send(());
                held.recv()
            }));
            begun.await.expect("it runs");
            7
        });
        assert_eq!(done, 7);
        assert!(release.send(()).is_ok(), "it was still blocked");
    }

    #[tokio::test]
    async fn application_ends_its_service_by_request_or_by_dropping_it() {
        let (request, mut shutdown) = Shutdown::by_request();
        let early = tokio::time::timeout(Duration::from_millis(20), shutdown.requested());
        assert!(early.await.is_err(), "not before it is requested");
        request.request();
        assert_eq!(shutdown.requested().await, "the application");
        assert_eq!(shutdown.requested().await, "the application", "asked again");
        let (request, mut shutdown) = Shutdown::by_request();
        drop(request);
        assert_eq!(shutdown.requested().await, "the application");
    }
}
