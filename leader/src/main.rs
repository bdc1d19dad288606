//! Quiver's team leader.
//!
//! `main` reads the command line, `config` the settings; `service` runs the machine of `quiver-role` with the driver of
//! `quiver-net`, and `gateway` connects boards on serial lines to it; `store` is the encrypted state file; through `control` the other subcommands reach the running leader,
//! and `watch` shows on a terminal what it says.

mod attributes;
mod cli;
mod config;
mod control;
mod demand;
mod envelope;
mod error;
mod gateway;
mod ibe;
mod metrics;
mod service;
mod store;
mod watch;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use quiver_service::drone::abe::AbeCommand;
use quiver_service::{Exit, control::call, logging, monitoring, terminal};
use serde::de::DeserializeOwned;

use crate::cli::{Cli, Command, EvictArgs};
use crate::config::Config;
use crate::control::{MEMBERS_SHOWN, Request, Status};
use crate::error::Result;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            // Nothing can be done if even standard error is closed.
            let _ = writeln!(std::io::stderr(), "leader: {error}");
            error.exit().into()
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let serve = match &cli.command {
        Command::Serve(args) => Some(args),
        _ => None,
    };
    let kgc = match &cli.command {
        Command::Abe(AbeCommand::Fetch { kgc, .. }) => kgc.as_slice(),
        Command::Ibe(args) => args.kgc.as_slice(),
        _ => &[],
    };
    let metrics = match &cli.command {
        Command::Health(args) => args.metrics.metrics,
        _ => None,
    };
    let config = Config::read(&cli.common, serve, kgc, metrics)?;
    let otlp = config.otlp.as_deref().filter(|_| matches!(cli.command, Command::Serve(_)));
    let _export = logging::start("leader", config.log_format, otlp)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match cli.command {
        Command::Serve(args) => runtime.block_on(service::run(config, cli.common.protection, args.json)),
        Command::Health(args) => {
            Ok(terminal::line(&runtime.block_on(monitoring::ask("leader", config.metrics, args.live))?)?)
        }
        Command::Status(args) if args.watch => watch::run(&runtime, &config, args.every),
        Command::Status(args) => {
            let request = Request::Status { roster: MEMBERS_SHOWN, laggards: args.laggards.into() };
            let status: Status = runtime.block_on(ask(&config, &request))?;
            let text = if args.json { serde_json::to_string_pretty(&status) } else { Ok(status.describe()) };
            Ok(terminal::line(&text.map_err(std::io::Error::from)?)?)
        }
        Command::Evict(EvictArgs { name: Some(name), .. }) => {
            runtime.block_on(ask_and_print(&config, &Request::Evict(name.to_string())))
        }
        Command::Evict(EvictArgs { slot, .. }) => {
            runtime.block_on(ask_and_print(&config, &Request::EvictSlot(slot.unwrap_or_default())))
        }
        Command::Rekey => runtime.block_on(ask_and_print(&config, &Request::Rekey)),
        Command::Send { channel, text } => {
            let request = Request::Send { channel: channel.to_string(), text };
            runtime.block_on(ask_and_print(&config, &request))
        }
        Command::Envelope(command) => {
            runtime.block_on(envelope::run(&config, &cli.common.protection, command))
        }
        Command::Abe(command) => runtime.block_on(attributes::run(&config, &cli.common.protection, &command)),
        Command::Ibe(args) => runtime.block_on(ibe::run(&config, &cli.common.protection, args)),
    }
}

async fn ask<A: DeserializeOwned>(config: &Config, request: &Request) -> Result<A> {
    Ok(call(&config.data_dir, "leader", "serve", request).await?)
}

async fn ask_and_print(config: &Config, request: &Request) -> Result<()> {
    let answer: String = ask(config, request).await?;
    Ok(terminal::line(&answer)?)
}
