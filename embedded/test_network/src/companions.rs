//! Companions: real edges beside the board, on perfect links.

use quiver_ainq::{Revoked, Role};
use quiver_enrolment::KgcCommand;
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::Route;
use quiver_testbed::token_grant;

use crate::{GROUP, S, TestNetwork, TestNetworkNode, name};

impl TestNetwork {
    /// Adds `count` drones, which begin to enrol.
    ///
    /// # Panics
    /// If the machines refuse their configuration.
    pub fn add_companions(&mut self, count: usize) {
        for index in self.serials.len()..self.serials.len() + count {
            let grant = token_grant(&format!("companion-{index}"), Role::Edge, GROUP);
            let token = self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap();
            self.serials.push(token.token.statement.identity().serial);
            let config = EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), Some(token));
            let companion = TestNetworkNode::Companion(index);
            self.net.start(companion, Edge::<S>::new(config, None).unwrap());
            self.net.subscribe(companion);
            self.net.connect(companion, TestNetworkNode::Kgc, Route::Kgc);
            self.net.connect(companion, TestNetworkNode::Leader, Route::Leader);
        }
    }

    fn companions(&self) -> impl Iterator<Item = (TestNetworkNode, &Edge<S>)> {
        (0..self.serials.len()).map(TestNetworkNode::Companion).map(|node| (node, self.net.machine(node)))
    }

    /// Returns true if all of them hold the leader's key.
    #[must_use]
    pub fn companions_agree(&self) -> bool {
        let epoch = self.leader().status().epoch;
        self.companions().all(|(_, companion)| companion.status().epoch == epoch)
    }

    /// The companions with an odd slot.
    fn every_second(&self) -> Vec<TestNetworkNode> {
        let odd = |companion: &Edge<S>| companion.status().slot.is_some_and(|slot| slot % 2 == 1);
        self.companions().filter(|(_, companion)| odd(companion)).map(|(node, _)| node).collect()
    }

    /// Takes the companions with an odd slot offline.
    pub fn silence_every_second(&mut self) {
        let silent = self.every_second();
        self.net.isolated.extend(silent);
    }

    /// Revokes the companions with an odd slot.
    pub fn revoke_every_second(&mut self) {
        let odd = self.every_second();
        let serials = self.serials.iter().enumerate();
        let revoked = serials.filter(|(index, _)| odd.contains(&TestNetworkNode::Companion(*index)));
        let revoked = revoked.map(|(_, serial)| Revoked::unknown(*serial)).collect();
        self.command_kgc(KgcCommand::RevokeDrones(revoked));
    }

    /// Connects the companions that are not offline with the leader.
    pub(crate) fn reconnect_companions(&mut self) {
        for companion in (0..self.serials.len()).map(TestNetworkNode::Companion) {
            if !self.net.isolated.contains(&companion) {
                self.net.connect(companion, TestNetworkNode::Leader, Route::Leader);
            }
        }
    }
}
