//! Interface of features that have other names for drones, for the subcommands of a leader that name one.

use std::fmt;
use std::marker::PhantomData;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::Features;
use crate::drone::DroneProgram;

/// Other names of drones, which a feature's part in the running service knows
/// ([`RunningPart::drone_called`](super::RunningPart::drone_called)).
pub trait AliasFeature {
    /// Name of the part that knows them.
    fn part(&self) -> &'static str;

    /// Adds a flag for such a name to a subcommand whose argument `name` is the drone's own, and says there that it may be
    /// another.
    fn flags(&self, command: Command) -> Command;

    /// Value of that flag, if it was given.
    ///
    /// # Errors
    /// Errors of clap.
    fn given(&self, arguments: &ArgMatches) -> Result<Option<String>, clap::Error>;
}

/// Another name of a drone, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAlias {
    /// Name of the part that knows it.
    pub part: &'static str,
    /// Text of the other name.
    pub alias: String,
}

/// Flags for other names of drones in the program `P`, for its command line.
pub struct AliasFlags<P> {
    /// The name that was given, if one was.
    pub given: Option<GivenAlias>,
    program: PhantomData<fn() -> P>,
}

impl<P> fmt::Debug for AliasFlags<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.given.fmt(f)
    }
}

impl<P: DroneProgram> FromArgMatches for AliasFlags<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = None;
        for feature in of(P::FEATURES) {
            let alias = feature.given(matches)?;
            given = given.or(alias.map(|alias| GivenAlias { part: feature.part(), alias }));
        }
        Ok(Self { given, program: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: DroneProgram> Args for AliasFlags<P> {
    fn augment_args(command: Command) -> Command {
        of(P::FEATURES).fold(command, |command, feature| feature.flags(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn of(features: Features) -> impl Iterator<Item = &'static dyn AliasFeature> {
    features.iter().filter_map(|feature| feature.aliases())
}
