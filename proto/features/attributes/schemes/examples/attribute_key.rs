//! A KGC delivers to a drone a key for its attributes, which opens what is sealed to a policy that they satisfy;
//! without sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-attribute-schemes --example attribute_key`

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
use quiver_machine::{Either, Node, Route};
use quiver_policy::{AccessTree, Schema};
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// An edge that fetches attribute keys.
type Drone = Node<Edge<S>, Fetcher<S>>;

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

    // The KGC with the server beside it, which releases no shares of condition keys, and the drone with the client.
    let mut net = Net::new(1);
    let config = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    let servers = Deliveries { keys: DeliveryServer::new(Secret::random(rng), issuer), shares: () };
    net.start("kgc", KgcNode::<S, ()>::new(Kgc::new(config, [])?, servers));
    let fetcher = Fetcher::new(&deployment, vec![], FetchTiming::default())?;
    let edge = Edge::new(EdgeConfig::new(deployment, None, Some(token)), None)?;
    net.start("wren", Drone::new(edge, fetcher));
    net.connect("wren", "kgc", Route::Kgc);

    // The drone enrols and fetches its attribute key, which opens what is sealed to a policy that it
    // satisfies.
    net.run_for(Duration::from_secs(10));
    let mut events = net.node::<Drone>("wren").events.iter().filter_map(Either::right);
    let fetched = events.find_map(|event| match event {
        FetchEvent::Answered { response: KeyResponse::Key { key, .. }, .. } => Some(key),
        _ => None,
    });
    let key = Key::<FabeoCp>::decode(fetched.ok_or("no attribute key")?)?;
    let parameters = Parameters::<FabeoCp>::decode(&founded.parameters)?;
    let policy = AccessTree::parse("scout and sector:7", &schema)?;
    let (ciphertext, secret) = FabeoCp::encapsulate(&parameters, &policy, rng)?;
    println!("wren holds a key for `{}`, which opens `{policy}`", key.terms());
    assert!(FabeoCp::decapsulate(&parameters, &key, &ciphertext)? == secret);
    Ok(())
}
