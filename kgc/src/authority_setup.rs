//! Sets up a new authority beside the KGC: its delivery point, the KGC's statement about it, its secrets, its
//! place in the registry.

use std::path::Path;

use quiver_ainq::{
    AuthorityStatement, Name, Purpose, Ristretto255, SecretScalar, SignedAuthority, VerifiedAuthority,
};
use quiver_service::{clock, keyring};
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::authorities::SealedAuthority;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;
use crate::signing::RegistrySigner;
use crate::store::Store;

/// Authorities a deployment may have: as many as a challenge names.
const MAX_AUTHORITIES: usize = 16;

/// Setup of an authority.
pub(crate) struct AuthoritySetup {
    /// Kind of the authority.
    pub(crate) kind: &'static str,
    /// Name of the authority.
    pub(crate) name: Name,
    /// ID of the authority's scheme.
    pub(crate) scheme: &'static str,
    /// Schema, as the statement has it.
    pub(crate) schema: Vec<u8>,
    /// Parameters, as the statement has them.
    pub(crate) parameters: Vec<u8>,
    /// Master key of the authority's scheme.
    pub(crate) master: Zeroizing<Vec<u8>>,
}

impl AuthoritySetup {
    /// Has the KGC sign what is public, and stores everything.
    pub(crate) fn carry_out(
        self,
        signing: &RegistrySigner<'_>,
        writer: &mut RegistryWriter,
    ) -> Result<VerifiedAuthority<Ristretto255>> {
        let RegistrySigner { config, deployment, by, .. } = *signing;
        let delivery = SecretScalar::generate(&mut OsRng);
        let statement = AuthorityStatement {
            kind: Name::new(self.kind)?,
            name: self.name,
            scheme: Name::new(self.scheme)?,
            delivery: delivery.public(),
            schema: self.schema,
            parameters: self.parameters,
        };
        let signature = signing.sign(writer, Purpose::Parameters, &statement.body())?;
        let statement = SignedAuthority::new(statement, signature)?.verify(deployment)?;
        let authority = SealedAuthority { statement, delivery, master: self.master };
        // The secrets first: an authority in the registry can always make keys.
        authority.store(&config.data_dir, deployment, by)?;
        writer
            .change(clock::unix_now(), |change| change.attributes().record_authority(&authority.statement))?;
        Ok(authority.statement)
    }
}

/// Writes an authority's public file.
pub(crate) fn write_public(path: &Path, statement: &VerifiedAuthority<Ristretto255>) -> Result<()> {
    Ok(keyring::write_authority(path, statement)?)
}

/// Refuses names that are taken, one authority too many, and a public file that is there already.
pub(crate) fn refuse_taken(store: &Store, name: &Name, public: &Path) -> Result<()> {
    let known = store.attributes().authorities()?;
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
