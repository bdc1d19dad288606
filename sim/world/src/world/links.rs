//! Connections: edges dial the KGCs and the leaders, leaders dial the KGCs and the leaders before
//! them, KGCs those before them.

use std::time::Duration;

use quiver_ainq::Suite;
use quiver_role::Route;

use super::{Errand, World};
use crate::node::Row;
use crate::queue::Due;
use crate::{Node, Partition};

/// How long after a start, a loss or a failed attempt a node dials.
const DIAL: Duration = Duration::from_millis(20);
const REDIAL: Duration = Duration::from_secs(1);
/// How long it takes to notice that the other end is not heard any more.
const NOTICE: Duration = Duration::from_secs(10);
/// How long a forger is refused.
const PENALTY: Duration = Duration::from_secs(5);

/// What two nodes have between them.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Counts connections, so that no handle means two of them.
    connection: u32,
    up: bool,
    blocked: bool,
    /// Whether the end with the lower number passes on the other's group messages, and the other way round.
    relays: [bool; 2],
}

/// All links.
#[derive(Debug)]
pub(super) struct Links {
    row: Row,
    /// One row per dialler, one column per node that is dialled.
    table: Vec<Link>,
}

impl Links {
    pub(super) fn new(row: Row, edges: u32) -> Self {
        let nodes = row.hubs() + edges as usize;
        Self { row, table: vec![Link::default(); nodes * row.hubs()] }
    }

    /// Where the link of two nodes is kept: none for two that never connect.
    fn place(&self, a: Node, b: Node) -> Option<usize> {
        let (a, b) = (self.row.index(a), self.row.index(b));
        let (hub, dialler) = (a.min(b), a.max(b));
        (hub != dialler && hub < self.row.hubs()).then(|| dialler * self.row.hubs() + hub)
    }

    fn link(&self, a: Node, b: Node) -> Option<&Link> {
        self.table.get(self.place(a, b)?)
    }

    fn link_mut(&mut self, a: Node, b: Node) -> Option<&mut Link> {
        let place = self.place(a, b)?;
        self.table.get_mut(place)
    }

    /// The number of the connection between two nodes, if there is one.
    pub(super) fn connection(&self, a: Node, b: Node) -> Option<u32> {
        self.link(a, b).filter(|link| link.up).map(|link| link.connection)
    }

    /// Everybody whom a node dials.
    fn dialled_by(&self, node: Node) -> Vec<Node> {
        match node {
            Node::Kgc(id) => (1..id).map(Node::Kgc).collect(),
            Node::Leader(ordinal) => self.row.kgcs().chain((0..ordinal).map(Node::Leader)).collect(),
            Node::Edge(_) => self.row.kgcs().chain(self.row.leaders()).collect(),
        }
    }

    /// Whether a hub passes on a node's group messages.
    pub(super) fn relays(&self, hub: Node, from: Node) -> bool {
        let [lower, higher] = self.link(hub, from).map(|link| link.relays).unwrap_or_default();
        if self.row.index(hub) < self.row.index(from) { lower } else { higher }
    }

    /// A hub passes on a node's group messages from now on, or no more.
    pub(super) fn set_relays(&mut self, hub: Node, from: Node, connection: u32, allowed: bool) {
        let hub_is_lower = self.row.index(hub) < self.row.index(from);
        let link = self.link_mut(hub, from).filter(|link| link.up && link.connection == connection);
        if let Some(link) = link {
            let [lower, higher] = &mut link.relays;
            *(if hub_is_lower { lower } else { higher }) = allowed;
        }
    }

    /// The leader through which a node hears the group: the first one it is connected to.
    pub(super) fn hub_of(&self, node: Node) -> Option<Node> {
        self.row.leaders().find(|leader| *leader != node && self.connection(node, *leader).is_some())
    }
}

impl<S: Suite> World<S> {
    /// Everybody who may have a connection with a node.
    pub(super) fn neighbours(&self, node: Node) -> Vec<Node> {
        let mut neighbours = self.links.dialled_by(node);
        let place = self.row.index(node);
        if place < self.row.hubs() {
            neighbours.extend((place + 1..self.row.hubs()).map(|index| self.row.node(index)));
            neighbours.extend((0..self.edge_count()).map(Node::Edge));
        }
        neighbours
    }

    /// A node that was started dials, and is dialled.
    pub(super) fn plan_connections(&mut self, node: Node) {
        for other in self.neighbours(node) {
            if let Some(link) = self.links.link_mut(node, other) {
                link.blocked = false;
            }
            if !self.alive(other) {
                continue;
            }
            if self.setup.parallel {
                // A million errands would be a million stretches.
                let (hub, dialler) = self.ends(node, other);
                self.connect(dialler, hub);
            } else {
                self.plan_connect(node, other, DIAL);
            }
        }
    }

    pub(super) fn plan_connect(&mut self, a: Node, b: Node, after: Duration) {
        let (hub, dialler) = self.ends(a, b);
        self.plan(after, Errand::Connect(dialler, hub));
    }

    /// Who is dialled and who dials.
    fn ends(&self, a: Node, b: Node) -> (Node, Node) {
        if self.row.index(a) < self.row.index(b) { (a, b) } else { (b, a) }
    }

    /// Connects two nodes, or tries again later if it cannot be now.
    pub(super) fn connect(&mut self, dialler: Node, hub: Node) {
        if !self.alive(dialler) || !self.alive(hub) {
            return;
        }
        if let (Node::Edge(edge), Node::Kgc(_)) = (dialler, hub)
            && self.is_unnamed(edge)
        {
            // Who has no name has no business with those who gave it one.
            return;
        }
        let open = self.network.reaches(dialler, hub) && self.network.reaches(hub, dialler);
        let Some(link) = self.links.link_mut(dialler, hub).filter(|link| !link.up && !link.blocked) else {
            return;
        };
        if !open {
            return self.plan_connect(dialler, hub, REDIAL);
        }
        link.up = true;
        link.relays = [false; 2];
        link.connection += 1;
        let connection = link.connection;
        let route = if let Node::Kgc(_) = hub { Route::Kgc } else { Route::Leader };
        // Leaders have each other's addresses: whoever dialled, it is a leader that each of them looked for. So do KGCs.
        let alike = std::mem::discriminant(&dialler) == std::mem::discriminant(&hub);
        let back = if alike { route } else { Route::Inbound };
        self.tell(hub, Due::Connected { other: self.number(dialler), connection, route: back });
        self.tell(dialler, Due::Connected { other: self.number(hub), connection, route });
    }

    fn tell(&mut self, node: Node, due: Due) {
        let number = self.number(node);
        self.queue.push(self.now, number, due);
    }

    /// Ends a connection; whoever is alive hears of it.
    pub(super) fn disconnect(&mut self, a: Node, b: Node) -> bool {
        let Some(link) = self.links.link_mut(a, b).filter(|link| link.up) else {
            return false;
        };
        link.up = false;
        let connection = link.connection;
        for (node, other) in [(a, b), (b, a)] {
            if self.alive(node) {
                self.tell(node, Due::Disconnected { other: self.number(other), connection });
            }
        }
        true
    }

    /// All connections of a node that died.
    pub(super) fn disconnect_all(&mut self, node: Node) {
        for other in self.neighbours(node) {
            self.disconnect(node, other);
        }
    }

    /// Cuts a connection for a while. It is the same one that dials again.
    pub(super) fn penalize(&mut self, node: Node, other: Node, connection: u32) {
        if self.links.connection(node, other) == Some(connection) {
            self.disconnect(node, other);
            let dialled = self.row.index(node) < self.row.index(other);
            let (dialler, hub) = if dialled { (other, node) } else { (node, other) };
            self.plan_connect(dialler, hub, PENALTY);
        }
    }

    /// Cuts a connection for as long as both live.
    pub(super) fn block(&mut self, node: Node, other: Node, connection: u32) {
        if self.links.connection(node, other) == Some(connection) {
            self.disconnect(node, other);
            if let Some(link) = self.links.link_mut(node, other) {
                link.blocked = true;
            }
        }
    }

    /// Connected nodes that a partition parts notice after a while.
    pub(super) fn plan_severing(&mut self, partition: &Partition) {
        let hubs: Vec<Node> = (0..self.row.hubs()).map(|index| self.row.node(index)).collect();
        for hub in hubs {
            for other in self.neighbours(hub) {
                let dials = self.row.index(hub) < self.row.index(other);
                if dials && partition.parts(hub, other) && self.links.connection(hub, other).is_some() {
                    self.plan(NOTICE, Errand::Sever(other, hub));
                }
            }
        }
    }

    /// They still do not hear each other: the connection is gone, and is dialled anew.
    pub(super) fn sever(&mut self, a: Node, b: Node) {
        let open = self.network.reaches(a, b) && self.network.reaches(b, a);
        if !open && self.disconnect(a, b) {
            self.plan_connect(a, b, REDIAL);
        }
    }
}
