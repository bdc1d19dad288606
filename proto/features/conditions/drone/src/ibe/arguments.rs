//! The subcommands `ibe encrypt`, `ibe decrypt`, `ibe identity` and `ibe recipient`, the same for edges and
//! leaders.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use quiver_age::{Format, Recipient};
use quiver_ibe::Condition;

const CONDITIONS: &str = "\
A condition is one of
  mission/alpha/phase-2               an operator releases it (`kgc ibe release`)
  drone/00112233445566778899aabbccddeeff   the drone with this serial
  not-before/2026-12-01T06:00:00Z     it is this late at the KGCs";
const ENCRYPT_EXAMPLES: &str = "\
Examples:
  … ibe encrypt orders.txt --to mission/alpha/phase-2 --out orders.age
  … ibe encrypt map.png --to mission/alpha/phase-2 --to not-before/2026-12-01T06:00:00Z --out map.age
  tar c plans | … ibe encrypt --to mission/alpha/phase-2 > plans.age
  … ibe encrypt note.txt --recipient age1quiver1… --armor             # asks no service

With several conditions, the key of any one opens the file. It is an age file: `rage` and `age` open it with the plugin
age-plugin-quiver.";
const DECRYPT_EXAMPLES: &str = "\
Examples:
  … ibe decrypt orders.age --out orders.txt
  … ibe decrypt < plans.age | tar x
  … ibe decrypt orders.age --out orders.txt --identity phase-2.key    # asks no service

Ends with 3 if no condition of the file is met yet, and says why; with 1 if the file was cut short or altered. A file named
by --out is written if all of it is genuine; standard output gets what is genuine up to the damage.";
const IDENTITY_EXAMPLES: &str = "\
Examples:
  … ibe identity mission/alpha/phase-2 --out phase-2.key
  rage --decrypt --identity phase-2.key --output orders.txt orders.age";

/// Subcommands about files that open when a condition is met.
#[derive(Clone, Debug, Subcommand)]
pub enum IbeArgs {
    /// Encrypt so that it opens when a condition is met
    #[command(after_help = format!("{CONDITIONS}\n\n{ENCRYPT_EXAMPLES}"))]
    Encrypt(EncryptArgs),
    /// Decrypt what was encrypted to a condition that is met
    #[command(after_help = DECRYPT_EXAMPLES)]
    Decrypt(DecryptArgs),
    /// Write the keys of conditions that are met into a file, for `rage` and `age`
    #[command(after_help = format!("{CONDITIONS}\n\n{IDENTITY_EXAMPLES}"))]
    Identity(IdentityArgs),
    /// Print conditions as recipients, for `rage` and `age`
    #[command(after_help = CONDITIONS)]
    Recipient(RecipientArgs),
}

/// Arguments of `encrypt`.
#[derive(Args, Clone, Debug)]
pub struct EncryptArgs {
    /// The file to encrypt, of any length; standard input without it or for `-`
    pub file: Option<PathBuf>,
    /// The condition; may be repeated
    #[arg(long, value_name = "CONDITION", required_unless_present = "recipient")]
    pub to: Vec<Condition>,
    /// A condition as a recipient; may be repeated
    #[arg(long, value_name = "age1quiver1…")]
    pub recipient: Vec<Recipient>,
    /// Where the result goes, never overwritten; standard output without it or for `-`
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Text in place of bytes, a third longer
    #[arg(long)]
    pub armor: bool,
}

impl EncryptArgs {
    /// The format of the file.
    pub const fn format(&self) -> Format {
        if self.armor { Format::Armoured } else { Format::Binary }
    }
}

/// Arguments of `decrypt`.
#[derive(Args, Clone, Debug)]
pub struct DecryptArgs {
    /// The file to decrypt; standard input without it or for `-`
    pub file: Option<PathBuf>,
    /// Where the content goes, never overwritten; standard output without it or for `-`
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// A file with keys (mode 0600), in place of those the KGCs release; may be repeated
    #[arg(long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,
}

/// Arguments of `identity`.
#[derive(Args, Clone, Debug)]
pub struct IdentityArgs {
    /// The conditions
    #[arg(value_name = "CONDITION", required = true)]
    pub conditions: Vec<Condition>,
    /// Where the keys go (mode 0600), never overwritten
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Arguments of `recipient`.
#[derive(Args, Clone, Debug)]
pub struct RecipientArgs {
    /// The conditions
    #[arg(value_name = "CONDITION", required = true)]
    pub conditions: Vec<Condition>,
}
