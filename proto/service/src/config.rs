//! Layered settings: defaults ← TOML file ← environment ← flags, the later ones winning.
//!
//! A part of a program's settings is a struct that derives `Serialize` and `Deserialize`, whose defaults are
//! a value of it; [`Layers::part`] reads it, and [`Layers::end`] refuses keys that are of no part. So a
//! misspelt key is an error that names the key and the file (or variable) it stands in, and not silently a
//! default. Flags are the clap structs themselves, which derive `Serialize`.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use figment::error::Kind;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider, Source};
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

use crate::arguments::{CommonArgs, metrics_address};
use crate::logging::{self, Export, LogFormat};
use crate::{Error, Result, private_file};

/// The longest file, in bytes.
const LIMIT: u64 = 256 * 1024;

/// Settings of every service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSettings {
    /// Directory of the service's files: its state, its sockets, the public deployment file.
    pub data_dir: PathBuf,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Collector of what a running service does about each request.
    pub otlp: Option<String>,
    /// Address to serve metrics and health at.
    #[serde(deserialize_with = "metrics_setting")]
    pub metrics: Option<SocketAddr>,
}

/// Reads it from a file or a variable, by the rules of the flag.
fn metrics_setting<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<SocketAddr>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| metrics_address(&text).map_err(serde::de::Error::custom)).transpose()
}

impl ServiceSettings {
    /// The defaults of this program.
    #[must_use]
    pub fn of(program: &str) -> Self {
        Self { data_dir: format!("{program}-data").into(), ..Self::default() }
    }

    /// Starts logging ([`logging::start`]). Only a command that `serves` has requests to tell a collector of.
    ///
    /// # Errors
    /// Those of [`logging::start`].
    pub fn start_logging(&self, program: &str, serves: bool) -> Result<Option<Export>> {
        logging::start(program, self.log_format, self.otlp.as_deref().filter(|_| serves))
    }
}

/// The layers above the defaults.
#[derive(Debug)]
pub struct Layers {
    figment: Figment,
    /// Prefix of the environment variables.
    prefix: String,
    /// The keys of the parts read so far.
    known: BTreeSet<String>,
}

impl Layers {
    /// Makes the layers of a program that is given nothing: no file, no variable and no flag is read.
    #[must_use]
    pub fn empty() -> Self {
        Self { figment: Figment::new(), prefix: String::new(), known: BTreeSet::new() }
    }

    /// Reads the file, the environment (`QUIVER_KGC_…` for the program `kgc`) and the flags that every subcommand
    /// has.
    ///
    /// # Errors
    /// [`Error::Config`] if it is no TOML; [`Error::NoFile`], [`Error::NotAFile`], [`Error::Io`].
    pub fn read(common: &CommonArgs, program: &str) -> Result<Self> {
        let prefix = format!("QUIVER_{}_", program.to_ascii_uppercase());
        let mut figment = Figment::new();
        if let Some(path) = &common.config {
            let content = private_file::read_public(path, LIMIT, "a file of settings")?;
            let wrong = |what: &dyn Display| Error::Config(format!("{}: {what}", path.display()));
            let text = content.text().ok_or_else(|| wrong(&"it is no text"))?;
            toml::from_str::<toml::Table>(text).map_err(|error| wrong(&content.explain_toml(&error)))?;
            figment = figment.merge(File { path, text });
        }
        let figment = figment.merge(Env::prefixed(&prefix));
        Self { figment, prefix, known: BTreeSet::new() }.flags(common)
    }

    /// Adds the flags that were given: all values but `None`, empty lists and `false`.
    ///
    /// # Errors
    /// [`Error::Config`] for a path that is no text.
    pub fn flags(self, args: &impl Serialize) -> Result<Self> {
        let failed = |error| Error::Config(explain(error, &self.prefix));
        let mut given = Value::serialize(args).map_err(failed)?.into_dict().unwrap_or_default();
        given.retain(|_, value| match value {
            Value::Empty(..) | Value::Bool(_, false) => false,
            Value::Array(_, list) => !list.is_empty(),
            _ => true,
        });
        Ok(Self { figment: self.figment.merge(Flags(given)), ..self })
    }

    /// The settings of one part, with these defaults.
    ///
    /// # Errors
    /// [`Error::Config`] naming key and place of a value of the wrong type.
    pub fn part<T: Serialize + DeserializeOwned>(&mut self, defaults: T) -> Result<T> {
        let failed = |error| Error::Config(explain(error, &self.prefix));
        let keys = Value::serialize(&defaults).map_err(failed)?.into_dict().unwrap_or_default();
        self.known.extend(keys.into_keys());
        let layered = self.figment.clone().join(Serialized::defaults(defaults));
        let mut texts = Dict::new();
        loop {
            // Variables that look like numbers or booleans are read as such. Where a text is wanted, they are that text.
            let error = match layered.clone().merge(Texts(texts.clone())).extract() {
                Ok(part) => return Ok(part),
                Err(error) => error,
            };
            let Some((key, text)) = self.wanted_text(&error, &texts) else { return Err(failed(error)) };
            texts.insert(key, Value::from(text.as_str()));
        }
    }

    /// The first variable that was read as another type than a text, where a text is wanted; and its text.
    fn wanted_text(&self, error: &figment::Error, texts: &Dict) -> Option<(String, String)> {
        let wanted = error.clone().into_iter().find(|error| {
            let is_variable =
                error.metadata.as_ref().is_some_and(|metadata| metadata.name.contains("environment"));
            let is_text = |wanted: &str| wanted.contains("string") || wanted.starts_with("enum ");
            let is_wanted = matches!(&error.kind, Kind::InvalidType(_, wanted) if is_text(wanted));
            is_variable && is_wanted && error.path.len() == 1
        })?;
        let key = wanted.path.first().filter(|key| !texts.contains_key(*key))?.clone();
        let name = format!("{}{key}", self.prefix);
        let (_, text) = std::env::vars_os().find(|(variable, _)| variable.eq_ignore_ascii_case(&name))?;
        Some((key, text.into_string().ok()?))
    }

    /// The place where a key is set, for people; `None` if it has its default.
    #[must_use]
    pub fn place_of(&self, key: &str) -> Option<String> {
        let is_set = self.figment.find_value(key).is_ok();
        is_set.then(|| place(self.figment.find_metadata(key), key, &self.prefix))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`Error::Config`] naming a key that is of no part, and its place.
    pub fn end(self) -> Result<()> {
        let failed = |error| Error::Config(explain(error, &self.prefix));
        let given = self.figment.extract::<Dict>().map_err(failed)?;
        let Some(key) = given.keys().find(|key| !self.known.contains(*key)) else { return Ok(()) };
        let known = self.known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let place = place(self.figment.find_metadata(key), key, &self.prefix);
        Err(Error::Config(format!("{place}: unknown field, expected one of {known}")))
    }
}

/// The text of a file, which was read by then, so that it may come out of a pipe as well.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Provider for File<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::from("TOML file", self.path)
    }

    fn data(&self) -> std::result::Result<Map<Profile, Dict>, figment::Error> {
        Toml::string(self.text).data()
    }
}

/// Variables of the environment that are texts although they look like something else.
struct Texts(Dict);

impl Provider for Texts {
    fn metadata(&self) -> Metadata {
        Metadata::named("environment variable(s)")
    }

    fn data(&self) -> std::result::Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.0.clone()))
    }
}

/// The flags, under a name of their own in errors.
struct Flags(Dict);

impl Provider for Flags {
    fn metadata(&self) -> Metadata {
        Metadata::named("the command line")
    }

    fn data(&self) -> std::result::Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.0.clone()))
    }
}

fn explain(error: figment::Error, prefix: &str) -> String {
    let one = |error: figment::Error| {
        let place = place(error.metadata.as_ref(), &error.path.join("."), prefix);
        format!("{place}: {}", reason(&error.kind))
    };
    error.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

fn reason(kind: &Kind) -> String {
    let one_of = |known: &[&str]| known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match kind {
        Kind::UnknownField(found, known) => {
            format!("unknown field `{found}`, expected one of {}", one_of(known))
        }
        Kind::InvalidType(found, wanted) | Kind::InvalidValue(found, wanted) => {
            format!("found {found}, expected {}", noun(wanted))
        }
        Kind::UnknownVariant(found, known) => format!("`{found}` is not one of {}", one_of(known)),
        other => other.to_string(),
    }
}

/// Noun for what the compiler calls a type of numbers; other texts as they are.
fn noun(wanted: &str) -> &str {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other => other,
    }
}

/// Describes where a key is set, for people.
fn place(metadata: Option<&Metadata>, key: &str, prefix: &str) -> String {
    match metadata {
        Some(Metadata { source: Some(Source::File(path)), .. }) => format!("{}: key `{key}`", path.display()),
        Some(metadata) if metadata.name.contains("environment") => {
            format!("variable {prefix}{}", key.to_ascii_uppercase())
        }
        Some(metadata) => format!("{}: key `{key}`", metadata.name),
        None => format!("key `{key}`"),
    }
}

/// Deserialises a list that may also be given as one text with commas or lines, as an environment variable has to. A text
/// that stands in it twice is refused: one of the two was mistyped.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(ListVisitor)
}

/// Visitor of a text or of a list of texts. Its error names the value found and what is wanted.
struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or a list of strings")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Self::Value, E> {
        distinct(text.split([',', '\n']).map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        distinct(texts)
    }
}

/// Refuses a list in which a text stands twice.
fn distinct<E: serde::de::Error>(texts: Vec<String>) -> std::result::Result<Vec<String>, E> {
    let mut seen = BTreeSet::new();
    match texts.iter().find(|text| !seen.insert(*text)) {
        Some(twice) => Err(E::custom(format_args!("{twice} stands there twice"))),
        None => Ok(texts),
    }
}

/// Deserialises a whole number from `LEAST` to `MOST`. Every error says so: of a number out of the range, and of what is none.
pub fn whole<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    deserializer: D,
) -> std::result::Result<u32, D::Error> {
    Ok(Whole::<LEAST, MOST>::deserialize(deserializer)?.0)
}

/// Deserialises the same where it may be missing.
pub fn optional_whole<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    deserializer: D,
) -> std::result::Result<Option<u32>, D::Error> {
    Ok(Option::<Whole<LEAST, MOST>>::deserialize(deserializer)?.map(|whole| whole.0))
}

/// A whole number of a range.
struct Whole<const LEAST: u32, const MOST: u32>(u32);

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor::<LEAST, MOST>).map(Self)
    }
}

/// Visitor of a whole number of a range.
struct WholeVisitor<const LEAST: u32, const MOST: u32>;

impl<const LEAST: u32, const MOST: u32> WholeVisitor<LEAST, MOST> {
    /// The number, if it is in the range.
    fn of(number: impl TryInto<u32>) -> Option<u32> {
        number.try_into().ok().filter(|number| (LEAST..=MOST).contains(number))
    }
}

impl<const LEAST: u32, const MOST: u32> Visitor<'_> for WholeVisitor<LEAST, MOST> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {LEAST} to {MOST}")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> std::result::Result<u32, E> {
        Self::of(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<u32, E> {
        Self::of(number).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

/// Reads each text of the setting `key`, such as its multiaddresses.
///
/// # Errors
/// [`Error::Config`] naming the key and the text.
pub fn parse_all<T: FromStr>(key: &str, texts: &[String]) -> Result<Vec<T>>
where
    T::Err: Display,
{
    let one =
        |text: &String| text.parse().map_err(|error| Error::Config(format!("`{key}`: {text}: {error}")));
    texts.iter().map(one).collect()
}

/// Address to write in place of one that was not understood, or that has QUIC.
#[must_use]
pub fn address_form(text: &str) -> String {
    if let Some((host, rest)) = text.split_once("/udp/")
        && let Some((port, _)) = rest.split_once("/quic")
    {
        return format!("write {host}/tcp/{port}");
    }
    "write HOST:PORT, /ip4/ADDRESS/tcp/PORT or /dns4/NAME/tcp/PORT".into()
}

#[cfg(test)]
mod tests;
