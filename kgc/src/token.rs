//! Tokens: `kgc token issue|list|revoke`.

use std::path::PathBuf;

use quiver_ainq::{Deployment, Role, Suite, TokenGrant};
use quiver_service::armour::{self, Kind};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::{clock, terminal, with_suite};
use rand::rngs::OsRng;

use crate::cli::{IssueArgs, Record};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::operator;
use crate::registry;
use crate::store::Store;

/// Issues a token. Needs neither the KGC nor its passphrase.
pub(crate) fn issue(config: &Config, args: &IssueArgs) -> Result<()> {
    let path = match &args.deployment {
        Some(path) => path.clone(),
        None => config.existing_deployment()?,
    };
    let file = DeploymentFile::read(&path)?;
    let suite = file.suite()?;
    with_suite!(suite, S => {
        let deployment = file.pin::<S>()?;
        let operator = operator::read_secret::<S>(&args.operator, suite)?;
        let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.token", args.name)));
        let issued = operator.issue(&deployment, terms(args)?, &mut OsRng)?;
        let write = || armour::write_new(&out, Kind::Token, suite, &issued.encode());
        let statement = &issued.token.statement;
        let recorded = match registry_here(config, args.record, &deployment)? {
            Some(mut store) => {
                let now = clock::unix_now();
                store.refuse_taken_name(args.name.as_str(), now)?;
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
    })
}

fn terms(args: &IssueArgs) -> Result<TokenGrant> {
    let now = clock::unix_now();
    if args.expires <= now {
        return Err(Error::Terms("--expires lies in the past".into()));
    }
    if args.not_after <= now {
        return Err(Error::Terms("--not-after lies in the past".into()));
    }
    let role = match &args.leads {
        Some(group) => Role::Leader { group: group.clone(), ordinal: args.ordinal },
        None => Role::Edge,
    };
    let (name, groups) = (args.name.clone(), args.group.clone());
    Ok(TokenGrant { name, role, groups, not_after: args.not_after, expiry: args.expires })
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
        terminal::line(&serde_json::to_string_pretty(&tokens).map_err(std::io::Error::from)?)?;
        return Ok(());
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
