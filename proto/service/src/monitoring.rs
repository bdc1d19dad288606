//! Metrics and health over HTTP: `/metrics` in the OpenMetrics text format, `/healthz`, `/readyz`; at an
//! address if one is given, and always at a socket in the data directory, which only its owner may enter.
//!
//! *Healthy* is a service whose loop turns; one that is not should be restarted. *Ready* is one that does its
//! work; one that is not says why, a reason per line, and a restart would mostly not help. Everything is
//! bounded: connections at once, length and time of a request, time to look at the machine. One request per
//! connection: there is little to gain from more. With too many connections the oldest ends, so that whoever holds
//! connections open keeps nobody out.

mod endpoint;
mod health;
#[cfg(feature = "net")]
pub mod node;
mod text_format;

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use crate::{Error, Result, control};

pub use health::ask;

/// Name of the socket in the data directory.
const SOCKET: &str = "health.sock";

/// Connections served at once.
const CONNECTIONS: usize = 16;
/// Time the machine has to be looked at.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// Readiness of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Reason why it does not do its work; empty if it does.
    pub reasons: Vec<String>,
}

impl Readiness {
    /// The service does its work.
    #[must_use]
    pub fn ready() -> Self {
        Self::default()
    }

    /// The service does not do its work, for this reason.
    #[must_use]
    pub fn not_ready(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()] }
    }

    /// Adds a reason.
    pub fn add_reason(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }

    /// Returns true if the service does its work.
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Future of a service's readiness.
pub type Look = Pin<Box<dyn Future<Output = Readiness> + Send>>;

/// Updates the gauges of the running service, and returns its readiness.
type Probe = Arc<dyn Fn() -> Look + Send + Sync>;

/// State that the endpoint answers from.
struct Watched {
    /// Role of the service.
    role: &'static str,
    registry: Registry,
    probe: Mutex<Probe>,
    look_time: Duration,
}

impl Watched {
    fn probe(&self) -> MutexGuard<'_, Probe> {
        // It is replaced as a whole: a thread that panicked left it whole.
        self.probe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks readiness; `None` if the loop does not answer.
    async fn look(&self) -> Option<Readiness> {
        let looking = (self.probe())();
        timeout(self.look_time, looking).await.ok()
    }
}

/// A registry for the metrics of a service, all of which begin with `quiver_`, with the version of the
/// program in it.
pub fn registry(version: &'static str) -> Registry {
    let mut registry = Registry::with_prefix("quiver");
    registry.register("build", "The program's version", Info::new(vec![("version", version)]));
    registry
}

/// Registers metrics of one kind, each with its name and help.
pub fn register<M: Metric + Clone>(registry: &mut Registry, metrics: &[(&str, &str, &M)]) {
    for (name, help, metric) in metrics {
        registry.register(*name, *help, (*metric).clone());
    }
}

/// A number as gauges take it; what is beyond them is their largest.
pub fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Place where a service is watched.
#[derive(Clone, Copy, Debug)]
pub struct MonitorPlace<'a> {
    /// Role of the service. Answers name it, so that none is taken for that of another.
    pub role: &'static str,
    /// Directory of the socket.
    pub data_dir: &'a Path,
    /// Address, if it is watched at one, too.
    pub address: Option<SocketAddr>,
}

/// The endpoint; it closes when this is dropped.
#[derive(Debug)]
pub struct Monitor {
    watched: Arc<Watched>,
    serving: Option<(SocketAddr, JoinHandle<()>)>,
    local: Option<Local>,
}

/// The endpoint in the data directory; its socket is removed when this is dropped.
#[derive(Debug)]
struct Local {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.serving {
            task.abort();
        }
    }
}

impl Monitor {
    /// Serves at the socket in the data directory, whose lock the caller holds, and on this address if there
    /// is one. Not ready, for this reason, until [`Self::watch`] gives it something to look at.
    ///
    /// # Errors
    /// [`Error::Metrics`] if the address cannot be listened on, [`Error::Config`] and [`Error::Io`] if the
    /// socket cannot.
    pub async fn start(
        place: MonitorPlace<'_>,
        registry: Registry,
        until_watched: &'static str,
    ) -> Result<Self> {
        Self::start_with(place, registry, until_watched, LOOK_TIME).await
    }

    async fn start_with(
        MonitorPlace { role, data_dir, address }: MonitorPlace<'_>,
        registry: Registry,
        until_watched: &'static str,
        look_time: Duration,
    ) -> Result<Self> {
        let starting: Probe = Arc::new(move || Box::pin(async move { Readiness::not_ready(until_watched) }));
        let watched = Arc::new(Watched { role, registry, probe: Mutex::new(starting), look_time });
        let path = data_dir.join(SOCKET);
        let listener = control::listen(&path)?;
        let accepted = async move || control::accept_own(&listener).await;
        let local = Some(Local { path, task: tokio::spawn(accept(accepted, Arc::clone(&watched))) });
        let Some(address) = address else {
            return Ok(Self { watched, serving: None, local });
        };
        let failed = |source| cannot_listen(address, source);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        tracing::info!(address = %bound, "serving metrics and health");
        let accepted = async move || listener.accept().await.map(|(stream, _)| stream);
        let task = tokio::spawn(accept(accepted, Arc::clone(&watched)));
        Ok(Self { watched, serving: Some((bound, task)), local })
    }

    /// Address that it serves at, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.serving.as_ref().map(|(address, _)| *address)
    }

    /// Closes the endpoint. When this returns, the address is free.
    pub async fn close(mut self) {
        self.local = None;
        if let Some((_, task)) = self.serving.take() {
            task.abort();
            // It was cancelled; nothing else can have become of it.
            let _ = task.await;
        }
    }

    /// Sets the probe that is asked from now on.
    pub fn watch(&self, probe: impl Fn() -> Look + Send + Sync + 'static) {
        *self.watched.probe() = Arc::new(probe);
    }
}

/// Checks that metrics can be served at this address, before anything is begun that the error would interrupt.
///
/// # Errors
/// [`Error::MetricsInUse`], [`Error::Metrics`].
pub fn check_address(address: Option<SocketAddr>) -> Result<()> {
    let bound = address
        .map(|address| std::net::TcpListener::bind(address).map_err(|source| cannot_listen(address, source)));
    bound.transpose().map(drop)
}

fn cannot_listen(address: SocketAddr, source: std::io::Error) -> Error {
    if source.kind() == std::io::ErrorKind::AddrInUse {
        Error::MetricsInUse(address)
    } else {
        Error::Metrics { address, source }
    }
}

async fn accept<C: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    accepted: impl AsyncFn() -> std::io::Result<C>,
    watched: Arc<Watched>,
) {
    let mut served: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match accepted().await {
            Ok(stream) => {
                served.retain(|one| !one.is_finished());
                if served.len() >= CONNECTIONS
                    && let Some(oldest) = served.pop_front()
                {
                    oldest.abort();
                }
                let watched = Arc::clone(&watched);
                let serving = tokio::spawn(async move { endpoint::serve(stream, &watched).await });
                served.push_back(serving.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "metrics endpoint");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
