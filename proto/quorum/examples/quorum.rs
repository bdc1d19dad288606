//! Three KGCs generate the key of their quorum, and any two of them sign a revocation list together. Without
//! sockets, on the deterministic testbed.
//!
//! `cargo run -p quiver-quorum-node --example quorum`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use quiver_ainq::{Name, QuorumStatement, Revoked, Ristretto255 as S, SignedRevocationList};
use quiver_machine::Route;
use quiver_quorum_node::{QuorumCommand, QuorumConfig, QuorumMembership, QuorumNode};
use quiver_testbed::Net;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // §5.1: what all three have in their configuration, word for word; any two act.
    let identities = (1..=3).map(|id| format!("transport identity of KGC {id}").into_bytes()).collect();
    let membership = QuorumMembership::new::<S>(Name::new("demo")?, 2, identities)?;
    let mut net = Net::new(1);
    for id in 1..=3 {
        let config = QuorumConfig {
            membership: membership.clone(),
            id,
            revocation_validity: 86_400,
            ibe_statements: None,
        };
        net.start(id, QuorumNode::<S>::new(config, [])?);
        // The transport has authenticated both ends of a connection between members.
        for other in 1..id {
            net.link(other, id, (Route::Member(id), Route::Member(other)));
        }
    }

    // §5.2: every operator wants a key; nobody ever holds all of it.
    for id in 1..=3 {
        net.command::<QuorumNode<S>>(id, QuorumCommand::Generate);
    }
    net.run_until("the quorum has a key and has signed whose shares are which", |net| {
        net.ids().into_iter().all(|id| net.machine::<QuorumNode<S>>(id).quorum_statement().is_some())
    });
    let node = net.machine::<QuorumNode<S>>(1);
    let deployment = node.deployment().ok_or("no key")?.clone();
    let statement = QuorumStatement::decode(node.quorum_statement().ok_or("no statement")?)?;
    println!("the quorum's key: {:?}", deployment.master());
    for id in 2..=3 {
        assert_eq!(net.machine::<QuorumNode<S>>(id).deployment(), Some(&deployment));
    }
    statement.verify(&deployment)?;

    // §5.4: one operator wants a drone revoked: that is not enough. A second one does: the list is signed,
    // while KGC 2 is down.
    let revoke = QuorumCommand::Revoke(vec![Revoked::unknown([7; 16])]);
    net.stop(2);
    net.command::<QuorumNode<S>>(1, revoke.clone());
    net.run_for(Duration::from_secs(60));
    assert!(net.machine::<QuorumNode<S>>(1).signed_revocations().is_none());
    net.command::<QuorumNode<S>>(3, revoke);
    net.run_until("both hold the list", |net| {
        [1, 3].into_iter().all(|id| net.machine::<QuorumNode<S>>(id).signed_revocations().is_some())
    });

    // Under the quorum's key the signature is like that of a single KGC.
    for id in [1, 3] {
        let bytes = net.machine::<QuorumNode<S>>(id).signed_revocations().ok_or("no list")?;
        let list = SignedRevocationList::<S>::decode(bytes)?.verify(&deployment)?;
        println!("KGC {id} holds revocation list {} with {} entry", list.number, list.revoked.len());
        assert!(list.names_serial(&[7; 16]));
    }
    Ok(())
}
