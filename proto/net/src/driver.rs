//! Runs a machine: its inputs in, its records persisted, its messages and events out.

mod iteration;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::PeerId;
use quiver_machine::{FinishedJob, Machine, Now};
use rand_core::CryptoRngCore;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::error::NetError;
use crate::handle::{Handle, Requests};
use crate::host::Host;
use crate::metrics::NetMetrics;
use crate::network::DriverNetwork;
use iteration::{DriverAction, OwnedInput};

/// Pause before another attempt to make records durable.
const PERSIST_RETRY: Duration = Duration::from_secs(1);
/// Maximum time for a stopping node to send what is queued.
const FAREWELL: Duration = Duration::from_secs(1);

/// Runs a machine on the network.
#[derive(derive_more::Debug)]
#[debug("Driver {{ peer_id: {peer_id:?}, .. }}")]
pub struct Driver<M: Machine, H> {
    machine: M,
    host: H,
    rng: Box<dyn CryptoRngCore + Send>,
    clock: Clock,
    network: Box<DriverNetwork>,
    metrics: Arc<NetMetrics>,
    requests: Requests<M>,
    peer_id: PeerId,
    batch: usize,
    /// Inputs that the machine has not handled yet.
    arrivals: Vec<OwnedInput<M::Command>>,
    /// Records that must be durable before the actions are carried out.
    records: Vec<M::Record>,
    /// Outputs of the machine to carry out, in order.
    actions: Vec<DriverAction<M::Event>>,
    /// Results of the machine's jobs, which run on threads of their own; and the sender for those threads.
    finished: mpsc::UnboundedReceiver<FinishedJob>,
    finishing: mpsc::UnboundedSender<FinishedJob>,
    /// Deadline of the machine.
    deadline: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    inspector: Option<Inspector<M>>,
}

/// Looks at the machine after each batch of inputs; told whether its records are durable.
type Inspector<M> = Box<dyn FnMut(Now, &M, bool) + Send>;

/// Decision on how the loop goes on.
enum LoopDecision {
    Work,
    Stop,
}

impl<M, H> Driver<M, H>
where
    M: Machine + Send,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
    H: Host<M>,
{
    /// Sets up the node and binds its listeners. Must be called inside a tokio runtime with its I/O and time
    /// enabled.
    ///
    /// The machine alone draws from `rng`.
    ///
    /// # Errors
    /// If an address is in use or not one of the transport's, or if libp2p refuses the configuration.
    pub fn new(
        config: &NodeConfig,
        machine: M,
        host: H,
        rng: impl CryptoRngCore + Send + 'static,
    ) -> Result<(Self, Handle<M>), NetError> {
        let metrics = Arc::new(NetMetrics::default());
        let network = Box::new(DriverNetwork::new(config, metrics.clone())?);
        let peer_id = config.key.peer_id();
        let commands = config.limits.commands;
        let (handle, requests) = Handle::new(
            peer_id,
            metrics.clone(),
            network.unreached(),
            network.other_clocks(),
            network.reports(),
            commands,
        );
        // Unbounded, and never longer than the jobs that the machine gives out at a time.
        let (finishing, finished) = mpsc::unbounded_channel();
        let driver = Self {
            finished,
            finishing,
            machine,
            host,
            rng: Box::new(rng),
            clock: Clock::start(),
            network,
            metrics,
            requests,
            peer_id,
            batch: config.limits.batch.max(1),
            arrivals: Vec::new(),
            records: Vec::new(),
            actions: Vec::new(),
            deadline: None,
            timer: Box::pin(sleep_until(Instant::now())),
            inspector: None,
        };
        Ok((driver, handle))
    }

    /// Lets `inspect` look at the machine after each batch of inputs, and again once the records of that batch
    /// are durable, if they were not: what it is told then. Called on the driver's task; it should be short.
    #[must_use]
    pub fn with_inspector(mut self, inspect: impl FnMut(Now, &M, bool) + Send + 'static) -> Self {
        self.inspector = Some(Box::new(inspect));
        self
    }

    /// The node's name on the transport.
    pub fn peer_id(&self) -> PeerId {
        self.peer_id
    }

    /// Works until `shutdown` ends; then sends what it still has, for at most a second. Dropping the future
    /// stops the node at once, like a crash.
    ///
    /// # Errors
    /// If a listener stops.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NetError> {
        let mut shutdown = pin!(shutdown);
        self.drain_initial();
        self.inspect_machine();
        // §15: every record is durable before any message that depends on it leaves.
        while let LoopDecision::Work = self.persist(shutdown.as_mut()).await {
            self.inspect_machine();
            self.perform();
            // Shutdown comes first, so that a flood of inputs cannot keep the node from stopping.
            let step = poll_fn(|cx| match shutdown.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Ok(LoopDecision::Stop)),
                Poll::Pending => self.gather(cx),
            });
            match step.await? {
                LoopDecision::Work => {
                    self.handle_arrivals();
                    self.inspect_machine();
                }
                LoopDecision::Stop => {
                    // The last messages may be a leave, or an answer that somebody waits for.
                    self.farewell().await;
                    break;
                }
            }
        }
        Ok(())
    }

    /// §20.2: a key that is lost is used no more at once; a new one once it is durable.
    fn inspect_machine(&mut self) {
        if let Some(inspect) = &mut self.inspector {
            inspect(self.clock.now(), &self.machine, self.records.is_empty());
        }
    }

    /// Makes the records durable, however long it takes. Until then nothing is sent and no input is taken.
    async fn persist(&mut self, mut shutdown: Pin<&mut impl Future<Output = ()>>) -> LoopDecision {
        while !self.records.is_empty() {
            match self.host.persist_of(&self.machine, &self.records) {
                Ok(()) => {
                    self.records.clear();
                    self.metrics.unstored.set(0);
                }
                Err(error) => {
                    // §15: nothing leaves before its records are durable, however long that takes.
                    self.metrics.persist_failures.inc();
                    self.metrics.unstored.set(i64::try_from(self.records.len()).unwrap_or(i64::MAX));
                    tracing::error!(
                        records = self.records.len(),
                        "cannot store what must survive a crash: {error}; nothing is sent or received until it is \
                         stored: make room on the disk or repair the data directory; trying again every second"
                    );
                    self.timer.as_mut().reset(Instant::now() + PERSIST_RETRY);
                    let wait = poll_fn(|cx| {
                        if shutdown.as_mut().poll(cx).is_ready() {
                            return Poll::Ready(LoopDecision::Stop);
                        }
                        // Operators have to see why the node stands still.
                        self.serve_inspections(cx);
                        self.timer.as_mut().poll(cx).map(|()| LoopDecision::Work)
                    });
                    // §15: no farewell, because messages that wait depend on records that are not durable.
                    if let LoopDecision::Stop = wait.await {
                        return LoopDecision::Stop;
                    }
                }
            }
        }
        LoopDecision::Work
    }

    /// Collects inputs until none is ready or the batch is full.
    fn gather(&mut self, cx: &mut Context<'_>) -> Poll<Result<LoopDecision, NetError>> {
        let now = Instant::now();
        self.network.tick(now);
        self.serve_inspections(cx);
        self.take_confirmations(cx);
        while let Poll::Ready(Some(())) = self.requests.hurry.poll_recv(cx) {
            self.network.dial_soon(now);
        }
        // Commands before messages, so that a flood from the network does not shut the operator out.
        self.take_commands(cx);
        self.take_finished(cx);
        while self.arrivals.len() < self.batch {
            match self.network.poll_incoming(cx) {
                Poll::Ready(incoming) => self.take_incoming(incoming?),
                Poll::Pending => break,
            }
        }
        // Last in the batch: what came before the deadline may have moved it.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.arrivals.push(OwnedInput::Timeout);
        }
        if !self.arrivals.is_empty() {
            return Poll::Ready(Ok(LoopDecision::Work));
        }
        self.set_timer(cx, now);
        Poll::Pending
    }

    /// Sets the timer to the next deadline, after all that was due has been done.
    fn set_timer(&mut self, cx: &mut Context<'_>, now: Instant) {
        debug_assert!(
            self.network.wake_at().is_none_or(|at| at > now),
            "a node that is woken for what it does not do never sleeps"
        );
        let Some(at) = [self.deadline, self.network.wake_at()].into_iter().flatten().min() else {
            return;
        };
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        // The deadline may have passed since `now`, and a timer that is ready wakes nobody.
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Lets the last messages leave.
    async fn farewell(&mut self) {
        let until = Instant::now() + FAREWELL;
        poll_fn(|cx| {
            let now = Instant::now();
            self.network.tick(now);
            // Inputs are no longer taken; their senders see the connection close.
            while let Poll::Ready(incoming) = self.network.poll_incoming(cx) {
                if incoming.is_err() {
                    return Poll::Ready(());
                }
            }
            if now >= until || self.network.is_idle(now) {
                return Poll::Ready(());
            }
            // Looked at again and again, because no event says that a published message has left.
            self.timer.as_mut().reset(now + Duration::from_millis(20));
            if self.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }
}
