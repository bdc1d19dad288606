//! Interface of features in a drone's machine: parts beside its role, whose commands and events have any type.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_machine::{Context, Handled, MachinePart, Peer, earlier};
use quiver_message::Message;

use super::Features;
use crate::keyring::Keyring;

/// A feature's part in the machine of a drone.
pub trait PartFeature: Sync {
    /// Makes the part, as it is when a machine starts.
    fn part(&self) -> Box<dyn DronePart>;

    /// The command that gives the part what it uses of the drone's keyring. It is given at the start, and whenever the
    /// keyring has changed.
    fn keys(&self, _keyring: &Keyring<Ristretto255>) -> Option<PartCommand> {
        None
    }
}

/// A command to the part of a feature, which alone knows its type. Clones are of the same.
#[derive(Clone)]
pub struct PartCommand(Arc<dyn Any + Send + Sync>);

impl PartCommand {
    /// Makes the command of this content.
    pub fn new(command: impl Any + Send + Sync) -> Self {
        Self(Arc::new(command))
    }

    /// The content, if it has this type.
    #[must_use]
    pub fn content<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for PartCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may have keys.
        f.debug_struct("PartCommand").finish_non_exhaustive()
    }
}

/// An event of the part of a feature, as the service reports it.
pub trait PartEvent: fmt::Debug + Send + Sync {
    /// Reason why something was not sent, if the event is that.
    fn failure(&self) -> Option<&'static str>;

    /// Line for standard output, for people or as JSON; `None` if nothing is printed of the event.
    fn line(&self, group: &str, as_json: bool) -> Option<String>;
}

/// Event of any part.
pub type AnyPartEvent = Box<dyn PartEvent>;

type PartContext<'a> = Context<'a, Ristretto255, AnyPartEvent, Infallible>;

/// A part whose commands and events may have any type. [`FeaturePart`] makes one of a [`MachinePart`].
pub trait DronePart: fmt::Debug + Send + Sync {
    /// Takes a message, or returns that it is for another part.
    fn handle(&mut self, cx: &mut PartContext<'_>, from: Peer, message: &Message<Ristretto255>) -> Handled;

    /// Carries a command out, if it is one of this part.
    fn command(&mut self, cx: &mut PartContext<'_>, command: &PartCommand);

    /// Does what is due; called after every input.
    fn tick(&mut self, cx: &mut PartContext<'_>);

    /// Latest time of the next call.
    fn deadline(&self) -> Option<Duration>;
}

/// A [`MachinePart`] of a feature, and the conversion of its events.
pub struct FeaturePart<Q: MachinePart<Ristretto255>> {
    part: Q,
    event: fn(Q::Event) -> AnyPartEvent,
}

impl<Q: MachinePart<Ristretto255>> FeaturePart<Q> {
    /// Puts them together.
    pub fn new(part: Q, event: fn(Q::Event) -> AnyPartEvent) -> Self {
        Self { part, event }
    }
}

impl<Q: MachinePart<Ristretto255> + fmt::Debug> fmt::Debug for FeaturePart<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt(f)
    }
}

impl<Q> DronePart for FeaturePart<Q>
where
    Q: MachinePart<Ristretto255, Record = Infallible> + fmt::Debug + Send + Sync,
    Q::Command: Any + Clone,
{
    fn handle(&mut self, cx: &mut PartContext<'_>, from: Peer, message: &Message<Ristretto255>) -> Handled {
        cx.within(self.event, none, |cx| self.part.handle(cx, from, message))
    }

    fn command(&mut self, cx: &mut PartContext<'_>, command: &PartCommand) {
        if let Some(command) = command.content::<Q::Command>() {
            cx.within(self.event, none, |cx| self.part.command(cx, command.clone()));
        }
    }

    fn tick(&mut self, cx: &mut PartContext<'_>) {
        cx.within(self.event, none, |cx| self.part.tick(cx));
    }

    fn deadline(&self) -> Option<Duration> {
        self.part.deadline()
    }
}

/// A part of a feature makes no records.
const fn none(record: Infallible) -> Infallible {
    record
}

/// Parts of a program's features in one machine.
#[derive(Debug)]
pub struct FeatureParts(Vec<Box<dyn DronePart>>);

impl FeatureParts {
    /// Makes the parts of these features.
    #[must_use]
    pub fn of(features: Features) -> Self {
        Self(of(features).map(PartFeature::part).collect())
    }
}

impl MachinePart<Ristretto255> for FeatureParts {
    type Command = PartCommand;
    type Event = AnyPartEvent;
    type Record = Infallible;

    fn handle(&mut self, cx: &mut PartContext<'_>, from: Peer, message: &Message<Ristretto255>) -> Handled {
        let mut parts = self.0.iter_mut().map(|part| part.handle(cx, from, message));
        parts.find(|handled| *handled != Handled::No).unwrap_or(Handled::No)
    }

    fn command(&mut self, cx: &mut PartContext<'_>, command: PartCommand) {
        self.0.iter_mut().for_each(|part| part.command(cx, &command));
    }

    fn tick(&mut self, cx: &mut PartContext<'_>) {
        self.0.iter_mut().for_each(|part| part.tick(cx));
    }

    fn deadline(&self) -> Option<Duration> {
        self.0.iter().map(|part| part.deadline()).fold(None, earlier)
    }
}

/// The commands that give the parts of these features what they use of the keyring.
pub(crate) fn keys(features: Features, keyring: &Keyring<Ristretto255>) -> Vec<PartCommand> {
    of(features).filter_map(|feature| feature.keys(keyring)).collect()
}

fn of(features: Features) -> impl Iterator<Item = &'static dyn PartFeature> {
    features.iter().filter_map(|feature| feature.part())
}
