//! `kgc abe`: attribute authorities, grants, keys.

mod granting;
mod keygen;
mod listing;
mod setup;

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, Name, SignedAuthority, Suite, VerifiedAuthority};
use quiver_policy::Schema;
use quiver_role::attributes::schemes::{Granted, Granting, SchemeChoice};
use quiver_service::deployment_file::{DeploymentFile, SuiteChoice};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{keyring, terminal, with_suite};

use crate::authorities::scheme_of;
use crate::cli::{AbeCommand, WhatArgs};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::registry;
use crate::store::{AuthorityRow, Store};

/// Runs a subcommand.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, command: &AbeCommand) -> Result<()> {
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    with_suite!(file.suite()?, S => {
        let deployment = file.pin::<S>()?;
        let store = registry::open_of(config, &deployment)?;
        match command {
            AbeCommand::Setup(args) => setup::run(config, protection, &deployment, store, args),
            AbeCommand::Grant(args) => granting::grant(config, &deployment, store, args),
            AbeCommand::Revoke(args) => granting::revoke(config, &deployment, store, args),
            AbeCommand::Keygen(args) => keygen::run(config, protection, &deployment, store, args),
            AbeCommand::List { json } => listing::run(&deployment, &store, *json),
            AbeCommand::Publish { name, out } => publish(&deployment, &store, name, out.clone()),
        }
    })
}

/// Writes an authority's public file.
fn publish<S: Suite>(
    deployment: &Deployment<S>,
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

fn write_public<S: Suite>(path: &Path, statement: &VerifiedAuthority<S>) -> Result<()> {
    let suite = SuiteChoice::from_id(S::ID).map_err(Error::Scheme)?;
    Ok(keyring::write_authority(path, suite, statement)?)
}

/// An authority of the registry.
struct Known<S: Suite> {
    row: AuthorityRow,
    statement: VerifiedAuthority<S>,
    scheme: SchemeChoice,
    schema: Schema,
}

impl<S: Suite> Known<S> {
    fn of(row: AuthorityRow, deployment: &Deployment<S>) -> Result<Self> {
        let statement = SignedAuthority::decode(&row.statement)?.verify(deployment)?;
        let (scheme, schema) = (scheme_of(&statement)?, schema_of(&statement)?);
        Ok(Self { row, statement, scheme, schema })
    }

    /// Reads what is to be granted.
    fn read(&self, text: &str) -> Result<Granted> {
        self.scheme.read(text, &self.schema).map_err(|error| Error::Policy(error.pointing_at(text)))
    }
}

fn schema_of<S: Suite>(statement: &VerifiedAuthority<S>) -> Result<Schema> {
    let wrong = |error| Error::Scheme(format!("the schema of {} does not hold: {error}", statement.name));
    Schema::decode(&statement.schema).map_err(wrong)
}

/// All authorities, by name.
fn all<S: Suite>(store: &Store, deployment: &Deployment<S>) -> Result<Vec<Known<S>>> {
    store.authorities()?.into_iter().map(|row| Known::of(row, deployment)).collect()
}

/// The authority that was named, or else the only one that there is, or that grants what was given.
fn choose<S: Suite>(
    store: &Store,
    deployment: &Deployment<S>,
    named: Option<&str>,
    granting: Option<Granting>,
) -> Result<Known<S>> {
    let mut fitting = all(store, deployment)?;
    let all_names: Vec<_> = fitting.iter().map(|known| known.row.name.clone()).collect();
    if fitting.is_empty() {
        return Err(Error::Terms("no attribute authority here yet; run `kgc abe setup` first".into()));
    }
    if let Some(name) = named {
        fitting.retain(|known| known.row.name == name);
    } else if let Some(granting) = granting {
        fitting.retain(|known| known.scheme.granting() == granting);
    }
    match (fitting.pop(), named) {
        (Some(known), _) if fitting.is_empty() => Ok(known),
        (None, Some(name)) => {
            Err(Error::Terms(format!("no attribute authority `{name}`; there is {}", all_names.join(", "))))
        }
        (None, None) => Err(Error::Terms(match granting {
            Some(Granting::Policy) => "no authority here whose keys have policies; give --attributes".into(),
            _ => "no authority here whose keys have attributes; give --policy".into(),
        })),
        (Some(_), _) => {
            Err(Error::Terms(format!("which authority? give --authority: {}", all_names.join(", "))))
        }
    }
}

/// The authority and what it is to grant, as given on the command line.
fn chosen<S: Suite>(
    store: &Store,
    deployment: &Deployment<S>,
    what: &WhatArgs,
) -> Result<(Known<S>, Granted)> {
    let (granting, text) = match (&what.terms.policy, &what.terms.attributes) {
        (Some(policy), _) => (Granting::Policy, policy),
        (None, Some(attributes)) => (Granting::Attributes, attributes),
        // The command line requires one of the two.
        (None, None) => return Err(Error::Terms("give --policy or --attributes".into())),
    };
    let known = choose(store, deployment, what.authority.as_deref(), Some(granting))?;
    if known.scheme.granting() != granting {
        let (name, id) = (&known.row.name, known.scheme.id());
        return Err(Error::Terms(match known.scheme.granting() {
            Granting::Policy => format!("keys of {name} ({id}) have a policy: give --policy"),
            Granting::Attributes => format!("keys of {name} ({id}) have attributes: give --attributes"),
        }));
    }
    let granted = known.read(text)?;
    Ok((known, granted))
}
