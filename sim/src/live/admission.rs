//! Runs drones that join anonymously: a node with a fresh transport key for each membership; records what
//! leaders see.

pub(super) mod phases;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quiver_admission::certifying::MAX_PERIOD;
use quiver_admission::{
    AdmissionHello, AdmissionMessage, AdmissionProof, AdmittingLeader, AdmittingLeaderCommand,
    AdmittingLeaderEvent, AnonymousEdge, AnonymousEvent, Ending,
};
use quiver_ainq::{Deployment, Name, Suite};
use quiver_group::{EdgeCommand, EdgeEvent, Leader, LeaderEvent};
use quiver_machine::{Either, Machine, Route, Snapshot};
use quiver_message::{Message, Nonce};
use quiver_net::{Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, PeerId, group_topic};
use quiver_testbed::HeaderReader;
use quiver_world::admission::{
    COMPARED, Checkpoint, CheckpointContext, EVERYBODY, Rules, Sighting, is_unsatisfied,
};
use rand::Rng;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::deployment::Founder;
use super::drone_event::DroneEvent;
use super::drone_name;
use super::features::{EdgeNode, LiveLeaderNode, edge_node};
use super::hosts::{Disk, DroneHost, DroneHostFactory};
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Memberships of a drone elsewhere of which the frames are recorded: later ones are not compared.
const FORESEEN: u32 = 16;
/// First delay before a drone applies again.
const PAUSE: Duration = Duration::from_millis(500);

/// The policy of the leaders, the drones with credentials for it, and the frames that leaders see.
pub(crate) struct Admission<S: Suite> {
    pub(crate) checkpoint: Checkpoint<S>,
    /// The period that it is; the run does not see its end.
    pub(crate) period: u64,
    /// Drones below this number have certified fields and join anonymously.
    certified: u32,
    pub(crate) watch: FrameRecorder,
    deployment: Deployment<S>,
    /// Headers that leaders sent, by which short ones are completed.
    headers: Mutex<HeaderReader<S>>,
    /// The first step of an admission that a leader saw.
    shown: Mutex<Option<Vec<u8>>>,
}

impl<S: Suite> Admission<S> {
    /// Creates the policy of the leaders, if the plan has one, and certifies so many drones.
    pub(super) fn found(
        plan: &Plan,
        founder: &Founder<S>,
        setting: &NodeSettings<S>,
        certified: u32,
    ) -> Result<Option<Arc<Self>>> {
        let Some(policy) = plan.admission.clone() else { return Ok(None) };
        let (deployment, group, now) = (&setting.deployment, &setting.group, unix_time());
        let place = CheckpointContext {
            deployment,
            master_key: &*founder.keys.master_key,
            group,
            seed: plan.seed,
            now,
        };
        let rules = Rules { period: MAX_PERIOD, ..Rules::of(policy) };
        let checkpoint = Checkpoint::found(&place, &rules).map_err(refused)?;
        let period = checkpoint.period_at(now);
        let (watch, deployment) = (FrameRecorder::default(), deployment.clone());
        if plan.workers > 0 {
            // Drones elsewhere do not say when a membership begins.
            for drone in (0..certified).take(COMPARED) {
                for life in 0..FORESEEN {
                    watch.expect(transport_key(plan.seed, drone, life)?.peer_id(), drone, life);
                }
            }
        }
        Ok(Some(Arc::new(Self {
            checkpoint,
            period,
            certified,
            watch,
            deployment,
            headers: Mutex::default(),
            shown: Mutex::default(),
        })))
    }

    /// Restores the admission of a run elsewhere, for the drones that are hosted here.
    pub(super) fn restore(setting: &NodeSettings<S>, setup: &AdmissionSetup) -> Result<Self> {
        let bytes = hex::decode(&setup.checkpoint).map_err(refused)?;
        let (deployment, at) = (&setting.deployment, (setting.seed, unix_time()));
        let checkpoint = Checkpoint::restore((deployment, &setting.group), &bytes, at).map_err(refused)?;
        Ok(Self {
            checkpoint,
            period: setup.period,
            certified: setup.certified,
            watch: FrameRecorder::default(),
            deployment: deployment.clone(),
            headers: Mutex::default(),
            shown: Mutex::default(),
        })
    }

    /// Part of it that a worker needs.
    pub(super) fn setup(&self) -> AdmissionSetup {
        let checkpoint = hex::encode(&*self.checkpoint.bytes());
        AdmissionSetup { period: self.period, certified: self.certified, checkpoint }
    }

    /// Records a frame between a leader and a peer, or to the group.
    pub(crate) fn saw(&self, peer: Option<&PeerId>, request: &[u8], message: &[u8]) {
        // A short header tells the group what the whole one tells a single drone.
        let expanded = |bytes: &[u8]| {
            let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
            headers.expanded(&self.deployment, bytes)
        };
        match peer {
            None => self.watch.saw(peer, request, &expanded(message)),
            Some(_) => {
                [request, message].into_iter().for_each(|bytes| drop(expanded(bytes)));
                self.watch.saw(peer, request, message);
            }
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_none()
            && let Ok(message) = Message::decode(&self.deployment, message)
            && let Some(Ok(AdmissionMessage::<S>::Proof(proof))) = message.extension()
        {
            *shown = Some(proof.step);
        }
    }

    /// The first step of an admission, if any drone sent one.
    pub(crate) fn shown(&self) -> Option<Vec<u8>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if a drone joins anonymously.
    pub(crate) fn is_for(&self, drone: u32) -> bool {
        drone < self.certified
    }
}

/// A leader that demands the policy of these settings, if they have one.
pub(super) fn admitting<S: Suite>(
    leader: Leader<S>,
    setting: &NodeSettings<S>,
) -> Result<AdmittingLeader<S>> {
    let leader = AdmittingLeader::from(leader);
    let Some(admission) = &setting.features.admission else { return Ok(leader) };
    leader.demanding(admission.checkpoint.demand(), unix_time()).map_err(refused)
}

/// Hands a leader the slot keys of the period, if it demands a policy.
pub(super) async fn hand_slot_keys<S: Suite>(
    leader: &LiveNode<LiveLeaderNode<S>>,
    setting: &NodeSettings<S>,
) -> Result<()> {
    let Some(Admission { checkpoint, period, .. }) = setting.features.admission.as_deref() else {
        return Ok(());
    };
    let keys = checkpoint.slot_keys(*period).map_err(refused)?;
    leader.command(Either::Left(AdmittingLeaderCommand::SlotKeys(keys))).await
}

/// An event of the group of an edge with a name, which has no others.
pub(super) fn edge_event(event: AnonymousEvent) -> Option<EdgeEvent> {
    match event {
        AnonymousEvent::Edge(event) => Some(event),
        AnonymousEvent::Admitted { .. } | AnonymousEvent::Ended(_) => None,
    }
}

/// An event of a leader's group; `None` if somebody was denied.
pub(super) fn leader_event(event: AdmittingLeaderEvent) -> Option<LeaderEvent> {
    match event {
        AdmittingLeaderEvent::Leader(event) => Some(event),
        denied @ AdmittingLeaderEvent::Denied { .. } => {
            tracing::debug!(?denied, "leader");
            None
        }
    }
}

/// The callback of an anonymous edge, which leaves to the drone's own what it has as any edge.
struct AnonymousHost {
    drone: DroneHost,
    /// Notified when the membership has ended.
    over: Option<oneshot::Sender<Ending>>,
}

impl AnonymousHost {
    fn ended(&mut self, why: Ending) {
        let DroneHost { index, reports, .. } = &self.drone;
        tracing::debug!(drone = index, ?why, "over");
        match &why {
            why if is_unsatisfied(why) => reports.record_event(*index, DroneEvent::PolicyNotSatisfied),
            Ending::Denied(error) if why.is_final() => {
                reports.offence(&drone_name(*index), &format!("was refused: {error}"));
            }
            _ => {}
        }
        if let Some(over) = self.over.take() {
            // The caller may have given up.
            let _ = over.send(why);
        }
    }
}

impl<S: Suite> Host<EdgeNode<S>> for AnonymousHost {
    fn persist(
        &mut self,
        records: &[<EdgeNode<S> as Machine>::Record],
    ) -> std::result::Result<(), HostError> {
        Host::<EdgeNode<S>>::persist(&mut self.drone, records)
    }

    fn event(&mut self, machine: &EdgeNode<S>, event: <EdgeNode<S> as Machine>::Event) {
        match event {
            Either::Left(AnonymousEvent::Admitted { pseudonym, .. }) => {
                self.drone.reports.record_event(self.drone.index, DroneEvent::Admitted(pseudonym.0));
            }
            Either::Left(AnonymousEvent::Ended(why)) => self.ended(why),
            other => self.drone.event(machine, other),
        }
    }
}

/// The checkpoint whose credentials drones have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AdmissionSetup {
    /// The period that it is.
    pub(crate) period: u64,
    /// Drones below this number join anonymously.
    pub(crate) certified: u32,
    /// Bytes of the checkpoint in hexadecimal digits.
    pub(crate) checkpoint: String,
}

/// A question for a leader's policy, as a flood sends it.
pub(crate) fn hello<S: Suite>(nonce: Nonce, group: Name) -> Message<S> {
    AdmissionMessage::<S>::from(AdmissionHello { nonce, group, kem: None }).into()
}

/// The answer with this first step to a leader's challenge; `None` if the message is none.
pub(crate) fn proof<S: Suite>(message: &Message<S>, step: &[u8]) -> Option<Message<S>> {
    let Some(Ok(AdmissionMessage::<S>::Challenge(challenge))) = message.extension() else { return None };
    let (nonce, cookie) = (challenge.nonce, challenge.cookie);
    Some(AdmissionMessage::<S>::from(AdmissionProof { nonce, cookie, step: step.to_vec(), kem: None }).into())
}

pub(super) fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("--admission: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "credentials are of the period that it is")]
pub(super) fn unix_time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Records every frame between leaders and anonymous drones, by the drones' transport keys.
#[derive(Default)]
pub(crate) struct FrameRecorder(Mutex<Frames>);

#[derive(Default)]
struct Frames {
    lives: HashMap<PeerId, Sighting>,
    /// Frames from leaders to the whole group.
    to_group: Vec<Vec<u8>>,
}

impl FrameRecorder {
    /// Notes which drone uses a transport key. The key itself is visible to a leader too.
    fn expect(&self, peer: PeerId, drone: u32, life: u32) {
        if (drone as usize) < COMPARED {
            let seen = vec![peer.to_bytes()];
            self.lock().lives.insert(peer, Sighting { drone, life, seen });
        }
    }

    /// Records a frame between a leader and a peer, or to the group.
    pub(crate) fn saw(&self, peer: Option<&PeerId>, request: &[u8], message: &[u8]) {
        let mut seen = self.lock();
        let Frames { lives, to_group } = &mut *seen;
        match peer {
            None => to_group.push(message.to_vec()),
            Some(peer) => {
                if let Some(sighting) = lives.get_mut(peer) {
                    sighting.seen.push([request, message].concat());
                }
            }
        }
    }

    /// The frames of each membership, and those to the group.
    pub(crate) fn lives(&self) -> Vec<Sighting> {
        let seen = self.lock();
        let by_life: BTreeMap<(u32, u32), Sighting> =
            // Beside the transport key.
            seen.lives.values().filter(|it| it.seen.len() > 1).map(|it| ((it.drone, it.life), it.clone())).collect();
        let all = Sighting { drone: EVERYBODY, life: 0, seen: seen.to_group.clone() };
        by_life.into_values().chain([all]).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Frames> {
        // Frames are kept whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transport key of a drone in one of its memberships: drawn anew for every node.
fn transport_key(seed: u64, drone: u32, life: u32) -> Result<NodeKey> {
    let number = drone.wrapping_mul(1 << 12).wrapping_add(life);
    NodeKey::from_seed(rng_stream::node_key(seed, RngStream::Anonymous, number))
        .map_err(|source| SimError::Node { who: format!("anonymous {}", drone_name(drone)), source })
}

/// A drone that joins anonymously, again and again.
#[derive(Debug)]
pub(crate) struct AnonymousDrone<S: Suite> {
    /// Makes it join.
    join: mpsc::Sender<()>,
    running: watch::Receiver<Option<Handle<EdgeNode<S>>>>,
    task: JoinHandle<()>,
}

impl<S: Suite> AnonymousDrone<S> {
    /// A drone that waits for [`join`](Self::join).
    pub(crate) fn new(
        index: u32,
        setting: &NodeSettings<S>,
        admission: &Arc<Admission<S>>,
        leaders: &[Multiaddr],
    ) -> Result<Self> {
        let fields = admission.checkpoint.fields(index);
        let credential = admission.checkpoint.certify(index, &fields, admission.period).map_err(refused)?;
        let config =
            admission.checkpoint.anonymous(credential, admission.period, (setting.edge_timing, setting.kem));
        let mut spoke = setting.spoke(index)?;
        spoke.topic = Some(group_topic(setting.group.as_str()));
        spoke.dial = leaders.iter().map(|leader| (Route::Leader, leader.clone())).collect();
        let host = DroneHostFactory::new(index, setting);
        let (join, joins) = mpsc::channel(1);
        let (shown, running) = watch::channel(None);
        let task = AnonymousTask {
            index,
            seed: setting.seed,
            admission: Arc::clone(admission),
            config,
            spoke,
            host,
            ledger: Disk::default(),
            lives: 0,
            shown,
        };
        Ok(Self { join, running, task: tokio::spawn(task.run(joins)) })
    }

    /// Makes it join.
    pub(crate) async fn join(&self) -> Result<()> {
        self.join.send(()).await.map_err(|_| SimError::Stopped { who: "an anonymous drone".into() })
    }

    /// The machine that runs, if one does.
    pub(crate) fn handle(&self) -> Option<Handle<EdgeNode<S>>> {
        self.running.borrow().clone()
    }

    /// Sends a command to the running machine.
    pub(crate) async fn command(&self, command: EdgeCommand) -> Result<()> {
        if let Some(handle) = self.handle() {
            // It may have ended by now.
            let _ = handle.command(Either::Left(command)).await;
        }
        Ok(())
    }
}

impl<S: Suite> Drop for AnonymousDrone<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of a drone across its memberships.
struct AnonymousTask<S: Suite> {
    index: u32,
    seed: u64,
    admission: Arc<Admission<S>>,
    config: quiver_admission::AnonymousConfig<S>,
    spoke: NodeConfig,
    host: DroneHostFactory,
    /// The ledger of its answers, which outlives its machines.
    ledger: Disk<Option<Snapshot>>,
    lives: u32,
    shown: watch::Sender<Option<Handle<EdgeNode<S>>>>,
}

impl<S: Suite> AnonymousTask<S> {
    async fn run(mut self, mut joins: mpsc::Receiver<()>) {
        while joins.recv().await.is_some() {
            let mut pause = PAUSE;
            loop {
                match self.run_membership().await {
                    Err(error) => {
                        tracing::error!(drone = self.index, %error, "stopped");
                        return;
                    }
                    Ok(ending) if ending.is_final() => break,
                    Ok(_) => {
                        let mut dice =
                            rng_stream::generator(self.seed, RngStream::Pause, self.index, self.lives);
                        let share = dice.gen_range(0.5..1.5);
                        tokio::time::sleep(pause.mul_f64(share)).await;
                        pause *= 2;
                    }
                }
            }
        }
    }

    /// A machine from its start to its end, on a node of its own.
    async fn run_membership(&mut self) -> Result<Ending> {
        let (index, life) = (self.index, self.lives);
        self.lives += 1;
        let who = format!("anonymous {}", drone_name(index));
        let key = transport_key(self.seed, index, life)?;
        self.admission.watch.expect(key.peer_id(), index, life);
        self.spoke.key = key;
        let stored = self.ledger.with(|stored| stored.clone());
        let machine = AnonymousEdge::new(self.config.clone(), stored.as_ref())
            .map_err(|source| SimError::Restore { who: who.clone(), source: Box::new(source) })?;
        let (over, ended) = oneshot::channel();
        let drone = self.host.host(self.ledger.clone(), None);
        let host = AnonymousHost { drone, over: Some(over) };
        let rng = rng_stream::generator(self.seed, RngStream::Anonymous, index, life);
        let machine = edge_node(machine);
        let mut node = LiveNode::start(who, &self.spoke, machine, host, rng)?;
        self.shown.send_replace(Some(node.handle().clone()));
        let ending = ended.await;
        self.shown.send_replace(None);
        node.kill().await;
        ending.map_err(|_| node.stopped())
    }
}
