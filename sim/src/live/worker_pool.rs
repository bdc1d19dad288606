//! The workers of a run: ranks of which each hosts every n-th drone. The loss of one ends the run.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use quiver_ainq::{IssuedToken, Suite};
use quiver_crypto::Secret;
use quiver_net::Multiaddr;
use quiver_report::{Progress, counted};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::drone_event::EventSink;
use super::event_log::EventLog;
use super::node_settings::NodeSettings;
use super::rank_line::RankLine;
use super::swarm::SwarmRequest;
use super::worker_message::{
    self, MessageReader, MessageWriter, PER_MESSAGE, WorkerCommand, WorkerMessage, WorkerSetup,
};
use crate::plan::Plan;
use crate::report::WorkerReport;
use crate::{Result, SimError, interrupt, measure};

/// Time beyond a step's after which a worker that does not answer counts as lost.
const GRACE: Duration = Duration::from_secs(10);
/// Time for the last answers of workers if the user has ended the run: whoever started the ranks may kill them soon.
const HURRY: Duration = Duration::from_millis(300);
/// Number of readings of a worker's clock. The reading with the shortest round trip counts.
const READINGS: u32 = 8;

/// All workers of a run.
pub(crate) struct WorkerPool {
    pub(super) workers: Vec<Worker>,
    /// Time limit of an answer.
    pub(super) timeout: Duration,
    /// True once any is lost.
    losses: Arc<watch::Sender<bool>>,
}

/// A worker, as its run reaches it.
pub(super) struct Worker {
    who: String,
    drones: Vec<u32>,
    link: tokio::sync::Mutex<WorkerLink>,
    loss: WorkerLoss,
    reading: JoinHandle<()>,
}

#[derive(Debug)]
struct WorkerLink {
    out: MessageWriter,
    answers: mpsc::Receiver<WorkerMessage>,
}

/// The reason why a worker is lost, if it is.
#[derive(Clone)]
struct WorkerLoss {
    who: String,
    why: Arc<Mutex<Option<String>>>,
    losses: Arc<watch::Sender<bool>>,
}

impl WorkerLoss {
    fn mark(&self, why: String) {
        tracing::error!(who = self.who, why, "lost a worker");
        // A reason is written in one go.
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.losses.send_replace(true);
    }

    fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A worker that has greeted and has no drones yet.
pub(crate) struct PendingWorker {
    who: String,
    /// Name of its host.
    pub(crate) host: String,
    incoming: MessageReader,
    out: MessageWriter,
}

impl WorkerPool {
    /// Assigns drones to each worker.
    ///
    /// # Errors
    /// [`SimError::Worker`] if one fails.
    pub(crate) async fn assign<S: Suite>(
        plan: &Plan,
        setting: &NodeSettings<S>,
        tokens: &[IssuedToken<S>],
        event_log: &Arc<EventLog>,
        pending: Vec<PendingWorker>,
    ) -> Result<Self> {
        let count = pending.len();
        let setup = setup(plan, setting, tokens.len());
        let losses = Arc::new(watch::Sender::new(false));
        let workers = pending.into_iter().enumerate().map(|(nth, worker)| {
            let drones: Vec<u32> = (0..).take(tokens.len()).skip(nth).step_by(count).collect();
            let relays = (0..plan.relays).skip(nth).step_by(count).collect();
            let why = Arc::default();
            let loss = WorkerLoss { who: worker.who.clone(), why, losses: losses.clone() };
            let setup = WorkerSetup { relays, ..setup.clone() };
            worker.assign(setup, (drones, tokens), event_log.clone(), loss, plan.timeout)
        });
        let workers = try_join_all(workers).await?;
        tracing::info!(workers = workers.len(), "all workers are at work");
        // Longer than a step may take, so that a worker that is late there is late in that step.
        Ok(Self { workers, timeout: plan.timeout + GRACE, losses })
    }

    /// Waits until any worker is lost.
    pub(crate) fn loss(&self) -> impl Future<Output = ()> + use<> {
        let losses = self.losses.clone();
        async move {
            // The sender is here.
            let _ = losses.subscribe().wait_for(|lost| *lost).await;
        }
    }

    pub(crate) async fn enrol(&self, kgcs: &[Multiaddr], at_once: usize) -> Result<()> {
        let at_once = at_once.div_ceil(self.workers.len().max(1));
        let kgcs = texts(kgcs);
        self.each_worker(|_| vec![WorkerCommand::Enrol { kgcs: kgcs.clone(), at_once }]).await
    }

    pub(crate) async fn start_drones(&self, leaders: &[Multiaddr], drones: Range<u32>) -> Result<()> {
        let (leaders, Range { start: first, end }) = (texts(leaders), drones);
        self.each_worker(|_| vec![WorkerCommand::Start { leaders: leaders.clone(), first, end }]).await
    }

    pub(crate) async fn ask(&self, drones: &[u32], request: SwarmRequest) -> Result<()> {
        self.each_worker(|worker| {
            let theirs = worker.hosted_of(drones);
            theirs
                .chunks(PER_MESSAGE)
                .map(|drones| WorkerCommand::Ask { drones: drones.to_vec(), request })
                .collect()
        })
        .await
    }

    /// Sends every worker its commands, one after the other; all workers at the same time. A lost one is no
    /// error: it ends the run.
    pub(super) async fn each_worker(&self, commands: impl Fn(&Worker) -> Vec<WorkerCommand>) -> Result<()> {
        let given = self.workers.iter().map(|worker| {
            let commands = commands(worker);
            async move {
                for command in commands {
                    worker.command(&command, self.timeout).await;
                }
            }
        });
        join_all(given).await;
        Ok(())
    }

    pub(crate) async fn exports(&self, drones: &[u32]) -> Result<Vec<(u32, Option<Secret<32>>)>> {
        let asked = self.workers.iter().map(|worker| async move {
            let mut exports = Vec::new();
            for drones in worker.hosted_of(drones).chunks(PER_MESSAGE) {
                match worker.command(&WorkerCommand::Export { drones: drones.to_vec() }, self.timeout).await {
                    Some(WorkerMessage::Exports(keys)) => exports.extend(keys),
                    _ => break,
                }
            }
            exports
        });
        let exports = join_all(asked).await.into_iter().flatten();
        Ok(exports.map(|(drone, key)| (drone, key.map(|exported| exported.0))).collect())
    }

    /// Ends the work of all workers and reports on each.
    pub(crate) async fn finish(&self) -> Vec<WorkerReport> {
        let timeout = if interrupt::is_requested() { HURRY } else { self.timeout };
        join_all(self.workers.iter().map(|worker| worker.finish(timeout))).await
    }
}

/// Addresses as they are written in commands.
pub(super) fn texts(addresses: &[Multiaddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn setup<S: Suite>(plan: &Plan, setting: &NodeSettings<S>, swarm: usize) -> WorkerSetup {
    WorkerSetup {
        seed: plan.seed,
        transport: plan.transport,
        kem: plan.kem,
        deputies: plan.deputies,
        relays: Vec::new(),
        swarm: u32::try_from(swarm).unwrap_or(u32::MAX),
        deployment: setting.deployment.name().to_string(),
        master: hex::encode(setting.deployment.master().as_bytes()),
        kgcs: setting.kgcs.ids().to_vec(),
        admission: setting.features.admission.as_ref().map(|admission| admission.setup()),
    }
}

/// Hears the greetings of all workers: the ranks from 1 on, each at the other end of its line.
///
/// # Errors
/// [`SimError::Late`] if one does not greet in time; [`SimError::Worker`] if one is of another version.
pub(crate) async fn greet(
    lines: Vec<RankLine>,
    plan: &Plan,
    progress: &Progress,
) -> Result<Vec<PendingWorker>> {
    let count = lines.len();
    let step = progress.step("ranks", count);
    let deadline = tokio::time::sleep(plan.timeout);
    tokio::pin!(deadline);
    let mut pending = Vec::new();
    for (rank, line) in (1_usize..).zip(lines) {
        let (mut incoming, out) = worker_message::ends(line);
        let greeted = tokio::select! {
            greeted = incoming.next() => greeted,
            () = &mut deadline => {
                let what = format!("{} of {} greeted", pending.len(), counted(count as u64, "rank"));
                return Err(SimError::Late { what, within: plan.timeout });
            }
        };
        let failed = |why: String| SimError::Worker { who: format!("rank {rank}"), why };
        match greeted {
            Ok(WorkerMessage::Hello { version, host }) if version == worker_message::VERSION => {
                pending.push(PendingWorker { who: format!("rank {rank} on {host}"), host, incoming, out });
            }
            Ok(WorkerMessage::Hello { version, .. }) => {
                let own = worker_message::VERSION;
                return Err(failed(format!("it is of version {version}, this run of {own}")));
            }
            Ok(_) => return Err(failed("it does not greet".into())),
            Err(error) => return Err(failed(error.to_string())),
        }
        step.done(pending.len());
    }
    Ok(pending)
}

impl PendingWorker {
    /// Assigns drones to a worker.
    async fn assign<S: Suite>(
        mut self,
        setup: WorkerSetup,
        (drones, tokens): (Vec<u32>, &[IssuedToken<S>]),
        event_log: Arc<EventLog>,
        loss: WorkerLoss,
        timeout: Duration,
    ) -> Result<Worker> {
        let assigned = tokio::time::timeout(timeout, self.send_drones(setup, &drones, tokens)).await;
        let failed = |why: String| SimError::Worker { who: self.who.clone(), why };
        let began = match assigned {
            Ok(Ok(began)) => began,
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => return Err(failed("it does not answer".into())),
        };
        let Self { who, incoming, out, .. } = self;
        let (sender, answers) = mpsc::channel(1);
        let reader =
            WorkerReader { drones: drones.clone(), event_log, began, answers: sender, loss: loss.clone() };
        let reading = tokio::spawn(reader.read(incoming));
        Ok(Worker { who, drones, link: WorkerLink { out, answers }.into(), loss, reading })
    }

    /// Returns what its clock's zero is on the clock of this process.
    async fn send_drones<S: Suite>(
        &mut self,
        setup: WorkerSetup,
        drones: &[u32],
        tokens: &[IssuedToken<S>],
    ) -> std::result::Result<Instant, String> {
        self.send(&WorkerCommand::Setup(Box::new(setup)))?;
        let last = drones.len().div_ceil(PER_MESSAGE).saturating_sub(1);
        let mut parts: Vec<&[u32]> = drones.chunks(PER_MESSAGE).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for (nth, part) in parts.into_iter().enumerate() {
            let token = |index: &u32| Some((*index, hex::encode(&*tokens.get(*index as usize)?.encode())));
            let tokens = part.iter().filter_map(token).collect();
            self.send(&WorkerCommand::Drones { tokens, last: nth == last })?;
        }
        match self.receive().await? {
            WorkerMessage::Ready { drones: hosted } if hosted == drones.len() => {}
            other => return Err(format!("unexpected answer: {other:?}")),
        }
        let mut best: Option<(Duration, Instant)> = None;
        for _ in 0..READINGS {
            let asked = measure::now();
            self.send(&WorkerCommand::Clock)?;
            let WorkerMessage::Clock { micros } = self.receive().await? else {
                return Err("it does not report its clock".into());
            };
            let way = asked.elapsed();
            let began = (asked + way / 2).checked_sub(Duration::from_micros(micros));
            if let Some(began) = began.filter(|_| best.is_none_or(|(shortest, _)| way < shortest)) {
                best = Some((way, began));
            }
        }
        best.map(|(_, began)| began).ok_or_else(|| "its clock runs since before this machine's".into())
    }

    fn send(&self, command: &WorkerCommand) -> std::result::Result<(), String> {
        self.out.send(command).map_err(|error| error.to_string())
    }

    async fn receive(&mut self) -> std::result::Result<WorkerMessage, String> {
        match self.incoming.next().await {
            Ok(WorkerMessage::Failed { why }) => Err(why),
            Ok(message) => Ok(message),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads the messages of a worker into the event log.
struct WorkerReader {
    drones: Vec<u32>,
    event_log: Arc<EventLog>,
    began: Instant,
    answers: mpsc::Sender<WorkerMessage>,
    loss: WorkerLoss,
}

impl WorkerReader {
    async fn read(self, mut incoming: MessageReader) {
        let why = loop {
            match incoming.next().await {
                Ok(WorkerMessage::Failed { why }) => break why,
                Ok(WorkerMessage::Event { drone, .. }) if self.drones.binary_search(&drone).is_err() => {
                    break format!("it reports on drone {drone}, which it does not host");
                }
                Ok(WorkerMessage::Event { drone, micros, what }) => {
                    self.event_log.record_at(drone, what, self.began + Duration::from_micros(micros));
                }
                Ok(WorkerMessage::Blamed { who, offence }) => self.event_log.offence(&who, &offence),
                Ok(last @ WorkerMessage::Finished { .. }) => {
                    // The caller may have given up.
                    let _ = self.answers.send(last).await;
                    return;
                }
                Ok(answer) => {
                    if self.answers.send(answer).await.is_err() {
                        return;
                    }
                }
                Err(error) => break error.to_string(),
            }
        };
        self.loss.mark(why);
    }
}

impl Worker {
    /// Drones among these that the worker hosts.
    pub(super) fn hosted_of(&self, drones: &[u32]) -> Vec<u32> {
        drones.iter().copied().filter(|drone| self.drones.binary_search(drone).is_ok()).collect()
    }

    /// Sends a command and waits for the answer; `None` if the worker is lost.
    pub(super) async fn command(&self, command: &WorkerCommand, timeout: Duration) -> Option<WorkerMessage> {
        let mut link = self.link.lock().await;
        link.out.send(command).ok()?;
        match tokio::time::timeout(timeout, link.answers.recv()).await {
            Ok(answer) => answer,
            Err(_) => {
                self.loss.mark("it does not answer".into());
                None
            }
        }
    }

    async fn finish(&self, timeout: Duration) -> WorkerReport {
        if let Some(why) = self.loss.why() {
            return self.report(Some(why), None, None);
        }
        let mut message = self.command(&WorkerCommand::Finish, timeout).await;
        // An answer that came too late for its command comes before.
        while matches!(
            message,
            Some(WorkerMessage::Done | WorkerMessage::Exports(_) | WorkerMessage::OrdersRead(_))
        ) {
            let mut link = self.link.lock().await;
            message = tokio::time::timeout(timeout, link.answers.recv()).await.ok().flatten();
        }
        let (cpu, peak_memory) = match message {
            Some(WorkerMessage::Finished { cpu, peak_memory }) => (Some(cpu), peak_memory),
            _ => {
                self.loss.mark("it did not answer at the end".into());
                (None, None)
            }
        };
        self.report(self.loss.why(), cpu, peak_memory)
    }

    fn report(&self, lost: Option<String>, cpu: Option<Duration>, peak_memory: Option<u64>) -> WorkerReport {
        WorkerReport { who: self.who.clone(), drones: self.drones.len(), lost, cpu, peak_memory }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
