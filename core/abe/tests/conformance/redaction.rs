//! No secret in `Debug`.

use quiver_abe::{PublicEncoding, SecretEncoding};

use crate::fixture::{Case, World, policy, set};
use crate::for_each_scheme;
use crate::leaks::leaks;

for_each_scheme![debug_output_has_no_secret_bytes];

fn debug_output_has_no_secret_bytes<S: Case>() {
    let mut world = World::<S>::new(1);
    let (tree, attributes) = (policy("alpha and bravo"), set("alpha, bravo"));
    let key = world.key(&tree, &attributes);
    let elements: usize = S::key_elements(&tree, &attributes).iter().sum();
    let (key_bytes, master_bytes) = (key.encode(), world.master.encode());
    let secret = &key_bytes[key_bytes.len() - elements..];
    assert!(!leaks(&format!("{key:?}"), secret), "{key:?}");
    assert!(!leaks(&format!("{:?}", world.master), &master_bytes[35..]), "{:?}", world.master);
    // The search would find one.
    assert!(leaks(&hex::encode(secret), secret) && leaks(&format!("{secret:?}"), secret));
    // Public values may be printed.
    let (ciphertext, _) = world.sealed(&tree, &attributes);
    let authority = world.parameters.authority().to_string();
    for shown in [
        format!("{key:?}"),
        format!("{:?}", world.master),
        format!("{ciphertext:?}"),
        format!("{:?}", world.parameters),
    ] {
        assert!(shown.contains(&authority) && shown.contains(S::ID), "{shown}");
    }
}
