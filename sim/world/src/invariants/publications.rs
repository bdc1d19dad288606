//! Reads what leaders publish of epochs, once for all checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use quiver_ainq::{EpochPart, Header, Suite};
use quiver_message::Message;
use quiver_testbed::HeaderReader;
use sha2::{Digest, Sha256};

use crate::relays::carried;
use crate::{Effect, NodeId, Step, World};

/// Number of messages that are known again when they are sent once more.
const KNOWN: usize = 16_384;

/// A header that a leader sent, and the part for a member that came with it.
#[derive(Clone, Debug)]
pub(crate) struct LeaderPublication<S: Suite> {
    pub(crate) header: Header<S>,
    /// D of the header.
    pub(crate) digest: [u8; 32],
    pub(crate) part: Option<EpochPart>,
}

/// Reads messages of leaders.
#[derive(Clone, Debug, Default)]
pub(super) struct PublicationReader<S: Suite> {
    headers: HeaderReader<S>,
    /// SHA-256 of the publications: most are sent many times.
    known: BTreeSet<[u8; 32]>,
}

impl<S: Suite> PublicationReader<S> {
    /// A reader of what is sent behind these headers.
    pub(super) const fn behind(headers: HeaderReader<S>) -> Self {
        Self { headers, known: BTreeSet::new() }
    }

    /// Gives to `tell` each publication that a leader sent in a step, and had not sent before.
    pub(super) fn read(
        &mut self,
        world: &World<S>,
        step: &Step,
        tell: &mut dyn FnMut(&Arc<LeaderPublication<S>>),
    ) {
        if !matches!(step.node, NodeId::Leader(_)) {
            return;
        }
        for effect in &step.effects {
            let Effect::Sent { payload, .. } = effect else { continue };
            for carried in carried(world.setup(), payload) {
                self.decode(world, &carried).iter().for_each(&mut *tell);
            }
            self.decode(world, payload).iter().for_each(&mut *tell);
        }
    }

    fn decode(&mut self, world: &World<S>, payload: &[u8]) -> Option<Arc<LeaderPublication<S>>> {
        let message = Sha256::digest(payload).into();
        if self.known.contains(&message) {
            return None;
        }
        let deployment = world.fleet().deployment();
        let (header, part) = self.headers.decode(deployment, payload).and_then(published)?;
        if self.known.len() < KNOWN {
            self.known.insert(message);
        }
        if world.doubled(header.core.epoch).is_some() {
            // Shown, not made by this leader: what its maker gives away is no secret of the group's.
            return None;
        }
        let digest = header.digest(deployment);
        Some(Arc::new(LeaderPublication { header, digest, part }))
    }
}

/// The header and the part that a message carries.
fn published<S: Suite>(message: Message<S>) -> Option<(Header<S>, Option<EpochPart>)> {
    match message {
        Message::Rekey(rekey) => Some((rekey.header, rekey.part)),
        Message::Welcome(welcome) => Some((welcome.header, Some(welcome.part))),
        Message::CatchUpReply(reply) => Some((reply.header, reply.part)),
        _ => None,
    }
}
