//! Everything that runs: one KGC, one leader, thousands of drones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use quiver_ainq::{Deployment, IssuedToken, Name, Role, Suite};
use quiver_crypto::Hasher;
use quiver_net::{Multiaddr, NetError, NodeConfig, NodeKey, Transport, group_topic};
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{Kgc, Leader, Route};
use tokio::sync::Semaphore;

use super::board::{Board, LeaderLog};
use super::drone::Drone;
use super::drone_name;
use super::node::Node;
use super::services::{Founder, LeaderSeat, name};
use crate::measure::{self, CpuMeter};
use crate::plan::{Plan, TransportKind};
use crate::progress::Progress;
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// How many drones are at the KGC at a time.
pub(crate) const ENROLLING_AT_ONCE: usize = 256;
/// How many handshakes go on at a time.
const DIALS_AT_ONCE: usize = 128;
/// How often counters are looked at where there is no event to wait for.
const GLANCE: Duration = Duration::from_millis(10);
/// Drones for which the default patience is enough. More drones share the same processor, so they must wait longer.
const PATIENT_DRONES: u32 = 1000;
/// For how long a leader with deputies may be silent, for each thousand of drones. While the group is formed, a question
/// of a deputy waits behind everybody who wants to join.
const SILENCE: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to reach the leader again.
const REDIAL_CEILING: Duration = Duration::from_secs(2);

/// What all nodes of a world share.
pub(crate) struct Setting<S: Suite> {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) deployment: Deployment<S>,
    pub(crate) group: Name,
    /// Under which name keys are exported for comparison.
    pub(crate) export: Arc<Name>,
    pub(crate) board: Arc<Board>,
    pub(crate) edge_timing: EdgeTiming,
    pub(crate) leader_timing: LeaderTiming,
    permits: Arc<Semaphore>,
}

impl<S: Suite> Setting<S> {
    fn new(plan: &Plan, deployment: Deployment<S>, drones: u32) -> Result<Self> {
        let patience = drones.div_ceil(PATIENT_DRONES).max(1);
        let (edge, leader) = (EdgeTiming::default(), LeaderTiming::default());
        Ok(Self {
            seed: plan.seed,
            transport: plan.transport,
            deployment,
            group: name("swarm")?,
            export: Arc::new(name("simulator")?),
            board: Arc::new(Board::new(drones as usize)),
            edge_timing: EdgeTiming {
                retry: edge.retry * patience,
                retry_max: edge.retry_max * patience,
                admission: edge.admission * patience,
                ..edge
            },
            leader_timing: LeaderTiming {
                resend: leader.resend * patience,
                silence: (plan.deputies > 0).then_some(SILENCE * patience),
                ..leader
            },
            permits: Arc::new(Semaphore::new(DIALS_AT_ONCE)),
        })
    }

    /// The node of an edge drone.
    pub(crate) fn spoke(&self, index: u32) -> Result<NodeConfig> {
        let key = self.key(Player::Drone, index)?;
        let mut config = self.lean(NodeConfig::spoke(key, self.transport()));
        config.topic = Some(group_topic(self.group.as_str()));
        config.dial_permits = Some(self.permits.clone());
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// The node of the KGC.
    pub(crate) fn registry(&self) -> Result<NodeConfig> {
        let key = self.key(Player::Kgc, 0)?;
        let mut config = self.lean(NodeConfig::registry(key, self.transport(), 4 * ENROLLING_AT_ONCE));
        config.listen = vec![self.any_address()?];
        Ok(config)
    }

    /// The node of a leader.
    pub(crate) fn hub(
        &self,
        ordinal: u32,
        listen: Multiaddr,
        dial: Vec<(Route, Multiaddr)>,
        members: u32,
    ) -> Result<NodeConfig> {
        let key = self.key(Player::Leader, ordinal)?;
        let mut config = self.lean(NodeConfig::hub(key, self.transport(), members as usize));
        config.topic = Some(group_topic(self.group.as_str()));
        config.listen = vec![listen];
        config.dial = dial;
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// Without what operators' tools use and without pings: within one process a dead peer is noticed at once.
    fn lean(&self, mut config: NodeConfig) -> NodeConfig {
        config.identify = false;
        config.ping = None;
        config.redial_ceiling = REDIAL_CEILING;
        config
    }

    fn key(&self, player: Player, index: u32) -> Result<NodeKey> {
        NodeKey::from_seed(seeds::node_key(self.seed, player, index))
            .map_err(|source| SimError::Node { who: format!("{player:?} {index}"), source })
    }

    fn transport(&self) -> Transport {
        match self.transport {
            TransportKind::Memory => Transport::PlainMemory,
            TransportKind::Tcp => Transport::Tcp,
            TransportKind::Quic => Transport::Quic,
        }
    }

    /// An address of which the system chooses the port.
    fn any_address(&self) -> Result<Multiaddr> {
        let text = match self.transport {
            TransportKind::Memory => "/memory/0",
            TransportKind::Tcp => "/ip4/127.0.0.1/tcp/0",
            TransportKind::Quic => "/ip4/127.0.0.1/udp/0/quic-v1",
        };
        text.parse().map_err(|_| SimError::Usage(format!("{text} is no address")))
    }
}

/// What the world can tell at the end.
pub(crate) struct Finding {
    pub(crate) kgc_cpu: Duration,
    pub(crate) keys_digest: [u8; 32],
    pub(crate) offences: BTreeMap<String, u64>,
}

/// A leader that stands by.
struct Deputy<S: Suite> {
    node: Node<Leader<S>>,
    address: Multiaddr,
    seat: LeaderSeat<S>,
    meter: CpuMeter,
}

/// Everything that runs.
pub(crate) struct World<S: Suite> {
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    pub(crate) setting: Setting<S>,
    pub(crate) leader: Node<Leader<S>>,
    pub(crate) drones: Vec<Drone<S>>,
    pub(crate) leader_meter: CpuMeter,
    seat: LeaderSeat<S>,
    leader_address: Multiaddr,
    /// Who stands by, by ordinal.
    deputies: VecDeque<Deputy<S>>,
    kgc_address: Multiaddr,
    kgc_meter: CpuMeter,
    /// Payload bytes that former lives of the leader sent.
    sent_before: u64,
    /// Runs as long as the world does.
    _kgc: Node<Kgc<S>>,
}

impl<S: Suite> World<S> {
    /// Founds a deployment, starts its KGC and a leader, and gives every drone a token.
    ///
    /// Drones below `plan.drones` form the group, then come the newcomers, and the last one is an outsider: enrolled,
    /// but its identity lists no group.
    pub(crate) async fn build(plan: &Plan, progress: &Progress) -> Result<Self> {
        let mut founder = Founder::new(plan.seed)?;
        let swarm = plan.drones + plan.newcomers();
        let setting = Setting::new(plan, founder.deployment.clone(), swarm + 1)?;
        let groups = |index| {
            if index < swarm { vec![setting.group.clone()] } else { Vec::new() }
        };
        let mut drones = Vec::with_capacity(swarm as usize + 1);
        for index in 0..=swarm {
            let token = founder.token(&drone_name(index), Role::Edge, groups(index))?;
            drones.push(Drone::new(index, token));
        }
        let mut tokens = Vec::new();
        for ordinal in 0..=plan.deputies {
            let own_name = if ordinal == 0 { "leader".into() } else { format!("deputy-{ordinal}") };
            // At most eight of them.
            let rank = u16::try_from(ordinal).unwrap_or(u16::MAX);
            let role = Role::Leader { group: setting.group.clone(), ordinal: rank };
            tokens.push((ordinal, founder.token(&own_name, role, Vec::new())?));
        }
        let deputy_tokens = tokens.split_off(1);
        let token = tokens.remove(0);
        let (kgc_meter, leader_meter) = (CpuMeter::default(), CpuMeter::default());
        let kgc = founder.start_kgc(&setting, kgc_meter.clone())?;
        let kgc_address = first_address(&kgc, plan.timeout, "start of the KGC").await?;
        let dial = vec![(Route::Kgc, kgc_address.clone())];
        let mut seat = LeaderSeat::new(token, dial, swarm + 1, plan, leader_meter.clone());
        let leader = seat.start(&setting, setting.any_address()?)?;
        let leader_address = first_address(&leader, plan.timeout, "start of the leader").await?;
        let mut world = Self {
            plan: plan.clone(),
            progress: progress.clone(),
            setting,
            leader,
            drones,
            leader_meter,
            seat,
            leader_address,
            deputies: VecDeque::new(),
            kgc_address,
            kgc_meter,
            sent_before: 0,
            _kgc: kgc,
        };
        world.await_leader().await?;
        for token in deputy_tokens {
            world.add_deputy(token, swarm + 1).await?;
        }
        Ok(world)
    }

    /// Waits until the leader is enrolled.
    async fn await_leader(&self) -> Result<()> {
        // One of several leaders listens for a while before it leads.
        if self.leader_will(|log| log.enrolments > 0 && !log.epochs.is_empty()).await {
            return Ok(());
        }
        Err(SimError::Late { what: "enrolment of the leader", within: self.plan.timeout })
    }

    /// Waits until something holds at the leader. Returns whether it did in time.
    pub(crate) async fn leader_will(&self, holds: impl Fn(&LeaderLog) -> bool) -> bool {
        let deadline = measure::now() + self.plan.timeout;
        while !self.board().look(|logs| holds(&logs.leader)) {
            if measure::now() >= deadline {
                return false;
            }
            tokio::time::sleep(GLANCE).await;
        }
        true
    }

    /// Waits until so many members have acknowledged the newest epoch. Returns whether they did in time.
    pub(crate) async fn acknowledged_by(&self, members: usize) -> Result<bool> {
        let deadline = measure::now() + self.plan.timeout;
        while self.leader.inspect(|leader| leader.status().acknowledged).await? < members {
            if measure::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(true)
    }

    pub(crate) fn board(&self) -> &Board {
        &self.setting.board
    }

    /// The index of the drone that may not join.
    pub(crate) fn outsider(&self) -> u32 {
        self.plan.drones + self.plan.newcomers()
    }

    /// Enrols all drones, some hundred at a time, until the time is over. Who is late shows on the board.
    pub(crate) async fn enrol_all(&mut self) -> Result<()> {
        let (setting, kgc) = (&self.setting, &self.kgc_address);
        let all = stream::iter(self.drones.iter_mut())
            .map(|drone| drone.enrol(setting, kgc.clone()))
            .buffer_unordered(ENROLLING_AT_ONCE)
            .try_collect::<()>();
        match tokio::time::timeout(self.plan.timeout, all).await {
            Ok(done) => done,
            Err(_) => Ok(()),
        }
    }

    /// Starts these drones and waits until the leader has their connections. Returns how many are missing.
    pub(crate) async fn take_off(
        &mut self,
        drones: std::ops::Range<u32>,
        bar: &'static str,
    ) -> Result<usize> {
        let count = drones.len();
        let before = self.connections();
        let step = self.progress.step(bar, count);
        let deputies = self.deputies.iter().map(|deputy| deputy.address.clone());
        let leaders: Vec<_> = [self.leader_address.clone()].into_iter().chain(deputies).collect();
        for drone in &mut self.drones[drones.start as usize..drones.end as usize] {
            drone.take_off(&self.setting, &leaders)?;
            // The nodes share the threads with this loop.
            tokio::task::yield_now().await;
        }
        let deadline = measure::now() + self.plan.timeout;
        loop {
            let there = usize::try_from(self.connections().saturating_sub(before)).unwrap_or(usize::MAX);
            step.done(there.min(count));
            if there >= count || measure::now() >= deadline {
                return Ok(count.saturating_sub(there));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// How many connections the leader has.
    fn connections(&self) -> u64 {
        let metrics = self.leader.handle().metrics();
        metrics.connections_opened.get().saturating_sub(metrics.connections_closed.get())
    }

    /// Payload bytes the leader has sent, in all its lives.
    pub(crate) fn leader_sent(&self) -> u64 {
        self.sent_before + self.leader.handle().metrics().bytes_sent.get()
    }

    /// Kills the leader without warning and starts another from what it had persisted.
    pub(crate) async fn replace_leader(&mut self) -> Result<()> {
        self.sent_before = self.leader_sent();
        self.leader.kill().await;
        let deadline = measure::now() + self.plan.timeout;
        self.leader = loop {
            match self.seat.start(&self.setting, self.leader_address.clone()) {
                // QUIC lets its socket go only when it has told all peers that their connections are over.
                Err(SimError::Node { source: NetError::AddressInUse { .. }, .. })
                    if measure::now() < deadline =>
                {
                    tokio::time::sleep(GLANCE).await;
                }
                started => break started?,
            }
        };
        Ok(())
    }

    /// Starts one more leader and waits until it stands by.
    async fn add_deputy(&mut self, token: (u32, IssuedToken<S>), max_members: u32) -> Result<()> {
        let meter = CpuMeter::default();
        let others = self.deputies.iter().map(|deputy| (Route::Leader, deputy.address.clone()));
        let leader = (Route::Leader, self.leader_address.clone());
        let dial = [(Route::Kgc, self.kgc_address.clone()), leader].into_iter().chain(others).collect();
        let mut seat = LeaderSeat::new(token, dial, max_members, &self.plan, meter.clone());
        let node = seat.start(&self.setting, self.setting.any_address()?)?;
        let address = first_address(&node, self.plan.timeout, "start of a deputy").await?;
        self.deputies.push_back(Deputy { node, address, seat, meter });
        let deadline = measure::now() + self.plan.timeout;
        while self.leader.inspect(|leader| leader.status().deputies).await? < self.deputies.len() {
            if measure::now() >= deadline {
                return Err(SimError::Late { what: "standing by of a deputy", within: self.plan.timeout });
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Kills the leader for good. From here on the first deputy counts as the leader, whenever it takes over.
    pub(crate) async fn lose_leader(&mut self) {
        self.leader.kill().await;
        if let Some(deputy) = self.deputies.pop_front() {
            (self.leader, self.leader_address) = (deputy.node, deputy.address);
            (self.seat, self.leader_meter) = (deputy.seat, deputy.meter);
            self.sent_before = 0;
        }
    }

    /// What the world can tell at the end.
    pub(crate) fn finding(&self) -> Finding {
        self.board().look(|logs| {
            let mut hasher = Hasher::new("quiver/1 simulator keys").u64(logs.pins.len() as u64);
            for (name, pin) in &logs.pins {
                hasher = hasher.lp(name.as_bytes()).fixed(pin);
            }
            Finding {
                kgc_cpu: self.kgc_meter.total(),
                keys_digest: hasher.finish(),
                offences: logs.offences.clone(),
            }
        })
    }
}

async fn first_address<M>(node: &Node<M>, within: Duration, what: &'static str) -> Result<Multiaddr>
where
    M: quiver_role::Machine + Send + 'static,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
{
    let addresses = tokio::time::timeout(within, node.handle().listening())
        .await
        .map_err(|_| SimError::Late { what, within })?
        .map_err(|_| node.stopped())?;
    addresses.into_iter().next().ok_or_else(|| node.stopped())
}
