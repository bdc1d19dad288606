//! A leader seals an order to a policy; of two drones, the one whose attribute key satisfies it opens it.
//! Without sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-envelope --example envelope`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_abe::envelope::{AnyKey, AnyParameters, EnvelopeTarget};
use quiver_abe::{FabeoCp, Scheme, Universe};
use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role, StrategyKind,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_envelope::{AttributeAccess, AttributeKeys, EnvelopeCommand, EnvelopeEvent, Envelopes};
use quiver_group::{Edge, EdgeConfig, Leader, LeaderConfig};
use quiver_machine::{Either, Node, Route};
use quiver_policy::{AttributeSet, Schema};
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// A leader, and an edge, with envelopes beside it.
type LeaderNode = Node<Leader<S>, Envelopes>;
type EdgeNode = Node<Edge<S>, Envelopes>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (alpha, day) = (Name::new("alpha")?, 86_400);
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());

    // A group, as in the example of `quiver-group`.
    let mut net = Net::new(1);
    let kgc = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    net.start("kgc", Kgc::<S>::new(kgc, [])?);
    let mut token = |name: &str, role| -> Result<IssuedToken<S>, Box<dyn std::error::Error>> {
        let (groups, expiry) = (vec![alpha.clone()], EPOCH_START + day);
        let grant = TokenGrant { name: Name::new(name)?, role, groups, not_after: expiry, expiry };
        Ok(operator.issue(&deployment, grant, rng)?)
    };
    let leader = LeaderConfig {
        strategy: StrategyKind::Tree,
        ..LeaderConfig::new(
            deployment.clone(),
            alpha.clone(),
            Some(token("leader", Role::Leader { group: alpha.clone(), ordinal: 0 })?),
        )
    };
    net.start("leader", LeaderNode::new(Leader::new(leader, [])?, Envelopes::default()));
    net.subscribe("leader");
    net.connect("leader", "kgc", Route::Kgc);
    for name in ["scout", "medic"] {
        let edge = EdgeConfig::new(deployment.clone(), Some(alpha.clone()), Some(token(name, Role::Edge)?));
        net.start(name, EdgeNode::new(Edge::new(edge, None)?, Envelopes::default()));
        net.subscribe(name);
        net.connect(name, "kgc", Route::Kgc);
        net.connect(name, "leader", Route::Leader);
    }
    net.run_for(Duration::from_secs(5));

    // An attribute authority makes a key for each drone's attributes (`quiver-delivery` brings it there).
    // Sealing needs its public parameters alone.
    let (parameters, authority) = FabeoCp::setup(&Universe::Open, rng)?;
    let public = AnyParameters::FabeoCp(parameters.clone());
    for (name, attributes) in [("scout", "scout, sector:7"), ("medic", "medic, sector:7")] {
        let attributes = AttributeSet::parse(attributes, &Schema::new())?;
        let key = AnyKey::FabeoCp(FabeoCp::derive(&parameters, &authority, &attributes, rng)?);
        let keys = AttributeKeys::new(vec![AttributeAccess::new(public.clone(), Some(key))?]);
        net.command::<EdgeNode>(name, Either::Right(EnvelopeCommand::Keys(keys)));
    }
    let keys = AttributeKeys::new(vec![AttributeAccess::new(public.clone(), None)?]);
    net.command::<LeaderNode>("leader", Either::Right(EnvelopeCommand::Keys(keys)));

    // The leader seals to a policy, signs, and publishes to the group.
    let order = EnvelopeCommand::Seal {
        authority: *public.authority().as_bytes(),
        target: EnvelopeTarget::policy("scout and sector:7", &Schema::new())?,
        data: b"go north".to_vec(),
        signed: true,
    };
    net.command::<LeaderNode>("leader", Either::Right(order));
    net.run_for(Duration::from_secs(1));

    for (name, satisfied) in [("scout", true), ("medic", false)] {
        let mut opened = false;
        for event in net.node::<EdgeNode>(name).events.iter().filter_map(Either::right) {
            match event {
                EnvelopeEvent::Opened { data, author, .. } => {
                    let author = author.as_ref().map(|author| author.name.to_string());
                    println!("{name} opened {:?} of {author:?}", String::from_utf8_lossy(data));
                    assert_eq!((data.as_slice(), author.as_deref()), (&b"go north"[..], Some("leader")));
                    opened = true;
                }
                EnvelopeEvent::NotSatisfied { .. } => println!("{name} holds no key that fits"),
                other => println!("{name}: {other:?}"),
            }
        }
        assert_eq!(opened, satisfied);
    }
    Ok(())
}
