//! MAVLink frames from one program to another through real services: a star through the leader's relay, a
//! wrong system id, a stranger, an eviction, a drone without a key, and a flood of forged tags.

use std::cell::RefCell;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use quiver_mavlink::{Frame, Origin, message};
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually, now};
use serde_json::Value;

use crate::failover::{EDGES, LeaderPair};

/// Time for which nothing may come.
const SILENCE: Duration = Duration::from_secs(2);

/// A port that was free a moment ago.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").expect("bind").local_addr().expect("address").port()
}

#[test]
fn port_that_is_taken_is_told_before_the_token_is_used() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    let udp = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("bind");
    let (udp, tcp) = (udp.local_addr().expect("address"), tcp.local_addr().expect("address"));
    let run = ["run", "-d", "edge-1-data", "--deployment", "kgc-data/deployment.toml", "--token", &token];
    let nowhere = ["--leader", "127.0.0.1:1", "--kgc", "127.0.0.1:1"];
    let free = free_port();
    for (endpoint, carrier, taken) in [
        (format!("udpin:{udp}"), "star:127.0.0.1:9".into(), udp),
        (format!("tcpin:{tcp}"), "star:127.0.0.1:9".into(), tcp),
        (format!("udpin:127.0.0.1:{free}"), format!("relay:{udp}"), udp),
    ] {
        let given = ["--mavlink", &endpoint, "--carrier", &carrier];
        bench.refused("edge", &[&run[..], &nowhere, &given].concat(), 5, &[&taken.to_string()]);
    }
    assert!(!bench.path("edge-1-data").exists(), "nothing was begun");
}

/// A MAVLink program: an autopilot or a ground station.
struct Program {
    socket: UdpSocket,
    to: u16,
    system: u32,
    sequence: u8,
    /// Texts that its end told it.
    texts: RefCell<Vec<String>>,
}

impl Program {
    /// Connected to an endpoint `udpin:127.0.0.1:TO`.
    fn new(to: u16, system: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("timeout");
        Self { socket, to, system, sequence: 0, texts: RefCell::default() }
    }

    /// A frame with a payload; `crc_extra` belongs to the message.
    fn frame(&mut self, id: u32, crc_extra: u8, payload: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let [id0, id1, id2, _] = id.to_le_bytes();
        let len = u8::try_from(payload.len()).expect("short");
        let system = u8::try_from(self.system).expect("a system that needs no longer header");
        let mut bytes = vec![0xfd, len, 0, 0, self.sequence, system, 1, id0, id1, id2];
        bytes.extend_from_slice(payload);
        let sum = bytes[1..].iter().chain(&[crc_extra]).fold(0xffff_u16, |sum, byte| {
            let mut low = byte ^ sum.to_le_bytes()[0];
            low ^= low << 4;
            let low = u16::from(low);
            (sum >> 8) ^ (low << 8) ^ (low << 3) ^ (low >> 4)
        });
        bytes.extend_from_slice(&sum.to_le_bytes());
        assert!(Frame::parse(&bytes).expect("frame").is_proven(), "message {id}");
        bytes
    }

    /// A text, for its own end to know it by.
    fn hello(&self) -> Vec<u8> {
        let origin = Origin { system: self.system, component: 1, sequence: 0 };
        message::status_text(origin, message::Severity::Info, "here")
    }

    /// A text that is another each time, of whatever system.
    fn text(&mut self) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let origin = Origin { system: self.system, component: 1, sequence: self.sequence };
        message::status_text(origin, message::Severity::Info, &format!("text {}", self.sequence))
    }

    fn heartbeat(&mut self) -> Vec<u8> {
        let custom_mode = [7, 0, 0, self.sequence];
        self.frame(0, 50, &[&custom_mode[..], &[2, 3, 81, 4, 3]].concat())
    }

    /// `COMMAND_LONG` to a system: arm.
    fn command(&mut self, target: u8) -> Vec<u8> {
        let mut payload = vec![0; 28];
        payload[2] = 0x80;
        payload[3] = 0x3f;
        payload.extend_from_slice(&400_u16.to_le_bytes());
        payload.extend_from_slice(&[target, 1, 1]);
        self.frame(76, 152, &payload)
    }

    fn send(&self, frame: &[u8]) {
        self.socket.send_to(frame, ("127.0.0.1", self.to)).expect("send");
    }

    fn receive(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2_048];
        let len = self.socket.recv(&mut buffer).ok()?;
        let frame = Frame::parse(&buffer[..len]).expect("frame");
        if frame.message_id() == 253 && frame.component_id() == message::BRIDGE_COMPONENT {
            let text = String::from_utf8_lossy(&frame.payload()[1..]).into_owned();
            self.texts.borrow_mut().push(text);
        }
        Some(buffer[..len].to_vec())
    }

    /// Sends and receives until its end has told it so, or had before.
    fn is_told(&mut self, words: &str) {
        eventually(&format!("a STATUSTEXT with `{words}`"), || {
            let frame = self.heartbeat();
            self.send(&frame);
            if let Some(bytes) = self.receive() {
                let component = Frame::parse(&bytes).expect("frame").component_id();
                assert_eq!(component, message::BRIDGE_COMPONENT, "nothing but the end itself speaks");
            }
            self.texts.borrow().iter().any(|text| text.contains(words)).then_some(())
        });
    }

    /// Sends frames until one arrives there, bit for bit.
    fn reaches(&mut self, other: &Self, make: impl Fn(&mut Self) -> Vec<u8>) {
        let mut sent = Vec::new();
        eventually(&format!("a frame of system {} at system {}", self.system, other.system), || {
            // Its end answers those who have sent lately.
            other.send(&other.hello());
            let frame = make(self);
            self.send(&frame);
            sent.push(frame);
            std::iter::from_fn(|| other.receive()).find(|received| sent.contains(received)).map(drop)
        });
    }

    /// Sends for a while; nothing of it arrives there. What was under way before is read first.
    fn does_not_reach(&mut self, other: &Self, make: impl Fn(&mut Self) -> Vec<u8>) {
        while other.receive().is_some() {}
        let until = now() + SILENCE;
        while now() < until {
            let frame = make(self);
            self.send(&frame);
            while let Some(received) = other.receive() {
                assert_ne!(received, frame, "it must not pass");
                let system = Frame::parse(&received).expect("frame").system_id();
                assert_ne!(system, self.system, "nothing of it must pass");
            }
        }
    }
}

/// An edge with a program at a port, on a star.
fn edge(bench: &TestDeployment, name: &str, services: (&str, &str), (port, relay): (u16, u16)) -> Process {
    edge_on(bench, name, services, (port, &format!("star:127.0.0.1:{relay}")))
}

/// The same on any carrier.
fn edge_on(
    bench: &TestDeployment,
    name: &str,
    (kgc, leader): (&str, &str),
    (port, carrier): (u16, &str),
) -> Process {
    let (data, token) = (format!("{name}-data"), format!("{name}.token"));
    let mavlink = format!("udpin:127.0.0.1:{port}");
    let run = ["run", "--json", "-d", &data, "--kgc", kgc, "--leader", leader, "--token", &token];
    let more = ["--deployment", "kgc-data/deployment.toml", "--mavlink", &mavlink, "--carrier", carrier];
    bench.start("edge", &[&run[..], &more].concat())
}

fn mavlink(status: Option<Value>) -> Value {
    status.expect("status")["mavlink"].clone()
}

#[test]
fn mavlink_passes_between_members_and_nothing_without_a_key() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    for name in ["edge-1", "gcs"] {
        bench.token(name, &["--group", "alpha"]);
    }
    let kgc = bench.kgc(ANY);
    let kgc_at = kgc.address();
    let relay = free_port();
    let carrier = format!("relay:127.0.0.1:{relay}");
    let own = free_port();
    let endpoint = format!("udpin:127.0.0.1:{own}");
    let leader = bench.leader(
        &kgc_at,
        ANY,
        Some(&token),
        &["--system-id", "leader-1=254", "--mavlink", &endpoint, "--carrier", &carrier],
    );
    let leader_at = leader.address();
    bench.ok("leader", &["system-id", "grant", "edge-1", "1"]);
    bench.ok("leader", &["system-id", "grant", "gcs", "255"]);
    bench.refused("leader", &["system-id", "grant", "edge-9", "1"], 3, &["granted to `edge-1`"]);

    let ports = [free_port(), free_port()];
    let edges = [("edge-1", ports[0]), ("gcs", ports[1])]
        .map(|(name, port)| edge(&bench, name, (&kgc_at, &leader_at), (port, relay)));
    let epoch = bench.served(2, (0, 0));
    bench.synced("edge-1", epoch);
    let (mut vehicle, mut ground, mut chief) =
        (Program::new(ports[0], 1), Program::new(ports[1], 255), Program::new(own, 254));
    // An endpoint that listens knows its programs once they have sent.
    for program in [&mut vehicle, &mut ground, &mut chief] {
        let frame = program.heartbeat();
        program.send(&frame);
    }

    // Both ways, bit for bit; the leader is a member like others.
    vehicle.reaches(&ground, Program::heartbeat);
    ground.reaches(&vehicle, Program::heartbeat);
    chief.reaches(&vehicle, Program::heartbeat);
    vehicle.reaches(&chief, Program::heartbeat);
    // Commands are signed by their sender.
    ground.reaches(&vehicle, |ground| ground.command(1));
    let status = eventually("the vehicle's end has counted", || {
        let status = mavlink(bench.edge_status("edge-1"));
        (status["frames"]["to group: passed"].as_u64() > Some(0)).then_some(status)
    });
    assert_eq!((&status["open"], &status["system_id"]), (&true.into(), &1.into()), "{status}");
    assert!(status["frames"]["from group: passed"].as_u64() > Some(0), "{status}");
    let shown = bench.ok("edge", &["status", "-d", "edge-1-data"]);
    assert!(shown.contains("passing, system 1"), "{shown}");

    // Another's system id.
    vehicle.system = 9;
    vehicle.does_not_reach(&ground, Program::heartbeat);
    while vehicle.receive().is_some() {}
    vehicle.is_told("not the system id");
    vehicle.system = 1;
    assert!(mavlink(bench.edge_status("edge-1"))["frames"]["to group: other system"].as_u64() > Some(0));

    // A stranger at the relay is neither forwarded nor answered.
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("bind");
    stranger.set_read_timeout(Some(Duration::from_millis(500))).expect("timeout");
    for length in 1..200_u8 {
        let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(31).wrapping_add(length)).collect();
        stranger.send_to(&bytes, ("127.0.0.1", relay)).expect("send");
    }
    assert!(stranger.recv(&mut [0; 100]).is_err(), "nobody answers");
    let refused = || mavlink(bench.leader_status())["carriers"][0]["forwarded"][1].as_u64();
    eventually("strangers are counted", || (refused() >= Some(100)).then_some(()));
    vehicle.reaches(&ground, Program::heartbeat);

    // Evicted: it reads nothing, and nobody takes anything from it.
    // By what ground stations call it.
    assert!(bench.ok("leader", &["evict", "1"]).contains("edge-1 is evicted"));
    edges[0].line("\"evicted\"");
    bench.served(1, epoch);
    ground.reaches(&chief, Program::heartbeat);
    vehicle.does_not_reach(&ground, Program::heartbeat);
    ground.does_not_reach(&vehicle, |ground| ground.command(1));
    chief.reaches(&ground, Program::heartbeat);
    while vehicle.receive().is_some() {}
    vehicle.is_told("from the group, nothing passes");
    let told = || ground.texts.borrow().iter().any(|text| text.ends_with("system 1 was evicted"));
    eventually("the ground station is told who is gone", || {
        ground.send(&ground.hello());
        ground.receive();
        told().then_some(())
    });
    bench.refused("leader", &["evict", "--system-id", "77"], 3, &["granted to nobody"]);
    assert_eq!(mavlink(bench.edge_status("edge-1"))["open"], false);
    let rows: Vec<Value> =
        serde_json::from_str(&bench.ok("leader", &["system-id", "list", "--json"])).expect("json");
    let members: Vec<_> = rows.iter().map(|row| (row["name"].as_str(), row["member"].as_bool())).collect();
    assert_eq!(
        members,
        [(Some("edge-1"), Some(false)), (Some("leader-1"), Some(true)), (Some("gcs"), Some(true))]
    );
    assert_eq!(rows[0]["evicted"], true);
    assert!(bench.ok("leader", &["system-id", "list"]).contains("evicted"));
}

#[test]
fn systems_with_ids_above_255_pass_and_members_that_come_late_ask_for_the_table() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    for name in ["edge-1", "edge-2"] {
        bench.token(name, &["--group", "alpha"]);
    }
    let kgc = bench.kgc(ANY);
    let kgc_at = kgc.address();
    let (relay, own) = (free_port(), free_port());
    let carrier = format!("relay:127.0.0.1:{relay}");
    let endpoint = format!("udpin:127.0.0.1:{own}");
    let arguments = ["--system-id", "leader-1=4294967295", "--mavlink", &endpoint, "--carrier", &carrier];
    let leader = bench.leader(&kgc_at, ANY, Some(&token), &arguments);
    let leader_at = leader.address();
    let ports = [free_port(), free_port()];
    let edge = |index: usize| {
        edge(&bench, &format!("edge-{}", index + 1), (&kgc_at, &leader_at), (ports[index], relay))
    };
    let _first = edge(0);
    let epoch = bench.served(1, (0, 0));
    // A change while the first is there, and a table that the second has to ask for.
    bench.ok("leader", &["system-id", "grant", "edge-1", "70000"]);
    bench.refused("leader", &["system-id", "grant", "edge-2", "70000"], 3, &["granted to `edge-1`"]);
    let system = |name: &str, id: u32| {
        eventually(&format!("{name} is system {id}"), || {
            let status = mavlink(bench.edge_status(name));
            (status["system_id"] == id && status["tables"]["taken"].as_u64() > Some(0)).then_some(())
        });
    };
    system("edge-1", 70_000);
    bench.ok("leader", &["system-id", "grant", "edge-2", "70001"]);
    let _second = edge(1);
    bench.served(2, epoch);
    system("edge-2", 70_001);

    let (mut one, mut other) = (Program::new(ports[0], 70_000), Program::new(ports[1], 70_001));
    let mut chief = Program::new(own, u32::MAX);
    one.reaches(&other, Program::text);
    other.reaches(&one, Program::text);
    chief.reaches(&one, Program::text);
    one.reaches(&chief, Program::text);
    // The low byte of its id alone is another system's.
    one.system = 70_000 & 0xff;
    one.does_not_reach(&other, Program::text);
}
#[test]
fn nothing_leaves_before_there_is_a_key_and_the_program_is_told() {
    let bench = TestDeployment::new();
    bench.token("edge-1", &["--group", "alpha"]);
    let kgc = bench.kgc(ANY);
    let (port, relay) = (free_port(), UdpSocket::bind("127.0.0.1:0").expect("bind"));
    relay.set_read_timeout(Some(Duration::from_millis(100))).expect("timeout");
    let relay_port = relay.local_addr().expect("address").port();
    let nobody = "/ip4/127.0.0.1/tcp/9";
    let edge = edge(&bench, "edge-1", (&kgc.address(), nobody), (port, relay_port));
    edge.line("\"enrolled\"");
    let mut vehicle = Program::new(port, 1);
    vehicle.is_told("not joined yet, nothing passes");
    let origin = Origin { system: 1, component: 1, sequence: 0 };
    for _ in 0..20 {
        vehicle.send(&message::status_text(origin, message::Severity::Info, "plain"));
        assert!(relay.recv(&mut [0; 2_048]).is_err(), "nothing may leave");
    }
    assert_eq!(
        mavlink(bench.edge_status("edge-1"))["frames"]["to group: no key"].as_u64().map(|n| n > 0),
        Some(true)
    );
}

#[test]
fn grants_of_a_running_leader_survive_its_loss() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    let kgc = bench.kgc(ANY);
    let kgc_at = kgc.address();
    let leader = bench.leader(&kgc_at, ANY, Some(&token), &["--system-id", "gcs=255"]);
    bench.served(0, (0, 0));
    for (name, id) in [("edge-1", "1"), ("edge-2", "2"), ("edge-3", "3")] {
        let said = bench.ok("leader", &["system-id", "grant", name, id]);
        assert!(said.contains("no member has that name"), "{said}");
    }
    let said = bench.ok("leader", &["system-id", "grant", "leader-1", "9"]);
    assert!(said.contains("speaks as system 9") && !said.contains("no member"), "{said}");
    bench.ok("leader", &["system-id", "withdraw", "leader-1"]);
    bench.ok("leader", &["system-id", "withdraw", "edge-2"]);
    bench.ok("leader", &["system-id", "grant", "edge-3", "4"]);
    let granted = || -> Vec<(String, u64)> {
        let listed = bench.ok("leader", &["system-id", "list", "--json"]);
        let rows: Vec<Value> = serde_json::from_str(&listed).expect("json");
        let row = |row: &Value| Some((row["name"].as_str()?.to_owned(), row["system_id"].as_u64()?));
        rows.iter().map(|one| row(one).expect("a row")).collect()
    };
    let grants = granted();
    assert_eq!(grants, [("edge-1".into(), 1), ("edge-3".into(), 4), ("gcs".into(), 255)]);

    leader.kill();
    // The settings cannot grant to another what the state file has.
    let clash = ["serve", "--listen", ANY, "--kgc", &kgc_at, "--system-id", "edge-9=1"];
    let clash = [&clash[..], &["--deployment", "kgc-data/deployment.toml"]].concat();
    bench.refused("leader", &clash, 2, &["system_id", "edge-"]);
    let _again = bench.leader(&kgc_at, ANY, None, &["--system-id", "gcs=255"]);
    bench.served(0, (0, 0));
    assert_eq!(granted(), grants);
}

#[test]
fn leader_that_stands_by_says_so_and_carries_mavlink_once_it_leads() {
    let carriers = [free_port(), free_port(), free_port()];
    let own = [free_port(), free_port()];
    let flags = [0, 1].map(|leader| {
        let carrier = format!("udp:127.0.0.1:{}+127.0.0.1:{}", carriers[leader], carriers[2]);
        let endpoint = format!("udpin:127.0.0.1:{}", own[leader]);
        let flags =
            ["--system-id", "leader-0=254", "--system-id", "leader-1=253", "--system-id", "vehicle=1"];
        let bridge = ["--mavlink", &endpoint, "--carrier", &carrier];
        flags.iter().chain(&bridge).map(ToString::to_string).collect()
    });
    let pair = LeaderPair::start_with(flags);
    let token = pair.bench.token("vehicle", &["--group", "alpha"]);
    let leaders = [pair.leaders[0].address(), pair.leaders[1].address()];
    let port = free_port();
    let endpoint = format!("udpin:127.0.0.1:{port}");
    let [first, second, of_vehicle] = carriers;
    let carrier = format!("udp:127.0.0.1:{of_vehicle}+127.0.0.1:{first}+127.0.0.1:{second}");
    let run = ["run", "--json", "-d", "vehicle-data", "--kgc", &pair.kgc_at, "--token", &token];
    let rest = ["--deployment", "kgc-data/deployment.toml", "--leader", &leaders[0], "--leader", &leaders[1]];
    let bridge = ["--mavlink", &endpoint, "--carrier", &carrier];
    let _edge = pair.bench.start("edge", &[&run[..], &rest, &bridge].concat());
    let members = [&EDGES[..], &["vehicle"]].concat();
    pair.follow(0, &members);
    pair.stands_by(1, "leader-0");
    let mut vehicle = Program::new(port, 1);
    let [mut chief, mut deputy] = [Program::new(own[0], 254), Program::new(own[1], 253)];

    vehicle.reaches(&chief, Program::heartbeat);
    chief.reaches(&vehicle, |chief| chief.command(1));
    deputy.send(&deputy.hello());
    vehicle.does_not_reach(&deputy, Program::heartbeat);
    deputy.does_not_reach(&vehicle, Program::heartbeat);
    pair.leaders[1].logged("MAVLink does not pass here until this leader leads");
    let status = mavlink(pair.status(1));
    assert_eq!(status["open"], false, "{status}");
    let shown = pair.bench.ok("leader", &["status", "-d", "leader-1-data"]);
    assert!(shown.contains("not passing (this leader stands by"), "{shown}");

    pair.leaders[0].kill();
    pair.follow(1, &members);
    vehicle.reaches(&deputy, Program::heartbeat);
    deputy.reaches(&vehicle, |deputy| deputy.command(1));
    let shown = pair.bench.ok("leader", &["status", "-d", "leader-1-data"]);
    assert!(shown.contains("passing, system 253"), "{shown}");
    assert!(!shown.contains("not passing"), "{shown}");
}

/// An announcement of the leader's slot (§20.4) that somebody without the group's key made.
fn forged_announcement(epoch_counter: u64, number: u32) -> Vec<u8> {
    const VERSION_1_ANNOUNCEMENT: u8 = 1 << 6 | 7 << 3;
    let low = u8::try_from(epoch_counter % 8).expect("three bits");
    let (boot_no, salt, sealed_and_tag) = ([0, 0, 0, 1], [7; 8], [7; 7 + 16]);
    [&[VERSION_1_ANNOUNCEMENT | low, 0], &boot_no[..], &salt, &number.to_be_bytes(), &sealed_and_tag].concat()
}

#[test]
fn flood_of_forged_tags_at_a_drone_makes_the_leader_take_one_new_key() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    bench.token("edge-1", &["--group", "alpha"]);
    let (kgc, carrier, nobody) = (bench.kgc(ANY), free_port(), free_port());
    let kgc_at = kgc.address();
    let leader = bench.leader(&kgc_at, ANY, Some(&token), &["--system-id", "edge-1=1"]);
    let on = format!("udp:127.0.0.1:{carrier}+127.0.0.1:{nobody}");
    let leader_at = leader.address();
    let edge = edge_on(&bench, "edge-1", (&kgc_at, &leader_at), (free_port(), &on));
    let (term, counter) = bench.served(1, (0, 0));
    bench.synced("edge-1", (term, counter));

    let forger = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let mut number = 0;
    let mut flood = |counter| {
        for _ in 0..1_000 {
            forger.send_to(&forged_announcement(counter, number), ("127.0.0.1", carrier)).expect("send");
            number += 1;
        }
        // The drone's socket loses some.
        std::thread::sleep(Duration::from_millis(5));
    };
    eventually("forged datagrams are counted", || {
        flood(counter);
        let status = mavlink(bench.edge_status("edge-1"));
        (status["datagrams"]["forged"].as_u64() > Some(1 << 16)).then_some(())
    });
    edge.logged("were forged in this epoch");
    leader.logged("edge-1 hears datagrams with forged tags");
    leader.logged("a new group key, because tags of datagrams are guessed");
    let taken = now();
    let next = bench.served(1, (term, counter));
    assert_eq!(next, (term, counter + 1));
    bench.synced("edge-1", next);
    // It goes on: the drone says so again, and the leader takes its time.
    let before = mavlink(bench.edge_status("edge-1"))["datagrams"]["forged"].as_u64().expect("number");
    eventually("they are counted under the new key too", || {
        flood(bench.leader_status()?["counter"].as_u64()?);
        let status = mavlink(bench.edge_status("edge-1"));
        (status["datagrams"]["forged"].as_u64() > Some(before + (1 << 16))).then_some(())
    });
    leader.logged_times("edge-1 hears datagrams with forged tags", 2);
    let (held, after) = (bench.served(1, (0, 0)), taken.elapsed());
    // A minute after the last there may be another.
    assert!(held == next || after > Duration::from_secs(59), "{held:?} after {after:?}");
}

#[test]
fn mistakes_about_endpoints_and_carriers_name_what_to_write() {
    let bench = TestDeployment::new();
    let run = ["run", "--leader", "/ip4/127.0.0.1/tcp/9"];
    let refused = |more: &[&str], parts: &[&str]| bench.refused("edge", &[&run[..], more].concat(), 2, parts);
    refused(&["--mavlink", "udp:14550"], &["udpin: listens"]);
    refused(&["--mavlink", "udpin:127.0.0.1:14550"], &["give --carrier"]);
    refused(&["--carrier", "star:127.0.0.1:1"], &["give --mavlink"]);
    refused(&["--mavlink", "udpin::1", "--carrier", "air:x"], &["`air:x` is not a carrier", "star:"]);
    refused(&["--mavlink", "udpin::1", "--carrier", "star:h:1", "--anonymous"], &["anonymous"]);
    refused(&["--mavlink-config", "none.conf"], &["none.conf"]);
    std::fs::write(bench.path("m.conf"), "[UdpEndpoint a]\nMode = Sideways\nAddress = 127.0.0.1\n")
        .expect("write");
    refused(&["--mavlink-config", "m.conf"], &["m.conf:2", "Normal or Server"]);
    bench.refused("leader", &["serve", "--system-id", "edge-1"], 2, &["NAME=ID"]);
}
