//! Quiver's edge drone.
//!
//! `main` reads the command line, `config` the settings; `service` runs the machine with the driver of
//! `quiver-net`; through `control` the subcommands that only an edge has reach the running one. What an edge
//! shares with a leader is `quiver_service::drone`.

mod cli;
mod config;
mod control;
mod metrics;
mod provision;
mod service;

use std::process::ExitCode;

use clap::Parser;
use quiver_service::config::Layers;
use quiver_service::drone::abke::AbkeCommand;
use quiver_service::drone::subcommands::{Subcommands, ask, ask_and_print, print_status};
use quiver_service::drone::{Error, Result};
use quiver_service::{exit, logging, terminal};

use crate::cli::{Cli, Command};
use crate::config::Config;
use crate::control::{Request, Status};
use crate::service::Task;

fn main() -> ExitCode {
    exit::end("edge", run(Cli::parse()), Error::exit)
}

fn run(cli: Cli) -> Result<()> {
    let layers = Layers::read(&cli.common, config::VARIABLES)?;
    let config = Config::read(match &cli.command {
        Command::Enroll(args) => layers.flags(args)?,
        Command::Run(args) => layers.flags(args)?,
        Command::Abke(AbkeCommand::Fetch { kgcs, .. }) => layers.flags(kgcs)?,
        Command::Drone(command) => command.flags(layers)?,
        _ => layers,
    })?;
    let otlp = config.drone.otlp.as_deref().filter(|_| matches!(cli.command, Command::Run(_)));
    let _export = logging::start("edge", config.drone.log_format, otlp)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let protection = cli.common.protection;
    let shared = Subcommands::new(&config, &protection);
    runtime.block_on(async {
        match cli.command {
            Command::Enroll(_) => service::run(&config, &protection, Task::Enrol).await,
            Command::Run(args) => service::run(&config, &protection, Task::Run { json: args.json }).await,
            Command::Status { json } => {
                print_status(&ask(&config, Request::Status).await?, json, Status::describe)
            }
            Command::Send { channel, unsigned, text } => {
                let request = Request::Send { channel: channel.to_string(), text, signed: !unsigned };
                ask_and_print(&config, request).await
            }
            Command::Provision(args) => Ok(terminal::line(&provision::line(&args)?)?),
            Command::Abke(command) => shared.abke(command).await,
            Command::Drone(command) => shared.run(command).await,
        }
    })
}
