//! Estimates the CPU cycles of a drone's step from what it received, reported and sent.

use quiver_group::EdgeEvent;

use super::message_kind::{MessageKind, is_about_an_epoch, kind};
use crate::radio::cycles::{Arithmetic, CpuOperation, chacha20_poly1305, hmac_sha256, sha256};
use crate::{Cause, Effect, NodeEvent, Step};
use quiver_testbed::matching;

/// CPU cycles of a drone's step, and whether it was about an epoch.
///
/// Counted are the curve operations that the protocol prescribes for each message (signature checks as two
/// products of two terms and three decoded points, as a header's check takes) and hashing and sealing by
/// length; parsing and copying are not. A re-key is charged in full if it was followed, and with one hash if
/// not.
pub fn compute_cost(step: &Step, arithmetic: Arithmetic) -> (u64, bool) {
    let price = Price(arithmetic);
    let activated = step
        .events()
        .find_map(matching!(NodeEvent::Edge(EdgeEvent::KeyActivated { epoch, .. }) => epoch.counter == 1));
    let (mut cycles, mut about_an_epoch) = (0, activated.is_some());
    if let Cause::Message { payload, .. } = &step.cause {
        about_an_epoch |= is_about_an_epoch(payload);
        cycles += price.heard(payload, activated);
    }
    for effect in &step.effects {
        if let Effect::Sent { payload, .. } = effect {
            cycles += price.said(payload);
        }
    }
    (cycles, about_an_epoch)
}

struct Price(Arithmetic);

impl Price {
    fn of(&self, operation: CpuOperation) -> u64 {
        operation.cycles(self.0)
    }

    /// Checking a signature: the signer's implicit key and the equation.
    fn check(&self) -> u64 {
        2 * self.of(CpuOperation::DoubleMultiplication) + 3 * self.of(CpuOperation::Decoding)
    }

    /// A signature's commitment, and its nonce.
    fn sign(&self) -> u64 {
        self.of(CpuOperation::BaseMultiplication) + self.of(CpuOperation::Encoding) + hmac_sha256(96)
    }

    /// A pair of secret scalar and public point.
    fn pair(&self) -> u64 {
        self.of(CpuOperation::BaseMultiplication) + self.of(CpuOperation::Encoding)
    }

    /// The pairwise secret with a leader, from a secret and the public point of a one-time pair.
    fn agree(&self) -> u64 {
        self.of(CpuOperation::Multiplication)
            + self.pair()
            + self.of(CpuOperation::Decoding)
            + 2 * hmac_sha256(128)
    }

    /// Cycles of a received message by its consequence: no new key, a re-key, or an opened term.
    fn heard(&self, payload: &[u8], activated: Option<bool>) -> u64 {
        let hash = sha256(payload.len());
        // Unwrapping, the tag, the step of the ratchet, the traffic key.
        let follow = self.check() + 4 * hmac_sha256(64);
        hash + match (kind(payload), activated) {
            (MessageKind::Welcome, _) | (MessageKind::Rekey | MessageKind::CatchUpReply, Some(true)) => {
                follow + self.agree()
            }
            (MessageKind::Rekey | MessageKind::CatchUpReply, Some(false)) => follow,
            // The seal's two agreements, and s·P = R + H0·P_pub.
            (MessageKind::EnrolReply, _) => {
                3 * self.of(CpuOperation::Multiplication)
                    + self.of(CpuOperation::BaseMultiplication)
                    + 2 * self.of(CpuOperation::Decoding)
                    + chacha20_poly1305(0, payload.len())
            }
            (MessageKind::JoinChallenge, _) => 2 * self.of(CpuOperation::Decoding),
            (MessageKind::EvictionNotice | MessageKind::RevocationList, _) => self.check(),
            (MessageKind::GroupMessage, _) => chacha20_poly1305(0, payload.len()),
            (MessageKind::SpareAck, _) => hmac_sha256(64),
            _ => 0,
        }
    }

    /// Cycles of a sent message.
    fn said(&self, payload: &[u8]) -> u64 {
        match kind(payload) {
            // x_i and the reply point, and a proof for the token's key and for x_i.
            MessageKind::EnrolRequest => 2 * self.pair() + 2 * self.sign(),
            // The one-time point, the spare, and a signature for each.
            MessageKind::JoinRequest => 2 * self.pair() + 2 * self.sign(),
            MessageKind::SparePublication => self.pair() + self.sign(),
            MessageKind::Leave => self.sign(),
            MessageKind::Ack | MessageKind::CatchUpRequest => hmac_sha256(64),
            MessageKind::GroupMessage => chacha20_poly1305(0, payload.len()),
            _ => 0,
        }
    }
}
