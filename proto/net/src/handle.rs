//! Handle of a running machine: commands, inspections, and the state of its node.

use std::sync::Arc;

use libp2p::{Multiaddr, PeerId};
use quiver_machine::{Machine, Peer};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock_sync::OtherClocks;
use crate::confirmation::ConfirmationWaiter;
use crate::dial::Unreached;
use crate::duplicate_identity::gossip::DuplicateReport;
use crate::metrics::NetMetrics;

/// The driver has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct Stopped;

/// Reason why a command was not taken at once.
#[derive(Debug, thiserror::Error)]
pub enum Rejected<C> {
    /// Too many commands are waiting already.
    #[error("too many commands are waiting")]
    Full(C),
    /// The driver has stopped.
    #[error("the node has stopped")]
    Stopped(C),
}

/// Reads the machine's state between two batches of inputs.
pub(crate) type Inspection<M> = Box<dyn FnOnce(&M) + Send>;

/// Caller that waits until a command is carried out.
pub(crate) enum CommandWaiter {
    /// Waits for the end alone.
    CarriedOut(oneshot::Sender<()>),
    /// Waits to learn to which peers a message to the group was handed.
    Published(oneshot::Sender<Vec<Peer>>),
}

/// A command, and the sender that waits until it is carried out.
pub(crate) struct PendingCommand<C> {
    pub(crate) command: C,
    pub(crate) done: Option<CommandWaiter>,
}

/// The driver's ends of a handle's channels.
pub(crate) struct Requests<M: Machine> {
    pub(crate) commands: mpsc::Receiver<PendingCommand<M::Command>>,
    pub(crate) inspections: mpsc::Receiver<Inspection<M>>,
    pub(crate) confirmations: mpsc::Receiver<(Peer, ConfirmationWaiter)>,
    pub(crate) hurry: mpsc::Receiver<()>,
    pub(crate) listening: watch::Sender<Vec<Multiaddr>>,
}

/// Gives commands to a running machine and reads its state. Cheap to clone; the driver runs on when all
/// handles are gone.
#[derive(derive_more::Debug)]
#[debug("Handle {{ peer_id: {peer_id:?}, .. }}")]
pub struct Handle<M: Machine> {
    commands: mpsc::Sender<PendingCommand<M::Command>>,
    inspections: mpsc::Sender<Inspection<M>>,
    confirmations: mpsc::Sender<(Peer, ConfirmationWaiter)>,
    hurry: mpsc::Sender<()>,
    listening: watch::Receiver<Vec<Multiaddr>>,
    metrics: Arc<NetMetrics>,
    unreached: watch::Receiver<Vec<Unreached>>,
    other_clocks: watch::Receiver<OtherClocks>,
    reports: watch::Receiver<Vec<DuplicateReport>>,
    peer_id: PeerId,
}

impl<M: Machine> Handle<M> {
    pub(crate) fn new(
        peer_id: PeerId,
        metrics: Arc<NetMetrics>,
        unreached: watch::Receiver<Vec<Unreached>>,
        other_clocks: watch::Receiver<OtherClocks>,
        reports: watch::Receiver<Vec<DuplicateReport>>,
        commands: usize,
    ) -> (Self, Requests<M>) {
        let (commands_in, commands) = mpsc::channel(commands.max(1));
        // Short queues: who asks waits, rather than the driver working off a backlog.
        let (inspections_in, inspections) = mpsc::channel(4);
        let (confirmations_in, confirmations) = mpsc::channel(4);
        // One that waits says all that several would.
        let (hurry_in, hurry) = mpsc::channel(1);
        let (listening, listening_out) = watch::channel(Vec::new());
        let handle = Self {
            commands: commands_in,
            inspections: inspections_in,
            confirmations: confirmations_in,
            hurry: hurry_in,
            listening: listening_out,
            metrics,
            unreached,
            other_clocks,
            reports,
            peer_id,
        };
        (handle, Requests { commands, inspections, confirmations, hurry, listening })
    }

    /// Gives the machine a command, waiting for room if too many are waiting. While records cannot be
    /// persisted, commands wait.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn command(&self, command: M::Command) -> Result<(), Stopped> {
        self.commands.send(PendingCommand { command, done: None }).await.map_err(|_| Stopped)
    }

    /// Sends a command as [`command`](Self::command) does, and waits until the machine's outputs for it are
    /// carried out: its records are durable, its messages handed to the network, its events received by the
    /// host.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn carry_out(&self, command: M::Command) -> Result<(), Stopped> {
        let (done, carried_out) = oneshot::channel();
        self.commands
            .send(PendingCommand { command, done: Some(CommandWaiter::CarriedOut(done)) })
            .await
            .map_err(|_| Stopped)?;
        carried_out.await.map_err(|_| Stopped)
    }

    /// Carries out a command, as [`carry_out`](Self::carry_out) does, that sends a message to the group:
    /// returns to which peers' connections it was handed. Anybody who has proven who it is may be among them,
    /// also a drone that holds no key of the group.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn publish(&self, command: M::Command) -> Result<Vec<Peer>, Stopped> {
        let (answer, published) = oneshot::channel();
        let order = PendingCommand { command, done: Some(CommandWaiter::Published(answer)) };
        self.commands.send(order).await.map_err(|_| Stopped)?;
        published.await.map_err(|_| Stopped)
    }

    /// Waits for an answer of this peer's process that it sends after it has read all that was handed to its
    /// connection so far. `false` if the connection is lost, if the answer does not come in a request's time,
    /// or if the node asks for no time.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn confirm(&self, peer: Peer) -> Result<bool, Stopped> {
        let (waiting, answered) = oneshot::channel();
        self.confirmations.send((peer, waiting)).await.map_err(|_| Stopped)?;
        // A driver that stops drops the waiter, too. Either way the message is not confirmed.
        Ok(answered.await.is_ok())
    }

    /// Makes the node dial addresses that it waits to dial again in a second or two, however often they failed before:
    /// something is lacking that only a peer there has. To be called again for as long as it is.
    pub fn dial_soon(&self) {
        // One that waits already says the same, and a driver that has stopped dials nobody.
        let _ = self.hurry.try_send(());
    }

    /// Gives the machine a command if there is room for it.
    ///
    /// # Errors
    /// [`Rejected`] with the command.
    pub fn try_command(&self, command: M::Command) -> Result<(), Rejected<M::Command>> {
        self.commands.try_send(PendingCommand { command, done: None }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(order) => Rejected::Full(order.command),
            mpsc::error::TrySendError::Closed(order) => Rejected::Stopped(order.command),
        })
    }

    /// Reads the machine's state between two batches of inputs, also while records cannot be persisted. The
    /// closure runs on the driver's task and should be short.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&M) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = oneshot::channel();
        let inspection: Inspection<M> = Box::new(move |machine| {
            // The caller may have stopped waiting.
            let _ = answer.send(look(machine));
        });
        self.inspections.send(inspection).await.map_err(|_| Stopped)?;
        answered.await.map_err(|_| Stopped)
    }

    /// The addresses on which the node listens, as soon as there is one. Runs only while the driver does.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn listening(&self) -> Result<Vec<Multiaddr>, Stopped> {
        let mut listening = self.listening.clone();
        let addresses = listening.wait_for(|addresses| !addresses.is_empty()).await.map_err(|_| Stopped)?;
        Ok(addresses.clone())
    }

    /// The node's counters.
    pub fn metrics(&self) -> &NetMetrics {
        &self.metrics
    }

    /// The configured addresses to which there is no connection although it was tried, and why.
    pub fn unreached(&self) -> Vec<Unreached> {
        // Cloned at once, because the driver waits for this lock when an address is lost or reached.
        self.unreached.borrow().clone()
    }

    /// Summary of other nodes' clocks.
    pub fn other_clocks(&self) -> OtherClocks {
        *self.other_clocks.borrow()
    }

    /// The same each time that it changes.
    ///
    /// # Errors
    /// [`Stopped`] if the driver has stopped.
    pub async fn other_clocks_changed(&mut self) -> Result<OtherClocks, Stopped> {
        self.other_clocks.changed().await.map_err(|_| Stopped)?;
        Ok(*self.other_clocks.borrow_and_update())
    }

    /// The peers that report another process with this node's identity, for people; `None` if there are none.
    pub fn duplicate_identity(&self) -> Option<String> {
        let reports = self.reports.borrow();
        let words: Vec<_> = reports.iter().map(DuplicateReport::to_string).collect();
        (!words.is_empty()).then(|| {
            format!(
                "another process runs with a copy of this one's identity: both asked {}; end the copy",
                words.join(" and ")
            )
        })
    }

    /// The node's name on the transport.
    pub fn peer_id(&self) -> PeerId {
        self.peer_id
    }
}

impl<M: Machine> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            inspections: self.inspections.clone(),
            confirmations: self.confirmations.clone(),
            hurry: self.hurry.clone(),
            listening: self.listening.clone(),
            metrics: self.metrics.clone(),
            unreached: self.unreached.clone(),
            other_clocks: self.other_clocks.clone(),
            reports: self.reports.clone(),
            peer_id: self.peer_id,
        }
    }
}
