//! `edge enroll` and `edge run`: the machine, its state file and the network.
//!
//! Enrolling is a run of its own, with the KGC as the only partner; once enrolled an edge has no business with the KGC,
//! so in a group of thousands none of them keeps a connection to it.

mod anonymous;
mod host;

use std::net::SocketAddr;

use quiver_ainq::{Deployment, IssuedToken, Name};
use quiver_net::{Clocks, Driver, Handle, NodeConfig, NodeKey, Transport, group_topic};
use quiver_role::admission::AnyEdge;
use quiver_role::{
    Edge, EdgeCommand, EdgeConfig, Either, Envelopes, Kgcs, Node, QuorumSuite, Route, Snapshot,
};
use quiver_service::control::Server;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::envelope;
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::health;
use quiver_service::monitoring::Monitor;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::shutdown::Shutdown;
use quiver_service::token_file::{self, Wanted};
use quiver_service::{monitoring, private_file, terminal, token_directory, with_suite};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::timeout;

use self::host::{EdgeHost, Enrolment, Keeping, Milestone};
use crate::attributes;
use crate::config::Config;
use crate::control;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::store::Store;

/// The machine of this service.
pub(crate) type EdgeNode<S> = Node<AnyEdge<S>, Envelopes>;

/// Failed sends kept for the subcommand that waits for one.
const FAILURES: usize = 16;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Enrol and end.
    Enrol,
    /// Enrol if need be, join, stay.
    Run {
        /// Print events as JSON.
        json: bool,
    },
}

/// Enrols, or runs until SIGTERM or SIGINT.
pub(crate) async fn run(config: Config, protection: ProtectionArgs, task: Task) -> Result<()> {
    let file = config.read_deployment()?;
    with_suite!(file.suite()?, S => {
        let deployment = file.pin::<S>()?;
        let metrics = Metrics::default();
        Drone { config: &config, file: &file, deployment, metrics }.work(&protection, task).await
    })
}

/// The settings of this drone.
struct Drone<'a, S: QuorumSuite> {
    config: &'a Config,
    file: &'a DeploymentFile,
    deployment: Deployment<S>,
    metrics: Metrics,
}

impl<S: QuorumSuite> Drone<'_, S> {
    async fn work(&self, protection: &ProtectionArgs, task: Task) -> Result<()> {
        let mut shutdown = Shutdown::listen()?;
        private_file::create_directory(&self.config.data_dir)?;
        let token = self.token()?;
        let by = protection.obtain(!NodeState::exists(&self.config.data_dir))?;
        let (store, mut state) = Store::open(&self.config.data_dir, &self.deployment, &by, Missing::Create)?;
        self.file.keep(&self.config.data_dir)?;
        if self.name(state.as_ref())?.is_none() {
            let json = matches!(task, Task::Run { json: true });
            let address = self.config.metrics.filter(|_| task != Task::Enrol);
            let ended = self.enrol(store.clone(), state, token, json, address, &mut shutdown).await?;
            if ended == Enrolment::Interrupted {
                return Ok(());
            }
            self.spend_token();
            // Opening the file anew would stretch the passphrase once more.
            state = store.newest()?;
        } else if task == Task::Enrol {
            terminal::line("already enrolled")?;
        }
        match task {
            Task::Enrol => Ok(()),
            Task::Run { json } if self.config.anonymous => {
                self.stay_anonymous(store, state, json, shutdown).await
            }
            Task::Run { json } => self.stay(store, state, json, shutdown).await,
        }
    }

    fn token(&self) -> Result<Option<IssuedToken<S>>> {
        let data_dir = &self.config.data_dir;
        let begun = NodeState::exists(data_dir) && !token_directory::has_taken(data_dir);
        let path = match (&self.config.token, &self.config.token_dir) {
            (Some(path), _) => path.clone(),
            (None, _) if begun => return Ok(None),
            (None, Some(directory)) => token_directory::take(directory, data_dir)?,
            (None, None) => return Err(Error::NoToken),
        };
        Ok(Some(token_file::read(&path, &self.deployment, Wanted::Edge)?))
    }

    /// Enrolled: the token is of no more use to anybody.
    fn spend_token(&self) {
        if let Some(directory) = &self.config.token_dir
            && let Err(error) = token_directory::spend(directory, &self.config.data_dir)
        {
            tracing::warn!(%error, "the token could not be emptied; nobody else can enrol with it");
        }
    }

    /// The name in the state, once enrolled.
    fn name(&self, state: Option<&Snapshot>) -> Result<Option<Name>> {
        Ok(Edge::new(self.settings(None, None), state)?.status().name)
    }

    /// Enrols; what was begun is kept, so that it can be gone on with.
    async fn enrol(
        &self,
        store: Store,
        mut state: Option<Snapshot>,
        token: Option<IssuedToken<S>>,
        json: bool,
        metrics: Option<SocketAddr>,
        shutdown: &mut Shutdown,
    ) -> Result<Enrolment> {
        match &token {
            Some(token) => self.begin_with(&store, &mut state, token)?,
            None if state.is_none() => return Err(Error::NoToken),
            None => {}
        }
        let key = NodeKey::from_seed(store.seed())?;
        let mut node = NodeConfig::spoke(key, Transport::TcpAndQuic);
        node.clocks = Clocks::Dialled;
        node.detect_duplicates = true;
        let kgcs = self.config.kgc_addresses(self.file)?;
        node.dial = kgcs.into_iter().map(|address| (Route::Kgc, address)).collect();
        let (milestones, mut reached) = mpsc::channel(1);
        let (failures, _) = broadcast::channel(FAILURES);
        let counted = self.metrics.clone();
        let host = EdgeHost { store, keeping: Keeping::Own, json, milestones, failures, metrics: counted };
        let machine = EdgeNode::new(
            Edge::new(self.settings(token, None), state.as_ref())?.into(),
            Envelopes::default(),
        );
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        // Closed again before the endpoint of the running drone opens, whose counters of bytes are others.
        let monitor = self.monitor(metrics, &handle, None).await?;
        let patience = self.config.enrol_timeout;
        let (end, ended) = oneshot::channel();
        let wait = async {
            let outcome = tokio::select! {
                _ = shutdown.requested() => Ok(Enrolment::Interrupted),
                milestone = timeout(patience, reached.recv()) => match milestone {
                    Ok(Some(Milestone::Refused(reason))) => Err(Error::Refused(reason)),
                    Ok(_) => Ok(Enrolment::Done),
                    Err(_) => Err(Error::TimedOut(patience)),
                },
            };
            // The receiver lives until the driver has stopped.
            let _ = end.send(outcome);
        };
        driver.run(wait).await?;
        monitor.close().await;
        ended.await.unwrap_or(Ok(Enrolment::Interrupted))
    }

    /// Another token than the one an enrolment was begun with starts a new one: the old token was no good.
    fn begin_with(&self, store: &Store, state: &mut Option<Snapshot>, token: &IssuedToken<S>) -> Result<()> {
        let statement = &token.token.statement;
        if store.began_with(&statement.id) {
            return Ok(());
        }
        if let [only] = statement.groups.as_slice() {
            store.set_group(only.as_str());
        }
        store.begin(&statement.id)?;
        *state = None;
        Ok(())
    }

    /// Joins and stays until a signal comes.
    async fn stay(
        &self,
        store: Store,
        state: Option<Snapshot>,
        json: bool,
        mut shutdown: Shutdown,
    ) -> Result<()> {
        let group = self.group(&store)?;
        let key = NodeKey::from_seed(store.seed())?;
        let mut node = NodeConfig::spoke(key, Transport::TcpAndQuic);
        node.clocks = Clocks::Dialled;
        node.detect_duplicates = true;
        let leaders = self.config.leader_addresses()?;
        node.dial = leaders.into_iter().map(|address| (Route::Leader, address)).collect();
        node.topic = Some(group_topic(group.as_str()));
        let mut machine = Edge::new(self.settings(None, Some(group.clone())), state.as_ref())?;
        if self.config.refuse_stale_revocations {
            machine = machine.with_stale_lists_refused();
        }
        let former = machine.status().group;
        let (milestones, _unheard) = mpsc::channel(1);
        let (failures, _) = broadcast::channel(FAILURES);
        let plan = self.config.fetching(self.file, attributes::PATIENCE_OF_A_CALL)?;
        let client = KeyClient::new(store.keys(&self.deployment), plan);
        let metrics = self.metrics.clone();
        let (keeping, told) = (Keeping::Own, failures.clone());
        let host = EdgeHost { store, keeping, json, milestones, failures: told, metrics };
        let machine = Node::new(machine.into(), Envelopes::default());
        let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
        let _monitor = self.monitor(self.config.metrics, &handle, Some(node.dial.len())).await?;
        if former.is_some_and(|former| former != group) {
            handle.command(Either::Left(EdgeCommand::Join(group))).await?;
        }
        envelope::hand_over(&handle, &client).await;
        let (_control, calls) = Server::start(&self.config.data_dir)?;
        let fetching = self.config.attributes.then(|| {
            let (handle, client) = (handle.clone(), client.clone());
            tokio::spawn(async move {
                if let Some(keypair) = control::keypair(&handle, &client).await {
                    envelope::keep_fetched(&handle, &client, &keypair).await;
                }
            })
        });
        let answering = tokio::spawn(control::answer(calls, handle, failures, client));
        let stopped = driver
            .run(async {
                let signal = shutdown.requested().await;
                tracing::info!(signal, "stopping");
            })
            .await;
        answering.abort();
        fetching.inspect(tokio::task::JoinHandle::abort);
        Ok(stopped?)
    }

    /// Serves metrics and health of the running drone. `leaders`: how many addresses of leaders there are; none while it enrols.
    async fn monitor(
        &self,
        address: Option<SocketAddr>,
        handle: &Handle<EdgeNode<S>>,
        leaders: Option<usize>,
    ) -> Result<Monitor> {
        let metrics = self.metrics.clone();
        let mut registry = monitoring::registry(env!("CARGO_PKG_VERSION"));
        metrics.register(&mut registry);
        handle.metrics().register(&mut registry);
        let monitor = Monitor::start(address, registry, "starting").await?;
        let troubles = metrics.troubles.clone();
        health::watch(&monitor, handle.clone(), troubles, move |machine, unreached| {
            metrics.look(machine, unreached, leaders)
        });
        Ok(monitor)
    }

    /// The group to join: the one given, the one joined before, or the only one in the token.
    fn group(&self, store: &Store) -> Result<Name> {
        let chosen = self.config.group.clone().or_else(|| store.group());
        let Some(chosen) = chosen else {
            return Err(Error::Config("which group? give --group".into()));
        };
        let group =
            Name::new(&chosen).map_err(|error| Error::Config(format!("`group`: {chosen}: {error}")))?;
        store.set_group(&chosen);
        Ok(group)
    }

    fn settings(&self, token: Option<IssuedToken<S>>, group: Option<Name>) -> EdgeConfig<S> {
        EdgeConfig {
            deployment: self.deployment.clone(),
            group,
            token,
            kgcs: Kgcs::quorum(self.file.kgc_ids()),
            timing: self.config.timing(),
        }
    }
}
