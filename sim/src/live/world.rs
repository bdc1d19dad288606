//! Builds the live world: KGCs, a leader, deputies, thousands of drones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quiver_ainq::{IssuedToken, Ristretto255, Role, Suite};
use quiver_crypto::Hasher;
use quiver_machine::Route;
use quiver_net::{Multiaddr, NetError};
use quiver_report::Progress;
use quiver_world::formats::pcapng::Capture;
use quiver_world::run::Pairs;

use super::admission::{Admission, unix_time};
use super::deployment::{Founder, RestartableLeader};
use super::drone::Drone;
use super::drone_name;
use super::event_log::{EventLog, LeaderLog};
use super::features::{FeatureKeys, LiveKgcNode, LiveLeaderNode};
use super::kgc::{self, KgcHost};
use super::node::LiveNode;
use super::node_settings::{NodeSettings, RunParameters, address};
use super::rank_line::RankLine;
use super::relays::{self, Relays};
use super::swarm::Swarm;
use super::worker_pool::{self, PendingWorker, WorkerPool};
use crate::measure::{self, CpuMeter};
use crate::plan::Plan;
use crate::report::WorkerReport;
use crate::{Result, SimError, ranks};

/// Number of drones that enrol at a time.
pub(crate) const ENROLLING_AT_ONCE: usize = 256;
/// Interval at which counters are polled where there is no event to wait for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Figures of the world at the end of a run.
pub(crate) struct WorldSummary {
    pub(crate) kgc_cpu: Duration,
    pub(crate) keys_digest: [u8; 32],
    pub(crate) offences: BTreeMap<String, u64>,
}

/// A deputy of the leader.
struct Deputy<S: Suite> {
    node: LiveNode<LiveLeaderNode<S>>,
    address: Multiaddr,
    restartable: RestartableLeader<S>,
    meter: CpuMeter,
}

/// Nodes of a run, and all that runs beside them.
pub(crate) struct LiveWorld<S: Suite> {
    /// Time at which it began to be built.
    pub(crate) started: Instant,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    pub(crate) setting: NodeSettings<S>,
    pub(crate) leader: LiveNode<LiveLeaderNode<S>>,
    pub(crate) swarm: Swarm<S>,
    relays: Relays,
    event_log: Arc<EventLog>,
    /// Address on which KGCs and leaders listen.
    host: IpAddr,
    pub(crate) leader_meter: CpuMeter,
    restartable: RestartableLeader<S>,
    leader_address: Multiaddr,
    /// Deputies by ordinal.
    deputies: VecDeque<Deputy<S>>,
    kgc_addresses: Vec<Multiaddr>,
    kgc_meter: CpuMeter,
    /// Payload bytes that former lives of the leader sent.
    sent_before: u64,
    /// KGCs, which run as long as the world does.
    pub(crate) kgcs: Vec<LiveNode<LiveKgcNode<S>>>,
    pub(crate) feature_keys: FeatureKeys<S>,
    /// Time that several KGCs took to make their keys.
    pub(crate) generation: Option<Duration>,
    /// Capture of the group's datagrams, once they are sent.
    pub(crate) capture: Option<Capture>,
}

impl LiveWorld<Ristretto255> {
    /// Founds a deployment, starts its KGCs and a leader, and gives every drone a token. Drones are hosted by the workers at
    /// the other ends of the lines, or here if there are none.
    ///
    /// Drones below `plan.drones` form the group, then come the newcomers, and the last one is an outsider:
    /// enrolled, but its identity lists no group.
    pub(crate) async fn build(plan: &Plan, progress: &Progress, lines: Vec<RankLine>) -> Result<Self> {
        let started = measure::now();
        let workers = worker_pool::greet(lines, plan, progress).await?;
        let mut founder = Founder::new(plan, progress).await?;
        let swarm = plan.drones + plan.newcomers();
        let event_log = Arc::new(EventLog::new(swarm as usize + 1));
        let terms = RunParameters {
            seed: plan.seed,
            transport: plan.transport,
            kem: plan.kem,
            deputies: plan.deputies,
            relays: plan.relays,
            drones: swarm + 1,
        };
        let known = (founder.deployment.clone(), founder.keys.master_key.kgcs());
        let mut setting = NodeSettings::new(&terms, known, event_log.clone())?;
        let host = host(plan, &workers).await?;
        let groups = |index| {
            if index < swarm { vec![setting.group.clone()] } else { Vec::new() }
        };
        let mut drones = Vec::with_capacity(swarm as usize + 1);
        for index in 0..=swarm {
            drones.push(founder.token(&drone_name(index), Role::Edge, groups(index))?);
        }
        setting.features.admission = Admission::found(plan, &founder, &setting, swarm)?;
        let drones = if workers.is_empty() {
            Swarm::Local((0..).zip(drones).map(|(index, token)| Drone::new(index, token)).collect())
        } else {
            Swarm::Workers(WorkerPool::assign(plan, &setting, &drones, &event_log, workers).await?)
        };
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
        let feature_keys = FeatureKeys::found(plan, &founder)?;
        let (mut kgcs, mut kgc_addresses) = (Vec::new(), Vec::new());
        for kgc in 1..=plan.kgcs {
            let (listen, host) =
                (address(plan.transport, host)?, KgcHost::new(event_log.clone(), kgc_meter.clone()));
            let node = kgc::start(kgc, &founder, &feature_keys, &setting, listen, host)?;
            kgc_addresses.push(first_address(&node, plan.timeout, "a KGC did not start").await?);
            kgcs.push(node);
        }
        let dial = kgc_addresses.iter().map(|address| (Route::Kgc, address.clone())).collect();
        let received = (event_log.clone(), leader_meter.clone());
        let mut restartable =
            RestartableLeader::new(token, (setting.kgcs.clone(), dial), swarm + 1, plan, received);
        let leader = restartable.start(&setting, address(plan.transport, host)?).await?;
        let leader_address = first_address(&leader, plan.timeout, "the leader did not start").await?;
        let mut world = Self {
            plan: plan.clone(),
            progress: progress.clone(),
            setting,
            leader,
            swarm: drones,
            relays: Relays::default(),
            event_log,
            host,
            leader_meter,
            restartable,
            leader_address,
            deputies: VecDeque::new(),
            kgc_addresses,
            kgc_meter,
            sent_before: 0,
            kgcs,
            feature_keys,
            started,
            generation: founder.keys.took,
            capture: None,
        };
        world.await_leader().await?;
        for token in deputy_tokens {
            world.add_deputy(token, swarm + 1).await?;
        }
        Ok(world)
    }
}

impl<S: Suite> LiveWorld<S> {
    /// Waits until the leader is enrolled.
    async fn await_leader(&self) -> Result<()> {
        // One of several leaders listens for a while before it leads.
        if self.leader_will("leader leads", |log| log.enrolments > 0 && !log.epochs.is_empty()).await {
            return Ok(());
        }
        Err(SimError::Late { what: "the leader did not enrol".into(), within: self.plan.timeout })
    }

    /// Waits until a predicate holds at the leader. Returns whether it did in time.
    pub(crate) async fn leader_will(&self, what: &'static str, holds: impl Fn(&LeaderLog) -> bool) -> bool {
        let deadline = measure::now() + self.plan.timeout;
        let mut wait = self.progress.wait(what, 1);
        while !self.event_log().with_logs(|logs| holds(&logs.leader)) {
            wait.done(0);
            if measure::now() >= deadline {
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        wait.done(1);
        true
    }

    /// Waits until all of these have acknowledged the newest epoch. Returns whether they did in time.
    pub(crate) async fn acknowledged_by(&self, members: &BTreeSet<u32>) -> Result<bool> {
        let deadline = measure::now() + self.plan.timeout;
        let mut wait = self.progress.wait("acknowledged", members.len());
        loop {
            let acknowledged = self.leader.inspect(|leader| leader.status().acknowledged).await?;
            wait.done(acknowledged);
            if acknowledged >= members.len() {
                return Ok(true);
            }
            if measure::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Address of the leader.
    pub(crate) fn leader_address(&self) -> &Multiaddr {
        &self.leader_address
    }

    /// Addresses of the KGCs.
    pub(crate) fn kgc_addresses(&self) -> &[Multiaddr] {
        &self.kgc_addresses
    }

    pub(crate) fn event_log(&self) -> &EventLog {
        &self.event_log
    }

    /// The event log, shared.
    pub(crate) fn shared_board(&self) -> Arc<EventLog> {
        self.event_log.clone()
    }

    /// The index of the drone that may not join.
    pub(crate) fn outsider(&self) -> u32 {
        self.plan.drones + self.plan.newcomers()
    }

    /// Enrols all drones, some hundred at a time, until the time is over. The event log records which are
    /// late.
    pub(crate) async fn enrol_all(&mut self) -> Result<()> {
        let all = self.swarm.enrol(&self.setting, &self.kgc_addresses, ENROLLING_AT_ONCE);
        match tokio::time::timeout(self.plan.timeout, all).await {
            Ok(done) => done,
            Err(_) => Ok(()),
        }
    }

    /// Starts these drones and waits until the leader has their connections. Returns how many are missing.
    pub(crate) async fn start_drones(&mut self, drones: Range<u32>, bar: &'static str) -> Result<usize> {
        let (count, before) = (drones.len(), self.connections().await?);
        let step = self.progress.step(bar, count);
        let deputies = self.deputies.iter().map(|deputy| deputy.address.clone());
        let leaders: Vec<_> = [self.leader_address.clone()].into_iter().chain(deputies).collect();
        self.swarm.start_drones(&self.setting, &mut self.relays, &leaders, drones).await?;
        if self.setting.features.admission.is_some() {
            // An anonymous drone connects when it joins.
            return Ok(0);
        }
        let deadline = measure::now() + self.plan.timeout;
        loop {
            let there = self.connections().await?.saturating_sub(before);
            let there = usize::try_from(there).unwrap_or(usize::MAX);
            step.done(there.min(count));
            if there >= count || measure::now() >= deadline {
                return Ok(count.saturating_sub(there));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Number of connections of the leader, or of drones behind its relays.
    async fn connections(&self) -> Result<u64> {
        if self.plan.relays > 0 {
            return relays::drones_behind(&self.leader).await;
        }
        let metrics = self.leader.handle().metrics();
        Ok(metrics.connections_opened.get().saturating_sub(metrics.connections_closed.get()))
    }

    /// Payload bytes the leader has sent, in all its lives.
    pub(crate) fn leader_sent(&self) -> u64 {
        self.sent_before + self.leader.handle().metrics().bytes_sent.get()
    }

    /// Kills the leader without warning and starts another from its records.
    pub(crate) async fn restart_leader_node(&mut self) -> Result<()> {
        self.sent_before = self.leader_sent();
        self.leader.kill().await;
        let deadline = measure::now() + self.plan.timeout;
        self.leader = loop {
            match self.restartable.start(&self.setting, self.leader_address.clone()).await {
                // QUIC lets its socket go only when it has told all peers that their connections are over.
                Err(SimError::Node { source: NetError::AddressInUse { .. }, .. })
                    if measure::now() < deadline =>
                {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                started => break started?,
            }
        };
        Ok(())
    }

    /// Starts one more leader and waits until it is a deputy.
    async fn add_deputy(&mut self, token: (u32, IssuedToken<S>), max_members: u32) -> Result<()> {
        let meter = CpuMeter::default();
        let others = self.deputies.iter().map(|deputy| (Route::Leader, deputy.address.clone()));
        let leader = (Route::Leader, self.leader_address.clone());
        let kgcs = self.kgc_addresses.iter().map(|address| (Route::Kgc, address.clone()));
        let dial = kgcs.chain([leader]).chain(others).collect();
        let kgcs = (self.setting.kgcs.clone(), dial);
        let received = (self.event_log.clone(), meter.clone());
        let mut restartable = RestartableLeader::new(token, kgcs, max_members, &self.plan, received);
        let node = restartable.start(&self.setting, address(self.plan.transport, self.host)?).await?;
        let address = first_address(&node, self.plan.timeout, "a deputy did not start").await?;
        self.deputies.push_back(Deputy { node, address, restartable, meter });
        let deadline = measure::now() + self.plan.timeout;
        let mut wait = self.progress.wait("deputies stand by", self.deputies.len());
        loop {
            let there = self.leader.inspect(|leader| leader.status().deputies).await?;
            wait.done(there);
            if there >= self.deputies.len() {
                return Ok(());
            }
            if measure::now() >= deadline {
                return Err(SimError::Late {
                    what: "a deputy did not stand by for the leader".into(),
                    within: self.plan.timeout,
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the leader for good. From here on the first deputy counts as the leader, whenever it takes over.
    pub(crate) async fn lose_leader(&mut self) {
        self.leader.kill().await;
        if let Some(deputy) = self.deputies.pop_front() {
            (self.leader, self.leader_address) = (deputy.node, deputy.address);
            (self.restartable, self.leader_meter) = (deputy.restartable, deputy.meter);
            self.sent_before = 0;
        }
    }

    /// Ends the work of the workers.
    pub(crate) async fn finish(&self) -> Vec<WorkerReport> {
        match &self.swarm {
            Swarm::Local(_) => Vec::new(),
            Swarm::Workers(workers) => workers.finish().await,
        }
    }

    /// Pairs of a member and the leader that leads; `None` if none does.
    pub(crate) async fn pairs(&self) -> Option<Pairs> {
        let leaders = [&self.leader].into_iter().chain(self.deputies.iter().map(|deputy| &deputy.node));
        let (now, mut pairs) = (unix_time(), None);
        for leader in leaders {
            let found =
                leader.inspect(move |leader| (leader.status().epoch, Pairs::of(leader, now))).await.ok();
            pairs = pairs.max(found.and_then(|(epoch, pairs)| Some((epoch?, pairs))));
        }
        pairs.map(|(_, pairs)| pairs)
    }

    /// Figures of the world at the end of a run.
    pub(crate) fn summary(&self) -> WorldSummary {
        self.event_log().with_logs(|logs| {
            let mut hasher = Hasher::new("quiver/1 simulator keys").u64(logs.pins.len() as u64);
            for (name, pin) in &logs.pins {
                hasher = hasher.lp(name.as_bytes()).fixed(pin);
            }
            WorldSummary {
                kgc_cpu: self.kgc_meter.total(),
                keys_digest: hasher.finish(),
                offences: logs.offences.clone(),
            }
        })
    }
}

/// Address on which KGCs and leaders of a run listen, and which drones dial: loopback, unless workers are on other hosts.
async fn host(plan: &Plan, workers: &[PendingWorker]) -> Result<IpAddr> {
    let own = ranks::host();
    let wanted = match &plan.bind {
        Some(bind) => bind,
        None if workers.iter().all(|worker| worker.host == own) => return Ok(Ipv4Addr::LOCALHOST.into()),
        None => &own,
    };
    let refused = |why: String| SimError::Usage(format!("--bind {wanted}: {why}"));
    let found = tokio::net::lookup_host((wanted.as_str(), 0)).await;
    let found: Vec<IpAddr> =
        found.map_err(|error| refused(error.to_string()))?.map(|address| address.ip()).collect();
    if plan.bind.is_some() {
        return match found.first() {
            Some(host) if host.is_unspecified() => {
                Err(refused("give the address under which the other ranks reach this host".into()))
            }
            Some(host) => Ok(*host),
            None => Err(refused("no such host".into())),
        };
    }
    found.into_iter().find(|host| !host.is_loopback()).ok_or_else(|| {
        refused(
            "this host's name leads to itself alone: give the address under which the other ranks reach it"
                .into(),
        )
    })
}

pub(crate) async fn first_address<M>(node: &LiveNode<M>, within: Duration, what: &str) -> Result<Multiaddr>
where
    M: quiver_machine::Machine + Send + 'static,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
{
    let addresses = tokio::time::timeout(within, node.handle().listening())
        .await
        .map_err(|_| SimError::Late { what: what.into(), within })?
        .map_err(|_| node.stopped())?;
    addresses.into_iter().next().ok_or_else(|| node.stopped())
}
