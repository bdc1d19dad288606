//! Generating and refreshing a master secret among honest KGCs.

use quiver_ainq::Purpose;
use quiver_quorum::dkg::{Dealing, Resumed};
use quiver_quorum::{Error, QuorumParameters, QuorumSuite, SignatureShare};

use crate::fixture::{
    CONTEXT, World, agreed, deal_all, echo_all, generating, rng, run, share_all, three_of_five,
};
use crate::for_each_suite;

for_each_suite!(
    a_generated_key_signs,
    refreshing_keeps_the_key_and_changes_every_share,
    shares_of_two_versions_do_not_combine,
    a_ceremony_goes_on_after_a_crash_in_every_round,
    the_smallest_quorum_works,
);

fn a_generated_key_signs<S: QuorumSuite>() {
    let mut rng = rng(1);
    let (shares, public) = agreed(run::<S>(generating(three_of_five(), &mut rng)));
    let mut world = World::of(shares, public, rng);
    let message = Purpose::Parameters.message(&world.deployment, b"body");
    for kgcs in [[1, 2, 3], [1, 4, 5]] {
        let (package, shares) = world.sign(&message, &kgcs);
        let statement = world.public.aggregate_statement(&package, &shares).unwrap();
        statement.verify(&world.deployment, Purpose::Parameters, b"body").unwrap();
    }
}

fn refreshed<S: QuorumSuite>(world: &mut World<S>) -> World<S> {
    let rng = &mut world.rng;
    let public = &world.public;
    let dealing =
        world.shares.iter().map(|share| Dealing::refresh(share, public, CONTEXT, rng).unwrap()).collect();
    let (shares, public) = agreed(run(dealing));
    World::of(shares, public, rng.clone())
}

fn refreshing_keeps_the_key_and_changes_every_share<S: QuorumSuite>() {
    let mut world = World::<S>::new(2, three_of_five());
    let mut next = refreshed(&mut world);
    assert_eq!((next.public.version(), next.public.master()), (1, world.public.master()));
    for (old, new) in world.shares.iter().zip(&next.shares) {
        assert_eq!((old.kgc(), new.version()), (new.kgc(), 1));
        assert_ne!(old.expose(), new.expose());
    }
    let (package, shares) = next.sign(b"message", &[2, 3, 4]);
    next.public.aggregate_statement(&package, &shares).unwrap();
    assert_eq!(refreshed(&mut next).public.version(), 2);
}

fn shares_of_two_versions_do_not_combine<S: QuorumSuite>() {
    let mut world = World::<S>::new(3, three_of_five());
    let next = refreshed(&mut world);
    let wrong = Error::WrongVersion { expected: 0, actual: 1 };
    assert_eq!(world.share(1).matches(&next.public).unwrap_err(), wrong);
    assert_eq!(Dealing::refresh(world.share(1), &next.public, CONTEXT, &mut rng(0)).unwrap_err(), wrong);
    // Nor with a forged version that claims to be the same.
    let mut encoded = world.share(1).encode();
    let at = encoded.len() - 32 - S::POINT_LEN - 1;
    encoded[at] = 1;
    let pretended = quiver_quorum::SecretShare::<S>::decode(&encoded).unwrap();
    assert_eq!(pretended.version(), 1);
    assert_eq!(pretended.matches(&next.public).unwrap_err(), Error::WrongQuorum);
    let mut mixed = next;
    mixed.shares[0] = pretended;
    let (package, shares) = mixed.sign(b"message", &[1, 2, 3]);
    let shares: std::collections::BTreeMap<_, SignatureShare<S>> = shares;
    assert_eq!(mixed.public.aggregate_statement(&package, &shares).unwrap_err().culprits(), [1]);
}

fn a_ceremony_goes_on_after_a_crash_in_every_round<S: QuorumSuite>() {
    let parameters = QuorumParameters::new(3, 2).unwrap();
    let mut world = World::<S>::new(4, parameters);
    let (rng, public) = (&mut world.rng, &world.public);
    let refreshing =
        world.shares.iter().map(|share| Dealing::refresh(share, public, CONTEXT, rng).unwrap()).collect();
    for mut dealing in [generating::<S>(parameters, rng), refreshing] {
        let package = dealing[0].package().to_vec();
        dealing[0] = match Resumed::decode(&dealing[0].encode()).unwrap() {
            Resumed::Dealing(state) => state,
            other => panic!("{other:?}"),
        };
        assert_eq!(dealing[0].package(), package, "the same after a crash");
        deal_all(&mut dealing);
        let mut echoing = echo_all(dealing);
        let echo = echoing[1].echo();
        echoing[1] = match Resumed::decode(&echoing[1].encode()).unwrap() {
            Resumed::Echoing(state) => state,
            other => panic!("{other:?}"),
        };
        assert_eq!(echoing[1].echo(), echo, "the same after a crash");
        let mut sharing = share_all(echoing);
        let share = sharing[2].share_for(1).unwrap();
        sharing[2] = match Resumed::decode(&sharing[2].encode()).unwrap() {
            Resumed::Sharing(state) => state,
            other => panic!("{other:?}"),
        };
        assert_eq!(sharing[2].share_for(1).unwrap(), share, "the same after a crash");
        agreed(sharing.into_iter().map(|one| one.finish().unwrap()).collect());
    }
}

fn the_smallest_quorum_works<S: QuorumSuite>() {
    let mut rng = rng(5);
    let (shares, public) = agreed(run::<S>(generating(QuorumParameters::new(2, 2).unwrap(), &mut rng)));
    let mut world = World::of(shares, public, rng);
    let (package, shares) = world.sign(b"message", &[1, 2]);
    world.public.aggregate_statement(&package, &shares).unwrap();
    let next = refreshed(&mut world);
    assert_eq!(next.public.version(), 1);
}
