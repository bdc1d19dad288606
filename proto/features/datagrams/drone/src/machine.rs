//! The drone's machine, as its bridge asks it for signatures.

use std::time::Duration;

use quiver_ainq::{DronePublicKey, Ristretto255, Signature, Slot};
use quiver_machine::Now;
use quiver_service::clock;
use quiver_service::drone::feature::{RoleMachine, RunningNode};
use rand::rngs::OsRng;

/// Signs a statement of this member's datagrams; `None` if it cannot.
pub(crate) async fn sign(node: &dyn RunningNode, statement: Vec<u8>) -> Option<Signature<Ristretto255>> {
    let sign = move |machine: RoleMachine<'_>| match machine {
        RoleMachine::Edge(edge) => edge.sign_datagram(&statement, &mut OsRng),
        RoleMachine::Leader(leader) => leader.sign_datagram(&statement, &mut OsRng),
    };
    node.inspect(sign).await.flatten()
}

/// Returns true if this drone may sign datagrams from this slot.
pub(crate) async fn may_sign(
    node: &dyn RunningNode,
    slot: Slot,
    drone: DronePublicKey<Ristretto255>,
) -> bool {
    // Only the wall clock is asked: for the end of the drone's identity.
    let now = Now { monotonic: Duration::ZERO, unix: clock::unix_now() };
    let may = move |machine: RoleMachine<'_>| match machine {
        RoleMachine::Edge(edge) => edge.may_sign_datagrams(now, slot, &drone).is_ok(),
        RoleMachine::Leader(leader) => leader.may_sign_datagrams(now, slot, &drone).is_ok(),
    };
    node.inspect(may).await.unwrap_or(false)
}
