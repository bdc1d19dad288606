//! A KGC that is one of several: `kgc quorum`, and what `kgc serve` does then.
//!
//! `file` is the init file that all KGCs pin, `transport` the key they know one another by, `sealed` the
//! encrypted file with the shares; `node` is the machine, `service` and `host` run it, `control` answers
//! the command line, `commands` asks.

pub(crate) mod arguments;
pub(crate) mod commands;
mod control;
mod describe;
pub(crate) mod file;
mod found;
mod host;
mod init;
pub(crate) mod node;
pub(crate) mod sealed;
pub(crate) mod service;
mod status;
mod transport;

use quiver_service::secrets::ProtectionArgs;

use self::arguments::QuorumCommand;
use crate::config::Config;
use crate::error::Result;

/// Runs a subcommand.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, command: QuorumCommand) -> Result<()> {
    match command {
        QuorumCommand::Key(args) => init::key(config, protection, &args),
        QuorumCommand::Init(args) => init::run(config, protection, &args),
        QuorumCommand::Found(args) => found::run(config, protection, &args),
        asked => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(commands::run(config, asked))
        }
    }
}
