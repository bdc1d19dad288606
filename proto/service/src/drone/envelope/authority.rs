//! Chooses the authority that something is sealed under, and decodes its statement.

use crate::keyring::Entry;
use quiver_abe::envelope::{AnyKey, AnyParameters, Target};
use quiver_ainq::{Name, Suite};
use quiver_policy::Schema;

use super::{Recipients, TargetText};
use crate::drone::{Error, Result};

/// An authority whose scheme this program has.
pub(super) struct Known<'a> {
    pub(super) name: &'a Name,
    pub(super) parameters: AnyParameters,
    schema: Schema,
}

impl<'a> Known<'a> {
    pub(super) fn new<S: Suite>(entry: &'a Entry<S>) -> Result<Self> {
        let (authority, name) = (&entry.authority, &entry.authority.name);
        let parameters = AnyParameters::decode(authority.scheme.as_str(), &authority.parameters)
            .map_err(|error| Error::authority(name, &error))?;
        let schema = Schema::decode(&authority.schema).map_err(|error| Error::authority(name, &error))?;
        Ok(Self { name, parameters, schema })
    }

    /// The key in the entry, if there is one.
    pub(super) fn key<S: Suite>(&self, entry: &Entry<S>) -> Result<Option<AnyKey>> {
        let decode = |bytes| AnyKey::decode(self.parameters.scheme(), bytes);
        let key = entry.key.as_ref().map(|held| decode(&held.key)).transpose();
        key.map_err(|error| Error::authority(self.name, &error))
    }

    /// Reads policy or attributes with this authority's schema.
    pub(super) fn target(&self, text: &TargetText) -> Result<Target> {
        let (text, target) = match text {
            TargetText::Policy(text) => (text, Target::policy(text, &self.schema)),
            TargetText::Attributes(text) => (text, Target::attributes(text, &self.schema)),
        };
        target.map_err(|error| Error::Target(error.pointing_at(text)))
    }
}

/// Whether a scheme says in its name that nobody should rely on it. Such schemes are built in by a feature
/// alone.
fn is_broken(scheme: &str) -> bool {
    scheme.contains("insecure")
}

/// The one authority that fits what was asked for.
pub(super) fn choose<'a, S: Suite>(entries: &[&'a Entry<S>], to: &Recipients) -> Result<Known<'a>> {
    let asked = |entry: &&&Entry<S>| {
        let named = to.authority.as_ref().is_none_or(|name| entry.authority.name.as_str() == name);
        named && to.scheme.as_ref().is_none_or(|scheme| entry.authority.scheme.as_str() == scheme)
    };
    let mut known = Vec::new();
    for entry in entries.iter().filter(asked) {
        known.push(Known::new(entry)?);
    }
    if known.is_empty() {
        let all: Vec<_> = entries.iter().map(|entry| entry.authority.name.as_str()).collect();
        return Err(Error::Authority(match all.as_slice() {
            [] => "no attribute authority is known: fetch (`abe fetch`), or give --authority FILE".into(),
            all => format!("no such attribute authority; known are {}", all.join(", ")),
        }));
    }
    known.retain(|known| !is_broken(known.parameters.scheme()) || to.scheme.is_some());
    if known.is_empty() {
        return Err(Error::Authority(
            "the authority's scheme is broken: to seal under it nevertheless, name it with --scheme".into(),
        ));
    }
    let policy = matches!(to.target, TargetText::Policy(_));
    known.retain(|known| known.parameters.takes_policies() == policy);
    match known.len() {
        0 => Err(Error::Authority(match policy {
            true => {
                "the authority's scheme seals to attributes: give --attributes in place of --policy".into()
            }
            false => {
                "the authority's scheme seals to policies: give --policy in place of --attributes".into()
            }
        })),
        1 => known.pop().ok_or_else(|| Error::Authority("none".into())),
        _ => {
            let names: Vec<_> = known.iter().map(|known| known.name.as_str()).collect();
            Err(Error::Authority(format!(
                "which authority? give --authority with one of {}",
                names.join(", ")
            )))
        }
    }
}
