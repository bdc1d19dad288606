//! Signing rounds at one KGC: few, short, for one share each.

use std::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, EnrolmentRequest, Label, MasterSecret, PendingEnrolment, Ristretto255,
    SecretValue,
};
use quiver_enrolment::threshold::{EnrolCommitment, EnrolDone, EnrolSigning};
use quiver_enrolment::{Kgc, KgcRecord};
use quiver_machine::{Destination, Input, Machine, Peer, RefusalReason, Route, Via};
use quiver_message::{EnrolHello, EnrolRequest, Message};
use quiver_testbed::{Outputs, Stimulus};
use rand_chacha::ChaCha20Rng;

use crate::world::{Node, Said, World};

type S = Ristretto255;

/// A KGC, and a drone by hand.
struct Bench {
    world: World<S>,
    request: Vec<u8>,
    digest: [u8; 32],
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut world = World::<S>::new(seed, 3, 2);
        let token = world.token("wren");
        let (request, pending): (EnrolmentRequest<S>, PendingEnrolment<S>) =
            EnrolmentRequest::create(&world.deployment, &token, &[1, 2, 3], [7; 16], &mut world.rng).unwrap();
        assert_eq!(pending.request(), &request);
        let digest = request.digest();
        Self { world, request: request.encode(), digest }
    }

    /// Sends a message to the KGC at `place`; returns its answers.
    fn say(&mut self, place: usize, from: Peer, message: &Said<S>) -> Vec<Said<S>> {
        let bytes = message.encode(&self.world.deployment);
        let (now, mut rng) = (self.world.clock_of(Node::Kgc(place)), self.world.rng.clone());
        let machine = self.world.kgc_mut(place);
        machine.handle_input(now, Input::Received { from, via: Via::Peer, bytes: &bytes }, &mut rng);
        let Outputs { records, effects, .. } = Outputs::of(machine);
        self.world.rng = rng;
        self.world.node_mut::<Kgc<S>>(Node::Kgc(place)).records_mut().extend(records);
        let answers = effects.sent.iter().map(|(to, answer)| {
            assert_eq!(*to, Destination::Peer(from));
            self.world.decode(answer)
        });
        answers.collect()
    }

    /// Runs the exchange from hello to commitment.
    fn commit(&mut self, place: usize, from: Peer) -> EnrolCommitment {
        let hello = Said::Other(Message::EnrolHello(EnrolHello { nonce: [3; 16] }));
        let [Said::Other(Message::EnrolCookie(cookie))] = &self.say(place, from, &hello)[..] else {
            panic!("no cookie")
        };
        let request = EnrolRequest { nonce: [3; 16], cookie: cookie.cookie, request: self.request.clone() };
        let answers = self.say(place, from, &Said::Other(Message::EnrolRequest(request)));
        let [Said::Commitment(commitment)] = &answers[..] else { panic!("{answers:?}") };
        commitment.clone()
    }

    fn sign(&mut self, place: usize, from: Peer, parts: &[&EnrolCommitment]) -> Said<S> {
        let parts = parts.iter().map(|part| (part.kgc, part.commitment.clone())).collect();
        let signing = EnrolSigning { request_digest: self.digest, parts };
        let mut answers = self.say(place, from, &Said::Signing(signing));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    /// Reason why the KGC at `place` does not commit itself.
    fn refused_commitment(&mut self, place: usize, from: Peer) -> RefusalReason {
        let hello = Said::Other(Message::EnrolHello(EnrolHello { nonce: [3; 16] }));
        let [Said::Other(Message::EnrolCookie(cookie))] = &self.say(place, from, &hello)[..] else {
            panic!("no cookie")
        };
        let request = EnrolRequest { nonce: [3; 16], cookie: cookie.cookie, request: self.request.clone() };
        let answers = self.say(place, from, &Said::Other(Message::EnrolRequest(request)));
        let [Said::Other(Message::Refusal(refusal))] = &answers[..] else { panic!("{answers:?}") };
        refusal.reason
    }

    /// Number of contributions in the records of the KGC at `place`.
    fn contributions(&self, place: usize) -> usize {
        let records = self.world.kgc_records(place).iter();
        records.filter(|record| matches!(record, KgcRecord::Contributed { .. })).count()
    }

    fn open(&self, place: usize) -> usize {
        self.world.kgc(place).open_rounds()
    }
}

fn is_over(message: &Said<S>) -> bool {
    matches!(message, Said::Other(Message::Refusal(refusal)) if refusal.reason == RefusalReason::RoundOver)
}

#[test]
fn a_commitment_is_good_for_one_share() {
    let mut bench = Bench::new(1);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    let Said::Share(share) = bench.sign(0, Peer(1), &[&one, &two]) else { panic!("no share") };
    // The same once more if it got lost, byte for byte: no other share, for no other peer and no other
    // package.
    let Said::Share(again) = bench.sign(0, Peer(1), &[&one, &two]) else { panic!("no share") };
    assert_eq!(again, share);
    let other = bench.commit(1, Peer(2));
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &other])));
    assert!(is_over(&bench.sign(0, Peer(2), &[&one, &two])));
    assert_eq!((bench.open(0), bench.contributions(0)), (0, 1));
    bench.world.skip(Duration::from_secs(61));
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])), "a minute later it is gone");
}

#[test]
fn a_ninth_round_for_a_token_is_refused_for_ever() {
    let mut bench = Bench::new(8);
    for contributed in 1..=8 {
        let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
        assert!(matches!(bench.sign(0, Peer(1), &[&one, &two]), Said::Share(_)));
        // Each was on the disk before its share left.
        assert_eq!(bench.contributions(0), contributed);
    }
    for _ in 0..2 {
        assert_eq!(bench.refused_commitment(0, Peer(1)), RefusalReason::TokenSpent);
        // The KGC is killed and starts again from its records.
        bench.world.start_kgc(0);
    }
    assert_eq!(bench.contributions(0), 8);
}

#[test]
fn rounds_open_beside_one_another_are_counted_as_well() {
    let mut bench = Bench::new(9);
    let two = bench.commit(1, Peer(1));
    let mut shares = 0;
    for _ in 0..3 {
        let open: Vec<_> = (1..=4).map(|peer| bench.commit(0, Peer(peer))).collect();
        for (peer, one) in (1..=4).zip(&open) {
            let answer = bench.sign(0, Peer(peer), &[one, &two]);
            shares += usize::from(matches!(answer, Said::Share(_)));
        }
        if shares == 8 {
            assert_eq!(bench.refused_commitment(0, Peer(1)), RefusalReason::TokenSpent);
            break;
        }
        // One more, so that the last four find room for three.
        if shares == 4 {
            let one = bench.commit(0, Peer(9));
            shares += usize::from(matches!(bench.sign(0, Peer(9), &[&one, &two]), Said::Share(_)));
        }
    }
    assert_eq!((shares, bench.contributions(0)), (8, 8));
}

#[test]
fn no_share_is_made_for_a_drone_that_proved_its_key_and_nobody_else_can_say_so() {
    // A drone whose message that it holds a key gets lost.
    let mut world = World::<S>::new(10, 3, 2);
    let drone = world.add("wren");
    while !world.is_enrolled(drone) {
        world.deliver(0);
    }
    world.lose_all();
    let mut requests = world.recorded.iter().filter_map(|packet| match world.decode(&packet.bytes) {
        Said::Other(Message::EnrolRequest(request)) => Some(request.request),
        _ => None,
    });
    let request = requests.next_back().unwrap();
    let digest = EnrolmentRequest::<S>::decode(&request).unwrap().digest();
    let held = world.drone(drone).keypair().unwrap();
    let drone = DroneKeypair::restore(&world.deployment, held.public().clone(), &held.to_bytes()).unwrap();
    let mut bench = Bench { world, request, digest };
    let (deployment, mut rng) = (bench.world.deployment.clone(), bench.world.rng.clone());
    let done = |keypair: &DroneKeypair<S>, rng: &mut ChaCha20Rng| {
        let serial = keypair.public().identity.serial;
        let signature = keypair.sign(&deployment, Label::Enrolled, &serial, rng).encode();
        Said::Done(EnrolDone { drone: keypair.public().encode(), signature })
    };
    // Strangers: a key under the token's serial that no KGC made, and the drone's own without its signature.
    let foreign = MasterSecret::generate(&mut rng);
    let theirs = Deployment::new(deployment.name().clone(), foreign.public());
    let secret = SecretValue::generate(&mut rng);
    let identity = &drone.public().identity;
    let partial = foreign.issue_partial_key(&theirs, identity, &secret.public(), &mut rng);
    let stranger = partial.verify(&theirs, identity, &secret).unwrap();
    let unsigned = EnrolDone { drone: drone.public().encode(), signature: vec![1; 64] };
    let peer = Peer(900);
    for message in [done(&stranger, &mut rng), Said::Done(unsigned)] {
        let (one, two) = (bench.commit(0, peer), bench.commit(1, peer));
        assert!(bench.say(0, Peer(901), &message).is_empty());
        assert!(matches!(bench.sign(0, peer, &[&one, &two]), Said::Share(_)), "a stranger ended it");
    }
    // The drone itself, from wherever it is.
    let (one, two) = (bench.commit(0, peer), bench.commit(1, peer));
    assert!(bench.say(0, Peer(901), &done(&drone, &mut rng)).is_empty());
    let Said::Other(Message::Refusal(refusal)) = bench.sign(0, peer, &[&one, &two]) else { panic!("signed") };
    assert_eq!(refusal.reason, RefusalReason::TokenSpent);
    // Durable, and repeated it is no news.
    let records = bench.world.kgc_records(0).len();
    bench.world.start_kgc(0);
    assert!(bench.say(0, Peer(901), &done(&drone, &mut rng)).is_empty());
    assert_eq!(bench.refused_commitment(0, peer), RefusalReason::TokenSpent);
    assert_eq!(bench.world.kgc_records(0).len(), records);
}

#[test]
fn a_package_that_does_not_hold_costs_the_commitment() {
    let mut bench = Bench::new(2);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    // Too few; without its own part; with another's in its place.
    let stolen = EnrolCommitment { kgc: 1, ..two.clone() };
    let stranger = EnrolCommitment { kgc: 60, ..two.clone() };
    let cases: [&[&EnrolCommitment]; 4] = [&[&one], &[&two], &[&stolen, &two], &[&one, &stranger]];
    for parts in cases {
        let fresh = bench.commit(0, Peer(1));
        let parts: Vec<_> = parts.iter().map(|part| if **part == one { &fresh } else { *part }).collect();
        let Said::Other(Message::Refusal(refusal)) = bench.sign(0, Peer(1), &parts) else {
            panic!("signed {parts:?}")
        };
        assert_eq!(refusal.reason, RefusalReason::Malformed);
        assert!(is_over(&bench.sign(0, Peer(1), &[&fresh, &two])));
    }
}

#[test]
fn nobody_else_uses_a_round_up() {
    let mut bench = Bench::new(3);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    assert!(is_over(&bench.sign(0, Peer(2), &[&one, &two])));
    assert!(matches!(bench.sign(0, Peer(1), &[&one, &two]), Said::Share(_)));
}

#[test]
fn nonces_end_after_a_minute_with_the_connection_and_with_the_process() {
    let mut bench = Bench::new(4);
    let two = bench.commit(1, Peer(1));
    let one = bench.commit(0, Peer(1));
    bench.world.skip(Duration::from_secs(61));
    bench.world.feed(Node::Kgc(0), Stimulus::Deadline);
    assert_eq!(bench.open(0), 0, "erased, also if nobody asks");
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));

    let one = bench.commit(0, Peer(1));
    bench.world.feed(Node::Kgc(0), Stimulus::Disconnected(Peer(1)));
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));

    let one = bench.commit(0, Peer(1));
    bench.world.start_kgc(0);
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
    let fresh = bench.commit(0, Peer(1));
    let two = bench.commit(1, Peer(1));
    assert!(matches!(bench.sign(0, Peer(1), &[&fresh, &two]), Said::Share(_)));
}

#[test]
fn nonces_do_not_outlive_a_machine_that_is_brought_back_with_its_memory() {
    let mut bench = Bench::new(6);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    bench.world.resume(Node::Kgc(0));
    assert_eq!(bench.open(0), 0, "erased: another copy may sign with them");
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
    let fresh = bench.commit(0, Peer(1));
    assert!(matches!(bench.sign(0, Peer(1), &[&fresh, &two]), Said::Share(_)));
}

#[test]
fn a_token_has_four_rounds_open_at_most_and_a_peer_one() {
    let mut bench = Bench::new(5);
    let two = bench.commit(1, Peer(1));
    let given: Vec<_> = (1..=6).map(|peer| bench.commit(0, Peer(peer))).collect();
    assert_eq!(bench.open(0), 4);
    let again = bench.commit(0, Peer(6));
    assert_eq!(bench.open(0), 4);
    for (peer, one) in (1..=6).zip(&given) {
        let signed = matches!(bench.sign(0, Peer(peer), &[one, &two]), Said::Share(_));
        // The oldest two are gone, and the last one was replaced.
        assert_eq!(signed, (3..=5).contains(&peer), "peer {peer}");
    }
    assert!(
        is_over(&bench.sign(0, Peer(6), &[&again, &two])),
        "tried with the wrong commitment, so it is spent"
    );
}

#[test]
fn a_share_that_is_replaced_ends_all_rounds() {
    let mut bench = Bench::new(6);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    let (same, other) = (bench.world.share(1), bench.world.share(2));
    let machine = bench.world.kgc_mut(0);
    assert!(machine.replace_share(other).is_err());
    machine.replace_share(same).unwrap();
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
}

#[test]
fn a_token_revoked_between_the_rounds_is_not_signed_for() {
    let mut bench = Bench::new(7);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    let token_id = EnrolmentRequest::<S>::decode(&bench.request).unwrap().statement().id;
    bench.world.feed(Node::Kgc(0), Stimulus::Connected(Peer(1), Route::Inbound));
    let revoke = quiver_enrolment::KgcCommand::RevokeTokens(vec![token_id]);
    bench.world.command::<Kgc<S>>(Node::Kgc(0), revoke);
    let Said::Other(Message::Refusal(refusal)) = bench.sign(0, Peer(1), &[&one, &two]) else {
        panic!("signed")
    };
    assert_eq!(refusal.reason, RefusalReason::TokenRevoked);
}
