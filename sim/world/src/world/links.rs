//! Connects and disconnects nodes: edges dial KGCs and leaders, or relays in the place of these, relays dial their
//! leader, leaders dial KGCs and the leaders before them, KGCs those before them.

use std::time::Duration;

use quiver_machine::Route;

use super::ScheduledAction;
use super::wire::{Wire, WireContext};
use crate::event_queue::WorldEvent;
use crate::node_id::NodeIndex;
use crate::{NodeId, Partition};

/// Delay of dialling after a start, a loss or a failed attempt.
const DIAL: Duration = Duration::from_millis(20);
const REDIAL: Duration = Duration::from_secs(1);
/// Time until a lost connection is noticed.
const NOTICE: Duration = Duration::from_secs(10);
/// Time for which a forger is refused.
const PENALTY: Duration = Duration::from_secs(5);

/// The link between two nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Counts connections, so that no handle means two of them.
    connection: u32,
    up: bool,
    blocked: bool,
    /// True if the end with the lower number passes on the other's group messages; and the other way round.
    relays: [bool; 2],
}

/// All links.
#[derive(Debug)]
pub(crate) struct Links {
    nodes: NodeIndex,
    edges: u32,
    /// A row per dialler, one column per node that is dialled.
    table: Vec<Link>,
}

impl Links {
    pub(crate) fn new(nodes: NodeIndex, edges: u32) -> Self {
        let count = nodes.hubs() + edges as usize;
        Self { nodes, edges, table: vec![Link::default(); count * nodes.hubs()] }
    }

    /// Index of the link of two nodes: `None` for two that never connect.
    fn place(&self, a: NodeId, b: NodeId) -> Option<usize> {
        let (a, b) = (self.nodes.index(a), self.nodes.index(b));
        let (hub, dialler) = (a.min(b), a.max(b));
        (hub != dialler && hub < self.nodes.hubs()).then(|| dialler * self.nodes.hubs() + hub)
    }

    fn link(&self, a: NodeId, b: NodeId) -> Option<&Link> {
        self.table.get(self.place(a, b)?)
    }

    fn link_mut(&mut self, a: NodeId, b: NodeId) -> Option<&mut Link> {
        let place = self.place(a, b)?;
        self.table.get_mut(place)
    }

    /// The number of the connection between two nodes, if there is one.
    pub(crate) fn connection(&self, a: NodeId, b: NodeId) -> Option<u32> {
        self.link(a, b).filter(|link| link.up).map(|link| link.connection)
    }

    /// Returns true if a hub passes on a node's group messages.
    pub(crate) fn relays(&self, hub: NodeId, from: NodeId) -> bool {
        let [lower, higher] = self.link(hub, from).map(|link| link.relays).unwrap_or_default();
        if self.nodes.index(hub) < self.nodes.index(from) { lower } else { higher }
    }

    /// A hub passes on a node's group messages from now on, or no more.
    pub(crate) fn set_relays(&mut self, hub: NodeId, from: NodeId, connection: u32, allowed: bool) {
        let hub_is_lower = self.nodes.index(hub) < self.nodes.index(from);
        let link = self.link_mut(hub, from).filter(|link| link.up && link.connection == connection);
        if let Some(link) = link {
            let [lower, higher] = &mut link.relays;
            *(if hub_is_lower { lower } else { higher }) = allowed;
        }
    }

    /// The leader through which a node receives group messages: the first one it is connected to; of an edge that knows
    /// relays, the first of these.
    pub(crate) fn hub_of(&self, node: NodeId) -> Option<NodeId> {
        let connected = |hub: &NodeId| *hub != node && self.connection(node, *hub).is_some();
        match node {
            NodeId::Edge(edge) if self.nodes.relays > 0 => self.nodes.relays_of(edge).find(connected),
            _ => self.nodes.leaders().find(connected),
        }
    }

    /// Number of edges.
    pub(super) const fn edges(&self) -> u32 {
        self.edges
    }

    /// The nodes that may connect with a node.
    pub(crate) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        let nodes = self.nodes;
        let hubs = (0..nodes.hubs()).map(|index| nodes.node(index));
        let mut neighbours: Vec<NodeId> =
            hubs.filter(|hub| nodes.dials(node, *hub) || nodes.dials(*hub, node)).collect();
        if nodes.index(node) < nodes.hubs() {
            let edges = (0..self.edges).map(NodeId::Edge);
            neighbours.extend(edges.filter(|edge| nodes.dials(*edge, node)));
        }
        neighbours
    }
}

impl Wire {
    /// A node that was started dials, and is dialled.
    pub(crate) fn plan_connections(&mut self, context: &mut WireContext<'_>, node: NodeId) {
        for other in self.links.neighbours(node) {
            if let Some(link) = self.links.link_mut(node, other) {
                link.blocked = false;
            }
            if !(context.alive)(other) {
                continue;
            }
            if self.connects_at_once {
                let (hub, dialler) = self.ends(node, other);
                self.connect(context, dialler, hub);
            } else {
                self.plan_connect(context, node, other, DIAL);
            }
        }
    }

    pub(crate) fn plan_connect(&self, context: &mut WireContext<'_>, a: NodeId, b: NodeId, after: Duration) {
        let (hub, dialler) = self.ends(a, b);
        context.timeline.plan(after, ScheduledAction::Connect(dialler, hub));
    }

    /// Orders two nodes: the one that is dialled and the one that dials.
    fn ends(&self, a: NodeId, b: NodeId) -> (NodeId, NodeId) {
        if self.index.index(a) < self.index.index(b) { (a, b) } else { (b, a) }
    }

    /// Connects two nodes, or tries again later if it cannot be now.
    pub(crate) fn connect(&mut self, context: &mut WireContext<'_>, dialler: NodeId, hub: NodeId) {
        if !(context.alive)(dialler) || !(context.alive)(hub) {
            return;
        }
        if let (NodeId::Edge(edge), NodeId::Kgc(_)) = (dialler, hub)
            && self.nameless.contains_key(&edge)
        {
            // An anonymous node does not connect to the nodes that know its name.
            return;
        }
        let open = self.network.reaches(dialler, hub) && self.network.reaches(hub, dialler);
        let Some(link) = self.links.link_mut(dialler, hub).filter(|link| !link.up && !link.blocked) else {
            return;
        };
        if !open {
            return self.plan_connect(context, dialler, hub, REDIAL);
        }
        link.up = true;
        link.relays = [false; 2];
        link.connection += 1;
        let connection = link.connection;
        let route = if let NodeId::Kgc(_) = hub { Route::Kgc } else { Route::Leader };
        // Leaders have each other's addresses: each connection is an outbound one for both. So it is for
        // KGCs.
        let alike = std::mem::discriminant(&dialler) == std::mem::discriminant(&hub);
        let back = match dialler {
            NodeId::Relay(_) => Route::Relay,
            _ if alike => route,
            _ => Route::Inbound,
        };
        let (now, other) = (context.timeline.now(), self.index.number(dialler));
        context.timeline.push(now, hub, WorldEvent::Connected { other, connection, route: back });
        let other = self.index.number(hub);
        context.timeline.push(now, dialler, WorldEvent::Connected { other, connection, route });
    }

    /// Ends a connection and notifies both ends that are on.
    pub(crate) fn disconnect(&mut self, context: &mut WireContext<'_>, a: NodeId, b: NodeId) -> bool {
        let Some(link) = self.links.link_mut(a, b).filter(|link| link.up) else {
            return false;
        };
        link.up = false;
        let connection = link.connection;
        for (node, other) in [(a, b), (b, a)] {
            if (context.alive)(node) {
                let (now, other) = (context.timeline.now(), self.index.number(other));
                context.timeline.push(now, node, WorldEvent::Disconnected { other, connection });
            }
        }
        true
    }

    /// All connections of a node that died.
    pub(crate) fn disconnect_all(&mut self, context: &mut WireContext<'_>, node: NodeId) {
        for other in self.links.neighbours(node) {
            self.disconnect(context, node, other);
        }
    }

    /// Cuts a connection for a while. It is the same one that dials again.
    pub(crate) fn penalize(
        &mut self,
        context: &mut WireContext<'_>,
        node: NodeId,
        other: NodeId,
        connection: u32,
    ) {
        if self.links.connection(node, other) == Some(connection) {
            self.disconnect(context, node, other);
            let dialled = self.index.index(node) < self.index.index(other);
            let (dialler, hub) = if dialled { (other, node) } else { (node, other) };
            self.plan_connect(context, dialler, hub, PENALTY);
        }
    }

    /// Ends a connection. The node that dialled it does so again.
    pub(crate) fn end_connection(
        &mut self,
        context: &mut WireContext<'_>,
        node: NodeId,
        other: NodeId,
        connection: u32,
    ) {
        if self.links.connection(node, other) == Some(connection) {
            self.disconnect(context, node, other);
            self.plan_connect(context, node, other, REDIAL);
        }
    }

    /// Cuts a connection for as long as both live.
    pub(crate) fn block(
        &mut self,
        context: &mut WireContext<'_>,
        node: NodeId,
        other: NodeId,
        connection: u32,
    ) {
        if self.links.connection(node, other) == Some(connection) {
            self.disconnect(context, node, other);
            if let Some(link) = self.links.link_mut(node, other) {
                link.blocked = true;
            }
        }
    }

    /// Connected nodes that a partition parts notice after a while.
    pub(crate) fn plan_severing(&self, context: &mut WireContext<'_>, partition: &Partition) {
        let hubs: Vec<NodeId> = (0..self.index.hubs()).map(|index| self.index.node(index)).collect();
        for hub in hubs {
            for other in self.links.neighbours(hub) {
                let dials = self.index.index(hub) < self.index.index(other);
                if dials && partition.parts(hub, other) && self.links.connection(hub, other).is_some() {
                    context.timeline.plan(NOTICE, ScheduledAction::Sever(other, hub));
                }
            }
        }
    }

    /// Ends a lost connection; it is dialled anew.
    pub(crate) fn sever(&mut self, context: &mut WireContext<'_>, a: NodeId, b: NodeId) {
        let open = self.network.reaches(a, b) && self.network.reaches(b, a);
        if !open && self.disconnect(context, a, b) {
            self.plan_connect(context, a, b, REDIAL);
        }
    }
}
