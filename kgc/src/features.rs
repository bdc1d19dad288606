//! Features of this build, an entry each, and their interface.
//!
//! A feature is a module that nothing but this list names. It brings a subcommand, and authorities of one kind:
//! their setup, their grants, and what makes their keys. The registry and the delivery of keys do not know it.

use std::fmt;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_ainq::{AuthorityStatement, Purpose, Ristretto255};
use quiver_delivery::attributes::KeyMaker;
use quiver_service::secrets::ProtectionArgs;

use crate::config::Config;
use crate::error::Result;

/// The features.
const FEATURES: &[&dyn KgcFeature] = &[
    #[cfg(feature = "attributes")]
    &crate::attributes::AttributeFeature,
    #[cfg(feature = "admission")]
    &crate::abke::AdmissionFeature,
];

/// A feature of the KGC.
pub(crate) trait KgcFeature: Sync {
    /// Name of its subcommand, and kind of its authorities in the KGC's statements.
    fn kind(&self) -> &'static str;

    /// Description of its subcommand for the command line.
    fn subcommand(&self, command: Command) -> Command;

    /// Reads the arguments of its subcommand.
    ///
    /// # Errors
    /// The errors of clap.
    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error>;

    /// Puts an authority of its kind to work.
    ///
    /// # Errors
    /// [`Error::Scheme`](crate::error::Error::Scheme) if this program does not have the scheme, or the master key does
    /// not hold.
    fn open(&self, statement: &AuthorityStatement<Ristretto255>, master: &[u8]) -> Result<AuthorityService>;

    /// The purpose for which a running KGC signs this statement for the command line; `None` if it does not. Statements
    /// about authorities are signed for every feature.
    fn purpose(&self, _body: &[u8]) -> Option<Purpose> {
        None
    }
}

/// A feature's subcommand with its arguments.
pub(crate) trait FeatureCommand: fmt::Debug {
    /// Carries it out.
    ///
    /// # Errors
    /// The errors of what it does.
    fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()>;
}

/// Service of an authority.
#[derive(Debug)]
pub(crate) enum AuthorityService {
    /// Authority that makes keys.
    Keys(Box<dyn KeyMaker>),
    /// No keys any more, and the reason: no build has the authority's scheme. The registry keeps it for ever.
    Ended(String),
}

/// The feature whose authorities are of this kind, if this build has it.
pub(crate) fn of_kind(kind: &str) -> Option<&'static dyn KgcFeature> {
    FEATURES.iter().copied().find(|feature| feature.kind() == kind)
}

/// The purpose for which a statement of a feature is signed for the command line.
pub(crate) fn purpose_of(body: &[u8]) -> Option<Purpose> {
    FEATURES.iter().find_map(|feature| feature.purpose(body))
}

/// The subcommand of any feature.
#[derive(Debug)]
pub(crate) struct FeatureSubcommand(Box<dyn FeatureCommand>);

impl FeatureSubcommand {
    /// Carries it out.
    pub(crate) fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()> {
        self.0.run(config, protection)
    }
}

impl FromArgMatches for FeatureSubcommand {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let given = matches.subcommand().and_then(|(name, arguments)| Some((of_kind(name)?, arguments)));
        let Some((feature, arguments)) = given else {
            return Err(clap::Error::new(ErrorKind::InvalidSubcommand));
        };
        feature.parse(arguments).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for FeatureSubcommand {
    fn augment_subcommands(command: Command) -> Command {
        let complete = |feature: &&dyn KgcFeature| {
            let command = feature.subcommand(Command::new(feature.kind()));
            command.subcommand_required(true).arg_required_else_help(true)
        };
        FEATURES.iter().map(complete).fold(command, Command::subcommand)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        of_kind(name).is_some()
    }
}
