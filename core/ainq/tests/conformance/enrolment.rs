//! Tokens, enrolment and revocation: the honest run, and the refusals.

use quiver_ainq::enrolment::MAX_KGCS;
use quiver_ainq::{
    DronePublicKey, EnrolmentRequest, Error, IssuedToken, Label, MAX_QUORUM_STATEMENT_LEN,
    MAX_REVOCATION_LIST_LEN, Name, OperatorPublicKey, OperatorSecretKey, PendingEnrolment, Purpose,
    QuorumStatement, REVOCATION_MARGIN, RevocationStatement, Revoked, Role, SealedReply, SealedShare,
    SignedRevocationList, StatementSignature, Suite, Token, TokenGrant,
};

use crate::fixture::{NOW, World, name};
use crate::for_each_suite;

for_each_suite![
    a_drone_enrols,
    an_enrolment_survives_a_restart_of_the_drone,
    the_reply_to_one_request_opens_under_no_other,
    the_gateway_cannot_open_the_reply,
    an_expired_token_is_refused,
    a_token_for_another_deployment_is_refused,
    a_token_of_an_unknown_operator_is_refused,
    a_stolen_token_without_its_secret_enrols_nobody,
    a_reused_token_shows_in_the_pin,
    a_share_opens_for_its_drone_request_kgc_and_package_alone,
    a_share_of_another_length_is_not_sealed,
    a_quorum_statement_holds_under_its_key_and_purpose_alone,
    an_overlong_quorum_statement_is_refused,
    a_request_to_another_kgc_is_refused,
    a_reply_of_a_kgc_that_was_not_asked_is_refused,
    a_drone_may_not_name_too_many_groups,
    a_revocation_list_names_whom_it_names,
    a_revocation_list_holds_without_its_edges_and_with_no_others,
    an_overlong_revocation_list_is_refused,
];

fn operators<S: Suite>(world: &World<S>) -> [OperatorPublicKey<S>; 2] {
    let stranger = OperatorSecretKey::generate(&mut crate::fixture::rng(99)).public();
    [stranger, world.operator.public()]
}

fn a_drone_enrols<S: Suite>() {
    let mut world = World::<S>::new(1);
    let (request, pending) = world.request();
    let request = EnrolmentRequest::<S>::decode(&request.encode()).unwrap();
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    assert_eq!(verified.token_id(), &request.statement().id);
    assert_eq!(verified.digest(), request.digest());
    let (reply, public) = SealedReply::issue(&world.master, &world.deployment, &verified, 1, &mut world.rng);
    assert_eq!(reply.encode().len(), SealedReply::<S>::LEN);
    let reply = SealedReply::<S>::decode(&reply.encode()).unwrap();
    let keypair = pending.open(&world.deployment, &reply).unwrap();
    assert_eq!(keypair.public(), &public);
    assert_eq!(public.identity.role, Role::Edge);
    assert_eq!(public.identity.groups, [name("alpha"), name("bravo")]);
    let signature = keypair.sign(&world.deployment, Label::Join, b"hello", &mut world.rng);
    assert_eq!(signature.verify(&world.deployment, &public, Label::Join, b"hello"), Ok(()));
}

fn an_enrolment_survives_a_restart_of_the_drone<S: Suite>() {
    let mut world = World::<S>::new(2);
    let (request, pending) = world.request();
    let pending = PendingEnrolment::<S>::decode(&pending.encode()).unwrap();
    assert_eq!(pending.request(), &request);
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    let (reply, public) = SealedReply::issue(&world.master, &world.deployment, &verified, 1, &mut world.rng);
    assert_eq!(pending.open(&world.deployment, &reply).unwrap().public(), &public);
}

fn the_reply_to_one_request_opens_under_no_other<S: Suite>() {
    let mut world = World::<S>::new(3);
    let ((request, _), (_, other)) = (world.request(), world.request());
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    let (reply, _) = SealedReply::issue(&world.master, &world.deployment, &verified, 1, &mut world.rng);
    assert_eq!(other.open(&world.deployment, &reply).map(|_| ()), Err(Error::SealBroken));
}

fn the_gateway_cannot_open_the_reply<S: Suite>() {
    let mut world = World::<S>::new(4);
    let (request, pending) = world.request();
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    let (reply, public) = SealedReply::issue(&world.master, &world.deployment, &verified, 1, &mut world.rng);
    // The request and the reply on their way. Nothing in the reply is the partial key in the clear.
    let keypair = pending.open(&world.deployment, &reply).unwrap();
    let bytes = reply.encode();
    assert!(!bytes.windows(S::POINT_LEN).any(|window| window == public.r()));
    // Half of the drone's secrets is not enough: with another reply secret the encoding is refused, and with
    // another request of the same drone the seal is.
    let (_, stranger) = world.request();
    let (mine, theirs) = (pending.encode(), stranger.encode());
    let half = [&mine[..mine.len() - 32], &theirs[theirs.len() - 32..]].concat();
    assert_eq!(PendingEnrolment::<S>::decode(&half).map(|_| ()), Err(Error::InvalidScalar));
    assert_eq!(stranger.open(&world.deployment, &reply).map(|_| ()), Err(Error::SealBroken));
    assert_eq!(keypair.public(), &public);
}

fn an_expired_token_is_refused<S: Suite>() {
    let mut world = World::<S>::new(5);
    let (request, _) = world.request();
    let verify = |now| request.verify(&world.deployment, &operators(&world), 1, now).map(|_| ());
    assert_eq!(verify(NOW + 99), Ok(()));
    assert_eq!(verify(NOW + 100), Err(Error::Expired));
    // A token that outlives the identity it grants
    let grant = TokenGrant { not_after: NOW + 10, expiry: NOW + 100, ..World::<S>::grant() };
    let token = world.operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    assert_eq!(token.token.verify(&world.deployment, &operators(&world), NOW + 9), Ok(()));
    assert_eq!(token.token.verify(&world.deployment, &operators(&world), NOW + 10), Err(Error::Expired));
}

fn a_token_for_another_deployment_is_refused<S: Suite>() {
    let (mut world, other) = (World::<S>::new(6), World::<S>::new(7));
    let token = world.token();
    let foreign = EnrolmentRequest::create(&other.deployment, &token, &[1], [0; 16], &mut world.rng);
    assert_eq!(foreign.map(|_| ()), Err(Error::WrongDeployment));
    let (request, _) = world.request();
    let verified = request.verify(&other.deployment, &operators(&world), 1, NOW);
    assert_eq!(verified.map(|_| ()), Err(Error::WrongDeployment));
}

fn a_token_of_an_unknown_operator_is_refused<S: Suite>() {
    let mut world = World::<S>::new(8);
    let (request, _) = world.request();
    let stranger = OperatorSecretKey::generate(&mut world.rng).public();
    let verify = |operators: &[_]| request.verify(&world.deployment, operators, 1, NOW).map(|_| ());
    assert_eq!(verify(&[stranger]), Err(Error::UnknownOperator));
    assert_eq!(verify(&[]), Err(Error::UnknownOperator));
}

fn a_stolen_token_without_its_secret_enrols_nobody<S: Suite>() {
    let mut world = World::<S>::new(9);
    let (honest, _) = world.request();
    let (thief, _) = world.request();
    // The thief puts the drone's token into a request of their own.
    let (honest, thief) = (honest.encode(), thief.encode());
    let token_len = world.token().token.encode().len();
    let spliced = [&honest[..token_len], &thief[token_len..]].concat();
    let spliced = EnrolmentRequest::<S>::decode(&spliced).unwrap();
    let verified = spliced.verify(&world.deployment, &operators(&world), 1, NOW);
    assert_eq!(verified.map(|_| ()), Err(Error::InvalidSignature));
}

fn a_reused_token_shows_in_the_pin<S: Suite>() {
    let mut world = World::<S>::new(10);
    let token = world.token();
    let mut pin = |session| {
        let (request, pending) =
            EnrolmentRequest::create(&world.deployment, &token, &[1], session, &mut world.rng).unwrap();
        let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
        let again = pending.request().verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
        assert_eq!(verified.pin(), again.pin());
        (*verified.token_id(), verified.pin())
    };
    let (first, second) = (pin([1; 16]), pin([2; 16]));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
}

fn a_request_to_another_kgc_is_refused<S: Suite>() {
    let mut world = World::<S>::new(11);
    let (request, _) = world.request();
    let verified = request.verify(&world.deployment, &operators(&world), 2, NOW);
    assert_eq!(verified.map(|_| ()), Err(Error::WrongKgc));
    let token = world.token();
    let mut create = |kgcs: &[u16]| {
        EnrolmentRequest::create(&world.deployment, &token, kgcs, [0; 16], &mut world.rng).map(|_| ())
    };
    assert_eq!(create(&[]), Err(Error::WrongKgc));
    assert_eq!(create(&[0, 1]), Err(Error::WrongKgc));
    let many: Vec<u16> = (1..=MAX_KGCS as u16 + 1).collect();
    assert_eq!(create(&many), Err(Error::TooLong { what: "KGCs of a request", limit: MAX_KGCS }));
}

fn a_reply_of_a_kgc_that_was_not_asked_is_refused<S: Suite>() {
    let mut world = World::<S>::new(12);
    let (request, pending) = world.request();
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    let (reply, _) = SealedReply::issue(&world.master, &world.deployment, &verified, 2, &mut world.rng);
    assert_eq!(pending.open(&world.deployment, &reply).map(|_| ()), Err(Error::WrongKgc));
}

fn a_drone_may_not_name_too_many_groups<S: Suite>() {
    let mut world = World::<S>::new(13);
    let groups: Vec<Name> = (0..17).map(|group| name(&format!("group-{group}"))).collect();
    let grant = TokenGrant { groups, ..World::<S>::grant() };
    let refused = world.operator.issue(&world.deployment, grant, &mut world.rng).map(|_| ());
    assert_eq!(refused, Err(Error::TooLong { what: "groups", limit: 16 }));
    // The largest token there is still makes a request within its bound.
    let long = |group: usize| name(&format!("{group:064}"));
    let grant = TokenGrant {
        name: long(1),
        role: Role::Leader { group: long(2), ordinal: u16::MAX },
        groups: (0..16).map(long).collect(),
        ..World::<S>::grant()
    };
    let token = world.operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    let kgcs: Vec<u16> = (1..=MAX_KGCS as u16).collect();
    let (request, _) =
        EnrolmentRequest::create(&world.deployment, &token, &kgcs, [0; 16], &mut world.rng).unwrap();
    assert_eq!(EnrolmentRequest::decode(&request.encode()).as_ref(), Ok(&request));
    // As long as the bound says, but for the room it leaves suites with longer names.
    assert_eq!(token.token.encode().len(), Token::<S>::MAX_LEN - (64 - S::ID.len()));
    assert_eq!(IssuedToken::decode(&token.encode()).map(|read| read.token), Ok(token.token));
}

fn a_revocation_list_names_whom_it_names<S: Suite>() {
    let mut world = World::<S>::new(14);
    let drones: Vec<DronePublicKey<S>> = (1..=4).map(|serial| world.drone(serial).public().clone()).collect();
    let edge = |drone: &DronePublicKey<S>| Revoked::from(&drone.identity);
    let leader = Revoked::unknown(drones[1].identity.serial);
    let revoked =
        vec![edge(&drones[2]), edge(&drones[1]), leader, edge(&drones[0]), Revoked::unknown([0xff; 16])];
    let list = RevocationStatement { number: 7, issued: NOW, next_update: NOW + 60, revoked };
    let signed = world.master.sign_revocations(&world.deployment, list, &mut world.rng).unwrap();
    let signed = SignedRevocationList::<S>::decode(&signed.encode()).unwrap();
    assert_eq!(RevocationStatement::claimed_number(&signed.encode()), Ok(7));
    let list = signed.clone().verify(&world.deployment).unwrap();
    assert_eq!(list.bytes(), signed.encode());
    let named: Vec<bool> = drones.iter().map(|drone| list.names(drone)).collect();
    assert_eq!(named, [true, true, true, false]);
    assert!(!RevocationStatement::empty().names(&drones[0]));
    // With all keys that the drone ever had, and named once although it was given twice.
    assert!(list.names(world.drone(1).public()));
    assert_eq!(list.revoked.len(), 4);
    assert_eq!(list.find(&drones[1].identity.serial), Some(&leader));
    assert_eq!(RevocationStatement::decode(&list.encode()).as_ref(), Ok(&*list));
    let elsewhere = signed.verify(&World::<S>::new(15).deployment);
    assert_eq!(elsewhere.map(|_| ()), Err(Error::InvalidSignature));
}

fn a_revocation_list_holds_without_its_edges_and_with_no_others<S: Suite>() {
    let mut world = World::<S>::new(17);
    let edges = (0..5_000_u64).map(|n| Revoked { serial: serial(n), not_after: NOW, leader: false });
    let leaders = (9_000..9_300_u64).map(|n| Revoked { serial: serial(n), not_after: NOW, leader: true });
    let list = RevocationStatement {
        number: 7,
        issued: NOW,
        next_update: NOW + 60,
        revoked: edges.chain(leaders).collect(),
    };
    let signed = world.master.sign_revocations(&world.deployment, list, &mut world.rng).unwrap();
    let whole = signed.verify(&world.deployment).unwrap();
    assert!(whole.is_whole() && whole.names_serial(&serial(4_999)) && whole.bytes().len() > 120_000);

    let short = whole.leaders_only();
    assert!(short.len() < 8 * 1024, "{} bytes", short.len());
    let decoded = SignedRevocationList::<S>::decode(short).unwrap().verify(&world.deployment).unwrap();
    assert!(!decoded.is_whole() && decoded.number == 7);
    assert!(decoded.names_serial(&serial(9_299)) && !decoded.names_serial(&serial(4_999)));
    assert_eq!((decoded.bytes(), decoded.leaders_only()), (short, short));

    let mut other = whole.bytes().to_vec();
    *other.last_mut().unwrap() ^= 1;
    assert!(matches!(SignedRevocationList::<S>::decode(&other), Err(Error::Malformed(_))));
    let cut = &whole.bytes()[..whole.bytes().len() - 24];
    assert!(matches!(SignedRevocationList::<S>::decode(cut), Err(Error::Malformed(_))));
    // Leaders cannot be left out: they are under the signature.
    let mut fewer = (*whole).clone();
    fewer.revoked.remove(0);
    let forged = SignedRevocationList::new(fewer, *whole.signature()).unwrap();
    assert_eq!(forged.verify(&world.deployment).map(|_| ()), Err(Error::InvalidSignature));
}

#[test]
fn an_identity_stays_in_lists_for_a_day_after_its_end() {
    let ends = Revoked { serial: [1; 16], not_after: NOW, leader: false };
    assert!(!ends.has_ended(NOW + REVOCATION_MARGIN) && ends.has_ended(NOW + REVOCATION_MARGIN + 1));
    let unknown = Revoked::unknown([1; 16]);
    assert!(!unknown.has_ended(u64::MAX) && unknown.covers(&ends) && !ends.covers(&unknown));
    assert_eq!(ends.and(&unknown), unknown);
}

fn serial(n: u64) -> [u8; 16] {
    let mut serial = [0; 16];
    serial[..8].copy_from_slice(&n.to_be_bytes());
    serial
}

fn an_overlong_revocation_list_is_refused<S: Suite>() {
    let mut world = World::<S>::new(16);
    let fits = (MAX_REVOCATION_LIST_LEN - 4 - 24 - 4 - 32 - StatementSignature::<S>::LEN - 4) / 24;
    let mut sign = |count: usize| {
        let revoked = (0..count as u64).map(|n| Revoked { serial: serial(n), not_after: NOW, leader: false });
        let list = RevocationStatement { revoked: revoked.collect(), ..RevocationStatement::empty() };
        world.master.sign_revocations(&world.deployment, list, &mut world.rng)
    };
    let signed = sign(fits).unwrap().encode();
    assert!(fits > 41_000 && signed.len() <= MAX_REVOCATION_LIST_LEN, "{fits} entries");
    assert!(SignedRevocationList::<S>::decode(&signed).is_ok());
    let limit = MAX_REVOCATION_LIST_LEN;
    assert_eq!(sign(fits + 1).map(|_| ()), Err(Error::TooLong { what: "revocation list", limit }));
    let decoded = SignedRevocationList::<S>::decode(&vec![0; limit + 1]).map(|_| ());
    assert_eq!(decoded, Err(Error::TooLong { what: "revocation list", limit }));
    let list = RevocationStatement { issued: 2, next_update: 1, ..RevocationStatement::empty() };
    assert!(world.master.sign_revocations(&world.deployment, list, &mut world.rng).is_err());
}

fn a_share_opens_for_its_drone_request_kgc_and_package_alone<S: Suite>() {
    let mut world = World::<S>::new(30);
    let ((request, pending), (_, other)) = (world.request(), world.request());
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    let z = S::scalar_encode(&S::scalar_random(&mut world.rng));
    let (this, that) = ([1; 32], [2; 32]);
    let share = verified.seal_share(1, &this, &*z, &mut world.rng).unwrap();
    let bytes = share.encode();
    assert_eq!(bytes.len(), SealedShare::<S>::LEN);
    assert!(!bytes.windows(z.len()).any(|window| window == z.as_slice()));
    let share = SealedShare::<S>::decode(&bytes).unwrap();
    assert_eq!(*pending.open_share(&this, &share).unwrap(), *z);
    assert_eq!(pending.open_share(&that, &share), Err(Error::SealBroken));
    assert_eq!(other.open_share(&this, &share), Err(Error::SealBroken));
    // A KGC that was not asked, and every single byte.
    let mut renamed = bytes.clone();
    renamed[..2].copy_from_slice(&9_u16.to_be_bytes());
    let renamed = SealedShare::<S>::decode(&renamed).unwrap();
    assert_eq!(pending.open_share(&this, &renamed), Err(Error::WrongKgc));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let opened = SealedShare::<S>::decode(&changed).and_then(|share| pending.open_share(&this, &share));
        assert!(opened.is_err(), "byte {place}");
        assert!(SealedShare::<S>::decode(&bytes[..place]).is_err());
    }
}

fn a_share_of_another_length_is_not_sealed<S: Suite>() {
    let mut world = World::<S>::new(31);
    let (request, _) = world.request();
    let verified = request.verify(&world.deployment, &operators(&world), 1, NOW).unwrap();
    for length in [0, S::SCALAR_LEN - 1, S::SCALAR_LEN + 1] {
        let sealed = verified.seal_share(1, &[1; 32], &vec![7; length], &mut world.rng);
        assert_eq!(sealed, Err(Error::InvalidScalar));
    }
}

fn a_quorum_statement_holds_under_its_key_and_purpose_alone<S: Suite>() {
    let mut world = World::<S>::new(32);
    let shares = b"public shares".to_vec();
    let signature = world.master.sign(&world.deployment, Purpose::Quorum, &shares, &mut world.rng);
    let statement = QuorumStatement::new(shares.clone(), signature).unwrap();
    let bytes = statement.encode();
    let read = QuorumStatement::<S>::decode(&bytes).unwrap();
    assert_eq!(read, statement);
    assert_eq!(read.verify(&world.deployment).unwrap().shares(), shares);
    let other = World::<S>::new(33).deployment;
    assert_eq!(read.verify(&other), Err(Error::InvalidSignature));
    let wrong = world.master.sign(&world.deployment, Purpose::Parameters, &shares, &mut world.rng);
    let wrong = QuorumStatement::new(shares, wrong).unwrap();
    assert_eq!(wrong.verify(&world.deployment), Err(Error::InvalidSignature));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let verified = QuorumStatement::<S>::decode(&changed).and_then(|read| read.verify(&world.deployment));
        assert!(verified.is_err(), "byte {place}");
        assert!(QuorumStatement::<S>::decode(&bytes[..place]).is_err());
    }
}

fn an_overlong_quorum_statement_is_refused<S: Suite>() {
    let mut world = World::<S>::new(34);
    let limit = MAX_QUORUM_STATEMENT_LEN;
    let room = limit - 4 - StatementSignature::<S>::LEN;
    let mut of = |length: usize| {
        let shares = vec![3; length];
        let signature = world.master.sign(&world.deployment, Purpose::Quorum, &shares, &mut world.rng);
        QuorumStatement::new(shares, signature)
    };
    let longest = of(room).unwrap();
    assert!(QuorumStatement::<S>::decode(&longest.encode()).is_ok());
    let too_long = Error::TooLong { what: "quorum statement", limit };
    assert_eq!(of(room + 1).map(drop), Err(too_long.clone()));
    assert_eq!(QuorumStatement::<S>::decode(&vec![0; limit + 1]).map(drop), Err(too_long));
}
