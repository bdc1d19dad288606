//! A group's members with their bridges, and MAVLink programs at the bridges' endpoints, on real sockets.

use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket as StdUdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Epoch, EpochKeys, GroupContext, Handle, Identity, Label,
    Leadership, MasterSecret, Ristretto255 as S, Role, Roster, Signature, Slot, StrategyKind, Times,
};
use quiver_bridge::{
    Bridge, BridgeReport, BridgeSettings, EpochKeySender, Given, GroupServices, MemoryCarrier,
    bridge_channels,
};
use quiver_mavlink::{Frame, SystemIds};
use quiver_testbed::{issue_keypair, name};
use rand::SeedableRng;
use rand::rngs::{OsRng, StdRng};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

/// Time after which a test gives up. Nothing is said about how long what happens takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const TERM: u64 = 1 << 16;
/// The time that bridges take for now: that of the signatures in proto/mavlink/tests/vectors/frames.txt.
pub(crate) const NOW: Duration = Duration::from_micros(20_015_998_343_868 * 10 + 1_420_070_400_000_000);
/// The key of those signatures.
pub(crate) const SIGNING_KEY: &str = "9f0cb2a9a5692a5ac007acb3db3d7b8d5eaf68e0ab4f671af3aaf102e9c31b10";

/// Members with their keys; member i is in slot i, and speaks as system i + 1.
pub(crate) struct TestGroup {
    pub(crate) deployment: Deployment<S>,
    leadership: Leadership<S>,
    leader: Handle,
    members: Vec<Arc<DroneKeypair<S>>>,
}

/// One member's machine, as its bridge asks it.
#[derive(Clone)]
struct Machine {
    deployment: Deployment<S>,
    keypair: Arc<DroneKeypair<S>>,
    asked: Arc<Asked>,
}

/// Requests of a bridge to its machine, and the machine's answers.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) signatures: AtomicUsize,
    /// True if the machine's revocation list names the other members.
    pub(crate) others_are_revoked: AtomicBool,
    pub(crate) forgery_reports: AtomicUsize,
    pub(crate) leader_wanted: AtomicUsize,
}

impl GroupServices<S> for Machine {
    async fn sign(&self, statement: Vec<u8>) -> Option<Signature<S>> {
        self.asked.signatures.fetch_add(1, Ordering::Relaxed);
        Some(self.keypair.sign(&self.deployment, Label::Datagram, &statement, &mut OsRng))
    }

    async fn may_sign(&self, slot: Slot, drone: DronePublicKey<S>) -> bool {
        let is_revoked = self.asked.others_are_revoked.load(Ordering::Relaxed);
        drone.identity.name == name(&format!("drone-{slot}")) && !is_revoked
    }

    async fn want_epoch(&self) {}

    async fn reach_leader(&self) {
        self.asked.leader_wanted.fetch_add(1, Ordering::Relaxed);
    }

    async fn forgeries(&self, _: [u8; 32]) {
        self.asked.forgery_reports.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running bridge; it ends when it is dropped.
pub(crate) struct Node {
    pub(crate) epoch_keys: EpochKeySender<S>,
    pub(crate) report: BridgeReport,
    pub(crate) asked: Arc<Asked>,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    /// Ends the bridge, and waits until its ports are free.
    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        assert!(timeout(PATIENCE, &mut self.task).await.is_ok(), "it does not end");
    }

    /// Number of frames of which this became.
    pub(crate) fn frames(&self, what: &str) -> u64 {
        self.report.status().frames.get(what).copied().unwrap_or(0)
    }

    /// Number of datagrams of which this became, as published last.
    pub(crate) fn datagrams(&self, what: &str) -> u64 {
        self.report.status().datagrams.get(what).copied().unwrap_or(0)
    }

    /// Links of all endpoints, as published last.
    pub(crate) fn links(&self) -> usize {
        self.report.status().endpoints.iter().map(|endpoint| endpoint.links).sum()
    }
}

impl TestGroup {
    pub(crate) fn new(members: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let mut drone = |named: &str, serial: u16, role| {
            let mut bytes = [0; 16];
            bytes[..2].copy_from_slice(&serial.to_be_bytes());
            let groups = vec![name("alpha")];
            let identity = Identity { serial: bytes, name: name(named), role, groups, not_after: 1 << 40 };
            issue_keypair(&master, &deployment, &identity, &mut rng)
        };
        let leader = drone("leader", u16::MAX, Role::Leader { group: name("alpha"), ordinal: 0 });
        let number = |member: usize| u16::try_from(member).expect("few members");
        let members = (0..members)
            .map(|member| Arc::new(drone(&format!("drone-{member}"), number(member), Role::Edge)))
            .collect();
        let context = GroupContext {
            deployment: deployment.clone(),
            group: name("alpha"),
            leader: leader.public().clone(),
        };
        let times = Times { issued_at: 1, valid_until: 1_000, revocation_number: 0 };
        let (leadership, _) = Leadership::open_term(
            context,
            &leader,
            Roster::new(),
            &BTreeMap::new(),
            TERM,
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut OsRng,
        )
        .expect("a term");
        Self { deployment, leadership, leader: leader.public().handle(), members }
    }

    /// A member's keys of the first epoch, or those that it needs to send from another's slot.
    pub(crate) fn keys(&self, member: usize, slot: Slot) -> EpochKeys<S> {
        self.keys_of(1, member, slot)
    }

    /// The same of another epoch, before which somebody was removed.
    pub(crate) fn keys_of(&self, counter: u8, member: usize, slot: Slot) -> EpochKeys<S> {
        let digest = [counter; 32];
        EpochKeys {
            epoch: Epoch { term: TERM, counter: counter.into() },
            digest,
            traffic: self.leadership.group_key().traffic(&digest),
            slot,
            boot_no: 1,
            leader: self.leader,
            slots: 1_024,
            signer: Some(self.members[member].public().clone()),
            continues: None,
            valid_for: Duration::from_secs(3_600),
        }
    }

    /// Grants the first members system ids.
    pub(crate) fn table(&self, granted: usize) -> SystemIds {
        let mut table = SystemIds::new();
        for member in 0..granted.min(self.members.len()) {
            let (named, slot) = (format!("drone-{member}"), u32::try_from(member).expect("few members"));
            table.grant(&named, slot + 1).expect("free");
            table.set_slot(&named, Some(slot));
        }
        table
    }

    /// Starts a member's bridge, without a key.
    pub(crate) async fn start(&self, member: usize, settings: BridgeSettings) -> Node {
        self.start_with_clock(member, settings, || Some(NOW)).await
    }

    /// The same with this clock.
    pub(crate) async fn start_with_clock(
        &self,
        member: usize,
        settings: BridgeSettings,
        clock: fn() -> Option<Duration>,
    ) -> Node {
        let report = BridgeReport::default();
        let bridge = Bridge::open(settings, self.deployment.clone(), clock, report.clone()).await;
        self.run(member, bridge.expect("ports are free"), report)
    }

    fn run(&self, member: usize, bridge: Bridge<S>, report: BridgeReport) -> Node {
        let (epoch_keys, inputs) = bridge_channels();
        let asked = Arc::<Asked>::default();
        let machine = Machine {
            deployment: self.deployment.clone(),
            keypair: Arc::clone(&self.members[member]),
            asked: Arc::clone(&asked),
        };
        Node { epoch_keys, report, asked, task: tokio::spawn(bridge.run(inputs, machine)) }
    }

    /// Gives a bridge its key and the table of all members, and waits until it has them.
    pub(crate) async fn admit(&self, member: usize, node: &Node) {
        node.epoch_keys.group_state.set_table(self.table(self.members.len()));
        node.epoch_keys.set_keys(Some(self.keys(member, member.try_into().expect("a slot"))), true);
        let granted = self.members.len();
        eventually("the bridge has a key", || {
            let status = node.report.status();
            status.open && status.system_ids == granted
        })
        .await;
    }

    /// A member's bridge that passes frames.
    pub(crate) async fn open(&self, member: usize, settings: BridgeSettings) -> Node {
        let node = self.start(member, settings).await;
        self.admit(member, &node).await;
        node
    }

    /// The same on a medium in memory.
    pub(crate) async fn open_in_memory(
        &self,
        member: usize,
        settings: BridgeSettings,
        carrier: MemoryCarrier,
    ) -> Node {
        let report = BridgeReport::default();
        let (deployment, clock) = (self.deployment.clone(), || Some(NOW));
        let bridge = Bridge::open_in_memory(settings, deployment, clock, report.clone(), carrier).await;
        let node = self.run(member, bridge.expect("ports are free"), report);
        self.admit(member, &node).await;
        node
    }
}

/// Settings by flags.
pub(crate) fn flags(endpoints: &[&str], carriers: &[&str]) -> BridgeSettings {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (endpoints, carriers) = (texts(endpoints), texts(carriers));
    read(Given { endpoints: &endpoints, carriers: &carriers, file: None })
}

/// Settings by a file.
pub(crate) fn file(text: &str) -> BridgeSettings {
    read(Given { endpoints: &[], carriers: &[], file: Some(("test.conf", text)) })
}

fn read(given: Given<'_>) -> BridgeSettings {
    let key = |_: &str| Ok(Zeroizing::new(SIGNING_KEY.as_bytes().to_vec()));
    BridgeSettings::read(given, key).expect("settings").expect("given")
}

/// A port that is free for UDP and TCP, and that the system gives nobody by itself: below the ephemeral ones.
pub(crate) fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() * 97 % 10_000) as u16;
    loop {
        let port = 20_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        let udp = StdUdpSocket::bind(("0.0.0.0", port));
        let tcp = TcpListener::bind(("0.0.0.0", port));
        if udp.is_ok() && tcp.is_ok() {
            return port;
        }
    }
}

/// Spelling of a UDP carrier from one port to another.
pub(crate) fn udp(listen: u16, peer: u16) -> String {
    format!("udp:127.0.0.1:{listen}+127.0.0.1:{peer}")
}

/// Pauses tokio's clock and advances it by at most 5 ms in each turn of the runtime, so that no deadline of a bridge passes
/// while a busy machine does not run this process. Must be called in a runtime of one thread.
#[expect(clippy::disallowed_methods, reason = "the paused clock follows real time")]
pub(crate) fn pace_clock() {
    const TURN: Duration = Duration::from_millis(5);
    tokio::time::pause();
    tokio::spawn(async {
        let mut before = std::time::Instant::now();
        loop {
            // Always ready, so that paused time does not jump to the next deadline.
            tokio::task::yield_now().await;
            let now = std::time::Instant::now();
            tokio::time::advance((now - before).min(TURN)).await;
            before = now;
        }
    });
}

/// Waits for something that is to come.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "in vain: {what}");
}

/// A MAVLink program, an autopilot or a ground station, at a UDP endpoint.
pub(crate) struct Program {
    socket: UdpSocket,
}

impl Program {
    /// Sends a frame again and again until something holds.
    pub(crate) async fn repeats(&self, frame: &[u8], mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                self.send(frame).await;
                sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(timeout(PATIENCE, wait).await.is_ok(), "in vain");
    }

    /// Makes the program of an endpoint `udpin:127.0.0.1:PORT`.
    pub(crate) async fn at(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
        socket.connect(("127.0.0.1", port)).await.expect("connect");
        Self { socket }
    }

    pub(crate) async fn send(&self, frame: &[u8]) {
        self.socket.send(frame).await.expect("send");
    }

    /// Takes the frames that have come so far.
    pub(crate) fn drain(&self) -> Vec<Vec<u8>> {
        let (mut frames, mut buffer) = (Vec::new(), [0; 512]);
        while let Ok(len) = self.socket.try_recv(&mut buffer) {
            frames.push(buffer[..len].to_vec());
        }
        frames
    }

    /// The next frame.
    pub(crate) async fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 512];
        let received = timeout(PATIENCE, self.socket.recv(&mut buffer)).await.expect("nothing came");
        buffer[..received.expect("received")].to_vec()
    }

    /// Receives until this frame comes, which is the last; all before it.
    pub(crate) async fn receive_until(&self, last: &[u8]) -> Vec<Vec<u8>> {
        let mut before = Vec::new();
        loop {
            match self.receive().await {
                frame if frame == last => return before,
                frame => before.push(frame),
            }
        }
    }
}

/// An unsigned frame of system 42 in proto/mavlink/tests/vectors, and the same signed by pymavlink with
/// [`SIGNING_KEY`], at the time that bridges take for now.
pub(crate) fn signed(message: &str) -> (Vec<u8>, Vec<u8>) {
    let text = include_str!("../../../mavlink/tests/vectors/frames.txt");
    let line = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = line.clone().find(|line| line[..2] == ["signed", message]).expect("a message of the file");
    (hex(line[2]), hex(line[3]))
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Parts of frames of one message that tests set: a payload's seed, and the seed of the message's check sum.
pub(crate) struct Message {
    pub(crate) id: u32,
    pub(crate) crc_extra: u8,
    pub(crate) len: usize,
    /// Offset of target system and component.
    pub(crate) target: Option<usize>,
}

pub(crate) const HEARTBEAT: Message = Message { id: 0, crc_extra: 50, len: 9, target: None };
pub(crate) const ATTITUDE: Message = Message { id: 30, crc_extra: 39, len: 28, target: None };
pub(crate) const COMMAND_LONG: Message = Message { id: 76, crc_extra: 152, len: 33, target: Some(30) };
pub(crate) const GPS_RTCM_DATA: Message = Message { id: 233, crc_extra: 35, len: 182, target: None };
pub(crate) const RADIO_STATUS: Message = Message { id: 109, crc_extra: 185, len: 9, target: None };

impl Message {
    /// A frame of a system's first component, for everybody; equal numbers make equal frames.
    pub(crate) fn of(&self, system: u8, number: u32) -> Vec<u8> {
        self.to(system, 0, number)
    }

    /// The same for one system.
    pub(crate) fn to(&self, system: u8, target: u8, number: u32) -> Vec<u8> {
        let mut payload = vec![1; self.len];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        if let Some(at) = self.target {
            payload[at..at + 2].copy_from_slice(&[target, 0]);
        }
        self.with(system, &payload)
    }

    /// The same with this payload; its first byte is the sequence number.
    pub(crate) fn with(&self, system: u8, payload: &[u8]) -> Vec<u8> {
        self.of_component((system, 1), payload)
    }

    /// The same of a system and a component.
    pub(crate) fn of_component(&self, from: (u8, u8), payload: &[u8]) -> Vec<u8> {
        self.numbered(from, payload[0], payload)
    }

    /// The same with a sequence number.
    pub(crate) fn numbered(&self, (system, component): (u8, u8), sequence: u8, payload: &[u8]) -> Vec<u8> {
        let (len, [id0, id1, id2, _]) = (payload.len().try_into().expect("short"), self.id.to_le_bytes());
        let mut bytes = vec![0xfd, len, 0, 0, sequence, system, component, id0, id1, id2];
        bytes.extend_from_slice(payload);
        self.seal(bytes)
    }

    /// The same of a system above 255, for everybody or for one system whose id stands in the header; its payload
    /// says 255 then.
    pub(crate) fn wide(&self, system: u32, target: Option<u32>, number: u32) -> Vec<u8> {
        let (len, [id0, id1, id2, _]) = (self.len.try_into().expect("short"), self.id.to_le_bytes());
        let flags = 2 | if target.is_some() { 4 } else { 0 };
        let mut bytes = vec![0xfd, len, flags, 0, 1];
        bytes.extend(system.to_le_bytes());
        bytes.extend([1, id0, id1, id2]);
        bytes.extend(target.into_iter().flat_map(u32::to_le_bytes));
        let mut payload = vec![1; self.len];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        if let Some(at) = self.target {
            payload[at..at + 2].copy_from_slice(&[if target.is_some() { 255 } else { 0 }, 0]);
        }
        bytes.extend(payload);
        self.seal(bytes)
    }

    /// Adds the check sum.
    fn seal(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        // X.25, as MAVLink's own documentation has it.
        let sum = bytes[1..].iter().chain([&self.crc_extra]).fold(0xffff_u16, |mut sum, byte| {
            sum ^= u16::from(*byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0x8408 } else { sum >> 1 };
            }
            sum
        });
        bytes.extend_from_slice(&sum.to_le_bytes());
        assert!(Frame::parse(&bytes).expect("a frame").is_proven(), "message {}", self.id);
        bytes
    }
}
