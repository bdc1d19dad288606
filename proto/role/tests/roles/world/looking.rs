//! Looking at the world.

use quiver_ainq::Name;
use quiver_role::{EdgeEvent, LeaderEvent, Offence};

use super::World;

impl World {
    pub(crate) fn synced(&self, edge: usize) -> bool {
        self.edges[edge].machine.as_ref().is_some_and(|machine| machine.status().synced)
    }

    /// The key that an edge would use now.
    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let key = self.edges[edge].machine.as_ref()?.export(&Name::new("test").unwrap())?;
        Some(key.expose().to_vec())
    }

    pub(crate) fn leader_key(&self) -> Vec<u8> {
        self.leader.as_ref().unwrap().export(&Name::new("test").unwrap()).unwrap().expose().to_vec()
    }

    pub(crate) fn leader_epoch(&self) -> quiver_ainq::Epoch {
        self.leader.as_ref().unwrap().status().epoch.unwrap()
    }

    /// Whether all these edges hold the leader's key.
    pub(crate) fn agree(&self, edges: impl IntoIterator<Item = usize>) -> bool {
        edges.into_iter().all(|edge| self.key(edge) == Some(self.leader_key()))
    }

    pub(crate) fn blamed_by_leader(&self) -> Vec<&Offence> {
        let blamed = self.leader_events.iter().filter_map(|event| match event {
            LeaderEvent::Blamed { offence, .. } => Some(offence),
            _ => None,
        });
        blamed.collect()
    }

    pub(crate) fn blamed_by_edge(&self, edge: usize) -> Vec<&Offence> {
        let blamed = self.edges[edge].events.iter().filter_map(|event| match event {
            EdgeEvent::Blamed { offence, .. } => Some(offence),
            _ => None,
        });
        blamed.collect()
    }
}
