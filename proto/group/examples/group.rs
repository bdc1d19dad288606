//! A group: a KGC, a leader and two edges, without sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-group --example group`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role, StrategyKind,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig, MessageOrigin,
};
use quiver_machine::Route;
use quiver_testbed::{EPOCH_START, Net, matching};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (alpha, day) = (Name::new("alpha")?, 86_400);
    // The KGC's master key, and an operator who issues tokens.
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let mut token = |name: &str, role| -> Result<IssuedToken<S>, Box<dyn std::error::Error>> {
        let (groups, expiry) = (vec![alpha.clone()], EPOCH_START + day);
        let grant = TokenGrant { name: Name::new(name)?, role, groups, not_after: expiry, expiry };
        Ok(operator.issue(&deployment, grant, rng)?)
    };
    let lead = token("leader", Role::Leader { group: alpha.clone(), ordinal: 0 })?;
    let edges = [token("edge-1", Role::Edge)?, token("edge-2", Role::Edge)?];

    // Each role is a state machine: bytes and deadlines go in, bytes and events come out. The net drives
    // them.
    let mut net = Net::new(1);
    let kgc = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    net.start("kgc", Kgc::<S>::new(kgc, [])?);
    let leader = LeaderConfig::new(deployment.clone(), alpha.clone(), Some(lead));
    net.start("leader", Leader::<S>::new(LeaderConfig { strategy: StrategyKind::Tree, ..leader }, [])?);
    net.subscribe("leader");
    net.connect("leader", "kgc", Route::Kgc);
    for (name, token) in ["edge-1", "edge-2"].into_iter().zip(edges) {
        let edge = EdgeConfig::new(deployment.clone(), Some(alpha.clone()), Some(token));
        net.start(name, Edge::<S>::new(edge, None)?);
        net.subscribe(name);
        net.connect(name, "kgc", Route::Kgc);
        net.connect(name, "leader", Route::Leader);
    }

    // Everybody enrols and joins; the leader makes a new key; one edge sends a signed message under it.
    net.run_for(Duration::from_secs(5));
    net.command::<Leader<S>>("leader", LeaderCommand::Rekey);
    net.run_for(Duration::from_secs(1));
    let message = EdgeCommand::Send { channel: Name::new("chat")?, data: b"hello".to_vec(), signed: true };
    net.command::<Edge<S>>("edge-1", message);
    net.run_for(Duration::from_secs(1));

    let status = net.machine::<Leader<S>>("leader").status();
    println!(
        "epoch {:?} with {} members, acknowledged by {}",
        status.epoch, status.members, status.acknowledged
    );
    assert_eq!((status.members, status.acknowledged), (2, 2));
    let received = net
        .node::<Edge<S>>("edge-2")
        .events
        .iter()
        .find_map(matching!(EdgeEvent::Message { data, source, .. } => (data, source)));
    let (data, source) = received.ok_or("edge-2 received nothing")?;
    println!("edge-2 received {:?} from {source:?}", String::from_utf8_lossy(data));
    assert_eq!(data.as_slice(), b"hello");
    assert!(matches!(source, MessageOrigin::Signed { name, .. } if name.to_string() == "edge-1"));
    Ok(())
}
