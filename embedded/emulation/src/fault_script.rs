//! Fault scripts: recognise the protocol step of a frame on the line, and inject garbage exactly there.
//!
//! Steps are recognised from the outside: a link's datagram by its first byte, a message within by the number
//! of its field (`quiver/v1/message.proto`). Nothing is encrypted between a board and its gateway but what is
//! to be secret.

use std::collections::BTreeSet;

use quiver_link::{LineDecoder, MAX_LINE_FRAME, encode_line};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

/// The link's own steps: kind of a datagram, and its name.
const LINK: [(u8, &str); 4] = [(1, "Hello"), (2, "LinkWelcome"), (3, "Ping"), (4, "Pong")];
/// Kinds of fragments: a plain one, and one whose sender asks for an acknowledgement.
const FRAGMENTS: [u8; 2] = [6, 7];
/// Kind, session, id and total of a fragment; its index is next.
const INDEX_AT: usize = 1 + 4 + 2 + 4;
/// A fragment's header, the kind of the link's message, and the peer's number.
const PAYLOAD_AT: usize = INDEX_AT + 2 + 1 + 8;
/// First bytes of a message: field 1, eight bytes of the deployment's fingerprint.
const DEPLOYMENT: [u8; 2] = [0x0A, 8];

/// The messages of a drone's enrolment, of joining, of following, and of catching up after a start, with the
/// numbers of their fields.
const MESSAGES: [(u64, &str); 14] = [
    (2, "EnrolHello"),
    (3, "EnrolCookie"),
    (4, "EnrolRequest"),
    (5, "EnrolReply"),
    (7, "JoinHello"),
    (8, "JoinChallenge"),
    (9, "JoinRequest"),
    (10, "Welcome"),
    (11, "Ack"),
    (12, "Rekey"),
    (13, "CatchUpRequest"),
    (14, "CatchUpReply"),
    (15, "SparePublication"),
    (16, "SpareAck"),
];

/// Every step of a board's life that a test can ask for.
#[must_use]
pub fn steps() -> BTreeSet<&'static str> {
    LINK.into_iter().map(|(_, name)| name).chain(MESSAGES.into_iter().map(|(_, name)| name)).collect()
}

/// The step that a datagram begins, if it is one of [`steps`].
fn step(datagram: &[u8]) -> Option<&'static str> {
    let kind = *datagram.first()?;
    if let Some((_, name)) = LINK.iter().find(|(known, _)| *known == kind) {
        return Some(name);
    }
    let begins = FRAGMENTS.contains(&kind) && datagram.get(INDEX_AT) == Some(&0);
    let message = datagram.get(PAYLOAD_AT..).filter(|message| begins && message.starts_with(&DEPLOYMENT))?;
    let number = field(message.get(DEPLOYMENT.len() + 8..)?)?;
    MESSAGES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The number of the field that begins here. Those of messages have one byte or two.
fn field(bytes: &[u8]) -> Option<u64> {
    let [low, rest @ ..] = bytes else { return None };
    let high = if low & 0x80 == 0 { 0 } else { u64::from(*rest.first()?) << 7 };
    Some((u64::from(low & 0x7F) | high) >> 3)
}

/// Fault injected at each step, when its first frame passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// Random bytes between its frame and the one before.
    Before,
    /// Random bytes in the middle of its frame, which is thereby lost.
    Within,
    /// Random bytes behind its frame.
    After,
    /// Well-formed frames with random content before it: noise, and noise with the first byte of each kind of
    /// datagram.
    Nonsense,
    /// More bytes before it, without an end, than any frame has.
    Flood,
}

/// Finds frames among the bytes of one direction, and injects the fault at each step.
pub(crate) struct FaultScript {
    fault: StepFault,
    decoder: LineDecoder,
    /// The bytes since the end of the last frame.
    held: Vec<u8>,
    chance: ChaCha8Rng,
}

impl FaultScript {
    pub(crate) fn new(fault: StepFault, chance: ChaCha8Rng) -> Self {
        Self { fault, decoder: LineDecoder::new(), held: Vec::new(), chance }
    }

    /// Bytes that arrive: whole frames, once they are complete. Adds the steps that were hit to `hit`.
    pub(crate) fn pass(&mut self, bytes: &[u8], hit: &mut BTreeSet<&'static str>) -> Vec<u8> {
        let mut arrives = Vec::new();
        for &byte in bytes {
            self.held.push(byte);
            let step = match self.decoder.next_frame(&mut &[byte][..]) {
                Some(frame) => step(frame.datagram),
                None if self.held.len() < 2 * MAX_LINE_FRAME => continue,
                None => None,
            };
            let frame = core::mem::take(&mut self.held);
            match step.filter(|step| hit.insert(step)) {
                Some(_) => arrives.extend(self.garbled(&frame)),
                None => arrives.extend(frame),
            }
        }
        arrives
    }

    fn garbled(&mut self, frame: &[u8]) -> Vec<u8> {
        let noise = self.noise(200);
        let (head, tail) = frame.split_at(frame.len() / 2);
        match self.fault {
            StepFault::Before => [&noise, frame].concat(),
            StepFault::Within => [head, &noise, tail].concat(),
            StepFault::After => [frame, &noise].concat(),
            StepFault::Nonsense => [self.nonsense(), frame.to_vec()].concat(),
            StepFault::Flood => [&[0x55; 4 * MAX_LINE_FRAME][..], frame].concat(),
        }
    }

    fn noise(&mut self, longest: u32) -> Vec<u8> {
        let mut noise = vec![0; 1 + (self.chance.next_u32() % longest) as usize];
        self.chance.fill_bytes(&mut noise);
        noise
    }

    fn nonsense(&mut self) -> Vec<u8> {
        let kinds = 0..=10u8;
        let datagrams = kinds.map(|kind| {
            let mut datagram = self.noise(100);
            datagram[0] = kind;
            datagram
        });
        datagrams.flat_map(|datagram| encode_line(0, &datagram).expect("it is short")).collect()
    }
}

impl std::fmt::Debug for FaultScript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultScript").field("fault", &self.fault).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use quiver_link::{Destination, ToGateway};
    use rand_core::SeedableRng;

    use super::*;

    /// A frame with the first fragment of a message of this field.
    fn message(number: u8) -> Vec<u8> {
        let payload = [&DEPLOYMENT[..], &[9; 8], &[number << 3 | 2, 3, 1, 2, 3]].concat();
        let message = ToGateway::Transmit { to: Destination::Peer(7), payload }.encode();
        let total = u32::try_from(message.len() + 4).expect("short").to_be_bytes();
        let datagram = [&[7, 0, 0, 0, 1, 0, 2][..], &total, &[0, 1], &message, &[0; 4]].concat();
        encode_line(0, &datagram).expect("short")
    }

    fn script(fault: StepFault) -> FaultScript {
        FaultScript::new(fault, ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn each_step_is_hit_once_and_everything_else_passes() {
        let (mut script, mut hit) = (script(StepFault::Within), BTreeSet::new());
        let (request, reply) = (message(4), message(14));
        for piece in request.chunks(7).take(2) {
            assert!(script.pass(piece, &mut hit).is_empty(), "a frame is held until it is whole");
        }
        let first = script.pass(&request[14..], &mut hit);
        assert!(first.len() > request.len(), "{first:?}");
        assert_eq!(LineDecoder::new().next_frame(&mut &*first), None, "this one is lost");
        assert_eq!(script.pass(&request, &mut hit), request, "and its repetition is not");
        assert_ne!(script.pass(&reply, &mut hit), reply);
        assert_eq!(hit, BTreeSet::from(["EnrolRequest", "CatchUpReply"]));
        let other = message(6);
        assert_eq!(script.pass(&other, &mut hit), other);
    }

    #[test]
    fn what_surrounds_a_frame_spares_it() {
        for fault in [StepFault::Before, StepFault::After, StepFault::Flood, StepFault::Nonsense] {
            let (mut script, mut hit) = (script(fault), BTreeSet::new());
            let arrives = script.pass(&message(9), &mut hit);
            let (mut decoder, mut rest, mut frames) = (LineDecoder::new(), &*arrives, 0);
            while let Some(frame) = decoder.next_frame(&mut rest) {
                frames += u32::from(step(frame.datagram) == Some("JoinRequest"));
            }
            assert_eq!(frames, 1, "{fault:?}");
            assert!(arrives.len() > message(9).len(), "{fault:?}");
        }
    }

    #[test]
    fn every_step_has_a_name_of_its_own() {
        assert_eq!(steps().len(), LINK.len() + MESSAGES.len());
    }
}
