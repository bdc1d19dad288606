//! The protocol makes as many scalar multiplications as the paper promises.
#![cfg(feature = "instrumented")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use quiver_ainq::instrumented::{Counting, multiplications, reset};
use quiver_ainq::paper::{
    Member, full_key_gen, gen_group_key, gen_partial_key, gen_secret_value, key_retrieval, setup,
};
use quiver_ainq::{Ristretto255, Suite};
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
    let (y_count, _) = counted(|| Member::new(&parameters, b"d", partial.r, public).unwrap());
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
