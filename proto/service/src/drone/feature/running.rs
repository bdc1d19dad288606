//! Interface of features beside the machine of a running service: events and keys that they are told, tasks, status,
//! metrics, requests.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use quiver_ainq::{Deployment, Epoch, Name, Ristretto255};
use quiver_group::{Edge, EdgeCommand, EdgeEvent, Leader, LeaderCommand, LeaderEvent};
use quiver_machine::Now;
use quiver_net::{Multiaddr, NodeConfig, PeerId, Stopped};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{FeatureRequest, GivenAlias, ServiceParts};
use crate::drone::request::Answered;
use crate::drone::{Result, StateStore};

/// Stance in the status of a leader that stands by for another.
pub const STANDING_BY: &str = "standing by";

/// The machine of a drone that is in its group under its name.
#[derive(Clone, Copy, Debug)]
pub enum RoleMachine<'a> {
    /// Machine of an edge.
    Edge(&'a Edge<Ristretto255>),
    /// Machine of a leader.
    Leader(&'a Leader<Ristretto255>),
}

/// An event of a drone's machine.
#[derive(Clone, Copy, Debug)]
pub enum RoleEvent<'a> {
    /// Event of an edge, which may be anonymous.
    Edge {
        /// The event.
        event: &'a EdgeEvent,
        /// Epoch that it holds.
        epoch: Option<Epoch>,
    },
    /// Event of a leader.
    Leader(&'a LeaderEvent),
}

/// A command to a drone's machine. Machines of the other role do nothing.
#[derive(Clone, Debug)]
pub enum RoleCommand {
    /// Command to an edge.
    Edge(EdgeCommand),
    /// Command to a leader.
    Leader(LeaderCommand),
}

/// Reason for which a drone has no valid key, as far as its service knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyObstacle {
    /// A leader evicted it.
    Evicted,
    /// A leader removed it: it was evicted, or a copy of it took its place.
    Removed,
    /// The KGC revoked it.
    Revoked,
    /// The leader refuses it.
    Refused,
    /// The drone left, as it was told.
    Left,
    /// The drone's clock is far from those of others.
    Clock,
}

/// Holder of another name that a feature has for drones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasHolder {
    /// Name of the drone.
    pub name: String,
    /// Kind of the other name, for people, such as `system id`.
    pub kind: &'static str,
}

/// State of a drone that its features' parts are opened with.
#[derive(Clone, Copy, Debug)]
pub struct OpenContext<'a> {
    /// The deployment.
    pub deployment: &'a Deployment<Ristretto255>,
    /// The state file.
    pub store: &'a StateStore,
}

/// The service, as a feature's tasks see it.
pub struct ServiceContext<'a> {
    /// Configuration of its node.
    pub node: &'a NodeConfig,
    /// The group.
    pub group: &'a Name,
    /// Channels that are features' ([`ServiceFeature::channels`](super::ServiceFeature::channels)).
    pub channels: Vec<&'static str>,
    /// The node that runs.
    pub running: Arc<dyn RunningNode>,
}

impl fmt::Debug for ServiceContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext").field("group", &self.group).finish_non_exhaustive()
    }
}

/// A look at a machine.
pub type RoleLook = Box<dyn FnOnce(RoleMachine<'_>) + Send>;

/// A node that runs, whatever its machine.
#[async_trait]
pub trait RunningNode: Send + Sync {
    /// Identity of the node.
    fn peer_id(&self) -> PeerId;

    /// Addresses on which it listens, as soon as there is one; `None` once it has stopped.
    async fn listening(&self) -> Option<Vec<Multiaddr>>;

    /// Dials soon whoever is not connected.
    fn dial_soon(&self);

    /// Lets `look` see the machine, unless the drone is anonymous in its group.
    ///
    /// # Errors
    /// [`Stopped`] if the machine has stopped.
    async fn look(&self, look: RoleLook) -> std::result::Result<(), Stopped>;

    /// Gives the machine a command.
    ///
    /// # Errors
    /// [`Stopped`] if the machine has stopped.
    async fn command(&self, command: RoleCommand) -> std::result::Result<(), Stopped>;

    /// Reason for which there is no valid key; `None` if nothing but a leader is lacking.
    ///
    /// # Errors
    /// [`Stopped`] if the machine has stopped.
    async fn obstacle(&self) -> std::result::Result<Option<KeyObstacle>, Stopped> {
        Ok(None)
    }
}

impl dyn RunningNode + '_ {
    /// Takes what `look` finds in the machine; `None` if that has stopped, or the drone is anonymous.
    pub async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(RoleMachine<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (found, finding) = oneshot::channel();
        let look = move |machine: RoleMachine<'_>| {
            // The caller may have stopped waiting.
            let _ = found.send(look(machine));
        };
        self.look(Box::new(look)).await.ok()?;
        finding.await.ok()
    }
}

/// A feature's part in a service that runs. What the driver's task calls must not block.
#[async_trait]
pub trait RunningPart: fmt::Debug + Send + Sync {
    /// Name of the subcommand whose requests it answers; empty for none.
    fn name(&self) -> &'static str {
        ""
    }

    /// Starts its tasks beside the machine. They end with the service.
    fn start(&self, _service: &ServiceContext<'_>, _tasks: &mut JoinSet<()>) {}

    /// Looks at the machine after each batch of inputs, and again once the records of that batch are durable, if they
    /// were not: `durable` says whether they are. Called on the driver's task.
    fn look(&self, _now: Now, _machine: RoleMachine<'_>, _durable: bool) {}

    /// Takes note of an event before anybody else. Returns true if the event is this feature's alone, as messages on its
    /// channels are. Called on the driver's task.
    fn take(&self, _event: RoleEvent<'_>) -> bool {
        false
    }

    /// Registers its metrics.
    fn register(&self, _registry: &mut Registry) {}

    /// Adds its fields to the status of its drone, which has all others.
    ///
    /// # Errors
    /// In words, if they cannot be written as JSON.
    fn report(&self, _status: &mut Map<String, Value>) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Answers a request of its subcommand ([`FeatureCaller::ask`](super::FeatureCaller::ask)).
    ///
    /// # Errors
    /// A refusal, in words.
    async fn answer(&self, _node: &dyn RunningNode, _call: &Value) -> Answered {
        Err(format!("`{}` asks nothing of the running service", self.name()))
    }

    /// Finds the drone that an operator means by another name than its own.
    ///
    /// # Errors
    /// In words, if this feature knows no drone by it.
    fn drone_called(&self, alias: &str) -> std::result::Result<AliasHolder, String> {
        Err(format!("no drone is called {alias}"))
    }

    /// Says what does not work while a leader stands by, for its log.
    fn standing_by(&self) -> Option<&'static str> {
        None
    }
}

/// Parts of a program's features in one service. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct RunningParts(Vec<Arc<dyn RunningPart>>);

impl RunningParts {
    /// Opens the parts that these settings ask for.
    ///
    /// # Errors
    /// Errors of [`ServicePart::open`](super::ServicePart::open).
    pub async fn open(settings: &ServiceParts, context: OpenContext<'_>) -> Result<Self> {
        let mut parts = Vec::new();
        for part in settings {
            parts.extend(part.open(context).await?);
        }
        Ok(Self(parts))
    }

    /// Starts their tasks.
    pub fn start(&self, service: &ServiceContext<'_>, tasks: &mut JoinSet<()>) {
        self.0.iter().for_each(|part| part.start(service, tasks));
    }

    /// Lets them look at the machine.
    pub fn look(&self, now: Now, machine: RoleMachine<'_>, durable: bool) {
        self.0.iter().for_each(|part| part.look(now, machine, durable));
    }

    /// Tells them an event; true if it is a feature's alone.
    pub fn take(&self, event: RoleEvent<'_>) -> bool {
        // Each is told: some take note of events that are everybody's.
        self.0.iter().filter(|part| part.take(event)).count() > 0
    }

    /// Registers their metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.0.iter().for_each(|part| part.register(registry));
    }

    /// Adds their fields to a status.
    ///
    /// # Errors
    /// The error that was answered; in words, if a field cannot be written.
    pub fn with_report(&self, answered: Answered) -> Answered {
        let mut status = answered?;
        if let Some(fields) = status.as_object_mut() {
            self.0.iter().try_for_each(|part| part.report(fields))?;
        }
        Ok(status)
    }

    /// Has the part of a feature answer a request.
    ///
    /// # Errors
    /// The part's refusal, or that this service has no such part.
    pub async fn answer(&self, node: &dyn RunningNode, request: &FeatureRequest) -> Answered {
        self.part(&request.feature)?.answer(node, &request.call).await
    }

    /// Finds the drone that has this other name.
    ///
    /// # Errors
    /// In words, if there is no such drone or feature.
    pub fn drone_called(&self, given: &GivenAlias) -> std::result::Result<AliasHolder, String> {
        self.part(&given.part)?.drone_called(&given.alias)
    }

    /// The part of this name.
    fn part(&self, name: &str) -> std::result::Result<&dyn RunningPart, String> {
        let part = self.0.iter().find(|part| part.name() == name);
        part.map(|part| &**part).ok_or_else(|| format!("the running service was built without `{name}`"))
    }

    /// Finds the drone that has this other name by any feature.
    pub fn any_drone_called(&self, alias: &str) -> Option<AliasHolder> {
        self.0.iter().find_map(|part| part.drone_called(alias).ok())
    }

    /// Names what does not work while a leader stands by.
    pub fn standing_by(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().filter_map(|part| part.standing_by())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Part that takes every event, and has a field and another name for one drone.
    #[derive(Debug)]
    struct TidePart;

    impl RunningPart for TidePart {
        fn name(&self) -> &'static str {
            "tides"
        }

        fn take(&self, _: RoleEvent<'_>) -> bool {
            true
        }

        fn report(&self, status: &mut Map<String, Value>) -> std::result::Result<(), String> {
            status.insert("tides".into(), "high".into());
            Ok(())
        }

        fn drone_called(&self, alias: &str) -> std::result::Result<AliasHolder, String> {
            let holder = AliasHolder { name: "edge-1".into(), kind: "berth" };
            (alias == "7").then_some(holder).ok_or_else(|| "an empty berth".into())
        }
    }

    fn parts() -> RunningParts {
        RunningParts(vec![Arc::new(TidePart)])
    }

    #[test]
    fn status_has_the_fields_of_features_and_an_error_stays_one() {
        assert_eq!(parts().with_report(Ok(json!({ "slot": 1 }))), Ok(json!({ "slot": 1, "tides": "high" })));
        assert_eq!(parts().with_report(Ok("text".into())), Ok("text".into()));
        assert_eq!(parts().with_report(Err("why".into())), Err("why".into()));
        assert_eq!(RunningParts::default().with_report(Ok(json!({}))), Ok(json!({})));
    }

    #[test]
    fn event_is_taken_by_a_feature_or_by_nobody() {
        let event = RoleEvent::Edge { event: &EdgeEvent::Left, epoch: None };
        assert!(parts().take(event));
        assert!(!RunningParts::default().take(event));
    }

    #[test]
    fn other_names_of_drones_are_those_of_a_feature_that_is_there() {
        let name = |found: std::result::Result<AliasHolder, String>| found.map(|holder| holder.name);
        let given = |part: &str, alias: &str| GivenAlias { part: part.into(), alias: alias.into() };
        assert_eq!(name(parts().drone_called(&given("tides", "7"))), Ok("edge-1".into()));
        assert_eq!(name(parts().drone_called(&given("tides", "8"))), Err("an empty berth".into()));
        let absent = name(parts().drone_called(&given("winds", "7"))).expect_err("there is none");
        assert!(absent.contains("built without `winds`"), "{absent}");
        assert_eq!(parts().any_drone_called("8"), None);
        assert!(parts().any_drone_called("7").is_some());
    }
}
