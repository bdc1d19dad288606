//! The program `edge`: reads the command line and the settings, and carries out the subcommand.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use quiver_service::config::Layers;
use quiver_service::drone::abke::AbkeCommand;
use quiver_service::drone::output::Output;
use quiver_service::drone::subcommands::{Subcommands, ask, ask_and_print, print_status};
use quiver_service::drone::{Error, Result};
use quiver_service::shutdown::Shutdown;
use quiver_service::{exit, logging, terminal};

use crate::cli::{Cli, Command};
use crate::config::{self, Config};
use crate::control::{Request, Status};
use crate::provision;
use crate::service::{self, Printer, Start, Task};

/// Runs the program `edge` with the arguments of this process, and says its exit code.
#[must_use]
pub fn program() -> ExitCode {
    exit::end("edge", run(Cli::parse()), Error::exit)
}

fn run(cli: Cli) -> Result<()> {
    let layers = Layers::read(&cli.common, config::VARIABLES)?;
    let config = Config::read(match &cli.command {
        Command::Enrol(args) => layers.flags(args)?,
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
    let start = |json| {
        Ok::<_, Error>(Start {
            obtain: |new| protection.obtain(new),
            token: None,
            observer: Arc::new(Printer(Output { json })),
            shutdown: Shutdown::listen()?,
        })
    };
    runtime.block_on(async {
        match cli.command {
            Command::Enrol(_) => service::run(&config, start(false)?, Task::Enrol).await,
            Command::Run(args) => service::run(&config, start(args.json)?, Task::Run).await,
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
