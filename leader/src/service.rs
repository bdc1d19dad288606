//! Runs a leader (`leader serve`): its machine, its state file and the network, until a signal comes.

mod host;
mod member;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_ainq::{IssuedToken, Name, Ristretto255, Role};
use quiver_group::{Leader, LeaderCommand, LeaderEvent};
use quiver_machine::{Either, Peer, RefusalReason, Route};
use quiver_net::{
    Clocks, Driver, Handle, Introduction, NodeConfig, NodeKey, Service, Transport, group_topic,
};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::feature::{
    GateTask, GroupLeader, LeaderBehindGate, OpenContext, RoleMachine, RunningNode, RunningParts,
    ServiceContext, channels,
};
use quiver_service::drone::output::StandardOutput;
use quiver_service::drone::send::{GroupRelay, Paths};
use quiver_service::drone::service::{CALL_TIME, run_until};
use quiver_service::drone::{
    DroneMachine, DroneProgram as _, DroneService, Error, Result, RunningDrone, health, leader_with_parts,
};
use quiver_service::monitoring::{self, MonitorPlace};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::shutdown::Shutdown;
use quiver_service::token_file::{self, TokenRole};
use quiver_service::{private_file, terminal};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

use self::host::LeaderHost;
use self::member::RunningMember;
use self::refusals::ToldRefusals;
use crate::config::Config;
use crate::control;
use crate::metrics::{LeaderMetrics, Wave};
use crate::store;

/// The machine of this service.
pub(crate) type ServiceLeader = DroneMachine<GroupLeader>;

/// Driver of the leader's machine.
type LeaderDriver = Driver<ServiceLeader, LeaderHost>;

/// Events kept for subcommands that wait for one.
const EVENTS: usize = 1024;

/// Serves until SIGTERM or SIGINT, or until the KGC refuses for good.
pub(crate) async fn run(config: &Config, protection: &ProtectionArgs, json: bool) -> Result<()> {
    // Now rather than once it has enrolled.
    config.features.iter().try_for_each(|feature| feature.check())?;
    config.leader.addresses()?;
    let file = config.drone.read_deployment()?;
    config.drone.kgc_addresses(&file)?;
    monitoring::check_address(config.drone.metrics)?;
    for feature in &config.features {
        feature.check_ports().await?;
    }
    let shutdown = Shutdown::listen()?;
    private_file::create_directory(&config.drone.data_dir)?;
    let token = token(config, &file)?;
    let (drone, records) = DroneService::open(config, &file, |new| protection.obtain(new), Missing::Create)?;
    let (events, _) = broadcast::channel(EVENTS);
    let (refused, refusals) = mpsc::channel(1);
    let (output, metrics) = (StandardOutput { json }, LeaderMetrics::default());
    let mut service = LeaderService { drone, config, output, metrics, events, refused, refusals, shutdown };
    service.begin_with(token.as_ref(), records.is_empty())?;
    service.serve(token).await
}

fn token(config: &Config, file: &DeploymentFile) -> Result<Option<IssuedToken<Ristretto255>>> {
    NodeState::refuse_kgc(&config.drone.data_dir)?;
    match &config.drone.token {
        Some(path) => Ok(Some(token_file::read(path, &file.pin()?, TokenRole::Leader)?)),
        None if NodeState::exists(&config.drone.data_dir) => Ok(None),
        None => Err(Error::NoToken),
    }
}

/// A leader with its state file open.
struct LeaderService<'a> {
    drone: DroneService<'a, Config>,
    config: &'a Config,
    output: StandardOutput,
    metrics: LeaderMetrics,
    events: broadcast::Sender<LeaderEvent>,
    refused: mpsc::Sender<RefusalReason>,
    refusals: mpsc::Receiver<RefusalReason>,
    shutdown: Shutdown,
}

impl LeaderService<'_> {
    /// Begins an enrolment with this token, unless one was begun with it, or is done. `fresh`: nothing is
    /// stored.
    fn begin_with(&self, token: Option<&IssuedToken<Ristretto255>>, fresh: bool) -> Result<()> {
        let store = &self.drone.store;
        let Some(token) = token else {
            // An earlier start may have ended before the machine could begin to enrol.
            return if fresh { Err(Error::NoToken) } else { Ok(()) };
        };
        let (id, group) = (&token.token.statement.id, group_of(token));
        let stored = store.group();
        if stored.is_some() && self.machine(None)?.status().name.is_some() {
            if let Some(stored) = stored.filter(|stored| stored != group.as_str()) {
                return Err(Error::OtherGroup { stored, given: group.to_string() });
            }
            tracing::info!("already enrolled; the token is not used");
            return Ok(());
        }
        if !store.began_with(id) {
            store.begin(Some(group.as_str()), id)?;
        }
        Ok(())
    }

    /// The machine as it was stored.
    fn machine(&self, token: Option<IssuedToken<Ristretto255>>) -> Result<Leader<Ristretto255>> {
        let records = store::decode(self.drone.store.records()?);
        let machine = Leader::new(self.config.machine(&self.drone, token)?, records)?;
        let machine =
            machine.with_kem(self.drone.file.kem).with_kem_lifetime(self.config.leader.kem_lifetime);
        let refuses = self.config.drone.refuse_stale_revocations;
        Ok(if refuses { machine.with_stale_lists_refused() } else { machine })
    }

    async fn serve(&mut self, token: Option<IssuedToken<Ristretto255>>) -> Result<()> {
        let leader = self.machine(token)?;
        self.drone.file.keep(&self.config.drone.data_dir)?;
        let group = leader.status().group;
        let Some((machine, gate_task)) = self.gated(leader, &group).await? else { return Ok(()) };
        match machine.status().members {
            0 => tracing::info!("the group is {group}, without members yet"),
            members => tracing::info!("the group is {group}, with {members} on the roster"),
        }
        if let Some(told) = terminal::not_reachable(&self.config.leader.listen).filter(|_| !self.output.json)
        {
            self.output.line(&told);
        }
        let node = self.node(&group)?;
        let context = OpenContext { deployment: &self.drone.deployment, store: &self.drone.store };
        let parts = RunningParts::open(&self.config.features, context).await?;
        let (driver, running) = self.driver(&node, machine, &parts)?;
        let looking = parts.clone();
        let driver = driver.with_inspector(move |now, machine, durable| {
            looking.look(now, RoleMachine::Leader(machine), durable);
        });
        let (metrics, troubles) = (self.metrics.clone(), self.metrics.troubles.clone());
        let look = move |machine: &ServiceLeader, unreached: &[_]| {
            metrics.refresh(machine, machine.relay_counts(), unreached)
        };
        let drone = &self.config.drone;
        let place = MonitorPlace { role: Config::NAME, data_dir: &drone.data_dir, address: drone.metrics };
        let register = |registry: &mut _| {
            parts.register(registry);
            self.metrics.register(registry);
        };
        let _monitor = health::monitor(place, running.machine.clone(), troubles, register, look).await?;
        running.hand_over().await;
        let mut tasks = JoinSet::new();
        let events = self.events.clone();
        let answering = parts.clone();
        let answer = move |running, request| {
            let (events, parts) = (events.clone(), answering.clone());
            let is_status = matches!(request, control::LeaderRequest::Status { .. });
            async move {
                let answered = control::answer(running, events, parts.clone(), request).await;
                if is_status { parts.with_report(answered) } else { answered }
            }
        };
        let node_that_runs: Arc<dyn RunningNode> = Arc::new(RunningMember(running.machine.clone()));
        let place = (drone.data_dir.as_path(), Config::NAME);
        let _control = running.serve(&mut tasks, place, (node_that_runs.clone(), parts.clone()), answer)?;
        tasks.spawn(confirm_clock(running.machine.clone()));
        let channels = channels(Config::FEATURES);
        let context = ServiceContext { node: &node, group: &group, channels, running: node_that_runs };
        parts.start(&context, &mut tasks);
        if let Some(task) = gate_task {
            tasks.spawn(task(running));
        } else if self.config.drone.attributes {
            tasks.spawn(running.keep_fetched());
        }
        let goal = std::future::pending::<Result<()>>();
        run_until(driver, &mut self.shutdown, &mut self.refusals, goal).await.map(drop)
    }

    /// Puts the gate of a feature before a leader, if this build has one: its machine, and the task beside it. `None` if a
    /// signal came first.
    async fn gated(
        &mut self,
        mut leader: Leader<Ristretto255>,
        group: &Name,
    ) -> Result<Option<(GroupLeader, Option<GateTask>)>> {
        let Some(gate) = self.config.features.iter().find_map(|feature| feature.gate()) else {
            return Ok(Some((leader.into(), None)));
        };
        let keys = self.drone.store.keys(&self.drone.deployment);
        if gate.lacks_authorities(group, &keys)? {
            if self.fetch_authorities(leader.into()).await?.is_none() {
                return Ok(None);
            }
            leader = self.machine(None)?;
        }
        let LeaderBehindGate { machine, task } = gate.put_before(leader, &keys)?;
        Ok(Some((GroupLeader::Gated(machine), task)))
    }

    /// Sets up the driver of a machine.
    fn driver(
        &self,
        node: &NodeConfig,
        machine: GroupLeader,
        parts: &RunningParts,
    ) -> Result<(LeaderDriver, RunningDrone<GroupLeader>)> {
        let (failures, _) = broadcast::channel(EVENTS);
        let host = LeaderHost {
            store: self.drone.store.clone(),
            void: false,
            peer_id: node.key.peer_id(),
            places: BTreeMap::new(),
            group: machine.status().group.to_string(),
            output: self.output,
            events: self.events.clone(),
            failures: failures.clone(),
            refused: self.refused.clone(),
            metrics: self.metrics.clone(),
            parts: parts.clone(),
            wave: Wave::default(),
            refusals: ToldRefusals::default(),
            differing: ToldRefusals::default(),
        };
        let (driver, handle) = Driver::new(node, leader_with_parts(Config::FEATURES, machine), host, OsRng)?;
        let paths = Paths { relay: |_| GroupRelay::Peers, audience: member_connections };
        Ok((driver, RunningDrone::new(handle, self.drone.client(CALL_TIME)?, paths, failures)))
    }

    /// The first start with a gate: enrols if need be, and fetches the authorities from the KGC. No drone
    /// can join meanwhile, because the node does not listen. `None` if a signal came first.
    async fn fetch_authorities(&mut self, machine: GroupLeader) -> Result<Option<()>> {
        let mut node = self.node(&machine.status().group)?;
        (node.listen, node.topic) = (Vec::new(), None);
        node.dial.retain(|(route, _)| *route == Route::Kgc);
        let (driver, running) = self.driver(&node, machine, &RunningParts::default())?;
        let asking = async move {
            let keypair = running.enrolled().await;
            running.client.fetch(&keypair).await.map(drop)
        };
        run_until(driver, &mut self.shutdown, &mut self.refusals, asking).await
    }

    fn node(&self, group: &Name) -> Result<NodeConfig> {
        let leader = &self.config.leader;
        let key = NodeKey::from_seed(self.drone.store.seed())?;
        let mut node = NodeConfig::hub(key, Transport::SERVICE, leader.max_members as usize);
        node.reserve_files()?;
        node.clocks = Clocks::Everybody;
        node.detect_duplicates = true;
        node.introduction = Some(Introduction::new(Service::Leader, &self.drone.deployment.fingerprint()));
        self.config.features.iter().try_for_each(|feature| feature.configure(&mut node))?;
        let kgcs = self.drone.kgc_addresses()?.into_iter().map(|address| (Route::Kgc, address));
        let (listen, peers) = leader.addresses()?;
        node.listen = listen;
        node.dial = kgcs.chain(peers.into_iter().map(|address| (Route::Leader, address))).collect();
        if !leader.peer.is_empty() {
            // A leader that comes back is wanted soon, and one that is gone is noticed by its silence.
            node.redial_ceiling = leader.silence.min(node.redial_ceiling);
        }
        node.topic = Some(group_topic(group.as_str()));
        Ok(node)
    }
}

/// Reports to the leader whether other nodes have its time.
async fn confirm_clock(mut handle: Handle<ServiceLeader>) {
    let mut confirmed = false;
    while let Ok(others) = handle.other_clocks_changed().await {
        if others.agree() != confirmed {
            confirmed = others.agree();
            if handle.command(Either::Left(LeaderCommand::ClockConfirmed(confirmed).into())).await.is_err() {
                return;
            }
        }
    }
}

/// Counts the connections, among those that a message was handed to, that lead to members: an evicted drone
/// keeps its own.
fn member_connections(machine: &ServiceLeader, handed: &[Peer]) -> usize {
    let handed: BTreeSet<_> = handed.iter().collect();
    let reached = |peer: &Peer| handed.contains(&machine.relay_before(*peer).unwrap_or(*peer));
    machine.member_connections().filter(reached).count()
}

fn group_of(token: &IssuedToken<Ristretto255>) -> Name {
    match &token.token.statement.role {
        Role::Leader { group, .. } => group.clone(),
        // Reading the token has refused an edge's.
        Role::Edge => token.token.statement.name.clone(),
    }
}
