//! Interface of features that can be left out of the programs of edges and leaders.
//!
//! A feature is a crate that nothing but the programs names, each in one line of its list
//! ([`DroneProgram::FEATURES`]). It hooks in at three places, of which it may leave some out: subcommands, whose requests it
//! answers in the running service, or from the state file where none runs ([`CommandFeature`]); a part in the
//! running service, with flags and settings ([`ServiceFeature`]), tasks, status and metrics, which is told the
//! machine's events and keys ([`RunningPart`]); and a part of the service's machine, which takes messages and makes some
//! ([`PartFeature`]). It may have other names for drones ([`AliasFeature`]), and relays before a leader
//! ([`LeaderRelays`]). Its settings may ask for more: other memberships of an edge ([`Memberships`]), a gate before
//! a leader ([`LeaderGate`]).

mod alias;
mod edge;
mod leader;
mod part;
mod relays;
mod running;
mod service;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_ainq::{Deployment, KgcId, Ristretto255, UnixTime};
use quiver_enrolment::Kgcs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroize;

use super::fetch::KeyClient;
use super::keys::Keys;
use super::running::DroneIdentity;
use super::send::SendReport;
use super::{DroneProgram, DroneSettings, Error, Result};
use crate::config::Layers;
use crate::control::USUAL_TIME;
use crate::keyring::Keyring;

pub use self::alias::{AliasFeature, AliasFlags, DRONE, GivenAlias};
pub use self::edge::{
    EnrolledDrone, Exclusion, FeatureEdge, GroupEdge, GroupEdgeEvent, MembershipEvent, MembershipRunner,
    Memberships,
};
pub use self::leader::{
    GateTask, GatedLeader, GroupLeader, GroupLeaderCommand, GroupLeaderEvent, LeaderBehindGate, LeaderGate,
};
pub(crate) use self::part::keys;
pub use self::part::{
    AnyPartEvent, DronePart, FeaturePart, FeatureParts, PartCommand, PartEvent, PartFeature,
};
pub use self::relays::{LeaderRelays, RelayedMachine};
pub use self::running::{
    AliasHolder, KeyObstacle, OpenContext, RoleCommand, RoleEvent, RoleLook, RoleMachine, RunningNode,
    RunningPart, RunningParts, STANDING_BY, ServiceContext,
};
pub(crate) use self::service::remove_counters;
pub use self::service::{
    ServiceFeature, ServiceFlags, ServicePart, ServiceParts, channels, settings, status_rows, values,
};

/// Advice after a signal, for a subcommand that may have been fetching.
pub(crate) const FETCHED_IS_KEPT: &str = "what was fetched is kept: give the same command again";

/// Features of a program.
pub type Features = &'static [&'static dyn DroneFeature];

/// A feature of the programs of edges and leaders.
pub trait DroneFeature: fmt::Debug + Sync {
    /// Examples for the program's help: a command without the program's name, and its purpose, if that needs a word.
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The subcommands that the feature has.
    fn commands(&self) -> Vec<&dyn CommandFeature> {
        Vec::new()
    }

    /// The part in the running service, if the feature has one.
    fn service(&self) -> Option<&dyn ServiceFeature> {
        None
    }

    /// The part of the machine, if the feature has one.
    fn part(&self) -> Option<&dyn PartFeature> {
        None
    }

    /// The relays that the feature has before a leader, if it has any.
    fn relays(&self) -> Option<&dyn LeaderRelays> {
        None
    }

    /// Other names that the feature has for drones, if it has any.
    fn aliases(&self) -> Option<&dyn AliasFeature> {
        None
    }

    /// The KGCs of a deployment that has several, if the feature enrols with such: each makes a share of the key.
    fn quorum(&self, _ids: &[KgcId]) -> Option<Kgcs<Ristretto255>> {
        None
    }

    /// Time at which the first of the feature's keys in this keyring ends; `None` if none does. They are fetched again
    /// then.
    fn first_end(&self, _keyring: &Keyring<Ristretto255>) -> Option<UnixTime> {
        None
    }
}

/// A feature's subcommand.
#[async_trait]
pub trait CommandFeature: Sync {
    /// Name of the subcommand, and of its requests.
    fn name(&self) -> &'static str;

    /// Description of the subcommand for the command line.
    fn subcommand(&self) -> Command;

    /// Reads the arguments of its subcommand.
    ///
    /// # Errors
    /// Those of clap.
    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error>;

    /// Answers a request, as the drone of this identity.
    ///
    /// # Errors
    /// Those of what is asked for; [`Error::Answered`] if the subcommand makes no such requests.
    async fn answer(
        &self,
        _client: &KeyClient,
        _identity: DroneIdentity,
        _call: &Value,
    ) -> Result<FeatureAnswer> {
        Err(Error::Answered(format!("`{}` asks nothing of a drone's keys", self.name()), 1))
    }

    /// Answers a request of a drone that has no state file, if it needs none.
    fn answer_without_state(
        &self,
        _deployment: &Deployment<Ristretto255>,
        _call: &Value,
    ) -> Option<Result<FeatureAnswer>> {
        None
    }

    /// True if its requests are answered also by a drone that is anonymous in its group. Then they must not make that
    /// drone say anything to the group.
    fn answers_anonymous(&self) -> bool {
        false
    }

    /// The command that has the feature's part send to the group what this request asks for, as the drone of this
    /// identity.
    ///
    /// # Errors
    /// Errors of the request; [`Error::Answered`] if the feature sends nothing.
    fn message(&self, _keys: &Keys, _identity: DroneIdentity, _call: &Value) -> Result<PartCommand> {
        Err(Error::Answered(format!("`{}` sends nothing to the group", self.name()), 1))
    }
}

/// A feature's subcommand with its arguments.
#[async_trait(?Send)]
pub trait FeatureCommand: fmt::Debug {
    /// True if it runs until a signal comes, as a service does.
    fn serves(&self) -> bool {
        false
    }

    /// Advice on how to go on after a signal.
    fn after_a_signal(&self) -> &'static str {
        FETCHED_IS_KEPT
    }

    /// Adds the settings that it was given.
    ///
    /// # Errors
    /// Those of [`Layers::flags`].
    fn flags(&self, layers: Layers) -> crate::Result<Layers>;

    /// Carries it out.
    ///
    /// # Errors
    /// Those of the feature, and of what it asks for.
    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> Result<()>;
}

/// The program, as a feature's subcommand sees it.
#[async_trait(?Send)]
pub trait FeatureCaller {
    /// The settings of the drone.
    fn settings(&self) -> &DroneSettings;

    /// The answer of the running service, or what the state file answers where none runs.
    ///
    /// # Errors
    /// Those of asking, and of what is asked for.
    async fn call(&self, request: FeatureRequest) -> Result<FeatureAnswer>;

    /// Answer of the feature's part in the running service ([`RunningPart::answer`]). The feature's name is that of the
    /// part.
    ///
    /// # Errors
    /// Errors of asking; the part's refusal.
    async fn ask(&self, request: FeatureRequest) -> Result<FeatureAnswer>;

    /// Has the running service send something to the group ([`CommandFeature::message`]).
    ///
    /// # Errors
    /// Errors of asking and of sending.
    async fn send(&self, request: FeatureRequest) -> Result<SendReport>;

    /// Fetches what the KGCs grant this drone, and prints what came of it.
    ///
    /// # Errors
    /// Errors of asking and of [`FetchReport::print`](super::fetch::FetchReport::print).
    async fn fetch(&self, json: bool) -> Result<()>;
}

/// A request of a feature's subcommand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureRequest {
    /// Name of the feature.
    pub feature: String,
    /// Content, which the feature alone understands.
    pub call: Value,
    /// Time limit of the answer.
    pub time_limit: Duration,
    /// Description of what others have to answer, if they have to.
    #[serde(skip)]
    pub awaited: Option<String>,
}

impl FeatureRequest {
    /// Makes a request of this feature, which the running service answers by itself in the usual time.
    ///
    /// # Errors
    /// [`Error::Io`] for content that JSON has no form for.
    pub fn new(feature: &str, call: &impl Serialize) -> Result<Self> {
        let call = serde_json::to_value(call).map_err(|error| Error::Io(error.into()))?;
        Ok(Self { feature: feature.into(), call, time_limit: USUAL_TIME, awaited: None })
    }

    /// Reads the content of a request.
    ///
    /// # Errors
    /// [`Error::Answered`] if it is of another form.
    pub fn read<T: DeserializeOwned>(call: &Value) -> Result<T> {
        let other = |_| Error::Answered("a request of another version: restart the service".into(), 1);
        T::deserialize(call).map_err(other)
    }
}

/// The answer to a [`FeatureRequest`]. Its texts are erased when it is dropped, because some are keys.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureAnswer(Value);

impl FeatureAnswer {
    /// Writes an answer.
    ///
    /// # Errors
    /// [`Error::Io`] for a value that JSON has no form for.
    pub fn new(answer: &impl Serialize) -> Result<Self> {
        serde_json::to_value(answer).map(Self).map_err(|error| Error::Io(error.into()))
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Error::Answered`] if it is of another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let other = |_| Error::Answered("the running service is of another version: restart it".into(), 1);
        T::deserialize(&self.0).map_err(other)
    }
}

impl fmt::Debug for FeatureAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeatureAnswer").finish_non_exhaustive()
    }
}

impl Drop for FeatureAnswer {
    fn drop(&mut self) {
        erase(&mut self.0);
    }
}

fn erase(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(values) => values.iter_mut().for_each(erase),
        Value::Object(fields) => fields.values_mut().for_each(erase),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Examples of the features of a program, a line each, for its help.
#[must_use]
pub fn examples<P: DroneProgram>() -> String {
    let line = |&(command, purpose): &(&str, &str)| {
        let command = format!("{} {command}", P::NAME);
        match purpose {
            "" => format!("  {command}\n"),
            _ => format!("  {command:<53}  # {purpose}\n"),
        }
    };
    P::FEATURES.iter().flat_map(|feature| feature.examples()).map(line).collect()
}

/// The feature whose subcommand has this name.
///
/// # Errors
/// [`Error::Answered`] if the program was built without it.
pub(crate) fn find(features: Features, name: &str) -> Result<&'static dyn CommandFeature> {
    let found = commands(features).find(|command| command.name() == name);
    found.ok_or_else(|| Error::Answered(format!("the running service was built without `{name}`"), 1))
}

fn commands(features: Features) -> impl Iterator<Item = &'static dyn CommandFeature> {
    features.iter().flat_map(|feature| feature.commands())
}

/// The KGCs to enrol with: the one of this id, or several, which one of these features enrols with.
///
/// # Errors
/// [`Error::BuiltWithoutQuorum`] if there are several, and none of the features does.
pub(crate) fn kgcs(features: Features, ids: &[KgcId]) -> Result<Kgcs<Ristretto255>> {
    if let [id] = ids {
        return Ok(Kgcs::one(*id));
    }
    let quorum = features.iter().find_map(|feature| feature.quorum(ids));
    quorum.ok_or(Error::BuiltWithoutQuorum(ids.len()))
}

/// Time at which the first key of these features ends; `None` if none does.
pub(crate) fn first_end(features: Features, keyring: &Keyring<Ristretto255>) -> Option<UnixTime> {
    features.iter().filter_map(|feature| feature.first_end(keyring)).min()
}

/// The subcommand of any feature of the program `P`, for its command line.
pub struct FeatureSubcommand<P>(pub Box<dyn FeatureCommand>, PhantomData<fn() -> P>);

impl<P> fmt::Debug for FeatureSubcommand<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<P: DroneProgram> FromArgMatches for FeatureSubcommand<P> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let given = matches.subcommand().and_then(|(name, arguments)| {
            Some((commands(P::FEATURES).find(|command| command.name() == name)?, arguments))
        });
        let Some((command, arguments)) = given else {
            return Err(clap::Error::new(ErrorKind::InvalidSubcommand));
        };
        Ok(Self(command.parse(arguments)?, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: DroneProgram> Subcommand for FeatureSubcommand<P> {
    fn augment_subcommands(command: Command) -> Command {
        commands(P::FEATURES).fold(command, |command, feature| command.subcommand(feature.subcommand()))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        commands(P::FEATURES).any(|command| command.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_an_answer_are_erased_wherever_they_stand() {
        let mut value = json!({ "keys": [{ "key": "secret", "length": 6 }], "why": null, "text": "secret" });
        erase(&mut value);
        assert_eq!(value, json!({ "keys": [{ "key": "", "length": 6 }], "why": null, "text": "" }));
    }

    #[test]
    fn answer_of_another_form_and_feature_that_is_absent_are_refused() {
        let answer = FeatureAnswer::new(&json!({ "keys": ["secret"] })).expect("JSON");
        assert!(!format!("{answer:?}").contains("secret"));
        let error = answer.read::<Vec<u8>>().expect_err("an object is no list");
        assert!(error.to_string().contains("of another version"), "{error}");
        let error = kgcs(&[], &[1, 2, 3]).map(drop).expect_err("none enrols with a quorum");
        assert!(error.to_string().contains("3 KGCs") && error.exit() == crate::Exit::Usage, "{error}");
        assert_eq!(kgcs(&[], &[4]).expect("a single one").ids(), [4]);
        let error = find(&[], "tides").map(drop).expect_err("there is none");
        assert!(error.to_string().contains("built without `tides`"), "{error}");
    }
}
