//! Authorities beside the KGC: their statements, and their deliveries.

use quiver_ainq::authority::{MAX_PARAMETERS_LEN, MAX_SCHEMA_LEN};
use quiver_ainq::delivery::{MAX_DELIVERY_REQUEST_LEN, MAX_QUESTION_LEN, MAX_SECRET_LEN};
use quiver_ainq::{
    AuthorityStatement, Deployment, DroneKeypair, Error, Label, MAX_AUTHORITY_LEN, PendingDelivery, Purpose,
    RevocationStatement, Revoked, SealedDelivery, SecretScalar, SignedAuthority, SignedDeliveryRequest,
    Suite, VerifiedAuthority,
};

use crate::fixture::{NOW, World, name};
use crate::for_each_suite;

for_each_suite![
    an_authority_that_the_kgc_vouches_for_is_believed_and_no_other,
    a_statement_of_another_shape_is_no_authority,
    overlong_parameters_are_not_signed,
    every_corrupted_byte_of_a_statement_is_noticed,
    an_enrolled_drone_gets_its_secret_and_nobody_else_does,
    a_request_is_good_for_its_challenge_alone,
    another_drones_name_does_not_help,
    expired_and_revoked_drones_get_nothing,
    only_the_authority_asked_can_answer,
    every_corrupted_byte_of_a_request_is_noticed,
    every_corrupted_byte_of_an_answer_is_noticed,
    an_unattested_answer_is_closed_to_others_and_passes_for_no_attested_one,
    the_longest_request_fits_its_bound,
    overlong_questions_and_answers_are_refused,
];

const CHALLENGE: &[u8] = b"cookie of this connection";
const LABEL: Label = Label::Attributes;

struct Issuer<S: Suite> {
    secret: SecretScalar<S>,
    public: VerifiedAuthority<S>,
}

fn statement<S: Suite>(secret: &SecretScalar<S>) -> AuthorityStatement<S> {
    AuthorityStatement {
        kind: name("abe"),
        name: name("orders"),
        scheme: name("fabeo22-cp"),
        delivery: secret.public(),
        schema: vec![1, 2, 3],
        parameters: vec![4; 100],
    }
}

fn issuer<S: Suite>(world: &mut World<S>) -> Issuer<S> {
    let secret = SecretScalar::generate(&mut world.rng);
    let signed = world.master.sign_authority(&world.deployment, statement(&secret), &mut world.rng).unwrap();
    let signed = SignedAuthority::decode(&signed.encode()).unwrap();
    Issuer { secret, public: signed.verify(&world.deployment).unwrap() }
}

fn ask<S: Suite>(
    world: &mut World<S>,
    keypair: &DroneKeypair<S>,
    issuer: &Issuer<S>,
) -> (SignedDeliveryRequest<S>, PendingDelivery<S>) {
    ask_with(world, keypair, issuer, b"my key").unwrap()
}

/// The same with this question.
fn ask_with<S: Suite>(
    world: &mut World<S>,
    keypair: &DroneKeypair<S>,
    issuer: &Issuer<S>,
    question: &[u8],
) -> Result<(SignedDeliveryRequest<S>, PendingDelivery<S>), Error> {
    let authority = *issuer.public.fingerprint();
    SignedDeliveryRequest::create(
        &world.deployment,
        keypair,
        LABEL,
        authority,
        CHALLENGE,
        question,
        &mut world.rng,
    )
}

fn verified<S: Suite>(
    world: &World<S>,
    request: SignedDeliveryRequest<S>,
) -> Result<quiver_ainq::VerifiedDelivery<S>, Error> {
    request.verify(&world.deployment, LABEL, CHALLENGE, &RevocationStatement::empty(), NOW)
}

fn an_authority_that_the_kgc_vouches_for_is_believed_and_no_other<S: Suite>() {
    let (mut world, mut other) = (World::<S>::new(1), World::<S>::new(2));
    let issuer = issuer(&mut world);
    assert_eq!(issuer.public.name, name("orders"));
    assert_eq!(issuer.public.parameters, [4; 100]);
    let again = SignedAuthority::<S>::decode(&issuer.public.bytes()).unwrap();
    assert_eq!(again.clone().verify(&world.deployment).unwrap().fingerprint(), issuer.public.fingerprint());
    assert_eq!(again.clone().verify(&other.deployment), Err(Error::InvalidSignature));
    let renamed = Deployment::new(name("elsewhere"), world.master.public());
    assert_eq!(again.verify(&renamed), Err(Error::InvalidSignature));
    // Another KGC's statement of the same authority has another fingerprint.
    let theirs =
        other.master.sign_authority(&other.deployment, statement(&issuer.secret), &mut other.rng).unwrap();
    let theirs = theirs.verify(&other.deployment).unwrap();
    assert_ne!(theirs.fingerprint(), issuer.public.fingerprint());
}

fn a_statement_of_another_shape_is_no_authority<S: Suite>() {
    let mut world = World::<S>::new(3);
    let body = b"\0\0\0\x05other, whatever it says".to_vec();
    let signature = world.master.sign(&world.deployment, Purpose::Parameters, &body, &mut world.rng);
    let mut bytes = quiver_crypto::canonical::Writer::new();
    let bytes = bytes.lp(&body).fixed(&signature.encode()).finish();
    assert!(matches!(SignedAuthority::<S>::decode(&bytes), Err(Error::Malformed(_))));
}

fn overlong_parameters_are_not_signed<S: Suite>() {
    let mut world = World::<S>::new(4);
    let secret = SecretScalar::<S>::generate(&mut world.rng);
    let longest = AuthorityStatement {
        schema: vec![0; MAX_SCHEMA_LEN],
        parameters: vec![0; MAX_PARAMETERS_LEN],
        ..statement(&secret)
    };
    let signed =
        world.master.sign_authority(&world.deployment, longest.clone(), &mut world.rng).unwrap().encode();
    assert!(signed.len() <= MAX_AUTHORITY_LEN);
    SignedAuthority::<S>::decode(&signed).unwrap();
    let schema = AuthorityStatement { schema: vec![0; MAX_SCHEMA_LEN + 1], ..statement(&secret) };
    let parameters = AuthorityStatement { parameters: vec![0; MAX_PARAMETERS_LEN + 1], ..longest };
    for statement in [schema, parameters] {
        let signed = world.master.sign_authority(&world.deployment, statement, &mut world.rng);
        assert!(matches!(signed, Err(Error::TooLong { .. })));
    }
    let endless = vec![0; MAX_AUTHORITY_LEN + 1];
    assert!(matches!(SignedAuthority::<S>::decode(&endless), Err(Error::TooLong { .. })));
}

fn every_corrupted_byte_of_a_statement_is_noticed<S: Suite>() {
    let mut world = World::<S>::new(5);
    let bytes = issuer(&mut world).public.bytes();
    for position in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[position] ^= 1 << (position % 8);
        let read = SignedAuthority::<S>::decode(&bad).and_then(|signed| signed.verify(&world.deployment));
        assert!(read.is_err(), "byte {position}");
        assert!(SignedAuthority::<S>::decode(&bytes[..position]).is_err(), "cut at {position}");
    }
}

fn an_enrolled_drone_gets_its_secret_and_nobody_else_does<S: Suite>() {
    let mut world = World::<S>::new(6);
    let issuer = issuer(&mut world);
    let (drone, other) = (world.drone(1), world.drone(2));
    let (request, pending) = ask(&mut world, &drone, &issuer);
    let encoded = request.encode();
    let request = verified(&world, SignedDeliveryRequest::decode(&encoded).unwrap()).unwrap();
    assert_eq!((request.drone(), request.question()), (drone.public(), &b"my key"[..]));
    assert_eq!(request.digest(), pending.digest());
    // §4.2: an answer is tied to all of the request.
    let hasher = quiver_crypto::Hasher::new("quiver/1 delivery request");
    assert_eq!(*request.digest(), hasher.lp(S::ID.as_bytes()).lp(&encoded).finish());
    let sealed = request.seal(&issuer.public, &issuer.secret, b"the secret", &mut world.rng).unwrap();
    let sealed = SealedDelivery::decode(&sealed.encode()).unwrap();
    assert_eq!(pending.open(&drone, &issuer.public, &sealed).unwrap().as_slice(), b"the secret");
    assert_eq!(pending.open(&other, &issuer.public, &sealed), Err(Error::SealBroken));
    // The drone's key without the erased n: another request of the same drone does not open it.
    let (_, later) = ask(&mut world, &drone, &issuer);
    assert_eq!(later.open(&drone, &issuer.public, &sealed), Err(Error::SealBroken));
    // Two one-time secrets, one Debug: it prints neither.
    assert_eq!(format!("{later:?}"), format!("{pending:?}"));
}

fn a_request_is_good_for_its_challenge_alone<S: Suite>() {
    let mut world = World::<S>::new(7);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let (request, _) = ask(&mut world, &drone, &issuer);
    let with = |label, challenge: &[u8]| {
        let list = RevocationStatement::empty();
        request.clone().verify(&world.deployment, label, challenge, &list, NOW).map(|_| ())
    };
    assert_eq!(with(LABEL, CHALLENGE), Ok(()));
    assert_eq!(with(LABEL, b"cookie of another connection"), Err(Error::InvalidSignature));
    assert_eq!(with(Label::IbeRelease, CHALLENGE), Err(Error::InvalidSignature));
}

fn another_drones_name_does_not_help<S: Suite>() {
    let mut world = World::<S>::new(8);
    let (issuer, drone, victim) = (issuer(&mut world), world.drone(1), world.drone(2));
    let (request, _) = ask(&mut world, &drone, &issuer);
    // The same request with the victim's public key in front.
    let own = drone.public().encode();
    let mut bytes = victim.public().encode();
    bytes.extend_from_slice(&request.encode()[own.len()..]);
    let forged = SignedDeliveryRequest::decode(&bytes).unwrap();
    assert_eq!(verified(&world, forged).map(|_| ()), Err(Error::InvalidSignature));
    let foreign = World::<S>::new(9).drone(1);
    let (request, _) = ask(&mut world, &foreign, &issuer);
    assert_eq!(verified(&world, request).map(|_| ()), Err(Error::InvalidSignature), "of another KGC");
}

fn expired_and_revoked_drones_get_nothing<S: Suite>() {
    let mut world = World::<S>::new(10);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let (request, _) = ask(&mut world, &drone, &issuer);
    let ends = drone.public().identity.not_after;
    let at = |now, list: &RevocationStatement| {
        request.clone().verify(&world.deployment, LABEL, CHALLENGE, list, now).map(|_| ())
    };
    assert_eq!(at(ends - 1, &RevocationStatement::empty()), Ok(()));
    assert_eq!(at(ends, &RevocationStatement::empty()), Err(Error::Expired));
    let by_serial =
        RevocationStatement { revoked: vec![Revoked::unknown([1; 16])], ..RevocationStatement::empty() };
    let by_entry = Revoked::from(&drone.public().identity);
    let by_entry = RevocationStatement { revoked: vec![by_entry], ..RevocationStatement::empty() };
    assert_eq!(at(NOW, &by_serial), Err(Error::Revoked));
    assert_eq!(at(NOW, &by_entry), Err(Error::Revoked));
}

fn only_the_authority_asked_can_answer<S: Suite>() {
    let mut world = World::<S>::new(11);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let other = self::issuer(&mut world);
    let (request, pending) = ask(&mut world, &drone, &issuer);
    let request = verified(&world, request).unwrap();
    let wrong = request.seal(&other.public, &other.secret, b"x", &mut world.rng);
    assert_eq!(wrong, Err(Error::WrongAuthority));
    // An attacker who knows everything public, but not a.
    let forged = request.seal(&issuer.public, &other.secret, b"x", &mut world.rng).unwrap();
    assert_eq!(pending.open(&drone, &issuer.public, &forged), Err(Error::SealBroken));
    let honest = request.seal(&issuer.public, &issuer.secret, b"x", &mut world.rng).unwrap();
    assert_eq!(pending.open(&drone, &other.public, &honest), Err(Error::WrongAuthority));
}

fn every_corrupted_byte_of_a_request_is_noticed<S: Suite>() {
    let mut world = World::<S>::new(12);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let bytes = ask(&mut world, &drone, &issuer).0.encode();
    for position in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[position] ^= 1 << (position % 8);
        let read = SignedDeliveryRequest::<S>::decode(&bad).and_then(|request| verified(&world, request));
        assert!(read.is_err(), "byte {position}");
        assert!(SignedDeliveryRequest::<S>::decode(&bytes[..position]).is_err(), "cut at {position}");
    }
}

fn every_corrupted_byte_of_an_answer_is_noticed<S: Suite>() {
    let mut world = World::<S>::new(13);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let (request, pending) = ask(&mut world, &drone, &issuer);
    let request = verified(&world, request).unwrap();
    let sealed = request.seal(&issuer.public, &issuer.secret, b"x", &mut world.rng).unwrap().encode();
    for position in 0..sealed.len() {
        let mut bad = sealed.clone();
        bad[position] ^= 1 << (position % 8);
        let opened =
            SealedDelivery::decode(&bad).and_then(|answer| pending.open(&drone, &issuer.public, &answer));
        assert!(opened.is_err(), "byte {position}");
        let cut = SealedDelivery::decode(&sealed[..position])
            .and_then(|answer| pending.open(&drone, &issuer.public, &answer));
        assert!(cut.is_err(), "cut at {position}");
    }
}

fn an_unattested_answer_is_closed_to_others_and_passes_for_no_attested_one<S: Suite>() {
    let mut world = World::<S>::new(16);
    let (issuer, drone, other) = (issuer(&mut world), world.drone(1), world.drone(2));
    let (request, pending) = ask(&mut world, &drone, &issuer);
    let request = verified(&world, request).unwrap();
    let sealed = request.seal_unattested(b"the secret", &mut world.rng).unwrap();
    let sealed = SealedDelivery::decode(&sealed.encode()).unwrap();
    assert_eq!(pending.open_unattested(&drone, &sealed).unwrap().as_slice(), b"the secret");
    assert_eq!(pending.open_unattested(&other, &sealed), Err(Error::SealBroken));
    let (_, later) = ask(&mut world, &drone, &issuer);
    assert_eq!(later.open_unattested(&drone, &sealed), Err(Error::SealBroken));
    // Neither kind opens as the other.
    assert_eq!(pending.open(&drone, &issuer.public, &sealed), Err(Error::SealBroken));
    let attested = request.seal(&issuer.public, &issuer.secret, b"x", &mut world.rng).unwrap();
    assert_eq!(pending.open_unattested(&drone, &attested), Err(Error::SealBroken));
    let long = vec![0; MAX_SECRET_LEN + 1];
    assert!(matches!(request.seal_unattested(&long, &mut world.rng), Err(Error::TooLong { .. })));
}

fn the_longest_request_fits_its_bound<S: Suite>() {
    let mut world = World::<S>::new(14);
    let issuer = issuer(&mut world);
    let long = |number: usize| name(&format!("{}{number:02}", "n".repeat(62)));
    let identity = quiver_ainq::Identity {
        serial: [1; 16],
        name: long(0),
        role: quiver_ainq::Role::Leader { group: long(0), ordinal: 1 },
        groups: (0..quiver_ainq::MAX_GROUPS).map(long).collect(),
        not_after: NOW + 1,
    };
    let value = quiver_ainq::SecretValue::generate(&mut world.rng);
    let drone = world
        .master
        .issue_partial_key(&world.deployment, &identity, &value.public(), &mut world.rng)
        .verify(&world.deployment, &identity, &value)
        .unwrap();
    let (request, _) = ask_with(&mut world, &drone, &issuer, &[7; MAX_QUESTION_LEN]).unwrap();
    let bytes = request.encode();
    assert!(bytes.len() <= MAX_DELIVERY_REQUEST_LEN, "{}", bytes.len());
    verified(&world, SignedDeliveryRequest::decode(&bytes).unwrap()).unwrap();
}

fn overlong_questions_and_answers_are_refused<S: Suite>() {
    let mut world = World::<S>::new(15);
    let (issuer, drone) = (issuer(&mut world), world.drone(1));
    let refused = ask_with(&mut world, &drone, &issuer, &[0; MAX_QUESTION_LEN + 1]);
    assert!(matches!(refused.map(|_| ()), Err(Error::TooLong { .. })));
    let (request, pending) = ask(&mut world, &drone, &issuer);
    let request = verified(&world, request).unwrap();
    let longest = vec![3; MAX_SECRET_LEN];
    let sealed = request.seal(&issuer.public, &issuer.secret, &longest, &mut world.rng).unwrap();
    assert_eq!(sealed.encode().len(), SealedDelivery::<S>::MAX_LEN);
    let sealed = SealedDelivery::decode(&sealed.encode()).unwrap();
    assert_eq!(pending.open(&drone, &issuer.public, &sealed).unwrap().as_slice(), longest);
    let longer = vec![3; MAX_SECRET_LEN + 1];
    let refused = request.seal(&issuer.public, &issuer.secret, &longer, &mut world.rng);
    assert!(matches!(refused, Err(Error::TooLong { .. })));
    let endless = vec![0; SealedDelivery::<S>::MAX_LEN + 1];
    assert!(matches!(SealedDelivery::<S>::decode(&endless), Err(Error::TooLong { .. })));
}
