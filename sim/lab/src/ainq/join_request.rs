//! Join requests of drones, and their verification by a leader.

use quiver_ainq::{
    Join, Label, Signature, SignedItem, SparePair, SpareStatement, Suite, verify_batch_implicit,
};

use super::swarm::{DroneKeys, LabSwarm, protocol};
use crate::{LabError, Result};

/// Bytes of a join request that are signed beside the drone's key and E_now: group, nonces.
const CONTEXT: usize = 80;

/// Messages of a joining drone: E_now and its first spare point, both signed.
pub(crate) struct SignedJoin<S: Suite> {
    pub(crate) drone: DroneKeys<S>,
    message: Vec<u8>,
    join: Signature<S>,
    spare: SpareStatement<S>,
}

impl<S: Suite> SignedJoin<S> {
    /// Makes requests of `count` drones that ask to join.
    pub(crate) fn many(swarm: &mut LabSwarm<S>, count: u32) -> Result<Vec<Self>> {
        let drones = swarm.drones(count)?;
        Ok(drones.into_iter().map(|drone| Self::asking(swarm, drone)).collect())
    }

    fn asking(swarm: &mut LabSwarm<S>, drone: DroneKeys<S>) -> Self {
        let mut message = vec![0; CONTEXT];
        message.extend(drone.keypair.public().encode());
        message.extend(drone.ephemeral.point().as_bytes());
        let (deployment, rng) = (&swarm.deployment, &mut swarm.rng);
        let join = drone.keypair.sign(deployment, Label::Join, &message, rng);
        let spare = SparePair::generate(1, rng).statement(&drone.keypair, deployment, &swarm.group, rng);
        Self { drone, message, join, spare }
    }
}

/// Checks all signatures in one batch and computes every newcomer's Y.
pub(crate) fn checked<S: Suite>(
    swarm: &mut LabSwarm<S>,
    newcomers: &[SignedJoin<S>],
) -> Result<Vec<Join<S>>> {
    let (mut joins, mut implicit) = (Vec::new(), Vec::new());
    for newcomer in newcomers {
        let join = join_of(swarm, newcomer)?;
        implicit.extend([*join.implicit(), *join.implicit()]);
        joins.push(join);
    }
    let message =
        |newcomer: &SignedJoin<S>| newcomer.spare.message(&swarm.group, newcomer.drone.keypair.public());
    let spares: Vec<Vec<u8>> = newcomers.iter().map(message).collect();
    let mut items = Vec::with_capacity(2 * newcomers.len());
    for (newcomer, spare) in newcomers.iter().zip(&spares) {
        let public = newcomer.drone.keypair.public();
        let (join, kept) = (&newcomer.join, &newcomer.spare.signature);
        items.push(SignedItem { public, label: Label::Join, message: &newcomer.message, signature: join });
        items.push(SignedItem { public, label: Label::Spare, message: spare, signature: kept });
    }
    if verify_batch_implicit(&swarm.deployment, &items, &implicit, &mut swarm.rng) {
        Ok(joins)
    } else {
        Err(LabError::WrongKey("join requests"))
    }
}

/// Every newcomer's Y, with nothing checked.
pub(crate) fn unchecked<S: Suite>(swarm: &LabSwarm<S>, newcomers: &[SignedJoin<S>]) -> Result<Vec<Join<S>>> {
    newcomers.iter().map(|newcomer| join_of(swarm, newcomer)).collect()
}

fn join_of<S: Suite>(swarm: &LabSwarm<S>, newcomer: &SignedJoin<S>) -> Result<Join<S>> {
    let drone = &newcomer.drone;
    let join = Join::new(&swarm.deployment, drone.keypair.public().clone(), *drone.ephemeral.point());
    join.map_err(protocol("joining"))
}
