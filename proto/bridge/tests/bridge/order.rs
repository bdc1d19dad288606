//! Order and bursts: frames of one sender arrive as they were sent, signed or not, and what comes faster than it is taken waits.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Message, Node, PATIENCE, Program, TestGroup, eventually, flags,
    pace_clock, port, udp,
};

/// Mission items, which are signed, but are no commands.
const MISSION_ITEM: Message = Message { id: 73, crc_extra: 38, len: 37, target: Some(32) };

/// A vehicle with this endpoint, and a ground station that is answered.
struct Link {
    vehicle: Node,
    _ground: Node,
    station: Program,
}

impl Link {
    async fn new(endpoint: &str) -> Self {
        let (group, ports, at) = (TestGroup::new(2), [port(), port()], port());
        let vehicle = group.open(0, flags(&[endpoint], &[&udp(ports[0], ports[1])])).await;
        let ground =
            group.open(1, flags(&[&format!("udpin:127.0.0.1:{at}")], &[&udp(ports[1], ports[0])])).await;
        let station = Program::at(at).await;
        station.send(&HEARTBEAT.of(2, 0)).await;
        eventually("it is heard", || ground.frames("to group: passed") == 1).await;
        Self { vehicle, _ground: ground, station }
    }

    /// Receives frames until the last of these.
    async fn arrives(&self, sent: &[Vec<u8>]) {
        let last = sent.last().expect("some");
        let mut arrived = self.station.receive_until(last).await;
        arrived.push(last.clone());
        let place = arrived.iter().zip(sent).position(|(arrived, sent)| arrived != sent);
        assert_eq!((place, arrived.len()), (None, sent.len()));
    }
}

#[tokio::test]
async fn burst_of_signed_and_unsigned_frames_arrives_in_order() {
    pace_clock();
    let at = port();
    let link = Link::new(&format!("udpin:127.0.0.1:{at}")).await;
    let autopilot = Program::at(at).await;
    // The receiver knows the signer, and is not asked while the burst is on its way.
    autopilot.send(&COMMAND_LONG.to(1, 2, 0)).await;
    assert_eq!(link.station.receive().await, COMMAND_LONG.to(1, 2, 0));
    for round in 0..10 {
        let sent: Vec<_> = (0..30)
            .map(|number| match number % 5 {
                0 => MISSION_ITEM.to(1, 2, 100 * round + number),
                3 => COMMAND_LONG.to(1, 2, 100 * round + number),
                _ => ATTITUDE.of(1, 100 * round + number),
            })
            .collect();
        for frame in &sent {
            autopilot.send(frame).await;
        }
        link.arrives(&sent).await;
    }
    assert_eq!(link.vehicle.datagrams("dropped_telemetry"), 0);
}

#[tokio::test]
async fn log_that_comes_by_tcp_as_fast_as_it_can_is_taken_as_fast_as_it_is_read() {
    pace_clock();
    let at = port();
    let link = Link::new(&format!("tcpin:127.0.0.1:{at}")).await;
    let mut one = TcpStream::connect(("127.0.0.1", at)).await.expect("connected");
    // Another program at the same end hears everything.
    let mut other = TcpStream::connect(("127.0.0.1", at)).await.expect("connected");
    eventually("both are links", || link.vehicle.links() == 2).await;
    let sent = (0..5_000).flat_map(|number| ATTITUDE.of(1, number)).collect::<Vec<_>>();
    let mut read = vec![0; sent.len()];
    let exchange = async { tokio::join!(one.write_all(&sent), other.read_exact(&mut read)) };
    let (written, all) = timeout(PATIENCE, exchange).await.expect("frames are missing");
    written.expect("written");
    all.expect("read");
    let dropped: u64 = link.vehicle.report.status().endpoints.iter().map(|endpoint| endpoint.dropped).sum();
    assert!(read == sent, "not what was sent");
    assert_eq!(dropped, 0);
}

#[tokio::test]
async fn frames_that_datagrams_cut_arrive_whole() {
    pace_clock();
    let at = port();
    let link = Link::new(&format!("udpin:127.0.0.1:{at}")).await;
    let converter = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
    for (round, size) in (0..).zip([7, 39, 64, 100]) {
        let sent: Vec<_> = (0..30).map(|number| ATTITUDE.of(1, 1_000 * round + number)).collect();
        for chunk in sent.concat().chunks(size) {
            converter.send_to(chunk, ("127.0.0.1", at)).await.expect("sent");
        }
        link.arrives(&sent).await;
    }
}
