//! The protocol makes as many scalar multiplications as the paper promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use quiver_ainq::instrumented::{Counting, decodings, multiplications, reset};
use quiver_ainq::paper::{
    PaperDrone, full_key_gen, gen_group_key, gen_partial_key, gen_secret_value, key_retrieval, setup,
};
use quiver_ainq::{Element, Error, Ristretto255, Suite};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

type S = Counting<Ristretto255>;

/// Multiplications that `work` makes.
fn counted<R>(work: impl FnOnce() -> R) -> (u64, R) {
    reset();
    let result = work();
    (multiplications(), result)
}

#[test]
fn the_published_algorithms_cost_what_the_paper_says() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (master, parameters) = setup::<S>(&mut rng);
    let (count, (value, public)) = counted(|| gen_secret_value::<S>(&mut rng));
    assert_eq!(count, 1, "GenSecretValue");
    let (count, partial) =
        counted(|| gen_partial_key(&parameters, &master, b"d", &public, &mut rng).unwrap());
    assert_eq!(count, 1, "GenPartialKey");
    let drone = full_key_gen(&parameters, b"d", &value, &partial).unwrap();
    let (y_count, _) = counted(|| PaperDrone::new(&parameters, b"d", partial.r, public).unwrap());
    let members = vec![drone.member.clone(); 10];
    let (count, (mut state, _, broadcast)) =
        counted(|| gen_group_key(&parameters, drone.member.clone(), members, 100, &mut rng).unwrap());
    // V once; per member Y_i when it becomes known, and T_i.
    assert_eq!((y_count, count), (1, 1 + 10), "GenGroupKey");
    let (count, _) = counted(|| key_retrieval(&parameters, &drone, &drone.member, &broadcast, 0).unwrap());
    assert_eq!(count, 1, "KeyRetrieval");
    let (count, _) = counted(|| state.rekey_on_expiry(200, &mut rng));
    assert_eq!(count, 0, "Re-Key on expiry");
    let (count, _) = counted(|| state.rekey_on_join(vec![drone.member.clone()], &mut rng).unwrap());
    assert_eq!(count, 1, "Re-Key on join");
    let (count, _) = counted(|| state.rekey_on_leave(&drone.member, &mut rng));
    assert_eq!(count, 0, "Re-Key on leave");
}

#[test]
fn a_counted_suite_makes_the_bytes_of_the_suite_inside() {
    let scalar = Ristretto255::scalar_from_u128(0x1234_5678_9abc_def0);
    assert_eq!(S::ID, Ristretto255::ID);
    assert_eq!(S::encode(&S::mul_base(&scalar)), Ristretto255::encode(&Ristretto255::mul_base(&scalar)));
    assert_eq!(S::hash_to_scalar("d", &[b"m"]), Ristretto255::hash_to_scalar("d", &[b"m"]));
}

/// Twice 2^124, of which one is too small for a pairwise secret and the other is not.
const USABLE: u128 = 1 << 125;

/// Multiplications and decodings that `work` makes.
fn counts<R>(work: impl FnOnce() -> R) -> (u64, u64) {
    reset();
    std::hint::black_box(work());
    (multiplications(), decodings())
}

#[test]
fn every_multiplication_and_every_decoding_of_a_suite_is_counted() {
    let scalars = [USABLE, 3, 5].map(Ristretto255::scalar_from_u128);
    let [k, three, _] = scalars;
    let points = scalars.map(|scalar| Ristretto255::mul_base(&scalar));
    let [point, ..] = points;
    let element = Element::<S>::from_point(point).unwrap();
    let bytes = S::encode(&point);
    assert_eq!(counts(|| S::mul_base(&k)), (1, 0));
    assert_eq!(counts(|| S::mul(&k, &point)), (1, 0));
    assert_eq!(counts(|| S::vartime_mul_prepared(&k, &S::prepare(&point))), (1, 0));
    assert_eq!(counts(|| S::vartime_mul_with_base(&k, &point, &three)), (2, 0));
    assert_eq!(counts(|| S::vartime_multiscalar(&scalars, &points)), (3, 0));
    assert_eq!(counts(|| S::agree(&k, &element)), (1, 0));
    assert_eq!(counts(|| S::agree_many(&k, &points)), (3, 0));
    assert_eq!(counts(|| S::decode(bytes.as_ref())), (0, 1));
    // An invalid point takes as long to refuse.
    assert_eq!(counts(|| S::decode(&[0xff; 32])), (0, 1));
    // They add up, until they are set back.
    let together = counts(|| {
        S::mul_base(&k);
        S::vartime_mul_with_base(&k, &point, &three);
        S::decode(bytes.as_ref());
        S::decode(bytes.as_ref());
    });
    assert_eq!(together, (3, 2));
    assert_eq!(counts(|| ()), (0, 0));
    // Each thread counts its own.
    S::mul_base(&k);
    let elsewhere = std::thread::spawn(|| (multiplications(), decodings())).join().unwrap();
    assert_eq!((elsewhere, multiplications()), ((0, 0), 1));
}

#[test]
fn a_counted_suite_says_what_the_suite_inside_says() {
    type Inner = Ristretto255;
    let scalars = [USABLE, 3, 5].map(Inner::scalar_from_u128);
    let [k, three, _] = scalars;
    let points = scalars.map(|scalar| Inner::mul_base(&scalar));
    let [point, ..] = points;
    let (zero, identity) = (Inner::scalar_from_u128(0), Inner::mul_base(&Inner::scalar_from_u128(0)));
    let unusable = Inner::scalar_from_u128(USABLE / 2);
    assert_eq!(
        (S::POINT_LEN, S::SCALAR_LEN, S::SECRET_LEN),
        (Inner::POINT_LEN, Inner::SCALAR_LEN, Inner::SECRET_LEN)
    );
    assert_eq!(S::decode(S::encode(&point).as_ref()), Some(point));
    assert!(S::is_identity(&identity) && !S::is_identity(&point));
    assert_eq!(S::mul(&k, &point), Inner::mul(&k, &point));
    assert_eq!(S::vartime_mul_prepared(&three, &S::prepare(&point)), Inner::mul(&three, &point));
    let with_base = Inner::vartime_mul_with_base(&k, &point, &three);
    assert_eq!(S::vartime_mul_with_base(&k, &point, &three), with_base);
    let product = Inner::vartime_multiscalar(&scalars, &points);
    assert_eq!(S::vartime_multiscalar(&scalars, &points), product);
    assert_eq!(S::scalar_from_wide(&[7; 64]), Inner::scalar_from_wide(&[7; 64]));
    assert_eq!(S::scalar_decode(&*S::scalar_encode(&three)), Some(three));
    assert_eq!(S::scalar_decode(&[0xff; 32]), None);
    assert_eq!(*S::scalar_encode(&three), *Inner::scalar_encode(&three));
    assert!(S::scalar_is_zero(&zero) && !S::scalar_is_zero(&k));
    assert_eq!(S::challenge(&[b"m"]), Inner::challenge(&[b"m"]));
    assert!(S::secret_scalar_ok(&k) && !S::secret_scalar_ok(&unusable));
    let (ours, theirs) =
        (Element::<S>::from_point(point).unwrap(), Element::<Inner>::from_point(point).unwrap());
    assert_eq!(S::agree(&k, &ours), Inner::agree(&k, &theirs));
    assert_eq!(S::agree(&zero, &ours).unwrap_err(), Error::InvalidScalar);
    assert_eq!(S::agree_many(&k, &points), Inner::agree_many(&k, &points));
}
