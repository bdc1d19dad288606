//! Sections, keys and values of a file, with the lines they stand in.

use alloc::{borrow::ToOwned as _, format, string::String, vec::Vec};

use super::ConfigFault;
use crate::endpoint::shown;

/// Bytes of the longest section name.
const MAX_NAME_LEN: usize = 64;

/// A section and the keys of it that nobody took yet.
pub(super) struct Section<'a> {
    /// Kind of the section: `UdpEndpoint`.
    pub(super) kind: &'a str,
    /// Name of the section; may be empty.
    pub(super) name: &'a str,
    /// Line of the section, from 1.
    pub(super) line: usize,
    entries: Vec<(&'a str, &'a str, usize)>,
    /// Keys that were asked for, to say which there are.
    asked: Vec<String>,
}

/// A key's value.
pub(super) struct ConfigValue<'a> {
    /// The value, without white space around it.
    pub(super) text: &'a str,
    /// Line of the value, from 1.
    pub(super) line: usize,
    /// Section and key, for errors.
    pub(super) place: String,
}

/// Cuts a text into sections.
pub(super) fn sections(text: &str) -> Result<Vec<Section<'_>>, ConfigFault> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            sections.push(header(line, number)?);
            continue;
        }
        let place = || "line".to_owned();
        let Some((key, value)) = line.split_once('=') else {
            return Err((
                number,
                place(),
                format!("`{}` is neither [Section name] nor Key = Value", shown(line)),
            ));
        };
        let Some(section) = sections.last_mut() else {
            return Err((number, place(), "a key stands before the first section".to_owned()));
        };
        section.entries.push((key.trim(), value.trim(), number));
    }
    Ok(sections)
}

fn header(line: &str, number: usize) -> Result<Section<'_>, ConfigFault> {
    let inner = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let Some(inner) = inner else {
        return Err((number, "line".to_owned(), format!("`{}` does not end in `]`", shown(line))));
    };
    let (kind, name) = inner.trim().split_once(char::is_whitespace).unwrap_or((inner.trim(), ""));
    Ok(Section { kind, name: name.trim(), line: number, entries: Vec::new(), asked: Vec::new() })
}

impl<'a> Section<'a> {
    /// Takes a key's first value that was not taken yet.
    pub(super) fn take(&mut self, key: &str) -> Option<ConfigValue<'a>> {
        if !self.asked.iter().any(|asked| asked == key) {
            self.asked.push(key.to_owned());
        }
        let index = self.entries.iter().position(|(name, ..)| name.eq_ignore_ascii_case(key))?;
        let (_, text, line) = self.entries.remove(index);
        Some(ConfigValue { text, line, place: self.place(key) })
    }

    /// Takes a key's value that has to be there; `example` shows one.
    pub(super) fn require(&mut self, key: &str, example: &str) -> Result<ConfigValue<'a>, ConfigFault> {
        self.take(key).ok_or_else(|| self.fault(format!("{key} is missing: write for instance {example}")))
    }

    /// Makes a fault of the section.
    pub(super) fn fault(&self, reason: impl Into<String>) -> ConfigFault {
        (self.line, self.title(), reason.into())
    }

    /// Names are one word that a log can show.
    pub(super) fn check_name(&self) -> Result<(), ConfigFault> {
        let is_allowed = |c: char| !c.is_whitespace() && !c.is_control();
        if self.name.is_empty() {
            Err(self.fault(format!("this section needs a name: write [{} NAME]", self.kind)))
        } else if self.name.len() > MAX_NAME_LEN || !self.name.chars().all(is_allowed) {
            Err(self.fault(format!("a name is one word of at most {MAX_NAME_LEN} bytes")))
        } else {
            Ok(())
        }
    }

    /// Ends the section, in which no key may be left: a key that nobody knows is a mistake, and one that
    /// stands twice too.
    pub(super) fn finish(self) -> Result<(), ConfigFault> {
        let Some((key, _, line)) = self.entries.first() else { return Ok(()) };
        let place = self.place(&shown(key));
        if self.asked.iter().any(|asked| asked.eq_ignore_ascii_case(key)) {
            return Err((*line, place, "the key stands twice in this section".to_owned()));
        }
        let near = self.asked.iter().find(|asked| is_near(asked, key));
        let hint = near.map_or(String::new(), |near| format!(": did you mean {near}?"));
        Err((*line, place, format!("no such key in this section{hint}")))
    }

    fn title(&self) -> String {
        let kind = shown(self.kind);
        if self.name.is_empty() { format!("[{kind}]") } else { format!("[{kind} {}]", shown(self.name)) }
    }

    fn place(&self, key: &str) -> String {
        format!("{} {key}", self.title())
    }
}

/// Returns true if two keys differ by one letter more, less or other, or by two that changed places.
fn is_near(known: &str, given: &str) -> bool {
    let known: Vec<u8> = known.to_ascii_lowercase().into_bytes();
    let given: Vec<u8> = given.to_ascii_lowercase().into_bytes();
    let same = known.iter().zip(&given).take_while(|(a, b)| a == b).count();
    let rest = |bytes: &[u8], skip: usize| bytes.get(same + skip..).map(<[u8]>::to_vec);
    let swapped = || {
        let pair = |bytes: &[u8]| {
            bytes.get(same..same + 2).map(|pair| (pair.first().copied(), pair.last().copied()))
        };
        pair(&known).zip(pair(&given)).is_some_and(|((a, b), (c, d))| a == d && b == c)
            && rest(&known, 2) == rest(&given, 2)
    };
    rest(&known, 1).is_some_and(|known| Some(known) == rest(&given, 0))
        || rest(&given, 1).is_some_and(|given| Some(given) == rest(&known, 0))
        || (rest(&known, 1).is_some() && rest(&known, 1) == rest(&given, 1))
        || swapped()
}
