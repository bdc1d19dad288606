//! Commands to features, and the parts that features put beside the role of a node.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_machine::{Context, Handled, MachinePart, Peer, Route};
use quiver_message::Message;

use crate::NodeEvent;

/// A command to a feature, which is lost on machines that do not know its type.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyFeatureCommand(..)")]
pub struct AnyFeatureCommand(Arc<dyn Any + Send + Sync>);

impl AnyFeatureCommand {
    /// A command of this type.
    pub fn new(command: impl Any + Send + Sync) -> Self {
        Self(Arc::new(command))
    }

    /// The command, if it is of this type.
    pub(crate) fn read<C: Any + Clone>(&self) -> Option<C> {
        self.0.downcast_ref().cloned()
    }
}

/// A command to the role of a node which a feature has extended.
#[derive(Clone, Debug, derive_more::From)]
pub enum RoleCommand<C> {
    /// A command to the role.
    #[from]
    Role(C),
    /// A command to the feature's extension.
    Feature(AnyFeatureCommand),
}

/// A feature's part, with the commands and events of the world.
#[derive(Debug, Default)]
pub(crate) struct FeaturePart<P>(pub(crate) P);

/// The context of a part within a [`FeaturePart`].
type WorldContext<'a, S, P> = Context<'a, S, NodeEvent, <P as MachinePart<S>>::Record>;

impl<P> FeaturePart<P> {
    /// Calls the part with a context of its own, whose events become events of the node.
    fn within<S: Suite, T>(
        &mut self,
        cx: &mut WorldContext<'_, S, P>,
        act: impl FnOnce(&mut P, &mut Context<'_, S, P::Event, P::Record>) -> T,
    ) -> T
    where
        P: MachinePart<S>,
        NodeEvent: From<P::Event>,
    {
        cx.within(NodeEvent::from, |record| record, |cx| act(&mut self.0, cx))
    }
}

impl<S: Suite, P: MachinePart<S>> MachinePart<S> for FeaturePart<P>
where
    P::Command: Any + Clone,
    NodeEvent: From<P::Event>,
{
    type Command = AnyFeatureCommand;
    type Event = NodeEvent;
    type Record = P::Record;

    const TAKES_MESSAGES: bool = P::TAKES_MESSAGES;

    fn connected(&mut self, cx: &mut WorldContext<'_, S, P>, peer: Peer, route: Route) {
        self.within(cx, |part, cx| part.connected(cx, peer, route));
    }

    fn disconnected(&mut self, cx: &mut WorldContext<'_, S, P>, peer: Peer) {
        self.within(cx, |part, cx| part.disconnected(cx, peer));
    }

    fn handle(&mut self, cx: &mut WorldContext<'_, S, P>, from: Peer, message: &Message<S>) -> Handled {
        self.within(cx, |part, cx| part.handle(cx, from, message))
    }

    fn command(&mut self, cx: &mut WorldContext<'_, S, P>, command: AnyFeatureCommand) {
        if let Some(command) = command.read() {
            self.within(cx, |part, cx| part.command(cx, command));
        }
    }

    fn tick(&mut self, cx: &mut WorldContext<'_, S, P>) {
        self.within(cx, P::tick);
    }

    fn deadline(&self) -> Option<Duration> {
        self.0.deadline()
    }
}
