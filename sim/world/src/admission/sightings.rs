//! Records all messages between leaders and anonymous drones, by drone and membership: what the simulator
//! knows and leaders must not find out.

use std::collections::BTreeMap;

use quiver_ainq::Suite;
use quiver_machine::Destination;
use quiver_testbed::HeaderReader;

use super::links::{COMPARED, EVERYBODY, Sighting};
use crate::{Cause, Effect, NodeId, Step, World};

/// Messages of the drones with the lowest numbers, as many as are compared.
#[derive(Clone, Debug, Default)]
pub struct Sightings<S: Suite> {
    seen: BTreeMap<(u32, u32), Vec<Vec<u8>>>,
    /// Messages of leaders to the whole group, with whole headers in place of short ones: the one tells what the other
    /// does.
    told: Vec<Vec<u8>>,
    headers: HeaderReader<S>,
    /// Membership of a drone in which a connection was made, by drone, leader and number.
    lives: BTreeMap<(u32, NodeId, u32), u32>,
}

impl<S: Suite> Sightings<S> {
    /// Records the messages of a leader's step that it received from anonymous drones or sends to one. Its
    /// messages to the whole group are the same for all.
    pub fn note(&mut self, world: &World<S>, step: &Step) {
        let NodeId::Leader(_) = step.node else { return };
        if let Cause::Message { via: via @ NodeId::Edge(drone), payload, .. } = &step.cause
            && let Some(connection) = world.connection(step.node, *via)
        {
            self.keep(world, step.node, (*drone, connection), payload);
        }
        let admits = world.fleet().checkpoint().is_some();
        let deployment = world.fleet().deployment();
        for effect in &step.effects {
            match effect {
                Effect::Sent { to: Destination::Peer(peer), payload } => {
                    if admits {
                        self.headers.note(deployment, payload);
                    }
                    if let (NodeId::Edge(drone), connection) = world.behind(*peer) {
                        self.keep(world, step.node, (drone, connection), payload);
                    }
                }
                Effect::Sent { to: Destination::Group, payload } if admits => {
                    self.told.push(self.headers.expanded(deployment, payload));
                }
                _ => {}
            }
        }
    }

    fn keep(&mut self, world: &World<S>, leader: NodeId, (drone, connection): (u32, u32), bytes: &[u8]) {
        if drone as usize >= COMPARED || !world.is_anonymous(drone) {
            return;
        }
        let node = NodeId::Edge(drone);
        if world.connection(leader, node) == Some(connection) {
            self.lives.insert((drone, leader, connection), world.life(node));
        }
        // A message to a closed connection belongs to the membership of the connection.
        let Some(life) = self.lives.get(&(drone, leader, connection)) else { return };
        self.seen.entry((drone, *life)).or_default().push(bytes.to_vec());
    }

    /// All memberships, and the messages to all.
    pub fn lives(&self) -> Vec<Sighting> {
        let sighting = |((drone, life), seen): (&(u32, u32), &Vec<Vec<u8>>)| Sighting {
            drone: *drone,
            life: *life,
            seen: seen.clone(),
        };
        let all = Sighting { drone: EVERYBODY, life: 0, seen: self.told.clone() };
        self.seen.iter().map(sighting).chain([all]).collect()
    }
}
