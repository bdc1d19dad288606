//! Datagrams: two edges of a group send each other telemetry and a signed command; one is evicted.
//!
//! `cargo run -p quiver-datagram --example datagrams`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{Deployment, MasterSecret, Name, OperatorSecretKey, Ristretto255 as S, Role};
use quiver_crypto::Secret;
use quiver_datagram::{Config, Datagrams, Event, Payload, Priority};
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::{Edge, EdgeConfig, Leader, LeaderCommand, LeaderConfig};
use quiver_machine::Route;
use quiver_testbed::{Net, token_grant};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const EDGES: [&str; 2] = ["edge-1", "edge-2"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let alpha = Name::new("alpha")?;
    // A KGC, a leader and two edges, without sockets: the example `group` of quiver-group explains it.
    let (master, operator) = (MasterSecret::<S>::generate(rng), OperatorSecretKey::<S>::generate(rng));
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let mut net = Net::new(1);
    let lead = token_grant("leader", Role::Leader { group: alpha.clone(), ordinal: 0 }, "alpha");
    let lead =
        LeaderConfig::new(deployment.clone(), alpha.clone(), Some(operator.issue(&deployment, lead, rng)?));
    let kgc = KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(rng));
    net.start("kgc", Kgc::<S>::new(kgc, [])?);
    net.start("leader", Leader::<S>::new(lead, [])?);
    net.subscribe("leader");
    net.connect("leader", "kgc", Route::Kgc);
    for edge in EDGES {
        let token = operator.issue(&deployment, token_grant(edge, Role::Edge, "alpha"), rng)?;
        net.start(
            edge,
            Edge::<S>::new(EdgeConfig::new(deployment.clone(), Some(alpha.clone()), Some(token)), None)?,
        );
        net.subscribe(edge);
        net.connect(edge, "kgc", Route::Kgc);
        net.connect(edge, "leader", Route::Leader);
    }
    net.run_for(Duration::from_secs(10));

    // Beside each edge a machine for its datagrams, with the key of the epoch.
    let mut members = EDGES.map(|_| Datagrams::<S>::new(Config::default(), deployment.clone()));
    exchange(&mut net, &mut members, rng);
    let telemetry = Payload { bytes: b"47.39 8.54".to_vec(), priority: Priority::Telemetry, sign: false };
    let command = Payload { bytes: b"land".to_vec(), priority: Priority::Command, sign: true };
    let now = net.time();
    members[0].send(now, telemetry.clone())?;
    members[0].send(now, command)?;
    let received = exchange(&mut net, &mut members, rng);
    assert_eq!(received.len(), 2);

    // Once evicted, edge-2 has no key: it sends nothing and opens nothing.
    net.command::<Leader<S>>("leader", LeaderCommand::Evict(Name::new("edge-2")?));
    net.run_for(Duration::from_secs(1));
    exchange(&mut net, &mut members, rng);
    members[0].send(net.time(), telemetry.clone())?;
    assert!(exchange(&mut net, &mut members, rng).is_empty());
    println!("edge-2, evicted: {}", members[1].send(net.time(), telemetry).unwrap_err());
    Ok(())
}

/// Gives each machine its epoch, answers its events, and carries its datagrams to the other.
fn exchange(
    net: &mut Net<&'static str>,
    members: &mut [Datagrams<S>; 2],
    rng: &mut ChaCha20Rng,
) -> Vec<Vec<u8>> {
    let (now, mut received) = (net.time(), Vec::new());
    for _ in 0..8 {
        for (place, name) in EDGES.into_iter().enumerate() {
            let edge = net.machine::<Edge<S>>(name);
            match edge.epoch_keys(net.clock()) {
                Some(keys) => members[place].set_epoch(now, keys, rng),
                None => members[place].close(),
            }
            while let Some(event) = members[place].poll_event() {
                match event {
                    Event::SignatureWanted(request) => {
                        if let Some(signature) = edge.sign_datagram(&request.statement, rng) {
                            members[place].provide_signature(now, request.id, &signature);
                        }
                    }
                    Event::SignerAnnounced { slot, drone } => {
                        if edge.may_sign_datagrams(net.clock(), slot, &drone).is_ok() {
                            members[place].allow_signer(now, slot, &drone.handle());
                        }
                    }
                    Event::Received { slot, bytes, source } => {
                        println!(
                            "{name} received {:?} from slot {slot}: {source:?}",
                            String::from_utf8_lossy(&bytes)
                        );
                        received.push(bytes);
                    }
                    other => println!("{name}: {other:?}"),
                }
            }
            while let Some(datagram) = members[place].poll_datagram(now) {
                println!("{name} sends {} bytes", datagram.len());
                members[1 - place].handle_datagram(now, &datagram);
            }
        }
    }
    received
}
