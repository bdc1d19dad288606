//! A worker process: hosts part of the drones of a run, executes its commands and reports events.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quiver_ainq::{Deployment, Element, IssuedToken, Ristretto255};
use quiver_allocator::{map_large_blocks, use_small_pages};
use quiver_enrolment::Kgcs;
use quiver_net::{Multiaddr, check_file_limit};
use quiver_quorum::QuorumSuite;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::SPARE_FILES;
use super::anonymous::Admission;
use super::deployment::name;
use super::drone::Drone;
use super::drone_event::{DroneEvent, EventSink, Exported};
use super::node_settings::{NodeSettings, RunParameters};
use super::relays::Relays;
use super::swarm;
use super::worker_message::{
    self, MessageError, MessageReader, MessageWriter, Setup, WorkerCommand, WorkerMessage,
};
use super::world::POLL_INTERVAL;
use crate::measure;
use crate::report::Outcome;
use crate::{Result, SimError};

/// Time limit of the last messages: many may be queued before them.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(120);

/// Hosts drones for the run at this address until it is over.
///
/// # Errors
/// If the run is not to be reached within this time, or the worker cannot go on.
pub fn work(run: &str, patience: Duration) -> Result<Outcome> {
    // Its drones may come with QUIC endpoints.
    map_large_blocks();
    use_small_pages();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SimError::Runtime)?;
    let worked = runtime.block_on(serve(run, patience));
    // Thousands of nodes need not be taken down one by one.
    runtime.shutdown_background();
    worked.map(|()| Outcome::Passed)
}

/// Dials until the run answers: processes that start together are ready in any order, and names resolve late.
async fn dial(run: &str, patience: Duration) -> Result<TcpStream> {
    let deadline = measure::now() + patience;
    loop {
        match TcpStream::connect(run).await {
            Ok(stream) => return Ok(stream),
            Err(error) if measure::now() >= deadline => {
                return Err(failed(run, format!("no run there within {} s: {error}", patience.as_secs())));
            }
            Err(error) => tracing::debug!(run, %error, "not there yet"),
        }
        tokio::time::sleep(10 * POLL_INTERVAL).await;
    }
}

fn failed(run: &str, why: impl Display) -> SimError {
    SimError::Worker { who: format!("the run at {run}"), why: why.to_string() }
}

async fn serve(run: &str, patience: Duration) -> Result<()> {
    let (mut incoming, mut out) = worker_message::ends(dial(run, patience).await?);
    let gone = |error: MessageError| failed(run, error);
    out.send(&WorkerMessage::Hello { version: worker_message::VERSION.into() }).await.map_err(gone)?;
    let setup = match incoming.next().await.map_err(gone)? {
        WorkerCommand::Setup(setup) => setup,
        other => return Err(failed(run, format!("unexpected command: {other:?}"))),
    };
    tracing::info!(run, drones = setup.swarm, "at work");
    let hosted = host::<Ristretto255>(&setup, incoming, out).await;
    hosted.map_err(|why| failed(run, why))
}

/// Hosts the drones. An error is sent to the run before the worker ends.
async fn host<S: QuorumSuite>(
    setup: &Setup,
    incoming: MessageReader,
    out: MessageWriter,
) -> Result<(), String> {
    // Unbounded, within what the drones of a plan can send: no event may be lost, and no drone may wait for
    // the network.
    let (messages, to_write) = mpsc::unbounded_channel();
    let writing = tokio::spawn(write(out, to_write));
    let worked = match WorkerProcess::<S>::new(setup, messages.clone()) {
        Ok(process) => process.work(incoming).await,
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = &worked {
        // If this is lost too, the end of the connection says it.
        let _ = messages.send(WorkerMessage::Failed { why: why.clone() });
    }
    drop(messages);
    if tokio::time::timeout(FLUSH_TIMEOUT, writing).await.is_err() {
        return worked.and(Err(format!("it did not take all messages within {} s", FLUSH_TIMEOUT.as_secs())));
    }
    worked
}

/// Writes up to the last message, whatever drones send after it, or until all senders are gone.
async fn write(mut out: MessageWriter, mut messages: mpsc::UnboundedReceiver<WorkerMessage>) {
    while let Some(message) = messages.recv().await {
        let mut last = message.is_last();
        let mut written = out.feed(&message).await;
        // As many at once as there are.
        while !last && let (Ok(()), Ok(message)) = (&written, messages.try_recv()) {
            last = message.is_last();
            written = out.feed(&message).await;
        }
        if let (Err(error), _) | (_, Err(error)) = (written, out.flush().await) {
            tracing::error!(%error, "the run is gone");
            return;
        }
        if last {
            return;
        }
    }
}

/// Sends the events of drones as messages.
struct WorkerWriter {
    began: Instant,
    /// The orders that drones received.
    orders: Mutex<BTreeMap<u32, Vec<u8>>>,
    messages: mpsc::UnboundedSender<WorkerMessage>,
}

impl WorkerWriter {
    fn orders(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<u8>>> {
        // Orders are put in whole.
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn send(&self, message: WorkerMessage) {
        // The receiver is gone: the worker is about to end.
        let _ = self.messages.send(message);
    }
}

impl EventSink for WorkerWriter {
    fn record_event(&self, drone: u32, what: DroneEvent) {
        if let DroneEvent::OrderReceived(order) = &what {
            self.orders().insert(drone, order.clone());
        }
        self.send(WorkerMessage::Event { drone, micros: self.micros(), what });
    }

    fn order_of(&self, drone: u32) -> Option<Vec<u8>> {
        self.orders().get(&drone).cloned()
    }

    fn offence(&self, who: &str, offence: &dyn Display) {
        tracing::warn!(who, %offence, "blamed a peer");
        self.send(WorkerMessage::Blamed { who: who.into(), offence: offence.to_string() });
    }
}

/// The drones that are hosted here.
struct WorkerProcess<S: QuorumSuite> {
    setting: NodeSettings<S>,
    drones: BTreeMap<u32, Drone<S>>,
    relay_numbers: Vec<u32>,
    relays: Relays,
    writer: Arc<WorkerWriter>,
}

impl<S: QuorumSuite> WorkerProcess<S> {
    fn new(setup: &Setup, messages: mpsc::UnboundedSender<WorkerMessage>) -> Result<Self> {
        let broken = |what: &'static str| move |source| SimError::Protocol { what, source };
        let garbled = |error| SimError::Usage(format!("the KGC's key: {error}"));
        let master = hex::decode(&setup.master).map_err(garbled)?;
        let master = Element::decode(&master).map_err(broken("the KGC's key"))?;
        let deployment = Deployment::new(name(&setup.deployment)?, master);
        let writer = Arc::new(WorkerWriter { began: measure::now(), orders: Mutex::default(), messages });
        let terms = RunParameters {
            seed: setup.seed,
            transport: setup.transport,
            kem: setup.kem,
            deputies: setup.deputies,
            // What the leader has to know of them is not known here.
            relays: 0,
            drones: setup.swarm,
        };
        let kgcs = Kgcs::quorum(setup.kgcs.clone());
        let mut setting = NodeSettings::new(&terms, (deployment, kgcs), writer.clone())?;
        if let Some(admission) = &setup.admission {
            setting.admission = Some(Arc::new(Admission::restore(&setting, admission)?));
        }
        let relay_numbers = setup.relays.clone();
        Ok(Self { setting, drones: BTreeMap::new(), relay_numbers, relays: Relays::default(), writer })
    }

    /// Executes one command after the other, until the last or until the run is gone.
    async fn work(mut self, mut incoming: MessageReader) -> Result<(), String> {
        let mut early = None;
        loop {
            let command = match early.take() {
                Some(command) => command,
                None => incoming.next().await.map_err(|error| error.to_string())?,
            };
            let last = matches!(command, WorkerCommand::Finish);
            let executed = {
                let mut executing = pin!(self.execute(command));
                tokio::select! {
                    executed = &mut executing => executed,
                    // A command in progress may take for ever without a run. A run that no longer waits gives
                    // its next command meanwhile.
                    next = incoming.next() => {
                        early = Some(next.map_err(|error| error.to_string())?);
                        executing.await
                    }
                }
            };
            if let Some(answer) = executed.map_err(|error| error.to_string())? {
                self.writer.messages.send(answer).map_err(|_| "the run is gone")?;
            }
            if last {
                return Ok(());
            }
        }
    }

    async fn execute(&mut self, command: WorkerCommand) -> Result<Option<WorkerMessage>> {
        let Self { setting, drones, relay_numbers, relays, writer } = self;
        let of = |indices: &[u32]| indices.iter().filter_map(|index| drones.get(index)).collect::<Vec<_>>();
        match command {
            WorkerCommand::Setup(_) => return Err(SimError::Usage("set up twice".into())),
            WorkerCommand::Drones { tokens, last } => {
                self.add_drones(tokens)?;
                return Ok(last.then(|| WorkerMessage::Ready { drones: self.drones.len() }));
            }
            WorkerCommand::Clock => return Ok(Some(WorkerMessage::Clock { micros: writer.micros() })),
            WorkerCommand::Enrol { kgcs, at_once } => {
                swarm::enrol(drones.values_mut(), setting, &addresses(&kgcs)?, at_once).await?;
            }
            WorkerCommand::Start { leaders, first, end } => {
                let leaders = addresses(&leaders)?;
                let ways = relays.ways(setting, relay_numbers.iter().copied(), &leaders).await?;
                swarm::start_drones(drones.values_mut(), setting, (&leaders, ways), first..end).await?;
            }
            WorkerCommand::Ask { drones, request } => swarm::ask(of(&drones), setting, request).await?,
            WorkerCommand::AttributeKeys => swarm::hand_out_attribute_keys(drones.values(), setting).await?,
            WorkerCommand::ReadOrders { kgcs, drones: asked, terms } => {
                // A node for each drone that collects, connected to every KGC.
                let collecting = (terms.at_once * kgcs.len()) as u64;
                let needed = drones.len() as u64 + collecting + SPARE_FILES;
                check_file_limit(needed).map_err(SimError::FileLimit)?;
                let read = swarm::read_orders(of(&asked), setting, &addresses(&kgcs)?, &terms).await?;
                return Ok(Some(WorkerMessage::OrdersRead(read)));
            }
            WorkerCommand::Export { drones } => {
                let keys = swarm::exports(of(&drones), setting).await?;
                let keys = keys.into_iter().map(|(drone, key)| (drone, key.map(Exported)));
                return Ok(Some(WorkerMessage::Exports(keys.collect())));
            }
            WorkerCommand::Finish => {
                let (cpu, peak_memory) = (measure::process_cpu(), measure::peak_memory());
                return Ok(Some(WorkerMessage::Finished { cpu, peak_memory }));
            }
        }
        Ok(Some(WorkerMessage::Done))
    }

    fn add_drones(&mut self, tokens: Vec<(u32, String)>) -> Result<()> {
        for (index, token) in tokens {
            let garbled =
                |error: &dyn Display| SimError::Usage(format!("the token of drone {index}: {error}"));
            let token = hex::decode(token).map_err(|error| garbled(&error))?;
            let token = IssuedToken::decode(&token).map_err(|error| garbled(&error))?;
            self.drones.insert(index, Drone::new(index, token));
        }
        // A node for each, over TCP or QUIC; and at a relay here the other end of its connection.
        let ends = if self.relay_numbers.is_empty() { 1 } else { 2 };
        check_file_limit(ends * self.drones.len() as u64 + SPARE_FILES).map_err(SimError::FileLimit)
    }
}

fn addresses(texts: &[String]) -> Result<Vec<Multiaddr>> {
    let address = |text: &String| {
        text.parse().map_err(|error| SimError::Usage(format!("{text} is not an address: {error}")))
    };
    texts.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn last_message_is_written_while_drones_go_on_reporting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_, out) =
            worker_message::ends(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
        let (mut incoming, _out) = worker_message::ends(listener.accept().await.unwrap().0);
        let (drone, messages) = mpsc::unbounded_channel();
        let blamed = || WorkerMessage::Blamed { who: "drone".into(), offence: "none".into() };
        drone.send(blamed()).unwrap();
        drone.send(WorkerMessage::Finished { cpu: Duration::ZERO, peak_memory: None }).unwrap();
        drone.send(blamed()).unwrap();
        let written = tokio::time::timeout(FLUSH_TIMEOUT, write(out, messages)).await;
        assert!(written.is_ok(), "it waits for the drone");
        assert!(matches!(incoming.next().await, Ok(WorkerMessage::Blamed { .. })));
        assert!(matches!(incoming.next().await, Ok(WorkerMessage::Finished { .. })));
        assert!(matches!(incoming.next::<WorkerMessage>().await, Err(MessageError::Closed)));
        drop(drone);
    }
}
