//! `kgc abe setup`: a new attribute authority.

use std::path::Path;

use quiver_ainq::{Deployment, Name, Ristretto255};
use quiver_attribute_schemes::SchemeKind;
use quiver_delivery::attributes::KIND;
use quiver_policy::Schema;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{private_file, terminal};
use rand::rngs::OsRng;

use super::arguments::SetupArgs;
use crate::authority_setup::{AuthoritySetup, refuse_taken, write_public};
use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;
use crate::signing::RegistrySigner;

/// Bytes a schema's file may have.
const SCHEMA_FILE_LIMIT: u64 = 1 << 20;

/// Draws the keys, has the KGC sign what is public, stores everything.
pub(crate) fn run(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<Ristretto255>,
    writer: &mut RegistryWriter,
    args: &SetupArgs,
) -> Result<()> {
    let scheme = args.scheme;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => Name::new(scheme.id())?,
    };
    let public = config.data_dir.join(format!("{name}.authority"));
    refuse_taken(writer, &name, &public)?;
    let schema = read_schema(args.schema.as_deref(), scheme)?;
    let by = writer.protection(protection)?;
    let founded = scheme.found(&schema, &mut OsRng).map_err(Error::scheme)?;
    let setup = AuthoritySetup {
        kind: KIND,
        name: name.clone(),
        scheme: scheme.id(),
        schema: schema.encode(),
        parameters: founded.parameters,
        master: founded.master,
    };
    let signing = RegistrySigner { config, deployment, by: &by, wait: args.approval.wait };
    let statement = setup.carry_out(&signing, writer)?;
    // If this fails, `kgc abe publish` does it.
    write_public(&public, &statement)?;
    terminal::line(&format!(
        "attribute authority {name} ({}) set up\nfingerprint {}\n{}  public: seal with it anywhere; drones also fetch it\n{}",
        scheme.id(),
        hex::encode(statement.fingerprint()),
        public.display(),
        effect(config)
    ))?;
    Ok(())
}

fn read_schema(path: Option<&Path>, scheme: SchemeKind) -> Result<Schema> {
    let Some(path) = path else {
        if scheme.needs_closed_list() {
            return Err(Error::Terms(format!(
                "{} needs a closed list of attributes: give --schema FILE with `plain = [...]`",
                scheme.id()
            )));
        }
        return Ok(Schema::new());
    };
    let content = private_file::read_public(path, SCHEMA_FILE_LIMIT, "a list of attributes")?;
    let wrong = |what: String| Error::Terms(format!("{}: {what}", path.display()));
    let text = content.text().ok_or_else(|| wrong("it is no text".into()))?;
    let schema: Schema = toml::from_str(text).map_err(|error| wrong(content.explain_toml(&error)))?;
    if scheme.needs_closed_list() && schema.plain().is_none() {
        let (path, id) = (path.display(), scheme.id());
        return Err(Error::Terms(format!("{path}: {id} needs a closed list of attributes: `plain = [...]`")));
    }
    Ok(schema)
}
