//! A KGC with its deliveries, as one machine for one driver and one node in the network.

use core::time::Duration;

use quiver_ainq::Suite;
use quiver_enrolment::{Kgc, KgcCommand, KgcEvent, KgcRecord};
use quiver_machine::{Context, Either, Handled, MachinePart, Node, Peer, Route, earlier};
use quiver_message::Message;

use crate::attributes::{AttributeServer, IssuerCommand, IssuerEvent, KeyIssued};
use crate::release::{ReleaseCommand, ReleaseEvent, ShareReleased, ShareServer};

/// Deliveries of a KGC.
#[derive(Debug)]
pub struct Deliveries<S: Suite> {
    /// Attribute keys.
    pub keys: AttributeServer<S>,
    /// Shares of condition keys, if it has any of a master key.
    pub shares: Option<ShareServer<S>>,
}

/// Command to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryCommand {
    /// Command to the attribute authorities.
    Keys(IssuerCommand),
    /// Command to the release of key shares.
    Shares(ReleaseCommand),
}

/// Event of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// Event of the attribute authorities.
    Keys(IssuerEvent),
    /// Event of the release of key shares.
    Shares(ReleaseEvent),
}

/// Durable record of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryRecord {
    /// An attribute key was issued.
    Keys(KeyIssued),
    /// A key share was released.
    Shares(ShareReleased),
}

/// A KGC with its deliveries.
pub type KgcNode<S> = Node<Kgc<S>, Deliveries<S>>;

/// Commands of a [`KgcNode`].
pub type KgcNodeCommand = Either<KgcCommand, DeliveryCommand>;
/// Events of a [`KgcNode`].
pub type KgcNodeEvent = Either<KgcEvent, DeliveryEvent>;
/// Durable records of a [`KgcNode`].
pub type KgcNodeRecord = Either<KgcRecord, DeliveryRecord>;

/// The context of the deliveries.
type DeliveryContext<'a, S> = Context<'a, S, DeliveryEvent, DeliveryRecord>;

impl<S: Suite> Deliveries<S> {
    fn keys<T>(
        &mut self,
        cx: &mut DeliveryContext<'_, S>,
        act: impl FnOnce(&mut AttributeServer<S>, &mut Context<'_, S, IssuerEvent, KeyIssued>) -> T,
    ) -> T {
        cx.within(DeliveryEvent::Keys, DeliveryRecord::Keys, |cx| act(&mut self.keys, cx))
    }

    fn shares<T>(
        &mut self,
        cx: &mut DeliveryContext<'_, S>,
        act: impl FnOnce(&mut Option<ShareServer<S>>, &mut Context<'_, S, ReleaseEvent, ShareReleased>) -> T,
    ) -> T {
        cx.within(DeliveryEvent::Shares, DeliveryRecord::Shares, |cx| act(&mut self.shares, cx))
    }
}

impl<S: Suite> MachinePart<S> for Deliveries<S> {
    type Command = DeliveryCommand;
    type Event = DeliveryEvent;
    type Record = DeliveryRecord;

    fn connected(&mut self, cx: &mut DeliveryContext<'_, S>, peer: Peer, route: Route) {
        self.keys(cx, |keys, cx| keys.connected(cx, peer, route));
        self.shares(cx, |shares, cx| shares.connected(cx, peer, route));
    }

    fn disconnected(&mut self, cx: &mut DeliveryContext<'_, S>, peer: Peer) {
        self.keys(cx, |keys, cx| keys.disconnected(cx, peer));
        self.shares(cx, |shares, cx| shares.disconnected(cx, peer));
    }

    fn handle(&mut self, cx: &mut DeliveryContext<'_, S>, from: Peer, message: &Message<S>) -> Handled {
        match self.keys(cx, |keys, cx| keys.handle(cx, from, message)) {
            Handled::No => self.shares(cx, |shares, cx| shares.handle(cx, from, message)),
            handled => handled,
        }
    }

    fn command(&mut self, cx: &mut DeliveryContext<'_, S>, command: DeliveryCommand) {
        match command {
            DeliveryCommand::Keys(command) => self.keys(cx, |keys, cx| keys.command(cx, command)),
            DeliveryCommand::Shares(command) => self.shares(cx, |shares, cx| shares.command(cx, command)),
        }
    }

    fn tick(&mut self, cx: &mut DeliveryContext<'_, S>) {
        self.keys(cx, MachinePart::tick);
        self.shares(cx, MachinePart::tick);
    }

    fn deadline(&self) -> Option<Duration> {
        earlier(MachinePart::<S>::deadline(&self.keys), MachinePart::<S>::deadline(&self.shares))
    }
}
