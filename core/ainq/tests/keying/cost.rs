//! Cost of a step in multiplications of a point by a scalar, counted by an instrumented suite.

use quiver_ainq::instrumented::{Counting, multiplications, reset};
use quiver_ainq::{Batch, EpochPart, GroupMembership, RevocationStatement, Ristretto255, SecretScalar};

use crate::swarm::{NOW, Swarm, name, times};

type S = Counting<Ristretto255>;

fn counted<T>(step: impl FnOnce() -> T) -> (T, u64) {
    reset();
    let result = step();
    (result, multiplications())
}

#[test]
fn a_member_pays_only_for_the_headers_signature_unless_it_is_new() {
    let mut swarm = Swarm::<S>::formed(81, 3);
    swarm.add_edge();
    let (context, none) = (swarm.context(), RevocationStatement::empty());
    let mut signature_check = None;
    for joining in [vec![], vec![3]] {
        swarm.rekey_undelivered(&joining, vec![]);
        let broadcast = swarm.last().clone();
        let verify = || broadcast.header.clone().verify(&swarm.deployment, &name("alpha"), None, &none, NOW);
        let (header, checked) = counted(verify);
        let header = header.unwrap();
        // One product for the signer's Y, one of two terms for the equation; the same with and without joins.
        assert_eq!(*signature_check.get_or_insert(checked), checked);
        assert!(checked <= 3, "{checked}");
        let edge = &swarm.edges[0];
        let member = edge.membership.as_ref().unwrap();
        let part = EpochPart::Entry(broadcast.entry(0).unwrap().clone());
        let (next, cost) =
            counted(|| member.advance(&context, &edge.keypair, Some(&edge.spare), &header, &part));
        assert!(next.is_ok());
        assert_eq!(cost, 0);
        swarm.deliver(0).unwrap();
    }
}

#[test]
fn key_retrieval_is_one_multiplication_as_in_the_paper() {
    let mut swarm = Swarm::<S>::new(82, 1);
    let (output, secrets) = swarm.rekey_undelivered(&[0], vec![]);
    let (context, header) = (swarm.context(), swarm.verified(&output.header));
    let part = EpochPart::Entry(output.entries[0].clone());
    let join = || GroupMembership::join(&context, &swarm.edges[0].keypair, &secrets[0], &header, &part);
    let (member, cost) = counted(join);
    assert!(member.is_ok());
    // T, and E_now once more from its secret, for the context.
    assert_eq!(cost, 2);
}

#[test]
fn the_leader_multiplies_for_newcomers_only() {
    let mut swarm = Swarm::<S>::formed(83, 8);
    let empty = |swarm: &mut Swarm<S>| {
        swarm.leadership.rekey(&swarm.leader, Batch::default(), &times(), &mut swarm.rng).unwrap();
    };
    // Expiry: the commitment of the header's signature.
    assert_eq!(counted(|| empty(&mut swarm)).1, 1);
    swarm.add_edge();
    let e = SecretScalar::generate(&mut swarm.rng);
    let public = swarm.edges[8].keypair.public().clone();
    let (join, cost) = counted(|| quiver_ainq::Join::new(&swarm.deployment, public, e.public()).unwrap());
    // Y, and E of the test's own making.
    assert_eq!(cost, 2);
    let batch = Batch { joins: vec![join], ..Batch::default() };
    let rekey = || swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng).unwrap();
    // V, T, signature.
    assert_eq!(counted(rekey).1, 3);
}
