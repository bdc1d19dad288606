//! A drone with a token enrols with a quorum of KGCs, any two of three, without sockets, on the deterministic
//! testbed.
//!
//! `cargo run -p quiver-enrolment --example threshold`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{
    Deployment, Label, MasterSecret, Name, OperatorSecretKey, Purpose, QuorumStatement, Ristretto255 as S,
    Role, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcEvent, Kgcs, MasterShare};
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::Route;
use quiver_quorum::{QuorumParameters, dealer};
use quiver_testbed::{EPOCH_START, Net};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const KGCS: [&str; 3] = ["kgc-1", "kgc-2", "kgc-3"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (day, operator) = (86_400, OperatorSecretKey::<S>::generate(rng));
    // §3.6: a dealer splits the master key, and signs whose public share is which. KGCs that trust no dealer
    // generate the key among themselves: see the example of `quiver-quorum-node`.
    let master = MasterSecret::<S>::generate(rng);
    let deployment = Deployment::new(Name::new("demo")?, master.public());
    let (shares, public) = dealer::split(&master, QuorumParameters::new(3, 2)?, rng)?;
    let signature = master.sign(&deployment, Purpose::Quorum, &public.encode(), rng);
    let statement = QuorumStatement::new(public.encode(), signature)?;
    drop(master);

    // Each KGC holds one share. One of the three is down: two are enough.
    let mut net = Net::new(1);
    for (name, share) in KGCS.into_iter().zip(shares) {
        let config = KgcConfig {
            deployment: deployment.clone(),
            id: share.kgc(),
            master: MasterShare::new(&deployment, share, &statement)?.into(),
            operators: vec![operator.public()],
            cookie_key: Secret::random(rng),
            revocation_validity: day,
        };
        net.start(name, Kgc::<S>::new(config, [])?);
    }
    net.stop("kgc-3");

    // §3.2: the operator issues a token. §3.3 to §3.7: the drone turns it into a key that no KGC knows.
    let expiry = EPOCH_START + day;
    let grant = TokenGrant {
        name: Name::new("wren")?,
        role: Role::Edge,
        groups: vec![Name::new("alpha")?],
        not_after: expiry,
        expiry,
    };
    let token = operator.issue(&deployment, grant, rng)?;
    let config = EdgeConfig {
        kgcs: Kgcs::quorum(vec![1, 2, 3]),
        ..EdgeConfig::new(deployment.clone(), None, Some(token))
    };
    net.start("wren", Edge::<S>::new(config, None)?);
    for kgc in KGCS {
        net.connect("wren", kgc, Route::Kgc);
    }
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

    // The KGCs that contributed know which key they contributed to.
    for kgc in KGCS {
        let events = &net.node::<Kgc<S>>(kgc).events;
        let contributed = events.iter().any(|event| {
            matches!(event, KgcEvent::Contributed { handle, .. } if *handle == keypair.public().handle())
        });
        println!("{kgc} {}", if contributed { "contributed to its key" } else { "was down" });
        assert_eq!(contributed, kgc != "kgc-3");
    }
    Ok(())
}
