//! Corrupt exactly one thing, and nothing of it passes.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use quiver_ainq::{
    DronePublicKey, EnrolmentRequest, Error, Identity, IssuedToken, Label, Name, OperatorPublicKey,
    PendingEnrolment, Purpose, RevocationStatement, Revoked, Ristretto255, Role, SealedReply, SecretValue,
    Signature, SignedRevocationList, StatementSignature, Token,
};

use crate::fixture::{NOW, World};

type S = Ristretto255;

/// One of each, encoded, as an honest run makes them.
struct Honest {
    world: World<S>,
    operators: [OperatorPublicKey<S>; 1],
    issued: Vec<u8>,
    token: Vec<u8>,
    request: Vec<u8>,
    pending: Vec<u8>,
    reply: Vec<u8>,
    public: DronePublicKey<S>,
    signature: Vec<u8>,
    statement: Vec<u8>,
    revocations: Vec<u8>,
}

static HONEST: LazyLock<Honest> = LazyLock::new(|| {
    let mut world = World::<S>::new(1);
    let issued = world.token();
    let (request, pending) =
        EnrolmentRequest::create(&world.deployment, &issued, &[1], [9; 16], &mut world.rng).unwrap();
    let operators = [world.operator.public()];
    let verified = request.verify(&world.deployment, &operators, 1, NOW).unwrap();
    let (reply, public) = SealedReply::issue(&world.master, &world.deployment, &verified, 1, &mut world.rng);
    let keypair = pending.open(&world.deployment, &reply).unwrap();
    let signature = keypair.sign(&world.deployment, Label::Join, b"message", &mut world.rng);
    let statement = world.master.sign(&world.deployment, Purpose::Parameters, b"body", &mut world.rng);
    let list = RevocationStatement {
        number: 1,
        issued: NOW,
        next_update: NOW + 60,
        revoked: vec![
            Revoked::from(&public.identity),
            Revoked { serial: [2; 16], not_after: NOW, leader: true },
            Revoked { serial: [3; 16], not_after: NOW, leader: false },
        ],
    };
    let revocations = world.master.sign_revocations(&world.deployment, list, &mut world.rng).unwrap();
    Honest {
        operators,
        issued: issued.encode().to_vec(),
        token: issued.token.encode(),
        request: request.encode(),
        pending: pending.encode().to_vec(),
        reply: reply.encode(),
        public,
        signature: signature.encode(),
        statement: statement.encode(),
        revocations: revocations.encode(),
        world,
    }
});

impl Honest {
    fn token_passes(&self, bytes: &[u8]) -> bool {
        Token::<S>::decode(bytes)
            .is_ok_and(|token| token.verify(&self.world.deployment, &self.operators, NOW).is_ok())
    }

    fn request_passes(&self, bytes: &[u8]) -> bool {
        EnrolmentRequest::<S>::decode(bytes)
            .is_ok_and(|request| request.verify(&self.world.deployment, &self.operators, 1, NOW).is_ok())
    }

    fn reply_passes(&self, bytes: &[u8]) -> bool {
        let pending = PendingEnrolment::<S>::decode(&self.pending).unwrap();
        SealedReply::<S>::decode(bytes)
            .is_ok_and(|reply| pending.open(&self.world.deployment, &reply).is_ok())
    }

    fn signature_passes(&self, public: &DronePublicKey<S>, bytes: &[u8]) -> bool {
        Signature::<S>::decode(bytes).is_ok_and(|signature| {
            signature.verify(&self.world.deployment, public, Label::Join, b"message").is_ok()
        })
    }

    fn statement_passes(&self, bytes: &[u8]) -> bool {
        StatementSignature::<S>::decode(bytes).is_ok_and(|statement| {
            statement.verify(&self.world.deployment, Purpose::Parameters, b"body").is_ok()
        })
    }

    fn revocations_pass(&self, bytes: &[u8]) -> bool {
        SignedRevocationList::<S>::decode(bytes)
            .is_ok_and(|list| list.is_whole() && list.verify(&self.world.deployment).is_ok())
    }
}

/// A change to a byte string: a bit flipped, a byte put in, a byte taken out, or the end cut off.
#[derive(Clone, Copy, Debug)]
enum Corruption {
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Truncate(Index),
}

impl Corruption {
    /// The changed bytes, or `None` if the change changes nothing (removing one of two equal neighbours does
    /// not).
    fn of(self, honest: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = honest.to_vec();
        match self {
            Self::Flip(place, bit) => bytes[place.index(honest.len())] ^= 1 << bit,
            Self::Insert(place, byte) => bytes.insert(place.index(honest.len() + 1), byte),
            Self::Remove(place) => drop(bytes.remove(place.index(honest.len()))),
            Self::Truncate(place) => bytes.truncate(place.index(honest.len())),
        }
        (bytes != honest).then_some(bytes)
    }
}

fn corruption() -> impl Strategy<Value = Corruption> {
    prop_oneof![
        4 => (any::<Index>(), 0..8_u8).prop_map(|(place, bit)| Corruption::Flip(place, bit)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Corruption::Insert(place, byte)),
        1 => any::<Index>().prop_map(Corruption::Remove),
        1 => any::<Index>().prop_map(Corruption::Truncate),
    ]
}

#[test]
fn what_nobody_corrupted_passes() {
    let honest = &*HONEST;
    assert!(honest.token_passes(&honest.token));
    assert!(honest.request_passes(&honest.request));
    assert!(honest.reply_passes(&honest.reply));
    assert!(honest.signature_passes(&honest.public, &honest.signature));
    assert!(honest.statement_passes(&honest.statement));
    assert!(honest.revocations_pass(&honest.revocations));
    assert!(IssuedToken::<S>::decode(&honest.issued).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_corrupted_token_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.token) else { return Ok(()) };
        prop_assert!(!HONEST.token_passes(&bytes));
    }

    #[test]
    fn a_corrupted_request_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.request) else { return Ok(()) };
        prop_assert!(!HONEST.request_passes(&bytes));
    }

    #[test]
    fn a_corrupted_reply_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.reply) else { return Ok(()) };
        prop_assert!(!HONEST.reply_passes(&bytes));
    }

    #[test]
    fn a_corrupted_signature_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.signature) else { return Ok(()) };
        prop_assert!(!HONEST.signature_passes(&HONEST.public, &bytes));
    }

    #[test]
    fn a_signature_does_not_verify_under_a_corrupted_public_key(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.public.encode()) else { return Ok(()) };
        let Ok(public) = DronePublicKey::<S>::decode(&bytes) else { return Ok(()) };
        prop_assert!(!HONEST.signature_passes(&public, &HONEST.signature));
    }

    #[test]
    fn a_corrupted_statement_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.statement) else { return Ok(()) };
        prop_assert!(!HONEST.statement_passes(&bytes));
    }

    #[test]
    fn a_corrupted_revocation_list_is_refused(corruption in corruption()) {
        let Some(bytes) = corruption.of(&HONEST.revocations) else { return Ok(()) };
        prop_assert!(!HONEST.revocations_pass(&bytes));
    }

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(corruption in corruption()) {
        let honest = &*HONEST;
        if let Some(bytes) = corruption.of(&honest.request) && let Ok(request) = EnrolmentRequest::<S>::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes);
        }
        if let Some(bytes) = corruption.of(&honest.public.encode()) && let Ok(public) = DronePublicKey::<S>::decode(&bytes) {
            prop_assert_eq!(public.encode(), bytes);
        }
        if let Some(bytes) = corruption.of(&honest.revocations) && let Ok(list) = SignedRevocationList::<S>::decode(&bytes) {
            prop_assert_eq!(list.encode(), bytes);
        }
        if let Some(bytes) = corruption.of(&honest.pending) && let Ok(pending) = PendingEnrolment::<S>::decode(&bytes) {
            prop_assert_eq!(pending.encode().to_vec(), bytes);
        }
    }

    #[test]
    fn decoders_survive_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Token::<S>::decode(&bytes);
        let _ = IssuedToken::<S>::decode(&bytes);
        let _ = EnrolmentRequest::<S>::decode(&bytes);
        let _ = PendingEnrolment::<S>::decode(&bytes);
        let _ = SignedRevocationList::<S>::decode(&bytes);
        prop_assert!(SealedReply::<S>::decode(&bytes).is_err() || bytes.len() == SealedReply::<S>::LEN);
        prop_assert!(Signature::<S>::decode(&bytes).is_err() || bytes.len() == Signature::<S>::LEN);
    }

    #[test]
    fn an_identity_has_one_encoding(
        serial in any::<[u8; 16]>(), drone in "[A-Za-z0-9._-]{1,64}", leads in any::<Option<u16>>(),
        groups in prop::collection::btree_set("[A-Za-z0-9._-]{1,64}", 0..=16), not_after in any::<u64>(),
    ) {
        let group = Name::new("g").unwrap();
        let role = leads.map_or(Role::Edge, |ordinal| Role::Leader { group, ordinal });
        let groups = groups.iter().map(|group| Name::new(group).unwrap()).collect();
        let identity = Identity { serial, name: Name::new(&drone).unwrap(), role, groups, not_after };
        let bytes = identity.encode();
        prop_assert!(bytes.len() <= quiver_ainq::MAX_IDENTITY_LEN);
        prop_assert_eq!(Identity::decode(&bytes), Ok(identity.clone()));
        if identity.groups.len() > 1 {
            let mut unsorted = identity;
            unsorted.groups.reverse();
            prop_assert!(Identity::decode(&unsorted.encode()).is_err());
        }
    }

    #[test]
    fn a_name_is_refused_for_any_other_character(before in "[a-z]{0,10}", odd in "[^A-Za-z0-9._-]", after in "[a-z]{0,10}") {
        let name = [before, odd, after].concat();
        prop_assert!(Name::new(&name).is_err());
    }
}

#[test]
fn a_name_has_one_to_sixty_four_characters() {
    assert!(Name::new("").is_err());
    assert!(Name::new(&"a".repeat(64)).is_ok());
    assert!(Name::new(&"a".repeat(65)).is_err());
}

#[test]
fn the_longest_identity_is_as_long_as_the_bound_says() {
    let long = |number: usize| Name::new(&format!("{number:064}")).unwrap();
    let of = |groups: usize| Identity {
        serial: [1; 16],
        name: long(0),
        role: Role::Leader { group: long(0), ordinal: u16::MAX },
        groups: (0..groups).map(long).collect(),
        not_after: u64::MAX,
    };
    let longest = of(16);
    assert_eq!((quiver_ainq::MAX_GROUPS, quiver_ainq::MAX_IDENTITY_LEN), (16, 1255));
    assert_eq!(longest.encode().len(), 1255);
    assert_eq!(longest.check(), Ok(()));
    assert_eq!(Identity::decode(&longest.encode()).as_ref(), Ok(&longest));
    // One group too many: refused by its maker and by readers.
    assert_eq!(of(17).check(), Err(Error::TooLong { what: "groups", limit: 16 }));
    assert!(Identity::decode(&of(17).encode()).is_err());
    let mut world = World::<S>::new(2);
    let value = SecretValue::generate(&mut world.rng);
    let partial =
        world.master.issue_partial_key(&world.deployment, &longest, &value.public(), &mut world.rng);
    let public = partial.verify(&world.deployment, &longest, &value).unwrap().public().clone();
    assert_eq!(public.encode().len(), DronePublicKey::<S>::MAX_LEN);
    assert_eq!(DronePublicKey::decode(&public.encode()), Ok(public));
}

#[test]
fn a_request_is_looked_into_only_if_it_is_no_longer_than_the_bound_says() {
    let decoded = |length: usize| EnrolmentRequest::<S>::decode(&vec![0; length]).map(drop);
    let too_long = Err(Error::TooLong { what: "enrolment request", limit: 4096 });
    assert_eq!(decoded(4097), too_long);
    assert_ne!(decoded(4096), too_long);
}
