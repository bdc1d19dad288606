//! Distinguishes messages that no honest peer sends from those that bad timing explains.

use alloc::collections::BTreeMap;

use quiver_ainq::Error;
use quiver_message::MessageError;

use crate::{Misdeed, Offence, Peer};

/// Maximum number of unreadable messages per connection: a bad line, or a peer of another version, sends
/// some.
const MAX_GARBAGE: u8 = 16;

/// Number of unreadable messages that each connected peer has sent.
#[derive(Debug, Default)]
pub struct Misdeeds {
    garbage: BTreeMap<Peer, u8>,
}

impl Misdeeds {
    /// The reason to disconnect a peer for what it sent over its own connection; `None` if there is none.
    ///
    /// Stale, replayed and misplaced messages are none: honest peers send them when they are late or were
    /// misled.
    pub fn weigh(&mut self, peer: Peer, offence: &Offence) -> Option<Misdeed> {
        let garbage = match offence {
            // §13.8: a signature that is none.
            Offence::Protocol(Error::InvalidSignature) => return Some(Misdeed::Forgery),
            // §13.8: no reason: of another deployment, or of a later version.
            Offence::Message(MessageError::ForeignDeployment | MessageError::NoBody) => false,
            // §13.8: what cannot be read, or whose MAC does not hold.
            Offence::Message(_) | Offence::Mac(_) => true,
            _ => false,
        };
        if garbage { self.weigh_lightly(peer) } else { None }
    }

    /// The same for one more message that counts as unreadable, though an honest peer may have sent it: a signature that
    /// may be that of the slot's former holder, for instance.
    pub fn weigh_lightly(&mut self, peer: Peer) -> Option<Misdeed> {
        let count = self.garbage.entry(peer).or_default();
        *count = count.saturating_add(1);
        // §13.8: more than 16 of them.
        (*count > MAX_GARBAGE).then_some(Misdeed::Garbage)
    }

    /// The peer is gone, and its handle is not used again.
    pub fn disconnected(&mut self, peer: Peer) {
        self.garbage.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_signature_counts_at_once_and_garbage_when_there_is_much() {
        let mut misdeeds = Misdeeds::default();
        let forged = Offence::Protocol(Error::InvalidSignature);
        assert_eq!(misdeeds.weigh(Peer(1), &forged), Some(Misdeed::Forgery));
        for offence in [Offence::Mac("Ack"), Offence::Message(MessageError::NotProtobuf)] {
            for _ in 0..MAX_GARBAGE / 2 {
                assert_eq!(misdeeds.weigh(Peer(2), &offence), None);
            }
        }
        assert_eq!(misdeeds.weigh(Peer(3), &Offence::Mac("Ack")), None);
        assert_eq!(misdeeds.weigh(Peer(2), &Offence::Mac("Ack")), Some(Misdeed::Garbage));
        misdeeds.disconnected(Peer(2));
        assert_eq!(misdeeds.weigh(Peer(2), &Offence::Mac("Ack")), None);
    }

    #[test]
    fn what_honest_peers_send_late_or_from_elsewhere_never_counts() {
        let mut misdeeds = Misdeeds::default();
        let excusable = [
            Offence::Protocol(Error::Stale),
            Offence::Protocol(Error::Replay),
            Offence::Protocol(Error::WrongSlot),
            Offence::Cookie,
            Offence::OutOfPlace("message to a leader"),
            Offence::Message(MessageError::ForeignDeployment),
            Offence::Message(MessageError::NoBody),
            Offence::Equivocation,
            Offence::RefusedLeader,
            Offence::of_feature("any", &Error::InvalidSignature),
        ];
        for offence in excusable.iter().cycle().take(500) {
            assert_eq!(misdeeds.weigh(Peer(1), offence), None, "{offence:?}");
        }
    }
}
