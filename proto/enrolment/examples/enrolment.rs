//! A drone with a token enrols with a KGC, without sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-enrolment --example enrolment`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{
    Deployment, Label, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcEvent};
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::Route;
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (day, operator) = (86_400, OperatorSecretKey::<S>::generate(rng));
    // §2.3: the KGC holds the master key alone. Several that share it are in the example `threshold`.
    let master = MasterSecret::<S>::generate(rng);
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let mut net = Net::new(1);
    let config = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    net.start("kgc", Kgc::<S>::new(config, [])?);

    // §3.2: the operator issues a token. §3.3 to §3.5: the drone turns it into a key that the KGC does not know.
    let expiry = EPOCH_START + day;
    let grant = TokenGrant {
        name: Name::new("wren")?,
        role: Role::Edge,
        groups: vec![Name::new("alpha")?],
        not_after: expiry,
        expiry,
    };
    let token = operator.issue(&deployment, grant, rng)?;
    let config = EdgeConfig::new(deployment.clone(), None, Some(token));
    net.start("wren", Edge::<S>::new(config, None)?);
    net.connect("wren", "kgc", Route::Kgc);
    net.run_for(Duration::from_secs(5));

    // §3.5: whoever knows the deployment's public key verifies what the drone signs.
    let keypair = net.machine::<Edge<S>>("wren").keypair().ok_or("not enrolled")?;
    let signature = keypair.sign(&deployment, Label::Join, b"hello", rng);
    signature.verify(&deployment, keypair.public(), Label::Join, b"hello")?;
    let identity = &keypair.public().identity;
    println!(
        "{} is enrolled as {:?} for {:?} until {}",
        identity.name, identity.role, identity.groups, expiry
    );
    assert_eq!((identity.name.to_string(), identity.not_after), ("wren".into(), expiry));

    // The KGC knows which key it issued.
    let events = &net.node::<Kgc<S>>("kgc").events;
    let issued = events.iter().any(
        |event| matches!(event, KgcEvent::Issued { handle, .. } if *handle == keypair.public().handle()),
    );
    println!("the KGC {}", if issued { "issued its key" } else { "knows nothing of it" });
    assert!(issued);
    Ok(())
}
