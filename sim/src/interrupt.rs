//! Ends a run early when the user asks for it: what is finished by then is reported.
//!
//! Signals are sent to the process, so that their state is the process's too. Without [`listen`] nothing here happens, and a
//! signal ends the process at once.

use std::sync::LazyLock;
use std::thread;

use quiver_report::complain;
use tokio::sync::watch;

use crate::{Result, SimError};

/// Exit codes of programs that these signals ended.
const BY_INTERRUPT: u8 = 130;
#[cfg(unix)]
const BY_TERMINATION: u8 = 143;

/// The exit code of the first signal; `None` before it.
static SIGNAL: LazyLock<watch::Sender<Option<u8>>> = LazyLock::new(|| watch::Sender::new(None));

/// Listens for Ctrl-C and for requests to terminate from now on. The first one ends what runs with a report of what is
/// finished; the second one ends the process.
pub(crate) fn listen() -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SimError::Runtime)?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(wait_for_signals()))
        .map_err(SimError::Runtime)?;
    Ok(())
}

async fn wait_for_signals() {
    let Some(code) = next_signal().await else { return };
    SIGNAL.send_replace(Some(code));
    complain("interrupted: what is finished will be reported; once more ends the program at once");
    if let Some(code) = next_signal().await {
        std::process::exit(code.into());
    }
}

/// The exit code of the next signal; `None` if signals cannot be had.
#[cfg(unix)]
async fn next_signal() -> Option<u8> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).ok()?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.ok().map(|()| BY_INTERRUPT),
        asked = terminate.recv() => asked.map(|()| BY_TERMINATION),
    }
}

#[cfg(not(unix))]
async fn next_signal() -> Option<u8> {
    tokio::signal::ctrl_c().await.ok().map(|()| BY_INTERRUPT)
}

/// Returns true if the user asked for the end.
pub(crate) fn is_requested() -> bool {
    SIGNAL.borrow().is_some()
}

/// Waits until the user asks for the end.
pub(crate) async fn requested() {
    // The sender is never dropped.
    let _ = SIGNAL.subscribe().wait_for(Option::is_some).await;
}

/// The exit code of an interrupted run.
pub(crate) fn exit_code() -> u8 {
    SIGNAL.borrow().unwrap_or(BY_INTERRUPT)
}
