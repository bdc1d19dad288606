//! Runs an edge (`edge enrol`, `edge run`): its machine, its state file and the network.
//!
//! Enrolling is a run of its own, with the KGC as the only partner; once enrolled an edge has no business
//! with the KGC, so in a group of thousands none of them keeps a connection to it.

pub(crate) mod confirmation;
pub(crate) mod connection_history;
mod host;
mod member;
mod memberships;
mod observer;
pub(crate) mod send_queue;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{IssuedToken, Name, Ristretto255};
use quiver_group::edge::EdgeStatus;
use quiver_group::{Edge, EdgeCommand, EdgeConfig};
use quiver_machine::{Either, Route, Snapshot};
use quiver_net::{
    Clocks, Driver, Handle, Introduction, Multiaddr, NodeConfig, NodeKey, Service, Transport, Unreached,
    group_topic,
};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::feature::{
    GroupEdge, OpenContext, RoleMachine, RunningNode, RunningParts, ServiceContext, channels,
};
use quiver_service::drone::send::{GroupRelay, Paths};
use quiver_service::drone::service::{CALL_TIME, run_until};
use quiver_service::drone::{
    DroneMachine, DroneProgram as _, DroneService, Error, Result, RunningDrone, health, with_parts,
};
use quiver_service::monitoring::{self, Monitor, MonitorPlace};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::Protection;
use quiver_service::shutdown::Shutdown;
use quiver_service::token_file::{self, TokenRole};
use quiver_service::{clock, private_file, terminal, token_directory};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use self::connection_history::ConnectionHistory;
use self::host::{EdgeHost, Keeping, ObservedConnections};
use self::member::RunningMember;
pub(crate) use self::observer::{EdgeNodeEvent, Observer, Printer, RunningEdge};
use self::send_queue::SendQueue;
use crate::config::{Config, newest};
use crate::control::{self, ControlContext};
use crate::metrics::EdgeMetrics;

/// The machine of this service.
pub(crate) type ServiceEdge = DroneMachine<GroupEdge>;

/// Name in errors of a token that came as text.
const GIVEN: &str = "the token given";
/// Time for a leader to ask for the group's messages over a new connection: it does so first of all.
const SUBSCRIPTION_TIME: Duration = Duration::from_secs(10);
/// Failed sends kept for the subcommand that waits for one.
const FAILURES: usize = 16;

/// Task of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Enrol and end.
    Enrol,
    /// Enrol if need be, join, stay.
    Run,
}

/// Parts that an edge is started with besides its settings.
pub(crate) struct Start<F> {
    /// Gives what opens the state file; is told whether the file is new.
    pub(crate) obtain: F,
    /// The text of a token, in place of a file.
    pub(crate) token: Option<Zeroizing<Vec<u8>>>,
    /// Receives what happens.
    pub(crate) observer: Arc<dyn Observer>,
    /// Event that ends it.
    pub(crate) shutdown: Shutdown,
}

/// Enrols, or runs until it is shut down.
pub(crate) async fn run<F>(config: &Config, start: Start<F>, task: Task) -> Result<()>
where
    F: FnOnce(bool) -> quiver_service::Result<Protection>,
{
    let Start { obtain, token: text, observer, shutdown } = start;
    let file = config.drone.read_deployment()?;
    // Now rather than once a state is made or it has enrolled.
    config.check_addresses(&file)?;
    if task == Task::Run {
        config.features.iter().try_for_each(|feature| feature.check())?;
        config.leader_addresses()?;
        monitoring::check_address(config.drone.metrics)?;
        for feature in &config.features {
            feature.check_ports().await?;
        }
    }
    private_file::create_directory(&config.drone.data_dir)?;
    let token = match text {
        Some(text) => Some(token_file::read_text(&text, Path::new(GIVEN), &file.pin()?, TokenRole::Edge)?),
        None => token(config, &file)?,
    };
    let (drone, records) = DroneService::open(config, &file, obtain, Missing::Create)?;
    file.keep(&config.drone.data_dir)?;
    let history = ConnectionHistory::new(clock::unix_now());
    let (metrics, parts) = (EdgeMetrics::default(), RunningParts::default());
    let service = EdgeService { drone, config, observer, metrics, parts, history, shutdown };
    service.work(newest(records), token, task).await
}

fn token(config: &Config, file: &DeploymentFile) -> Result<Option<IssuedToken<Ristretto255>>> {
    let data_dir = &config.drone.data_dir;
    NodeState::refuse_kgc(data_dir)?;
    let begun = NodeState::exists(data_dir) && !token_directory::has_taken(data_dir);
    let path = match (&config.drone.token, &config.edge.token_dir) {
        (Some(path), _) => path.clone(),
        (None, _) if begun => return Ok(None),
        (None, Some(directory)) => token_directory::take(directory, data_dir)?,
        (None, None) => return Err(Error::NoToken),
    };
    Ok(Some(token_file::read(&path, &file.pin()?, TokenRole::Edge)?))
}

/// Explains why no key came, as far as is seen from here: `troubles` are what KGCs did, if they answered; `connected` is
/// true if there was a connection with one.
fn unanswered(unreached: &[Unreached], troubles: &[String], connected: bool, deployment: &Name) -> String {
    let unreached = unreached.iter().map(Unreached::to_string);
    let said: Vec<_> = troubles.iter().cloned().chain(unreached).collect();
    if said.is_empty() && !connected {
        return "there was no connection to the KGC in this time; --enrol-timeout gives it more".into();
    }
    if said.is_empty() {
        return format!(
            "the KGC is connected and has not answered; does it run, as a KGC, for deployment {deployment}? Its log \
             says what it refuses"
        );
    }
    said.join("; ")
}

/// The ways of an edge's messages.
const PATHS: Paths<GroupEdge> = Paths { relay, audience: |_, handed| handed.len() };

/// Finds the node that passes a drone's messages on to its group.
fn relay(edge: &GroupEdge) -> GroupRelay {
    let Some(edge) = edge.named() else { return GroupRelay::Peers };
    match edge.status().leader {
        Some(leader) => GroupRelay::Leader(leader),
        None if edge.has_leader() => GroupRelay::Awaited,
        None => GroupRelay::Nobody,
    }
}

/// An edge with its state file open.
struct EdgeService<'a> {
    drone: DroneService<'a, Config>,
    config: &'a Config,
    observer: Arc<dyn Observer>,
    metrics: EdgeMetrics,
    /// Parts of features, once it is enrolled.
    parts: RunningParts,
    history: ConnectionHistory,
    shutdown: Shutdown,
}

impl EdgeService<'_> {
    async fn work(
        mut self,
        state: Option<Snapshot>,
        token: Option<IssuedToken<Ristretto255>>,
        task: Task,
    ) -> Result<()> {
        let mut machine =
            Edge::new(self.config.machine(&self.drone), state.as_ref())?.with_kem(self.drone.file.kem);
        if machine.keypair().is_none() {
            let address = self.config.drone.metrics.filter(|_| task != Task::Enrol);
            if self.enrol(state, token, address).await?.is_none() {
                return Ok(());
            }
            self.spend_token();
            // Opening the file anew would stretch the passphrase once more.
            let state = newest(self.drone.store.records()?);
            machine =
                Edge::new(self.config.machine(&self.drone), state.as_ref())?.with_kem(self.drone.file.kem);
            if let (Task::Enrol, Some(name)) = (task, &machine.status().name) {
                terminal::line(&format!("enrolled as {name}"))?;
            }
        } else if task == Task::Enrol {
            terminal::line("already enrolled")?;
        }
        if task == Task::Run {
            let context = OpenContext { deployment: &self.drone.deployment, store: &self.drone.store };
            self.parts = RunningParts::open(&self.config.features, context).await?;
        }
        match task {
            Task::Enrol => Ok(()),
            Task::Run => match self.config.memberships() {
                Some(memberships) => self.stay_otherwise(memberships, &machine).await,
                None => self.stay(machine).await,
            },
        }
    }

    /// Enrolled: the token is of no more use to anybody.
    fn spend_token(&self) {
        if let Some(directory) = &self.config.edge.token_dir
            && let Err(error) = token_directory::spend(directory, &self.config.drone.data_dir)
        {
            tracing::warn!(%error, "the token could not be emptied; nobody else can enrol with it");
        }
    }

    /// Enrols; what was begun is kept, so that it can be gone on with. `None` if a signal came first.
    async fn enrol(
        &mut self,
        mut state: Option<Snapshot>,
        token: Option<IssuedToken<Ristretto255>>,
        metrics: Option<SocketAddr>,
    ) -> Result<Option<()>> {
        match &token {
            Some(token) => self.begin_with(&mut state, token)?,
            None if state.is_none() => return Err(Error::NoToken),
            None => {}
        }
        let node = self.node(Route::Kgc, self.drone.kgc_addresses()?)?;
        let (enrolled, mut done) = mpsc::channel(1);
        let (refused, mut refusals) = mpsc::channel(1);
        let host = EdgeHost { enrolled, refused, ..self.host() };
        let machine = Edge::new(EdgeConfig { token, ..self.config.machine(&self.drone) }, state.as_ref())?
            .with_kem(self.drone.file.kem);
        let machine: ServiceEdge = with_parts(Config::FEATURES, machine.into());
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        self.observer.opened();
        // Closed again before the endpoint of the running drone opens, whose counters of bytes are others.
        let monitor = self.monitor(metrics, handle.clone(), None).await?;
        let within = self.config.edge.enrol_timeout;
        let (deployment, troubles) = (self.drone.deployment.name().clone(), self.metrics.troubles.clone());
        let goal = async {
            let enrolled = timeout(within, done.recv()).await.map(drop);
            let connected = || handle.metrics().connections_opened.get() > 0;
            let why = |_| unanswered(&handle.unreached(), &troubles.all(), connected(), &deployment);
            enrolled.map_err(why).map_err(|why| Error::NotEnrolledInTime { within, why })
        };
        let ended = run_until(driver, &mut self.shutdown, &mut refusals, goal).await;
        monitor.close().await;
        ended
    }

    /// Another token than the one an enrolment was begun with starts a new one: the old token was no good.
    fn begin_with(&self, state: &mut Option<Snapshot>, token: &IssuedToken<Ristretto255>) -> Result<()> {
        let statement = &token.token.statement;
        if self.drone.store.began_with(&statement.id) {
            return Ok(());
        }
        let only = <&[Name; 1]>::try_from(statement.groups.as_slice()).ok().map(|[only]| only.as_str());
        self.drone.store.begin(only, &statement.id)?;
        *state = None;
        Ok(())
    }

    /// Joins and stays until a signal comes.
    async fn stay(mut self, machine: Edge<Ristretto255>) -> Result<()> {
        let group = self.group(&machine)?;
        let before = machine.status();
        let mut node = self.node(Route::Leader, self.config.leader_addresses()?)?;
        node.topic = Some(group_topic(group.as_str()));
        self.config.features.iter().try_for_each(|feature| feature.configure(&mut node))?;
        let mut machine = machine.with_group(group.clone());
        if self.config.drone.refuse_stale_revocations {
            machine = machine.with_stale_lists_refused();
        }
        let status = EdgeStatus { group: Some(group.clone()), ..machine.status() };
        if let Some(joined) = before.group.as_ref().filter(|_| before.slot.is_some()) {
            // Durable with the record that ends the membership, if another group is joined now.
            self.drone.store.set_group(joined.as_str());
        }
        let former = before.group;
        let (failures, _) = broadcast::channel(FAILURES);
        let host = EdgeHost { failures: failures.clone(), ..self.host() };
        let machine = with_parts::<GroupEdge>(Config::FEATURES, machine.into());
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        let parts = self.parts.clone();
        let driver = driver.with_inspector(move |now, machine, durable| {
            if let Some(edge) = machine.named() {
                parts.look(now, RoleMachine::Edge(edge), durable);
            }
        });
        let leaders = Some(node.dial.len());
        let queue = SendQueue::open(&self.drone.store);
        self.metrics.queue = Some(queue.clone());
        let _monitor = self.monitor(self.config.drone.metrics, handle.clone(), leaders).await?;
        if former.is_some_and(|former| former != group) {
            handle.command(Either::Left(EdgeCommand::Join(group.clone()))).await?;
        }
        let running = RunningDrone::new(handle, self.drone.client(CALL_TIME)?, PATHS, failures);
        running.hand_over().await;
        self.observer.opened();
        self.observer.running(status, Arc::new(running.clone()));
        let mut tasks = JoinSet::new();
        let context = ControlContext { history: self.history.clone(), queue: Some(queue.clone()) };
        let parts = self.parts.clone();
        let answer = move |running, request| {
            let parts = (request == control::EdgeRequest::Status).then(|| parts.clone());
            let answer = control::answer(running, context.clone(), request);
            async move { parts.unwrap_or_default().with_report(answer.await) }
        };
        let member = RunningMember { edge: running.clone(), history: self.history.clone() };
        let node_that_runs: Arc<dyn RunningNode> = Arc::new(member);
        let place = (self.config.drone.data_dir.as_path(), Config::NAME);
        let _control =
            running.serve(&mut tasks, place, (node_that_runs.clone(), self.parts.clone()), answer)?;
        let context = ServiceContext {
            node: &node,
            group: &group,
            channels: channels(Config::FEATURES),
            running: node_that_runs,
        };
        self.parts.start(&context, &mut tasks);
        tasks.spawn(queue.deliver(running.clone(), group.clone()));
        if self.config.drone.attributes {
            tasks.spawn(running.keep_fetched());
        }
        let (_refused, mut refusals) = mpsc::channel(1);
        let stopped =
            run_until(driver, &mut self.shutdown, &mut refusals, std::future::pending::<Result<()>>());
        stopped.await.map(drop)
    }

    /// A node that dials these addresses.
    fn node(&self, route: Route, addresses: Vec<Multiaddr>) -> Result<NodeConfig> {
        let mut node = NodeConfig::spoke(NodeKey::from_seed(self.drone.store.seed())?, Transport::SERVICE);
        node.clocks = Clocks::Dialled;
        node.detect_duplicates = true;
        node.subscription_timeout = Some(SUBSCRIPTION_TIME);
        node.introduction = Some(Introduction::new(Service::Edge, &self.drone.deployment.fingerprint()));
        node.dial = addresses.into_iter().map(|address| (route, address)).collect();
        Ok(node)
    }

    /// A host without a waiting caller.
    fn host(&self) -> EdgeHost {
        EdgeHost {
            store: self.drone.store.clone(),
            keeping: Keeping::Own,
            observer: Arc::clone(&self.observer),
            connections: ObservedConnections::new(&self.observer),
            enrolled: mpsc::channel(1).0,
            refused: mpsc::channel(1).0,
            failures: broadcast::channel(FAILURES).0,
            metrics: self.metrics.clone(),
            history: self.history.clone(),
            parts: self.parts.clone(),
        }
    }

    /// Serves metrics and health of the running drone. `leaders`: how many addresses of leaders there are;
    /// `None` while it enrols.
    async fn monitor(
        &self,
        address: Option<SocketAddr>,
        handle: Handle<ServiceEdge>,
        leaders: Option<usize>,
    ) -> Result<Monitor> {
        let metrics = self.metrics.clone();
        let look = move |machine: &ServiceEdge, unreached: &[_]| metrics.refresh(machine, unreached, leaders);
        let troubles = self.metrics.troubles.clone();
        let register = |registry: &mut _| {
            self.parts.register(registry);
            self.metrics.register(registry);
        };
        let place = MonitorPlace { role: Config::NAME, data_dir: &self.config.drone.data_dir, address };
        Ok(health::monitor(place, handle, troubles, register, look).await?)
    }

    /// The group to join: the one given, the one that the enrolled drone was a member of last, or the only one
    /// in its identity.
    fn group(&self, drone: &Edge<Ristretto255>) -> Result<Name> {
        let allowed = drone.keypair().map_or(&[][..], |keypair| &keypair.public().identity.groups);
        // Where a feature makes the memberships, the drone shows no identity.
        let is_otherwise = self.config.memberships().is_some();
        let is_allowed = |group: &Name| is_otherwise || allowed.contains(group);
        let of_identity = || allowed.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let Some(given) = &self.config.edge.group else {
            let member = drone.status();
            let member = member.group.filter(|_| member.slot.is_some());
            let joined = || self.drone.store.group().and_then(|joined| Name::new(&joined).ok());
            let known = member.or_else(joined).filter(|group| is_allowed(group));
            let only = || <&[Name; 1]>::try_from(allowed).ok().map(|[only]| only.clone());
            return known.or_else(only).ok_or_else(|| match allowed {
                [] => Error::config("this drone's identity allows no group: enrol with a token that does"),
                _ => Error::config(format!("which group? give --group, one of {}", of_identity())),
            });
        };
        let group = Name::new(given).map_err(|error| Error::config(format!("`group`: {given}: {error}")))?;
        if is_allowed(&group) {
            return Ok(group);
        }
        let what = match allowed {
            [] => "none: enrol with a token that does".to_string(),
            _ => of_identity(),
        };
        Err(Error::config(format!("`group`: this drone's identity does not allow {group}; it allows {what}")))
    }
}
