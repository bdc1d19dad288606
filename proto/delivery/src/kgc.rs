//! A KGC with its deliveries, as one machine for one driver and one node in the network.

use core::time::Duration;

use quiver_ainq::Suite;
use quiver_enrolment::{Kgc, KgcCommand, KgcEvent, KgcRecord};
use quiver_machine::{Context, Either, Handled, MachinePart, Node, Peer, Route, earlier};
use quiver_message::Message;

use crate::attributes::{AttributeServer, IssuerCommand, IssuerEvent, KeyIssued};
pub use crate::server::DEFAULT_RATE;

/// Deliveries of a KGC. `R` releases shares of condition keys, or is `()`.
#[derive(Debug)]
pub struct Deliveries<S: Suite, R> {
    /// Attribute keys.
    pub keys: AttributeServer<S>,
    /// Shares of condition keys.
    pub shares: R,
}

/// Command to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryCommand<C> {
    /// Command to the attribute authorities.
    Keys(IssuerCommand),
    /// Command to the release of key shares.
    Shares(C),
}

/// Event of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryEvent<E> {
    /// Event of the attribute authorities.
    Keys(IssuerEvent),
    /// Event of the release of key shares.
    Shares(E),
}

/// Durable record of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryRecord<R> {
    /// An attribute key was issued.
    Keys(KeyIssued),
    /// A key share was released.
    Shares(R),
}

/// A KGC with its deliveries.
pub type KgcNode<S, R> = Node<Kgc<S>, Deliveries<S, R>>;

/// Commands of a [`KgcNode`], for commands `C` of its release.
pub type KgcNodeCommand<C> = Either<KgcCommand, DeliveryCommand<C>>;
/// Events of a [`KgcNode`], for events `E` of its release.
pub type KgcNodeEvent<E> = Either<KgcEvent, DeliveryEvent<E>>;
/// Durable records of a [`KgcNode`], for records `R` of its release.
pub type KgcNodeRecord<R> = Either<KgcRecord, DeliveryRecord<R>>;

/// The context of the deliveries.
type DeliveryContext<'a, S, R> = Context<
    'a,
    S,
    DeliveryEvent<<R as MachinePart<S>>::Event>,
    DeliveryRecord<<R as MachinePart<S>>::Record>,
>;

impl<S: Suite, R: MachinePart<S>> Deliveries<S, R> {
    fn keys<T>(
        &mut self,
        cx: &mut DeliveryContext<'_, S, R>,
        act: impl FnOnce(&mut AttributeServer<S>, &mut Context<'_, S, IssuerEvent, KeyIssued>) -> T,
    ) -> T {
        cx.within(DeliveryEvent::Keys, DeliveryRecord::Keys, |cx| act(&mut self.keys, cx))
    }

    fn shares<T>(
        &mut self,
        cx: &mut DeliveryContext<'_, S, R>,
        act: impl FnOnce(&mut R, &mut Context<'_, S, R::Event, R::Record>) -> T,
    ) -> T {
        cx.within(DeliveryEvent::Shares, DeliveryRecord::Shares, |cx| act(&mut self.shares, cx))
    }
}

impl<S: Suite, R: MachinePart<S>> MachinePart<S> for Deliveries<S, R> {
    type Command = DeliveryCommand<R::Command>;
    type Event = DeliveryEvent<R::Event>;
    type Record = DeliveryRecord<R::Record>;

    fn connected(&mut self, cx: &mut DeliveryContext<'_, S, R>, peer: Peer, route: Route) {
        self.keys(cx, |keys, cx| keys.connected(cx, peer, route));
        self.shares(cx, |shares, cx| shares.connected(cx, peer, route));
    }

    fn disconnected(&mut self, cx: &mut DeliveryContext<'_, S, R>, peer: Peer) {
        self.keys(cx, |keys, cx| keys.disconnected(cx, peer));
        self.shares(cx, |shares, cx| shares.disconnected(cx, peer));
    }

    fn handle(&mut self, cx: &mut DeliveryContext<'_, S, R>, from: Peer, message: &Message<S>) -> Handled {
        match self.keys(cx, |keys, cx| keys.handle(cx, from, message)) {
            Handled::No => self.shares(cx, |shares, cx| shares.handle(cx, from, message)),
            handled => handled,
        }
    }

    fn command(&mut self, cx: &mut DeliveryContext<'_, S, R>, command: Self::Command) {
        match command {
            DeliveryCommand::Keys(command) => self.keys(cx, |keys, cx| keys.command(cx, command)),
            DeliveryCommand::Shares(command) => self.shares(cx, |shares, cx| shares.command(cx, command)),
        }
    }

    fn tick(&mut self, cx: &mut DeliveryContext<'_, S, R>) {
        self.keys(cx, MachinePart::tick);
        self.shares(cx, MachinePart::tick);
    }

    fn deadline(&self) -> Option<Duration> {
        earlier(MachinePart::<S>::deadline(&self.keys), self.shares.deadline())
    }
}
