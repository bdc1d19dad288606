//! `kgc abke setup`: a new authority that certifies fields.

use std::path::Path;

use quiver_admission::certifying::{CertificationTerms, KIND, SCHEME};
use quiver_ainq::{Deployment, Ristretto255};
use quiver_garble::policy::{MAX_TEXT, Schema};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, private_file, terminal};
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::arguments::AbkeSetupArgs;
use crate::authority_setup::{AuthoritySetup, refuse_taken, write_public};
use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;
use crate::signing::RegistrySigner;

/// Draws the seed of all slot keys, has the KGC sign what is public, stores everything.
pub(crate) fn run(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<Ristretto255>,
    writer: &mut RegistryWriter,
    args: &AbkeSetupArgs,
) -> Result<()> {
    let name = &args.name;
    let public = config.data_dir.join(format!("{name}.authority"));
    refuse_taken(writer, name, &public)?;
    let schema = read_schema(&args.schema)?;
    let terms =
        CertificationTerms::new(schema, args.period).map_err(|error| Error::Terms(error.to_string()))?;
    let by = writer.protection(protection)?;
    let mut seed = Zeroizing::new(vec![0; 32]);
    OsRng.fill_bytes(&mut seed);
    let setup = AuthoritySetup {
        kind: KIND,
        name: name.clone(),
        scheme: SCHEME,
        schema: terms.schema_text(),
        parameters: terms.parameters(),
        master: seed,
    };
    let signing = RegistrySigner { config, deployment, by: &by, wait: args.approval.wait };
    let statement = setup.carry_out(&signing, writer)?;
    write_public(&public, &statement)?;
    terminal::line(&format!(
        "authority {name} set up: certifies {} ({} bits), for {} at a time\nfingerprint {}\n{}  public; drones and leaders also fetch it\n{}",
        terms.schema().to_text(),
        terms.schema().bits(),
        clock::span(terms.period().as_secs()),
        hex::encode(statement.fingerprint()),
        public.display(),
        effect(config)
    ))?;
    Ok(())
}

/// Fields as text, or in a file.
fn read_schema(given: &str) -> Result<Schema> {
    // A name of a file has no colon before a kind, and text without one is no schema.
    let path = Path::new(given);
    if path.is_file() {
        let content = private_file::read_public(path, MAX_TEXT as u64, "a list of fields")?;
        let wrong = |reason| Error::Fields { what: given.into(), reason };
        let text = content.text().ok_or_else(|| wrong("it is no text".into()))?;
        return Schema::parse(text).map_err(|error| wrong(content.explain(error)));
    }
    let what = "--schema (no file of that name is here)".into();
    Schema::parse(given).map_err(|error| Error::Fields { what, reason: error.to_string() })
}
