//! The program `edge`: reads the command line and the settings, and carries out the subcommand.

use std::process::ExitCode;
use std::sync::Arc;

use quiver_service::arguments::{self, CommandLine};
use quiver_service::config::Layers;
use quiver_service::drone::output::StandardOutput;
use quiver_service::drone::send::SendReport;
use quiver_service::drone::subcommands::{Subcommands, ask, print_status};
use quiver_service::drone::{DroneProgram as _, Error, Result, watch};
use quiver_service::shutdown::{Shutdown, block_on, end_on_signal};
use quiver_service::{exit, terminal};

use crate::cli::{Command, HELP};
use crate::config::Config;
use crate::control::{EdgeRequest, EdgeStatusReply};
use crate::provision;
use crate::service::{self, Printer, Start, Task};

/// Runs the program `edge` with the arguments of this process, and says its exit code.
#[must_use]
pub fn program() -> ExitCode {
    exit::end(HELP.name, run(arguments::parse(&HELP)), Error::exit)
}

/// Advice on how to go on after a signal.
fn after_a_signal(command: &Command) -> &'static str {
    match command {
        Command::Enrol(_) | Command::Run(_) => "what was begun is kept: give the same command again",
        Command::Send { .. } => "the running edge may have sent it all the same",
        Command::Drone(command) => command.after_a_signal(),
        _ => "give the same command again",
    }
}

fn run(cli: CommandLine<Command>) -> Result<()> {
    end_on_signal(HELP.name, after_a_signal(&cli.command))?;
    let layers = Layers::read(&cli.common, HELP.name)?;
    let config = Config::read(match &cli.command {
        Command::Enrol(args) => layers.flags(args)?,
        Command::Run(args) => layers.flags(args)?,
        Command::Drone(command) => command.flags(layers)?,
        _ => layers,
    })?;
    let serves = match &cli.command {
        Command::Run(_) => true,
        Command::Drone(command) => command.serves(),
        _ => false,
    };
    let _export = config.drone.start_logging(HELP.name, serves)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let protection = cli.common.protection;
    let start = |json, shutdown, task| Start {
        obtain: |new| protection.obtain(new),
        token: None,
        observer: Arc::new(Printer { output: StandardOutput { json }, joined: false.into(), task }),
        shutdown,
    };
    block_on(runtime, async {
        match cli.command {
            Command::Enrol(_) => {
                service::run(&config, start(false, Shutdown::never(), Task::Enrol), Task::Enrol).await
            }
            Command::Run(args) => {
                service::run(&config, start(args.json, Shutdown::listen()?, Task::Run), Task::Run).await
            }
            Command::Status { json, watch: true, every } => {
                let fetch = || ask(&config, EdgeRequest::Status);
                match json {
                    true => watch::print_changes::<EdgeStatusReply, _>(Config::FEATURES, every, fetch).await,
                    false => watch::redraw(every, fetch, EdgeStatusReply::describe).await,
                }
            }
            Command::Status { json, .. } => {
                print_status(&ask(&config, EdgeRequest::Status).await?, json, EdgeStatusReply::describe)
            }
            Command::Send { channel, unsigned, text, json } => {
                Error::check_message(&text)?;
                let request = EdgeRequest::Send { channel: channel.to_string(), text, signed: !unsigned };
                print_status(&ask(&config, request).await?, json, SendReport::describe)
            }
            Command::Provision(args) => Ok(terminal::line(&provision::line(&args)?)?),
            Command::Drone(command) => Subcommands::new(&config, &protection).run(command).await,
        }
    })
}
