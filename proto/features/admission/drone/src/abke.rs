//! The subcommands `abke fetch` and `abke status`, and until when what is certified about a drone lasts.

use async_trait::async_trait;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_admission::certifying::{Certificate, CertificationTerms, CertifyError, KIND};
use quiver_ainq::{Ristretto255, UnixTime};
use quiver_service::arguments::KgcArgs;
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{
    CommandFeature, FeatureAnswer, FeatureCaller, FeatureCommand, FeatureRequest,
};
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::running::DroneIdentity;
use quiver_service::keyring::{Keyring, KeyringEntry};
use quiver_service::{clock, terminal};
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AnonymousEdgeFeature;

/// Name of the subcommand.
const ABKE: &str = "abke";

/// Subcommands about certified fields.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum AbkeCommand {
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

/// A request of the subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AbkeCall {
    /// List the certified fields.
    Certified,
}

#[async_trait]
impl CommandFeature for AnonymousEdgeFeature {
    fn name(&self) -> &'static str {
        ABKE
    }

    fn subcommand(&self) -> Command {
        // The documentation of the enum is for readers of the code.
        AbkeCommand::augment_subcommands(Command::new(ABKE))
            .subcommand_required(true)
            .arg_required_else_help(true)
            .about("Certified fields: what this drone can show without saying who it is")
            .long_about(None::<&str>)
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(AbkeCommand::from_arg_matches(arguments)?))
    }

    async fn answer(&self, client: &KeyClient, _: DroneIdentity, call: &Value) -> Result<FeatureAnswer> {
        match FeatureRequest::read(call)? {
            AbkeCall::Certified => {
                FeatureAnswer::new(&certified(&client.keys().keyring()?, clock::unix_now()))
            }
        }
    }

    fn answers_anonymous(&self) -> bool {
        true
    }
}

#[async_trait(?Send)]
impl FeatureCommand for AbkeCommand {
    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        match self {
            Self::Fetch { kgcs, .. } => layers.flags(kgcs),
            Self::Status { .. } => Ok(layers),
        }
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> Result<()> {
        match *self {
            Self::Fetch { json, .. } => caller.fetch(json).await,
            Self::Status { json } => {
                let answer = caller.call(FeatureRequest::new(ABKE, &AbkeCall::Certified)?).await?;
                print_certified(&answer.read::<Vec<Certified>>()?, json)
            }
        }
    }
}

/// State of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CredentialState {
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
struct Certified {
    /// The authority's name.
    authority: String,
    /// Fingerprint of the authority, hex.
    fingerprint: String,
    /// The fields and their values.
    fields: Option<String>,
    /// End of its validity.
    #[serde(with = "quiver_service::clock::rfc3339")]
    valid_until: Option<UnixTime>,
    /// State of the credential.
    standing: CredentialState,
}

/// Lists the certified fields; every credential is verified against the slot keys it came with.
fn certified(keyring: &Keyring<Ristretto255>, now: UnixTime) -> Vec<Certified> {
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

/// Prints what is certified.
///
/// # Errors
/// Those of standard output.
fn print_certified(lines: &[Certified], json: bool) -> Result<()> {
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
