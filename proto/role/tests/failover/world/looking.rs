//! Looking at the world.

use quiver_ainq::Epoch;
use quiver_role::leader::{LeaderStatus, Stance};
use quiver_role::{EdgeEvent, LeaderEvent, Offence};

use super::{Node, World, name};

impl World {
    pub(crate) fn synced(&self, edge: usize) -> bool {
        self.edges[edge].machine.as_ref().is_some_and(|machine| machine.status().synced)
    }

    pub(crate) fn status(&self, leader: usize) -> Option<LeaderStatus> {
        self.leaders[leader].machine.as_ref().map(|machine| machine.status())
    }

    /// Who leads, by ordinal.
    pub(crate) fn leading(&self) -> Vec<usize> {
        let leads =
            |leader: &usize| self.status(*leader).is_some_and(|status| status.stance == Stance::Leading);
        (0..self.leaders.len()).filter(leads).collect()
    }

    pub(crate) fn epoch(&self, leader: usize) -> Option<Epoch> {
        self.status(leader)?.epoch
    }

    /// The epoch whose roster a deputy holds.
    pub(crate) fn held(&self, deputy: usize) -> Option<Epoch> {
        match self.status(deputy)?.stance {
            Stance::StandingBy { held, .. } => held,
            _ => None,
        }
    }

    /// The key that an edge would use now.
    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let key = self.edges[edge].machine.as_ref()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    pub(crate) fn leader_key(&self, leader: usize) -> Option<Vec<u8>> {
        let key = self.leaders[leader].machine.as_ref()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    /// Whether all these edges hold this leader's key.
    pub(crate) fn follow(&self, leader: usize, edges: impl IntoIterator<Item = usize>) -> bool {
        let key = self.leader_key(leader);
        key.is_some() && edges.into_iter().all(|edge| self.key(edge) == key)
    }

    pub(crate) fn blamed_by(&self, node: Node) -> Vec<&Offence> {
        match node {
            Node::Kgc => Vec::new(),
            Node::Leader(leader) => {
                let blamed = self.leaders[leader].events.iter().filter_map(|event| match event {
                    LeaderEvent::Blamed { offence, .. } => Some(offence),
                    _ => None,
                });
                blamed.collect()
            }
            Node::Edge(edge) => {
                let blamed = self.edges[edge].events.iter().filter_map(|event| match event {
                    EdgeEvent::Blamed { offence, .. } => Some(offence),
                    _ => None,
                });
                blamed.collect()
            }
        }
    }

    /// How many joins the leaders granted, all together.
    pub(crate) fn joins(&self) -> usize {
        let events = self.leaders.iter().flat_map(|leader| &leader.events);
        events.filter(|event| matches!(event, LeaderEvent::Joined { .. })).count()
    }

    /// How many terms were opened, all together.
    pub(crate) fn terms(&self) -> usize {
        let events = self.leaders.iter().flat_map(|leader| &leader.events);
        let opened = |event: &&LeaderEvent| {
            matches!(event, LeaderEvent::EpochActivated { kind: quiver_ainq::Kind::Open, .. })
        };
        events.filter(opened).count()
    }
}
