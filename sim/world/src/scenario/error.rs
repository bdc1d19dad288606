//! Errors in a scenario file, with their place.

use std::fmt;
use std::ops::Range;

/// Reason why a scenario file is refused. Shown as `file:line:column: key: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key with the tables around it (`fleet.members`), if the fault has one.
    pub key: Option<String>,
    /// Description of the mistake.
    pub what: String,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// A file and its text, to point into.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceText<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// An error of the TOML reader.
    pub(super) fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        // Without a place it is about the file as a whole, such as a missing table.
        let span = error.span().unwrap_or(0..0);
        self.at(span, in_words(error.message().trim_end()))
    }

    /// Makes the error about this place.
    pub(super) fn at(&self, span: Range<usize>, what: impl Into<String>) -> ScenarioError {
        let before = &self.text[..floor(self.text, span.start)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        ScenarioError { file: self.file.to_owned(), line, column, key: self.key(span), what: what.into() }
    }

    /// The key a place belongs to, with the tables around it.
    fn key(&self, span: Range<usize>) -> Option<String> {
        let start = floor(self.text, span.start);
        let end = floor(self.text, span.end.max(start));
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |newline| start + newline);
        let line = &self.text[line_start..line_end];
        let mut path: Vec<&str> = Vec::new();
        match header(line) {
            Some(table) => path.push(table),
            None => {
                path.extend(self.text[..line_start].lines().rev().find_map(header));
                path.extend(line.split_once('=').map(|(key, _)| key.trim()).filter(|key| is_key(key)));
            }
        }
        // Within an inline table the place may be a key of its own, or a value with its key just before it.
        let marked = self.text[start..end].trim();
        let inner = if is_key(marked) && self.text[end..].trim_start().starts_with('=') {
            Some(marked)
        } else {
            let ahead = self.text[line_start..start].trim_end();
            ahead.strip_suffix('=').and_then(|ahead| ahead.trim_end().rsplit([' ', '{', ',']).next())
        };
        path.extend(inner.filter(|key| is_key(key) && path.last() != Some(key)));
        (!path.is_empty()).then(|| path.join("."))
    }
}

/// The message, with a noun in place of the compiler's name of a type of numbers.
fn in_words(message: &str) -> String {
    let wanted = message.rsplit_once(", expected ");
    let named = wanted.and_then(|(found, wanted)| match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => Some((found, "a whole number that is not negative")),
        "i8" | "i16" | "i32" | "i64" | "isize" => Some((found, "a whole number")),
        "f32" | "f64" => Some((found, "a number")),
        _ => None,
    });
    named.map_or_else(|| message.to_owned(), |(found, noun)| format!("{found}, expected {noun}"))
}

/// The name in `[name]` or `[[name]]`.
fn header(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.trim_start_matches('[');
    name.split(']').next().map(str::trim).filter(|name| is_key(name))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// The nearest character boundary at or before a byte.
fn floor(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0)
}
