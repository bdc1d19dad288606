//! Relays that are hostile, for as long as an action says.

use std::collections::BTreeSet;

use quiver_ainq::Suite;

use super::RelayNode;
use crate::rng_stream::{self, RngStream};
use crate::world::{Acted, WorldFeature, WorldKernel};
use crate::{Action, NodeId, Setup, Step};

/// Relays that are hostile.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostileRelays(BTreeSet<u16>);

impl HostileRelays {
    /// The machine of a relay that is switched on: hostile, if the relay is.
    pub(crate) fn machine<S: Suite>(&self, kernel: &WorldKernel<S>, number: u16) -> RelayNode {
        let mut machine = RelayNode::new(kernel.edge_count() as usize);
        if self.0.contains(&number) {
            machine.set_hostile(dice(kernel.setup(), number));
        }
        machine
    }

    /// Makes a relay hostile.
    fn subvert<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, number: u16) {
        self.0.insert(number);
        let dice = dice(kernel.setup(), number);
        let sim_node = kernel.nodes.relay_node_mut(number);
        if let Some(machine) = sim_node.and_then(|sim_node| sim_node.machine.as_deref_mut()) {
            machine.set_hostile(dice);
        }
    }

    /// Puts an honest relay in the place of a hostile one. Gives the node, if it must be started for that: its
    /// statements to its leader and its drones end with its connections.
    fn replace<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, number: u16) -> Option<NodeId> {
        let node = NodeId::Relay(number);
        if !self.0.remove(&number) || !kernel.alive(node) {
            return None;
        }
        kernel.stop(node);
        Some(node)
    }
}

impl<S: Suite> WorldFeature<S> for HostileRelays {
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, _: &mut Vec<Step>) -> Acted {
        let Action::Subvert { relay, hostile } = action else { return Acted::Pass };
        if *hostile {
            self.subvert(kernel, *relay);
            return Acted::Done;
        }
        self.replace(kernel, *relay).map_or(Acted::Done, Acted::Start)
    }

    fn calm(&mut self, kernel: &mut WorldKernel<S>) -> Vec<NodeId> {
        self.0.clone().into_iter().filter_map(|number| self.replace(kernel, number)).collect()
    }
}

fn dice(setup: &Setup, number: u16) -> [u8; 32] {
    rng_stream::key(setup.seed, RngStream::HostileRelay(number))
}
