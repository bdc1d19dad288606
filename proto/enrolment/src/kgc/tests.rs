//! Revocation lists of a KGC over years, after a backup was put back, and before boards; leaders' ordinals.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    BOARD_REVOCATION_LIST_LEN, Deployment, Identity, MAX_REVOCATION_LIST_LEN, MasterSecret, Name,
    REVOCATION_MARGIN, RevocationStatement, Revoked, Ristretto255, Role,
};
use quiver_crypto::Secret;
use quiver_machine::Via;
use quiver_message::{Message, RevocationQuery};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::list_recovery::PATIENCE;
use super::*;

type S = Ristretto255;

const START: u64 = 1_700_000_000;
const VALIDITY: u64 = 7 * 86_400;
const YEAR: u64 = 365 * 86_400;

struct Bench {
    deployment: Deployment<S>,
    kgc: Kgc<S>,
    records: Vec<KgcRecord>,
    events: Vec<KgcEvent>,
    sent: Vec<(Peer, Vec<u8>)>,
    now: Now,
    rng: ChaCha20Rng,
}

fn kgc(records: &[KgcRecord]) -> (Deployment<S>, Kgc<S>) {
    let master = MasterSecret::<S>::generate(&mut ChaCha20Rng::seed_from_u64(1));
    let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
    let config = KgcConfig {
        revocation_validity: VALIDITY,
        ..KgcConfig::single(deployment.clone(), master, Vec::new(), Secret::new([1; 32]))
    };
    (deployment, Kgc::new(config, records.to_vec()).unwrap())
}

impl Bench {
    fn new() -> Self {
        Self::restored(&[], START)
    }

    /// A KGC that starts from these records at that time.
    fn restored(records: &[KgcRecord], unix: u64) -> Self {
        let (deployment, kgc) = kgc(records);
        let (records, now) = (records.to_vec(), Now { monotonic: Duration::from_secs(5000), unix });
        let rng = ChaCha20Rng::seed_from_u64(2);
        let mut bench = Self { deployment, kgc, records, events: Vec::new(), sent: Vec::new(), now, rng };
        bench.input(Input::Timeout);
        bench
    }

    fn input(&mut self, input: Input<'_, KgcCommand>) {
        self.kgc.handle_input(self.now, input, &mut self.rng);
        loop {
            match self.kgc.poll_output() {
                Output::Timeout(_) => return,
                Output::Persist(record) => self.records.push(record),
                Output::Transmit { to: quiver_machine::Destination::Peer(peer), payload } => {
                    self.sent.push((peer, payload.to_vec()));
                }
                Output::Event(event) => self.events.push(event),
                _ => {}
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now.monotonic += time;
        self.now.unix += time.as_secs();
        self.input(Input::Timeout);
    }

    fn revoke(&mut self, drones: impl IntoIterator<Item = Revoked>) {
        self.input(Input::Command(KgcCommand::RevokeDrones(drones.into_iter().collect())));
    }

    fn receive(&mut self, from: Peer, message: &Message<S>) {
        let bytes = message.encode(&self.deployment);
        self.input(Input::Received { from, bytes: &bytes, via: Via::Peer });
    }

    fn query(&mut self, from: Peer, number: u64, max_len: u32) {
        self.receive(from, &Message::RevocationQuery(RevocationQuery { number, max_len }));
    }

    fn tell(&mut self, from: Peer, list: Vec<u8>) {
        self.receive(from, &Message::RevocationList(quiver_message::RevocationList { list }));
    }

    fn list(&self) -> RevocationStatement {
        self.kgc.revocations.list().clone()
    }

    fn signed(&self) -> Vec<u8> {
        self.kgc.signed_revocations().unwrap().to_vec()
    }

    fn last_sent(&self) -> Message<S> {
        Message::decode(&self.deployment, &self.sent.last().unwrap().1).unwrap()
    }
}

fn serial(n: u64) -> [u8; 16] {
    let mut serial = [7; 16];
    serial[..8].copy_from_slice(&n.to_be_bytes());
    serial
}

fn edge(n: u64, not_after: u64) -> Revoked {
    Revoked { serial: serial(n), not_after, leader: false }
}

#[test]
fn sixty_thousand_revocations_over_years_of_rotation_fit_since_those_whose_time_is_over_leave() {
    let mut bench = Bench::new();
    for year in 0..6_u64 {
        let ends = bench.now.unix + YEAR;
        bench.revoke((0..10_000).map(|n| edge(year * 10_000 + n, ends)));
        let list = bench.list();
        assert!((0..10_000).all(|n| list.names_serial(&serial(year * 10_000 + n))), "year {year}");
        assert!(bench.kgc.revocation_usage().len < MAX_REVOCATION_LIST_LEN / 2);
        bench.now.unix += YEAR;
        bench.now.monotonic += Duration::from_secs(YEAR);
    }
    assert!(!bench.events.iter().any(|event| matches!(event, KgcEvent::RevocationFailed(_))));
    // Out of the list a day after its end, and not before.
    let mut bench = Bench::new();
    bench.revoke([edge(1, START + 100), Revoked::unknown(serial(2))]);
    bench.now.unix = START + 100 + REVOCATION_MARGIN;
    bench.revoke([edge(3, u64::MAX)]);
    assert!([1, 2, 3].iter().all(|n| bench.list().names_serial(&serial(*n))));
    bench.now.unix += 1;
    bench.revoke([edge(4, u64::MAX)]);
    assert!(!bench.list().names_serial(&serial(1)));
    assert!([2, 3, 4].iter().all(|n| bench.list().names_serial(&serial(*n))));
}

#[test]
fn list_of_four_fifths_alarms_and_one_that_is_full_says_so_and_is_renewed_all_the_same() {
    let mut bench = Bench::new();
    bench.revoke((0..33_000).map(|n| edge(n, u64::MAX)));
    let fills = |event: &KgcEvent| matches!(event, KgcEvent::RevocationListFills { .. });
    assert!(!bench.events.iter().any(fills));
    bench.revoke((33_000..34_000).map(|n| edge(n, u64::MAX)));
    assert!(bench.events.iter().any(|event| matches!(event,
        KgcEvent::RevocationListFills { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN, len } if *len > 800_000)));
    let held = bench.list();
    bench.revoke((34_000..44_000).map(|n| edge(n, u64::MAX)));
    let too_long = Error::TooLong { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN };
    assert_eq!(bench.events.last(), Some(&KgcEvent::RevocationFailed(too_long)));
    assert_eq!(bench.list(), held);
    bench.pass(Duration::from_secs(VALIDITY * 3 / 4 + 1));
    assert!(bench.list().issued > held.issued && bench.list().revoked == held.revoked);

    let mut bench = Bench::new();
    bench.revoke((0..280).map(|n| Revoked { leader: true, ..edge(n, u64::MAX) }));
    let for_boards = |event: &KgcEvent| {
        matches!(event, KgcEvent::RevocationListFills { limit: BOARD_REVOCATION_LIST_LEN, .. })
    };
    assert!(bench.events.iter().any(for_boards));
}

#[test]
fn board_learns_of_a_revoked_leader_among_five_thousand_revoked_edges() {
    let mut bench = Bench::new();
    bench.query(Peer(1), 0, BOARD_REVOCATION_LIST_LEN as u32);
    bench.query(Peer(2), 0, 0);
    let leader = Revoked { leader: true, ..edge(9_999, u64::MAX) };
    bench.revoke((0..5_000).map(|n| edge(n, u64::MAX)).chain([leader]));
    // Both are sent the list, each the part that it takes.
    let told = |peer| bench.sent.iter().rev().find(|(to, _)| *to == peer).map(|(_, bytes)| bytes.clone());
    let (board, host) = (told(Peer(1)).unwrap(), told(Peer(2)).unwrap());
    assert!(board.len() < 1024 && host.len() > 120_000, "{} and {} bytes", board.len(), host.len());
    let list = |bytes: &[u8]| match Message::<S>::decode(&bench.deployment, bytes) {
        Ok(Message::RevocationList(list)) => list.list,
        other => panic!("{other:?}"),
    };
    let mut held = Revocations::<S>::new();
    held.limit(BOARD_REVOCATION_LIST_LEN as u32);
    assert_eq!(held.offer(&bench.deployment, &list(&board)), Ok(true));
    assert!(held.list().names_serial(&leader.serial) && held.number() == bench.list().number);
    // It hands its list on to peers that take it, and to no other.
    assert!(held.answer(&RevocationQuery { number: 0, max_len: 8192 }).is_some());
    assert!(held.answer(&RevocationQuery { number: 0, max_len: 0 }).is_none());
    // A holder of whole lists does not accept fewer revocations by a newer list without its edges.
    let mut whole = Revocations::<S>::new();
    assert_eq!(whole.offer(&bench.deployment, &list(&board)), Ok(false));
    assert_eq!(whole.offer(&bench.deployment, &list(&host)), Ok(true));
    assert!(whole.list().names_serial(&serial(4_999)));
}

#[test]
fn a_new_list_costs_bounded_bytes_however_many_strangers_wait_for_it_and_goes_first_to_whoever_came_first() {
    let mut bench = Bench::new();
    bench.revoke((0..40_000).map(|n| edge(n, START + YEAR)));
    let length = bench.signed().len();
    assert!(length > 900_000);
    for peer in 0..100 {
        bench.query(Peer(peer), bench.list().number, 0);
    }
    bench.sent.clear();
    bench.revoke([edge(50_000, START + YEAR)]);
    let told: Vec<_> = bench.sent.iter().map(|(peer, _)| peer.0).collect();
    assert!(told.len() >= 30 && told.iter().copied().eq(0..told.len() as u64), "{told:?}");
    let bytes: usize = bench.sent.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= (32 << 20) + 100 * 64, "{bytes} bytes");
    // A drone that was not told asks.
    bench.query(Peer(99), bench.list().number - 1, 0);
    assert_eq!(bench.sent.last().map(|(peer, _)| *peer), Some(Peer(99)));
}

#[test]
fn numbers_have_a_floor_in_time() {
    let mut bench = Bench::new();
    bench.revoke([edge(1, u64::MAX)]);
    assert_eq!(bench.list().number, START);
    bench.revoke([edge(2, u64::MAX)]);
    assert_eq!(bench.list().number, START + 1);
    bench.now.unix += 1000;
    bench.revoke([edge(3, u64::MAX)]);
    assert_eq!(bench.list().number, START + 1000);
}

#[test]
fn kgc_put_back_from_a_backup_adopts_the_list_that_a_peer_holds_and_signs_none_before() {
    let mut bench = Bench::new();
    bench.revoke([edge(1, u64::MAX)]);
    let backup = bench.records.clone();
    bench.now.unix += 3600;
    bench.revoke([edge(2, u64::MAX)]);
    let (newer, lost) = (bench.signed(), bench.list());

    let mut bench = Bench::restored(&backup, START + 7200);
    assert!(!bench.list().names_serial(&serial(2)));
    bench.query(Peer(4), lost.number, 0);
    assert!(matches!(bench.events.last(), Some(KgcEvent::RevocationListClaimed { peer: Peer(4), .. })));
    assert!(matches!(bench.last_sent(), Message::RevocationQuery(query) if query.max_len == 0));
    // The operator's new revocations wait meanwhile, and are not lost.
    bench.revoke([edge(3, u64::MAX)]);
    assert!(matches!(bench.events.last(), Some(KgcEvent::RevocationDeferred { .. })));
    assert_eq!(bench.kgc.revocation_number(), START);
    assert!(bench.kgc.awaits_revocation(&serial(3)) && !bench.kgc.awaits_revocation(&serial(2)));
    bench.tell(Peer(4), newer);
    assert!(!bench.kgc.awaits_revocation(&serial(3)));
    assert!(bench.events.contains(&KgcEvent::RevocationListAdopted { number: lost.number }));
    let list = bench.list();
    assert!([1, 2, 3].iter().all(|n| list.names_serial(&serial(*n))) && list.number > lost.number);
    // And it stays so.
    let again = Bench::restored(&bench.records, bench.now.unix);
    assert_eq!(again.list(), list);
}

#[test]
fn kgc_whose_list_is_due_as_it_starts_waits_for_a_newer_one() {
    let mut bench = Bench::new();
    bench.revoke([edge(1, u64::MAX)]);
    let backup = bench.records.clone();
    bench.now.unix += VALIDITY;
    bench.revoke([edge(2, u64::MAX)]);
    let (newer, lost) = (bench.signed(), bench.list());
    let mut bench = Bench::restored(&backup, START + VALIDITY + 100);
    assert_eq!(bench.kgc.revocation_number(), START, "not renewed before anybody could ask");
    bench.query(Peer(4), lost.number, 0);
    bench.tell(Peer(4), newer);
    assert_eq!(bench.list(), lost);
    // If no peer has one, it is renewed.
    let mut bench = Bench::restored(&backup, START + VALIDITY + 100);
    bench.pass(PATIENCE);
    assert!(bench.kgc.revocation_number() > START && !bench.list().names_serial(&serial(2)));
}

#[test]
fn forged_high_number_stops_revocation_for_a_minute_in_an_hour_at_most() {
    let mut bench = Bench::new();
    bench.revoke([edge(1, u64::MAX)]);
    let held = bench.list();
    bench.query(Peer(4), u64::MAX, 0);
    bench.revoke([edge(2, u64::MAX)]);
    assert_eq!(bench.list(), held);
    // A list that is not ours is none, and one that was not asked for is not looked at.
    let stranger = MasterSecret::<S>::generate(&mut bench.rng);
    let list = RevocationStatement { number: u64::MAX, ..held };
    let forged = stranger.sign_revocations(&bench.deployment, list, &mut bench.rng).unwrap().encode();
    bench.tell(Peer(4), forged.clone());
    let blamed = |offence: &Offence| KgcEvent::Blamed { peer: Peer(4), offence: offence.clone() };
    assert_eq!(bench.events.last(), Some(&blamed(&Error::InvalidSignature.into())));
    bench.tell(Peer(4), forged);
    assert_eq!(bench.events.last(), Some(&blamed(&Offence::OutOfPlace("message to a KGC"))));
    bench.pass(PATIENCE);
    assert!(bench.list().names_serial(&serial(2)));
    // The next claims stop nothing.
    for peer in 5..50 {
        bench.query(Peer(peer), u64::MAX, 0);
        bench.revoke([edge(peer, u64::MAX)]);
        assert!(bench.list().names_serial(&serial(peer)));
    }
    // One peer is asked once in a minute.
    let queries = bench.sent.len();
    (0..100).for_each(|_| bench.query(Peer(49), u64::MAX, 0));
    assert_eq!(bench.sent.len(), queries);
}

#[test]
fn kgc_says_when_its_newest_list_was_signed() {
    let mut bench = Bench::new();
    assert_eq!(bench.kgc.revocations_issued(), None);
    bench.revoke([Revoked::unknown([1; 16])]);
    assert_eq!(bench.kgc.revocations_issued(), Some(START));
    bench.pass(Duration::from_secs(60));
    bench.revoke([Revoked::unknown([2; 16])]);
    assert_eq!(bench.kgc.revocations_issued(), Some(START + 60));
}

fn leader_issued(n: u64, group: &str, ordinal: u16, not_after: u64) -> KgcRecord {
    let name = |text: &str| Name::new(text).unwrap();
    let identity = Identity {
        serial: serial(n),
        name: name(&alloc::format!("leader-{n}")),
        role: Role::Leader { group: name(group), ordinal },
        groups: Vec::new(),
        not_after,
    };
    KgcRecord::Issued {
        token_id: serial(n),
        name: identity.name.as_str().into(),
        identity: identity.encode(),
        handle: [0; 32],
        pin: [0; 32],
        request: [0; 32],
        reply: Vec::new(),
        at: START,
    }
}

#[test]
fn ordinal_is_held_by_one_leader_of_a_group_until_it_is_revoked_or_has_ended() {
    let mut registry = Registry::default();
    registry.apply(&leader_issued(1, "alpha", 7, START + 100));
    let role = |group: &str, ordinal| Role::Leader { group: Name::new(group).unwrap(), ordinal };
    let taken = |registry: &Registry, group, ordinal, n, now| {
        registry.ordinal_is_taken(&role(group, ordinal), &serial(n), now)
    };
    assert!(taken(&registry, "alpha", 7, 2, START));
    // Its own, another, another group's, an edge's.
    assert!(!taken(&registry, "alpha", 7, 1, START));
    assert!(!taken(&registry, "alpha", 8, 2, START));
    assert!(!taken(&registry, "bravo", 7, 2, START));
    assert!(!registry.ordinal_is_taken(&Role::Edge, &serial(2), START));
    assert!(!taken(&registry, "alpha", 7, 2, START + 100 + REVOCATION_MARGIN + 1));
    registry.revoke_drones(&[edge(1, START + 100)]);
    assert!(!taken(&registry, "alpha", 7, 2, START));
    // Revoked before the registry was read, as after a start.
    let mut restored = Registry::default();
    restored.revoke_drones(&[edge(1, START + 100)]);
    restored.apply(&leader_issued(1, "alpha", 7, START + 100));
    assert!(!taken(&restored, "alpha", 7, 2, START));
}
