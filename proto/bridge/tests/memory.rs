//! A flood of forgeries at a bridge's carrier: memory stays bounded, and members are heard.

#[path = "bridge/group.rs"]
#[expect(dead_code, reason = "the other tests' members; few are needed here")]
mod group;

use std::sync::atomic::Ordering;

use cap::Cap;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::group::{ATTITUDE, HEARTBEAT, Program, TestGroup, eventually, flags, port, udp};

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// Forgeries after which the group's machine is told, and is to make a new key.
const LIMIT: usize = 1 << 16;
/// Datagrams before each genuine one, as many as a socket's buffer holds.
const BURST: usize = 100;
const LONG: usize = 8;
/// Bytes of what a bridge holds at most: datagrams that wait for it, of 2,048 bytes, and senders.
const BOUND: usize = 4 << 20;

/// A datagram that a stranger makes who has seen others.
fn forgery(rng: &mut StdRng, genuine: &[u8], number: usize) -> Vec<u8> {
    let mut forged = vec![0; 40];
    rng.fill_bytes(&mut forged);
    forged[..4].copy_from_slice(&genuine[..4]);
    match number % 8 {
        // From anybody; of another epoch; an announcement; nothing at all.
        0 => forged[1] = rng.gen_range(2..128),
        1 => forged[0] ^= rng.gen_range(1..8),
        2 => forged[0] |= 7 << 3,
        3 => forged[0] = rng.r#gen(),
        // From a member that is known, with a number that is due.
        _ => {}
    }
    forged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forgeries_takes_bounded_memory_and_keeps_no_member_out() {
    let group = TestGroup::new(2);
    let (ports, at, tap) = ([port(), port()], [port(), port()], port());
    let before = ALLOCATOR.allocated();
    // The stranger hears what the member sends.
    let ear = UdpSocket::bind(("127.0.0.1", tap)).await.expect("bind");
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let to_both = format!("{}+127.0.0.1:{tap}", udp(ports[0], ports[1]));
    let _vehicle = group.open(0, flags(&[&endpoints[0]], &[&to_both])).await;
    let ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    station.send(&HEARTBEAT.of(2, 0)).await;

    let (mut rng, stranger) = (StdRng::seed_from_u64(1), UdpSocket::bind("127.0.0.1:0").await.expect("bind"));
    let (begun, mut heard, mut most, mut bytes) = (Instant::now(), [0; 2_048], 0, 0);
    let rounds = u32::try_from(2 * LIMIT / BURST).expect("few");
    for round in 0..rounds {
        autopilot.send(&ATTITUDE.of(1, round)).await;
        assert_eq!(station.receive().await, ATTITUDE.of(1, round), "a member is kept out");
        let len = loop {
            // Announcements are longer.
            let (len, _) = ear.recv_from(&mut heard).await.expect("received");
            if heard[0] >> 3 & 7 == 0 {
                break len;
            }
        };
        let mut genuine = heard[..len].to_vec();
        let next = u16::from_be_bytes([genuine[2], genuine[3]]).wrapping_add(1);
        genuine[2..4].copy_from_slice(&next.to_be_bytes());
        for number in 0..BURST + LONG {
            let mut forged = forgery(&mut rng, &genuine, number);
            if number >= BURST {
                forged.resize(2_000, 7);
            }
            bytes += forged.len();
            stranger.send_to(&forged, ("127.0.0.1", ports[1])).await.expect("sent");
        }
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(bytes > 4 * BOUND && most < BOUND, "{most} bytes of memory for {bytes} bytes of forgeries");
    eventually("forgeries are counted", || ground.datagrams("forged") > LIMIT as u64).await;
    assert_eq!(ground.frames("from group: passed"), rounds.into());
    // The machine was told once; and nothing was sent but a few requests for announcements.
    eventually("it was told", || ground.asked.forgery_reports.load(Ordering::Relaxed) == 1).await;
    let (sent, seconds) = (ground.datagrams("sent"), begun.elapsed().as_secs());
    assert!(sent <= 4 * (seconds + 1), "{sent} datagrams in {seconds} s");
}
