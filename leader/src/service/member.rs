//! The leader that runs, as features' tasks see it.

use async_trait::async_trait;
use quiver_machine::Either;
use quiver_net::{Handle, Multiaddr, PeerId, Stopped};
use quiver_service::drone::feature::{RoleCommand, RoleLook, RoleMachine, RunningNode};

use super::ServiceLeader;

/// A running leader.
pub(super) struct RunningMember(pub(super) Handle<ServiceLeader>);

#[async_trait]
impl RunningNode for RunningMember {
    fn peer_id(&self) -> PeerId {
        self.0.peer_id()
    }

    async fn listening(&self) -> Option<Vec<Multiaddr>> {
        self.0.listening().await.ok()
    }

    fn dial_soon(&self) {
        self.0.dial_soon();
    }

    async fn look(&self, look: RoleLook) -> Result<(), Stopped> {
        self.0.inspect(|machine: &ServiceLeader| look(RoleMachine::Leader(machine))).await
    }

    async fn command(&self, command: RoleCommand) -> Result<(), Stopped> {
        match command {
            RoleCommand::Leader(command) => self.0.command(Either::Left(command.into())).await,
            RoleCommand::Edge(_) => Ok(()),
        }
    }
}
