//! `kgc abe`: attribute authorities, grants, keys.

mod keygen;
pub(crate) mod list;
mod setup;

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, Name, Ristretto255, VerifiedAuthority};
use quiver_delivery::attributes::Granted;
use quiver_delivery::attributes::schemes::{Granting, SchemeKind};
use quiver_policy::Schema;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{keyring, terminal};

use crate::authorities::{self, Known, Service, pick};
use crate::cli::{AbeCommand, WhatArgs};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::{grants, registry};

/// A stolen key does not erase itself.
const HELD: &str = "a key that the drone holds opens until it is erased: the drone erases it at its next fetch, a stolen one does not";

/// Runs a subcommand.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, command: &AbeCommand) -> Result<()> {
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    let deployment = file.pin()?;
    let (deployment, read) = (&deployment, || registry::open_of(config, &deployment));
    match command {
        AbeCommand::List { json } => return list::run(deployment, &read()?, *json),
        AbeCommand::Publish { name, out } => return publish(deployment, &read()?, name, out.clone()),
        _ => {}
    }
    registry::write(config, protection, |writer| match command {
        AbeCommand::Setup(args) => setup::run(config, protection, deployment, writer, args),
        AbeCommand::Grant(args) => {
            let (known, granted) = chosen(writer, deployment, &args.what)?;
            grants::make(config, writer, &known.row, &args.drone, &granted, "edge abe fetch")
        }
        AbeCommand::Revoke(args) => {
            let known = choose(writer, deployment, args.authority.as_deref(), None)?;
            grants::withdraw(config, writer, &known.row, &args.drone, HELD)
        }
        AbeCommand::Keygen(args) => keygen::run(config, protection, deployment, writer, args),
        AbeCommand::List { .. } | AbeCommand::Publish { .. } => Ok(()),
    })
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

pub(crate) fn write_public(path: &Path, statement: &VerifiedAuthority<Ristretto255>) -> Result<()> {
    Ok(keyring::write_authority(path, statement)?)
}

/// Reads what is to be granted.
fn read(known: &Known<SchemeKind>, text: &str) -> Result<Granted> {
    let granted = known.service.read(text, &schema_of(&known.statement)?);
    granted.map_err(|error| Error::Policy(error.pointing_at(text)))
}

fn schema_of(statement: &VerifiedAuthority<Ristretto255>) -> Result<Schema> {
    let wrong = |error| Error::Scheme(format!("the schema of {} is invalid: {error}", statement.name));
    Schema::decode(&statement.schema).map_err(wrong)
}

/// All attribute authorities, by name.
fn all(store: &Store, deployment: &Deployment<Ristretto255>) -> Result<Vec<Known<SchemeKind>>> {
    authorities::all(store, deployment, |service| match service {
        Service::Keys(scheme) => Some(scheme),
        Service::Certificates(_) | Service::Ended(_) => None,
    })
}

/// The authority that was named, or else the only one that there is, or that grants what was given.
fn choose(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    named: Option<&str>,
    granting: Option<Granting>,
) -> Result<Known<SchemeKind>> {
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
) -> Result<(Known<SchemeKind>, Granted)> {
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
