//! A KGC delivers to a drone a key for its attributes, and the key of a time once that time has come; without
//! sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-delivery --example delivery`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_abe::{FabeoCp, HasTerms, Key, Parameters, PublicEncoding, Scheme, SecretEncoding};
use quiver_ainq::{
    AuthorityStatement, Deployment, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role,
    SecretScalar, TokenGrant,
};
use quiver_attribute_schemes::SchemeKind;
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_delivery::attributes::{
    self, AttributeIssuer, FetchEvent, FetchTiming, Fetcher, Grant, IssuerConfig, IssuingAuthority,
    KeyResponse,
};
use quiver_delivery::kgc::{Deliveries, KgcNode};
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::{Edge, EdgeConfig};
use quiver_ibe::{Condition, Dealing, IdentityPoint};
use quiver_key_release::{
    Audience, CollectCommand, CollectEvent, CollectTiming, Collector, DEFAULT_RATE, Holding,
    ReleaseAuthority, ReleaseConfig, ReleaseParameters, ReleasePolicy, ShareReleaser,
};
use quiver_machine::{Either, Node, Route};
use quiver_policy::{AccessTree, Schema};
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// An edge that fetches attribute keys and collects condition keys.
type Drone = Node<Edge<S>, (Fetcher<S>, Collector<S>)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (day, schema) = (86_400, Schema::new());
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let (name, role, not_after) = (Name::new("wren")?, Role::Edge, EPOCH_START + day);
    let grant = TokenGrant { name, role, groups: vec![], not_after, expiry: not_after };
    let token = operator.issue(&deployment, grant, rng)?;

    // §4.2: an attribute authority, which the KGC vouches for, and what the operator grants the drone there.
    let scheme = SchemeKind::FabeoCp;
    let (founded, delivery) = (scheme.found(&schema, rng)?, SecretScalar::generate(rng));
    let statement = AuthorityStatement {
        kind: Name::new(attributes::KIND)?,
        name: Name::new("orders")?,
        scheme: Name::new(scheme.id())?,
        delivery: delivery.public(),
        schema: schema.encode(),
        parameters: founded.parameters.clone(),
    };
    let statement = master.sign_authority(&deployment, statement, rng)?.verify(&deployment)?;
    let grant = Grant {
        authority: *statement.fingerprint(),
        serial: token.token.statement.id,
        revision: 1,
        granted: Some(scheme.read("scout, sector:7", &schema)?.encoded),
    };
    let maker = scheme.maker(&founded.parameters, &founded.master)?;
    let issuer = AttributeIssuer::new(IssuerConfig {
        authorities: vec![IssuingAuthority { statement, delivery, maker }],
        grants: vec![grant],
        interval: Duration::from_secs(5),
    })?;

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

    // The KGC with both servers beside it, and the drone with both clients.
    let mut net = Net::new(1);
    let config = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    let servers = Deliveries {
        keys: DeliveryServer::new(Secret::random(rng), issuer),
        shares: Some(DeliveryServer::new(Secret::random(rng), releaser)),
    };
    net.start("kgc", KgcNode::<S, _>::new(Kgc::new(config, [])?, servers));
    let fetcher = Fetcher::new(&deployment, vec![], FetchTiming::default())?;
    let edge = Edge::new(EdgeConfig::new(deployment, None, Some(token)), None)?;
    net.start("wren", Drone::new(edge, (fetcher, Collector::new(None, CollectTiming::default()))));
    net.connect("wren", "kgc", Route::Kgc);

    // The drone enrols and fetches its attribute key, which opens what is sealed to a policy that it
    // satisfies.
    net.run_for(Duration::from_secs(10));
    let events = net.node::<Drone>("wren").events.iter().filter_map(Either::right);
    let fetched = events.filter_map(Either::left).find_map(|event| match event {
        FetchEvent::Answered { response: KeyResponse::Key { key, .. }, .. } => Some(key),
        _ => None,
    });
    let key = Key::<FabeoCp>::decode(fetched.ok_or("no attribute key")?)?;
    let parameters = Parameters::<FabeoCp>::decode(&founded.parameters)?;
    let policy = AccessTree::parse("scout and sector:7", &schema)?;
    let (ciphertext, secret) = FabeoCp::encapsulate(&parameters, &policy, rng)?;
    println!("wren holds a key for `{}`, which opens `{policy}`", key.terms());
    assert!(FabeoCp::decapsulate(&parameters, &key, &ciphertext)? == secret);

    // Something is encrypted to a time; the key of that time is released when it has come, and no sooner.
    let condition = Condition::not_before(EPOCH_START + 60)?;
    let orders = conditions.master().encrypt(&IdentityPoint::of(&condition), b"return to base", rng)?;
    let opened = |net: &Net<&str>| {
        let events = net.node::<Drone>("wren").events.iter().filter_map(Either::right);
        events.filter_map(Either::right).find_map(|event| match event {
            CollectEvent::Collected { key, .. } => key.decrypt(&orders).ok(),
            _ => None,
        })
    };
    let (wanted, patience) = (Some(condition.clone()), Duration::from_secs(120));
    let collect = CollectCommand::Collect { condition: wanted, patience, wait: true };
    // To the second of the parts.
    let command = Either::Right(collect);
    net.command::<Drone>("wren", Either::Right(command));
    net.run_for(Duration::from_secs(45));
    assert!(opened(&net).is_none(), "too early");
    net.run_for(Duration::from_secs(45));
    let opened = opened(&net).ok_or("no condition key")?;
    println!("wren holds the key of {condition}, which opens {:?}", String::from_utf8_lossy(&opened));
    assert_eq!(*opened, b"return to base");
    Ok(())
}
