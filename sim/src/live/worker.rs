//! A worker: a rank that hosts part of the drones of a run, executes its commands and reports events.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use quiver_ainq::{Deployment, Element, IssuedToken, Ristretto255, Suite};
use quiver_allocator::{map_large_blocks, use_small_pages};
use quiver_net::{Multiaddr, check_file_limit};

use super::SPARE_FILES;
use super::admission::Admission;
use super::deployment::name;
use super::drone::Drone;
use super::drone_event::{DroneEvent, EventSink, Exported};
use super::node_settings::{NodeSettings, RunParameters};
use super::rank_line::RankLine;
use super::relays::Relays;
use super::worker_message::{
    self, MessageError, MessageReader, MessageWriter, WorkerCommand, WorkerMessage, WorkerSetup,
};
use super::{conditions, envelopes, key_generation, swarm};
use crate::measure;
use crate::report::RunOutcome;
use crate::{Result, SimError, ranks};

/// Hosts drones for the run at the other end of the line until it is over. The outcome says there what keeps
/// the worker from going on, and is a failure.
///
/// # Errors
/// If the run is gone before it says whom to host.
pub fn work(line: RankLine) -> Result<RunOutcome> {
    // Its drones may come with QUIC endpoints.
    map_large_blocks();
    use_small_pages();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SimError::Runtime)?;
    let worked = runtime.block_on(serve(line));
    // Thousands of nodes need not be taken down one by one.
    runtime.shutdown_background();
    worked
}

async fn serve(line: RankLine) -> Result<RunOutcome> {
    let failed = |why: String| SimError::Worker { who: "the run".into(), why };
    let gone = |error: MessageError| failed(error.to_string());
    let (mut incoming, out) = worker_message::ends(line);
    let hello = WorkerMessage::Hello { version: worker_message::VERSION.into(), host: ranks::host() };
    out.send(&hello).map_err(gone)?;
    let setup = match incoming.next().await.map_err(gone)? {
        WorkerCommand::Setup(setup) => setup,
        other => return Err(failed(format!("unexpected command: {other:?}"))),
    };
    tracing::info!(drones = setup.swarm, "at work");
    Ok(host(&setup, incoming, out).await)
}

/// Hosts the drones. An error is sent to the run before the worker ends.
async fn host(setup: &WorkerSetup, incoming: MessageReader, out: MessageWriter) -> RunOutcome {
    let writer = Arc::new(WorkerWriter {
        began: measure::now(),
        orders: Mutex::default(),
        out: Mutex::new(Some(out)),
    });
    let worked = match WorkerProcess::new(setup, writer.clone()) {
        Ok(process) => process.work(incoming).await,
        Err(error) => Err(error.to_string()),
    };
    let Err(why) = worked else { return RunOutcome::Passed };
    tracing::error!(why, "cannot go on");
    // If this is lost too, the end of the line says it.
    writer.send_last(&WorkerMessage::Failed { why });
    RunOutcome::Failed
}

/// Sends the events of drones as messages.
struct WorkerWriter {
    began: Instant,
    /// The orders that drones received.
    orders: Mutex<BTreeMap<u32, Vec<u8>>>,
    /// The way to the run, until the last message.
    out: Mutex<Option<MessageWriter>>,
}

impl WorkerWriter {
    fn orders(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<u8>>> {
        // Orders are put in whole.
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self) -> MutexGuard<'_, Option<MessageWriter>> {
        // It is taken out whole.
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sends a message, unless the last one is sent. Returns whether the run can have it.
    fn send(&self, message: &WorkerMessage) -> bool {
        self.out().as_ref().is_some_and(|out| out.send(message).is_ok())
    }

    /// Sends the last message, whatever drones report after it, and hangs up. Returns whether the run can have it.
    fn send_last(&self, message: &WorkerMessage) -> bool {
        self.out().take().is_some_and(|out| out.send(message).is_ok())
    }
}

impl EventSink for WorkerWriter {
    fn record_event(&self, drone: u32, what: DroneEvent) {
        if let DroneEvent::OrderReceived(order) = &what {
            self.orders().insert(drone, order.clone());
        }
        // If the run is gone, the worker is about to end.
        self.send(&WorkerMessage::Event { drone, micros: self.micros(), what });
    }

    fn order_of(&self, drone: u32) -> Option<Vec<u8>> {
        self.orders().get(&drone).cloned()
    }

    fn offence(&self, who: &str, offence: &dyn Display) {
        tracing::warn!(who, %offence, "blamed a peer");
        self.send(&WorkerMessage::Blamed { who: who.into(), offence: offence.to_string() });
    }
}

/// The drones that are hosted here.
struct WorkerProcess<S: Suite> {
    setting: NodeSettings<S>,
    drones: BTreeMap<u32, Drone<S>>,
    relay_numbers: Vec<u32>,
    relays: Relays,
    writer: Arc<WorkerWriter>,
}

impl WorkerProcess<Ristretto255> {
    fn new(setup: &WorkerSetup, writer: Arc<WorkerWriter>) -> Result<Self> {
        let broken = |what: &'static str| move |source| SimError::Protocol { what, source };
        let garbled = |error| SimError::Usage(format!("the KGC's key: {error}"));
        let master = hex::decode(&setup.master).map_err(garbled)?;
        let master = Element::decode(&master).map_err(broken("the KGC's key"))?;
        let deployment = Deployment::new(name(&setup.deployment)?, master);
        let terms = RunParameters {
            seed: setup.seed,
            transport: setup.transport,
            kem: setup.kem,
            deputies: setup.deputies,
            // The leader's knowledge of them is not known here.
            relays: 0,
            drones: setup.swarm,
        };
        let kgcs = key_generation::kgcs_of(setup.kgcs.clone());
        let mut setting = NodeSettings::new(&terms, (deployment, kgcs), writer.clone())?;
        if let Some(admission) = &setup.admission {
            setting.features.admission = Some(Arc::new(Admission::restore(&setting, admission)?));
        }
        let relay_numbers = setup.relays.clone();
        Ok(Self { setting, drones: BTreeMap::new(), relay_numbers, relays: Relays::default(), writer })
    }
}

impl<S: Suite> WorkerProcess<S> {
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
            let answer = executed.map_err(|error| error.to_string())?;
            let sent = match answer {
                Some(answer) if last => self.writer.send_last(&answer),
                Some(answer) => self.writer.send(&answer),
                None => true,
            };
            if !sent {
                return Err("the run is gone".into());
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
            WorkerCommand::AttributeKeys => {
                envelopes::hand_out_attribute_keys(drones.values(), setting).await?;
            }
            WorkerCommand::ReadOrders { kgcs, drones: asked, terms } => {
                // A node for each drone that collects, connected to every KGC.
                let collecting = (terms.at_once * kgcs.len()) as u64;
                let needed = drones.len() as u64 + collecting + SPARE_FILES;
                check_file_limit(needed).map_err(SimError::FileLimit)?;
                let read = conditions::read_orders(of(&asked), setting, &addresses(&kgcs)?, &terms).await?;
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
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nothing_follows_the_last_message_while_drones_go_on_reporting() {
        let (near, far) = RankLine::pair();
        let (mut incoming, _out) = worker_message::ends(far);
        let (_commands, out) = worker_message::ends(near);
        let writer =
            WorkerWriter { began: measure::now(), orders: Mutex::default(), out: Mutex::new(Some(out)) };
        writer.offence("drone", &"none");
        assert!(writer.send_last(&WorkerMessage::Finished { cpu: Duration::ZERO, peak_memory: None }));
        writer.offence("drone", &"none");
        assert!(!writer.send(&WorkerMessage::Done));
        assert!(matches!(incoming.next().await, Ok(WorkerMessage::Blamed { .. })));
        assert!(matches!(incoming.next().await, Ok(WorkerMessage::Finished { .. })));
        assert!(matches!(incoming.next::<WorkerMessage>().await, Err(MessageError::Closed)));
    }

    #[tokio::test]
    async fn messages_are_bounded_and_what_is_none_is_refused() {
        let (near, far) = RankLine::pair();
        let (mut incoming, _out) = worker_message::ends(far);
        let (_commands, out) = worker_message::ends(near);
        let long = WorkerMessage::Failed { why: "x".repeat(crate::live::rank_line::LONGEST) };
        assert!(matches!(out.send(&long), Err(MessageError::TooLong(_))));
        out.send(&"GET / HTTP/1.1").unwrap();
        assert!(matches!(incoming.next::<WorkerMessage>().await, Err(MessageError::Json(_))));
    }
}
