//! Every way to misbehave in every round of a ceremony: it is refused, its author is named, and nothing has
//! changed.

use quiver_ainq::KgcId;
use quiver_quorum::dkg::{Dealing, ECHO_LEN, Resumed, SHARE_LEN, package_len};
use quiver_quorum::{Error, QuorumParameters, QuorumSuite};
use rand_chacha::ChaCha20Rng;

use crate::fixture::{CONTEXT, World, deal_all, echo_all, generating, rng, share_all};
use crate::for_each_suite;

for_each_suite!(
    what_is_no_package_is_blamed_on_its_sender,
    commitments_of_another_number_are_blamed_on_their_sender,
    a_proof_of_another_secret_is_blamed_on_its_sender,
    a_kgc_that_deals_twice_is_blamed,
    a_kgc_that_deals_different_things_to_two_is_found_out_before_anybody_shares,
    ceremonies_of_different_contexts_do_not_mix,
    a_share_that_does_not_fit_is_blamed_on_its_sender,
    no_round_ends_before_everybody_was_heard,
    strangers_are_refused_in_every_round,
    a_stored_ceremony_is_read_back_exactly_or_not_at_all,
);

fn parameters() -> QuorumParameters {
    QuorumParameters::new(4, 3).unwrap()
}

fn refreshing<S: QuorumSuite>(rng: &mut ChaCha20Rng) -> Vec<Dealing<S>> {
    let world = World::<S>::new(50, parameters());
    let start = |share| Dealing::refresh(share, &world.public, CONTEXT, rng).unwrap();
    world.shares.iter().map(start).collect()
}

/// A ceremony that makes a key, and one that refreshes shares.
fn both<S: QuorumSuite>(seed: u64) -> [Vec<Dealing<S>>; 2] {
    let mut rng = rng(seed);
    [generating(parameters(), &mut rng), refreshing(&mut rng)]
}

/// Refused with this error, after which the state is unchanged.
fn refuses<S: QuorumSuite>(dealing: &mut Dealing<S>, from: KgcId, package: &[u8], expected: &Error) {
    let before = dealing.encode();
    assert_eq!(dealing.receive(from, package).unwrap_err(), *expected);
    assert_eq!(dealing.encode(), before);
}

fn what_is_no_package_is_blamed_on_its_sender<S: QuorumSuite>() {
    for mut dealing in both::<S>(1) {
        let package = dealing[2].package().to_vec();
        let invalid = Error::InvalidMessage { culprit: 3 };
        assert_eq!(invalid.culprits(), [3]);
        let mut identity = package.clone();
        identity[..S::POINT_LEN].fill(0);
        let mut no_point = package.clone();
        no_point[S::POINT_LEN..2 * S::POINT_LEN].fill(0xff);
        let mut no_scalar = package.clone();
        let at = package.len() - 32;
        no_scalar[at..].fill(0xff);
        for bytes in [&[][..], &identity, &no_point, &no_scalar, &vec![0xab; 100_000]] {
            refuses(&mut dealing[0], 3, bytes, &invalid);
        }
        dealing[0].receive(3, &package).unwrap();
    }
}

fn commitments_of_another_number_are_blamed_on_their_sender<S: QuorumSuite>() {
    for mut dealing in both::<S>(2) {
        let package = dealing[1].package().to_vec();
        let invalid = Error::InvalidMessage { culprit: 2 };
        refuses(&mut dealing[0], 2, &package[S::POINT_LEN..], &invalid);
        let more = [&package[..S::POINT_LEN], &package].concat();
        refuses(&mut dealing[0], 2, &more, &invalid);
    }
    // Also packages that are right in a quorum of another threshold.
    let mut rng = rng(3);
    let mut dealing = generating::<S>(parameters(), &mut rng);
    let other = generating::<S>(QuorumParameters::new(4, 4).unwrap(), &mut rng);
    assert_eq!(dealing[1].package().len(), package_len::<S>(parameters()));
    refuses(&mut dealing[0], 2, other[1].package(), &Error::InvalidMessage { culprit: 2 });
    let mut dealing = refreshing::<S>(&mut rng);
    let generating = generating::<S>(parameters(), &mut rng);
    refuses(&mut dealing[0], 2, generating[1].package(), &Error::InvalidMessage { culprit: 2 });
}

fn a_proof_of_another_secret_is_blamed_on_its_sender<S: QuorumSuite>() {
    let mut dealing = generating::<S>(parameters(), &mut rng(4));
    let (mine, theirs) = (dealing[1].package().to_vec(), dealing[2].package().to_vec());
    let proof = mine.len() - S::POINT_LEN - 32;
    let forged = [&mine[..proof], &theirs[proof..]].concat();
    refuses(&mut dealing[0], 2, &forged, &Error::InvalidProof { culprit: 2 });
    // A proof names who makes it: a copied package proves nothing about the copier.
    refuses(&mut dealing[0], 3, &mine, &Error::InvalidProof { culprit: 3 });
    dealing[0].receive(2, &mine).unwrap();
}

fn a_kgc_that_deals_twice_is_blamed<S: QuorumSuite>() {
    for (mut dealing, other) in both::<S>(5).into_iter().zip(both::<S>(6)) {
        let package = dealing[1].package().to_vec();
        dealing[0].receive(2, &package).unwrap();
        dealing[0].receive(2, &package).unwrap();
        refuses(&mut dealing[0], 2, other[1].package(), &Error::Contradiction { culprit: 2 });
    }
}

fn a_kgc_that_deals_different_things_to_two_is_found_out_before_anybody_shares<S: QuorumSuite>() {
    for (mut dealing, other) in both::<S>(7).into_iter().zip(both::<S>(8)) {
        // KGC 4 deals twice, and sends KGC 2 the other package.
        dealing[1].receive(4, other[3].package()).unwrap();
        for (to, from) in [(1, 2), (1, 3), (1, 4), (2, 1), (2, 3)] {
            let package = dealing[from - 1].package().to_vec();
            dealing[to - 1].receive(from as KgcId, &package).unwrap();
        }
        let second = dealing.remove(1).advance().unwrap();
        let mut first = dealing.remove(0).advance().unwrap();
        let error = first.receive(2, &second.echo()).unwrap_err();
        assert_eq!(error, Error::EchoMismatch { with: 2 });
        assert!(error.culprits().is_empty(), "KGC 2 did not lie");
        assert_eq!(first.missing(), [2, 3, 4]);
    }
}

fn ceremonies_of_different_contexts_do_not_mix<S: QuorumSuite>() {
    let mut rng = rng(9);
    let mut dealing = generating::<S>(parameters(), &mut rng);
    dealing[3] = Dealing::generate(parameters(), 4, [8; 32], &mut rng).unwrap();
    deal_all(&mut dealing);
    let last = dealing.remove(3).advance().unwrap();
    let mut first = dealing.remove(0).advance().unwrap();
    assert_eq!(first.receive(4, &last.echo()).unwrap_err(), Error::EchoMismatch { with: 4 });
    // Nor do those that refresh another quorum, though their packages look alike.
    let (mut one, mut other) = (refreshing::<S>(&mut rng), Vec::new());
    let world = World::<S>::new(51, parameters());
    for share in &world.shares {
        other.push(Dealing::refresh(share, &world.public, CONTEXT, &mut rng).unwrap());
    }
    one[3] = other.remove(3);
    deal_all(&mut one);
    let last = one.remove(3).advance().unwrap();
    let mut first = one.remove(0).advance().unwrap();
    assert_eq!(first.receive(4, &last.echo()).unwrap_err(), Error::EchoMismatch { with: 4 });
}

fn a_share_that_does_not_fit_is_blamed_on_its_sender<S: QuorumSuite>() {
    for mut dealing in both::<S>(10) {
        deal_all(&mut dealing);
        let mut sharing: Vec<_> = echo_all(dealing).into_iter().map(|one| one.advance().unwrap()).collect();
        let (right, wrong) = (sharing[2].share_for(1).unwrap(), sharing[2].share_for(2).unwrap());
        assert_eq!(right.len(), SHARE_LEN);
        let before = sharing[0].encode();
        let invalid = Error::InvalidShare { culprit: 3 };
        assert_eq!(sharing[0].receive(3, &wrong).unwrap_err(), invalid);
        assert_eq!(sharing[0].receive(3, &[0; 32]).unwrap_err(), invalid);
        assert_eq!(invalid.culprits(), [3]);
        for bytes in [&[][..], &[0xff; 32], &right[1..], &[1; 33]] {
            assert_eq!(sharing[0].receive(3, bytes).unwrap_err(), Error::InvalidMessage { culprit: 3 });
        }
        assert_eq!(sharing[0].encode(), before);
        sharing[0].receive(3, &right).unwrap();
        sharing[0].receive(3, &right).unwrap();
        assert_eq!(sharing[0].receive(3, &wrong).unwrap_err(), Error::Contradiction { culprit: 3 });
    }
}

fn no_round_ends_before_everybody_was_heard<S: QuorumSuite>() {
    for mut dealing in both::<S>(11) {
        let package = dealing[1].package().to_vec();
        dealing[0].receive(2, &package).unwrap();
        let refused = dealing.remove(0).advance().unwrap_err();
        assert_eq!(refused.error, Error::Incomplete { missing: vec![3, 4] });
        dealing.insert(0, refused.state);
        deal_all(&mut dealing);
        let mut echoing: Vec<_> = dealing.into_iter().map(|one| one.advance().unwrap()).collect();
        let echo = echoing[2].echo();
        echoing[0].receive(3, &echo).unwrap();
        let refused = echoing.remove(0).advance().unwrap_err();
        assert_eq!(refused.error, Error::Incomplete { missing: vec![2, 4] });
        let mut first = refused.state;
        [2, 4].into_iter().for_each(|from| first.receive(from, &echo).unwrap());
        let sharing = first.advance().unwrap();
        let refused = sharing.finish().unwrap_err();
        assert_eq!(refused.error, Error::Incomplete { missing: vec![2, 3, 4] });
        assert_eq!(refused.to_string(), "messages of 3 KGCs are missing");
    }
}

fn strangers_are_refused_in_every_round<S: QuorumSuite>() {
    assert_eq!(
        Dealing::<S>::generate(parameters(), 5, CONTEXT, &mut rng(0)).unwrap_err(),
        Error::UnknownKgc(5)
    );
    for mut dealing in both::<S>(12) {
        let package = dealing[1].package().to_vec();
        for stranger in [0, 1, 5, KgcId::MAX] {
            refuses(&mut dealing[0], stranger, &package, &Error::UnknownKgc(stranger));
        }
        deal_all(&mut dealing);
        let mut echoing = echo_all(dealing);
        let echo = echoing[0].echo();
        assert_eq!(echo.len(), ECHO_LEN);
        for stranger in [0, 1, 5, KgcId::MAX] {
            assert_eq!(echoing[0].receive(stranger, &echo).unwrap_err(), Error::UnknownKgc(stranger));
        }
        assert_eq!(echoing[0].receive(2, &echo[1..]).unwrap_err(), Error::InvalidMessage { culprit: 2 });
        let mut sharing = share_all(echoing);
        for stranger in [0, 1, 5, KgcId::MAX] {
            assert_eq!(sharing[0].receive(stranger, &[1; 32]).unwrap_err(), Error::UnknownKgc(stranger));
            assert_eq!(sharing[0].share_for(stranger).unwrap_err(), Error::UnknownKgc(stranger));
        }
    }
}

fn a_stored_ceremony_is_read_back_exactly_or_not_at_all<S: QuorumSuite>() {
    for mut dealing in both::<S>(14) {
        deal_all(&mut dealing);
        let sharing = share_all(echo_all(dealing));
        let bytes = sharing[0].encode();
        for len in (0..bytes.len()).step_by(7) {
            assert!(Resumed::<S>::decode(&bytes[..len]).is_err(), "of {len} bytes");
        }
        assert!(Resumed::<S>::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
        // The round is encoded behind the kind and the suite: a round that was not over yet is not taken for
        // one that was.
        let at = 4 + "quiver/1 quorum ceremony".len() + 4 + S::ID.len();
        let mut earlier = bytes.to_vec();
        earlier[at] = 4;
        assert!(Resumed::<S>::decode(&earlier).is_err());
        let other = Dealing::<S>::generate(parameters(), 1, CONTEXT, &mut rng(0)).unwrap();
        let mut early = other.encode().to_vec();
        early[at] = 2;
        assert!(matches!(Resumed::<S>::decode(&early).unwrap_err(), Error::Malformed(_)));
    }
}
