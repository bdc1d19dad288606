//! Endpoints over TCP: programs that listen or connect, vanish and come back.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::group::{
    ATTITUDE, HEARTBEAT, Message, Node, PATIENCE, Program, TestGroup, eventually, flags, port, udp,
};

/// The station's first frame, which may come before the vehicle's program is connected.
const HELLO: Message = ATTITUDE;

/// A vehicle with this endpoint, and a ground station.
struct Flight {
    vehicle: Node,
    _ground: Node,
    ground: Program,
}

impl Flight {
    async fn new(endpoint: &str) -> Self {
        let (group, ports, at) = (TestGroup::new(2), [port(), port()], port());
        let vehicle = group.open(0, flags(&[endpoint], &[&udp(ports[0], ports[1])])).await;
        let endpoint = format!("udpin:127.0.0.1:{at}");
        let ground = group.open(1, flags(&[&endpoint], &[&udp(ports[1], ports[0])])).await;
        let program = Program::at(at).await;
        // So that it is answered.
        program.send(&HELLO.of(2, 999)).await;
        let of = |result: &str| vehicle.frames(&format!("from group: {result}"));
        eventually("it is heard", || of("passed") + of("no receiver") == 1).await;
        Self { vehicle, _ground: ground, ground: program }
    }

    /// Frames cross in both directions, in spite of how the stream is cut.
    async fn exchange(&self, stream: &mut TcpStream, number: u32) {
        let (up, down) = (HEARTBEAT.of(1, number), ATTITUDE.of(2, number));
        for byte in &up {
            stream.write_all(&[*byte]).await.expect("written");
            stream.flush().await.expect("written");
        }
        stream
            .write_all(&[ATTITUDE.of(1, number), ATTITUDE.of(1, number + 1)].concat())
            .await
            .expect("written");
        assert_eq!(self.ground.receive().await, up);
        assert_eq!(self.ground.receive().await, ATTITUDE.of(1, number));
        assert_eq!(self.ground.receive().await, ATTITUDE.of(1, number + 1));
        self.ground.send(&down).await;
        let mut read_down = read(stream, down.len()).await;
        if read_down == HELLO.of(2, 999) {
            read_down = read(stream, down.len()).await;
        }
        assert_eq!(read_down, down);
    }

    async fn vanished(&self) {
        eventually("the link is gone", || self.vehicle.links() == 0).await;
        // Without a link nothing waits for the next one.
        let before = self.vehicle.frames("from group: no receiver");
        self.ground.send(&ATTITUDE.of(2, 1_000)).await;
        let dropped = || self.vehicle.frames("from group: no receiver") > before;
        eventually("a frame that nobody takes is dropped", dropped).await;
    }
}

async fn read(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.expect("nothing came").expect("read");
    bytes
}

async fn accept(listener: &TcpListener) -> TcpStream {
    timeout(PATIENCE, listener.accept()).await.expect("nobody connects").expect("accepted").0
}

#[tokio::test]
async fn a_program_that_listens_on_tcp_is_found_again_after_it_vanished() {
    let port = port();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("bind");
    let flight = Flight::new(&format!("tcp:127.0.0.1:{port}")).await;
    let mut stream = accept(&listener).await;
    flight.exchange(&mut stream, 0).await;
    // It ends in the middle of a frame, and does not listen for a while.
    stream.write_all(&ATTITUDE.of(1, 500)[..20]).await.expect("written");
    drop((stream, listener));
    flight.vanished().await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("bind again");
    let mut stream = accept(&listener).await;
    flight.exchange(&mut stream, 10).await;
    // It ends the connection and goes on listening.
    drop(stream);
    flight.exchange(&mut accept(&listener).await, 20).await;
}

#[tokio::test]
async fn programs_that_connect_by_tcp_come_and_go() {
    let port = port();
    let flight = Flight::new(&format!("tcpin:127.0.0.1:{port}")).await;
    let connect = || TcpStream::connect(("127.0.0.1", port));
    let mut stream = connect().await.expect("connected");
    flight.exchange(&mut stream, 0).await;
    stream.write_all(&ATTITUDE.of(1, 500)[..20]).await.expect("written");
    drop(stream);
    flight.vanished().await;
    let (mut one, mut other) = (connect().await.expect("connected"), connect().await.expect("connected"));
    flight.exchange(&mut one, 10).await;
    // Both are links: each sees what the other sends, and what comes from the group.
    let seen = [HEARTBEAT.of(1, 10), ATTITUDE.of(1, 10), ATTITUDE.of(1, 11), ATTITUDE.of(2, 10)].concat();
    assert_eq!(read(&mut other, seen.len()).await, seen);
}

/// An endpoint with `Mode = Normal` and the broadcast address of a network, which mavlink-router sends to.
#[tokio::test]
async fn an_address_that_turns_out_to_be_a_broadcast_address_is_sent_to_and_may_answer() {
    let station = UdpSocket::bind("0.0.0.0:0").await.expect("bind");
    let at = station.local_addr().expect("address").port();
    let flight = Flight::new(&format!("udpout:127.255.255.255:{at}")).await;
    let mut buffer = [0; 512];
    // The first frames may come before the socket is open.
    let down = HEARTBEAT.of(2, 1);
    let received = async {
        loop {
            flight.ground.send(&down).await;
            let next = timeout(std::time::Duration::from_millis(100), station.recv_from(&mut buffer)).await;
            if let Ok(Ok((len, from))) = next {
                return (len, from);
            }
        }
    };
    let (len, from) = timeout(PATIENCE, received).await.expect("nothing is broadcast");
    assert!(len > 0);
    // Anybody may answer.
    station.send_to(&HEARTBEAT.of(1, 7), ("127.0.0.1", from.port())).await.expect("sent");
    flight.ground.receive_until(&HEARTBEAT.of(1, 7)).await;
}

#[tokio::test]
async fn frames_of_unknown_flags_and_of_no_system_are_counted_and_the_link_goes_on() {
    let at = port();
    let Flight { vehicle, ground: station, .. } = &Flight::new(&format!("udpin:127.0.0.1:{at}")).await;
    let autopilot = Program::at(at).await;
    // Each has a frame within that would pass by itself.
    let within = ATTITUDE.of(1, 7);
    let length = u8::try_from(within.len()).expect("short");
    let strange = |flags: u8, system: u8| {
        [&[0xfd, length, flags, 0, 0, system, 1, 30, 0, 0], &within[..], &[0, 0]].concat()
    };
    for _ in 0..3 {
        autopilot.send(&strange(0x08, 1)).await;
        autopilot.send(&strange(0, 0)).await;
    }
    autopilot.send(&ATTITUDE.of(1, 8)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(1, 8));
    assert_eq!((vehicle.frames("local: unknown flags"), vehicle.frames("local: system 0")), (3, 3));
}

#[tokio::test]
async fn frames_that_are_cut_or_damaged_are_counted_and_the_link_goes_on() {
    let at = port();
    let Flight { vehicle, ground: station, .. } = &Flight::new(&format!("udpin:127.0.0.1:{at}")).await;
    let autopilot = Program::at(at).await;
    let mut damaged = ATTITUDE.of(1, 7);
    *damaged.last_mut().expect("a check sum") ^= 1;
    for _ in 0..3 {
        autopilot.send(&damaged).await;
        // Its rest does not come: the whole frame behind it gives it up.
        autopilot.send(&ATTITUDE.of(1, 8)[..20]).await;
        autopilot.send(&ATTITUDE.of(1, 9)).await;
        assert_eq!(station.receive().await, ATTITUDE.of(1, 9));
        autopilot.send(b"no MAVLink at all").await;
    }
    eventually("they are counted", || {
        (vehicle.frames("local: damaged"), vehicle.frames("local: no frame")) == (3, 6)
    })
    .await;
}
