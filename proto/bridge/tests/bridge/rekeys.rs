//! The key changes: who was evicted is out in both directions, and what was recorded is of no more use.

use quiver_ainq::EpochKeys;
use quiver_bridge::BridgeSettings;
use tokio::net::UdpSocket;

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Node, Program, TestGroup, eventually, flags, port, udp,
};

/// Two vehicles and a ground station, in this order; each sends to all others, and to a stranger that records.
struct Flight {
    group: TestGroup,
    endpoints: [u16; 3],
    carriers: [u16; 3],
    nodes: [Node; 3],
    programs: [Program; 3],
    stranger: UdpSocket,
}

impl Flight {
    async fn new() -> Self {
        let (group, endpoints, carriers) =
            (TestGroup::new(3), [(); 3].map(|()| port()), [(); 3].map(|()| port()));
        let stranger = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
        let tap = stranger.local_addr().expect("bound").port();
        let settings = |member| settings(endpoints, carriers, member, tap);
        let nodes = [
            group.open(0, settings(0)).await,
            group.open(1, settings(1)).await,
            group.open(2, settings(2)).await,
        ];
        let [one, other, ground] = endpoints.map(Program::at);
        let programs = [one.await, other.await, ground.await];
        let flight = Self { group, endpoints, carriers, nodes, programs, stranger };
        // Programs are answered once they have sent something.
        for (member, program) in (1..).zip(&flight.programs) {
            program.send(&HEARTBEAT.of(member, 0)).await;
        }
        eventually("all have heard all", || {
            let heard =
                |node: &Node| node.frames("from group: passed") + node.frames("from group: no receiver");
            flight.nodes.iter().all(|node| heard(node) >= 2)
        })
        .await;
        flight
    }

    fn rekey(&self, counter: u8, member: usize, boot_no: u32) {
        let keys = self.group.keys_of(counter, member, u32::try_from(member).expect("a slot"));
        self.nodes[member].epoch_keys.set_keys(Some(EpochKeys { boot_no, ..keys }), true);
    }

    /// Takes the datagrams that the stranger has recorded so far.
    fn recorded(&self) -> Vec<Vec<u8>> {
        let (mut recorded, mut buffer) = (Vec::new(), [0; 2_048]);
        while let Ok((len, _)) = self.stranger.try_recv_from(&mut buffer) {
            recorded.push(buffer[..len].to_vec());
        }
        recorded
    }

    async fn replay(&self, recorded: &[Vec<u8>], to: usize) {
        for datagram in recorded {
            self.stranger.send_to(datagram, ("127.0.0.1", self.carriers[to])).await.expect("sent");
        }
    }

    /// Collects the frames of the ground station's program until this one comes.
    async fn until(&self, last: &[u8]) -> Vec<Vec<u8>> {
        self.programs[2].receive_until(last).await
    }
}

fn settings(endpoints: [u16; 3], carriers: [u16; 3], member: usize, tap: u16) -> BridgeSettings {
    let others =
        (0..3).filter(|other| *other != member).map(|other| format!("+127.0.0.1:{}", carriers[other]));
    let carrier = format!("{}{}", udp(carriers[member], tap), others.collect::<String>());
    flags(&[&format!("udpin:127.0.0.1:{}", endpoints[member])], &[&carrier])
}

#[tokio::test]
async fn an_evicted_member_reads_nothing_and_is_not_heard_and_the_others_are() {
    let flight = Flight::new().await;
    let [vehicle, evicted, ground] = &flight.nodes;
    let [autopilot, taken, station] = &flight.programs;
    taken.send(&COMMAND_LONG.to(2, 3, 1)).await;
    flight.until(&COMMAND_LONG.to(2, 3, 1)).await;
    // Member 1 goes on with the key that it has.
    flight.rekey(2, 0, 1);
    flight.rekey(2, 2, 1);
    autopilot.send(&ATTITUDE.of(1, 10)).await;
    flight.until(&ATTITUDE.of(1, 10)).await;
    let passed = (vehicle.frames("from group: passed"), evicted.frames("from group: passed"));
    for number in 20..30 {
        taken.send(&ATTITUDE.of(2, number)).await;
        taken.send(&COMMAND_LONG.of(2, number)).await;
        station.send(&ATTITUDE.of(3, number)).await;
    }
    eventually("it has sent", || evicted.frames("to group: passed") == 22).await;
    eventually("nobody takes it", || {
        ground.datagrams("old_epoch") >= 11 && vehicle.datagrams("old_epoch") >= 11
    })
    .await;
    eventually("the others are heard", || vehicle.frames("from group: passed") == passed.0 + 10).await;
    eventually("it opens nothing", || evicted.datagrams("unknown") >= 10).await;
    autopilot.send(&COMMAND_LONG.to(1, 3, 40)).await;
    assert_eq!(flight.until(&COMMAND_LONG.to(1, 3, 40)).await, Vec::<Vec<u8>>::new());
    assert_eq!(evicted.frames("from group: passed"), passed.1);
}

#[tokio::test]
async fn what_was_recorded_is_of_no_use_after_a_rekey_or_a_restart() {
    let mut flight = Flight::new().await;
    for number in 1..20 {
        flight.programs[0].send(&ATTITUDE.of(1, number)).await;
        flight.programs[0].send(&COMMAND_LONG.to(1, 3, number)).await;
        flight.until(&COMMAND_LONG.to(1, 3, number)).await;
    }
    let first = flight.recorded();
    assert!(first.len() > 40, "{}", first.len());
    let passed = flight.nodes[2].frames("from group: passed");
    flight.replay(&first, 2).await;
    let replayed = || flight.nodes[2].datagrams("replayed");
    eventually("replays are counted", || replayed() >= 38).await;

    // Another key.
    for member in 0..3 {
        flight.rekey(2, member, 1);
    }
    flight.programs[0].send(&ATTITUDE.of(1, 100)).await;
    assert_eq!(flight.until(&ATTITUDE.of(1, 100)).await, Vec::<Vec<u8>>::new());
    flight.replay(&first, 2).await;
    eventually("they are of the epoch before", || flight.nodes[2].datagrams("old_epoch") >= 40).await;

    // The vehicle's process ends and starts anew; it joins, and so the key is another one.
    let second = flight.recorded();
    let tap = flight.stranger.local_addr().expect("bound").port();
    let settings = settings(flight.endpoints, flight.carriers, 0, tap);
    flight.nodes[0].stop().await;
    flight.nodes[0] = flight.group.start(0, settings).await;
    flight.nodes[0].epoch_keys.group_state.set_table(flight.group.table(3));
    for (member, boot_no) in [(0, 2), (1, 1), (2, 1)] {
        flight.rekey(3, member, boot_no);
    }
    let vehicle = &flight.nodes[0];
    eventually("it has its key", || vehicle.report.status().system_id == Some(1)).await;
    flight.programs[0].send(&COMMAND_LONG.to(1, 3, 200)).await;
    assert_eq!(flight.until(&COMMAND_LONG.to(1, 3, 200)).await, Vec::<Vec<u8>>::new());
    flight.replay(&first, 2).await;
    flight.replay(&second, 2).await;
    flight.programs[0].send(&COMMAND_LONG.to(1, 3, 201)).await;
    assert_eq!(flight.until(&COMMAND_LONG.to(1, 3, 201)).await, Vec::<Vec<u8>>::new());
    assert_eq!(flight.nodes[2].frames("from group: passed"), passed + 3);
}
