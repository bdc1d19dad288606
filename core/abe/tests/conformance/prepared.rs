//! Tables change no result.

use quiver_abe::{PublicEncoding, SecretEncoding, Universe};
use quiver_policy::Attribute;

use crate::fixture::{Case, World, closed, policy, rng, set};
use crate::for_each_scheme;

for_each_scheme![prepared_parameters_give_the_same_bytes];

fn prepared_parameters_give_the_same_bytes<S: Case>() {
    let mut world = World::<S>::new(1);
    let (tree, attributes) =
        (policy("2 of (alpha, bravo, charlie and alpha)"), set("alpha, bravo, altitude = 3"));
    let all = |world: &World<S>| {
        let terms = S::of_key(&tree, &attributes);
        let key = S::derive(&world.parameters, &world.master, &terms, &mut rng(2)).unwrap();
        let terms = S::of_ciphertext(&tree, &attributes);
        let (ciphertext, secret) = S::encapsulate(&world.parameters, &terms, &mut rng(2)).unwrap();
        assert_eq!(S::decapsulate(&world.parameters, &key, &ciphertext), Ok(secret));
        (world.parameters.encode(), key.encode(), ciphertext.encode())
    };
    let plain = all(&world);
    S::prepare(&mut world.parameters, &Universe::Open);
    assert!(all(&world) == plain);
    S::prepare(&mut world.parameters, &closed());
    assert!(all(&world) == plain);
    // Expected attributes may be unknown to the authority, and more than there is room for.
    let strange = (0..2_000).map(|number| Attribute::plain(&format!("strange {number}")).unwrap());
    S::prepare(&mut world.parameters, &Universe::closed(strange).unwrap());
    assert!(all(&world) == plain);
}
