//! A long time in the life of a board: its heap does not grow, its flash wears as computed, it misses no key,
//! and none of its secrets is on the console or in the clear on the line.
//!
//! The short form is a day of virtual time, `QUIVER_SOAK_HOURS` says otherwise; the long form, which is
//! ignored by default, a month.

#[path = "../board/flash.rs"]
#[allow(dead_code, reason = "some of it is for other tests")]
mod flash;
mod meter;
#[path = "../board/time.rs"]
mod time;
#[path = "../board/wire.rs"]
mod wire;
#[path = "../board/world.rs"]
#[allow(dead_code, reason = "some of it is for other tests")]
mod world;

use std::time::Duration;

use embassy_futures::block_on;
use quiver_ainq::StrategyKind;
use quiver_crypto::Hex;
use quiver_crypto::canonical::Reader;
use quiver_firmware::storage::Storage;
use quiver_group::edge::{EdgeConfig, Provisioning};
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, LeaderCommand, LeaderEvent};
use quiver_machine::Snapshot;
use quiver_test_network::name;

use self::flash::PAGE;
use self::world::World;

const HOUR: Duration = Duration::from_secs(3_600);
/// A new key comes every 8 minutes.
const VALIDITY: Duration = Duration::from_secs(600);

/// One after the other: the heap is that of the whole process.
#[test]
fn a_day_passes_without_growth_wear_or_a_missed_key() {
    let hours = std::env::var("QUIVER_SOAK_HOURS").ok().and_then(|hours| hours.parse().ok());
    soak(hours.unwrap_or(24));
}

#[test]
#[ignore = "takes a minute: the same for a month"]
fn a_month_passes_without_growth_wear_or_a_missed_key() {
    soak(30 * 24);
}

#[expect(clippy::print_stdout, reason = "a measurement prints what it measured")]
fn soak(hours: u32) {
    let timing = LeaderTiming { validity: VALIDITY, ..LeaderTiming::default() };
    let mut world = World::new(1, StrategyKind::Tree, timing);
    world.provision("board-1");
    world.until("agreement", World::agree);
    // A line that loses one byte in 20,000.
    world.wire.both().noise = 20_000;
    hour(&mut world);
    let (heap, steps) = (meter::held(), world.flash.chip().erasures.clone());
    let mut secrets = secrets(&world);
    for _ in 1..hours {
        hour(&mut world);
        let grown = meter::held() - heap;
        assert!(grown.abs() < 4_096, "the heap grew by {grown} bytes to {}", meter::held());
        secrets.extend(self::secrets(&world));
    }
    let pages: Vec<_> =
        world.flash.chip().erasures.iter().zip(&steps).map(|(now, then)| now - then).collect();
    let (stored, len) = (states(&mut world), state(&world).len() + 16);
    println!("{hours} h: heap {}, {stored} states of {len} bytes", meter::held());
    println!("erasures after the first hour, by page: {pages:?}");
    let most = (stored as usize * len.next_multiple_of(4)).div_ceil(14 * PAGE) + 1;
    assert!(pages.iter().all(|count| *count as usize <= most), "{pages:?}: more than {most}");
    let keys = world.said.lines().filter(|line| line.starts_with("key ")).count();
    assert!(stored as usize <= 2 * keys + 8, "{stored} states stored for {keys} keys");
    not_shown(&world, &secrets);
}

/// Seven or eight keys, each of which the board must have within seconds, and messages both ways.
fn hour(world: &mut World) {
    for minute in 0..60 {
        if minute % 10 == 0 {
            world.type_line("send still here");
            world.lead(LeaderCommand::Send { channel: name("orders"), data: b"carry on".to_vec() });
        }
        if !world.agree() {
            world.run(Duration::from_secs(10));
            assert!(world.agree(), "the leader has {:?}:\n{}", world.epoch(), world.said);
        }
        world.run(HOUR / 60 - Duration::from_secs(10));
        world.run(Duration::from_secs(10));
    }
    let activated = |event: &&LeaderEvent| matches!(event, LeaderEvent::EpochActivated { members: 1.., .. });
    let epochs = world.leader_events().iter().filter(activated).count();
    let keys = world.said.lines().filter(|line| line.starts_with("key ")).count();
    assert!(keys >= epochs && epochs >= 6, "{keys} keys of {epochs} epochs");
}

/// States stored since the start, from the board's status.
fn states(world: &mut World) -> u32 {
    world.type_line("status");
    world.run(Duration::from_secs(1));
    let line = world.last("flash stored").expect("a status");
    line.split(' ').nth(2).and_then(|count| count.parse().ok()).expect("a count")
}

/// The state in the flash, opened.
fn state(world: &World) -> Vec<u8> {
    let mut storage = Storage::new(world.flash.duplicate(1)).expect("a region");
    block_on(storage.load()).expect("readable").expect("a state").to_vec()
}

/// All secrets of the board as it is now.
fn secrets(world: &World) -> Vec<Vec<u8>> {
    let state = state(world);
    let mut reader = Reader::new(&state);
    reader.u8().unwrap();
    let settings = Provisioning::decode(reader.lp(4_096).unwrap()).unwrap();
    let snapshot = Snapshot::new(reader.take(reader.remaining()).unwrap().to_vec());
    let config = EdgeConfig::new(settings.deployment, settings.group, None);
    let edge = Edge::<quiver_ainq::Ristretto255>::new(config, Some(&snapshot)).unwrap();
    let captured = edge.compromised_state().expect("enrolled");
    let mut secrets = vec![captured.secret.to_vec(), captured.membership.expect("a member").to_vec()];
    secrets.extend(captured.spares.iter().map(|spare| spare.to_vec()));
    // The digest, which the membership holds too, is public; its length precedes it here and in messages.
    let digest = edge.status().digest.expect("a key");
    let public =
        [&[32], &digest[..], captured.public.implicit(&world.deployment).expect("a key").as_bytes()].concat();
    let windows = secrets.iter().flat_map(|secret| secret.windows(16)).map(<[u8]>::to_vec);
    // Names and numbers are no secrets, and neither is what has them in it.
    let plain = |window: &[u8]| window.iter().filter(|byte| **byte == 0 || byte.is_ascii()).count() > 12;
    windows.filter(|window| !plain(window) && !public.windows(16).any(|known| known == window)).collect()
}

fn not_shown(world: &World, secrets: &[Vec<u8>]) {
    assert!(secrets.len() > 100, "there is something to look for");
    let sent: std::collections::HashSet<&[u8]> = world.sent.windows(16).collect();
    for secret in secrets {
        assert!(!sent.contains(secret.as_slice()), "on the line: {}", Hex(secret));
        assert!(!world.said.contains(&hex::encode(secret)), "on the console: {}", Hex(secret));
    }
}
