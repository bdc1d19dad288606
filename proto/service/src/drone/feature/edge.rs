//! Interface of features that make an edge a member in another way than under its name.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use quiver_ainq::{Deployment, DroneKeypair, Name, Ristretto255, UnixTime};
use quiver_crypto::Secret;
use quiver_group::edge::{Edge, EdgeCommand, EdgeEvent, EdgeStatus, EdgeTiming};
use quiver_kem::KemSetting;
use quiver_machine::{Input, Machine, Now, Output, Primary, Snapshot, forward_primary};
use rand_core::CryptoRngCore;

use super::PartEvent;
use crate::drone::fetch::KeyClient;
use crate::drone::{Result, StateStore};

/// Memberships that a feature makes for an edge, one after another, in place of those under its name.
#[async_trait(?Send)]
pub trait Memberships: Sync {
    /// Name of the setting that asks for them.
    fn setting(&self) -> &'static str;

    /// Advice for people while there is no membership, and no reason is known.
    fn advice(&self) -> &'static str;

    /// Name of the attachment of the state file that keeps what a membership persists.
    fn attachment(&self) -> &'static str;

    /// Makes memberships until a signal comes, or the drone has left.
    ///
    /// # Errors
    /// Errors of the settings, the stored state and the network.
    async fn keep(&self, drone: &EnrolledDrone, runner: &mut dyn MembershipRunner) -> Result<()>;
}

/// An enrolled drone, as memberships of a feature need it.
#[derive(Debug)]
pub struct EnrolledDrone {
    /// The deployment.
    pub deployment: Deployment<Ristretto255>,
    /// Key of the drone.
    pub keypair: Arc<DroneKeypair<Ristretto255>>,
    /// The group to join.
    pub group: Name,
    /// Client of the KGCs.
    pub client: KeyClient,
    /// The state file.
    pub store: StateStore,
    /// Times of an edge.
    pub timing: EdgeTiming,
    /// Second factor that the deployment file says.
    pub kem: KemSetting,
}

/// The service of an edge, which runs the machines of memberships.
#[async_trait(?Send)]
pub trait MembershipRunner {
    /// Runs a machine, with a transport key and connections of its own, until it reports the end of its membership,
    /// which is returned; `None` if a signal came first.
    ///
    /// # Errors
    /// Errors of the network and of the state file.
    async fn run(&mut self, machine: Box<dyn FeatureEdge>) -> Result<Option<Box<dyn MembershipEvent>>>;

    /// Waits for a signal. Cancel-safe.
    async fn stopped(&mut self);
}

/// The machine of a membership that a feature makes.
pub trait FeatureEdge:
    Primary<Suite = Ristretto255, Command = EdgeCommand, Event = GroupEdgeEvent, Record = Snapshot>
    + fmt::Debug
    + Send
    + Sync
{
    /// The state of the edge.
    fn status(&self) -> EdgeStatus;

    /// Time at which the key of the epoch held was made, by the leader's clock.
    fn key_issued_at(&self) -> Option<UnixTime>;

    /// The leader of the epoch held.
    fn leader_name(&self) -> Option<Name>;

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    fn export(&self, name: &Name) -> Option<Secret<32>>;
}

/// Event of an edge.
#[derive(Debug)]
pub enum GroupEdgeEvent {
    /// Event that every edge reports.
    Edge(EdgeEvent),
    /// Event of a membership that a feature made.
    Membership(Box<dyn MembershipEvent>),
}

/// Event of a membership that a feature made.
pub trait MembershipEvent: PartEvent + Any {
    /// Logs the event.
    fn log(&self);

    /// Returns true if the membership, or the attempt, is over.
    fn is_end(&self) -> bool;

    /// Explains why the drone is no member, if no other membership is to follow soon.
    fn exclusion(&self) -> Option<Exclusion>;
}

/// Reason why a drone is no member after a membership that a feature made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// True if it was evicted; otherwise the leader refuses it.
    pub evicted: bool,
    /// The reason, for people.
    pub reason: String,
    /// Advice about it.
    pub next: &'static str,
}

/// An edge under its name, or the machine of a membership that a feature makes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per machine, and most often the large one")]
pub enum GroupEdge {
    /// An edge under its name.
    Named(Edge<Ristretto255>),
    /// A membership that a feature makes.
    Feature(Box<dyn FeatureEdge>),
}

impl From<Edge<Ristretto255>> for GroupEdge {
    fn from(edge: Edge<Ristretto255>) -> Self {
        Self::Named(edge)
    }
}

impl GroupEdge {
    /// The edge under its name, if it is one.
    #[must_use]
    pub const fn named(&self) -> Option<&Edge<Ristretto255>> {
        match self {
            Self::Named(edge) => Some(edge),
            Self::Feature(_) => None,
        }
    }

    /// The state of the edge.
    #[must_use]
    pub fn status(&self) -> EdgeStatus {
        match self {
            Self::Named(edge) => edge.status(),
            Self::Feature(edge) => edge.status(),
        }
    }

    /// The drone's own key, once enrolled; `None` without a name.
    #[must_use]
    pub fn keypair(&self) -> Option<&DroneKeypair<Ristretto255>> {
        self.named()?.keypair()
    }

    /// Time at which the key of the epoch held was made, by the leader's clock.
    #[must_use]
    pub fn key_issued_at(&self) -> Option<UnixTime> {
        match self {
            Self::Named(edge) => edge.key_issued_at(),
            Self::Feature(edge) => edge.key_issued_at(),
        }
    }

    /// The leader of the epoch held.
    #[must_use]
    pub fn leader_name(&self) -> Option<Name> {
        match self {
            Self::Named(edge) => edge.leader_name(),
            Self::Feature(edge) => edge.leader_name(),
        }
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    #[must_use]
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        match self {
            Self::Named(edge) => edge.export(name),
            Self::Feature(edge) => edge.export(name),
        }
    }

    /// Signs the time of this drone's clock, as [`Edge::vouch`]; `None` without a name.
    pub fn vouch(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        self.named()?.vouch(statement, rng)
    }
}

impl Machine for GroupEdge {
    type Command = EdgeCommand;
    type Event = GroupEdgeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        match self {
            Self::Named(edge) => edge.handle_input(now, input, rng),
            Self::Feature(edge) => edge.handle_input(now, input, rng),
        }
    }

    fn poll_output(&mut self) -> Output<GroupEdgeEvent, Snapshot> {
        match self {
            Self::Named(edge) => edge.poll_output().map(GroupEdgeEvent::Edge, |record| record),
            Self::Feature(edge) => edge.poll_output(),
        }
    }
}

forward_primary! {
    impl Primary<Suite = Ristretto255> for GroupEdge {
        Self::Named(edge) => edge,
        Self::Feature(edge) => edge,
    }
}
