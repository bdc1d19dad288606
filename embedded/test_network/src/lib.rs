//! A network for tests of a board: a real KGC, leader and gateway, and other drones, on one thread and in
//! virtual time. The board is the firmware on the host, or an image in its model.
//!
//! The test drives it: [`TestNetwork::set_time`], [`TestNetwork::work`] with the bytes of the board's line,
//! until nothing is left to do, and again at [`TestNetwork::due`]. One seed gives one run.
#![forbid(unsafe_code)]

mod companions;
mod datagrams;
mod gateway;
mod radio;

use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, OperatorSecretKey, Revoked, Ristretto255, Role, StrategyKind,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent};
use quiver_group::edge::Provisioning;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Leader, LeaderCommand, LeaderConfig, LeaderEvent};
use quiver_link::{BoardReport, EndpointLimits, GatewayEndpoint, LineDecoder, Wants};
use quiver_machine::Route;
pub use quiver_testbed::{EPOCH_START, name};
use quiver_testbed::{Net, NodeSet, Partition, Puppet, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use self::datagrams::Listener;
pub use self::radio::BoardLine;

type S = Ristretto255;

/// The leader's group.
pub const GROUP: &str = "alpha";
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TestNetworkNode {
    Kgc,
    Leader,
    /// The board's stand-in: the gateway.
    Board,
    Companion(usize),
}

/// See the [crate](self).
pub struct TestNetwork {
    /// Generator of everything random here.
    pub rng: ChaCha20Rng,
    /// The deployment of all nodes.
    pub deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
    leading: (StrategyKind, LeaderTiming),
    net: Net<TestNetworkNode>,
    /// Serial numbers of the companions.
    serials: Vec<[u8; 16]>,
    /// The gateway's end of the link.
    pub gateway: GatewayEndpoint,
    decoder: LineDecoder,
    /// True if the gateway runs.
    pub gateway_up: bool,
    wants: Wants,
    /// The board's last report.
    pub report: Option<BoardReport>,
    /// All datagrams that ever came from the board.
    pub sent: Vec<u8>,
    /// The group's datagrams that ever came from the board.
    pub board_datagrams: Vec<Vec<u8>>,
    /// The group's datagrams that ever came from companions.
    pub member_datagrams: Vec<Vec<u8>>,
    /// Companions that exchange datagrams.
    listeners: Vec<Listener>,
    /// The line to the board.
    pub line: BoardLine,
}

impl TestNetwork {
    /// A running network in which no drone has enrolled.
    ///
    /// # Panics
    /// If the machines refuse their configuration.
    #[must_use]
    pub fn new(seed: u64, strategy: StrategyKind, timing: LeaderTiming, now: Duration) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let kgc =
            KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(&mut rng));
        let role = Role::Leader { group: name(GROUP), ordinal: 0 };
        let token = operator.issue(&deployment, token_grant("leader", role, GROUP), &mut rng).unwrap();
        let leader = leader_config(&deployment, Some(token), strategy, timing);
        let mut net = Net::new(seed);
        net.recording = false;
        net.skip(now);
        net.start(TestNetworkNode::Kgc, Kgc::new(kgc, Vec::new()).unwrap());
        net.start(TestNetworkNode::Leader, Leader::new(leader, Vec::new()).unwrap());
        net.start(TestNetworkNode::Board, Puppet::default());
        net.subscribe(TestNetworkNode::Board);
        net.connect(TestNetworkNode::Leader, TestNetworkNode::Kgc, Route::Kgc);
        Self {
            leading: (strategy, timing),
            net,
            serials: Vec::new(),
            rng,
            deployment,
            operator,
            gateway: GatewayEndpoint::new(EndpointLimits::line(1 << 17), 77),
            decoder: LineDecoder::new(),
            gateway_up: true,
            wants: Wants::default(),
            report: None,
            sent: Vec::new(),
            board_datagrams: Vec::new(),
            member_datagrams: Vec::new(),
            listeners: Vec::new(),
            line: BoardLine::default(),
        }
    }

    /// Makes the board's line a radio that loses `loss` of a hundred frames. Its gateway sends coded broadcasts if
    /// `codes`, with parity if `parity`. To be called before anything runs.
    pub fn use_radio(&mut self, loss: u32, codes: bool, parity: bool) {
        self.gateway = GatewayEndpoint::new(EndpointLimits::radio(1 << 17), 77);
        self.line = BoardLine::radio(self.rng.next_u64(), loss, codes, parity);
    }

    /// Provisioning of a board of this name.
    ///
    /// # Panics
    /// If it is no name.
    #[must_use]
    pub fn provisioning(&mut self, drone: &str) -> Provisioning<S> {
        let token = self
            .operator
            .issue(&self.deployment, token_grant(drone, Role::Edge, GROUP), &mut self.rng)
            .unwrap();
        Provisioning {
            deployment: self.deployment.clone(),
            kgcs: vec![1],
            group: Some(name(GROUP)),
            time: EPOCH_START,
            radio: None,
            kem: Default::default(),
            token: Some(token),
        }
    }

    /// Tells the leader to do something.
    pub fn lead(&mut self, command: LeaderCommand) {
        self.net.command::<Leader<S>>(TestNetworkNode::Leader, command);
    }

    /// Revokes so many unknown drones.
    pub fn revoke(&mut self, count: u8) {
        let drones = (0..count).map(|n| Revoked::unknown([n; 16])).collect();
        self.command_kgc(KgcCommand::RevokeDrones(drones));
    }

    fn command_kgc(&mut self, command: KgcCommand) {
        self.net.command::<Kgc<S>>(TestNetworkNode::Kgc, command);
    }

    fn leader(&self) -> &Leader<S> {
        self.net.machine(TestNetworkNode::Leader)
    }

    /// Events of the leader so far.
    #[must_use]
    pub fn leader_events(&self) -> &[LeaderEvent] {
        &self.net.node::<Leader<S>>(TestNetworkNode::Leader).events
    }

    /// Number of keys that the KGC has issued.
    #[must_use]
    pub fn keys_issued(&self) -> usize {
        let events = self.net.node::<Kgc<S>>(TestNetworkNode::Kgc).events.iter();
        events.filter(|event| matches!(event, KgcEvent::Issued { .. })).count()
    }

    /// Sets whether the gateway's leader is made up: messages between board and leader are dropped.
    pub fn make_up_leader(&mut self, made_up: bool) {
        self.net.network.heal();
        if made_up {
            let (leader, board) =
                (NodeSet::only([TestNetworkNode::Leader]), NodeSet::only([TestNetworkNode::Board]));
            self.net.network.part(Partition::both_ways(leader, board));
        }
    }

    /// Restarts the leader from its records.
    ///
    /// # Panics
    /// If it does not.
    pub fn restart_leader(&mut self) {
        let records = self.net.node::<Leader<S>>(TestNetworkNode::Leader).records().to_vec();
        let (strategy, timing) = self.leading;
        let config = leader_config(&self.deployment, None, strategy, timing);
        self.net.stop(TestNetworkNode::Leader);
        self.net.start(TestNetworkNode::Leader, Leader::new(config, records).unwrap());
        self.net.connect(TestNetworkNode::Leader, TestNetworkNode::Kgc, Route::Kgc);
        self.connect(self.wants.clone());
        self.reconnect_companions();
    }

    /// The leader's epoch, as a board's console prints it: `term.counter`, and its digest.
    #[must_use]
    pub fn epoch(&self) -> Option<String> {
        let status = self.leader().status();
        let epoch = status.epoch?;
        let digest = status.digest.map(hex::encode)?;
        Some(format!("{}.{} digest {digest}", epoch.term, epoch.counter))
    }

    /// Sets the time. It never goes back.
    pub fn set_time(&mut self, now: Duration) {
        self.net.skip(now.saturating_sub(self.net.time()));
    }

    /// Deadline of the next action.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let gateway = self.gateway.timeout().filter(|_| self.gateway_up);
        [gateway, self.net.due(), self.datagrams_due(), self.line.broadcasts_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles bytes from the board's line, and all that is due. Returns whether there was anything, and so
    /// may be more.
    pub fn work(&mut self, heard: &[u8]) -> bool {
        let (mut busy, now) = (self.work_gateway(heard), self.net.time());
        while self.net.step(now) {
            busy = true;
        }
        busy | self.work_datagrams() | self.send_to_board() | self.work_broadcasts()
    }

    /// Takes the bytes for the board's line.
    #[must_use]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.line.take_bytes()
    }
}

fn leader_config(
    deployment: &Deployment<S>,
    token: Option<IssuedToken<S>>,
    strategy: StrategyKind,
    timing: LeaderTiming,
) -> LeaderConfig<S> {
    LeaderConfig {
        max_members: 2_000,
        strategy,
        timing,
        // As over the boards' radio: wraps go to all, however many.
        shared_medium: true,
        ..LeaderConfig::new(deployment.clone(), name(GROUP), token)
    }
}
