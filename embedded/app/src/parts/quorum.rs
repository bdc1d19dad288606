//! Enrolment with a quorum of KGCs, which takes FROST.

use quiver_enrolment::Kgcs;
use quiver_group::edge::{EdgeEvent, Provisioning};

use super::BoardPart;
use crate::node::{BoardState, S};

/// See the [module](self).
pub(super) struct QuorumPart;

impl BoardPart for QuorumPart {
    type Beside = ();

    const TAKES_QUORUMS: bool = true;

    fn beside() {}

    fn kgcs(settings: &Provisioning<S>) -> Option<Kgcs<S>> {
        Some(Kgcs::quorum(settings.kgcs.clone()))
    }

    fn edge_event<R>(&mut self, board: &mut BoardState<R>, event: &EdgeEvent) {
        if let EdgeEvent::EnrolmentTrouble(trouble) = event {
            board.console.print_line(format_args!("trouble {trouble:?}"));
        }
    }
}
