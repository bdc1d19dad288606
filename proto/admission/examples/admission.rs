//! A leader that demands a policy admits an anonymous drone whose certified fields satisfy it, and denies
//! another. Without sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-admission --example admission`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_abke::Authority;
use quiver_admission::certifying::CertificationTerms;
use quiver_admission::gate::GateTiming;
use quiver_admission::{
    AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, AnonymousConfig, AnonymousEdge,
    AnonymousEvent, Demand, PolicyStatement, SignedPolicy,
};
use quiver_ainq::{
    Deployment, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role, SecretScalar, StrategyKind,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_garble::policy::Schema;
use quiver_group::edge::EdgeTiming;
use quiver_group::{Leader, LeaderConfig};
use quiver_kem::KemSetting;
use quiver_machine::Route;
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (alpha, day) = (Name::new("alpha")?, 86_400);
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());

    // §A1.1: a certification authority, which the KGC vouches for: its fields, and how long a credential
    // lasts.
    let schema = Schema::parse("x: i16, y: i16, medic: bool")?;
    let terms = CertificationTerms::new(schema, Duration::from_secs(3600))?;
    let statement = terms.statement(Name::new("positions")?, SecretScalar::generate(rng).public())?;
    let authority = master.sign_authority(&deployment, statement, rng)?.verify(&deployment)?;
    let period = terms.period_at(EPOCH_START);
    let certifier = Authority::derive(&Secret::random(rng), period, terms.schema().bits())?;

    // §A3: the KGC allows the leaders of the group to demand this of joining drones.
    let policy = PolicyStatement {
        authority: *authority.fingerprint(),
        group: alpha.clone(),
        name: Name::new("fence")?,
        not_after: EPOCH_START + day,
        text: "(x - 100)^2 + (y + 50)^2 < 2500 or medic".into(),
    };
    let policy = SignedPolicy::sign(&master, &deployment, policy, rng)?.verify(&deployment)?;

    // A KGC, and the leader that enrols there and is given the slot keys of the period.
    let mut net = Net::new(1);
    let (role, expiry) = (Role::Leader { group: alpha.clone(), ordinal: 0 }, EPOCH_START + day);
    let (name, groups) = (Name::new("leader")?, vec![alpha.clone()]);
    let token = TokenGrant { name, role, groups, not_after: expiry, expiry };
    let token = operator.issue(&deployment, token, rng)?;
    let kgc = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    net.start("kgc", Kgc::<S>::new(kgc, [])?);
    let leader = LeaderConfig {
        strategy: StrategyKind::Tree,
        ..LeaderConfig::new(deployment.clone(), alpha.clone(), Some(token))
    };
    let demand = Demand { policy, authority: authority.clone(), timing: GateTiming::default() };
    let leader = AdmittingLeader::from(Leader::new(leader, [])?).demanding(demand, EPOCH_START)?;
    net.start("leader", leader);
    let slot_keys = AdmittingLeaderCommand::SlotKeys(certifier.key().clone());
    net.command::<AdmittingLeader<S>>("leader", slot_keys);
    net.connect("leader", "kgc", Route::Kgc);
    net.run_for(Duration::from_secs(5));

    // §A4: two drones: one inside the fence, one outside. All that the leader learns of either is whether it
    // satisfies the policy.
    for (name, x, y) in [("inside", 110, -40), ("outside", 300, -40)] {
        let fields = terms.schema().encode(&[("x", x), ("y", y), ("medic", 0)])?;
        let config = AnonymousConfig {
            deployment: deployment.clone(),
            group: alpha.clone(),
            authority: authority.clone(),
            credential: certifier.certify(&fields, rng)?,
            period,
            revocations: None,
            most: 2,
            patience: Duration::from_secs(60),
            timing: EdgeTiming::default(),
            kem: KemSetting::None,
        };
        net.start(name, AnonymousEdge::<S>::new(config, None)?);
        net.connect(name, "leader", Route::Leader);
    }
    net.run_for(Duration::from_secs(20));

    for name in ["inside", "outside"] {
        for event in &net.node::<AnonymousEdge<S>>(name).events {
            match event {
                AnonymousEvent::Admitted { pseudonym, .. } => println!("{name}: a member as {pseudonym}"),
                AnonymousEvent::Ended(why) => println!("{name}: {why:?}"),
                AnonymousEvent::Edge(_) => {}
            }
        }
    }
    let denied = net.node::<AdmittingLeader<S>>("leader").events.iter();
    let denied = denied.filter(|event| matches!(event, AdmittingLeaderEvent::Denied { .. })).count();
    let leader = net.machine::<AdmittingLeader<S>>("leader");
    println!("leader: {} member, {denied} denied", leader.status().anonymous);
    assert_eq!((leader.status().anonymous, denied), (1, 1));

    // §A5: the one inside holds the group's key, the other none.
    let label = Name::new("demo")?;
    let held = ["inside", "outside"].map(|name| net.machine::<AnonymousEdge<S>>(name).export(&label));
    assert!(held[0].is_some() && held[0] == leader.export(&label) && held[1].is_none());
    Ok(())
}
