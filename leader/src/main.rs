//! Quiver's team leader.
//!
//! `main` reads the command line, `config` the settings; `features` lists what this build has; `service` runs the machine with the driver of
//! `quiver-net`; `store` compacts its state file;
//! through `control` the subcommands that only a leader has reach the running one, and `watch` shows its
//! status on a terminal. The code that a leader shares with an edge is in `quiver_service::drone`.

mod cli;
mod config;
mod control;
mod features;
mod metrics;
mod service;
mod store;
mod watch;

use std::process::ExitCode;

use quiver_service::arguments::{self, CommandLine};
use quiver_service::config::Layers;
use quiver_service::drone::feature::AliasFlags;
use quiver_service::drone::send::SendReport;
use quiver_service::drone::subcommands::{Subcommands, ask, ask_and_print, print_status};
use quiver_service::drone::watch::print_changes;
use quiver_service::drone::{DroneProgram as _, Error, Result};
use quiver_service::exit;
use quiver_service::shutdown::{block_on, end_on_signal};

use crate::cli::{Command, EvictArgs, HELP, KemCommand};
use crate::config::Config;
use crate::control::{LeaderRequest, LeaderStatusReply, MEMBERS_SHOWN};

fn main() -> ExitCode {
    exit::end(HELP.name, run(arguments::parse(&HELP)), Error::exit)
}

/// Advice on how to go on after a signal.
fn after_a_signal(command: &Command) -> &'static str {
    match command {
        Command::Serve(_) => "what was begun is kept: give the same command again",
        Command::Evict(_) | Command::Rekey | Command::Kem(_) | Command::Send { .. } => {
            "the running leader may have done it all the same"
        }
        Command::Drone(command) => command.after_a_signal(),
        Command::Status(_) => "give the same command again",
    }
}

fn run(cli: CommandLine<Command>) -> Result<()> {
    end_on_signal(HELP.name, after_a_signal(&cli.command))?;
    let layers = Layers::read(&cli.common, HELP.name)?;
    let config = Config::read(match &cli.command {
        Command::Serve(args) => layers.flags(args)?,
        Command::Drone(command) => command.flags(layers)?,
        _ => layers,
    })?;
    let _export = config.drone.start_logging(HELP.name, matches!(cli.command, Command::Serve(_)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let protection = cli.common.protection;
    block_on(runtime, async {
        match cli.command {
            Command::Serve(args) => service::run(&config, &protection, args.json).await,
            Command::Status(args) if args.watch && args.json => {
                let request =
                    || LeaderRequest::Status { roster: MEMBERS_SHOWN, laggards: args.laggards.into() };
                print_changes::<LeaderStatusReply, _>(Config::FEATURES, args.every, || {
                    ask(&config, request())
                })
                .await
            }
            Command::Status(args) if args.watch => watch::run(&config, args.every).await,
            Command::Status(args) => {
                let request = LeaderRequest::Status { roster: MEMBERS_SHOWN, laggards: args.laggards.into() };
                print_status(&ask(&config, request).await?, args.json, LeaderStatusReply::describe)
            }
            Command::Evict(EvictArgs { name: Some(name), .. }) => {
                ask_and_print(&config, LeaderRequest::Evict(name.to_string())).await
            }
            Command::Evict(EvictArgs { alias: AliasFlags { given: Some(alias), .. }, .. }) => {
                ask_and_print(&config, LeaderRequest::EvictCalled(alias)).await
            }
            Command::Evict(EvictArgs { slot, .. }) => {
                ask_and_print(&config, LeaderRequest::EvictSlot(slot.unwrap_or_default())).await
            }
            Command::Rekey => ask_and_print(&config, LeaderRequest::Rekey).await,
            Command::Kem(KemCommand::Renew { name }) => {
                ask_and_print(&config, LeaderRequest::RenewKem(name.map(|name| name.to_string()))).await
            }
            Command::Send { channel, text, json } => {
                Error::check_message(&text)?;
                let request = LeaderRequest::Send { channel: channel.to_string(), text };
                print_status(&ask(&config, request).await?, json, SendReport::describe)
            }
            Command::Drone(command) => Subcommands::new(&config, &protection).run(command).await,
        }
    })
}
