//! Read-only queries of what features know. Those of nodes, clocks and links are the [kernel's](super::WorldKernel).

use std::sync::Arc;

use quiver_ainq::{Epoch, Suite};

use super::World;
use super::adversary::Doubled;
use crate::{MavlinkReport, NodeId};

impl<S: Suite> World<S> {
    /// Returns true if an edge has put its name away.
    pub fn is_anonymous(&self, edge: u32) -> bool {
        self.features.admission.is_anonymous(edge)
    }

    /// Returns true if an anonymous edge wants to be and may be a member: its certified fields of this period
    /// satisfy the policy.
    pub fn may_be_admitted(&self, edge: u32) -> bool {
        self.features.admission.may_be_admitted(&self.kernel, edge)
    }

    /// Returns true if an anonymous edge wants to be a member.
    pub fn wants_in(&self, edge: u32) -> bool {
        self.features.admission.wants_in(edge)
    }

    /// Tells if the credential of an anonymous edge's machine, or of its last one, satisfies the policy, and
    /// its period; `None` if it had none yet.
    pub(crate) fn shows(&self, edge: u32) -> Option<(bool, u64)> {
        self.features.admission.shows(edge)
    }

    /// Counts of the telemetry so far by outcome, if there is any.
    pub fn mavlink(&self) -> Option<MavlinkReport> {
        self.features.datagrams.report(self.time())
    }

    /// Returns true if a node's station is the adversary's.
    pub(crate) fn station_captured(&self, node: NodeId) -> bool {
        self.features.datagrams.captured(node)
    }

    /// The epoch, if the leader with two keys signed it.
    pub(crate) fn doubled(&self, epoch: Epoch) -> Option<&Doubled> {
        self.features.adversary.doubled(epoch)
    }

    /// Epoch and digest of the header in a message, if it is one of the leader with two keys.
    #[doc(hidden)]
    pub fn doubled_header(&self, payload: &Arc<[u8]>) -> Option<(Epoch, [u8; 32])> {
        self.features.adversary.doubled_header(payload)
    }

    /// Returns true if this message is forged.
    pub(crate) fn is_forged(&self, payload: &Arc<[u8]>) -> bool {
        self.features.adversary.is_forged(payload)
    }
}
