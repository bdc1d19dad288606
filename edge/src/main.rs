//! Quiver's edge drone.
//!
//! `main` reads the command line, `config` the settings; `service` runs the machine of `quiver-role` with the driver of
//! `quiver-net`; `store` is the encrypted state file; through `control` the other subcommands reach the running edge.

mod attributes;
mod cli;
mod config;
mod control;
mod envelope;
mod error;
mod ibe;
mod metrics;
mod provision;
mod service;
mod store;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use quiver_service::drone::abe::AbeCommand;
use quiver_service::drone::abke::AbkeCommand;
use quiver_service::{Exit, control::call, logging, monitoring, terminal};
use serde::de::DeserializeOwned;

use crate::cli::{Cli, Command};
use crate::config::{Config, Given};
use crate::control::{Request, Status};
use crate::error::Result;
use crate::service::Task;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            // Nothing can be done if even standard error is closed.
            let _ = writeln!(std::io::stderr(), "edge: {error}");
            error.exit().into()
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let given = Given::common(&cli.common);
    let given = match &cli.command {
        Command::Enroll(args) => given.enrolling(args),
        Command::Run(args) => given.running(args),
        Command::Health(args) => given.monitoring(&args.metrics),
        Command::Abe(AbeCommand::Fetch { kgc, .. }) | Command::Abke(AbkeCommand::Fetch { kgc, .. }) => {
            given.fetching(kgc)
        }
        Command::Ibe(args) => given.fetching(&args.kgc),
        _ => given,
    };
    let config = Config::read(&cli.common, &given)?;
    let otlp = config.otlp.as_deref().filter(|_| matches!(cli.command, Command::Run(_)));
    let _export = logging::start("edge", config.log_format, otlp)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let protection = cli.common.protection;
    match cli.command {
        Command::Enroll(_) => runtime.block_on(service::run(config, protection, Task::Enrol)),
        Command::Run(args) => {
            runtime.block_on(service::run(config, protection, Task::Run { json: args.json }))
        }
        Command::Health(args) => {
            Ok(terminal::line(&runtime.block_on(monitoring::ask("edge", config.metrics, args.live))?)?)
        }
        Command::Status { json } => {
            let status: Status = runtime.block_on(ask(&config, &Request::Status))?;
            let text = if json { serde_json::to_string_pretty(&status) } else { Ok(status.describe()) };
            Ok(terminal::line(&text.map_err(std::io::Error::from)?)?)
        }
        Command::Send { channel, unsigned, text } => {
            let request = Request::Send { channel: channel.to_string(), text, signed: !unsigned };
            let answer: String = runtime.block_on(ask(&config, &request))?;
            Ok(terminal::line(&answer)?)
        }
        Command::Provision(args) => Ok(terminal::line(&provision::line(&args)?)?),
        Command::Envelope(command) => runtime.block_on(envelope::run(&config, &protection, command)),
        Command::Abe(command) => runtime.block_on(attributes::run(&config, &protection, &command)),
        Command::Abke(command) => runtime.block_on(attributes::run_abke(&config, &protection, &command)),
        Command::Ibe(args) => runtime.block_on(ibe::run(&config, &protection, args)),
    }
}

async fn ask<A: DeserializeOwned>(config: &Config, request: &Request) -> Result<A> {
    Ok(call(&config.data_dir, "edge", "run", request).await?)
}
