//! `leader status --watch`: the running leader's group on a terminal, live, until `q` is pressed.
//!
//! Here is what touches the terminal and asks the leader; `view` draws what it answered.

mod view;

use std::io::{IsTerminal, Stdout, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::panic;
use std::time::Duration;

use quiver_service::clock;
use quiver_service::drone::subcommands::ask;
use quiver_service::drone::{Error, Result};
use quiver_service::shutdown::Shutdown;
use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::termion::cursor::{HideCursor, Show};
use ratatui::termion::event::Key;
use ratatui::termion::input::TermRead;
use ratatui::termion::raw::{IntoRawMode, RawTerminal};
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen, ToMainScreen};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::config::Config;
use crate::control::{LeaderRequest, LeaderStatusReply};
use view::View;

/// Members that are behind and that are asked for; of these, the view shows as many as fit.
const LAGGARDS: usize = 100;
/// Keys that were pressed and not looked at yet.
const KEYS: usize = 16;

/// A terminal without line buffering and echo, on its second screen. Dropping it puts the terminal back, also
/// when a panic or an error is why.
type Screen<W> = HideCursor<AlternateScreen<RawTerminal<W>>>;

fn screen<W: Write + AsFd>(out: W) -> std::io::Result<Screen<W>> {
    Ok(HideCursor::from(out.into_raw_mode()?.into_alternate_screen()?))
}

/// Watches until `q`, Escape, Ctrl-C or a signal.
pub(crate) async fn run(config: &Config, every: Duration) -> Result<()> {
    if !stdin().is_terminal() {
        return Err(Error::NoTerminal("standard input"));
    }
    if !stdout().is_terminal() {
        return Err(Error::NoTerminal("standard output"));
    }
    // As long as the terminal is as usual: whether there is a leader at all.
    let first = fetch_status(config).await?;
    let shutdown = Shutdown::listen()?;
    report_panics_on_the_first_screen();
    let mut terminal = Terminal::new(TermionBackend::new(screen(stdout())?))?;
    watch(&mut terminal, config, every, first, shutdown).await
}

async fn fetch_status(config: &Config) -> Result<LeaderStatusReply> {
    ask(config, LeaderRequest::Status { roster: 0, laggards: LAGGARDS }).await
}

/// Prints panics on the first screen: on the second, they would be gone with it.
fn report_panics_on_the_first_screen() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // If that fails, the report is lost; there is nowhere to say so.
        let _ = write!(stdout(), "{ToMainScreen}{Show}");
        usual(panic);
    }));
}

async fn watch(
    terminal: &mut Terminal<TermionBackend<Screen<Stdout>>>,
    config: &Config,
    every: Duration,
    first: LeaderStatusReply,
    mut shutdown: Shutdown,
) -> Result<()> {
    let (mut status, mut trouble) = (first, None);
    let mut keys = keys();
    let mut turns = interval(every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first comes at once, and the status is there.
    turns.tick().await;
    loop {
        let view = View { status: &status, trouble: trouble.as_deref(), now: clock::unix_now() };
        terminal.draw(|frame| view.draw(frame))?;
        tokio::select! {
            _ = turns.tick() => match fetch_status(config).await {
                Ok(newer) => (status, trouble) = (newer, None),
                // It may come back; what it said last stays.
                Err(error) => trouble = Some(error.to_string()),
            },
            key = keys.recv() => match key {
                Some(Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c')) | None => return Ok(()),
                Some(_) => {}
            },
            _ = shutdown.requested() => return Ok(()),
        }
    }
}

/// Reads keys on a thread of its own, which ends with the process: nothing but a key wakes it.
fn keys() -> mpsc::Receiver<Key> {
    let (pressed, keys) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        for key in stdin().keys().map_while(std::io::Result::ok) {
            if pressed.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::panic::AssertUnwindSafe;
    use std::process::Command;

    use serialport::{SerialPort, TTYPort};

    use super::*;

    /// The terminal's settings, by `stty`.
    fn settings(path: &str) -> String {
        let said = Command::new("stty").args(["-F", path, "-a"]).output().expect("stty");
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).expect("text")
    }

    #[test]
    fn terminal_is_put_back_after_a_panic() {
        let (_far, near) = TTYPort::pair().expect("a pseudo-terminal");
        let path = near.name().expect("its name");
        assert!(Command::new("stty").args(["-F", &path, "sane"]).status().expect("stty").success());
        let before = settings(&path);
        let out = OpenOptions::new().read(true).write(true).open(&path).expect("open");
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            let _screen = screen(out).expect("a screen");
            assert_ne!(settings(&path), before);
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(settings(&path), before);
    }
}
