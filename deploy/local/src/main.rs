//! Sets up a deployment on this machine and runs it: `quiver-local up FOLDER`.
//!
//! `cli` has the command line; `folder` the folder of a deployment, its lock and settings; `services` which programs
//! run with which arguments; `programs` where the programs are; `ports` finds busy ports and free ones; `setup` makes
//! keys, the KGC and tokens; `launch` starts processes that end with the one that started them; `signals` receives what asks
//! for the end; `record` notes which processes run; `run` brings everything up, waits and ends it; `report` prints.

mod cli;
mod error;
mod folder;
mod launch;
mod ports;
mod programs;
mod record;
mod report;
mod run;
mod services;
mod setup;
mod signals;

use std::process::ExitCode;

use quiver_arguments::parse;
use quiver_service::exit;

use crate::cli::{Cli, Command};
use crate::error::Error;

/// Name of this program in what it prints.
const NAME: &str = "quiver-local";

fn main() -> ExitCode {
    let ended = match parse::<Cli>().command {
        Command::Up(up) => run::up(&up),
        Command::Down(place) => run::down(&place),
        Command::Status(place) => run::status(&place),
        Command::Launch(what) => launch::become_service(&what),
    };
    exit::end(NAME, ended, Error::exit)
}
