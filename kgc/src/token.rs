//! Tokens: `kgc token issue|list|revoke`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_ainq::{Deployment, Name, OperatorSecretKey, Role, Suite, SuiteKind, TokenGrant};
use quiver_service::armour::{self, Kind};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::{clock, private_file, terminal, token_directory, with_suite};
use rand::rngs::OsRng;

use crate::cli::{IssueArgs, Record};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::operator;
use crate::registry;
use crate::store::Store;

/// Time between two looks for an awaited file.
const LOOK: Duration = Duration::from_millis(200);

/// Issues tokens. Needs neither the KGC nor its passphrase.
pub(crate) fn issue(config: &Config, args: &IssueArgs) -> Result<()> {
    let file = DeploymentFile::read(&deployment_path(config, args)?)?;
    let suite = file.suite()?;
    with_suite!(suite, S => {
        let deployment = file.pin::<S>()?;
        let operator = operator::read_secret::<S>(&args.operator, suite)?;
        let issuer = Issuer { config, args, suite, deployment, operator };
        match (args.count, &args.out) {
            (Some(count), Some(directory)) => issuer.issue_many(count, directory),
            _ => {
                let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.token", args.name)));
                issuer.issue(args.name.clone(), args.ordinal, &out)
            }
        }
    })
}

/// Path of the deployment file, once it exists.
fn deployment_path(config: &Config, args: &IssueArgs) -> Result<PathBuf> {
    let given = args.deployment.clone();
    let path = given.clone().unwrap_or_else(|| config.deployment_path());
    let mut left = args.wait;
    while !path.exists() && !left.is_zero() {
        let nap = left.min(LOOK);
        std::thread::sleep(nap);
        left = left.saturating_sub(nap);
    }
    given.map_or_else(|| config.existing_deployment(), Ok)
}

/// Issuer of tokens.
struct Issuer<'a, S: Suite> {
    config: &'a Config,
    args: &'a IssueArgs,
    suite: SuiteKind,
    deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
}

impl<S: Suite> Issuer<'_, S> {
    /// Tokens for `NAME-1` to `NAME-count`, but for whom there is or was one.
    fn issue_many(&self, count: u16, directory: &Path) -> Result<()> {
        private_file::create_directory(directory)?;
        for number in 1..=count {
            let name = Name::new(&format!("{}-{number}", self.args.name))?;
            if !token_directory::knows(directory, name.as_str())? {
                let ordinal = self.args.ordinal.saturating_add(number - 1);
                self.issue(name.clone(), ordinal, &directory.join(format!("{name}.token")))?;
            }
        }
        Ok(())
    }

    fn issue(&self, name: Name, ordinal: u16, out: &Path) -> Result<()> {
        let grant = terms(self.args, name, ordinal)?;
        let issued = self.operator.issue(&self.deployment, grant, &mut OsRng)?;
        let write = || armour::write_new(out, Kind::Token, self.suite, &issued.encode());
        let statement = &issued.token.statement;
        let recorded = match registry_here(self.config, self.args.record, &self.deployment)? {
            Some(mut store) => {
                let now = clock::unix_now();
                store.refuse_taken_name(statement.name.as_str(), now)?;
                store.refuse_taken_ordinal::<S>(&statement.role, now)?;
                write()?;
                store.record_token(statement, now)?;
                "recorded here"
            }
            None => {
                write()?;
                "not recorded: the registry is elsewhere"
            }
        };
        terminal::line(&format!(
            "{}  token {} for {}, usable until {} ({recorded})",
            out.display(),
            hex::encode(statement.id),
            statement.name,
            clock::format(statement.expiry)
        ))?;
        Ok(())
    }
}

fn terms(args: &IssueArgs, name: Name, ordinal: u16) -> Result<TokenGrant> {
    let now = clock::unix_now();
    if args.expires <= now {
        return Err(Error::Terms("--expires lies in the past".into()));
    }
    if args.not_after <= now {
        return Err(Error::Terms("--not-after lies in the past".into()));
    }
    let role = match &args.leads {
        Some(group) => Role::Leader { group: group.clone(), ordinal },
        None => Role::Edge,
    };
    Ok(TokenGrant { name, role, groups: args.group.clone(), not_after: args.not_after, expiry: args.expires })
}

/// The registry in the data directory, if there is one of this deployment and it is wanted.
fn registry_here<S: Suite>(
    config: &Config,
    record: Record,
    deployment: &Deployment<S>,
) -> Result<Option<Store>> {
    if record == Record::Never || !Store::path_in(&config.data_dir).exists() {
        return Ok(None);
    }
    match registry::open_of(config, deployment) {
        Ok(store) => Ok(Some(store)),
        Err(Error::ForeignRegistry { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists tokens.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let tokens = registry::open(config)?.tokens(clock::unix_now())?;
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
pub(crate) fn revoke(config: &Config, which: &str) -> Result<()> {
    let id = registry::open(config)?.revoke_tokens_named(which, clock::unix_now())?;
    terminal::line(&format!(
        "token {id} revoked; a running `kgc serve` refuses it within {:?}",
        config.poll
    ))?;
    Ok(())
}
