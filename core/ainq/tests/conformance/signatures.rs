//! Keys, statements of the KGC and signatures of drones.

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Element, Error, Label, MasterSecret, Purpose, SchnorrSignature,
    SecretValue, Signature, SignedItem, Suite, UnverifiedPartialKey, verify_batch,
};

use crate::fixture::{World, name};
use crate::for_each_suite;

for_each_suite![
    a_partial_key_makes_a_keypair_that_survives_storage,
    a_partial_key_for_another_drone_is_refused,
    a_partial_key_of_another_kgc_is_refused,
    a_keypair_is_restored_only_from_its_own_secret,
    a_statement_holds_for_one_purpose_body_and_deployment,
    a_signature_holds_for_one_label_message_drone_and_deployment,
    signatures_of_one_message_differ,
    a_batch_passes_exactly_if_each_signature_does,
    errors_that_cancel_each_other_do_not_pass_a_batch,
    a_signature_with_the_identity_as_commitment_is_refused,
    signatures_that_have_but_one_half_in_common_differ,
    keys_and_handles_of_different_drones_differ,
    a_key_that_remembers_its_implicit_key_is_the_same_in_every_deployment,
    only_the_expected_key_is_taken_for_it,
];

fn a_partial_key_makes_a_keypair_that_survives_storage<S: Suite>() {
    let mut world = World::<S>::new(1);
    let drone = world.drone(1);
    let public = DronePublicKey::<S>::decode(&drone.public().encode()).unwrap();
    assert_eq!(&public, drone.public());
    assert_eq!(public.implicit(&world.deployment), Ok(drone.implicit()));
    let restored = DroneKeypair::restore(&world.deployment, public, &drone.to_bytes()).unwrap();
    let signature = restored.sign(&world.deployment, Label::Join, b"m", &mut world.rng);
    assert_eq!(signature.verify(&world.deployment, drone.public(), Label::Join, b"m"), Ok(()));
    let master = MasterSecret::<S>::decode(&world.master.encode()).unwrap();
    assert_eq!(master.public(), *world.deployment.master());
}

fn a_partial_key_for_another_drone_is_refused<S: Suite>() {
    let mut world = World::<S>::new(2);
    let (identity, other) = (World::<S>::identity(1), World::<S>::identity(2));
    let (value, stranger) = (SecretValue::generate(&mut world.rng), SecretValue::generate(&mut world.rng));
    let partial = world
        .master
        .issue_partial_key(&world.deployment, &identity, &value.public(), &mut world.rng)
        .encode();
    let verify = |identity, value| {
        let partial = UnverifiedPartialKey::<S>::decode(&partial).unwrap();
        partial.verify(&world.deployment, identity, value).map(|_| ())
    };
    assert_eq!(verify(&identity, &value), Ok(()));
    assert_eq!(verify(&other, &value), Err(Error::InvalidPartialKey));
    assert_eq!(verify(&identity, &stranger), Err(Error::InvalidPartialKey));
}

fn a_partial_key_of_another_kgc_is_refused<S: Suite>() {
    let (mut world, other) = (World::<S>::new(3), World::<S>::new(4));
    let (identity, value) = (World::<S>::identity(1), SecretValue::generate(&mut world.rng));
    let forged =
        other.master.issue_partial_key(&world.deployment, &identity, &value.public(), &mut world.rng);
    let refused = forged.verify(&world.deployment, &identity, &value).map(|_| ());
    assert_eq!(refused, Err(Error::InvalidPartialKey));
    let renamed = Deployment::new(name("quay"), world.master.public());
    let elsewhere = world.master.issue_partial_key(&renamed, &identity, &value.public(), &mut world.rng);
    let refused = elsewhere.verify(&world.deployment, &identity, &value).map(|_| ());
    assert_eq!(refused, Err(Error::InvalidPartialKey));
}

fn a_keypair_is_restored_only_from_its_own_secret<S: Suite>() {
    let mut world = World::<S>::new(5);
    let (one, other) = (world.drone(1), world.drone(2));
    let restored = DroneKeypair::restore(&world.deployment, one.public().clone(), &other.to_bytes());
    assert_eq!(restored.map(|_| ()), Err(Error::InvalidPartialKey));
}

fn a_statement_holds_for_one_purpose_body_and_deployment<S: Suite>() {
    let mut world = World::<S>::new(6);
    let statement = world.master.sign(&world.deployment, Purpose::Parameters, b"body", &mut world.rng);
    let deployment = &world.deployment;
    assert_eq!(statement.verify(deployment, Purpose::Parameters, b"body"), Ok(()));
    let refused = Err(Error::InvalidSignature);
    assert_eq!(statement.verify(deployment, Purpose::Revocation, b"body"), refused);
    assert_eq!(statement.verify(deployment, Purpose::Parameters, b"bodz"), refused);
    let renamed = Deployment::new(name("quay"), world.master.public());
    assert_eq!(statement.verify(&renamed, Purpose::Parameters, b"body"), refused);
    let other = World::<S>::new(7).deployment;
    assert_eq!(statement.verify(&other, Purpose::Parameters, b"body"), refused);
}

fn a_signature_holds_for_one_label_message_drone_and_deployment<S: Suite>() {
    let mut world = World::<S>::new(8);
    let (drone, other) = (world.drone(1), world.drone(2));
    let signature = drone.sign(&world.deployment, Label::Join, b"message", &mut world.rng);
    let signature = Signature::<S>::decode(&signature.encode()).unwrap();
    let (deployment, public) = (&world.deployment, drone.public());
    assert_eq!(signature.verify(deployment, public, Label::Join, b"message"), Ok(()));
    let refused = Err(Error::InvalidSignature);
    assert_eq!(signature.verify(deployment, public, Label::Leave, b"message"), refused);
    assert_eq!(signature.verify(deployment, public, Label::Join, b"messagf"), refused);
    assert_eq!(signature.verify(deployment, other.public(), Label::Join, b"message"), refused);
    let mut promoted = public.clone();
    promoted.identity = World::<S>::identity(9);
    assert_eq!(signature.verify(deployment, &promoted, Label::Join, b"message"), refused);
    let elsewhere = World::<S>::new(9).deployment;
    assert_eq!(signature.verify(&elsewhere, public, Label::Join, b"message"), refused);
}

fn signatures_of_one_message_differ<S: Suite>() {
    let mut world = World::<S>::new(10);
    let drone = world.drone(1);
    let one = drone.sign(&world.deployment, Label::Join, b"message", &mut world.rng);
    assert_ne!(one, drone.sign(&world.deployment, Label::Join, b"message", &mut world.rng));
    // With a generator that repeats, the message alone keeps the nonce from repeating.
    let sign = |message: &[u8]| {
        drone.sign(&world.deployment, Label::Join, message, &mut crate::fixture::rng(1)).encode()
    };
    assert_ne!(sign(b"one")[..S::POINT_LEN], sign(b"two")[..S::POINT_LEN]);
}

fn a_batch_passes_exactly_if_each_signature_does<S: Suite>() {
    let mut world = World::<S>::new(11);
    let drones: Vec<_> = (0..5).map(|serial| world.drone(serial)).collect();
    let messages: Vec<Vec<u8>> = (0..10_u8).map(|index| vec![index; 20]).collect();
    let signatures: Vec<Signature<S>> = messages
        .iter()
        .enumerate()
        .map(|(i, message)| drones[i / 2].sign(&world.deployment, Label::Join, message, &mut world.rng))
        .collect();
    let item = |i: usize, signature: usize| SignedItem {
        public: drones[i / 2].public(),
        label: Label::Join,
        message: &messages[i],
        signature: &signatures[signature],
    };
    let good: Vec<_> = (0..10).map(|i| item(i, i)).collect();
    assert!(verify_batch(&world.deployment, &good, &mut world.rng));
    assert!(verify_batch::<S>(&world.deployment, &[], &mut world.rng));
    for bad in 0..10 {
        let mut items = good.clone();
        items[bad] = item(bad, bad ^ 1);
        assert!(!verify_batch(&world.deployment, &items, &mut world.rng));
        items[bad ^ 1] = item(bad ^ 1, bad);
        assert!(!verify_batch(&world.deployment, &items, &mut world.rng));
    }
    let mut relabelled = good;
    relabelled[3].label = Label::Spare;
    assert!(!verify_batch(&world.deployment, &relabelled, &mut world.rng));
}

fn errors_that_cancel_each_other_do_not_pass_a_batch<S: Suite>() {
    let mut world = World::<S>::new(13);
    let drone = world.drone(1);
    let one = S::scalar_from_u128(1);
    let mut item = |message: &[u8], error: S::Scalar| {
        let signature = drone.sign(&world.deployment, Label::Join, message, &mut world.rng);
        let honest = SchnorrSignature::<S>::decode(&signature.encode()).unwrap();
        let wrong = SchnorrSignature::new(*honest.commitment(), *honest.response() + error);
        Signature::<S>::decode(&wrong.encode()).unwrap()
    };
    // The responses' errors sum to zero, so a check without weights would pass.
    let signatures = [item(b"one", one), item(b"two", -one)];
    let items = [(&b"one"[..], &signatures[0]), (b"two", &signatures[1])].map(|(message, signature)| {
        SignedItem { public: drone.public(), label: Label::Join, message, signature }
    });
    assert!(!verify_batch(&world.deployment, &items, &mut world.rng));
}

fn a_signature_with_the_identity_as_commitment_is_refused<S: Suite>() {
    let point = S::mul_base(&S::scalar_from_u128(1));
    let identity = S::encode(&S::mul_base(&S::scalar_from_u128(0)));
    let bytes = [identity.as_ref(), &[1; 32][..]].concat();
    assert_eq!(SchnorrSignature::<S>::decode(&bytes), Err(Error::IdentityPoint));
    let bytes = [S::encode(&point).as_ref(), &[0xff; 32][..]].concat();
    assert_eq!(SchnorrSignature::<S>::decode(&bytes), Err(Error::InvalidScalar));
    let bytes = [S::encode(&point).as_ref(), &[1; 33][..]].concat();
    assert_eq!(SchnorrSignature::<S>::decode(&bytes), Err(Error::Malformed("trailing bytes")));
}

fn signatures_that_have_but_one_half_in_common_differ<S: Suite>() {
    let point = |value| Element::<S>::from_point(S::mul_base(&S::scalar_from_u128(value))).unwrap();
    let signature =
        |commitment, response| SchnorrSignature::<S>::new(point(commitment), S::scalar_from_u128(response));
    assert_eq!(signature(1, 2), signature(1, 2));
    assert_ne!(signature(1, 2), signature(1, 3));
    assert_ne!(signature(1, 2), signature(3, 2));
}

fn keys_and_handles_of_different_drones_differ<S: Suite>() {
    let mut world = World::<S>::new(12);
    let (one, again) = (world.drone(1), world.drone(1));
    assert_ne!(one.public().handle(), again.public().handle());
    assert_ne!(one.implicit(), again.implicit());
    assert_eq!(one.public().identity, again.public().identity);
}

fn a_key_that_remembers_its_implicit_key_is_the_same_in_every_deployment<S: Suite>() {
    let mut world = World::<S>::new(21);
    let elsewhere = World::<S>::new(22).deployment;
    let drone = world.drone(1);
    let plain = DronePublicKey::<S>::decode(&drone.public().encode()).unwrap();
    let mut remembering = plain.clone();
    for _ in 0..2 {
        remembering.remember_implicit(&world.deployment).unwrap();
        for key in [&remembering, &remembering.clone()] {
            assert_eq!(key, &plain);
            assert_eq!((key.encode(), key.handle()), (plain.encode(), plain.handle()));
            assert_eq!(key.implicit(&world.deployment), Ok(drone.implicit()));
            // Y depends on P_pub: what was remembered is of no use there.
            assert_eq!(key.implicit(&elsewhere), plain.implicit(&elsewhere));
            assert_ne!(key.implicit(&elsewhere), key.implicit(&world.deployment));
        }
    }
    remembering.remember_implicit(&elsewhere).unwrap();
    assert_eq!(remembering.implicit(&world.deployment), Ok(drone.implicit()));
    assert_eq!(remembering.implicit(&elsewhere), plain.implicit(&elsewhere));
}

fn only_the_expected_key_is_taken_for_it<S: Suite>() {
    let mut world = World::<S>::new(23);
    let (expected, other) = (world.drone(1), world.drone(2));
    let (bytes, expected) = (expected.public().encode(), expected.public());
    let decoded = |bytes: &[u8]| DronePublicKey::<S>::decode_expecting(bytes, Some(expected));
    assert_eq!(decoded(&bytes).as_ref(), Ok(expected));
    assert_eq!(decoded(&other.public().encode()).as_ref(), Ok(other.public()));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert_eq!(decoded(&changed), DronePublicKey::decode(&changed));
        assert_ne!(decoded(&changed).as_ref(), Ok(expected));
        assert_eq!(decoded(&bytes[..place]), DronePublicKey::decode(&bytes[..place]));
    }
}
