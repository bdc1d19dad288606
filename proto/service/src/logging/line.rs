//! Writes a log line for people: time in seconds, level, sentence, and those fields that the sentence does not
//! say already. Spans, microseconds and where in the program it was logged are for JSON.

use std::fmt::{self, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Names of the project's programs and crates, whose lines at the usual levels need no name in front.
const OURS: [&str; 4] = ["kgc", "leader", "edge", "quiver_"];
/// The shortest value, in bytes, that is looked for in the sentence: shorter ones are there by chance.
const TELLING: usize = 4;

/// Lines for people.
pub(super) struct LineFormatter;

impl<S, N> FormatEvent<S, N> for LineFormatter
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let target = fields.target.as_deref().unwrap_or(event.metadata().target());
        let ours = OURS.iter().any(|ours| target.starts_with(ours)) && level <= Level::INFO;
        let colour = if writer.has_ansi_escapes() { colour(level) } else { ("", "") };
        write!(writer, "{} {}{level:<5}{} ", now(), colour.0, colour.1)?;
        if !ours {
            write!(writer, "{target}: ")?;
        }
        writeln!(writer, "{}", fields.line())
    }
}

#[expect(clippy::disallowed_methods, reason = "services are drivers; log lines say when they were written")]
pub(super) fn now() -> impl fmt::Display {
    humantime::format_rfc3339_seconds(SystemTime::now())
}

/// Line for people that stands in the place of lines which standard error did not take.
pub(super) fn unwritten(lines: u64) -> String {
    format!("{} WARN  {}\n", now(), unwritten_text(lines))
}

/// The same for machines.
pub(super) fn unwritten_json(lines: u64) -> String {
    let object = serde_json::json!({
        "timestamp": now().to_string(),
        "level": "WARN",
        "target": module_path!(),
        "message": unwritten_text(lines),
        "suppressed": lines,
    });
    format!("{object}\n")
}

fn unwritten_text(lines: u64) -> String {
    format!("{} could not be written to standard error", crate::terminal::counted(lines as usize, "line"))
}

const fn colour(level: Level) -> (&'static str, &'static str) {
    match level {
        Level::ERROR => ("\x1b[31m", "\x1b[0m"),
        Level::WARN => ("\x1b[33m", "\x1b[0m"),
        _ => ("", ""),
    }
}

/// The fields of an event, as text.
#[derive(Default)]
struct Fields {
    message: String,
    /// Target of a line of the crate `log`.
    target: Option<String>,
    rest: Vec<(&'static str, String)>,
}

impl Fields {
    /// The sentence, and the fields that it does not say.
    fn line(&self) -> String {
        let mut line = spelled(&self.message);
        for (name, value) in &self.rest {
            if value.len() >= TELLING && self.message.contains(value.as_str()) {
                continue;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            let bare =
                !value.is_empty() && !value.contains(|letter: char| letter == '"' || letter.is_whitespace());
            // A text takes every write.
            let _ = if bare {
                write!(line, "{name}={}", spelled(value))
            } else {
                write!(line, "{name}={value:?}")
            };
        }
        line
    }

    fn keep(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            "log.target" => self.target = Some(value),
            name if name.starts_with("log.") => {}
            name => self.rest.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.keep(field, format!("{value:?}"));
    }
}

/// Escapes text, because text from others must not be able to drive a terminal.
fn spelled(text: &str) -> String {
    text.chars().flat_map(crate::terminal::spelled).collect()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

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

    /// Captures the log lines, without the time.
    fn written(log: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .event_format(LineFormatter)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(subscriber.finish(), log);
        let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(bytes).expect("utf-8");
        let (time, rest) = text.split_once(' ').expect("a time");
        assert_eq!(time.len(), "2026-01-31T12:00:00Z".len(), "{text}");
        assert!(humantime::parse_rfc3339(time).is_ok(), "{text}");
        rest.trim_end_matches('\n').into()
    }

    #[test]
    fn line_is_level_sentence_and_fields_without_spans() {
        let line = written(|| {
            tracing::info_span!("request", id = %"000102").in_scope(|| {
                tracing::info!(target: "kgc::service", name = %"edge-1", slot = 3, why = "no key", "key issued");
            });
        });
        assert_eq!(line, "INFO  key issued name=edge-1 slot=3 why=\"no key\"");
    }

    #[test]
    fn field_that_the_sentence_says_is_not_repeated() {
        let line = written(|| tracing::warn!(target: "kgc", name = "edge-1", "refused edge-1"));
        assert_eq!(line, "WARN  refused edge-1");
    }

    #[test]
    fn lines_of_libraries_and_for_debugging_say_whence_they_come() {
        let line = written(|| tracing::warn!(target: "libp2p_tcp", "closed"));
        assert_eq!(line, "WARN  libp2p_tcp: closed");
        let line = written(|| tracing::debug!(target: "quiver_net::driver", "dialled"));
        assert_eq!(line, "DEBUG quiver_net::driver: dialled");
    }

    #[test]
    fn value_cannot_drive_the_terminal_or_begin_a_line() {
        let line = written(|| tracing::info!(target: "kgc", name = %"a\x1b[2J", why = "b\nc", "told\n"));
        assert_eq!(line, "INFO  told\\n name=a\\u{1b}[2J why=\"b\\nc\"");
    }
}
