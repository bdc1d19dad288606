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
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
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

/// Deserialises a list that may also be given as one text with commas or lines, as an environment variable has to.
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
        Ok(text.split([',', '\n']).map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(texts)
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

/// The same of addresses that are listened on; an error says which form they have ([`address_form`]).
///
/// # Errors
/// [`Error::Config`] with key, text, reason and form. An address with QUIC is one in a build without.
#[cfg(feature = "drone")]
pub fn parse_listened_addresses(key: &str, texts: &[String]) -> Result<Vec<quiver_net::Multiaddr>> {
    addresses_by(quiver_net::parse_listened_address, key, texts)
}

/// The same of addresses that are dialled: one at which nothing can ever be reached is refused.
///
/// # Errors
/// The errors of [`parse_listened_addresses`].
#[cfg(feature = "drone")]
pub fn parse_dialled_addresses(key: &str, texts: &[String]) -> Result<Vec<quiver_net::Multiaddr>> {
    addresses_by(quiver_net::parse_dialled_address, key, texts)
}

#[cfg(feature = "drone")]
fn addresses_by(
    read: impl Fn(&str) -> std::result::Result<quiver_net::Multiaddr, quiver_net::AddressError>,
    key: &str,
    texts: &[String],
) -> Result<Vec<quiver_net::Multiaddr>> {
    let refused =
        |text: &String, error| Error::Config(format!("`{key}`: {text}: {error}; {}", address_form(text)));
    texts.iter().map(|text| read(text).map_err(|error| refused(text, error))).collect()
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
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Sample {
        #[serde(deserialize_with = "list")]
        listen: Vec<String>,
        group: String,
        seconds: u32,
    }

    impl Default for Sample {
        fn default() -> Self {
            Self { listen: vec!["a".into()], group: "default".into(), seconds: 1 }
        }
    }

    #[derive(Serialize)]
    struct Given {
        group: Option<String>,
        listen: Vec<String>,
        seconds: bool,
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), text).expect("write");
        file
    }

    fn read_file(path: &Path, group: Option<&str>) -> Result<Sample> {
        let common = CommonArgs { config: Some(path.into()), ..CommonArgs::default() };
        let given = Given { group: group.map(String::from), listen: Vec::new(), seconds: false };
        let mut layers = Layers::read(&common, "unset")?.flags(&given)?;
        let sample = layers.part(Sample::default())?;
        layers.end()?;
        Ok(sample)
    }

    fn read(text: &str, group: Option<&str>) -> Result<Sample> {
        read_file(file(text).path(), group)
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let text = "group = \"file\"\nlisten = \"x, y\"";
        let found = read(text, None).expect("good");
        let lines = read("listen = \"x\\ny\\n\"", None).expect("good");
        assert_eq!(lines.listen, found.listen);
        assert_eq!(found, Sample { listen: vec!["x".into(), "y".into()], group: "file".into(), seconds: 1 });
        assert_eq!(read(text, Some("flag")).expect("good").group, "flag");
    }

    #[test]
    fn unknown_key_is_refused_with_key_and_file_named() {
        let file = file("gruop = \"typo\"");
        let error = read_file(file.path(), None).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("gruop") && text.contains(&file.path().display().to_string()), "{text}");
    }

    #[test]
    fn wrong_type_is_refused_with_the_key_named() {
        let text = read("seconds = \"soon\"", None).expect_err("refused").to_string();
        assert!(text.contains("seconds") && text.contains("expected a whole number"), "{text}");
    }

    #[test]
    fn file_that_is_no_toml_is_refused_with_the_line_and_without_a_key() {
        let file = file("seconds = 1\ngroup");
        let text = read_file(file.path(), None).expect_err("refused").to_string();
        assert!(text.starts_with(&format!("configuration: {}: ", file.path().display())), "{text}");
        assert!(text.contains("line 2") && !text.contains("key ``"), "{text}");
    }

    #[test]
    fn address_of_metrics_is_that_of_one_machine_in_a_file_too() {
        let read = |address: &str| {
            let file = file(&format!("metrics = \"{address}\""));
            let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
            Layers::read(&common, "unset").expect("read").part(ServiceSettings::of("unset"))
        };
        for (address, complaint) in [
            ("224.0.0.1:9464", "no address of one machine"),
            ("255.255.255.255:9464", "no address of one machine"),
            ("[ff02::1]:9464", "no address of one machine"),
            ("9464", "such as 127.0.0.1:9464"),
        ] {
            let text = read(address).expect_err("refused").to_string();
            assert!(text.contains("key `metrics`") && text.contains(complaint), "{address}: {text}");
        }
        assert_eq!(read("0.0.0.0:0").expect("good").metrics, Some(([0, 0, 0, 0], 0).into()));
    }

    #[test]
    fn directory_is_refused_as_one() {
        let text = read_file(Path::new("/"), None).expect_err("refused").to_string();
        assert_eq!(text, "/ is a directory, not a file");
    }

    #[derive(Serialize, Deserialize, Debug, Default, PartialEq)]
    struct Nested {
        inner: Inner,
        format: LogFormat,
    }

    #[derive(Serialize, Deserialize, Debug, Default, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        addresses: Vec<String>,
    }

    #[test]
    fn unknown_fields_and_words_are_told_in_one_pair_of_quotes_each() {
        let refused = |text: &str| {
            let file = file(text);
            let common = CommonArgs { config: Some(file.path().into()), ..CommonArgs::default() };
            let mut layers = Layers::read(&common, "unset").expect("read");
            layers.part(Nested::default()).expect_err("refused").to_string()
        };
        let field = refused("inner.adresses = []");
        assert!(field.ends_with("unknown field `adresses`, expected one of `addresses`"), "{field}");
        let word = refused("format = \"xml\"");
        assert!(word.ends_with("key `format`: `xml` is not one of `text`, `json`"), "{word}");
    }

    #[test]
    fn missing_file_is_refused() {
        let error = read_file(Path::new("/nonexistent.toml"), None);
        assert!(error.expect_err("refused").to_string().contains("/nonexistent.toml"));
    }

    #[test]
    fn address_in_another_form_is_told_the_form() {
        for (text, form) in [
            ("7302", "write HOST:PORT, /ip4/ADDRESS/tcp/PORT or /dns4/NAME/tcp/PORT"),
            ("/ip4/10.0.0.1/udp/7001/quic-v1", "write /ip4/10.0.0.1/tcp/7001"),
            ("/dns4/a/udp/7001/quic-v1/p2p/12D3", "write /dns4/a/tcp/7001"),
            ("tcp://a:1", "write HOST:PORT, /ip4/ADDRESS/tcp/PORT or /dns4/NAME/tcp/PORT"),
        ] {
            assert_eq!(address_form(text), form, "{text}");
        }
    }
}
