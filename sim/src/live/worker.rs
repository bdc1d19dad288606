//! A worker: it hosts drones of a run that goes on elsewhere, does what that run says, and tells it what happens to them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quiver_ainq::{Bls12381G1, Deployment, Element, IssuedToken, Ristretto255};
use quiver_net::{Multiaddr, check_file_limit};
use quiver_quorum::QuorumSuite;
use quiver_role::Kgcs;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::SPARE_FILES;
use super::drone::Drone;
use super::happening::{Exported, Happening, Reports};
use super::services::name;
use super::setting::{Setting, Terms};
use super::swarm;
use super::wire::{self, Incoming, Order, Outgoing, Setup, WireError, Word};
use super::world::GLANCE;
use crate::measure;
use crate::plan::SuiteKind;
use crate::report::Outcome;
use crate::{Result, SimError};

/// How long the last words may take: those that wait before them are many where all drones were at work to the end.
const LAST_WORDS: Duration = Duration::from_secs(120);

/// Works for the run at this address until that is over.
///
/// # Errors
/// If the run is not to be reached within this time, or the worker cannot go on.
pub fn work(run: &str, patience: Duration) -> Result<Outcome> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(SimError::Runtime)?;
    let worked = runtime.block_on(serve(run, patience));
    // Thousands of nodes need not be taken down one by one.
    runtime.shutdown_background();
    worked.map(|()| Outcome::Passed)
}

/// Dials until somebody answers: who starts all at once cannot say who is first, and names resolve late.
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
        tokio::time::sleep(10 * GLANCE).await;
    }
}

fn failed(run: &str, why: impl Display) -> SimError {
    SimError::Worker { who: format!("the run at {run}"), why: why.to_string() }
}

async fn serve(run: &str, patience: Duration) -> Result<()> {
    let (mut incoming, mut out) = wire::ends(dial(run, patience).await?);
    let gone = |error: WireError| failed(run, error);
    out.send(&Word::Hello { version: wire::VERSION.into() }).await.map_err(gone)?;
    let setup = match incoming.next().await.map_err(gone)? {
        Order::Setup(setup) => setup,
        other => return Err(failed(run, format!("unexpected order: {other:?}"))),
    };
    tracing::info!(run, drones = setup.swarm, "at work");
    let crew = match setup.suite {
        SuiteKind::Ristretto255 => host::<Ristretto255>(&setup, incoming, out).await,
        SuiteKind::Bls12381 => host::<Bls12381G1>(&setup, incoming, out).await,
    };
    crew.map_err(|why| failed(run, why))
}

/// What goes wrong is told to the run before the worker ends.
async fn host<S: QuorumSuite>(setup: &Setup, incoming: Incoming, out: Outgoing) -> Result<(), String> {
    // It holds what the drones of a plan can say at most: nothing of it may be lost, and no drone may wait for the network.
    let (words, to_write) = mpsc::unbounded_channel();
    let writing = tokio::spawn(write(out, to_write));
    let worked = match Crew::<S>::new(setup, words.clone()) {
        Ok(crew) => crew.work(incoming).await,
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = &worked {
        // If that cannot be told either, the connection's end tells it.
        let _ = words.send(Word::Failed { why: why.clone() });
    }
    drop(words);
    if tokio::time::timeout(LAST_WORDS, writing).await.is_err() {
        return worked.and(Err(format!("it did not hear us out within {} s", LAST_WORDS.as_secs())));
    }
    worked
}

/// Writes until the last word, whatever drones say after it, or until nobody has anything to say any more.
async fn write(mut out: Outgoing, mut words: mpsc::UnboundedReceiver<Word>) {
    while let Some(word) = words.recv().await {
        let mut last = word.is_last();
        let mut written = out.feed(&word).await;
        // As many at once as there are.
        while !last && let (Ok(()), Ok(word)) = (&written, words.try_recv()) {
            last = word.is_last();
            written = out.feed(&word).await;
        }
        if let (Err(error), _) | (_, Err(error)) = (written, out.flush().await) {
            tracing::error!(%error, "the run does not hear any more");
            return;
        }
        if last {
            return;
        }
    }
}

/// The drones' reports, as words.
struct Mouth {
    began: Instant,
    words: mpsc::UnboundedSender<Word>,
}

impl Mouth {
    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn say(&self, word: Word) {
        // Nobody hears it any more: the worker is about to end.
        let _ = self.words.send(word);
    }
}

impl Reports for Mouth {
    fn happened(&self, drone: u32, what: Happening) {
        self.say(Word::Happened { drone, micros: self.micros(), what });
    }

    fn offence(&self, who: &str, offence: &dyn Display) {
        tracing::warn!(who, %offence, "blamed a peer");
        self.say(Word::Blamed { who: who.into(), offence: offence.to_string() });
    }
}

/// The drones that are hosted here.
struct Crew<S: QuorumSuite> {
    setting: Setting<S>,
    drones: BTreeMap<u32, Drone<S>>,
    mouth: Arc<Mouth>,
}

impl<S: QuorumSuite> Crew<S> {
    fn new(setup: &Setup, words: mpsc::UnboundedSender<Word>) -> Result<Self> {
        let broken = |what: &'static str| move |source| SimError::Protocol { what, source };
        let garbled = |error| SimError::Usage(format!("the KGC's key: {error}"));
        let master = hex::decode(&setup.master).map_err(garbled)?;
        let master = Element::decode(&master).map_err(broken("the KGC's key"))?;
        let deployment = Deployment::new(name(&setup.deployment)?, master);
        let mouth = Arc::new(Mouth { began: measure::now(), words });
        let terms = Terms {
            seed: setup.seed,
            transport: setup.transport,
            deputies: setup.deputies,
            drones: setup.swarm,
        };
        let kgcs = Kgcs::quorum(setup.kgcs.clone());
        let setting = Setting::new(&terms, (deployment, kgcs), mouth.clone())?;
        Ok(Self { setting, drones: BTreeMap::new(), mouth })
    }

    /// Does one order after the other, until the last or until the run is gone.
    async fn work(mut self, mut incoming: Incoming) -> Result<(), String> {
        let mut early = None;
        loop {
            let order = match early.take() {
                Some(order) => order,
                None => incoming.next().await.map_err(|error| error.to_string())?,
            };
            let last = matches!(order, Order::Finish);
            let obeyed = {
                let mut obeying = pin!(self.obey(order));
                tokio::select! {
                    obeyed = &mut obeying => obeyed,
                    // What is done may take for ever without a run. One that waits no longer gives its next order meanwhile.
                    next = incoming.next() => {
                        early = Some(next.map_err(|error| error.to_string())?);
                        obeying.await
                    }
                }
            };
            if let Some(answer) = obeyed.map_err(|error| error.to_string())? {
                self.mouth.words.send(answer).map_err(|_| "the run does not hear any more")?;
            }
            if last {
                return Ok(());
            }
        }
    }

    async fn obey(&mut self, order: Order) -> Result<Option<Word>> {
        let Self { setting, drones, mouth } = self;
        let of = |indices: &[u32]| indices.iter().filter_map(|index| drones.get(index)).collect::<Vec<_>>();
        match order {
            Order::Setup(_) => return Err(SimError::Usage("set up twice".into())),
            Order::Drones { tokens, last } => {
                self.take_on(tokens)?;
                return Ok(last.then(|| Word::Ready { drones: self.drones.len() }));
            }
            Order::Clock => return Ok(Some(Word::Clock { micros: mouth.micros() })),
            Order::Enrol { kgcs, at_once } => {
                swarm::enrol(drones.values_mut(), setting, &addresses(&kgcs)?, at_once).await?;
            }
            Order::TakeOff { leaders, first, end } => {
                swarm::take_off(drones.values_mut(), setting, &addresses(&leaders)?, first..end).await?;
            }
            Order::Ask { drones, request } => swarm::ask(of(&drones), setting, request).await?,
            Order::Export { drones } => {
                let keys = swarm::exports(of(&drones), setting).await?;
                let keys = keys.into_iter().map(|(drone, key)| (drone, key.map(Exported)));
                return Ok(Some(Word::Exports(keys.collect())));
            }
            Order::Finish => {
                let (cpu, peak_memory) = (measure::process_cpu(), measure::peak_memory());
                return Ok(Some(Word::Finished { cpu, peak_memory }));
            }
        }
        Ok(Some(Word::Done))
    }

    fn take_on(&mut self, tokens: Vec<(u32, String)>) -> Result<()> {
        for (index, token) in tokens {
            let garbled =
                |error: &dyn Display| SimError::Usage(format!("the token of drone {index}: {error}"));
            let token = hex::decode(token).map_err(|error| garbled(&error))?;
            let token = IssuedToken::decode(&token).map_err(|error| garbled(&error))?;
            self.drones.insert(index, Drone::new(index, token));
        }
        // A node for each, over TCP or QUIC.
        check_file_limit(self.drones.len() as u64 + SPARE_FILES).map_err(SimError::FileLimit)
    }
}

fn addresses(texts: &[String]) -> Result<Vec<Multiaddr>> {
    let address = |text: &String| {
        text.parse().map_err(|error| SimError::Usage(format!("{text} is no address: {error}")))
    };
    texts.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn last_word_is_said_while_drones_go_on_talking() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_, out) = wire::ends(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
        let (mut incoming, _out) = wire::ends(listener.accept().await.unwrap().0);
        let (drone, words) = mpsc::unbounded_channel();
        let blamed = || Word::Blamed { who: "drone".into(), offence: "none".into() };
        drone.send(blamed()).unwrap();
        drone.send(Word::Finished { cpu: Duration::ZERO, peak_memory: None }).unwrap();
        drone.send(blamed()).unwrap();
        let written = tokio::time::timeout(LAST_WORDS, write(out, words)).await;
        assert!(written.is_ok(), "it waits for the drone");
        assert!(matches!(incoming.next().await, Ok(Word::Blamed { .. })));
        assert!(matches!(incoming.next().await, Ok(Word::Finished { .. })));
        assert!(matches!(incoming.next::<Word>().await, Err(WireError::Closed)));
        drop(drone);
    }
}
