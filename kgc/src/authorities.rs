//! The sealed file `authorities.state`: what the attribute authorities keep to themselves, each its scheme's
//! master key and the secret of its delivery point.
//!
//! Encrypted as `master.state` is, under the same passphrase or key file. A file of its own, because a
//! running KGC holds `master.state` for itself, and keys can be made beside it (`kgc abe keygen`). What was
//! never recorded in the registry is left over from an interrupted set-up and counts for nothing.

use std::path::{Path, PathBuf};

use quiver_admission::certifying::{self, Certifier, Terms};
use quiver_ainq::{
    AuthorityStatement, Deployment, MAX_AUTHORITY_LEN, Ristretto255, SecretScalar, SignedAuthority, Suite,
    VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_delivery::attributes::schemes::{SchemeKind, UnknownScheme};
use quiver_delivery::attributes::{Authority, KeyMaker};
use quiver_service::deployment_file::owner;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Records, StateFile};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::in_use::when_free;
use crate::store::{AuthorityRow, Store};

const ROLE: &str = "kgc-attributes";
/// Looks for the file, which another process has for an instant.
const PATIENCE: u32 = 50;

/// An authority's secrets.
pub(crate) struct SealedAuthority {
    /// The KGC's statement about it.
    pub(crate) statement: VerifiedAuthority<Ristretto255>,
    /// The secret of its delivery point.
    pub(crate) delivery: SecretScalar<Ristretto255>,
    /// Master key of the authority's scheme, encoded.
    pub(crate) master: Zeroizing<Vec<u8>>,
}

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("authorities.state")
}

impl SealedAuthority {
    /// lp(statement) ‖ lp(a) ‖ master key.
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        let (statement, delivery) = (self.statement.bytes(), self.delivery.to_bytes());
        let length = 8 + statement.len() + delivery.len() + self.master.len();
        let mut writer = Writer::with_capacity(length);
        writer.lp(&statement).lp(&delivery).fixed(&self.master);
        Zeroizing::new(writer.finish())
    }

    fn decode(
        bytes: &[u8],
        deployment: &Deployment<Ristretto255>,
    ) -> std::result::Result<Self, quiver_ainq::Error> {
        let mut reader = Reader::new(bytes);
        let statement = SignedAuthority::decode(reader.lp(MAX_AUTHORITY_LEN)?)?.verify(deployment)?;
        let delivery = SecretScalar::decode(reader.lp(Ristretto255::SCALAR_LEN)?)?;
        let master = Zeroizing::new(reader.take(reader.remaining())?.to_vec());
        Ok(Self { statement, delivery, master })
    }

    /// The authority at work.
    ///
    /// # Errors
    /// [`Error::Scheme`] if this program does not have the scheme, or the keys do not hold.
    pub(crate) fn open(self) -> Result<Authority<Ristretto255>> {
        let maker: Box<dyn KeyMaker> = match service_of(&self.statement)? {
            Service::Keys(scheme) => {
                scheme.maker(&self.statement.parameters, &self.master).map_err(Error::scheme)?
            }
            Service::Ended(why) => return Err(Error::Scheme(why)),
            Service::Certificates(terms) => {
                let seed = <[u8; 32]>::try_from(self.master.as_slice());
                let seed = seed.map_err(|_| Error::Scheme("a seed has 32 bytes".into()))?;
                Box::new(Certifier::new(terms, Secret::new(seed)))
            }
        };
        Ok(Authority { statement: self.statement, delivery: self.delivery, maker })
    }

    /// Adds it to the file, which is created if need be.
    pub(crate) fn store(
        &self,
        data_dir: &Path,
        deployment: &Deployment<Ristretto255>,
        by: &Protection,
    ) -> Result<()> {
        let path = path_in(data_dir);
        let record = self.encode();
        if !path.exists() {
            StateFile::create(&path, &owner(deployment, ROLE), by, &[record])?;
            return Ok(());
        }
        let (mut file, _) = open(&path, deployment, by)?;
        Ok(file.append(&[record])?)
    }
}

/// Service of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Hands out attribute keys of this scheme.
    Keys(SchemeKind),
    /// Certifies fields.
    Certificates(Terms),
    /// No service any more, and the reason: no build has the authority's scheme. The registry keeps it for
    /// ever.
    Ended(String),
}

/// The service of an authority.
///
/// # Errors
/// [`Error::Scheme`] if this program does not have it.
pub(crate) fn service_of(statement: &AuthorityStatement<Ristretto255>) -> Result<Service> {
    if statement.kind.as_str() == certifying::KIND {
        return Ok(Service::Certificates(Terms::of(statement).map_err(Error::scheme)?));
    }
    let named = |error| format!("attribute authority {}: {error}", statement.name);
    match SchemeKind::from_id(statement.scheme.as_str()) {
        Ok(scheme) => Ok(Service::Keys(scheme)),
        Err(error @ UnknownScheme::Broken(_)) => Ok(Service::Ended(named(error))),
        Err(error) => Err(Error::Scheme(named(error))),
    }
}

/// All authorities whose service is wanted, by name.
pub(crate) fn all<T>(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    wanted: impl Fn(Service) -> Option<T>,
) -> Result<Vec<Known<T>>> {
    let mut all = Vec::new();
    for row in store.authorities()? {
        let statement = SignedAuthority::decode(&row.statement)?.verify(deployment)?;
        let service = service_of(&statement)?;
        if let Service::Ended(why) = &service {
            tracing::warn!("{why}");
        }
        if let Some(service) = wanted(service) {
            all.push(Known { row, statement, service });
        }
    }
    Ok(all)
}

/// An authority of the registry.
pub(crate) struct Known<T> {
    pub(crate) row: AuthorityRow,
    pub(crate) statement: VerifiedAuthority<Ristretto255>,
    pub(crate) service: T,
}

/// The one that was named, or else the only one.
pub(crate) fn pick<T>(mut all: Vec<Known<T>>, named: Option<&str>) -> Result<Known<T>> {
    let names = all.iter().map(|known| known.row.name.clone()).collect::<Vec<_>>().join(", ");
    all.retain(|known| named.is_none_or(|name| known.row.name == name));
    match (all.pop(), named) {
        (Some(known), _) if all.is_empty() => Ok(known),
        (None, Some(name)) => Err(Error::Terms(format!("no attribute authority `{name}`; there is {names}"))),
        _ => Err(Error::Terms(format!("which authority? give --authority: {names}"))),
    }
}

fn open(path: &Path, deployment: &Deployment<Ristretto255>, by: &Protection) -> Result<(StateFile, Records)> {
    let open = || Ok(StateFile::open(path, &owner(deployment, ROLE), by)?);
    when_free(PATIENCE, open, || Ok(true))
}

/// The secrets of the authorities that the registry knows.
///
/// # Errors
/// [`Error::KeysMissing`] if some are not there.
pub(crate) fn read(
    data_dir: &Path,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
    known: &[AuthorityRow],
) -> Result<Vec<SealedAuthority>> {
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let path = path_in(data_dir);
    let (_, records) = open(&path, deployment, by)?;
    let stored = records.iter().map(|record| SealedAuthority::decode(record, deployment));
    let mut stored = stored.collect::<std::result::Result<Vec<_>, _>>()?;
    let missing = |row: &AuthorityRow| Error::KeysMissing { path: path.clone(), authority: row.name.clone() };
    let take = |row: &AuthorityRow| {
        let place = stored.iter().position(|sealed| *sealed.statement.fingerprint() == row.fingerprint);
        place.map(|place| stored.swap_remove(place)).ok_or_else(|| missing(row))
    };
    known.iter().map(take).collect()
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{MasterSecret, Name, Ristretto255};
    use rand::rngs::OsRng;

    use super::*;

    fn of_scheme(scheme: &str) -> Result<Service> {
        let name = |text| Name::new(text).expect("name");
        let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
        service_of(&AuthorityStatement {
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
        let Ok(Service::Ended(why)) = of_scheme("insecure-yct14") else { panic!("it has ended") };
        for part in ["attribute authority orders", "insecure-yct14 is broken", "kgc abe setup"] {
            assert!(why.contains(part), "`{part}` is not in: {why}");
        }
        assert_eq!(of_scheme("gpsw06").expect("known"), Service::Keys(SchemeKind::Gpsw06));
        let unknown = of_scheme("toy").expect_err("unknown").to_string();
        assert!(unknown.contains("orders") && unknown.contains("does not know the scheme toy"), "{unknown}");
    }
}
