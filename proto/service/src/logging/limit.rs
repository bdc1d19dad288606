//! Limits the lines that one place of a program writes in a minute, and counts the others.
//!
//! Much of what is logged is about what peers do, and anybody may be a peer: without a limit strangers fill the disk
//! with warnings, those of libraries among them. So each place in the source may write so many lines in a minute; for
//! what it has to say beyond, the next line of any place tells how many lines are missing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::line;

/// Time in which lines are counted.
const PERIOD: Duration = Duration::from_secs(60);
/// Warnings and errors of one place in that time.
const WARNINGS: u32 = 30;
/// Lines of information: a swarm that joins has one for each drone.
const INFORMATION: u32 = 600;
/// Lines for debugging, which somebody has asked for.
const DEBUGGING: u32 = 60_000;
/// Places that are told apart. Programs have fewer that log at all.
const PLACES: usize = 2048;

/// Format of log lines, within the limit.
pub(super) struct Limited<F> {
    within: F,
    json: bool,
    places: Mutex<CallSiteLimits>,
}

impl<F> Limited<F> {
    /// Lines in this format, which are JSON or not.
    pub(super) fn new(within: F, json: bool) -> Self {
        Self { within, json, places: Mutex::default() }
    }

    fn report(&self, writer: &mut Writer<'_>, Missing { lines, target, at }: &Missing) -> fmt::Result {
        let place = at.as_ref().map_or_else(String::new, |at| format!(" ({at})"));
        let message = format!("{lines} more lines of {target}{place} were not written within a minute");
        if self.json {
            let object = serde_json::json!({
                "timestamp": line::now().to_string(),
                "level": "WARN",
                "target": target,
                "message": message,
                "suppressed": lines,
            });
            writeln!(writer, "{object}")
        } else {
            writeln!(writer, "{} WARN  {message}", line::now())
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (writes, missing) = {
            // Counts, which a panic leaves as they are.
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.note(event, now())
        };
        for missing in &missing {
            self.report(&mut writer, missing)?;
        }
        if writes { self.within.format_event(context, writer, event) } else { Ok(()) }
    }
}

#[expect(clippy::disallowed_methods, reason = "services are drivers; lines are counted by the minute")]
fn now() -> Instant {
    Instant::now()
}

/// A place in the source.
#[derive(Clone, PartialEq, Eq, Hash)]
enum LogCallSite {
    Site(Identifier),
    /// Place in the crate `log`, all of whose lines of one level have one call site: a module and a line of
    /// its file.
    Log(String, u64),
    /// All beyond those that are told apart.
    Other,
}

/// Lines of one place in a period.
struct LogLineTally {
    since: Instant,
    written: u32,
    suppressed: u64,
    target: String,
    at: Option<String>,
}

/// Lines of a place that were not written.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    lines: u64,
    target: String,
    at: Option<String>,
}

#[derive(Default)]
struct CallSiteLimits {
    lines: HashMap<LogCallSite, LogLineTally>,
    /// Number of places that have something to report.
    reports: usize,
}

impl CallSiteLimits {
    /// Counts a line. Returns whether it is to be written, and what is to be reported before it.
    fn note(&mut self, event: &Event<'_>, now: Instant) -> (bool, Vec<Missing>) {
        let missing = self.missing(now);
        let metadata = event.metadata();
        let mut log = LogFields::default();
        if metadata.target() == "log" {
            event.record(&mut log);
        }
        let (place, target) = match log.target {
            Some(target) => (LogCallSite::Log(target.clone(), log.line), target),
            None => (LogCallSite::Site(metadata.callsite()), metadata.target().to_owned()),
        };
        let known = self.lines.len() < PLACES || self.lines.contains_key(&place);
        let place = if known { place } else { LogCallSite::Other };
        let at = metadata.file().zip(metadata.line()).map(|(file, line)| format!("{file}:{line}"));
        let fresh = || LogLineTally { since: now, written: 0, suppressed: 0, target, at };
        let lines = self.lines.entry(place).or_insert_with(fresh);
        if now.duration_since(lines.since) >= PERIOD {
            (lines.since, lines.written) = (now, 0);
        }
        let most = match *metadata.level() {
            Level::ERROR | Level::WARN => WARNINGS,
            Level::INFO => INFORMATION,
            _ => DEBUGGING,
        };
        if lines.written < most {
            lines.written += 1;
            return (true, missing);
        }
        if lines.suppressed == 0 {
            self.reports += 1;
        }
        lines.suppressed = lines.suppressed.saturating_add(1);
        (false, missing)
    }

    /// Takes the counts that are due to be reported: those of places whose time is over.
    fn missing(&mut self, now: Instant) -> Vec<Missing> {
        if self.reports == 0 {
            return Vec::new();
        }
        let over = self
            .lines
            .values_mut()
            .filter(|lines| lines.suppressed > 0 && now.duration_since(lines.since) >= PERIOD);
        let missing = over.map(|lines| Missing {
            lines: std::mem::take(&mut lines.suppressed),
            target: lines.target.clone(),
            at: lines.at.clone(),
        });
        let missing: Vec<_> = missing.collect();
        self.reports -= missing.len();
        missing
    }
}

/// Origin of a line of the crate `log`.
#[derive(Default)]
struct LogFields {
    target: Option<String>,
    line: u64,
}

impl Visit for LogFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.target = Some(value.into());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "log.line" {
            self.line = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::logging::line::LineFormatter;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(json: bool, log: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        if json {
            let layer = layer.json().flatten_event(true).map_event_format(|json| Limited::new(json, true));
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        } else {
            let layer = layer.event_format(Limited::new(LineFormatter, false));
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        }
        let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8(bytes).expect("utf-8").lines().map(str::to_owned).collect()
    }

    #[test]
    fn one_place_writes_so_many_lines_and_others_write_all_the_same() {
        for json in [false, true] {
            let lines = written(json, || {
                for number in 0..10_000 {
                    tracing::warn!(target: "libp2p_gossipsub", number, "an invalid message");
                }
                tracing::warn!(target: "leader", "evicted");
                for number in 0..500 {
                    tracing::info!(target: "leader", number, "joined");
                }
            });
            let of = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
            assert_eq!((of("invalid message"), of("evicted"), of("joined")), (WARNINGS as usize, 1, 500));
            assert_eq!(lines.len(), WARNINGS as usize + 501, "nothing stands in for what is not written");
        }
    }

    /// Lines as if they came at these times, in seconds, and what became of each.
    struct Counted {
        places: CallSiteLimits,
        start: Instant,
        seconds: Vec<u64>,
        outcomes: Vec<(bool, Vec<u64>)>,
    }

    #[derive(Clone)]
    struct Counts(Arc<Mutex<Counted>>);

    impl<S: Subscriber> tracing_subscriber::Layer<S> for Counts {
        fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = counted.start + Duration::from_secs(counted.seconds.remove(0));
            let (writes, missing) = counted.places.note(event, at);
            counted.outcomes.push((writes, missing.into_iter().map(|missing| missing.lines).collect()));
        }
    }

    #[test]
    fn what_was_not_written_is_counted_and_told_once_with_the_next_line_of_any_place() {
        let seconds = (0..WARNINGS + 5).map(u64::from).chain([59, 61, 62]).collect();
        let counted =
            Counted { places: CallSiteLimits::default(), start: now(), seconds, outcomes: Vec::new() };
        let counted = Counts(Arc::new(Mutex::new(counted)));
        let subscriber = tracing_subscriber::registry().with(counted.clone());
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..WARNINGS + 5 {
                tracing::warn!("again");
            }
            for _ in 0..3 {
                tracing::error!("another place");
            }
        });
        let counted = counted.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = counted.outcomes.split_at(WARNINGS as usize + 5);
        assert_eq!(first.iter().filter(|(writes, _)| *writes).count(), WARNINGS as usize);
        assert_eq!(last, [(true, vec![]), (true, vec![5]), (true, vec![])]);
    }
}
