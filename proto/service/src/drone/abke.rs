//! The subcommands `abke fetch` and `abke status`, and until when what is certified about a drone lasts.

use std::time::Duration;

use crate::keyring::{Keyring, KeyringEntry};
use crate::{clock, terminal};
use clap::Subcommand;
use quiver_admission::certifying::{Certificate, CertificationTerms, CertifyError, KIND};
use quiver_ainq::{Ristretto255, UnixTime};
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};

use crate::arguments::KgcArgs;
use crate::drone::Result;

/// Subcommands about certified fields.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AbkeCommand {
    /// Fetch this period's credential (`kgc abke certify`), and whatever else is granted to this drone
    Fetch {
        /// The KGCs.
        #[command(flatten)]
        kgcs: KgcArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show which fields of this drone are certified, by whom and until when
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// State of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialState {
    /// The credential is of the present period.
    Valid,
    /// The credential is of a period that is over.
    Expired,
    /// The credential is of a period that has not begun: a clock is wrong.
    NotYet,
    /// Slot keys alone: to verify others by.
    SlotKeysOnly,
    /// No credential was issued.
    Nothing,
    /// The stored certificate does not verify.
    Broken(String),
}

impl CredentialState {
    fn describe(&self) -> String {
        match self {
            Self::Valid => "valid".into(),
            Self::Expired => "expired; fetch again".into(),
            Self::NotYet => "not valid yet; is the clock right?".into(),
            Self::SlotKeysOnly => "slot keys only".into(),
            Self::Nothing => "none".into(),
            Self::Broken(why) => format!("invalid: {why}"),
        }
    }
}

/// Fields of this drone that one authority certified, as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certified {
    /// The authority's name.
    pub authority: String,
    /// Fingerprint of the authority, hex.
    pub fingerprint: String,
    /// The fields and their values.
    pub fields: Option<String>,
    /// End of its validity.
    #[serde(with = "crate::clock::rfc3339")]
    pub valid_until: Option<UnixTime>,
    /// State of the credential.
    pub standing: CredentialState,
}

/// Lists the certified fields; every credential is verified against the slot keys it came with.
pub fn certified(keyring: &Keyring<Ristretto255>, now: UnixTime) -> Vec<Certified> {
    keyring.entries_of(KIND).map(|entry| certified_by(entry, now)).collect()
}

fn certified_by(entry: &KeyringEntry<Ristretto255>, now: UnixTime) -> Certified {
    let (fields, valid_until, standing) =
        inspect(entry, now).unwrap_or_else(|error| (None, None, CredentialState::Broken(error.to_string())));
    Certified {
        authority: entry.authority.name.to_string(),
        fingerprint: hex::encode(entry.authority.fingerprint()),
        fields,
        valid_until,
        standing,
    }
}

type Inspected = (Option<String>, Option<UnixTime>, CredentialState);

fn inspect(
    entry: &KeyringEntry<Ristretto255>,
    now: UnixTime,
) -> std::result::Result<Inspected, CertifyError> {
    let terms = CertificationTerms::of(&entry.authority)?;
    let Some(held) = &entry.key else { return Ok((None, None, CredentialState::Nothing)) };
    let certificate = Certificate::decode(&held.key, &terms, &mut OsRng)?;
    let period = certificate.key().period();
    let until = terms.end_of(period);
    let Some(credential) = certificate.credential() else {
        return Ok((None, Some(until), CredentialState::SlotKeysOnly));
    };
    let standing = match terms.period_at(now).cmp(&period) {
        std::cmp::Ordering::Equal => CredentialState::Valid,
        std::cmp::Ordering::Greater => CredentialState::Expired,
        std::cmp::Ordering::Less => CredentialState::NotYet,
    };
    Ok((Some(terms.describe(credential.attributes())), Some(until), standing))
}

/// End of the first period of anything held; `None` if nothing held ends.
pub(crate) fn first_end(keyring: &Keyring<Ristretto255>) -> Option<UnixTime> {
    let end = |entry: &KeyringEntry<Ristretto255>| {
        let terms = CertificationTerms::of(&entry.authority).ok()?;
        Some(terms.end_of(Certificate::period_of(&entry.key.as_ref()?.key).ok()?))
    };
    keyring.entries_of(KIND).filter_map(end).min()
}

/// Time to wait until a period that ends at `end` has ended for the KGC too; longer by `share` of a tenth, so
/// that not all drones ask at once.
pub(crate) fn until_next(end: UnixTime, now: UnixTime, share: f64) -> Duration {
    /// Clocks differ.
    const MARGIN: u64 = 2;
    /// However long the period is.
    const SPREAD_AT_MOST: f64 = 60.0;
    let left = end.saturating_sub(now).saturating_add(MARGIN);
    let spread = (Duration::from_secs(left).as_secs_f64() / 10.0).min(SPREAD_AT_MOST);
    Duration::from_secs(left) + Duration::from_secs_f64(spread * share.clamp(0.0, 1.0))
}

/// Prints what is certified.
///
/// # Errors
/// Those of standard output.
pub fn print_certified(lines: &[Certified], json: bool) -> Result<()> {
    if json {
        return Ok(terminal::json(lines)?);
    }
    if lines.is_empty() {
        return Ok(terminal::line("no authority that certifies fields is known (abke fetch)")?);
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let until = line.valid_until.map_or_else(|| "-".into(), clock::format);
            let fields = line.fields.clone().unwrap_or_else(|| "-".into());
            [line.authority.clone(), line.standing.describe(), until, fields]
        })
        .collect();
    Ok(terminal::line(&terminal::table(["AUTHORITY", "CREDENTIAL", "UNTIL", "FIELDS"], &rows))?)
}

#[cfg(test)]
mod tests;
