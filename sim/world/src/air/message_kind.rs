//! Classifies an encoded message without decoding it.

/// Octets of the deployment's fingerprint with tag and length, at the head of every message.
const HEAD: usize = 10;

/// Kind of a message, as far as its cost depends on it. The numbers are the fields of `quiver.v1.Message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    EnrolRequest,
    EnrolReply,
    JoinChallenge,
    JoinRequest,
    Welcome,
    Ack,
    Rekey,
    CatchUpRequest,
    CatchUpReply,
    SparePublication,
    SpareAck,
    Leave,
    EvictionNotice,
    GroupMessage,
    RevocationList,
    /// Anything else.
    Other,
}

/// The number of the first field after the fingerprint; 0 if there is none.
fn field(payload: &[u8]) -> u32 {
    let tag = match payload.get(HEAD..) {
        Some([low, high, ..]) if low & 0x80 != 0 => u32::from(low & 0x7f) | u32::from(*high) << 7,
        Some([tag, ..]) => u32::from(*tag),
        _ => 0,
    };
    tag >> 3
}

/// Index in [`PURPOSES`](crate::trace::PURPOSES) of what an encoded message is for.
pub(crate) fn purpose(payload: &[u8]) -> u8 {
    match field(payload) {
        2..=5 | 32..=35 => 0,
        7..=9 | 37 | 50..=53 => 1,
        // Welcome, re-key, reply to a catch-up, short re-key.
        10 | 12 | 14 | 38 => 2,
        // Acknowledgement, catch-up, spare points.
        11 | 13 | 15 | 16 => 3,
        19 | 30 | 31 => 4,
        _ => 5,
    }
}

/// The kind of an encoded message.
pub(super) fn kind(payload: &[u8]) -> MessageKind {
    match field(payload) {
        4 => MessageKind::EnrolRequest,
        5 => MessageKind::EnrolReply,
        8 => MessageKind::JoinChallenge,
        9 => MessageKind::JoinRequest,
        10 => MessageKind::Welcome,
        11 => MessageKind::Ack,
        12 | 38 => MessageKind::Rekey,
        13 => MessageKind::CatchUpRequest,
        14 => MessageKind::CatchUpReply,
        15 => MessageKind::SparePublication,
        16 => MessageKind::SpareAck,
        17 => MessageKind::Leave,
        18 => MessageKind::EvictionNotice,
        19 => MessageKind::GroupMessage,
        21 => MessageKind::RevocationList,
        _ => MessageKind::Other,
    }
}

/// Returns true if a message is a leader's re-key.
pub(crate) fn is_rekey(payload: &[u8]) -> bool {
    kind(payload) == MessageKind::Rekey
}

/// Returns true if a message brings an epoch to a drone, or is part of a drone's following it.
pub(super) fn is_about_an_epoch(payload: &[u8]) -> bool {
    matches!(
        kind(payload),
        MessageKind::Welcome
            | MessageKind::Ack
            | MessageKind::Rekey
            | MessageKind::CatchUpRequest
            | MessageKind::CatchUpReply
            | MessageKind::SparePublication
            | MessageKind::SpareAck
            | MessageKind::EvictionNotice
    )
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Deployment, Epoch, MasterSecret, Name, Ristretto255};
    use quiver_message::{Ack, EnrolHello, Message, RevocationQuery};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn kinds_are_read_off_real_messages() {
        let master = MasterSecret::<Ristretto255>::generate(&mut ChaCha8Rng::seed_from_u64(1));
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let encoded = |message: Message<Ristretto255>| kind(&message.encode(&deployment));
        let ack = Ack { slot: 3, epoch: Epoch { term: 65536, counter: 1 }, tag: [0; 32] };
        assert_eq!(encoded(Message::Ack(ack)), MessageKind::Ack);
        assert_eq!(encoded(Message::EnrolHello(EnrolHello { nonce: [0; 16] })), MessageKind::Other);
        // The tags of fields from 16 on take two octets.
        assert_eq!(
            encoded(Message::RevocationQuery(RevocationQuery { number: 3, max_len: 0 })),
            MessageKind::Other
        );
        assert_eq!((kind(&[]), kind(&[0; 10])), (MessageKind::Other, MessageKind::Other));
        let mut group = vec![0; HEAD];
        group.extend([0x9a, 0x01]);
        assert_eq!(kind(&group), MessageKind::GroupMessage);
        let mut short = vec![0; HEAD];
        short.extend([0xb2, 0x02]);
        assert!(is_rekey(&short) && is_about_an_epoch(&short) && purpose(&short) == 2);
    }
}
