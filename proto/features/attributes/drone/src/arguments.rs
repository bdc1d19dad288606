//! The subcommands `envelope seal`, `envelope open` and `envelope send`, the same for edges and leaders.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::Result;
use crate::job::{Job, OpenJob, Recipients, SealJob, SendJob, TargetText};

const SEAL_EXAMPLES: &str = "\
Examples:
  … envelope seal order.txt --policy 'scout and sector:7' --out order.env
  … envelope seal map.png --policy '2 of (medic, scout, engineer)' --out map.env --authority roles
  … envelope seal frame.raw --attributes 'thermal, sector:7, altitude=150' --out frame.env --scheme fabeo22-kp
  … envelope seal note.txt --policy medic --out note.env --unsigned --authority roles.authority";
const OPEN_EXAMPLES: &str = "\
Examples:
  … envelope open order.env --out order.txt
  … envelope open order.env --out order.txt --key scout.key     # from `kgc abe keygen`

Prints who signed. Ends with 3 if no key fits, with 1 if the envelope is damaged or its signature is wrong; then nothing is written.";
const SEND_EXAMPLES: &str = "\
Examples:
  … envelope send --policy 'scout and sector:7' 'go north'";

/// Subcommands about envelopes.
#[derive(Clone, Debug, Subcommand)]
pub enum EnvelopeArgs {
    /// Seal a file to whoever's attributes fit
    #[command(after_help = SEAL_EXAMPLES)]
    Seal(SealArgs),
    /// Open an envelope that this drone's attributes fit
    #[command(after_help = OPEN_EXAMPLES)]
    Open(OpenArgs),
    /// Seal a text and send it to the group, through the running service
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArgs),
}

/// Recipients of an envelope.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Policy of who may open: attributes with `and`, `or`, `k of (…)` and comparisons
    #[arg(
        long,
        value_name = "POLICY",
        required_unless_present = "attributes",
        conflicts_with = "attributes"
    )]
    pub policy: Option<String>,
    /// Attributes of the content: keys whose policy fits them open
    #[arg(long, value_name = "LIST")]
    pub attributes: Option<String>,
    /// The attribute authority: its name, or its public file (from `kgc abe setup`); only needed if several
    /// are known
    #[arg(long, value_name = "NAME|FILE")]
    pub authority: Option<String>,
    /// The scheme, if an authority is to be chosen by it: fabeo22-cp (policies), fabeo22-kp or gpsw06
    /// (attributes)
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Without this drone's signature: whoever opens it then knows nothing of its source
    #[arg(long)]
    pub unsigned: bool,
}

/// Arguments of `seal`.
#[derive(Args, Clone, Debug)]
pub struct SealArgs {
    /// The file to seal; of any length
    pub file: PathBuf,
    /// Where the envelope goes; never overwritten
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// To whom.
    #[command(flatten)]
    pub to: TargetArgs,
}

/// Arguments of `open`.
#[derive(Args, Clone, Debug)]
pub struct OpenArgs {
    /// The envelope
    pub file: PathBuf,
    /// Where the content goes; never overwritten, and only written if the whole envelope is genuine
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// A key as a file (mode 0600), in place of those fetched; may be repeated
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
}

/// Arguments of `send`.
#[derive(Args, Clone, Debug)]
pub struct SendArgs {
    /// To whom.
    #[command(flatten)]
    pub to: TargetArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The text
    pub text: String,
}

impl TargetArgs {
    /// The file of the authority, if it was given as one.
    fn authority_file(&self) -> Option<&Path> {
        self.authority
            .as_deref()
            .filter(|given| given.contains('/') || given.ends_with(".authority"))
            .map(Path::new)
    }

    fn recipients(&self) -> Recipients {
        let target = match (&self.policy, &self.attributes) {
            (Some(policy), _) => TargetText::Policy(policy.clone()),
            (None, attributes) => TargetText::Attributes(attributes.clone().unwrap_or_default()),
        };
        let authority = self.authority.clone().filter(|_| self.authority_file().is_none());
        Recipients { target, authority, scheme: self.scheme.clone() }
    }
}

impl SealArgs {
    /// The job, with absolute paths: a service has a directory of its own.
    ///
    /// # Errors
    /// If there is no current directory.
    pub fn job(&self) -> Result<Job> {
        let (input, output) = (absolute(&self.file)?, absolute(&self.out)?);
        let authority_file = self.to.authority_file().map(absolute).transpose()?;
        let (to, signed) = (self.to.recipients(), !self.to.unsigned);
        Ok(Job::Seal(SealJob { input, output, to, authority_file, signed }))
    }
}

impl OpenArgs {
    /// The job, with absolute paths.
    ///
    /// # Errors
    /// If there is no current directory.
    pub fn job(&self) -> Result<Job> {
        let keys = self.key.iter().map(|path| absolute(path)).collect::<Result<_>>()?;
        Ok(Job::Open(OpenJob { input: absolute(&self.file)?, output: absolute(&self.out)?, keys }))
    }
}

impl SendArgs {
    /// The job.
    pub fn job(self) -> SendJob {
        SendJob { to: self.to.recipients(), signed: !self.to.unsigned, text: self.text }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}
