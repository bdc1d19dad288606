//! Endpoints over media that lose, repeat, reorder and alter datagrams.

use std::time::Duration;

use proptest::prelude::*;
use quiver_link::{
    BoardEndpoint, BoardEvent, Destination, EndpointLimits, GatewayEndpoint, GatewayEvent, LinkError, Route,
    ToBoard, ToGateway, Via, Wants,
};

const MAX_MESSAGE: usize = 4096;
const UNIX: u64 = 1_700_000_000;

/// A source of chances, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// Faults of a medium, in percent.
#[derive(Clone, Copy, Debug)]
struct Faults {
    lose: u64,
    repeat: u64,
    alter: u64,
    /// Milliseconds that every datagram takes.
    delay: u64,
    /// Milliseconds that a datagram may take longer than another.
    jitter: u64,
}

const PERFECT: Faults = Faults { lose: 0, repeat: 0, alter: 0, delay: 2, jitter: 0 };

/// A board, its gateway, and the medium between them.
struct World {
    now: Duration,
    board: BoardEndpoint,
    gateway: GatewayEndpoint,
    /// Time of arrival, whether to the board, and the datagram.
    flying: Vec<(Duration, bool, Vec<u8>)>,
    faults: Faults,
    dice: Dice,
    board_events: Vec<BoardEvent>,
    gateway_events: Vec<GatewayEvent>,
}

impl World {
    fn new(limits: EndpointLimits, faults: Faults, seed: u64) -> Self {
        Self {
            now: Duration::ZERO,
            board: BoardEndpoint::new(limits, 7, Wants::new(Some("alpha"), true).unwrap()),
            gateway: GatewayEndpoint::new(limits, 1000),
            flying: Vec::new(),
            faults,
            dice: Dice(seed),
            board_events: Vec::new(),
            gateway_events: Vec::new(),
        }
    }

    fn put(&mut self, to_board: bool, mut datagram: Vec<u8>) {
        for _ in 0..1 + u64::from(self.dice.roll(100) < self.faults.repeat) {
            if self.dice.roll(100) < self.faults.lose {
                continue;
            }
            if self.dice.roll(100) < self.faults.alter {
                let place = usize::try_from(self.dice.roll(datagram.len() as u64)).unwrap();
                datagram[place] ^= 1 << self.dice.roll(8);
            }
            let delay = Duration::from_millis(self.faults.delay + self.dice.roll(self.faults.jitter + 1));
            self.flying.push((self.now + delay, to_board, datagram.clone()));
        }
    }

    /// Lets time pass until `end`.
    fn run(&mut self, end: Duration) {
        for _ in 0..2_000_000 {
            self.settle();
            let arrival = self.flying.iter().map(|(at, ..)| *at).min();
            let next = [arrival, self.board.timeout(), self.gateway.timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = next.max(self.now);
            while let Some(place) = self.flying.iter().position(|(at, ..)| *at <= self.now) {
                let (_, to_board, datagram) = self.flying.remove(place);
                if to_board {
                    self.board.handle_datagram(self.now, &datagram);
                } else {
                    self.gateway.handle_datagram(self.now, &datagram);
                }
                self.settle();
            }
            self.board.handle_timeout(self.now);
            self.gateway.handle_timeout(self.now);
        }
        panic!("the endpoints do not come to rest");
    }

    fn settle(&mut self) {
        self.board_events.extend(std::iter::from_fn(|| self.board.poll_event()));
        self.gateway_events.extend(std::iter::from_fn(|| self.gateway.poll_event()));
        while let Some(datagram) = self.board.poll_datagram(self.now) {
            self.put(false, datagram);
        }
        while let Some(datagram) = self.gateway.poll_datagram(self.now, UNIX) {
            self.put(true, datagram);
        }
    }

    fn begun(limits: EndpointLimits, faults: Faults, seed: u64) -> Self {
        let mut world = Self::new(limits, PERFECT, seed);
        world.run(Duration::from_secs(1));
        assert_eq!(world.board_events, [BoardEvent::Begun { unix_time: UNIX }]);
        assert!(matches!(&world.gateway_events[..], [GatewayEvent::Begun { wants, max_message: 4096 }]
            if wants.group() == Some("alpha") && wants.kgc));
        world.board_events.clear();
        world.gateway_events.clear();
        world.faults = faults;
        world
    }

    fn payloads_at_board(&self) -> Vec<Vec<u8>> {
        let received = |event: &BoardEvent| match event {
            BoardEvent::Received { from: 3, via: Via::Group, bytes } => Some(bytes.clone()),
            _ => None,
        };
        self.board_events.iter().filter_map(received).collect()
    }

    fn payloads_at_gateway(&self) -> Vec<Vec<u8>> {
        let received = |event: &GatewayEvent| match event {
            GatewayEvent::Transmit { to: Destination::Group, payload } => Some(payload.clone()),
            _ => None,
        };
        self.gateway_events.iter().filter_map(received).collect()
    }
}

fn payload(number: u32, len: usize) -> Vec<u8> {
    number.to_be_bytes().into_iter().cycle().take(len.max(4)).collect()
}

fn to_board(number: u32, len: usize) -> ToBoard {
    ToBoard::Received { from: 3, via: Via::Group, bytes: payload(number, len) }
}

fn to_gateway(number: u32, len: usize) -> ToGateway {
    ToGateway::Transmit { to: Destination::Group, payload: payload(number, len) }
}

/// Returns true if `some` are among `all`, in the order of `all`, each at most once.
fn in_order(some: &[Vec<u8>], all: &[Vec<u8>]) -> bool {
    let mut left = all.iter();
    some.iter().all(|one| left.any(|other| other == one))
}

#[test]
fn messages_of_every_length_arrive_over_either_medium() {
    for limits in [EndpointLimits::line(MAX_MESSAGE), EndpointLimits::radio(MAX_MESSAGE)] {
        let mut world = World::begun(limits, PERFECT, 1);
        let mut expected = Vec::new();
        for (number, len) in (0..).zip((4..300).chain([1023, 1024, 1025, 2048, 4000, 4087])) {
            world.gateway.send(&to_board(number, len)).unwrap();
            world.board.send(&to_gateway(number, len)).unwrap();
            expected.push(payload(number, len));
            world.run(world.now + Duration::from_secs(1));
        }
        assert_eq!(world.payloads_at_board(), expected);
        assert_eq!(world.payloads_at_gateway(), expected);
        let (board, gateway) = (world.board.counters(), world.gateway.counters());
        assert_eq!((board.repeated, gateway.repeated), (0, 0));
        assert_eq!((board.sent, gateway.sent), (gateway.received, board.received));
    }
}

#[test]
fn message_longer_than_the_board_takes_is_refused_and_counted() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    let refused = world.gateway.send(&to_board(0, 4088));
    assert_eq!(refused, Err(LinkError::MessageTooLong { len: 4097, max: 4096 }));
    assert_eq!(world.gateway.counters().too_long, 1);
}

#[test]
fn nothing_is_sent_without_a_session() {
    let mut world = World::new(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    assert_eq!(world.board.send(&to_gateway(0, 9)), Err(LinkError::NoSession));
    assert_eq!(world.gateway.send(&to_board(0, 9)), Err(LinkError::NoSession));
}

#[test]
fn message_nobody_answers_is_given_up_and_the_next_one_goes() {
    let mut world = World::begun(EndpointLimits::radio(MAX_MESSAGE), PERFECT, 1);
    world.gateway.send(&to_board(1, 500)).unwrap();
    world.faults.lose = 100;
    // Pings would reveal a dead line; here it is only silent for shorter than that.
    world.run(world.now + Duration::from_secs(50));
    world.faults.lose = 0;
    assert_eq!(world.gateway.counters().given_up, 1);
    world.gateway.send(&to_board(2, 500)).unwrap();
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(world.payloads_at_board(), [payload(2, 500)]);
}

#[test]
fn board_that_answers_nothing_for_half_a_minute_gets_everything() {
    for limits in [EndpointLimits::line(MAX_MESSAGE), EndpointLimits::radio(MAX_MESSAGE)] {
        let mut world = World::begun(limits, PERFECT, 1);
        world.gateway.send(&ToBoard::Connected { peer: 3, route: Route::Leader }).unwrap();
        (0..3).for_each(|number| world.gateway.send(&to_board(number, 500)).unwrap());
        // It computes: datagrams for it wait.
        world.faults.delay = 30_000;
        world.settle();
        world.faults = PERFECT;
        world.faults.lose = 100;
        world.run(world.now + Duration::from_secs(29));
        world.faults = PERFECT;
        world.run(world.now + Duration::from_secs(20));
        assert_eq!(world.payloads_at_board(), (0..3).map(|n| payload(n, 500)).collect::<Vec<_>>());
        let counters = world.gateway.counters();
        assert_eq!((counters.given_up, counters.sessions_lost), (0, 0));
    }
}

#[test]
fn over_a_slow_medium_what_is_repeated_in_vain_is_little_once_it_is_known_to_be_slow() {
    let slow = Faults { delay: 900, ..PERFECT };
    let mut world = World::begun(EndpointLimits::radio(MAX_MESSAGE), slow, 1);
    let mut repeated = Vec::new();
    for round in 0..10 {
        world.gateway.send(&to_board(round, 500)).unwrap();
        world.board.send(&to_gateway(round, 500)).unwrap();
        world.run(world.now + Duration::from_secs(30));
        repeated.push(world.gateway.counters().repeated + world.board.counters().repeated);
    }
    assert!(repeated[0] > 0, "what nobody can know beforehand: {repeated:?}");
    assert_eq!(repeated[3], repeated[9], "{repeated:?}");
    assert_eq!(world.payloads_at_board().len() + world.payloads_at_gateway().len(), 20);
}

#[test]
fn session_ends_if_the_board_cannot_be_told_who_is_connected() {
    let mut world = World::begun(EndpointLimits::radio(MAX_MESSAGE), PERFECT, 1);
    world.gateway.send(&ToBoard::Connected { peer: 3, route: Route::Leader }).unwrap();
    world.faults.lose = 100;
    world.run(world.now + Duration::from_secs(50));
    assert_eq!(world.gateway_events, [GatewayEvent::Lost]);
    world.faults.lose = 0;
    world.run(world.now + Duration::from_secs(20));
    world.board_events.retain(|event| !matches!(event, BoardEvent::Time { .. }));
    assert_eq!(world.board_events, [BoardEvent::Lost, BoardEvent::Begun { unix_time: UNIX }]);
}

#[test]
fn silence_ends_the_session_on_both_sides_and_a_new_one_begins_after_it() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.faults.lose = 100;
    world.run(world.now + Duration::from_secs(66));
    assert_eq!(world.board_events, [BoardEvent::Lost]);
    assert_eq!(world.gateway_events, [GatewayEvent::Lost]);
    world.faults.lose = 0;
    world.run(world.now + Duration::from_secs(10));
    assert!(world.board.has_session() && world.gateway.has_session());
}

#[test]
fn quiet_session_lives_on_pings_and_tells_the_time() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.run(world.now + Duration::from_secs(3600));
    assert!(world.gateway_events.is_empty());
    assert_eq!(world.board_events.len(), 360);
    assert!(world.board_events.iter().all(|event| *event == BoardEvent::Time { unix_time: UNIX }));
}

#[test]
fn reset_of_the_board_is_noticed_by_the_gateway() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.gateway.send(&to_board(1, 4000)).unwrap();
    let limits = EndpointLimits::line(MAX_MESSAGE);
    world.board = BoardEndpoint::new(limits, 99, Wants::new(None, false).unwrap());
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(world.board_events, [BoardEvent::Begun { unix_time: UNIX }], "nothing from before");
    assert!(matches!(&world.gateway_events[..], [GatewayEvent::Lost, GatewayEvent::Begun { wants, .. }]
        if wants.group().is_none() && !wants.kgc));
}

#[test]
fn reset_of_the_gateway_is_noticed_by_the_board_at_its_next_word() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.gateway = GatewayEndpoint::new(EndpointLimits::line(MAX_MESSAGE), 5);
    world.board.send(&to_gateway(1, 10)).unwrap();
    world.run(world.now + Duration::from_secs(1));
    assert_eq!(world.board_events, [BoardEvent::Lost, BoardEvent::Begun { unix_time: UNIX }]);
    assert!(matches!(world.gateway_events[..], [GatewayEvent::Begun { .. }]), "nothing from before");
}

#[test]
fn board_that_goes_without_what_it_wants_begins_another_session_less_and_less_often() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.board.set_served(world.now, false);
    let mut begun = world.now;
    for minutes in [3, 6, 12, 24, 24] {
        let end = begun + Duration::from_secs(60 * minutes);
        world.run(end - Duration::from_millis(1));
        assert!(world.gateway_events.is_empty(), "{minutes} minutes are not over");
        assert!(world.board_events.iter().all(|event| matches!(event, BoardEvent::Time { .. })));
        world.board_events.clear();
        // Two ways of 2 ms each until it is welcomed.
        begun = end + Duration::from_millis(4);
        world.run(begun);
        assert_eq!(world.board_events, [BoardEvent::Lost, BoardEvent::Begun { unix_time: UNIX }]);
        assert!(matches!(world.gateway_events[..], [GatewayEvent::Lost, GatewayEvent::Begun { .. }]));
        world.board_events.clear();
        world.gateway_events.clear();
        // Saying the same again changes nothing.
        world.board.set_served(world.now, false);
    }
    world.board.set_served(world.now, true);
    world.run(world.now + Duration::from_secs(3600));
    assert!(world.gateway_events.is_empty(), "a board that has what it wants stays");
    world.board.set_served(world.now, false);
    world.run(world.now + Duration::from_secs(181));
    assert_eq!(world.gateway_events.len(), 2, "and is no more patient than at first");
}

#[test]
fn change_of_wants_is_told_and_repeated_until_understood() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.faults.lose = 100;
    let fewer = Wants::new(Some("alpha"), false).unwrap();
    world.board.set_wants(fewer.clone());
    world.run(world.now + Duration::from_secs(8));
    world.faults.lose = 0;
    world.run(world.now + Duration::from_secs(20));
    assert_eq!(world.gateway_events, [GatewayEvent::Wants(fewer)]);
    assert!(world.board_events.iter().all(|event| matches!(event, BoardEvent::Time { .. })));
}

#[test]
fn waiting_messages_are_bounded_and_the_oldest_goes_first() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    (0..100).for_each(|number| world.board.send(&to_gateway(number, 100)).unwrap());
    assert_eq!(world.board.counters().dropped, 100 - 16);
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(world.payloads_at_gateway(), (84..100).map(|n| payload(n, 100)).collect::<Vec<_>>());
    (0..10).for_each(|number| world.board.send(&to_gateway(number, 4000)).unwrap());
    assert_eq!(world.board.counters().dropped, 84 + 8, "two of them fill the memory");
}

#[test]
fn events_that_nobody_takes_stop_the_sender() {
    let limits = EndpointLimits { queued: 100, queued_bytes: 1 << 16, ..EndpointLimits::line(MAX_MESSAGE) };
    let mut world = World::begun(limits, PERFECT, 1);
    (0..40).for_each(|number| world.board.send(&to_gateway(number, 10)).unwrap());
    for _ in 0..1000 {
        while let Some(datagram) = world.board.poll_datagram(world.now) {
            world.gateway.handle_datagram(world.now, &datagram);
        }
        while let Some(datagram) = world.gateway.poll_datagram(world.now, UNIX) {
            world.board.handle_datagram(world.now, &datagram);
        }
    }
    assert_eq!(world.gateway.counters().received, 16);
    world.run(world.now + Duration::from_secs(20));
    assert_eq!(world.payloads_at_gateway(), (0..40).map(|n| payload(n, 10)).collect::<Vec<_>>());
}

#[test]
fn datagrams_of_a_session_unknown_are_answered_with_lost() {
    let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
    world.board.send(&to_gateway(1, 10)).unwrap();
    let fragment = world.board.poll_datagram(world.now).unwrap();
    let lost = quiver_link::refusal(&fragment).unwrap();
    world.board.handle_datagram(world.now, &lost);
    assert_eq!(world.board.poll_event(), Some(BoardEvent::Lost));
    let hello = world.board.poll_datagram(world.now).unwrap();
    assert_eq!(quiver_link::refusal(&hello), None);
    assert_eq!(quiver_link::refusal(&lost), None, "two gateways do not talk to each other");
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..40u64, 0..40u64, 0..20u64, 0..400u64).prop_map(|(lose, repeat, alter, jitter)| Faults {
        lose,
        repeat,
        alter,
        delay: 2,
        jitter,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Messages arrive on any medium as they were sent, once, in order; and once the medium is good again,
    /// all arrive.
    #[test]
    fn messages_arrive_whole_in_order_and_at_most_once(
        faults in faults(), seed: u64, radio: bool, lengths in prop::collection::vec(4..3000usize, 1..12),
    ) {
        let limits = if radio { EndpointLimits::radio(MAX_MESSAGE) } else { EndpointLimits::line(MAX_MESSAGE) };
        let limits = EndpointLimits { queued_bytes: 1 << 20, ..limits };
        let mut world = World::begun(limits, faults, seed);
        let mut said = Vec::new();
        for (number, len) in (0..).zip(&lengths) {
            let _ = world.gateway.send(&to_board(number, *len));
            let _ = world.board.send(&to_gateway(number, *len));
            said.push(payload(number, *len));
            world.run(world.now + Duration::from_millis(1 + seed % 1500));
        }
        world.run(world.now + Duration::from_secs(300));
        prop_assert!(in_order(&world.payloads_at_board(), &said));
        prop_assert!(in_order(&world.payloads_at_gateway(), &said));

        world.faults = PERFECT;
        world.run(world.now + Duration::from_secs(120));
        prop_assert!(world.board.has_session() && world.gateway.has_session());
        world.board_events.clear();
        world.gateway_events.clear();
        world.gateway.send(&to_board(1000, 2000)).unwrap();
        world.board.send(&to_gateway(1000, 2000)).unwrap();
        world.run(world.now + Duration::from_secs(10));
        prop_assert_eq!(world.payloads_at_board(), [payload(1000, 2000)]);
        prop_assert_eq!(world.payloads_at_gateway(), [payload(1000, 2000)]);
    }

    /// Losses alone are made good, unless there are very many.
    #[test]
    fn moderate_losses_cost_no_message(seed: u64, radio: bool) {
        let limits = if radio { EndpointLimits::radio(MAX_MESSAGE) } else { EndpointLimits::line(MAX_MESSAGE) };
        let limits = EndpointLimits { queued_bytes: 1 << 20, ..limits };
        let mut world = World::begun(limits, Faults { lose: 10, repeat: 10, alter: 0, delay: 2, jitter: 30 }, seed);
        (0..10).for_each(|number| world.gateway.send(&to_board(number, 1500)).unwrap());
        (0..10).for_each(|number| world.board.send(&to_gateway(number, 1500)).unwrap());
        world.run(world.now + Duration::from_secs(200));
        let said: Vec<_> = (0..10).map(|number| payload(number, 1500)).collect();
        prop_assert_eq!(&world.payloads_at_board(), &said);
        prop_assert_eq!(&world.payloads_at_gateway(), &said);
    }

    /// Anything at all may come in between.
    #[test]
    fn any_datagrams_are_survived(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..64)) {
        let mut world = World::begun(EndpointLimits::line(MAX_MESSAGE), PERFECT, 1);
        for datagram in datagrams {
            world.board.handle_datagram(world.now, &datagram);
            world.gateway.handle_datagram(world.now, &datagram);
            world.run(world.now + Duration::from_millis(10));
        }
        world.run(world.now + Duration::from_secs(60));
        world.board_events.clear();
        world.gateway.send(&to_board(1, 3000)).unwrap();
        world.run(world.now + Duration::from_secs(10));
        prop_assert_eq!(world.payloads_at_board(), [payload(1, 3000)]);
    }
}
