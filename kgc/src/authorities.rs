//! The sealed file `authorities.state`: what the attribute authorities keep to themselves, each its scheme's
//! master key and the secret of its delivery point.
//!
//! Encrypted as `master.state` is, under the same passphrase or key file. A file of its own, because a
//! running KGC holds `master.state` for itself, and keys can be made beside it (`kgc abe keygen`). An
//! authority that was never recorded in the registry is left over from an interrupted set-up and counts for
//! nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use quiver_ainq::{
    AuthorityStatement, Deployment, MAX_AUTHORITY_LEN, Ristretto255, SecretScalar, SignedAuthority, Suite,
    VerifiedAuthority,
};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_delivery::attributes::IssuingAuthority;
use quiver_service::deployment_file::owner;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Records, StateFile};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::features::{self, AuthorityService};
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

    /// The authority, at work if it makes keys.
    ///
    /// # Errors
    /// [`Error::Scheme`] if this program does not have the scheme, or the keys do not hold.
    pub(crate) fn open(self) -> Result<OpenedAuthority> {
        let kind = &self.statement.kind;
        let Some(feature) = features::of_kind(kind.as_str()) else {
            let name = &self.statement.name;
            return Ok(OpenedAuthority::Ended(format!(
                "attribute authority {name}: this program was built without what makes keys of its kind, `{kind}`"
            )));
        };
        Ok(match feature.open(&self.statement, &self.master)? {
            AuthorityService::Keys(maker) => {
                let Self { statement, delivery, .. } = self;
                OpenedAuthority::Serving(Box::new(IssuingAuthority { statement, delivery, maker }))
            }
            AuthorityService::Ended(why) => OpenedAuthority::Ended(why),
        })
    }

    /// The same, for a caller that needs its keys.
    ///
    /// # Errors
    /// The errors of [`SealedAuthority::open`], and [`Error::Scheme`] if it makes no keys.
    pub(crate) fn serving(self) -> Result<IssuingAuthority<Ristretto255>> {
        match self.open()? {
            OpenedAuthority::Serving(authority) => Ok(*authority),
            OpenedAuthority::Ended(why) => Err(Error::Scheme(why)),
        }
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

/// An authority whose secrets were read.
#[derive(Debug)]
pub(crate) enum OpenedAuthority {
    /// Authority that makes keys.
    Serving(Box<IssuingAuthority<Ristretto255>>),
    /// Authority that makes none, and the reason. The registry keeps it for ever.
    Ended(String),
}

/// All authorities of a kind, by name; `read` gives the service, or `None` for one that is passed over.
pub(crate) fn all<T>(
    store: &Store,
    deployment: &Deployment<Ristretto255>,
    kind: &str,
    read: impl Fn(&AuthorityStatement<Ristretto255>) -> Result<Option<T>>,
) -> Result<Vec<RegisteredAuthority<T>>> {
    let mut all = Vec::new();
    for row in store.attributes().authorities()? {
        let statement = SignedAuthority::decode(&row.statement)?.verify(deployment)?;
        if statement.kind.as_str() != kind {
            continue;
        }
        if let Some(service) = read(&statement)? {
            all.push(RegisteredAuthority { row, statement, service });
        }
    }
    Ok(all)
}

/// An authority of the registry.
pub(crate) struct RegisteredAuthority<T> {
    pub(crate) row: AuthorityRow,
    pub(crate) statement: VerifiedAuthority<Ristretto255>,
    pub(crate) service: T,
}

/// Choice among the authorities of a kind.
#[derive(Clone, Debug, Args)]
pub(crate) struct AuthorityChoice {
    /// The authority; may be left out if there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) authority: Option<String>,
}

/// The one that was named, or else the only one.
pub(crate) fn pick<T>(
    mut all: Vec<RegisteredAuthority<T>>,
    named: Option<&str>,
) -> Result<RegisteredAuthority<T>> {
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
    use quiver_ainq::{MasterSecret, Name};
    use rand::rngs::OsRng;

    use super::*;

    #[test]
    fn authority_of_a_feature_that_is_absent_is_named_and_ends_nothing_else() {
        let name = |text| Name::new(text).expect("name");
        let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
        let deployment = Deployment::new(name("alps"), master.public());
        let delivery = SecretScalar::generate(&mut OsRng);
        let statement = AuthorityStatement {
            kind: name("tides"),
            name: name("orders"),
            scheme: name("toy"),
            delivery: delivery.public(),
            schema: Vec::new(),
            parameters: Vec::new(),
        };
        let signed = master.sign_authority(&deployment, statement, &mut OsRng).expect("sign");
        let statement = signed.verify(&deployment).expect("verify");
        let sealed = || SealedAuthority {
            statement: statement.clone(),
            delivery: SecretScalar::generate(&mut OsRng),
            master: Zeroizing::new(vec![1; 32]),
        };
        let Ok(OpenedAuthority::Ended(why)) = sealed().open() else { panic!("it is not served") };
        for part in ["attribute authority orders", "built without", "`tides`"] {
            assert!(why.contains(part), "`{part}` is not in: {why}");
        }
        let refused = sealed().serving().expect_err("it makes no keys").to_string();
        assert!(refused.contains("built without"), "{refused}");
    }
}
