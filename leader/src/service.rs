//! `leader serve`: the machine, its state file and the network, until a signal comes.

use std::convert::Infallible;
use std::time::Duration;

use quiver_ainq::{Deployment, IssuedToken, Name, Role, Suite};
use quiver_net::{
    Clocks, Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, Transport, group_topic,
};
use quiver_role::admission::{AdmittingLeader, AdmittingLeaderEvent};
use quiver_role::{
    Either, EnvelopeEvent, Envelopes, Kgcs, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord,
    Node, Peer, QuorumSuite, Reason, Route, Source,
};
use quiver_service::config::parse_all;
use quiver_service::control::Server;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::envelope::{self, told};
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::health;
use quiver_service::monitoring::Monitor;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::shutdown::Shutdown;
use quiver_service::terminal::{self, Message};
use quiver_service::token_file::{self, Wanted};
use quiver_service::{clock, monitoring, private_file, with_suite};
use rand::rngs::OsRng;
use tokio::sync::{broadcast, mpsc};

use crate::attributes;
use crate::config::Config;
use crate::control;
use crate::demand::{self, PolicyFile};
use crate::error::{Error, Result};
use crate::gateway;
use crate::metrics::{Metrics, Wave};
use crate::store::Store;

/// The machine of this service.
pub(crate) type LeaderNode<S> = Node<AdmittingLeader<S>, Envelopes>;

/// What it has made durable.
type Record = Either<LeaderRecord, Infallible>;

/// Events kept for subcommands that wait for one.
const EVENTS: usize = 1024;

/// Serves until SIGTERM or SIGINT, or until the KGC refuses for good.
pub(crate) async fn run(config: Config, protection: ProtectionArgs, json: bool) -> Result<()> {
    let file = config.read_deployment()?;
    with_suite!(file.suite()?, S => serve::<S>(&config, &protection, &file, json).await)
}

async fn serve<S: QuorumSuite>(
    config: &Config,
    protection: &ProtectionArgs,
    file: &DeploymentFile,
    json: bool,
) -> Result<()> {
    let mut shutdown = Shutdown::listen()?;
    private_file::create_directory(&config.data_dir)?;
    let deployment = file.pin::<S>()?;
    let (mut machine, mut store) = restore(config, protection, file, deployment.clone())?;
    file.keep(&config.data_dir)?;
    let group = machine.status().group;
    let mut demanded = None;
    if let Some(path) = &config.admission {
        let wanted = PolicyFile::read(path, &deployment, &group)?;
        if !wanted.is_known(&store.keys(&deployment).keyring()?) {
            match learn(config, file, machine, store, &mut shutdown).await? {
                Learnt::Interrupted => return Ok(()),
                Learnt::Done => (machine, store) = restore(config, protection, file, deployment.clone())?,
            }
        }
        let demand = wanted.demand(&store.keys(&deployment).keyring()?)?;
        demanded = Some(*demand.authority.fingerprint());
        machine = machine.demanding(demand, clock::unix_now()).map_err(|error| wanted.wrong(error))?;
    }
    tracing::info!(%group, members = machine.status().members, "state read");
    let (events, _) = broadcast::channel(EVENTS);
    let (refused, refusal) = mpsc::channel(1);
    let node = node(config, file, &store, &group)?;
    let peer_id = node.key.peer_id();
    let plan = config.fetching(file, attributes::PATIENCE_OF_A_CALL)?;
    let client = KeyClient::new(store.keys(&deployment), plan);
    let metrics = Metrics::default();
    let host = LeaderHost {
        store,
        peer_id,
        group: group.to_string(),
        json,
        events: events.clone(),
        refused,
        metrics: metrics.clone(),
        wave: Wave::default(),
    };
    let boards = gateway::config(config, &node, &group)?;
    let machine = Node::new(machine, Envelopes::default());
    let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
    let _monitor = monitor(config, metrics, &handle).await?;
    envelope::hand_over(&handle, &client).await;
    let (_control, calls) = Server::start(&config.data_dir)?;
    let fetching = match demanded {
        Some(authority) => Some(tokio::spawn(keep_open(handle.clone(), client.clone(), authority))),
        None => config.attributes.then(|| tokio::spawn(fetch(handle.clone(), client.clone()))),
    };
    let confirming = tokio::spawn(confirm_clock(handle.clone()));
    let relaying = boards.map(|boards| tokio::spawn(gateway::serve(boards, handle.clone())));
    let answering = tokio::spawn(control::answer(calls, handle, events, client));
    let (ended, reason) = tokio::sync::oneshot::channel();
    let stopped = driver
        .run(async move {
            // The receiver lives until the driver has stopped.
            let _ = ended.send(wait(shutdown, refusal).await);
        })
        .await;
    answering.abort();
    for task in fetching.into_iter().chain(relaying).chain([confirming]) {
        task.abort();
    }
    stopped?;
    match reason.await {
        Ok(Some(reason)) => Err(Error::Refused(reason)),
        _ => Ok(()),
    }
}

/// Serves metrics and health of the running leader.
async fn monitor<S: Suite>(
    config: &Config,
    metrics: Metrics,
    handle: &Handle<LeaderNode<S>>,
) -> Result<Monitor> {
    let mut registry = monitoring::registry(env!("CARGO_PKG_VERSION"));
    metrics.register(&mut registry);
    handle.metrics().register(&mut registry);
    let monitor = Monitor::start(config.metrics, registry, "starting").await?;
    let troubles = metrics.troubles.clone();
    health::watch(&monitor, handle.clone(), troubles, move |machine, unreached| {
        metrics.look(machine, unreached)
    });
    Ok(monitor)
}

/// Tells the leader whether others have its time.
async fn confirm_clock<S: Suite>(mut handle: Handle<LeaderNode<S>>) {
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

/// Fetches attribute keys as soon as the leader has enrolled.
async fn fetch<S: Suite>(machine: Handle<LeaderNode<S>>, client: KeyClient<S>) {
    loop {
        if let Some(keypair) = control::keypair(&machine, &client).await {
            return envelope::keep_fetched(&machine, &client, &keypair).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The same for a leader that demands a policy, which needs the slot keys of every period.
async fn keep_open<S: Suite>(machine: Handle<LeaderNode<S>>, client: KeyClient<S>, authority: [u8; 32]) {
    loop {
        if let Some(keypair) = control::keypair(&machine, &client).await {
            return demand::keep_open(machine, client, keypair, authority).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What came of learning what a policy is about.
enum Learnt {
    Done,
    Interrupted,
}

/// The first start with a policy: enrols if need be, and asks the KGC which authorities there are. Nobody can join meanwhile, because
/// nothing listens.
async fn learn<S: QuorumSuite>(
    config: &Config,
    file: &DeploymentFile,
    machine: AdmittingLeader<S>,
    store: Store,
    shutdown: &mut Shutdown,
) -> Result<Learnt> {
    let deployment = file.pin::<S>()?;
    let group = machine.status().group;
    let mut node = node(config, file, &store, &group)?;
    (node.listen, node.topic) = (Vec::new(), None);
    node.dial.retain(|(route, _)| *route == Route::Kgc);
    let client =
        KeyClient::new(store.keys(&deployment), config.fetching(file, attributes::PATIENCE_OF_A_CALL)?);
    let (events, _) = broadcast::channel(EVENTS);
    let (refused, mut refusal) = mpsc::channel(1);
    let peer_id = node.key.peer_id();
    let (metrics, wave) = (Metrics::default(), Wave::default());
    let (group, json) = (group.to_string(), false);
    let host = LeaderHost { store, peer_id, group, json, events, refused, metrics, wave };
    let machine = Node::new(machine, Envelopes::default());
    let (driver, handle) = Driver::new(&node, machine, host, OsRng)?;
    let (end, mut ended) = tokio::sync::oneshot::channel();
    let asking = async {
        let keypair = loop {
            if let Some(keypair) = control::keypair(&handle, &client).await {
                break keypair;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        client.fetch(&keypair).await
    };
    driver
        .run(async {
            let outcome = tokio::select! {
                _ = shutdown.requested() => Ok(Learnt::Interrupted),
                Some(reason) = refusal.recv() => Err(Error::Refused(reason)),
                fetched = asking => fetched.map(|_| Learnt::Done).map_err(Error::from),
            };
            // The receiver lives until the driver has stopped.
            let _ = end.send(outcome);
        })
        .await?;
    ended.try_recv().unwrap_or(Ok(Learnt::Interrupted))
}

/// Waits for a signal, or for a refusal that no retry will change.
async fn wait(mut shutdown: Shutdown, mut refusal: mpsc::Receiver<Reason>) -> Option<Reason> {
    tokio::select! {
        signal = shutdown.requested() => {
            tracing::info!(signal, "stopping");
            None
        }
        Some(reason) = refusal.recv() => Some(reason),
    }
}

/// Puts the machine together from the state file, or from the token at the first start.
fn restore<S: QuorumSuite>(
    config: &Config,
    protection: &ProtectionArgs,
    file: &DeploymentFile,
    deployment: Deployment<S>,
) -> Result<(AdmittingLeader<S>, Store)> {
    let token = match &config.token {
        Some(path) => Some(token_file::read(path, &deployment, Wanted::Leader)?),
        None if NodeState::exists(&config.data_dir) => None,
        None => return Err(Error::NoToken),
    };
    let by = protection.obtain(!NodeState::exists(&config.data_dir))?;
    let (store, mut records) = Store::open(&config.data_dir, &deployment, &by, Missing::Create)?;
    let enrolled = is_enrolled(config, file, &deployment, &store, &records)?;
    if let Some(token) = &token {
        let id = token.token.statement.id;
        let group = group_of(token);
        if enrolled {
            match store.group() {
                Some(stored) if stored != group.as_str() => {
                    return Err(Error::OtherGroup { stored, given: group.to_string() });
                }
                _ => tracing::info!("already enrolled; the token is not used"),
            }
        } else if store.group().is_none() || store.began_with_another(&id) {
            store.begin(group.as_str(), &id)?;
            records.clear();
        }
    }
    if token.is_none() && records.is_empty() {
        // An earlier start ended before the machine could begin to enrol.
        return Err(Error::NoToken);
    }
    let group = store.group().ok_or(Error::NoToken)?;
    let mut machine = Leader::new(leader_config(config, file, deployment, &group, token)?, records)?;
    if config.refuse_stale_revocations {
        machine = machine.with_stale_lists_refused();
    }
    Ok((machine.into(), store))
}

fn is_enrolled<S: QuorumSuite>(
    config: &Config,
    file: &DeploymentFile,
    deployment: &Deployment<S>,
    store: &Store,
    records: &[LeaderRecord],
) -> Result<bool> {
    let Some(group) = store.group() else {
        return Ok(false);
    };
    let settings = leader_config(config, file, deployment.clone(), &group, None)?;
    Ok(Leader::new(settings, records.to_vec())?.status().name.is_some())
}

fn group_of<S: Suite>(token: &IssuedToken<S>) -> Name {
    match &token.token.statement.role {
        Role::Leader { group, .. } => group.clone(),
        // Reading the token has refused an edge's.
        Role::Edge => token.token.statement.name.clone(),
    }
}

pub(crate) fn leader_config<S: QuorumSuite>(
    config: &Config,
    file: &DeploymentFile,
    deployment: Deployment<S>,
    group: &str,
    token: Option<IssuedToken<S>>,
) -> Result<LeaderConfig<S>> {
    Ok(LeaderConfig {
        deployment,
        group: Name::new(group).map_err(|error| Error::Config(error.to_string()))?,
        token,
        kgcs: Kgcs::quorum(file.kgc_ids()),
        allow: config.allow_list()?,
        max_members: config.max_members,
        strategy: config.strategy,
        timing: config.timing(),
    })
}

fn node(config: &Config, file: &DeploymentFile, store: &Store, group: &Name) -> Result<NodeConfig> {
    let key = NodeKey::from_seed(store.seed())?;
    let mut node = NodeConfig::hub(key, Transport::TcpAndQuic, config.max_members as usize);
    node.clocks = Clocks::Everybody;
    node.detect_duplicates = true;
    node.listen = parse_all("listen", &config.listen)?;
    let kgcs = if config.kgc.is_empty() { file.kgc_addresses() } else { config.kgc.clone() };
    if kgcs.is_empty() {
        return Err(Error::Config("no address of a KGC: give --kgc MULTIADDR".into()));
    }
    let kgcs = parse_all("kgc", &kgcs)?.into_iter().map(|address| (Route::Kgc, address));
    let peers = parse_all("peer", &config.peer)?.into_iter().map(|address| (Route::Leader, address));
    node.dial = kgcs.chain(peers).collect();
    if !config.peer.is_empty() {
        // A leader that comes back is wanted soon, and one that is gone is noticed by its silence.
        node.redial_ceiling = config.silence.min(node.redial_ceiling);
    }
    node.topic = Some(group_topic(group.as_str()));
    Ok(node)
}

/// The machine's host: its records go into the state file, its events into the log and to whoever waits for them.
struct LeaderHost {
    store: Store,
    peer_id: PeerId,
    group: String,
    json: bool,
    events: broadcast::Sender<LeaderEvent>,
    refused: mpsc::Sender<Reason>,
    metrics: Metrics,
    wave: Wave,
}

impl<S: Suite> Host<LeaderNode<S>> for LeaderHost {
    fn persist(&mut self, records: &[Record]) -> std::result::Result<(), HostError> {
        tokio::task::block_in_place(|| self.store.persist(&own(records))).map_err(Into::into)
    }

    fn persist_of(
        &mut self,
        machine: &LeaderNode<S>,
        records: &[Record],
    ) -> std::result::Result<(), HostError> {
        tokio::task::block_in_place(|| self.store.persist_of(machine, &own(records))).map_err(Into::into)
    }

    fn event(&mut self, _: &LeaderNode<S>, event: Either<AdmittingLeaderEvent, EnvelopeEvent>) {
        let event = match event {
            Either::Left(AdmittingLeaderEvent::Leader(event)) => event,
            Either::Left(AdmittingLeaderEvent::Denied { peer, why }) => {
                tracing::warn!(peer = peer.0, %why, "not admitted");
                return self.metrics.count_denied();
            }
            Either::Right(EnvelopeEvent::NotSent(reason)) => LeaderEvent::SendFailed(reason),
            Either::Right(event) => {
                if let Some(line) = told(&self.group, &event, self.json) {
                    self.print(&line);
                }
                return;
            }
        };
        self.log(&event);
        self.wave.follow(&event, &self.metrics);
        self.metrics.count(&event);
        // Nobody may be waiting.
        let _ = self.events.send(event);
    }

    fn vouch(&mut self, machine: &LeaderNode<S>, statement: &[u8]) -> Vec<u8> {
        machine.vouch(statement, &mut OsRng).unwrap_or_default()
    }

    fn voucher(&mut self, machine: &LeaderNode<S>, statement: &[u8], signed: &[u8]) -> Option<String> {
        let drone = machine.vouched(statement, signed).ok()?;
        Some(drone.to_string())
    }

    fn drone(&mut self, machine: &LeaderNode<S>, peer: Peer) -> Option<String> {
        machine.drone_behind(peer).map(Name::to_string)
    }

    fn listening(&mut self, address: &Multiaddr) {
        self.print(&format!("listening on {address}/p2p/{}", self.peer_id));
    }
}

/// The records of the leader itself, which are all there are.
fn own(records: &[Record]) -> Vec<LeaderRecord> {
    records.iter().filter_map(Either::left).cloned().collect()
}

impl LeaderHost {
    fn print(&self, line: &str) {
        if let Err(error) = terminal::line(line) {
            tracing::warn!(%error, "standard output");
        }
    }

    fn log(&self, event: &LeaderEvent) {
        match event {
            LeaderEvent::Enrolled { name } => tracing::info!(%name, "enrolled"),
            LeaderEvent::EpochActivated { epoch, kind, members, added, removed } => {
                let (term, counter) = (epoch.term, epoch.counter);
                tracing::info!(term, counter, ?kind, members, added, removed, "epoch activated");
            }
            LeaderEvent::Delivered { epoch, members } => {
                tracing::info!(term = epoch.term, counter = epoch.counter, members, "epoch delivered");
            }
            LeaderEvent::Joined { name, slot } => tracing::info!(%name, slot, "joined"),
            LeaderEvent::Admitted { pseudonym, slot, until } => {
                let until = clock::format(*until);
                tracing::info!(%pseudonym, slot, until, "admitted without a name");
            }
            LeaderEvent::Parted { pseudonym, slot } => tracing::info!(%pseudonym, slot, "parted"),
            LeaderEvent::Removed { name, slot, evicted } => tracing::info!(%name, slot, evicted, "removed"),
            LeaderEvent::Barred(name) => tracing::info!(%name, "away, and evicted"),
            LeaderEvent::NobodyInSlot(slot) => tracing::warn!(slot, "nobody sits in this slot"),
            LeaderEvent::NoSuchMember(name) => tracing::warn!(%name, "no such member"),
            LeaderEvent::NotLeading => tracing::warn!("not done: this leader does not lead"),
            LeaderEvent::Refused { peer, reason } => tracing::warn!(peer = peer.0, %reason, "refused"),
            LeaderEvent::EnrolmentRefused(reason) => self.enrolment_refused(*reason),
            LeaderEvent::EnrolmentTrouble(trouble) => tracing::warn!(%trouble, "enrolment"),
            LeaderEvent::Message { channel, data, source } => self.show(channel, data, source),
            LeaderEvent::SecondKey { name, handle, evident: true } => {
                tracing::error!(%name, %handle, "a second key was presented for one identity and refused: evidence against the KGC, kept");
            }
            LeaderEvent::SecondKey { name, handle, evident: false } => {
                tracing::warn!(%name, %handle, "a second key was presented for one identity and refused: revoke the drone if it goes on");
            }
            LeaderEvent::RekeyFailed(error) => tracing::error!(%error, "no new key; trying again"),
            LeaderEvent::SendFailed(reason) => tracing::warn!(reason, "message not sent"),
            LeaderEvent::RevocationList { number } => tracing::info!(number, "revocation list in force"),
            LeaderEvent::SteppedDown { term } => {
                tracing::error!(term, "stepped down: another leader opened a higher term");
            }
            LeaderEvent::StandingBy { leader, epoch, members } => {
                tracing::info!(%leader, %epoch, members, "standing by");
            }
            LeaderEvent::TookOver { from } => {
                let from = from.map(|epoch| epoch.to_string()).unwrap_or_default();
                tracing::warn!(from, "the leader is silent: taking over");
            }
            LeaderEvent::Replicated { epoch, names, deputy } => {
                let deputy = deputy.as_ref().map_or("", Name::as_str);
                tracing::info!(%epoch, ?names, deputy, "evictions replicated");
            }
            LeaderEvent::Equivocation { leader, epoch } => {
                tracing::error!(%leader, %epoch, "a leader signed two headers for one epoch and is refused for good");
            }
            LeaderEvent::OwnHeader { epoch } => tracing::warn!(%epoch, "{}", crate::metrics::COPY),
            LeaderEvent::Blamed { peer, offence } => tracing::warn!(peer = peer.0, %offence, "peer blamed"),
        }
    }

    fn enrolment_refused(&self, reason: Reason) {
        if reason.is_transient() {
            tracing::warn!(%reason, "the KGC refuses for now");
        } else {
            // One refusal is enough to end.
            let _ = self.refused.try_send(reason);
        }
    }

    fn show(&self, channel: &Name, data: &[u8], source: &Source) {
        let (from, signed) = match source {
            Source::Signed { name, .. } => (name.to_string(), true),
            Source::Unauthenticated { slot } => (format!("slot {slot}"), false),
        };
        let message = Message { group: &self.group, channel: channel.as_str(), from: &from, signed, data };
        self.print(&message.line(self.json));
    }
}
