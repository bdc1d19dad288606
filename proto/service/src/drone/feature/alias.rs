//! Interface of features that have other names for drones, for the subcommands of a leader that name one.

use std::fmt;
use std::marker::PhantomData;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};

use super::Features;
use crate::drone::DroneProgram;

/// Other names of drones, which a feature's part in the running service knows
/// ([`RunningPart::drone_called`](super::RunningPart::drone_called)).
pub trait AliasFeature {
    /// Name of the part that knows them.
    fn part(&self) -> &'static str;

    /// Kind of these names, for people.
    fn kind(&self) -> &'static str;

    /// Flag for such a name where the argument `name`, which takes it too, would be misunderstood.
    fn flag(&self) -> Arg;
}

/// Another name of a drone, as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAlias {
    /// Name of the part that knows it.
    pub part: String,
    /// Text of the other name.
    pub alias: String,
}

/// Group of the arguments that name a drone, of which one is given.
pub const DRONE: &str = "drone";

/// Flags, in the group [`DRONE`], for other names of drones in the program `P`, for its command line.
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
        let given = of(P::FEATURES).find_map(|feature| {
            let alias = matches.get_raw(feature.flag().get_id().as_str())?.next()?;
            Some(GivenAlias { part: feature.part().into(), alias: alias.to_str()?.into() })
        });
        Ok(Self { given, program: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: DroneProgram> Args for AliasFlags<P> {
    fn augment_args(command: Command) -> Command {
        of(P::FEATURES).fold(command, |command, feature| {
            let named = |name: Arg| {
                let own = name.get_help().map(ToString::to_string).unwrap_or_default();
                name.help(format!("{own}, or its {}", feature.kind()))
            };
            command.mut_arg("name", named).arg(feature.flag().group(DRONE))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn of(features: Features) -> impl Iterator<Item = &'static dyn AliasFeature> {
    features.iter().filter_map(|feature| feature.aliases())
}
