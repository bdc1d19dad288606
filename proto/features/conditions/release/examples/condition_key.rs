//! A KGC releases to a drone the key of a time once that time has come; without sockets, on the deterministic
//! testbed.
//!
//! `cargo run -p quiver-key-release --example condition_key`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{Deployment, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role, TokenGrant};
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::{Edge, EdgeConfig};
use quiver_ibe::{Condition, Dealing, IdentityPoint};
use quiver_key_release::{
    Audience, CollectCommand, CollectEvent, CollectTiming, Collector, DEFAULT_RATE, Holding,
    ReleaseAuthority, ReleaseConfig, ReleaseParameters, ReleasePolicy, ShareReleaser, ShareServer,
};
use quiver_machine::{Either, Node, Route};
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// A KGC that releases shares of condition keys.
type ReleasingKgc = Node<Kgc<S>, ShareServer<S>>;

/// An edge that collects condition keys.
type Drone = Node<Edge<S>, Collector<S>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let day = 86_400;
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let (name, role, not_after) = (Name::new("wren")?, Role::Edge, EPOCH_START + day);
    let grant = TokenGrant { name, role, groups: vec![], not_after, expiry: not_after };
    let token = operator.issue(&deployment, grant, rng)?;

    // §4.3: a master key of conditions, of which this KGC holds the only share; everybody may have the keys
    // of times.
    let dealing = Dealing::deal(1, 1, rng)?;
    let parameters = ReleaseParameters { version: 1, publics: dealing.public_shares()? };
    let statement = parameters.statement(&deployment, Name::new("conditions")?)?;
    let statement = master.sign_authority(&deployment, statement, rng)?.verify(&deployment)?;
    let conditions = ReleaseAuthority::new(&deployment, statement)?;
    let everybody = Some(Audience::default());
    let releaser = ShareReleaser::new(ReleaseConfig {
        holding: Some(Holding::new(conditions.clone(), dealing.shares()[0].clone())?),
        policies: vec![ReleasePolicy { revision: 1, pattern: "not-before".parse()?, audience: everybody }],
        approvals: vec![],
        rate: DEFAULT_RATE,
    });

    // The KGC with the server beside it, and the drone with the client.
    let mut net = Net::new(1);
    let config = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    let server = DeliveryServer::new(Secret::random(rng), releaser);
    net.start("kgc", ReleasingKgc::new(Kgc::new(config, [])?, server));
    let edge = Edge::new(EdgeConfig::new(deployment, None, Some(token)), None)?;
    net.start("wren", Drone::new(edge, Collector::new(None, CollectTiming::default())));
    net.connect("wren", "kgc", Route::Kgc);
    net.run_for(Duration::from_secs(10));

    // Something is encrypted to a time; the key of that time is released when it has come, and no sooner.
    let condition = Condition::not_before(EPOCH_START + 60)?;
    let orders = conditions.master().encrypt(&IdentityPoint::of(&condition), b"return to base", rng)?;
    let opened = |net: &Net<&str>| {
        let mut events = net.node::<Drone>("wren").events.iter().filter_map(Either::right);
        events.find_map(|event| match event {
            CollectEvent::Collected { key, .. } => key.decrypt(&orders).ok(),
            _ => None,
        })
    };
    let (wanted, patience) = (Some(condition.clone()), Duration::from_secs(120));
    let collect = CollectCommand::Collect { condition: wanted, patience, wait: true };
    net.command::<Drone>("wren", Either::Right(collect));
    net.run_for(Duration::from_secs(45));
    assert!(opened(&net).is_none(), "too early");
    net.run_for(Duration::from_secs(45));
    let opened = opened(&net).ok_or("no condition key")?;
    println!("wren holds the key of {condition}, which opens {:?}", String::from_utf8_lossy(&opened));
    assert_eq!(*opened, b"return to base");
    Ok(())
}
