//! Tokens: `kgc token issue|list|revoke`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::{
    Deployment, Name, OperatorSecretKey, Ristretto255, Role, TokenGrant, TokenStatement, UnixTime,
};
use quiver_service::armour::{self, ArmourKind};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, private_file, terminal, token_directory};
use rand::rngs::OsRng;
use serde::Serialize;

use crate::cli::{IssueArgs, TokenRecording};
use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::operator;
use crate::registry::{self, RegistryWriter};
use crate::store::{Leads, Store};

/// Time without a line about it.
const SILENCE: Duration = Duration::from_secs(2);
/// Time between two of them.
const REPORT: Duration = Duration::from_secs(30);
/// Time between two looks for an awaited file.
const LOOK: Duration = Duration::from_millis(200);
/// The longest time for which a token, an identity or a policy is good, in seconds: ten years.
const LONGEST: u64 = 10 * 366 * 24 * 3600;

/// Issues tokens. Needs neither the KGC nor its passphrase where the registry is elsewhere. `protection` is that of the
/// registry's key, where that is here and no KGC runs, and of the operator's key, unless `args` have another for it.
pub(crate) fn issue(config: &Config, protection: &ProtectionArgs, args: &IssueArgs) -> Result<()> {
    let file = DeploymentFile::read(&deployment_path(config, args)?)?;
    let deployment = file.pin()?;
    let of_operator = args.operator_protection();
    let operator = operator::read_secret(&args.operator, of_operator.as_ref().unwrap_or(protection));
    let operator = operator.map_err(|error| match error {
        // The flag that opens this file alone.
        Error::Service(quiver_service::Error::WrongProtection { path, sealed_by, given, flag }) => {
            let flag =
                if flag == "--key-file" { "--operator-key-file" } else { "--operator-passphrase-file" };
            quiver_service::Error::WrongProtection { path, sealed_by, given, flag }.into()
        }
        error => error,
    })?;
    if !is_recorded(config, args.record, &deployment)? {
        return Issuer { store: None, args, deployment, operator }.issue_all();
    }
    let written = registry::write(config, protection, |store| {
        Issuer { store: Some(store), args, deployment, operator }.issue_all()
    });
    written.map_err(|error| match error {
        Error::Service(
            error @ (quiver_service::Error::WrongKey { .. } | quiver_service::Error::WrongProtection { .. }),
        ) if of_operator.is_none() => Error::OtherThanOperators(error),
        error => error,
    })
}

impl IssueArgs {
    /// Protection of the operator's key, if it has one of its own.
    fn operator_protection(&self) -> Option<ProtectionArgs> {
        let (passphrase_file, key_file) =
            (self.operator_passphrase_file.clone(), self.operator_key_file.clone());
        let is_given = passphrase_file.is_some() || key_file.is_some();
        is_given.then_some(ProtectionArgs { passphrase_file, key_file })
    }
}

impl Issuer<'_> {
    /// All tokens of a command.
    fn issue_all(&mut self) -> Result<()> {
        let args = self.args;
        match (args.count, &args.out) {
            (Some(count), Some(directory)) => self.issue_many(count, directory),
            _ => {
                let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.token", args.name)));
                self.issue(&args.name, 0, &out)
            }
        }
    }
}

/// Path of the deployment file, once it exists.
fn deployment_path(config: &Config, args: &IssueArgs) -> Result<PathBuf> {
    let given = args.deployment.clone();
    let path = given.clone().unwrap_or_else(|| config.deployment_path());
    let (mut left, mut report) = (args.wait, SILENCE);
    while !path.exists() && !left.is_zero() {
        if args.wait.saturating_sub(left) >= report {
            tracing::info!("waiting for {}, at most {} s more", path.display(), left.as_secs());
            report += REPORT;
        }
        let nap = left.min(LOOK);
        std::thread::sleep(nap);
        left = left.saturating_sub(nap);
    }
    given.map_or_else(|| config.existing_deployment(), Ok)
}

/// Issuer of tokens.
struct Issuer<'a> {
    /// The registry, if it is here and wanted.
    store: Option<&'a mut RegistryWriter>,
    args: &'a IssueArgs,
    deployment: Deployment<Ristretto255>,
    operator: OperatorSecretKey<Ristretto255>,
}

/// An issued token as it is shown.
#[derive(Debug, Serialize)]
struct IssuedLine {
    /// The file.
    file: PathBuf,
    /// Hex.
    id: String,
    /// The drone's name.
    name: String,
    /// The group that it leads.
    leads: Option<String>,
    /// Ordinal of the leader among the group's leaders.
    ordinal: Option<u16>,
    /// Groups that it may join.
    groups: Vec<String>,
    /// End of the drone's identity.
    #[serde(serialize_with = "clock::serialize")]
    not_after: UnixTime,
    /// End of the token's use.
    #[serde(serialize_with = "clock::serialize")]
    expires: UnixTime,
    /// True if the registry here knows it.
    recorded: bool,
}

impl Issuer<'_> {
    /// Tokens for `NAME-1` to `NAME-count`, but for whom there is or was one.
    fn issue_many(&mut self, count: u16, directory: &Path) -> Result<()> {
        private_file::create_directory(directory)?;
        for number in 1..=count {
            let name = Name::new(&format!("{}-{number}", self.args.name))?;
            if !token_directory::knows(directory, name.as_str())? {
                self.issue(&name, number - 1, &directory.join(format!("{name}.token")))?;
            }
        }
        Ok(())
    }

    /// `place`: how many names of the same run come before this one.
    fn issue(&mut self, name: &Name, place: u16, out: &Path) -> Result<()> {
        let now = clock::unix_now();
        let ordinal = self.ordinal(place)?;
        let Self { store, args, deployment, operator } = self;
        let sign = |role| {
            let terms = terms(args, name.clone(), role, now)?;
            if out.symlink_metadata().is_ok() {
                return Err(quiver_service::Error::Exists { path: out.into() }.into());
            }
            Ok(operator.issue(deployment, terms, &mut OsRng)?)
        };
        let leads = args.leads.as_ref().map(|group| Leads { group, ordinal });
        // Recorded first: a token that can be used is in the list, whenever this process ends.
        let issued = match store {
            Some(store) => store.change(now, |change| change.tokens().issue(name, leads, sign))?,
            None => sign(match leads {
                None => Role::Edge,
                Some(Leads { group, ordinal }) => {
                    Role::Leader { group: group.clone(), ordinal: ordinal.unwrap_or(1) }
                }
            })?,
        };
        let statement = &issued.token.statement;
        if let Err(error) = armour::write_new(out, ArmourKind::Token, &issued.encode()) {
            if let Some(store) = store {
                store.change(now, |change| change.tokens().revoke_named(&hex::encode(statement.id)))?;
            }
            return Err(error.into());
        }
        self.print(statement, out)
    }

    /// The ordinal of the token at this place of a run; `None` if the registry has to choose one.
    fn ordinal(&self, place: u16) -> Result<Option<u16>> {
        let too_high = || Error::Terms(format!("--ordinal: no ordinal is above {}", u16::MAX));
        let first = match self.args.ordinal {
            None if self.store.is_some() => return Ok(None),
            given => given.unwrap_or(1),
        };
        first.checked_add(place).map(Some).ok_or_else(too_high)
    }

    fn print(&self, statement: &TokenStatement<Ristretto255>, out: &Path) -> Result<()> {
        let (leads, ordinal) = match &statement.role {
            Role::Edge => (None, None),
            Role::Leader { group, ordinal } => (Some(group.to_string()), Some(*ordinal)),
        };
        let line = IssuedLine {
            file: out.into(),
            id: hex::encode(statement.id),
            name: statement.name.to_string(),
            leads,
            ordinal,
            groups: statement.groups.iter().map(ToString::to_string).collect(),
            not_after: statement.not_after,
            expires: statement.expiry,
            recorded: self.store.is_some(),
        };
        if self.args.json {
            return Ok(terminal::line(&serde_json::to_string(&line).map_err(std::io::Error::from)?)?);
        }
        Ok(terminal::line(&line.text(self.args.ordinal.is_none() && self.args.count.is_none()))?)
    }
}

impl IssuedLine {
    /// Describes the token for people. `chosen`: the ordinal was given neither for this one nor for several
    /// in a row.
    fn text(&self, chosen: bool) -> String {
        let role = match (&self.leads, self.ordinal) {
            (Some(group), Some(ordinal)) => format!(", leader of {group} (ordinal {ordinal})"),
            _ => String::new(),
        };
        let recorded =
            if self.recorded { "recorded here" } else { "not recorded: the registry is elsewhere" };
        let mut text = format!(
            "{}  token {} for {}{role}, usable until {} ({recorded})",
            self.file.display(),
            self.id,
            self.name,
            clock::format(self.expires)
        );
        if chosen
            && !self.recorded
            && let (Some(group), Some(ordinal)) = (&self.leads, self.ordinal)
        {
            text.push_str(&format!(
                "\nordinal {ordinal} was not checked against other leaders of {group}: give each its own --ordinal"
            ));
        }
        if self.leads.is_none() && self.groups.is_empty() {
            text.push_str(&format!(
                "\n{} may join no group with this token: issue one with --group GROUP, or with --leads GROUP for a leader",
                self.name
            ));
        }
        text
    }
}

/// Refuses an end that lies in the past, or so far ahead that nobody can mean it. `example` says what to give.
pub(crate) fn check_end(flag: &str, end: UnixTime, now: UnixTime, example: &str) -> Result<()> {
    if end <= now {
        return Err(Error::Terms(format!("{flag} lies in the past by now; give {example}")));
    }
    if end > now.saturating_add(LONGEST) {
        return Err(Error::Terms(format!("{flag} lies more than ten years ahead; give {example}")));
    }
    Ok(())
}

fn terms(args: &IssueArgs, name: Name, role: Role, now: UnixTime) -> Result<TokenGrant> {
    check_end("--expires", args.expires, now, "a time by which the drone will have enrolled, such as 7d")?;
    check_end("--not-after", args.not_after, now, "when the identity ends, such as 365d")?;
    Ok(TokenGrant { name, role, groups: args.group.clone(), not_after: args.not_after, expiry: args.expires })
}

/// Tells that there is a registry of this deployment in the data directory, and it is wanted.
fn is_recorded(
    config: &Config,
    record: TokenRecording,
    deployment: &Deployment<Ristretto255>,
) -> Result<bool> {
    if record == TokenRecording::Never || !private_file::exists(&Store::path_in(&config.data_dir))? {
        return Ok(false);
    }
    match registry::open_of(config, deployment) {
        // `registry::write` brings it up to date, or says what does.
        Ok(_) | Err(Error::EarlierRegistry { .. }) => Ok(true),
        Err(Error::ForeignRegistry { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lists tokens.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let tokens = registry::open(config)?.tokens().all(clock::unix_now())?;
    if json {
        return Ok(terminal::json(&tokens)?);
    }
    let known = |text: Option<String>| text.unwrap_or_else(|| "?".into());
    let rows: Vec<_> = tokens
        .into_iter()
        .map(|token| {
            [token.id, known(token.name), token.state.word().into(), known(token.expiry.map(clock::format))]
        })
        .collect();
    terminal::line(&terminal::table(["ID", "DRONE", "STATE", "USABLE UNTIL"], &rows))?;
    Ok(())
}

/// Revokes a token that was not used.
pub(crate) fn revoke(config: &Config, protection: &ProtectionArgs, which: &str) -> Result<()> {
    let revoke = |writer: &mut RegistryWriter| {
        writer.change(clock::unix_now(), |change| change.tokens().revoke_named(which))
    };
    let id = registry::write(config, protection, revoke)?;
    terminal::line(&format!("token {id} revoked; {}", effect(config)))?;
    Ok(())
}
