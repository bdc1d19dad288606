//! No secret in `Debug`.

use quiver_ainq::{Element, SecretScalar, SecretValue, Suite};

use crate::fixture::{NOW, World};
use crate::for_each_suite;
use crate::leaks::leaks;

for_each_suite![debug_output_has_no_secret_bytes];

fn debug_output_has_no_secret_bytes<S: Suite>() {
    let mut world = World::<S>::new(1);
    let drone = world.drone(1);
    let token = world.token();
    let (request, pending) = world.request();
    let verified = request.verify(&world.deployment, &[world.operator.public()], 1, NOW).unwrap();
    let value = SecretValue::<S>::generate(&mut world.rng);
    let scalar = SecretScalar::<S>::generate(&mut world.rng);
    let identity = World::<S>::identity(1);
    let partial =
        world.master.issue_partial_key(&world.deployment, &identity, &value.public(), &mut world.rng);
    let agreed = S::agree(scalar.expose(), &value.public()).unwrap();
    let last = |bytes: &[u8], count: usize| bytes[bytes.len() - count..].to_vec();
    let secrets = [
        (format!("{:?}", world.master), world.master.encode().to_vec()),
        (format!("{:?}", world.operator), world.operator.encode().to_vec()),
        (format!("{drone:?}"), drone.to_bytes().to_vec()),
        (format!("{token:?}"), last(&token.encode(), 32)),
        (format!("{pending:?}"), last(&pending.encode(), 64)),
        (format!("{value:?}"), value.to_bytes().to_vec()),
        (format!("{scalar:?}"), scalar.to_bytes().to_vec()),
        (format!("{partial:?}"), partial.encode()[..32].to_vec()),
        (format!("{agreed:?}"), agreed.expose().to_vec()),
    ];
    for (debug, secret) in &secrets {
        assert!(!leaks(debug, secret), "{debug}");
    }
    // The search would find one.
    assert!(leaks(&hex::encode(&secrets[0].1), &secrets[0].1));
    assert!(leaks(&format!("{:?}", secrets[1].1), &secrets[1].1));
    // Public values may be printed.
    assert!(format!("{verified:?}").contains("drone-1"));
    let element: Element<S> = value.public();
    assert!(format!("{element:?}").contains(&hex::encode(element.as_bytes())));
}
