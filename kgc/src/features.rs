//! Features of this build, an entry each, and their interface.
//!
//! A feature is a module that nothing but this file names. It brings a subcommand, and authorities of one kind:
//! their setup, their grants, and what makes their keys. The registry and the delivery of keys do not know it. In place
//! of authorities one brings the release of condition keys, and one the quorum that a KGC may be one of.

use std::fmt;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_ainq::{AuthorityStatement, Purpose, Ristretto255};
use quiver_delivery::attributes::KeyMaker;
use quiver_service::secrets::ProtectionArgs;

use crate::config::Config;
use crate::error::Result;
use crate::membership::KgcQuorum;

/// The features.
const FEATURES: &[&dyn ListedFeature] = &[
    #[cfg(feature = "quorum")]
    &crate::quorum::QuorumFeature,
    #[cfg(feature = "attributes")]
    &crate::attributes::AttributeFeature,
    #[cfg(feature = "admission")]
    &crate::abke::AdmissionFeature,
    #[cfg(feature = "conditions")]
    &crate::ibe::ConditionFeature,
];

/// Release of condition keys, or none.
#[cfg(feature = "conditions")]
pub(crate) type Release = crate::ibe::ConditionRelease;
/// Release of condition keys, or none.
#[cfg(not(feature = "conditions"))]
pub(crate) type Release = ();

/// Advice after a signal for a command that left nothing to go on with.
pub(crate) const AGAIN: &str = "give the same command again";

/// A feature of the KGC.
pub(crate) trait KgcFeature: Sync {
    /// Subcommand with its arguments.
    type Command: FeatureCommand + Subcommand + 'static;

    /// Name of its subcommand, and kind of its authorities in the KGC's statements.
    const KIND: &'static str;
    /// Purpose of its subcommand, in a line.
    const ABOUT: &'static str;
    /// Examples, which stand below the subcommand's own.
    const EXAMPLES: Option<&'static str> = None;
    /// Examples for the program's help, a line each.
    const PROGRAM_EXAMPLES: &'static str = "";

    /// Puts an attribute authority of its kind to work. A feature without such has none to put to work.
    ///
    /// # Errors
    /// [`Error::Scheme`](crate::error::Error::Scheme) if this program does not have the scheme, or the master key does
    /// not hold.
    fn open(&self, statement: &AuthorityStatement<Ristretto255>, _master: &[u8]) -> Result<AuthorityService> {
        let (name, kind) = (&statement.name, &statement.kind);
        Ok(AuthorityService::Ended(format!(
            "attribute authority {name}: its kind, `{kind}`, has no attribute keys"
        )))
    }

    /// The purpose for which a running KGC signs this statement for the command line; `None` if it does not. Statements
    /// about authorities are signed for every feature.
    fn purpose(&self, _body: &[u8]) -> Option<Purpose> {
        None
    }

    /// The quorum that this file makes a KGC one of; `None` if the feature has no quorums.
    fn membership(&self, _path: &Path) -> Option<Result<Box<dyn KgcQuorum>>> {
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

    /// Advice on how to go on after a signal.
    fn after_a_signal(&self) -> &'static str {
        AGAIN
    }
}

/// A [`KgcFeature`] whose subcommand has any type, for the list.
pub(crate) trait ListedFeature: Sync {
    /// See [`KgcFeature::KIND`].
    fn kind(&self) -> &'static str;

    /// See [`KgcFeature::PROGRAM_EXAMPLES`].
    fn program_examples(&self) -> &'static str;

    /// Description of its subcommand for the command line.
    fn subcommand(&self) -> Command;

    /// Reads the arguments of its subcommand.
    ///
    /// # Errors
    /// The errors of clap.
    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error>;

    /// See [`KgcFeature::open`].
    ///
    /// # Errors
    /// The errors of [`KgcFeature::open`].
    fn open(&self, statement: &AuthorityStatement<Ristretto255>, master: &[u8]) -> Result<AuthorityService>;

    /// See [`KgcFeature::purpose`].
    fn purpose(&self, body: &[u8]) -> Option<Purpose>;

    /// See [`KgcFeature::membership`].
    fn membership(&self, path: &Path) -> Option<Result<Box<dyn KgcQuorum>>>;
}

impl<F: KgcFeature> ListedFeature for F {
    fn kind(&self) -> &'static str {
        F::KIND
    }

    fn program_examples(&self) -> &'static str {
        F::PROGRAM_EXAMPLES
    }

    fn subcommand(&self) -> Command {
        let command = F::Command::augment_subcommands(Command::new(F::KIND));
        let command = command.subcommand_required(true).arg_required_else_help(true);
        // The command's own documentation is for readers of the code.
        command.about(F::ABOUT).long_about(None::<&str>).after_help(F::EXAMPLES)
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(F::Command::from_arg_matches(arguments)?))
    }

    fn open(&self, statement: &AuthorityStatement<Ristretto255>, master: &[u8]) -> Result<AuthorityService> {
        KgcFeature::open(self, statement, master)
    }

    fn purpose(&self, body: &[u8]) -> Option<Purpose> {
        KgcFeature::purpose(self, body)
    }

    fn membership(&self, path: &Path) -> Option<Result<Box<dyn KgcQuorum>>> {
        KgcFeature::membership(self, path)
    }
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
pub(crate) fn of_kind(kind: &str) -> Option<&'static dyn ListedFeature> {
    FEATURES.iter().copied().find(|feature| feature.kind() == kind)
}

/// Examples of the features for the program's help, a line each.
pub(crate) fn examples() -> String {
    FEATURES.iter().map(|feature| feature.program_examples()).collect()
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

    /// Advice on how to go on after a signal.
    pub(crate) fn after_a_signal(&self) -> &'static str {
        self.0.after_a_signal()
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
        FEATURES.iter().map(|feature| feature.subcommand()).fold(command, Command::subcommand)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        of_kind(name).is_some()
    }
}
