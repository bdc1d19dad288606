//! Signing rounds at one KGC: few, short, for one share each.

use std::time::Duration;

use quiver_ainq::{EnrolmentRequest, PendingEnrolment, Ristretto255};
use quiver_message::{EnrolCommitment, EnrolHello, EnrolRequest, EnrolSigning, Message};
use quiver_role::{Destination, Input, Machine, Output, Peer, Reason, Route, Via};

use crate::world::World;

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

    /// Says something to the KGC at `place`; what it answers.
    fn say(&mut self, place: usize, from: Peer, message: &Message<S>) -> Vec<Message<S>> {
        let bytes = message.encode(&self.world.deployment);
        let now = self.world.now();
        let seat = &mut self.world.seats[place];
        let machine = seat.machine.as_mut().unwrap();
        machine.handle_input(
            now,
            Input::Received { from, via: Via::Peer, bytes: &bytes },
            &mut self.world.rng,
        );
        let mut answers = Vec::new();
        loop {
            match machine.poll_output() {
                Output::Timeout(_) => return answers,
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    assert_eq!(to, from);
                    answers.push(Message::decode(&self.world.deployment, &payload).unwrap());
                }
                Output::Persist(record) => seat.records.push(record),
                _ => {}
            }
        }
    }

    /// From hello to commitment.
    fn commit(&mut self, place: usize, from: Peer) -> EnrolCommitment {
        let hello = Message::EnrolHello(EnrolHello { nonce: [3; 16] });
        let [Message::EnrolCookie(cookie)] = &self.say(place, from, &hello)[..] else { panic!("no cookie") };
        let request = EnrolRequest { nonce: [3; 16], cookie: cookie.cookie, request: self.request.clone() };
        let answers = self.say(place, from, &Message::EnrolRequest(request));
        let [Message::EnrolCommitment(commitment)] = &answers[..] else { panic!("{answers:?}") };
        commitment.clone()
    }

    fn sign(&mut self, place: usize, from: Peer, parts: &[&EnrolCommitment]) -> Message<S> {
        let parts = parts.iter().map(|part| (part.kgc, part.commitment.clone())).collect();
        let signing = EnrolSigning { request_digest: self.digest, parts };
        let mut answers = self.say(place, from, &Message::EnrolSigning(signing));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    fn open(&self, place: usize) -> usize {
        self.world.seats[place].machine.as_ref().unwrap().open_rounds()
    }
}

fn is_over(message: &Message<S>) -> bool {
    matches!(message, Message::Refusal(refusal) if refusal.reason == Reason::RoundOver)
}

#[test]
fn a_commitment_is_good_for_one_share() {
    let mut bench = Bench::new(1);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    assert!(matches!(bench.sign(0, Peer(1), &[&one, &two]), Message::EnrolShare(_)));
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
    assert_eq!(bench.open(0), 0);
}

#[test]
fn a_package_that_does_not_hold_costs_the_commitment() {
    let mut bench = Bench::new(2);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    // Too few; without its own part; with somebody else's in its place.
    let stolen = EnrolCommitment { kgc: 1, ..two.clone() };
    let stranger = EnrolCommitment { kgc: 60, ..two.clone() };
    let cases: [&[&EnrolCommitment]; 4] = [&[&one], &[&two], &[&stolen, &two], &[&one, &stranger]];
    for parts in cases {
        let fresh = bench.commit(0, Peer(1));
        let parts: Vec<_> = parts.iter().map(|part| if **part == one { &fresh } else { *part }).collect();
        let Message::Refusal(refusal) = bench.sign(0, Peer(1), &parts) else { panic!("signed {parts:?}") };
        assert_eq!(refusal.reason, Reason::Malformed);
        assert!(is_over(&bench.sign(0, Peer(1), &[&fresh, &two])));
    }
}

#[test]
fn nobody_else_uses_a_round_up() {
    let mut bench = Bench::new(3);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    assert!(is_over(&bench.sign(0, Peer(2), &[&one, &two])));
    assert!(matches!(bench.sign(0, Peer(1), &[&one, &two]), Message::EnrolShare(_)));
}

#[test]
fn nonces_end_after_a_minute_with_the_connection_and_with_the_process() {
    let mut bench = Bench::new(4);
    let two = bench.commit(1, Peer(1));
    let one = bench.commit(0, Peer(1));
    bench.world.clock += Duration::from_secs(61);
    let now = bench.world.now();
    let machine = bench.world.seats[0].machine.as_mut().unwrap();
    machine.handle_input(now, Input::Timeout, &mut bench.world.rng);
    assert_eq!(bench.open(0), 0, "erased, also if nobody asks");
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));

    let one = bench.commit(0, Peer(1));
    let machine = bench.world.seats[0].machine.as_mut().unwrap();
    machine.handle_input(now, Input::Disconnected { peer: Peer(1) }, &mut bench.world.rng);
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));

    let one = bench.commit(0, Peer(1));
    bench.world.start_kgc(0);
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
    let fresh = bench.commit(0, Peer(1));
    let two = bench.commit(1, Peer(1));
    assert!(matches!(bench.sign(0, Peer(1), &[&fresh, &two]), Message::EnrolShare(_)));
}

#[test]
fn nonces_do_not_outlive_a_machine_that_is_brought_back_with_its_memory() {
    let mut bench = Bench::new(6);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    let now = bench.world.now();
    let machine = bench.world.seats[0].machine.as_mut().unwrap();
    machine.handle_input(now, Input::Resumed, &mut bench.world.rng);
    assert_eq!(bench.open(0), 0, "erased: another copy may sign with them");
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
    let fresh = bench.commit(0, Peer(1));
    assert!(matches!(bench.sign(0, Peer(1), &[&fresh, &two]), Message::EnrolShare(_)));
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
        let signed = matches!(bench.sign(0, Peer(peer), &[one, &two]), Message::EnrolShare(_));
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
    let machine = bench.world.seats[0].machine.as_mut().unwrap();
    assert!(machine.replace_share(other).is_err());
    machine.replace_share(same).unwrap();
    assert!(is_over(&bench.sign(0, Peer(1), &[&one, &two])));
}

#[test]
fn a_token_revoked_between_the_rounds_is_not_signed_for() {
    let mut bench = Bench::new(7);
    let (one, two) = (bench.commit(0, Peer(1)), bench.commit(1, Peer(1)));
    let token_id = EnrolmentRequest::<S>::decode(&bench.request).unwrap().statement().id;
    let now = bench.world.now();
    let machine = bench.world.seats[0].machine.as_mut().unwrap();
    machine.handle_input(
        now,
        Input::Connected { peer: Peer(1), route: Route::Inbound },
        &mut bench.world.rng,
    );
    let revoke = quiver_role::KgcCommand::RevokeTokens(vec![token_id]);
    machine.handle_input(now, Input::Command(revoke), &mut bench.world.rng);
    let Message::Refusal(refusal) = bench.sign(0, Peer(1), &[&one, &two]) else { panic!("signed") };
    assert_eq!(refusal.reason, Reason::TokenRevoked);
}
