//! An edge under its name or without one: for programs that run either.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_ainq::{DroneKeypair, Name, Suite, UnixTime};
use quiver_crypto::Secret;
use quiver_group::edge::{Edge, EdgeCommand, EdgeStatus};
use quiver_machine::{Input, Machine, Now, Output, Snapshot, forward_primary};
use rand_core::CryptoRngCore;

use super::anonymous_edge::{AnonymousEdge, AnonymousEvent};

/// An [`Edge`] or an [`AnonymousEdge`].
#[derive(Debug, derive_more::From)]
#[expect(clippy::large_enum_variant, reason = "one per machine, and most often the large one")]
pub enum AnyEdge<S: Suite> {
    /// An edge under its name.
    #[from]
    Named(Edge<S>),
    /// An anonymous edge.
    Anonymous(Box<AnonymousEdge<S>>),
}

impl<S: Suite> From<AnonymousEdge<S>> for AnyEdge<S> {
    fn from(edge: AnonymousEdge<S>) -> Self {
        Self::Anonymous(Box::new(edge))
    }
}

impl<S: Suite> AnyEdge<S> {
    /// The edge under its name, if it is one.
    pub const fn named(&self) -> Option<&Edge<S>> {
        match self {
            Self::Named(edge) => Some(edge),
            Self::Anonymous(_) => None,
        }
    }

    /// The state of the edge.
    pub fn status(&self) -> EdgeStatus {
        match self {
            Self::Named(edge) => edge.status(),
            Self::Anonymous(edge) => edge.status(),
        }
    }

    /// Returns the drone's own key, once enrolled; an anonymous one has none.
    pub fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.named()?.keypair()
    }

    /// Time at which the key of the epoch held was made, by the leader's clock.
    pub fn key_issued_at(&self) -> Option<UnixTime> {
        match self {
            Self::Named(edge) => edge.key_issued_at(),
            Self::Anonymous(edge) => edge.key_issued_at(),
        }
    }

    /// The leader of the epoch held.
    pub fn leader_name(&self) -> Option<Name> {
        match self {
            Self::Named(edge) => edge.leader_name(),
            Self::Anonymous(edge) => edge.leader_name(),
        }
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        match self {
            Self::Named(edge) => edge.export(name),
            Self::Anonymous(edge) => edge.export(name),
        }
    }

    /// Signs the time of this drone's clock, as [`Edge::vouch`]; `None` for an anonymous edge.
    pub fn vouch(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        self.named()?.vouch(statement, rng)
    }

    /// Shares the header, as [`Edge::share_header`] does.
    pub fn share_header(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        match self {
            Self::Named(edge) => edge.share_header(shared),
            Self::Anonymous(edge) => edge.share_header(shared),
        }
    }
}

impl<S: Suite> Machine for AnyEdge<S> {
    type Command = EdgeCommand;
    type Event = AnonymousEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        match self {
            Self::Named(edge) => edge.handle_input(now, input, rng),
            Self::Anonymous(edge) => edge.handle_input(now, input, rng),
        }
    }

    fn poll_output(&mut self) -> Output<AnonymousEvent, Snapshot> {
        match self {
            Self::Named(edge) => edge.poll_output().map(AnonymousEvent::Edge, |record| record),
            Self::Anonymous(edge) => edge.poll_output(),
        }
    }
}

forward_primary! {
    impl[S: Suite] Primary<Suite = S> for AnyEdge<S> {
        Self::Named(edge) => edge,
        Self::Anonymous(edge) => edge,
    }
}
