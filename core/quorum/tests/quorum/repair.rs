//! A lost share is restored, and a lying helper is named.

use quiver_ainq::KgcId;
use quiver_quorum::repair::{ANSWER_LEN, DELTA_LEN, Helping, Recovering};
use quiver_quorum::{Error, QuorumSuite};

use crate::fixture::{CONTEXT, World, rng, three_of_five};
use crate::for_each_suite;

for_each_suite!(
    a_lost_share_is_recovered_by_any_threshold_of_helpers,
    a_helper_whose_commitments_do_not_add_up_is_named,
    a_helper_that_sends_a_delta_it_did_not_commit_to_is_named,
    a_helper_that_answers_with_another_sum_is_named,
    helpers_that_were_told_different_things_do_not_combine,
    what_is_no_message_of_a_repair_is_refused,
    those_who_cannot_help_are_refused,
);

const LOST: KgcId = 2;

struct Repair<S: QuorumSuite> {
    world: World<S>,
    helping: Vec<Helping<S>>,
    recovering: Recovering<S>,
}

impl<S: QuorumSuite> Repair<S> {
    fn new(helpers: &[KgcId]) -> Self {
        let world = World::new(1, three_of_five());
        let mut rng = rng(2);
        let start = |kgc: &KgcId| {
            Helping::new(world.share(*kgc), &world.public, helpers, LOST, CONTEXT, &mut rng).unwrap()
        };
        let helping = helpers.iter().map(start).collect();
        let recovering = Recovering::new(&world.public, helpers, LOST, CONTEXT).unwrap();
        Self { world, helping, recovering }
    }

    fn packages(&mut self, helpers: &[KgcId]) {
        let packages: Vec<Vec<u8>> = self.helping.iter().map(|one| one.package().to_vec()).collect();
        for (from, package) in helpers.iter().zip(&packages) {
            self.recovering.receive_package(*from, package).unwrap();
            for one in &mut self.helping {
                one.receive_package(*from, package).unwrap();
            }
        }
    }

    fn deltas(&mut self, helpers: &[KgcId]) {
        for (i, from) in helpers.iter().enumerate() {
            for (j, to) in helpers.iter().enumerate() {
                let delta = self.helping[i].delta_for(*to).unwrap();
                assert_eq!(delta.len(), DELTA_LEN);
                self.helping[j].receive_delta(*from, &delta).unwrap();
            }
        }
    }
}

const HELPERS: [KgcId; 3] = [1, 4, 5];

fn a_lost_share_is_recovered_by_any_threshold_of_helpers<S: QuorumSuite>() {
    for helpers in [&[1, 3, 4][..], &HELPERS, &[1, 3, 4, 5]] {
        let mut repair = Repair::<S>::new(helpers);
        repair.packages(helpers);
        assert_eq!(
            repair.helping[0].answer().unwrap_err(),
            Error::Incomplete { missing: helpers[1..].into() }
        );
        repair.deltas(helpers);
        for (helper, one) in helpers.iter().zip(&repair.helping) {
            let answer = one.answer().unwrap();
            assert_eq!(answer.len(), ANSWER_LEN);
            repair.recovering.receive_answer(*helper, &answer).unwrap();
        }
        let share = repair.recovering.finish().unwrap();
        assert_eq!(share.encode(), repair.world.share(LOST).encode());
    }
}

fn a_helper_whose_commitments_do_not_add_up_is_named<S: QuorumSuite>() {
    let mut repair = Repair::<S>::new(&HELPERS);
    // Each commitment is a point, but they are those of another helper.
    let package = repair.helping[1].package().to_vec();
    let blamed = Error::InvalidShare { culprit: 5 };
    assert_eq!(repair.recovering.receive_package(5, &package).unwrap_err(), blamed);
    assert_eq!(repair.helping[0].receive_package(5, &package).unwrap_err(), blamed);
    repair.packages(&HELPERS);
    let contradiction = Error::Contradiction { culprit: 5 };
    assert_eq!(repair.recovering.receive_package(5, &package).unwrap_err(), contradiction);
}

fn a_helper_that_sends_a_delta_it_did_not_commit_to_is_named<S: QuorumSuite>() {
    let mut repair = Repair::<S>::new(&HELPERS);
    let delta = repair.helping[1].delta_for(1).unwrap();
    assert_eq!(
        repair.helping[0].receive_delta(4, &delta).unwrap_err(),
        Error::Incomplete { missing: vec![4] },
        "its package comes first"
    );
    repair.packages(&HELPERS);
    let other = repair.helping[1].delta_for(5).unwrap();
    assert_eq!(repair.helping[0].receive_delta(4, &other).unwrap_err(), Error::InvalidShare { culprit: 4 });
    repair.helping[0].receive_delta(4, &delta).unwrap();
}

fn a_helper_that_answers_with_another_sum_is_named<S: QuorumSuite>() {
    let mut repair = Repair::<S>::new(&HELPERS);
    let early = vec![0; ANSWER_LEN];
    let missing = HELPERS.to_vec();
    assert_eq!(repair.recovering.receive_answer(1, &early).unwrap_err(), Error::Incomplete { missing });
    repair.packages(&HELPERS);
    repair.deltas(&HELPERS);
    // A sum, but that of another helper.
    let answer = repair.helping[2].answer().unwrap();
    let error = repair.recovering.receive_answer(4, &answer).unwrap_err();
    assert_eq!(error, Error::InvalidShare { culprit: 4 });
    assert_eq!(error.culprits(), [4]);
    assert_eq!(repair.recovering.finish().unwrap_err(), Error::Incomplete { missing: HELPERS.to_vec() });
}

fn helpers_that_were_told_different_things_do_not_combine<S: QuorumSuite>() {
    let (mut one, mut other) = (Repair::<S>::new(&HELPERS), Repair::<S>::new(&HELPERS));
    // The second helper commits to something else towards the third, and is consistent in it.
    let share = one.world.share(4);
    let twin = Helping::new(share, &one.world.public, &HELPERS, LOST, CONTEXT, &mut rng(99)).unwrap();
    other.helping[1] = twin;
    one.packages(&HELPERS);
    one.deltas(&HELPERS);
    other.packages(&HELPERS);
    other.deltas(&HELPERS);
    let answer = other.helping[2].answer().unwrap();
    let error = one.recovering.receive_answer(5, &answer).unwrap_err();
    assert_eq!(error, Error::EchoMismatch { with: 5 });
    assert!(error.culprits().is_empty(), "helper 5 did not lie");
}

fn what_is_no_message_of_a_repair_is_refused<S: QuorumSuite>() {
    let mut repair = Repair::<S>::new(&HELPERS);
    let package = repair.helping[1].package().to_vec();
    let invalid = Error::InvalidMessage { culprit: 4 };
    let mut identity = package.clone();
    identity[..S::POINT_LEN].fill(0);
    for bytes in [&[][..], &package[1..], &[package.as_slice(), &[0]].concat(), &identity] {
        assert_eq!(repair.recovering.receive_package(4, bytes).unwrap_err(), invalid);
    }
    assert_eq!(repair.recovering.receive_package(3, &package).unwrap_err(), Error::UnknownKgc(3));
    repair.packages(&HELPERS);
    for bytes in [&[][..], &[0xff; 32], &[1; 33]] {
        assert_eq!(repair.helping[0].receive_delta(4, bytes).unwrap_err(), invalid);
    }
    repair.deltas(&HELPERS);
    let answer = repair.helping[1].answer().unwrap();
    for bytes in [&[][..], &answer[..31], &answer[..63], &[answer.as_slice(), &[0]].concat()] {
        assert_eq!(repair.recovering.receive_answer(4, bytes).unwrap_err(), invalid);
    }
    assert_eq!(repair.recovering.receive_answer(LOST, &answer).unwrap_err(), Error::UnknownKgc(LOST));
    assert_eq!(repair.helping[0].delta_for(3).unwrap_err(), Error::UnknownKgc(3));
}

fn those_who_cannot_help_are_refused<S: QuorumSuite>() {
    let world = World::<S>::new(1, three_of_five());
    let start = |helpers: &[KgcId], kgc| {
        Helping::new(world.share(kgc), &world.public, helpers, LOST, CONTEXT, &mut rng(0)).unwrap_err()
    };
    assert_eq!(start(&[1, 3], 1), Error::WrongNumber { actual: 2, threshold: 3 });
    assert_eq!(start(&[1, 3, 3], 1), Error::DuplicateKgc(3));
    assert_eq!(start(&[1, 3, 6], 1), Error::UnknownKgc(6));
    assert_eq!(start(&[1, 3, LOST], 1), Error::UnknownKgc(LOST));
    assert_eq!(start(&[1, 3, 4], 5), Error::UnknownKgc(5));
    let (helpers, other) = ([1, 3, 4], World::<S>::new(2, three_of_five()));
    let mismatch = Helping::new(world.share(1), &other.public, &helpers, LOST, CONTEXT, &mut rng(0));
    assert_eq!(mismatch.unwrap_err(), Error::WrongQuorum);
    assert!(Recovering::new(&world.public, &[1, 3], LOST, CONTEXT).is_err());
    assert!(Recovering::new(&world.public, &[1, 3, 4], 6, CONTEXT).is_err());
}
