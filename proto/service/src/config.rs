//! Layered configuration: defaults ← TOML file ← environment ← flags, the later ones winning.
//!
//! A configuration struct derives `Serialize`, `Deserialize` and `Default` with
//! `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error that names the key and the file (or
//! variable) it stands in, and not silently a default.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Map};
use figment::{Figment, Profile, Provider};
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Reads the layers. `flags` serialises to the keys that were given on the command line only
/// (`skip_serializing_if = "Option::is_none"`).
///
/// # Errors
/// [`Error::Config`] naming key and place: unreadable file, unknown key, wrong type.
pub fn layers<T, F>(file: Option<&Path>, variable_prefix: &str, flags: &F) -> Result<T>
where
    T: Serialize + DeserializeOwned + Default,
    F: Serialize,
{
    let mut figment = Figment::from(Serialized::defaults(T::default()));
    if let Some(path) = file {
        if !path.is_file() {
            return Err(Error::Config(format!("there is no file {}", path.display())));
        }
        figment = figment.merge(Toml::file_exact(path));
    }
    let figment = figment.merge(Env::prefixed(variable_prefix)).merge(Flags(Serialized::defaults(flags)));
    figment.extract().map_err(|error| Error::Config(explain(error, variable_prefix)))
}

/// The flags, under a name of their own in errors.
struct Flags<'a, F>(Serialized<&'a F>);

impl<F: Serialize> Provider for Flags<'_, F> {
    fn metadata(&self) -> figment::Metadata {
        figment::Metadata::named("the command line")
    }

    fn data(&self) -> std::result::Result<Map<Profile, Dict>, figment::Error> {
        self.0.data()
    }
}

fn explain(error: figment::Error, variable_prefix: &str) -> String {
    let one = |error: figment::Error| {
        let key = error.path.join(".");
        let place = match &error.metadata {
            Some(metadata) => match &metadata.source {
                Some(figment::Source::File(path)) => format!("{}: key `{key}`", path.display()),
                _ if metadata.name.contains("environment") => {
                    format!("variable {variable_prefix}{}", key.to_ascii_uppercase())
                }
                _ => format!("{}: key `{key}`", metadata.name),
            },
            None => format!("key `{key}`"),
        };
        format!("{place}: {}", error.kind)
    };
    error.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Deserialises a list that may also be given as one text with commas, as an environment variable has to.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => {
            text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect()
        }
        OneOrMany::Many(list) => list,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
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

    #[derive(Serialize, Default)]
    struct Given {
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<String>,
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), text).expect("write");
        file
    }

    fn read(text: &str, group: Option<&str>) -> Result<Sample> {
        layers(Some(file(text).path()), "QUIVER_UNSET_", &Given { group: group.map(String::from) })
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let text = "group = \"file\"\nlisten = \"x, y\"";
        let found = read(text, None).expect("good");
        assert_eq!(found, Sample { listen: vec!["x".into(), "y".into()], group: "file".into(), seconds: 1 });
        assert_eq!(read(text, Some("flag")).expect("good").group, "flag");
    }

    #[test]
    fn unknown_key_is_refused_with_key_and_file_named() {
        let file = file("gruop = \"typo\"");
        let error =
            layers::<Sample, _>(Some(file.path()), "QUIVER_UNSET_", &Given::default()).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("gruop") && text.contains(&file.path().display().to_string()), "{text}");
    }

    #[test]
    fn wrong_type_is_refused_with_the_key_named() {
        let text = read("seconds = \"soon\"", None).expect_err("refused").to_string();
        assert!(text.contains("seconds"), "{text}");
    }

    #[test]
    fn missing_file_is_refused() {
        let given = Given::default();
        let error = layers::<Sample, _>(Some(Path::new("/nonexistent.toml")), "QUIVER_UNSET_", &given);
        assert!(error.expect_err("refused").to_string().contains("/nonexistent.toml"));
    }
}
