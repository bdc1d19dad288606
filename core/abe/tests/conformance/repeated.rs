//! An attribute that a policy uses more than once must not give away differences of shares.
//!
//! The policy is "2 of (alpha, alpha or charlie, bravo)", shared by a line f with f(0) the secret: alpha has
//! f(1) and f(2), bravo has f(3). A holder of bravo alone does not satisfy it. But f(0) = f(3) + 3·(f(1) −
//! f(2)), so a holder of bravo alone who knows the difference of alpha's two leaves opens it.

use quiver_abe::{FabeoCp, FabeoKp, PublicEncoding, Scheme, SecretEncoding};
use quiver_pairing::{G1, G2, Group, Gt, Scalar, pairing, pairing_product, scalar_decode, scalar_random};
use quiver_policy::Attribute;

use crate::fixture::{Case, Parts, World, key_of, policy, set};

const POLICY: &str = "2 of (alpha, alpha or charlie, bravo)";

/// The leaves from left to right.
const ALPHA: usize = 0;
const ALPHA_AGAIN: usize = 1;
const BRAVO: usize = 3;

/// The domains, as documented.
const KP_DOMAIN: &str = "QUIVER-ABE-FABEO22-KP-v1-ATTRIBUTE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
const CP_DOMAIN: &str = "QUIVER-ABE-FABEO22-CP-v1-ATTRIBUTE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
const CP_BASE_DOMAIN: &str = "QUIVER-ABE-FABEO22-CP-v1-BASE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

fn hash(domain: &str, name: &str) -> G1 {
    G1::hash(domain, &[&Attribute::plain(name).unwrap().hash_input()])
}

fn g1(bytes: &[u8]) -> G1 {
    G1::decode(bytes).unwrap()
}

fn g2(bytes: &[u8]) -> G2 {
    G2::decode(bytes).unwrap()
}

/// Result of the attack from one value per leaf.
fn attacked(leaves: &[G1]) -> G1 {
    leaves[BRAVO] + (leaves[ALPHA] - leaves[ALPHA_AGAIN]) * Scalar::from(3_u64)
}

/// The shares of the leaves: alpha, alpha, charlie, bravo.
fn shares(secret: Scalar, slope: Scalar) -> [Scalar; 4] {
    [1_u64, 2, 2, 3].map(|x| secret + slope * Scalar::from(x))
}

/// The key that the attack makes: for bravo alone.
fn kp_forgery(parts: &Parts) -> <FabeoKp as Scheme>::Key {
    let leaves: Vec<G1> = parts.elements[..4].iter().map(|bytes| g1(bytes)).collect();
    let leaf = attacked(&leaves).encode().to_vec();
    key_of::<FabeoKp>(&parts.forged(&policy("bravo"), &[&leaf, &parts.elements[4]]))
}

#[test]
fn a_key_with_one_r_for_all_uses_opens_what_it_must_not_and_ours_does_not() {
    let mut world = World::<FabeoKp>::new(1);
    let tree = policy(POLICY);
    let both = set("alpha, bravo");
    let lengths = FabeoKp::key_elements(&tree, &both);
    assert_eq!(lengths, [48, 48, 48, 48, 96, 96], "four leaves, and alpha used twice");
    let ours = Parts::of(&world.key(&tree, &both).encode(), &lengths);

    // The same key made with one r for both uses.
    let alpha = scalar_decode(&world.master.encode()[35..]).unwrap();
    let (slope, r) = (scalar_random(&mut world.rng), scalar_random(&mut world.rng));
    let mut naive = ours.clone();
    for ((element, share), name) in
        naive.elements.iter_mut().zip(shares(alpha, slope)).zip(["alpha", "alpha", "charlie", "bravo"])
    {
        *element = (G1::generator() * share + hash(KP_DOMAIN, name) * r).encode().to_vec();
    }
    naive.elements[4..].fill((G2::generator() * r).encode().to_vec());

    // It is a valid key, for the algebra and the domain are the scheme's.
    let (ciphertext, secret) = world.sealed(&tree, &both);
    let key = key_of::<FabeoKp>(&naive.join());
    assert_eq!(FabeoKp::decapsulate(&world.parameters, &key, &ciphertext), Ok(secret));

    // With bravo alone no key may open.
    let (ciphertext, secret) = world.sealed(&tree, &set("bravo"));
    let open = |key: &_| FabeoKp::decapsulate(&world.parameters, key, &ciphertext).unwrap();
    assert_eq!(open(&kp_forgery(&naive)), secret, "the attack on the naive form works");
    assert_ne!(open(&kp_forgery(&ours)), secret, "the attack on ours does not");
}

/// The attack of a holder of bravo alone on a ciphertext.
fn cp_attack(ciphertext: &Parts, key: &Parts) -> Gt {
    let leaves: Vec<G1> = ciphertext.elements[3..].iter().map(|bytes| g1(bytes)).collect();
    let [s1, s] = [0, 1].map(|place| g2(&ciphertext.elements[place]));
    pairing_product(&[
        (g1(&key.elements[0]), s1),
        (g1(&key.elements[1]), s),
        (-attacked(&leaves), g2(&key.elements[2])),
    ])
}

#[test]
fn a_ciphertext_with_one_s_for_all_uses_opens_for_whom_it_must_not_and_ours_does_not() {
    let mut world = World::<FabeoCp>::new(2);
    let tree = policy(POLICY);
    let lengths = FabeoCp::ciphertext_elements(&tree, &set("bravo"));
    assert_eq!(lengths, [96, 96, 96, 48, 48, 48, 48], "alpha used twice, and four leaves");
    let ours = Parts::of(&world.sealed(&tree, &set("bravo")).0.encode(), &lengths);
    let parts = |key: <FabeoCp as Scheme>::Key, elements: &[usize]| Parts::of(&key.encode(), elements);
    let bravo = parts(world.key(&tree, &set("bravo")), &[48, 48, 96]);
    // With alpha in either use, and bravo.
    let both = parts(world.key(&tree, &set("alpha, bravo")), &[48, 48, 48, 96]);
    let y = Gt::decode(&world.parameters.encode()[3..]).unwrap();

    // A ciphertext made with one s' for both uses.
    let [s1, slope, s] = [(); 3].map(|()| scalar_random(&mut world.rng));
    let b = G1::hash(CP_BASE_DOMAIN, &[]);
    let mut naive = ours.clone();
    naive.elements[0] = (G2::generator() * s1).encode().to_vec();
    naive.elements[1..3].fill((G2::generator() * s).encode().to_vec());
    for ((element, share), name) in
        naive.elements[3..].iter_mut().zip(shares(s1, slope)).zip(["alpha", "alpha", "charlie", "bravo"])
    {
        *element = (b * share + hash(CP_DOMAIN, name) * s).encode().to_vec();
    }

    // The paper's computation with alpha (first use) and bravo: f(0) = (3·f(1) − f(3)) / 2.
    let opened = |sealed: &Parts| {
        let (three, half) =
            (Scalar::from(3_u64), quiver_sharing::Field::invert(&Scalar::from(2_u64)).unwrap());
        let combined = |x: G1, y: G1| (x * three - y) * half;
        pairing_product(&[
            (g1(&both.elements[0]), g2(&sealed.elements[0])),
            (combined(g1(&both.elements[1]), g1(&both.elements[2])), g2(&sealed.elements[1])),
            (-combined(g1(&sealed.elements[3]), g1(&sealed.elements[6])), g2(&both.elements[3])),
        ])
    };
    assert_eq!(opened(&naive), y * s1, "who has alpha and bravo opens the naive form");
    assert_eq!(cp_attack(&naive, &bravo), y * s1, "who has bravo alone opens the naive form");
    assert_ne!(cp_attack(&ours, &bravo), opened(&ours), "who has bravo alone does not open ours");
}

#[test]
fn every_use_of_an_attribute_has_randomness_of_its_own() {
    let tree = policy("(alpha and bravo) or (alpha and charlie) or (alpha and delta)");
    let some = set("alpha");
    let mut kp = World::<FabeoKp>::new(3);
    let lengths = FabeoKp::key_elements(&tree, &some);
    let key = Parts::of(&kp.key(&tree, &some).encode(), &lengths);
    let mut cp = World::<FabeoCp>::new(3);
    let lengths = FabeoCp::ciphertext_elements(&tree, &some);
    let ciphertext = Parts::of(&cp.sealed(&tree, &some).0.encode(), &lengths);
    for mut uses in [key.elements[6..].to_vec(), ciphertext.elements[1..4].to_vec()] {
        assert_eq!(uses.len(), 3);
        uses.sort_unstable();
        uses.dedup();
        assert_eq!(uses.len(), 3, "two uses share their randomness");
    }
}

/// GPSW and YCT14 need no use numbers: a share is divided by the attribute's secret, and so is any
/// difference.
#[test]
fn what_two_gpsw_leaves_of_one_attribute_differ_by_opens_nothing() {
    use quiver_abe::Gpsw06;
    let mut world = World::<Gpsw06>::new(4);
    let tree = policy(POLICY);
    let lengths = Gpsw06::key_elements(&tree, &set("bravo"));
    let key = Parts::of(&world.key(&tree, &set("bravo")).encode(), &lengths);
    let (ciphertext, secret) = world.sealed(&tree, &set("bravo"));
    let leaves: Vec<G2> = key.elements.iter().map(|bytes| g2(bytes)).collect();
    let difference = (leaves[ALPHA] - leaves[ALPHA_AGAIN]) * Scalar::from(3_u64);
    let leaf = (leaves[BRAVO] + difference).encode().to_vec();
    let forged = key_of::<Gpsw06>(&key.forged(&policy("bravo"), &[&leaf]));
    assert_ne!(Gpsw06::decapsulate(&world.parameters, &forged, &ciphertext).unwrap(), secret);
    // The difference is the right one: with t_alpha·g1 it gives 3·(f(1) − f(2)), as the line's slope does.
    let t_alpha = g1(&world.parameters.encode()[position_of_alpha(&world)..][..48]);
    let slope = pairing(&t_alpha, &difference);
    assert_ne!(slope, Gt::identity());
}

/// Offset of T of alpha in the parameters: after the list, at alpha's index in it.
fn position_of_alpha(world: &World<quiver_abe::Gpsw06>) -> usize {
    let mut atoms = crate::fixture::schema().universe().unwrap();
    atoms.sort_unstable();
    let place = atoms.iter().position(|atom| *atom == Attribute::plain("alpha").unwrap()).unwrap();
    world.parameters.encode().len() - 576 - 48 * (atoms.len() - place)
}
