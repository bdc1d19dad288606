//! Workers, seen from the run: each hosts every n-th drone, does what it is told, and tells what happens. A worker that is lost
//! takes its drones with it: they count as crashed, and the run goes on without them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use quiver_ainq::{IssuedToken, Suite};
use quiver_crypto::Secret;
use quiver_net::Multiaddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::board::Board;
use super::happening::Reports;
use super::setting::Setting;
use super::swarm::Request;
use super::wire::{self, Incoming, Order, Outgoing, PER_LINE, Setup, WireError, Word};
use crate::measure;
use crate::plan::Plan;
use crate::report::WorkerReport;
use crate::{Result, SimError};
use quiver_report::Progress;

/// How long who connects may take to say that it is a worker.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// How often a worker's clock is read. The reading with the shortest way there and back counts.
const READINGS: u32 = 8;

/// All workers of a run.
pub(crate) struct Crews {
    crews: Vec<Crew>,
    /// How long an answer may take.
    timeout: Duration,
}

struct Crew {
    who: String,
    drones: Vec<u32>,
    board: Arc<Board>,
    link: tokio::sync::Mutex<Link>,
    /// Why it is lost.
    lost: Arc<Mutex<Option<String>>>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Link {
    out: Outgoing,
    answers: mpsc::Receiver<Word>,
}

/// A worker that has said who it is.
struct Recruit {
    who: String,
    incoming: Incoming,
    out: Outgoing,
}

impl Crews {
    /// Waits for the workers, and hands every one its drones.
    ///
    /// # Errors
    /// [`SimError::Late`] if too few come; [`SimError::Worker`] if one cannot do what it is to do.
    pub(crate) async fn gather<S: Suite>(
        plan: &Plan,
        setting: &Setting<S>,
        tokens: &[IssuedToken<S>],
        board: &Arc<Board>,
        progress: &Progress,
    ) -> Result<Self> {
        let recruits = recruit(plan, progress).await?;
        let count = recruits.len();
        let setup = setup(plan, setting, tokens.len());
        let crews = recruits.into_iter().enumerate().map(|(nth, recruit)| {
            let drones: Vec<u32> = (0..).take(tokens.len()).skip(nth).step_by(count).collect();
            recruit.employ(setup.clone(), drones, tokens, board.clone(), plan.timeout)
        });
        let crews = try_join_all(crews).await?;
        tracing::info!(workers = crews.len(), "all workers are at work");
        // Longer than a step may take, so that who is late there is late in that step.
        Ok(Self { crews, timeout: plan.timeout + INTRODUCTION })
    }

    pub(crate) async fn enrol(&self, kgcs: &[Multiaddr], at_once: usize) -> Result<()> {
        let at_once = at_once.div_ceil(self.crews.len().max(1));
        let kgcs = texts(kgcs);
        self.all(|_| vec![Order::Enrol { kgcs: kgcs.clone(), at_once }]).await
    }

    pub(crate) async fn take_off(&self, leaders: &[Multiaddr], drones: Range<u32>) -> Result<()> {
        let (leaders, Range { start: first, end }) = (texts(leaders), drones);
        self.all(|_| vec![Order::TakeOff { leaders: leaders.clone(), first, end }]).await
    }

    pub(crate) async fn ask(&self, drones: &[u32], request: Request) -> Result<()> {
        self.all(|crew| {
            let theirs = crew.those_of(drones);
            theirs.chunks(PER_LINE).map(|drones| Order::Ask { drones: drones.to_vec(), request }).collect()
        })
        .await
    }

    /// Gives every worker its orders, one after the other; all workers at the same time. One that is lost is no error.
    async fn all(&self, orders: impl Fn(&Crew) -> Vec<Order>) -> Result<()> {
        let given = self.crews.iter().map(|crew| {
            let orders = orders(crew);
            async move {
                for order in orders {
                    crew.order(&order, self.timeout).await;
                }
            }
        });
        join_all(given).await;
        Ok(())
    }

    pub(crate) async fn exports(&self, drones: &[u32]) -> Result<Vec<(u32, Option<Secret<32>>)>> {
        let asked = self.crews.iter().map(|crew| async move {
            let mut exports = Vec::new();
            for drones in crew.those_of(drones).chunks(PER_LINE) {
                match crew.order(&Order::Export { drones: drones.to_vec() }, self.timeout).await {
                    Some(Word::Exports(keys)) => exports.extend(keys),
                    _ => break,
                }
            }
            exports
        });
        let exports = join_all(asked).await.into_iter().flatten();
        Ok(exports.map(|(drone, key)| (drone, key.map(|exported| exported.0))).collect())
    }

    /// Lets all workers go, and tells what became of each.
    pub(crate) async fn finish(&self) -> Vec<WorkerReport> {
        join_all(self.crews.iter().map(|crew| crew.finish(self.timeout))).await
    }
}

fn texts(addresses: &[Multiaddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn setup<S: Suite>(plan: &Plan, setting: &Setting<S>, swarm: usize) -> Setup {
    Setup {
        seed: plan.seed,
        transport: plan.transport,
        suite: plan.suite,
        deputies: plan.deputies,
        swarm: u32::try_from(swarm).unwrap_or(u32::MAX),
        deployment: setting.deployment.name().to_string(),
        master: hex::encode(setting.deployment.master().as_bytes()),
        kgcs: setting.kgcs.ids().to_vec(),
    }
}

/// Listens until as many workers have come as there shall be.
async fn recruit(plan: &Plan, progress: &Progress) -> Result<Vec<Recruit>> {
    let bind = &plan.bind;
    let failed = |error: std::io::Error| SimError::Usage(format!("--bind {bind}: {error}"));
    let listener = TcpListener::bind(bind.as_str()).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let workers = plan.workers as usize;
    progress.note(&format!("waiting for {workers} workers: sim worker {address}"));
    let step = progress.step("workers", workers);
    let deadline = measure::now() + plan.timeout;
    let mut recruits = Vec::new();
    while recruits.len() < workers {
        let left = deadline.saturating_duration_since(measure::now());
        let accepted = tokio::time::timeout(left, listener.accept()).await;
        let late = SimError::Late { what: "arrival of all workers", within: plan.timeout };
        let (stream, from) = accepted.map_err(|_| late)?.map_err(failed)?;
        let who = format!("worker {} ({from})", recruits.len() + 1);
        match tokio::time::timeout(INTRODUCTION, introduce(stream, who)).await {
            Ok(Ok(recruit)) => recruits.push(recruit),
            Ok(Err(why)) => tracing::warn!(%from, why, "turned away"),
            Err(_) => tracing::warn!(%from, "turned away: it said nothing"),
        }
        step.done(recruits.len());
    }
    Ok(recruits)
}

async fn introduce(stream: TcpStream, who: String) -> std::result::Result<Recruit, String> {
    let (mut incoming, out) = wire::ends(stream);
    match incoming.next().await {
        Ok(Word::Hello { version }) if version == wire::VERSION => Ok(Recruit { who, incoming, out }),
        Ok(Word::Hello { version }) => {
            Err(format!("it is of version {version}, this run of {}", wire::VERSION))
        }
        Ok(_) => Err("it is no worker".into()),
        Err(error) => Err(error.to_string()),
    }
}

impl Recruit {
    /// Hands a worker its drones.
    async fn employ<S: Suite>(
        mut self,
        setup: Setup,
        drones: Vec<u32>,
        tokens: &[IssuedToken<S>],
        board: Arc<Board>,
        timeout: Duration,
    ) -> Result<Crew> {
        let instructed = tokio::time::timeout(timeout, self.instruct(setup, &drones, tokens)).await;
        let failed = |why: String| SimError::Worker { who: self.who.clone(), why };
        let began = match instructed {
            Ok(Ok(began)) => began,
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => return Err(failed("it does not answer".into())),
        };
        let Self { who, incoming, out } = self;
        let (told, answers) = mpsc::channel(1);
        let lost = Arc::new(Mutex::new(None));
        let ear =
            Ear { drones: drones.clone(), board: board.clone(), began, answers: told, lost: lost.clone() };
        let listening = tokio::spawn(ear.listen(who.clone(), incoming));
        Ok(Crew { who, drones, board, link: Link { out, answers }.into(), lost, listening })
    }

    /// Returns what its clock's zero is on the clock of this process.
    async fn instruct<S: Suite>(
        &mut self,
        setup: Setup,
        drones: &[u32],
        tokens: &[IssuedToken<S>],
    ) -> std::result::Result<Instant, String> {
        self.say(&Order::Setup(Box::new(setup))).await?;
        let last = drones.len().div_ceil(PER_LINE).saturating_sub(1);
        let mut lines: Vec<&[u32]> = drones.chunks(PER_LINE).collect();
        if lines.is_empty() {
            lines.push(&[]);
        }
        for (nth, line) in lines.into_iter().enumerate() {
            let token = |index: &u32| Some((*index, hex::encode(&*tokens.get(*index as usize)?.encode())));
            let tokens = line.iter().filter_map(token).collect();
            self.say(&Order::Drones { tokens, last: nth == last }).await?;
        }
        match self.hear().await? {
            Word::Ready { drones: hosted } if hosted == drones.len() => {}
            other => return Err(format!("unexpected answer: {other:?}")),
        }
        let mut best: Option<(Duration, Instant)> = None;
        for _ in 0..READINGS {
            let asked = measure::now();
            self.say(&Order::Clock).await?;
            let Word::Clock { micros } = self.hear().await? else {
                return Err("it does not tell its time".into());
            };
            let way = asked.elapsed();
            let began = (asked + way / 2).checked_sub(Duration::from_micros(micros));
            if let Some(began) = began.filter(|_| best.is_none_or(|(shortest, _)| way < shortest)) {
                best = Some((way, began));
            }
        }
        best.map(|(_, began)| began).ok_or_else(|| "its clock runs since before this machine's".into())
    }

    async fn say(&mut self, order: &Order) -> std::result::Result<(), String> {
        self.out.send(order).await.map_err(|error| error.to_string())
    }

    async fn hear(&mut self) -> std::result::Result<Word, String> {
        match self.incoming.next().await {
            Ok(Word::Failed { why }) => Err(why),
            Ok(word) => Ok(word),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Hears what a worker says.
struct Ear {
    drones: Vec<u32>,
    board: Arc<Board>,
    began: Instant,
    answers: mpsc::Sender<Word>,
    lost: Arc<Mutex<Option<String>>>,
}

impl Ear {
    async fn listen(self, who: String, mut incoming: Incoming) {
        let why = loop {
            match incoming.next().await {
                Ok(Word::Failed { why }) => break why,
                Ok(Word::Happened { drone, .. }) if self.drones.binary_search(&drone).is_err() => {
                    break format!("it speaks of drone {drone}, which it does not host");
                }
                Ok(Word::Happened { drone, micros, what }) => {
                    self.board.happened_at(drone, what, self.began + Duration::from_micros(micros));
                }
                Ok(Word::Blamed { who, offence }) => self.board.offence(&who, &offence),
                Ok(last @ Word::Finished { .. }) => {
                    // Whoever waited may have given up.
                    let _ = self.answers.send(last).await;
                    return;
                }
                Ok(answer) => {
                    if self.answers.send(answer).await.is_err() {
                        return;
                    }
                }
                Err(WireError::Closed) => break "its connection is gone".into(),
                Err(error) => break error.to_string(),
            }
        };
        give_up(&self.lost, &who, why);
        self.board.crashed(self.drones);
    }
}

fn give_up(lost: &Mutex<Option<String>>, who: &str, why: String) {
    tracing::error!(who, why, "lost a worker");
    // A reason is written in one go.
    lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
}

impl Crew {
    fn those_of(&self, drones: &[u32]) -> Vec<u32> {
        drones.iter().copied().filter(|drone| self.drones.binary_search(drone).is_ok()).collect()
    }

    /// Gives an order and waits for the answer; none if the worker is lost.
    async fn order(&self, order: &Order, timeout: Duration) -> Option<Word> {
        let mut link = self.link.lock().await;
        link.out.send(order).await.ok()?;
        match tokio::time::timeout(timeout, link.answers.recv()).await {
            Ok(answer) => answer,
            Err(_) => {
                give_up(&self.lost, &self.who, "it does not answer".into());
                self.board.crashed(self.drones.iter().copied());
                None
            }
        }
    }

    async fn finish(&self, timeout: Duration) -> WorkerReport {
        let mut word = self.order(&Order::Finish, timeout).await;
        // An answer to an order that nobody waited for any longer comes before.
        while matches!(word, Some(Word::Done | Word::Exports(_))) {
            let mut link = self.link.lock().await;
            word = tokio::time::timeout(timeout, link.answers.recv()).await.ok().flatten();
        }
        let (cpu, peak_memory) = match word {
            Some(Word::Finished { cpu, peak_memory }) => (Some(cpu), peak_memory),
            _ => {
                give_up(&self.lost, &self.who, "it did not answer at the end".into());
                (None, None)
            }
        };
        let crashed = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        WorkerReport { who: self.who.clone(), drones: self.drones.len(), crashed, cpu, peak_memory }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
