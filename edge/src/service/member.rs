//! The edge that runs, as features' tasks see it.

use async_trait::async_trait;
use quiver_machine::Either;
use quiver_net::{Multiaddr, PeerId, Stopped};
use quiver_service::drone::RunningDrone;
use quiver_service::drone::feature::{
    GroupEdge, KeyObstacle, RoleCommand, RoleLook, RoleMachine, RunningNode,
};

use super::ServiceEdge;
use super::connection_history::ConnectionHistory;
use crate::control;

/// A running edge, and what it learned.
pub(super) struct RunningMember {
    pub(super) edge: RunningDrone<GroupEdge>,
    pub(super) history: ConnectionHistory,
}

#[async_trait]
impl RunningNode for RunningMember {
    fn peer_id(&self) -> PeerId {
        self.edge.machine.peer_id()
    }

    async fn listening(&self) -> Option<Vec<Multiaddr>> {
        self.edge.machine.listening().await.ok()
    }

    fn dial_soon(&self) {
        self.edge.machine.dial_soon();
    }

    async fn look(&self, look: RoleLook) -> Result<(), Stopped> {
        let look = |machine: &ServiceEdge| machine.named().map(RoleMachine::Edge).map(look);
        self.edge.machine.inspect(look).await.map(drop)
    }

    async fn command(&self, command: RoleCommand) -> Result<(), Stopped> {
        match command {
            RoleCommand::Edge(command) => self.edge.machine.command(Either::Left(command)).await,
            RoleCommand::Leader(_) => Ok(()),
        }
    }

    async fn obstacle(&self) -> Result<Option<KeyObstacle>, Stopped> {
        control::obstacle(&self.edge, &self.history).await
    }
}
