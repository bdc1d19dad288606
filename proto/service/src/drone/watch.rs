//! `status --watch`: asks the running service again and again, and shows its status anew on a terminal, or as a line of
//! JSON whenever it changes.

use std::future::Future;
use std::io::{self, IsTerminal, Write, stdout};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::feature::{Features, remove_counters};
use super::{Error, Result};
use crate::duration;
use crate::shutdown::Shutdown;
use crate::terminal;

/// Clears the terminal.
const CLEAR: &str = "\x1b[2J";
/// Goes to the first place of the terminal.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears what is below.
const CLEAR_BELOW: &str = "\x1b[J";

/// Reads how often to ask: not so often that asking is work.
///
/// # Errors
/// In words.
pub fn interval_argument(text: &str) -> std::result::Result<Duration, String> {
    let interval = duration::parse(text)?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("from 100ms to 1h".into()) }
}

/// Questions to a running service, one in each interval.
struct Watch<F> {
    fetch: F,
    turns: Interval,
    shutdown: Shutdown,
}

impl<F, T, Answer> Watch<F>
where
    F: Fn() -> Answer,
    Answer: Future<Output = Result<T>>,
{
    /// Asks for the first time: whether there is a service at all.
    async fn begin(every: Duration, fetch: F) -> Result<(T, Self)> {
        let first = fetch().await?;
        let shutdown = Shutdown::listen()?;
        let mut turns = interval(every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first comes at once, and the status is there.
        turns.tick().await;
        Ok((first, Self { fetch, turns, shutdown }))
    }

    /// The next answer; `None` after a signal.
    async fn next(&mut self) -> Option<Result<T>> {
        let (turns, fetch) = (&mut self.turns, &self.fetch);
        let asked = async {
            turns.tick().await;
            fetch().await
        };
        tokio::select! {
            answer = asked => Some(answer),
            _ = self.shutdown.requested() => None,
        }
    }
}

/// Prints the status as a line of JSON, and again whenever it changes, until a signal comes or nobody reads.
/// Counters of these features are in the lines, and are no change by themselves. A service that does not answer is
/// a line, too.
///
/// # Errors
/// Those of asking for the first time, and of standard output.
pub async fn print_changes<T, Answer>(
    features: Features,
    every: Duration,
    fetch: impl Fn() -> Answer,
) -> Result<()>
where
    T: Serialize,
    Answer: Future<Output = Result<T>>,
{
    let (first, mut watch) = Watch::begin(every, fetch).await?;
    let mut shown = to_json(&first)?;
    if !print(&format!("{shown}\n"))? {
        return Ok(());
    }
    while let Some(answer) = watch.next().await {
        let status = match answer {
            Ok(status) => to_json(&status)?,
            Err(error) => json!({ "unreachable": error.to_string() }),
        };
        if without_counters(features, &status) != without_counters(features, &shown) {
            if !print(&format!("{status}\n"))? {
                return Ok(());
            }
            shown = status;
        }
    }
    Ok(())
}

/// Shows the status on this terminal, and shows it anew in each interval, until a signal comes. The last
/// status stays there.
///
/// # Errors
/// [`Error::NoTerminal`]; those of asking for the first time, and of standard output.
pub async fn redraw<T, Answer>(
    every: Duration,
    fetch: impl Fn() -> Answer,
    describe: impl Fn(&T) -> String,
) -> Result<()>
where
    Answer: Future<Output = Result<T>>,
{
    if !stdout().is_terminal() {
        return Err(Error::NoTerminal("standard output"));
    }
    let (first, mut watch) = Watch::begin(every, fetch).await?;
    let (mut text, mut trouble) = (describe(&first), None);
    let mut is_there = print(CLEAR)?;
    while is_there {
        is_there = print(&screen(&text, trouble.as_deref()))?;
        match watch.next().await {
            Some(Ok(status)) => (text, trouble) = (describe(&status), None),
            // It may come back; what it said last stays.
            Some(Err(error)) => trouble = Some(error.to_string()),
            None => break,
        }
    }
    Ok(())
}

/// Bytes that make the terminal show this text and nothing else.
fn screen(text: &str, trouble: Option<&str>) -> String {
    let trouble = trouble.map(|trouble| format!("no answer   {trouble}"));
    let lines =
        text.lines().chain(trouble.as_deref().into_iter().flat_map(str::lines)).chain(["", "Ctrl-C ends it"]);
    // No text from elsewhere may move the cursor.
    let harmless = |line: &str| line.chars().filter(|char| !char.is_control()).collect::<String>();
    let lines: String = lines.map(|line| format!("{}{CLEAR_LINE}\n", harmless(line))).collect();
    format!("{HOME}{lines}{CLEAR_BELOW}")
}

/// Writes to standard output at once; tells whether somebody reads it.
fn print(text: &str) -> io::Result<bool> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(terminal::unprinted(&error)),
    }
}

fn to_json(status: &impl Serialize) -> Result<Value> {
    Ok(serde_json::to_value(status).map_err(io::Error::other)?)
}

/// The status without what grows all the time.
fn without_counters(features: Features, status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(fields) = status.as_object_mut() {
        remove_counters(features, fields);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_is_drawn_from_its_first_place_and_shows_nothing_old() {
        let drawn = screen("drone  edge-1\ngroup  alpha", Some("the edge is gone"));
        assert!(drawn.starts_with(HOME) && drawn.ends_with(CLEAR_BELOW) && !drawn.contains(CLEAR));
        for line in ["drone  edge-1", "group  alpha", "no answer   the edge is gone", "Ctrl-C ends it"] {
            assert!(drawn.contains(&format!("{line}{CLEAR_LINE}\n")), "{drawn:?}");
        }
        assert!(screen("a\x1b[2Jb\x07", None).contains("a[2Jb\x1b[K"));
    }
}
