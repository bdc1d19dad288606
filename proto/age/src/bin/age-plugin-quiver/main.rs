//! `age-plugin-quiver`: lets `age` and `rage` use recipients and identities of Quiver. They find the program
//! in `PATH` by its name and run the [plugin protocol] with it over standard input and output.
//!
//! [plugin protocol]: https://c2sp.org/age-plugin

mod plugin;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quiver_age::{Recipient, SealedFile};
use quiver_ibe::{Condition, MasterPublicKey};

const EXAMPLES: &str = "\
Examples:
  age-plugin-quiver recipient --master 8f3a… mission/alpha/phase-2       # prints age1quiver1…
  rage --encrypt --recipient age1quiver1… --output order.age order.txt
  age-plugin-quiver inspect order.age                                    # under which conditions it opens
  rage --decrypt --identity phase-2.key --output order.txt order.age

The program must be in PATH for `age` and `rage` to find it. Identities (AGE-PLUGIN-QUIVER-1…) are made by
`edge ibe identity` once a condition is met.";

/// The age plugin of Quiver: encrypts to conditions, decrypts with their keys
#[derive(Debug, Parser)]
#[command(name = "age-plugin-quiver", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    /// The state machine to run; given by age itself
    #[arg(long, value_name = "STATE-MACHINE", hide = true)]
    age_plugin: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Commands of the user.
#[derive(Debug, Subcommand)]
enum Command {
    /// Print the recipients for these conditions, one per line
    Recipient {
        /// The master public key: 96 hexadecimal digits
        #[arg(long, value_name = "HEX", value_parser = master)]
        master: MasterPublicKey,
        /// Conditions: mission/PATH, drone/SERIAL or not-before/TIME
        #[arg(required = true)]
        conditions: Vec<Condition>,
    },
    /// Print under which conditions a file opens: the master key's fingerprint and the condition, one per
    /// line
    Inspect {
        /// The file; standard input without it
        file: Option<PathBuf>,
    },
}

fn master(text: &str) -> Result<MasterPublicKey, String> {
    let bytes = hex::decode(text).map_err(|error| error.to_string())?;
    MasterPublicKey::decode(&bytes).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    match run(quiver_arguments::parse::<Cli>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done if even standard error is closed.
            let _ = writeln!(io::stderr(), "age-plugin-quiver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(state_machine) = cli.age_plugin {
        return Ok(age_plugin::run_state_machine(&state_machine, plugin::Handler)?);
    }
    match cli.command {
        Some(Command::Recipient { master, conditions }) => {
            for condition in conditions {
                print(&Recipient::new(master, condition))?;
            }
        }
        Some(Command::Inspect { file: Some(file) }) => inspect(open(&file)?)?,
        Some(Command::Inspect { file: None }) => inspect(io::stdin())?,
        None => {}
    }
    Ok(())
}

/// Prints a line. A reader that went away (`| head`) is no error.
fn print(line: &dyn Display) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot print the result: {error}"))),
        Ok(()) => Ok(()),
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn inspect(input: impl Read) -> Result<(), Box<dyn std::error::Error>> {
    for key in SealedFile::read(input)?.keys() {
        print(&format_args!("{} {}", hex::encode(key.master), key.condition))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
