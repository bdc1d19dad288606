//! The workers of a run: each hosts every n-th drone. The drones of a lost worker count as crashed, and the
//! run goes on.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{join_all, try_join_all};
use futures::stream::FuturesUnordered;
use quiver_ainq::{IssuedToken, Suite};
use quiver_crypto::Secret;
use quiver_net::Multiaddr;
use quiver_report::{Progress, counted};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::drone_event::EventSink;
use super::event_log::EventLog;
use super::node_settings::NodeSettings;
use super::swarm::{OrderTerms, Request};
use super::worker_message::{
    self, MessageError, MessageReader, MessageWriter, PER_LINE, Setup, WorkerCommand, WorkerMessage,
};
use crate::measure;
use crate::plan::Plan;
use crate::report::WorkerReport;
use crate::{Result, SimError};

/// Time limit of a connecting process's greeting.
const GREETING: Duration = Duration::from_secs(10);
/// Number of connections beside the workers' that may wait for their greeting at a time.
const SILENT: usize = 64;
/// Number of readings of a worker's clock. The reading with the shortest round trip counts.
const READINGS: u32 = 8;

/// All workers of a run.
pub(crate) struct WorkerPool {
    workers: Vec<Worker>,
    /// Time limit of an answer.
    timeout: Duration,
}

struct Worker {
    who: String,
    drones: Vec<u32>,
    event_log: Arc<EventLog>,
    link: tokio::sync::Mutex<Link>,
    /// Reason why it is lost.
    lost: Arc<Mutex<Option<String>>>,
    reading: JoinHandle<()>,
}

#[derive(Debug)]
struct Link {
    out: MessageWriter,
    answers: mpsc::Receiver<WorkerMessage>,
}

/// A worker that has greeted and has no drones yet.
struct PendingWorker {
    who: String,
    incoming: MessageReader,
    out: MessageWriter,
}

impl WorkerPool {
    /// Waits for the workers, and assigns drones to each.
    ///
    /// # Errors
    /// [`SimError::Late`] if too few connect; [`SimError::Worker`] if one fails.
    pub(crate) async fn gather<S: Suite>(
        plan: &Plan,
        setting: &NodeSettings<S>,
        tokens: &[IssuedToken<S>],
        event_log: &Arc<EventLog>,
        progress: &Progress,
    ) -> Result<Self> {
        let pending = accept(plan, progress).await?;
        let count = pending.len();
        let setup = setup(plan, setting, tokens.len());
        let workers = pending.into_iter().enumerate().map(|(nth, accept)| {
            let drones: Vec<u32> = (0..).take(tokens.len()).skip(nth).step_by(count).collect();
            let relays = (0..plan.relays).skip(nth).step_by(count).collect();
            accept.assign(Setup { relays, ..setup.clone() }, drones, tokens, event_log.clone(), plan.timeout)
        });
        let workers = try_join_all(workers).await?;
        tracing::info!(workers = workers.len(), "all workers are at work");
        // Longer than a step may take, so that a worker that is late there is late in that step.
        Ok(Self { workers, timeout: plan.timeout + GREETING })
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

    pub(crate) async fn ask(&self, drones: &[u32], request: Request) -> Result<()> {
        self.each_worker(|worker| {
            let theirs = worker.hosted_of(drones);
            theirs
                .chunks(PER_LINE)
                .map(|drones| WorkerCommand::Ask { drones: drones.to_vec(), request })
                .collect()
        })
        .await
    }

    pub(crate) async fn hand_out_attribute_keys(&self) -> Result<()> {
        self.each_worker(|_| vec![WorkerCommand::AttributeKeys]).await
    }

    /// Returns those that opened their orders. A lost worker's did not.
    pub(crate) async fn read_orders(
        &self,
        kgcs: &[Multiaddr],
        drones: &[u32],
        terms: &OrderTerms,
    ) -> Result<Vec<u32>> {
        let at_once = terms.at_once.div_ceil(self.workers.len().max(1)).min(PER_LINE);
        let (kgcs, terms) = (texts(kgcs), OrderTerms { at_once, ..terms.clone() });
        let asked = self.workers.iter().map(|worker| {
            let (kgcs, terms) = (&kgcs, &terms);
            async move {
                let mut read = Vec::new();
                // As many as collect at a time: a command takes no longer than one of them may.
                for drones in worker.hosted_of(drones).chunks(at_once.max(1)) {
                    let (drones, kgcs, terms) = (drones.to_vec(), kgcs.clone(), terms.clone());
                    let command = WorkerCommand::ReadOrders { kgcs, drones, terms };
                    match worker.command(&command, self.timeout).await {
                        Some(WorkerMessage::OrdersRead(drones)) => read.extend(drones),
                        _ => break,
                    }
                }
                read
            }
        });
        Ok(join_all(asked).await.into_iter().flatten().collect())
    }

    /// Sends every worker its commands, one after the other; all workers at the same time. A lost one is no
    /// error.
    async fn each_worker(&self, commands: impl Fn(&Worker) -> Vec<WorkerCommand>) -> Result<()> {
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
            for drones in worker.hosted_of(drones).chunks(PER_LINE) {
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
        join_all(self.workers.iter().map(|worker| worker.finish(self.timeout))).await
    }
}

fn texts(addresses: &[Multiaddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn setup<S: Suite>(plan: &Plan, setting: &NodeSettings<S>, swarm: usize) -> Setup {
    Setup {
        seed: plan.seed,
        transport: plan.transport,
        kem: plan.kem,
        deputies: plan.deputies,
        relays: Vec::new(),
        swarm: u32::try_from(swarm).unwrap_or(u32::MAX),
        deployment: setting.deployment.name().to_string(),
        master: hex::encode(setting.deployment.master().as_bytes()),
        kgcs: setting.kgcs.ids().to_vec(),
        admission: setting.admission.as_ref().map(|admission| admission.setup()),
    }
}

/// Listens until all workers have connected. Greetings are heard side by side, because whoever connects and says
/// nothing must not keep workers waiting.
async fn accept(plan: &Plan, progress: &Progress) -> Result<Vec<PendingWorker>> {
    let bind = &plan.bind;
    let failed = |error: std::io::Error| SimError::Usage(format!("--bind {bind}: {error}"));
    let listener = TcpListener::bind(bind.as_str()).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let workers = plan.workers as usize;
    progress.note(&format!("waiting for {}: sim worker {address}", counted(plan.workers, "worker")));
    let step = progress.step("workers", workers);
    let deadline = sleep(plan.timeout);
    tokio::pin!(deadline);
    let mut greetings = FuturesUnordered::new();
    let mut pending = Vec::new();
    while pending.len() < workers {
        tokio::select! {
            () = &mut deadline => {
                return Err(SimError::Late {
                    what: format!("{} of {} connected", pending.len(), counted(plan.workers, "worker")),
                    within: plan.timeout,
                });
            }
            Some((from, greeted)) = greetings.next() => match greeted {
                Ok(Ok((incoming, out))) => {
                    pending.push(PendingWorker { who: format!("worker {} ({from})", pending.len() + 1), incoming, out });
                    step.done(pending.len());
                }
                Ok(Err(why)) => tracing::warn!(%from, why, "rejected"),
                Err(_) => tracing::warn!(%from, "rejected: no greeting"),
            },
            accepted = listener.accept(), if greetings.len() < workers + SILENT => {
                let (stream, from) = accepted.map_err(failed)?;
                greetings.push(async move { (from, tokio::time::timeout(GREETING, greet(stream)).await) });
            }
        }
    }
    Ok(pending)
}

/// Hears whether a worker of this version has connected.
async fn greet(stream: TcpStream) -> std::result::Result<(MessageReader, MessageWriter), String> {
    let (mut incoming, out) = worker_message::ends(stream);
    match incoming.next().await {
        Ok(WorkerMessage::Hello { version }) if version == worker_message::VERSION => Ok((incoming, out)),
        Ok(WorkerMessage::Hello { version }) => {
            Err(format!("it is of version {version}, this run of {}", worker_message::VERSION))
        }
        Ok(_) => Err("it is not a worker".into()),
        Err(error) => Err(error.to_string()),
    }
}

impl PendingWorker {
    /// Assigns drones to a worker.
    async fn assign<S: Suite>(
        mut self,
        setup: Setup,
        drones: Vec<u32>,
        tokens: &[IssuedToken<S>],
        event_log: Arc<EventLog>,
        timeout: Duration,
    ) -> Result<Worker> {
        let assigned = tokio::time::timeout(timeout, self.send_drones(setup, &drones, tokens)).await;
        let failed = |why: String| SimError::Worker { who: self.who.clone(), why };
        let began = match assigned {
            Ok(Ok(began)) => began,
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => return Err(failed("it does not answer".into())),
        };
        let Self { who, incoming, out } = self;
        let (sender, answers) = mpsc::channel(1);
        let lost = Arc::new(Mutex::new(None));
        let reader = WorkerReader {
            drones: drones.clone(),
            event_log: event_log.clone(),
            began,
            answers: sender,
            lost: lost.clone(),
        };
        let reading = tokio::spawn(reader.read(who.clone(), incoming));
        Ok(Worker { who, drones, event_log, link: Link { out, answers }.into(), lost, reading })
    }

    /// Returns what its clock's zero is on the clock of this process.
    async fn send_drones<S: Suite>(
        &mut self,
        setup: Setup,
        drones: &[u32],
        tokens: &[IssuedToken<S>],
    ) -> std::result::Result<Instant, String> {
        self.send(&WorkerCommand::Setup(Box::new(setup))).await?;
        let last = drones.len().div_ceil(PER_LINE).saturating_sub(1);
        let mut lines: Vec<&[u32]> = drones.chunks(PER_LINE).collect();
        if lines.is_empty() {
            lines.push(&[]);
        }
        for (nth, line) in lines.into_iter().enumerate() {
            let token = |index: &u32| Some((*index, hex::encode(&*tokens.get(*index as usize)?.encode())));
            let tokens = line.iter().filter_map(token).collect();
            self.send(&WorkerCommand::Drones { tokens, last: nth == last }).await?;
        }
        match self.receive().await? {
            WorkerMessage::Ready { drones: hosted } if hosted == drones.len() => {}
            other => return Err(format!("unexpected answer: {other:?}")),
        }
        let mut best: Option<(Duration, Instant)> = None;
        for _ in 0..READINGS {
            let asked = measure::now();
            self.send(&WorkerCommand::Clock).await?;
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

    async fn send(&mut self, command: &WorkerCommand) -> std::result::Result<(), String> {
        self.out.send(command).await.map_err(|error| error.to_string())
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
    lost: Arc<Mutex<Option<String>>>,
}

impl WorkerReader {
    async fn read(self, who: String, mut incoming: MessageReader) {
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
                Err(MessageError::Closed) => break "its connection is gone".into(),
                Err(error) => break error.to_string(),
            }
        };
        mark_lost(&self.lost, &who, why);
        self.event_log.crashed(self.drones);
    }
}

fn mark_lost(lost: &Mutex<Option<String>>, who: &str, why: String) {
    tracing::error!(who, why, "lost a worker");
    // A reason is written in one go.
    lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
}

impl Worker {
    fn hosted_of(&self, drones: &[u32]) -> Vec<u32> {
        drones.iter().copied().filter(|drone| self.drones.binary_search(drone).is_ok()).collect()
    }

    /// Sends a command and waits for the answer; `None` if the worker is lost.
    async fn command(&self, command: &WorkerCommand, timeout: Duration) -> Option<WorkerMessage> {
        let mut link = self.link.lock().await;
        link.out.send(command).await.ok()?;
        match tokio::time::timeout(timeout, link.answers.recv()).await {
            Ok(answer) => answer,
            Err(_) => {
                mark_lost(&self.lost, &self.who, "it does not answer".into());
                self.event_log.crashed(self.drones.iter().copied());
                None
            }
        }
    }

    async fn finish(&self, timeout: Duration) -> WorkerReport {
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
                mark_lost(&self.lost, &self.who, "it did not answer at the end".into());
                (None, None)
            }
        };
        let crashed = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        WorkerReport { who: self.who.clone(), drones: self.drones.len(), crashed, cpu, peak_memory }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
