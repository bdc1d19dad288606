//! `kgc abe`: attribute authorities, grants, keys.

mod arguments;
mod keygen;
mod list;
mod setup;

use std::path::PathBuf;

use quiver_ainq::{AuthorityStatement, Deployment, Name, Ristretto255, VerifiedAuthority};
use quiver_attribute_schemes::{Granting, SchemeKind, UnknownScheme};
use quiver_delivery::attributes::{Granted, KIND};
use quiver_policy::Schema;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::terminal;

use self::arguments::{AbeCommand, EXAMPLES, WhatArgs};
use crate::authorities::{self, RegisteredAuthority, pick};
use crate::authority_setup::write_public;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::features::{AuthorityService, FeatureCommand, KgcFeature};
use crate::store::Store;
use crate::{grants, registry};

/// A stolen key does not erase itself.
const HELD: &str = "a key that the drone holds opens until it is erased: the drone erases it at its next fetch, a stolen one does not";

/// Attribute-based encryption, as a feature of the KGC.
pub(crate) struct AttributeFeature;

impl KgcFeature for AttributeFeature {
    type Command = AbeCommand;

    const KIND: &'static str = KIND;
    const ABOUT: &'static str = "Attribute-based encryption: authorities, grants, keys";
    const EXAMPLES: Option<&'static str> = Some(EXAMPLES);

    fn open(&self, statement: &AuthorityStatement<Ristretto255>, master: &[u8]) -> Result<AuthorityService> {
        Ok(match scheme_of(statement)? {
            AuthorityScheme::Known(scheme) => {
                AuthorityService::Keys(scheme.maker(&statement.parameters, master).map_err(Error::scheme)?)
            }
            AuthorityScheme::Ended(why) => AuthorityService::Ended(why),
        })
    }
}

impl FeatureCommand for AbeCommand {
    fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()> {
        let deployment = &config.deployment()?;
        let read = || registry::open_of(config, deployment);
        match self {
            Self::List { json } => return list::run(deployment, &read()?, *json),
            Self::Publish { name, out } => return publish(deployment, &read()?, name, out.clone()),
            _ => {}
        }
        registry::write(config, protection, |writer| match self {
            Self::Setup(args) => setup::run(config, protection, deployment, writer, args),
            Self::Grant(args) => {
                let (known, granted) = chosen(writer, deployment, &args.what)?;
                grants::make(config, writer, &known.row, &args.drone, &granted, "edge abe fetch")
            }
            Self::Revoke(args) => {
                let known = choose(writer, deployment, args.choice.authority.as_deref(), None)?;
                grants::withdraw(config, writer, &known.row, &args.drone, HELD)
            }
            Self::Keygen(args) => keygen::run(config, protection, deployment, writer, args),
            Self::List { .. } | Self::Publish { .. } => Ok(()),
        })
    }
}

/// Scheme of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AuthorityScheme {
    /// One that this program has.
    Known(SchemeKind),
    /// One that no build has any more, and the reason.
    Ended(String),
}

/// The scheme of an authority.
///
/// # Errors
/// [`Error::Scheme`] if this program does not have it.
fn scheme_of(statement: &AuthorityStatement<Ristretto255>) -> Result<AuthorityScheme> {
    let named = |error| format!("attribute authority {}: {error}", statement.name);
    match SchemeKind::from_id(statement.scheme.as_str()) {
        Ok(scheme) => Ok(AuthorityScheme::Known(scheme)),
        Err(error @ UnknownScheme::Broken(_)) => Ok(AuthorityScheme::Ended(named(error))),
        Err(error) => Err(Error::Scheme(named(error))),
    }
}

/// Writes an authority's public file.
fn publish(
    deployment: &Deployment<Ristretto255>,
    store: &Store,
    name: &Name,
    out: Option<PathBuf>,
) -> Result<()> {
    let known = choose(store, deployment, Some(name.as_str()), None)?;
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{name}.authority")));
    write_public(&out, &known.statement)?;
    terminal::line(&format!("{}  public: seal with it anywhere; drones also fetch it", out.display()))?;
    Ok(())
}

/// Reads what is to be granted.
fn read(known: &RegisteredAuthority<SchemeKind>, text: &str) -> Result<Granted> {
    let granted = known.service.read(text, &schema_of(&known.statement)?);
    granted.map_err(|error| Error::Policy(error.pointing_at(text)))
}

fn schema_of(statement: &VerifiedAuthority<Ristretto255>) -> Result<Schema> {
    let wrong = |error| Error::Scheme(format!("the schema of {} is invalid: {error}", statement.name));
    Schema::decode(&statement.schema).map_err(wrong)
}

/// All attribute authorities, by name.
fn all(store: &Store, deployment: &Deployment<Ristretto255>) -> Result<Vec<RegisteredAuthority<SchemeKind>>> {
    authorities::all(store, deployment, KIND, |statement| match scheme_of(statement)? {
        AuthorityScheme::Known(scheme) => Ok(Some(scheme)),
        AuthorityScheme::Ended(why) => {
            tracing::warn!("{why}");
            Ok(None)
        }
    })
}

/// The authority that was named, or else the only one that there is, or that grants what was given.
fn choose(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    named: Option<&str>,
    granting: Option<Granting>,
) -> Result<RegisteredAuthority<SchemeKind>> {
    let mut fitting = all(store, deployment)?;
    if fitting.is_empty() {
        return Err(Error::Terms("no attribute authority here yet; run `kgc abe setup` first".into()));
    }
    if let (None, Some(granting)) = (named, granting) {
        fitting.retain(|known| known.service.granting() == granting);
        if fitting.is_empty() {
            return Err(Error::Terms(match granting {
                Granting::Policy => "no authority here whose keys have policies; give --attributes".into(),
                Granting::Attributes => "no authority here whose keys have attributes; give --policy".into(),
            }));
        }
    }
    pick(fitting, named)
}

/// The authority and what it is to grant, as given on the command line.
fn chosen(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    what: &WhatArgs,
) -> Result<(RegisteredAuthority<SchemeKind>, Granted)> {
    let (granting, text) = match (&what.terms.policy, &what.terms.attributes) {
        (Some(policy), _) => (Granting::Policy, policy),
        (None, Some(attributes)) => (Granting::Attributes, attributes),
        // The command line requires one of the two.
        (None, None) => return Err(Error::Terms("give --policy or --attributes".into())),
    };
    let known = choose(store, deployment, what.authority.as_deref(), Some(granting))?;
    if known.service.granting() != granting {
        let (name, id) = (&known.row.name, known.service.id());
        return Err(Error::Terms(match known.service.granting() {
            Granting::Policy => format!("keys of {name} ({id}) have a policy: give --policy"),
            Granting::Attributes => format!("keys of {name} ({id}) have attributes: give --attributes"),
        }));
    }
    let granted = read(&known, text)?;
    Ok((known, granted))
}

#[cfg(test)]
mod tests {
    use quiver_ainq::MasterSecret;
    use rand::rngs::OsRng;

    use super::*;

    fn of_scheme(scheme: &str) -> Result<AuthorityScheme> {
        let name = |text| Name::new(text).expect("name");
        let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
        scheme_of(&AuthorityStatement {
            kind: name("abe"),
            name: name("orders"),
            scheme: name(scheme),
            delivery: master.public(),
            schema: Vec::new(),
            parameters: Vec::new(),
        })
    }

    #[test]
    fn authority_of_the_broken_scheme_is_named_and_ends_nothing_else() {
        let Ok(AuthorityScheme::Ended(why)) = of_scheme("insecure-yct14") else { panic!("it has ended") };
        for part in ["attribute authority orders", "insecure-yct14 is broken", "kgc abe setup"] {
            assert!(why.contains(part), "`{part}` is not in: {why}");
        }
        assert_eq!(of_scheme("gpsw06").expect("known"), AuthorityScheme::Known(SchemeKind::Gpsw06));
        let unknown = of_scheme("toy").expect_err("unknown").to_string();
        assert!(unknown.contains("orders") && unknown.contains("does not know the scheme toy"), "{unknown}");
    }
}
