//! Chooses the authority that something is sealed under, and decodes its statement.

use quiver_abe::envelope::{AnyKey, AnyParameters, EnvelopeTarget};
use quiver_ainq::{Name, Ristretto255};
use quiver_attribute_schemes::{SchemeKind, UnknownScheme};
use quiver_policy::Schema;
use quiver_service::keyring::KeyringEntry;

use crate::job::{Recipients, TargetText};
use crate::{Error, Result};

/// An authority whose scheme this program has.
pub(crate) struct KnownAuthority<'a> {
    pub(crate) name: &'a Name,
    pub(crate) parameters: AnyParameters,
    schema: Schema,
}

impl<'a> KnownAuthority<'a> {
    pub(crate) fn new(entry: &'a KeyringEntry<Ristretto255>) -> Result<Self> {
        let (authority, name) = (&entry.authority, &entry.authority.name);
        SchemeKind::from_id(authority.scheme.as_str()).map_err(|error| Error::authority(name, &error))?;
        let parameters = AnyParameters::decode(authority.scheme.as_str(), &authority.parameters)
            .map_err(|error| Error::authority(name, &error))?;
        let schema = Schema::decode(&authority.schema).map_err(|error| Error::authority(name, &error))?;
        Ok(Self { name, parameters, schema })
    }

    /// The key in the entry, if there is one.
    pub(crate) fn key(&self, entry: &KeyringEntry<Ristretto255>) -> Result<Option<AnyKey>> {
        let decode = |bytes| AnyKey::decode(self.parameters.scheme(), bytes);
        let key = entry.key.as_ref().map(|held| decode(&held.key)).transpose();
        key.map_err(|error| Error::authority(self.name, &error))
    }

    /// Reads policy or attributes with this authority's schema.
    pub(crate) fn target(&self, text: &TargetText) -> Result<EnvelopeTarget> {
        let (text, target) = match text {
            TargetText::Policy(text) => (text, EnvelopeTarget::policy(text, &self.schema)),
            TargetText::Attributes(text) => (text, EnvelopeTarget::attributes(text, &self.schema)),
        };
        target.map_err(|error| Error::Target(error.pointing_at(text)))
    }
}

fn is_broken(scheme: &str) -> bool {
    matches!(SchemeKind::from_id(scheme), Err(UnknownScheme::Broken(_)))
}

/// The one authority that fits what was asked for.
pub(crate) fn choose<'a>(
    entries: &[&'a KeyringEntry<Ristretto255>],
    to: &Recipients,
) -> Result<KnownAuthority<'a>> {
    let asked = |entry: &&&KeyringEntry<Ristretto255>| {
        let named = to.authority.as_ref().is_none_or(|name| entry.authority.name.as_str() == name);
        named && to.scheme.as_ref().is_none_or(|scheme| entry.authority.scheme.as_str() == scheme)
    };
    let asked: Vec<_> = entries.iter().filter(asked).collect();
    // One that no service has any more is no choice beside others.
    let usable = asked.iter().filter(|entry| !is_broken(entry.authority.scheme.as_str()));
    let mut known = usable.map(|entry| KnownAuthority::new(entry)).collect::<Result<Vec<_>>>()?;
    if let ([], [broken, ..]) = (known.as_slice(), asked.as_slice()) {
        known.push(KnownAuthority::new(broken)?);
    }
    if known.is_empty() {
        let all: Vec<_> = entries.iter().map(|entry| entry.authority.name.as_str()).collect();
        return Err(Error::Authority(match all.as_slice() {
            [] => "no attribute authority is known: fetch (`abe fetch`), or give --authority FILE".into(),
            all => {
                let asked = to.authority.as_deref().map_or_else(String::new, |name| format!(" `{name}`"));
                format!(
                    "no such attribute authority{asked}; known are {}; a public file is given with its folder, as ./NAME.authority",
                    all.join(", ")
                )
            }
        }));
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

#[cfg(test)]
mod tests {
    use quiver_ainq::{AuthorityStatement, Deployment, MasterSecret, Ristretto255, SecretScalar};
    use rand::rngs::OsRng;

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("name")
    }

    /// Entries of authorities, each of the scheme that is named so.
    fn entries(schemes: &[&str]) -> Vec<KeyringEntry<Ristretto255>> {
        let master = MasterSecret::generate(&mut OsRng);
        let deployment = Deployment::new(name("alps"), master.public());
        let parameters = SchemeKind::FabeoCp.found(&Schema::new(), &mut OsRng).expect("found").parameters;
        let entry = |scheme: &&str| {
            let statement = AuthorityStatement {
                kind: name("abe"),
                name: name(&format!("of-{scheme}")),
                scheme: name(scheme),
                delivery: SecretScalar::generate(&mut OsRng).public(),
                schema: Schema::new().encode(),
                parameters: parameters.clone(),
            };
            let signed = master.sign_authority(&deployment, statement, &mut OsRng).expect("sign");
            KeyringEntry { authority: signed.verify(&deployment).expect("verify"), key: None }
        };
        schemes.iter().map(entry).collect()
    }

    fn chosen(schemes: &[&str], scheme: Option<&str>) -> std::result::Result<String, String> {
        let entries = entries(schemes);
        let entries: Vec<_> = entries.iter().collect();
        let target = TargetText::Policy("scout".into());
        let to = Recipients { target, authority: None, scheme: scheme.map(Into::into) };
        choose(&entries, &to).map(|known| known.name.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn authority_of_the_broken_scheme_is_refused_and_chosen_beside_no_other() {
        let broken = "insecure-yct14";
        for (all, asked) in [(&[broken][..], None), (&[broken, "fabeo22-cp"][..], Some(broken))] {
            let error = chosen(all, asked).expect_err("refused");
            for part in ["of-insecure-yct14", "is broken", "kgc abe setup"] {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        assert_eq!(chosen(&[broken, "fabeo22-cp"], None), Ok("of-fabeo22-cp".into()));
        assert!(
            chosen(&["toy", "fabeo22-cp"], None)
                .expect_err("unknown")
                .contains("does not know the scheme toy")
        );
    }
}
