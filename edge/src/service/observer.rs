//! Observers of a drone, for whom its service runs: events are printed by the program, or queued for an
//! application.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use quiver_ainq::{Epoch, Name};
use quiver_crypto::Secret;
use quiver_group::edge::EdgeStatus;
use quiver_group::{EdgeCommand, EdgeEvent};
use quiver_machine::{Either, Route};
use quiver_net::Stopped;
use quiver_service::drone::RunningDrone;
use quiver_service::drone::feature::{AnyPartEvent, GroupEdge, GroupEdgeEvent};
use quiver_service::drone::output::StandardOutput;
use quiver_service::drone::send::Handed;
use serde_json::json;

use super::{Task, confirmation};

/// Event of the machine.
pub(crate) type EdgeNodeEvent = Either<GroupEdgeEvent, AnyPartEvent>;

/// Receives what happens to the drone. Called on the driver's task: it must not block.
pub(crate) trait Observer: Send + Sync {
    /// The state file is open, whatever was given fits, and a machine is about to run. It may be called again.
    fn opened(&self) {}

    /// The machine that joins runs, and begins with this status.
    fn running(&self, status: EdgeStatus, edge: Arc<dyn RunningEdge>) {
        let _ = (status, edge);
    }

    /// Notes a connection with a service.
    fn connected(&self, route: Route) {
        let _ = route;
    }

    /// Notes that a connection is lost.
    fn disconnected(&self, route: Route) {
        let _ = route;
    }

    /// An event of the machine, which has this status.
    fn event(&self, status: &EdgeStatus, event: &EdgeNodeEvent);
}

/// A running edge, whatever its suite.
#[async_trait]
pub(crate) trait RunningEdge: Send + Sync {
    /// The state of the machine.
    async fn status(&self) -> Result<EdgeStatus, Stopped>;

    /// Gives a command to join or to leave.
    async fn command(&self, command: EdgeCommand) -> Result<(), Stopped>;

    /// Hands a message to the group to the leader's connection, or says why not.
    async fn send(&self, channel: Name, data: Vec<u8>, signed: bool) -> Result<Handed, String>;

    /// Confirms what was handed to the leader's connection: the leader has answered after it, and has proven that the key
    /// that it was sealed under is the current one. Or says why that is not known.
    async fn confirm(&self, handed: Handed) -> Result<(), &'static str>;

    /// An application's key under this name, and the epoch it is of; `None` unless in sync.
    async fn export(&self, name: Name) -> Result<Option<(Epoch, Secret<32>)>, Stopped>;
}

#[async_trait]
impl RunningEdge for RunningDrone<GroupEdge> {
    async fn status(&self) -> Result<EdgeStatus, Stopped> {
        self.machine.inspect(|machine| machine.status()).await
    }

    async fn command(&self, command: EdgeCommand) -> Result<(), Stopped> {
        self.machine.carry_out(Either::Left(command)).await
    }

    async fn send(&self, channel: Name, data: Vec<u8>, signed: bool) -> Result<Handed, String> {
        let handed = confirmation::send(self, EdgeCommand::Send { channel, data, signed }).await?;
        handed.ok_or_else(|| "not sent: no leader is connected that leads the group; try again".into())
    }

    async fn confirm(&self, handed: Handed) -> Result<(), &'static str> {
        confirmation::confirm(self, handed).await
    }

    async fn export(&self, name: Name) -> Result<Option<(Epoch, Secret<32>)>, Stopped> {
        self.machine.inspect(move |machine| Some((machine.status().epoch?, machine.export(&name)?))).await
    }
}

/// Prints for people, or as JSON lines.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) output: StandardOutput,
    /// True once it has been said that the drone is a member.
    pub(crate) joined: AtomicBool,
    /// Task of the service. The result of [`Task::Enrol`] is the command's, which fails if it cannot be printed.
    pub(crate) task: Task,
}

impl Observer for Printer {
    fn event(&self, status: &EdgeStatus, event: &EdgeNodeEvent) {
        let output = &self.output;
        let group = status.group.as_ref().map_or("-", Name::as_str);
        match event {
            Either::Left(GroupEdgeEvent::Edge(event)) => self.edge_event(status, group, event),
            Either::Left(GroupEdgeEvent::Membership(event)) => output.part(group, &**event),
            Either::Right(event) => output.part(group, &**event),
        }
    }
}

impl Printer {
    fn edge_event(&self, status: &EdgeStatus, group: &str, event: &EdgeEvent) {
        let output = &self.output;
        match event {
            EdgeEvent::Enrolled { name } if output.json => {
                output.event(&json!({"event": "enrolled", "name": name.as_str()}));
            }
            EdgeEvent::Enrolled { .. } if self.task == Task::Enrol => {}
            EdgeEvent::Enrolled { name } => output.line(&format!("enrolled as {name}")),
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                let (term, counter) = (epoch.term, epoch.counter);
                let digest = hex::encode(&digest[..8]);
                if !self.joined.swap(true, Ordering::Relaxed) && !output.json {
                    output.line(&format!("joined {group}: a member in slot {slot}, in sync"));
                }
                output.event(
                    &json!({"event": "key", "term": term, "counter": counter, "slot": slot, "digest": digest}),
                );
            }
            EdgeEvent::Message { channel, data, source } => output.message(group, channel, data, source),
            EdgeEvent::Left | EdgeEvent::Evicted if !output.json => {
                self.joined.store(false, Ordering::Relaxed);
                let what = if *event == EdgeEvent::Left { "left" } else { "evicted from" };
                output.line(&format!("{what} the group"));
            }
            EdgeEvent::Left => output.event(&json!({"event": "left"})),
            EdgeEvent::Evicted => output.event(&json!({"event": "evicted"})),
            EdgeEvent::Refused(reason) => {
                let by = refuser(status);
                output.event(&json!({"event": "refused", "by": by, "reason": reason.to_string()}));
            }
            EdgeEvent::Equivocation { leader, .. } => {
                output.event(&json!({"event": "leader refused", "leader": leader.as_str()}));
            }
            EdgeEvent::SendFailed(_)
            | EdgeEvent::EnrolmentTrouble(_)
            | EdgeEvent::RevocationsStale
            | EdgeEvent::RevocationList { .. }
            | EdgeEvent::MembershipDropped { .. }
            | EdgeEvent::KemDiffers { .. }
            | EdgeEvent::Blamed { .. } => {}
        }
    }
}

/// Names the service that refuses a drone of this status.
pub(super) const fn refuser(status: &EdgeStatus) -> &'static str {
    if status.name.is_some() { "leader" } else { "kgc" }
}
