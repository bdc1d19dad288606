//! `kgc abe setup`: a new attribute authority.

use std::path::Path;
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Deployment, Name, SecretScalar, SignedAuthority, StatementSignature, Suite,
};
use quiver_policy::Schema;
use quiver_role::attributes::KIND;
use quiver_role::attributes::schemes::SchemeChoice;
use quiver_service::secrets::{Protection, ProtectionArgs};
use quiver_service::state_file::StateFile;
use quiver_service::{clock, private_file, terminal};
use rand::rngs::OsRng;

use super::write_public;
use crate::authorities::SealedAuthority;
use crate::cli::SetupArgs;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::quorum;
use crate::sealed::Sealed;
use crate::store::Store;

/// Bytes a schema's file may have.
const SCHEMA_FILE_LIMIT: u64 = 1 << 20;
/// Authorities a deployment may have: as many as a challenge names.
const MAX_AUTHORITIES: usize = 16;

/// Draws the keys, has the KGC sign what is public, stores everything.
pub(crate) fn run<S: Suite>(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<S>,
    mut store: Store,
    args: &SetupArgs,
) -> Result<()> {
    let scheme = args.scheme.choice();
    let name = match &args.name {
        Some(name) => name.clone(),
        None => Name::new(scheme.id())?,
    };
    let public = config.data_dir.join(format!("{name}.authority"));
    refuse_taken(&store, &name, &public)?;
    let schema = read_schema(args.schema.as_deref(), scheme)?;
    let by = protection.obtain(false)?;
    let founded = scheme.found(&schema, &mut OsRng).map_err(Error::scheme)?;
    let delivery = SecretScalar::generate(&mut OsRng);
    let statement = AuthorityStatement {
        kind: Name::new(KIND)?,
        name: name.clone(),
        scheme: Name::new(scheme.id())?,
        delivery: delivery.public(),
        schema: schema.encode(),
        parameters: founded.parameters,
    };
    let (signed, _lock) = sign(config, deployment, statement, &by, args.wait)?;
    let statement = signed.verify(deployment)?;
    let authority = SealedAuthority { statement, delivery, master: founded.master };
    // The secrets first: an authority in the registry can always make keys.
    authority.store(&config.data_dir, deployment, &by)?;
    store.record_authority(&authority.statement, clock::unix_now())?;
    // If this fails, `kgc abe publish` does it.
    write_public(&public, &authority.statement)?;
    terminal::line(&format!(
        "attribute authority {name} ({}) set up\nfingerprint {}\n{}  public: seal with it anywhere; drones also fetch it",
        scheme.id(),
        hex::encode(authority.statement.fingerprint()),
        public.display()
    ))?;
    Ok(())
}

/// Signed by the KGC: alone, or by the quorum that it is one of.
///
/// The lock on a single KGC's master secret is to be held until the end: a running `kgc serve` would not notice the new
/// authority. That of a quorum has to run, and is started again afterwards.
fn sign<S: Suite>(
    config: &Config,
    deployment: &Deployment<S>,
    statement: AuthorityStatement<S>,
    by: &Protection,
    wait: Duration,
) -> Result<(SignedAuthority<S>, Option<StateFile>)> {
    if quorum::file::path_in(&config.data_dir).exists() {
        let signature = quorum::commands::sign(config, &statement.body(), wait)?;
        let signature = StatementSignature::decode(&signature)?;
        return Ok((SignedAuthority::new(statement, signature)?, None));
    }
    let (sealed, lock) = Sealed::open(&config.data_dir, deployment, by)?;
    Ok((sealed.master.sign_authority(deployment, statement, &mut OsRng)?, Some(lock)))
}

fn refuse_taken(store: &Store, name: &Name, public: &Path) -> Result<()> {
    let known = store.authorities()?;
    if known.iter().any(|row| row.name == name.as_str()) {
        let by = "an attribute authority; an authority is set up once, give another --name".into();
        return Err(Error::NameTaken { name: name.to_string(), by });
    }
    if known.len() >= MAX_AUTHORITIES {
        return Err(Error::Terms(format!(
            "a deployment has at most {MAX_AUTHORITIES} attribute authorities"
        )));
    }
    if public.exists() {
        return Err(quiver_service::Error::Exists { path: public.into() }.into());
    }
    Ok(())
}

fn read_schema(path: Option<&Path>, scheme: SchemeChoice) -> Result<Schema> {
    let Some(path) = path else {
        if scheme.needs_closed_list() {
            return Err(Error::Terms(format!(
                "{} needs a closed list of attributes: give --schema FILE with `plain = [...]`",
                scheme.id()
            )));
        }
        return Ok(Schema::new());
    };
    let bytes = private_file::read_public(path, SCHEMA_FILE_LIMIT)?;
    let text = String::from_utf8_lossy(&bytes);
    let schema: Schema =
        toml::from_str(&text).map_err(|error| Error::Terms(format!("{}: {error}", path.display())))?;
    if scheme.needs_closed_list() && schema.plain().is_none() {
        let (path, id) = (path.display(), scheme.id());
        return Err(Error::Terms(format!("{path}: {id} needs a closed list of attributes: `plain = [...]`")));
    }
    Ok(schema)
}
