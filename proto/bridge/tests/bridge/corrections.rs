//! Corrections for GPS from one base to a swarm: one stream of datagrams, however many vehicles there are.

use std::sync::{Arc, Mutex};

use quiver_bridge::memory;
use tokio::net::UdpSocket;

use crate::group::{GPS_RTCM_DATA, Node, Program, TestGroup, eventually, flags, port, udp};

/// Corrections that are counted.
const CORRECTIONS: u32 = 20;
/// Times that the base's program sends each: some ground stations send them once for each vehicle.
const COPIES: u8 = 3;

/// Datagrams on the air, and their bytes.
type Air = (usize, usize);

/// The base's corrections, with a number in them.
fn corrections(number: u32, sequence: u8) -> Vec<u8> {
    let mut payload = vec![1; GPS_RTCM_DATA.len];
    payload[..4].copy_from_slice(&number.to_le_bytes());
    GPS_RTCM_DATA.numbered((1, 1), sequence, &payload)
}

/// Measures the base's corrections on the air, without its announcements, until each vehicle's program has
/// got all.
async fn air_of_a_base(vehicles: usize) -> Air {
    let group = TestGroup::new(vehicles + 1);
    let air = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&air);
    // The medium asks for each receiver; what the base sends is on the air once.
    let medium = memory(vehicles + 1, move |from, to, datagram| {
        // Neither a manifest nor an announcement (protocol §20.1).
        let carries_frames = datagram[0] >> 3 & 7 < 6;
        if from == 0 && to == 1 && carries_frames {
            let mut air = counted.lock().expect("unpoisoned");
            *air = (air.0 + 1, air.1 + datagram.len());
        }
        1
    });
    let (at, programs) = (port(), UdpSocket::bind("127.0.0.1:0").await.expect("bind"));
    let endpoint = format!("udpout:{}", programs.local_addr().expect("bound"));
    let (mut base, mut nodes) = (None, Vec::new());
    for (member, carrier) in medium.into_iter().enumerate() {
        let endpoint = if member == 0 { format!("udpin:127.0.0.1:{at}") } else { endpoint.clone() };
        // A carrier is to be given; the medium takes its place, and nobody opens it.
        let settings = flags(&[&endpoint], &[&udp(9, 10)]);
        let node = group.open_in_memory(member, settings, carrier).await;
        match member {
            0 => base = Some(node),
            _ => nodes.push(node),
        }
    }
    let _base = base.expect("the first");
    let got = |node: &Node| node.frames("from group: passed");
    eventually("each vehicle has its program", || nodes.iter().all(|node| node.links() == 1)).await;
    let station = Program::at(at).await;
    // Until all know the key that the base signs with.
    let mut number = 0;
    while nodes.iter().any(|node| got(node) == 0) {
        number += 1;
        station.send(&corrections(number, 0)).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(number < 1_200, "a vehicle gets nothing");
    }
    // The last of those is there before others are counted.
    let last = nodes.iter().map(got).max().expect("vehicles");
    let before: Vec<_> = loop {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let now: Vec<_> = nodes.iter().map(got).collect();
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        if now == nodes.iter().map(got).collect::<Vec<_>>() && now.iter().max() >= Some(&last) {
            break now;
        }
    };
    let on_air = || *air.lock().expect("unpoisoned");
    let began = on_air();
    for sent in 1..=CORRECTIONS {
        for copy in 0..COPIES {
            station.send(&corrections(1_000_000 + sent, copy)).await;
        }
        // One after the other: frames that wait together would share a datagram.
        eventually("each vehicle has got it", || {
            nodes.iter().zip(&before).all(|(node, before)| got(node) >= before + u64::from(sent))
        })
        .await;
    }
    let ended = on_air();
    for (node, before) in nodes.iter().zip(&before) {
        assert_eq!(got(node), before + u64::from(CORRECTIONS), "each once");
    }
    (ended.0 - began.0, ended.1 - began.1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrections_of_one_base_reach_200_vehicles_as_one_stream_of_datagrams() {
    let (few, many) = (air_of_a_base(2).await, air_of_a_base(200).await);
    assert_eq!(few.0, CORRECTIONS as usize, "a datagram for each");
    assert_eq!(few, many, "bytes on the air depend on the number of vehicles");
    // With the base's signature, and without what a frame's header has twice.
    let plain = CORRECTIONS as usize * corrections(0, 0).len();
    assert!((plain..plain + CORRECTIONS as usize * 80).contains(&many.1), "{} bytes for {plain}", many.1);
}
