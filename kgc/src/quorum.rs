//! A KGC that is one of several: `kgc quorum`, and what `kgc serve` does then.
//!
//! `arguments` is its command line. `file` is the init file that all KGCs pin, `transport` the key they know one another
//! by, `sealed` the encrypted file with the shares; `node` is the machine, `service` and `host` run it, `control` answers
//! the command line, `commands` asks; `revocation` requests revocations. `release` is what the quorum asks of the release
//! of condition keys, `clocks` what the others think of this machine's clock.

mod arguments;
mod clocks;
mod commands;
mod control;
mod describe;
mod file;
mod found;
mod host;
mod init;
pub(crate) mod node;
pub(crate) mod release;
mod revocation;
mod sealed;
mod service;
mod status;
mod transport;

use std::path::Path;
use std::time::Duration;

use quiver_ainq::UnixTime;
use quiver_service::secrets::{Protection, ProtectionArgs};

use self::arguments::{PROGRAM_EXAMPLES, QUORUM_STEPS, QuorumCommand};
use self::file::{Pinned, QuorumFile};
use self::sealed::QuorumState;
use crate::audit_head::HeadFile;
use crate::config::Config;
use crate::error::Result;
use crate::features::{AGAIN, FeatureCommand, KgcFeature};
use crate::membership::{KgcQuorum, Serving};

/// Quorum of KGCs, as a feature of the KGC.
pub(crate) struct QuorumFeature;

impl KgcFeature for QuorumFeature {
    type Command = QuorumCommand;

    const KIND: &'static str = "quorum";
    const ABOUT: &'static str = "One KGC of several: any t of n issue keys together, fewer cannot";
    const EXAMPLES: Option<&'static str> = Some(QUORUM_STEPS);
    const PROGRAM_EXAMPLES: &'static str = PROGRAM_EXAMPLES;

    fn membership(&self, path: &Path) -> Option<Result<Box<dyn KgcQuorum>>> {
        Some(QuorumFile::read(path).map(|pinned| Box::new(pinned) as _))
    }
}

impl FeatureCommand for QuorumCommand {
    fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()> {
        match self {
            Self::Key(args) => init::key(config, protection, args),
            Self::Init(args) => init::run(config, protection, args),
            Self::Found(args) => found::run(config, protection, args),
            asked => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(commands::run(config, asked))
            }
        }
    }

    fn after_a_signal(&self) -> &'static str {
        match self {
            Self::Refresh(_) | Self::Repair(_) => "the running KGC goes on with it: see `kgc quorum status`",
            _ => AGAIN,
        }
    }
}

impl KgcQuorum for Pinned {
    fn threshold(&self) -> u16 {
        self.parameters.threshold()
    }

    fn seat(&self) -> [u8; 32] {
        Self::seat(self)
    }

    fn key_file(&self) -> &'static str {
        sealed::NAME
    }

    fn open_key_file(&self, data_dir: &Path, by: &Protection) -> Result<Box<dyn HeadFile>> {
        Ok(Box::new(QuorumState::open(data_dir, self, by)?.0))
    }

    fn sign(&self, config: &Config, by: &Protection, body: &[u8], wait: Duration) -> Result<Vec<u8>> {
        sealed::refuse_wrong_key(&config.data_dir, self, by)?;
        commands::sign(config, body, wait)
    }

    fn revoke(
        &self,
        config: &Config,
        protection: &ProtectionArgs,
        which: &str,
        told: Option<(UnixTime, bool)>,
    ) -> Result<()> {
        revocation::request(config, protection, self, which, told)
    }

    fn serve<'a>(&'a self, config: &'a Config, protection: &'a ProtectionArgs) -> Serving<'a> {
        Box::pin(service::serve(config, protection, self))
    }
}
