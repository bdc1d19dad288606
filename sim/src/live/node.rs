//! Runs a machine on the network.

use quiver_machine::Machine;
use quiver_net::{Driver, Handle, Host, NodeConfig};
use rand_chacha::ChaCha20Rng;
use tokio::task::JoinHandle;

use crate::{Result, SimError};

/// A machine running on the network. Dropping it stops it at once, like a crash.
#[derive(Debug)]
pub(crate) struct LiveNode<M: Machine> {
    who: String,
    handle: Handle<M>,
    task: JoinHandle<()>,
}

impl<M> LiveNode<M>
where
    M: Machine + Send + 'static,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
{
    /// Starts a machine.
    pub(crate) fn start(
        who: String,
        config: &NodeConfig,
        machine: M,
        host: impl Host<M> + 'static,
        rng: ChaCha20Rng,
    ) -> Result<Self> {
        let (driver, handle) = Driver::new(config, machine, host, rng)
            .map_err(|source| SimError::Node { who: who.clone(), source })?;
        let name = who.clone();
        // Boxed: the future is large, and every block around it would hold another copy.
        let running = Box::pin(driver.run(std::future::pending()));
        let task = tokio::spawn(async move {
            if let Err(error) = running.await {
                tracing::error!(node = name, %error, "stopped");
            }
        });
        Ok(Self { who, handle, task })
    }

    /// Sends the machine a command.
    pub(crate) async fn command(&self, command: M::Command) -> Result<()> {
        self.handle.command(command).await.map_err(|_| self.stopped())
    }

    /// Reads the machine.
    pub(crate) async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&M) -> T + Send + 'static,
    ) -> Result<T> {
        self.handle.inspect(look).await.map_err(|_| self.stopped())
    }

    /// The driver's end: counters, addresses.
    pub(crate) fn handle(&self) -> &Handle<M> {
        &self.handle
    }

    /// Stops it without warning and waits until its sockets are closed.
    pub(crate) async fn kill(&mut self) {
        self.task.abort();
        // Aborted or already over: either way it is gone.
        let _ = (&mut self.task).await;
    }

    pub(crate) fn stopped(&self) -> SimError {
        SimError::Stopped { who: self.who.clone() }
    }
}

impl<M: Machine> Drop for LiveNode<M> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
