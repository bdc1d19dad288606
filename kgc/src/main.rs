//! Quiver's Key Generation Centre.
//!
//! `main` reads the command line, `config` the settings; `service` runs the machine with the driver of
//! `quiver-net`; `store` is the registry, which `registry` opens and has authenticated, `sealed` the encrypted file
//! with the master secret, `authorities` the one with the attribute authorities' keys; `control` has the requests of
//! the command line to a running KGC, `kgc_machine` how its machine takes up what was set up beside it, `signing` who
//! signs statements about that; `audit_head` notes the end of the audit table; `event_log` names who did what;
//! `metrics` is what is counted; `features` lists what can be left out, `key_release` and `membership` are what the rest
//! knows of two of them.

#![cfg_attr(
    not(all(feature = "admission", feature = "attributes", feature = "conditions", feature = "quorum")),
    allow(
        dead_code,
        reason = "registry, errors and arguments have what each feature needs; a build with all has no dead code"
    )
)]

#[cfg(feature = "admission")]
mod abke;
#[cfg(feature = "attributes")]
mod attributes;
mod audit;
mod audit_head;
mod authorities;
mod authority_setup;
mod changes;
mod cli;
mod config;
mod control;
mod drone;
mod error;
mod event_log;
mod features;
mod grants;
#[cfg(feature = "conditions")]
mod ibe;
mod in_use;
mod init;
mod key_release;
mod kgc_machine;
mod membership;
mod metrics;
mod operator;
#[cfg(feature = "quorum")]
mod quorum;
mod registry;
mod sealed;
mod service;
mod signing;
mod store;
mod token;

use std::process::ExitCode;

use quiver_service::arguments::{self, CommandLine};
use quiver_service::config::Layers;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::shutdown::{block_on, end_on_signal};
use quiver_service::{exit, monitoring, terminal};

use crate::cli::{Command, HELP, KgcDroneCommand, OperatorCommand, TokenCommand};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::features::AGAIN;

fn main() -> ExitCode {
    exit::end(HELP.name, run(arguments::parse(&HELP)), Error::exit)
}

/// The text of the public deployment file.
fn deployment(config: &Config) -> Result<String> {
    Ok(DeploymentFile::read(&config.existing_deployment()?)?.text()?)
}

/// Advice on how to go on after a signal.
fn after_a_signal(command: &Command) -> &'static str {
    match command {
        Command::Feature(command) => command.after_a_signal(),
        _ => AGAIN,
    }
}

fn run(cli: CommandLine<Command>) -> Result<()> {
    end_on_signal(HELP.name, after_a_signal(&cli.command))?;
    let layers = Layers::read(&cli.common, HELP.name)?;
    let config = Config::read(match &cli.command {
        Command::Serve(args) => layers.flags(args)?,
        Command::Health(args) => layers.flags(args)?,
        _ => layers,
    })?;
    let _export = config.start_logging(HELP.name, matches!(cli.command, Command::Serve(_)))?;
    match cli.command {
        Command::Init(args) => init::run(&config, &cli.common.protection, &args),
        Command::Serve(_) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            block_on(runtime, service::run(config, cli.common.protection))
        }
        Command::Health(args) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let place = (config.data_dir.as_path(), config.metrics);
            let said = runtime.block_on(monitoring::ask(("kgc", "serve"), place, args.live))?;
            Ok(terminal::line(&said)?)
        }
        Command::Audit(args) => audit::run(&config, &cli.common.protection, &args),
        Command::Operator(OperatorCommand::New(args)) => operator::new(&cli.common.protection, &args),
        Command::Deployment => Ok(terminal::line(deployment(&config)?.trim_end())?),
        Command::Token(TokenCommand::Issue(args)) => token::issue(&config, &cli.common.protection, &args),
        Command::Token(TokenCommand::List { json }) => token::list(&config, json),
        Command::Token(TokenCommand::Revoke { which }) => {
            token::revoke(&config, &cli.common.protection, &which)
        }
        Command::Drone(KgcDroneCommand::List { json }) => drone::list(&config, json),
        Command::Drone(KgcDroneCommand::Revoke { which, not_after, edge }) => drone::revoke(
            &config,
            &cli.common.protection,
            &which,
            not_after.map(|not_after| (not_after, !edge)),
        ),
        Command::Feature(command) => command.run(&config, &cli.common.protection),
    }
}
