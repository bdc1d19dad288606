//! `kgc abke`: authorities that certify fields, what they certify, policies of admission over it.

mod arguments;
mod list;
mod policy;
mod setup;

use quiver_admission::PolicyStatement;
use quiver_admission::certifying::{CertificationTerms, Certifier, KIND};
use quiver_ainq::{AuthorityStatement, Deployment, Purpose, Ristretto255};
use quiver_crypto::Secret;
use quiver_service::secrets::ProtectionArgs;

use self::arguments::{AbkeCommand, CertifyArgs, EXAMPLES};
use crate::authorities::{self, RegisteredAuthority, pick};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::features::{AuthorityService, FeatureCommand, KgcFeature};
use crate::store::Store;
use crate::{grants, registry};

/// Note about a stolen credential: nothing erases one, because its period ends soon.
const HELD: &str = "its credential stays valid until the period ends (`kgc abke list`); the drone erases it at its next fetch";

/// Anonymous admission, as a feature of the KGC.
pub(crate) struct AdmissionFeature;

impl KgcFeature for AdmissionFeature {
    type Command = AbkeCommand;

    const KIND: &'static str = KIND;
    const ABOUT: &'static str = "Admission by certified fields: authorities, what they certify, policies";
    const EXAMPLES: Option<&'static str> = Some(EXAMPLES);

    fn open(&self, statement: &AuthorityStatement<Ristretto255>, master: &[u8]) -> Result<AuthorityService> {
        let terms = CertificationTerms::of(statement).map_err(Error::scheme)?;
        let seed = <[u8; 32]>::try_from(master).map_err(|_| Error::Scheme("a seed has 32 bytes".into()))?;
        Ok(AuthorityService::Keys(Box::new(Certifier::new(terms, Secret::new(seed)))))
    }

    fn purpose(&self, body: &[u8]) -> Option<Purpose> {
        PolicyStatement::decode(body).is_ok().then_some(Purpose::AbkePolicy)
    }
}

impl FeatureCommand for AbkeCommand {
    fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()> {
        let deployment = &config.deployment()?;
        if let Self::List { json } = self {
            return list::run(deployment, &registry::open_of(config, deployment)?, *json);
        }
        registry::write(config, protection, |writer| match self {
            Self::Setup(args) => setup::run(config, protection, deployment, writer, args),
            Self::Certify(args) => certify(config, deployment, writer, args),
            Self::Revoke { drone, choice } => {
                let known = choose(writer, deployment, choice.authority.as_deref())?;
                grants::withdraw(config, writer, &known.row, drone, HELD)
            }
            Self::Policy(args) => policy::run(config, protection, deployment, writer, args),
            Self::List { .. } => Ok(()),
        })
    }
}

/// Certifies a drone's fields.
fn certify(
    config: &Config,
    deployment: &Deployment<Ristretto255>,
    store: &mut Store,
    args: &CertifyArgs,
) -> Result<()> {
    let known = choose(store, deployment, args.choice.authority.as_deref())?;
    let values: Vec<_> = args.values.iter().map(|value| (value.field.as_str(), value.value)).collect();
    let granted = known.service.grant(&values).map_err(|error| Error::Fields {
        what: format!("this cannot be certified by {}, which certifies {}", known.row.name, schema(&known)),
        reason: error.fault.to_string(),
    })?;
    grants::make(config, store, &known.row, &args.drone, &granted, "edge abke fetch")
}

fn schema(known: &RegisteredAuthority<CertificationTerms>) -> String {
    known.service.schema().to_text()
}

/// All certification authorities, by name.
fn all(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
) -> Result<Vec<RegisteredAuthority<CertificationTerms>>> {
    authorities::all(store, deployment, KIND, |statement| {
        CertificationTerms::of(statement).map(Some).map_err(Error::scheme)
    })
}

/// The authority that was named, or else the only one that there is.
fn choose(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    named: Option<&str>,
) -> Result<RegisteredAuthority<CertificationTerms>> {
    let all = all(store, deployment)?;
    if all.is_empty() {
        return Err(Error::Terms(
            "no authority certifies fields here yet; run `kgc abke setup` first".into(),
        ));
    }
    pick(all, named)
}
