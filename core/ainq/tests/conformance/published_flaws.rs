//! The published algorithms work, and have the flaws they are known for. Each flaw is shown on `paper`,
//! beside what the rest of this crate does about it where that is a matter of keys; what headers and entries
//! do has tests of its own.

use quiver_ainq::paper::{
    FullKey, Oracles, PaperDrone, PartialKey, PublicParameters, full_key_gen, full_key_gen_unchecked,
    gen_group_key, gen_partial_key, gen_secret_value, key_retrieval, setup,
};
use quiver_ainq::{Error, MasterSecret, SecretScalar, SecretValue, Suite};
use rand_chacha::rand_core::{CryptoRng, RngCore};

use crate::fixture::{World, rng};
use crate::for_each_suite;

for_each_suite![
    every_member_retrieves_the_key_after_each_rekey,
    the_mask_is_reused_when_only_the_group_changes,
    a_leaver_computes_the_next_key,
    one_point_serves_every_rekey_and_a_stolen_key_opens_all_of_them,
    anybody_forges_a_broadcast_from_public_keys,
    an_unchecked_partial_key_ends_in_a_wrong_key_in_silence,
    one_function_for_keys_and_masks_gives_equal_outputs,
    guessable_randomness_gives_the_master_secret_away,
    a_master_secret_among_the_parameters_mints_keys_for_any_name,
];

struct Swarm<S: Suite> {
    master: MasterSecret<S>,
    parameters: PublicParameters<S>,
    leader: FullKey<S>,
    drones: Vec<FullKey<S>>,
}

fn enrol<S: Suite>(
    parameters: &PublicParameters<S>,
    master: &MasterSecret<S>,
    d: &[u8],
    rng: &mut (impl RngCore + CryptoRng),
) -> FullKey<S> {
    let (value, public) = gen_secret_value(rng);
    let partial = gen_partial_key(parameters, master, d, &public, rng).unwrap();
    full_key_gen(parameters, d, &value, &partial).unwrap()
}

impl<S: Suite> Swarm<S> {
    fn new(drones: u8) -> Self {
        let mut rng = rng(1);
        let (master, parameters) = setup(&mut rng);
        let leader = enrol(&parameters, &master, b"leader", &mut rng);
        let drones = (0..drones).map(|d| enrol(&parameters, &master, &[b'd', d], &mut rng)).collect();
        Self { master, parameters, leader, drones }
    }

    fn members(&self) -> Vec<PaperDrone<S>> {
        self.drones.iter().map(|drone| drone.member.clone()).collect()
    }
}

fn xor(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn every_member_retrieves_the_key_after_each_rekey<S: Suite>() {
    let (swarm, mut rng) = (Swarm::<S>::new(4), rng(2));
    let (parameters, leader) = (&swarm.parameters, &swarm.leader.member);
    let mut members = swarm.members();
    let newcomer = members.pop().unwrap();
    let (mut state, key, broadcast) =
        gen_group_key(parameters, leader.clone(), members, 100, &mut rng).unwrap();
    let check = |key: &_, broadcast: &_, present: &[usize]| {
        for (index, drone) in present.iter().enumerate() {
            let retrieved =
                key_retrieval(parameters, &swarm.drones[*drone], leader, broadcast, index).unwrap();
            assert_eq!(&retrieved, key);
        }
        let beyond = key_retrieval(parameters, &swarm.drones[0], leader, broadcast, present.len());
        assert_eq!(beyond.map(|_| ()), Err(Error::MissingEntry));
    };
    check(&key, &broadcast, &[0, 1, 2]);
    let (next, broadcast) = state.rekey_on_expiry(200, &mut rng);
    assert_ne!(next, key);
    check(&next, &broadcast, &[0, 1, 2]);
    let (next, broadcast) = state.rekey_on_join(vec![newcomer], &mut rng).unwrap();
    check(&next, &broadcast, &[0, 1, 2, 3]);
    let (next, broadcast) = state.rekey_on_leave(&swarm.drones[1].member, &mut rng);
    check(&next, &broadcast, &[0, 2, 3]);
    assert_eq!(state.members().count(), 3);
}

fn the_mask_is_reused_when_only_the_group_changes<S: Suite>() {
    let (swarm, mut rng) = (Swarm::<S>::new(3), rng(3));
    let mut members = swarm.members();
    let newcomer = members.pop().unwrap();
    let leader = swarm.leader.member.clone();
    let (mut state, key, before) = gen_group_key(&swarm.parameters, leader, members, 100, &mut rng).unwrap();
    let (next, after) = state.rekey_on_join(vec![newcomer], &mut rng).unwrap();
    for (c, c_next) in before.wrapped.iter().zip(&after.wrapped) {
        // C ⊕ C' = K ⊕ K'
        assert_eq!(xor(c, c_next), xor(key.expose(), next.expose()));
    }
    // A new t_g changes the mask.
    let (last, expired) = state.rekey_on_expiry(200, &mut rng);
    assert_ne!(xor(&after.wrapped[0], &expired.wrapped[0]), xor(next.expose(), last.expose()));
}

fn a_leaver_computes_the_next_key<S: Suite>() {
    let (swarm, mut rng) = (Swarm::<S>::new(3), rng(4));
    let leader = swarm.leader.member.clone();
    let (mut state, _, before) =
        gen_group_key(&swarm.parameters, leader.clone(), swarm.members(), 100, &mut rng).unwrap();
    let known = key_retrieval(&swarm.parameters, &swarm.drones[2], &leader, &before, 2).unwrap();
    let (next, after) = state.rekey_on_leave(&swarm.drones[2].member, &mut rng);
    // It knows K, and receives both broadcasts: K' = K ⊕ C_0 ⊕ C'_0.
    let computed = xor(known.expose(), &xor(&before.wrapped[0], &after.wrapped[0]));
    assert_eq!(&computed, next.expose());
}

fn one_point_serves_every_rekey_and_a_stolen_key_opens_all_of_them<S: Suite>() {
    let (swarm, mut rng) = (Swarm::<S>::new(3), rng(9));
    let (parameters, leader) = (&swarm.parameters, &swarm.leader.member);
    let mut members = swarm.members();
    let newcomer = members.pop().unwrap();
    let (mut state, key, broadcast) =
        gen_group_key(parameters, leader.clone(), members.clone(), 100, &mut rng).unwrap();
    let mut recorded = vec![(key, broadcast)];
    recorded.push(state.rekey_on_expiry(200, &mut rng));
    recorded.push(state.rekey_on_join(vec![newcomer], &mut rng).unwrap());
    recorded.push(state.rekey_on_expiry(300, &mut rng));
    assert!(recorded.iter().all(|(_, broadcast)| broadcast.v == recorded[0].1.v));
    let (_, _, formed_again) = gen_group_key(parameters, leader.clone(), members, 400, &mut rng).unwrap();
    assert_ne!(formed_again.v, recorded[0].1.v);
    // y is all that a captured drone holds, and opens earlier as well as later messages.
    for (key, broadcast) in &recorded {
        assert_eq!(&key_retrieval(parameters, &swarm.drones[0], leader, broadcast, 0).unwrap(), key);
    }
}

fn anybody_forges_a_broadcast_from_public_keys<S: Suite>() {
    let swarm = Swarm::<S>::new(2);
    let leader = &swarm.leader.member;
    // The forger has the public parameters, the public keys, and a generator of its own.
    let (_, key, forged) =
        gen_group_key(&swarm.parameters, leader.clone(), swarm.members(), 100, &mut rng(5)).unwrap();
    for (index, drone) in swarm.drones.iter().enumerate() {
        let taken = key_retrieval(&swarm.parameters, drone, leader, &forged, index).unwrap();
        assert_eq!(taken, key);
    }
}

fn an_unchecked_partial_key_ends_in_a_wrong_key_in_silence<S: Suite>() {
    let (swarm, mut rng) = (Swarm::<S>::new(1), rng(6));
    let parameters = &swarm.parameters;
    let (value, public) = gen_secret_value::<S>(&mut rng);
    let PartialKey { r, .. } = gen_partial_key(parameters, &swarm.master, b"d", &public, &mut rng).unwrap();
    let wrong = PartialKey { s: SecretScalar::generate(&mut rng), r };
    let unchecked = full_key_gen_unchecked(parameters, b"d", &value, &wrong).unwrap();
    let leader = &swarm.leader.member;
    let members = vec![unchecked.member.clone()];
    let (_, key, broadcast) = gen_group_key(parameters, leader.clone(), members, 100, &mut rng).unwrap();
    let retrieved = key_retrieval(parameters, &unchecked, leader, &broadcast, 0).unwrap();
    assert_ne!(retrieved, key);
    // The check of FullKeyGen is what catches it.
    let checked = full_key_gen(parameters, b"d", &value, &wrong).map(|_| ());
    assert_eq!(checked, Err(Error::InvalidPartialKey));
}

fn one_function_for_keys_and_masks_gives_equal_outputs<S: Suite>() {
    let input: [&[u8]; 2] = [b"one", b"input"];
    // The published value of the one place is the secret one of the other.
    let published_is_the_mask = |oracles: Oracles| {
        let mut wide = [0; 64];
        wide[..32].copy_from_slice(oracles.h1(&input).expose());
        S::scalar_is_zero(&(oracles.h0::<S>(&input) - S::scalar_from_wide(&wide)))
    };
    assert!(published_is_the_mask(Oracles::SHARED));
    assert!(!published_is_the_mask(Oracles::SEPARATED));
    // The functions of the protocol differ on equal input.
    assert!(!S::scalar_is_zero(&(S::challenge(&input) - S::hash_to_scalar("quiver/1 sig", &input))));
}

/// A linear congruential generator seeded with the time, as prototypes use. Says it is fit for cryptography;
/// is not.
struct Clock(u32);

impl RngCore for Clock {
    fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        self.0 >> 16
    }

    fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32())
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next_u32() as u8);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Clock {}

fn guessable_randomness_gives_the_master_secret_away<S: Suite>() {
    let started = 1_700_000_077;
    let (master, parameters) = setup::<S>(&mut Clock(started));
    // An attacker who knows the hour tries its seconds; here, two minutes of them.
    let guessed = (1_700_000_000..1_700_000_120)
        .map(|second| setup::<S>(&mut Clock(second)))
        .find(|(_, guess)| guess.p_pub == parameters.p_pub);
    assert_eq!(guessed.unwrap().0.encode(), master.encode());
    // With a real generator the same search finds nothing, and every draw differs.
    let (_, parameters) = setup::<S>(&mut rng(7));
    let missed = (1_700_000_000..1_700_000_120).any(|second| setup::<S>(&mut Clock(second)).1 == parameters);
    assert!(!missed);
}

fn a_master_secret_among_the_parameters_mints_keys_for_any_name<S: Suite>() {
    // A prototype publishes (P_pub, x). A reader can issue itself the leader's name.
    let (swarm, mut rng) = (Swarm::<S>::new(1), rng(8));
    let handed_out = (swarm.parameters, MasterSecret::<S>::decode(&swarm.master.encode()).unwrap());
    let impostor = enrol(&handed_out.0, &handed_out.1, b"leader", &mut rng);
    assert_eq!(impostor.member.d, swarm.leader.member.d);
    assert_ne!(impostor.member.implicit(), swarm.leader.member.implicit());
    // A deployment's pinned values have no x among them: nothing of it opens as a master secret that fits.
    let world = World::<S>::new(9);
    let secret = hex::encode(&**world.master.encode());
    assert!(!format!("{:?} {:?}", world.deployment, world.master).contains(&secret));
    let value: SecretValue<S> = SecretValue::generate(&mut rng);
    let guessed = MasterSecret::<S>::decode(&world.deployment.fingerprint());
    assert!(guessed.is_err() || guessed.unwrap().public() != *world.deployment.master());
    assert_ne!(&value.public(), world.deployment.master());
}
