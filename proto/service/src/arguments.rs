//! Flags that several subcommands of the services have, and how command lines are read.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
pub use quiver_arguments::{SCREEN, short_helps};
use quiver_arguments::{complete, end, matches};
use serde::Serialize;

use crate::exit::EXIT_CODES_HELP;
use crate::logging::LogFormat;
use crate::own_memory;
use crate::secrets::ProtectionArgs;

/// Heading of the flags that every subcommand has.
pub(crate) const GLOBAL: &str = "Global options";

/// Help of a program.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// Name of the program.
    pub name: &'static str,
    /// Purpose of the program, in one line.
    pub about: &'static str,
    /// Examples, a line each, which stand below the flags.
    pub examples: &'static str,
    /// Examples of the program's features, below its own.
    pub feature_examples: fn() -> String,
    /// Files and settings, at the end.
    pub after: &'static str,
}

/// Command line of a service, whose subcommands are `C`.
#[derive(Debug, Parser)]
#[command(version)]
pub struct CommandLine<C: Subcommand> {
    /// Flags of every subcommand.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: C,
}

/// Reads the command line of this process. A fault in it ends the process with exit code 2. Comes first in
/// every service, and so keeps the process's memory private before a secret is read.
#[must_use]
pub fn parse<C: Subcommand>(help: &Help) -> CommandLine<C> {
    own_memory::keep_private();
    let matches = matches(command::<C>(help));
    CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| end(help.name, &error))
}

/// Describes the command line of a service to clap; `-h` is a screen of it.
#[must_use]
pub fn command<C: Subcommand>(help: &Help) -> Command {
    let examples = format!("{}{}", help.examples, (help.feature_examples)());
    let below = format!("Examples:\n{examples}\n{}\n\n{EXIT_CODES_HELP}", help.after);
    complete(CommandLine::<C>::command().name(help.name).about(help.about).after_help(below))
}

/// Flags of every subcommand of every service.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct CommonArgs {
    /// Directory of this service's files; created for its owner alone
    #[arg(short, long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub data_dir: Option<PathBuf>,

    /// Configuration file (TOML); its keys are the long flags with `_` for `-`
    #[arg(short, long, value_name = "FILE", global = true, hide_short_help = true, help_heading = GLOBAL)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// How log lines on standard error look; RUST_LOG says what is logged
    #[arg(long, value_name = "FORMAT", global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub log_format: Option<LogFormat>,

    /// Passphrase or key that opens the state file.
    #[command(flatten)]
    #[serde(skip)]
    pub protection: ProtectionArgs,
}

/// Reads where metrics are served.
pub(crate) fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        "write the IP address of this machine and the port, such as 127.0.0.1:9464 or [::1]:9464".to_string()
    })?;
    let ip = address.ip();
    if ip.is_multicast() || ip == IpAddr::from(Ipv4Addr::BROADCAST) {
        return Err("no service can listen there: this is no address of one machine".into());
    }
    Ok(address)
}

/// Flags of subcommands that run a service: by which it is watched.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct MonitoringArgs {
    /// Where to serve /metrics, /healthz and /readyz over HTTP, such as 127.0.0.1:9464; port 0 lets the
    /// system choose. Without it nothing is served. There is no authentication: whoever reaches it sees names
    /// and numbers of drones, never a secret
    #[arg(long, value_name = "ADDRESS", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,

    /// Collector to which the service sends what it does about each request, by OTLP over plain HTTP, such as
    /// http://127.0.0.1:4318; for Jaeger, Tempo and the like
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub otlp: Option<String>,
}

/// Flags of a drone's first start.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct FirstStartArgs {
    /// The public deployment file (from `kgc init`); needed at the first start, then a copy is kept
    #[arg(long, value_name = "FILE")]
    pub deployment: Option<PathBuf>,
    /// The token to enrol with (mode 0600); needed at the first start
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
}

/// The flag of subcommands that ask the KGCs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KgcArgs {
    /// Address of a KGC, in place of those in the deployment file; may be repeated. A running service uses
    /// its own
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub kgc: Vec<String>,
}

/// `health`: for container engines and scripts.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct HealthArgs {
    /// Ask over HTTP, at the address that the service was given as its --metrics; default, also for 0.0.0.0: ask the
    /// service that runs with this data directory at its socket
    #[arg(long, value_name = "ADDRESS", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,
    /// Ask only whether it is alive, not whether it does its work
    #[arg(long)]
    #[serde(skip)]
    pub live: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: Help = Help {
        name: "program",
        about: "Does things",
        examples: "  program do --wait 1s\n",
        feature_examples: || "  program more\n".into(),
        after: "Files: none",
    };

    #[derive(Debug, Subcommand)]
    enum Sub {
        Do {
            #[arg(long, value_name = "TIME", value_parser = crate::duration::parse)]
            wait: std::time::Duration,
            #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=5))]
            count: Option<u16>,
        },
    }

    fn program() -> Command {
        command::<Sub>(&HELP)
    }

    #[test]
    fn examples_of_features_stand_below_those_of_the_program() {
        let help = program().render_long_help().to_string();
        assert!(
            help.contains("Examples:\n  program do --wait 1s\n  program more\n\nFiles: none\n\nExit"),
            "{help}"
        );
    }

    #[test]
    fn negative_values_are_refused_with_the_reason() {
        let refused = |args: &[&str]| {
            let args = ["program", "do"].iter().chain(args);
            program().try_get_matches_from(args).expect_err("refused").to_string()
        };
        let told = refused(&["--wait", "-5m"]);
        assert!(told.contains("--wait <TIME>") && told.contains("is negative"), "{told}");
        let told = refused(&["--wait", "1s", "--count", "-5"]);
        assert!(told.contains("-5 is not in 1..=5"), "{told}");
        let told = refused(&["--wait", "10"]);
        assert!(told.contains("has no unit; write 10s or 10m"), "{told}");
    }

    #[test]
    fn what_every_subcommand_has_stands_at_the_end_of_its_help() {
        let mut program = program();
        program.build();
        let help = program.find_subcommand_mut("do").expect("do").render_long_help().to_string();
        let (own, global) = help.split_once(GLOBAL).expect("a heading");
        for flag in ["--data-dir", "--config", "--log-format", "--passphrase-file", "--key-file"] {
            assert!(global.contains(flag) && !own.contains(flag), "{help}");
        }
        assert!(own.contains("--wait") && own.contains("--help"), "{help}");
    }
}
