//! Classifies an encoded message without decoding it.

/// Octets of the deployment's fingerprint with tag and length, at the head of every message.
const HEAD: usize = 10;

/// Kind of a message, as far as its cost depends on it. The numbers are the fields of `quiver.v1.Message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) fn kind(payload: &[u8]) -> Kind {
    match field(payload) {
        4 => Kind::EnrolRequest,
        5 => Kind::EnrolReply,
        8 => Kind::JoinChallenge,
        9 => Kind::JoinRequest,
        10 => Kind::Welcome,
        11 => Kind::Ack,
        12 | 38 => Kind::Rekey,
        13 => Kind::CatchUpRequest,
        14 => Kind::CatchUpReply,
        15 => Kind::SparePublication,
        16 => Kind::SpareAck,
        17 => Kind::Leave,
        18 => Kind::EvictionNotice,
        19 => Kind::GroupMessage,
        21 => Kind::RevocationList,
        _ => Kind::Other,
    }
}

/// Returns true if a message is a leader's re-key.
pub(crate) fn is_rekey(payload: &[u8]) -> bool {
    kind(payload) == Kind::Rekey
}

/// Returns true if a message brings an epoch to a drone, or is part of a drone's following it.
pub(super) fn is_about_an_epoch(payload: &[u8]) -> bool {
    matches!(
        kind(payload),
        Kind::Welcome
            | Kind::Ack
            | Kind::Rekey
            | Kind::CatchUpRequest
            | Kind::CatchUpReply
            | Kind::SparePublication
            | Kind::SpareAck
            | Kind::EvictionNotice
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
        assert_eq!(encoded(Message::Ack(ack)), Kind::Ack);
        assert_eq!(encoded(Message::EnrolHello(EnrolHello { nonce: [0; 16] })), Kind::Other);
        // The tags of fields from 16 on take two octets.
        assert_eq!(encoded(Message::RevocationQuery(RevocationQuery { number: 3, max_len: 0 })), Kind::Other);
        assert_eq!((kind(&[]), kind(&[0; 10])), (Kind::Other, Kind::Other));
        let mut group = vec![0; HEAD];
        group.extend([0x9a, 0x01]);
        assert_eq!(kind(&group), Kind::GroupMessage);
        let mut short = vec![0; HEAD];
        short.extend([0xb2, 0x02]);
        assert!(is_rekey(&short) && is_about_an_epoch(&short) && purpose(&short) == 2);
    }
}
