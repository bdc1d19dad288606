//! Quiver's edge drone for Python: the extension module `quiver._quiver`. `quiver_edge` does the work; here
//! arguments, events and errors become Python's. The interpreter is not held while a call waits, and Ctrl-C
//! ends the wait.

use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use quiver_edge::{
    Error, ErrorKind, MAX_MESSAGE, MembershipStanding, MessageSender, Options, RemoteService, Token, Unlock,
    Wait,
};

/// The longest time that a drone takes to say how it is doing.
const STATUS_TIME: Duration = Duration::from_secs(5);

/// The exceptions of the package: the base, and its kinds by their codes.
static ERRORS: PyOnceLock<(Py<PyType>, Py<PyDict>)> = PyOnceLock::new();

/// Makes the exceptions of the package known.
#[pyfunction]
fn set_errors(py: Python<'_>, base: Py<PyType>, kinds: Py<PyDict>) {
    // The package is imported once.
    let _ = ERRORS.set(py, (base, kinds));
}

/// The exception for an error.
fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let Some((base, kinds)) = ERRORS.get(py) else { return PyException::new_err(error.to_string()) };
    let kind = kinds.bind(py).get_item(error.kind() as u8).ok().flatten();
    let kind = kind.and_then(|kind| kind.cast_into::<PyType>().ok());
    PyErr::from_type(kind.unwrap_or_else(|| base.bind(py).clone()), error.to_string())
}

/// Seconds as a time limit; `None` is for ever.
fn limit(seconds: Option<f64>) -> PyResult<Duration> {
    let Some(seconds) = seconds else { return Ok(Duration::MAX) };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("timeout is not a number"));
    }
    let limit = Duration::try_from_secs_f64(seconds.max(0.0));
    limit.map_err(|_| PyOverflowError::new_err("timeout is too long: None is for ever"))
}

/// A drone.
#[pyclass(frozen, module = "quiver")]
struct Edge(quiver_edge::Edge);

#[pymethods]
impl Edge {
    #[new]
    #[pyo3(signature = (data_dir, passphrase = None, *, leaders, key_file = None, deployment = None,
        token_file = None, token = None, group = None, kgcs = Vec::new(), enrol_timeout = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        data_dir: PathBuf,
        passphrase: Option<&[u8]>,
        leaders: Vec<String>,
        key_file: Option<PathBuf>,
        deployment: Option<PathBuf>,
        token_file: Option<PathBuf>,
        token: Option<&[u8]>,
        group: Option<String>,
        kgcs: Vec<String>,
        enrol_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let usage = |text: &str| Err(raise(py, &Error::new(ErrorKind::Usage, text)));
        let unlock = match (passphrase, key_file) {
            (Some(passphrase), None) => Unlock::passphrase(passphrase),
            (None, Some(path)) => Unlock::KeyFile(path),
            _ => return usage("give one of `passphrase` and `key_file`"),
        };
        let token = match (token, token_file) {
            (Some(_), Some(_)) => return usage("both `token_file` and `token` are given: give one"),
            (Some(text), None) => Some(Token::text(text)),
            (None, path) => path.map(Token::File),
        };
        let mut options = Options::new(data_dir, unlock);
        (options.deployment, options.token, options.group) = (deployment, token, group);
        (options.leaders, options.kgcs) = (leaders, kgcs);
        if enrol_timeout.is_some() {
            options.enrol_timeout = limit(enrol_timeout)?;
        }
        py.detach(|| quiver_edge::Edge::open(options)).map(Self).map_err(|error| raise(py, &error))
    }

    #[pyo3(signature = (timeout = None))]
    fn join(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        self.wait(py, limit(timeout)?, |edge, wait| edge.join(wait))
    }

    #[pyo3(signature = (timeout = None))]
    fn next_event(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Event>> {
        let event = self.wait(py, limit(timeout)?, |edge, wait| edge.next_event(wait))?;
        Ok(event.map(Event::from))
    }

    #[pyo3(signature = (channel, data, *, signed = true, timeout = None))]
    fn send(
        &self,
        py: Python<'_>,
        channel: &str,
        data: &[u8],
        signed: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        self.wait(py, limit(timeout)?, |edge, wait| edge.send(channel, data, signed, wait))
    }

    #[pyo3(signature = (timeout = None))]
    fn flush(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        self.wait(py, limit(timeout)?, |edge, wait| edge.flush(wait))
    }

    #[pyo3(signature = (name, timeout = None))]
    fn export_key(&self, py: Python<'_>, name: &str, timeout: Option<f64>) -> PyResult<ExportedKey> {
        let exported = self.wait(py, limit(timeout)?, |edge, wait| edge.export_key(name, wait))?;
        let key = exported.key.expose().to_vec();
        Ok(ExportedKey { key, term: exported.term, counter: exported.counter })
    }

    fn status(&self, py: Python<'_>) -> PyResult<Status> {
        self.wait(py, STATUS_TIME, |edge, wait| edge.status_within(wait)).map(Status::from)
    }

    #[pyo3(signature = (timeout = None))]
    fn leave(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        self.wait(py, limit(timeout)?, |edge, wait| edge.leave(wait))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}

impl Edge {
    /// Has the drone do something without holding the interpreter. While it waits, Python's signal handlers run
    /// ten times a second; what one of them raises, as Ctrl-C does, ends the wait and is raised.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        time: Duration,
        call: impl FnOnce(&quiver_edge::Edge, Wait<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let raised = OnceLock::new();
        let done = py.detach(|| {
            let stop = || {
                if raised.get().is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    let _ = raised.set(error);
                }
                raised.get().is_some()
            };
            call(&self.0, Wait::at_most(time).until(&stop))
        });
        match raised.into_inner() {
            Some(error) => Err(error),
            None => done.map_err(|error| raise(py, &error)),
        }
    }
}

/// Something that happened to the drone.
#[pyclass(frozen, module = "quiver")]
enum Event {
    /// The KGC has issued this drone's key.
    Enrolled { name: String },
    /// There is a connection with a service.
    Connected { service: String },
    /// A connection with a service is lost.
    Disconnected { service: String },
    /// The key of this epoch is in use.
    Epoch { term: u64, counter: u64, digest: Vec<u8>, slot: u32 },
    /// A message.
    Message { channel: String, data: Vec<u8>, sender: Option<String>, from_leader: bool, slot: Option<u32> },
    /// A service has refused the drone.
    Refused { service: String, reason: String, transient: bool },
    /// The drone has left the group, as it was told.
    Left {},
    /// The drone was evicted from the group.
    Evicted {},
    /// A leader has contradicted itself, and is refused for good.
    LeaderRefused { name: String },
    /// Of a later version.
    Other {},
}

impl From<quiver_edge::Event> for Event {
    fn from(event: quiver_edge::Event) -> Self {
        match event {
            quiver_edge::Event::Enrolled { name } => Self::Enrolled { name },
            quiver_edge::Event::Connected { service } => Self::Connected { service: word(service) },
            quiver_edge::Event::Disconnected { service } => Self::Disconnected { service: word(service) },
            quiver_edge::Event::Epoch { term, counter, digest, slot } => {
                Self::Epoch { term, counter, digest: digest.to_vec(), slot }
            }
            quiver_edge::Event::Message(message) => {
                let (sender, from_leader, slot) = match message.sender {
                    MessageSender::Signed { name, leader } => (Some(name), leader, None),
                    MessageSender::Unauthenticated { slot } => (None, false, Some(slot)),
                };
                let (channel, data) = (message.channel, message.data.to_vec());
                Self::Message { channel, data, sender, from_leader, slot }
            }
            quiver_edge::Event::Refused { service, reason, transient } => {
                Self::Refused { service: word(service), reason, transient }
            }
            quiver_edge::Event::Left => Self::Left {},
            quiver_edge::Event::Evicted => Self::Evicted {},
            quiver_edge::Event::LeaderRefused { name } => Self::LeaderRefused { name },
            _ => Self::Other {},
        }
    }
}

fn word(service: RemoteService) -> String {
    match service {
        RemoteService::Kgc => "kgc".into(),
        RemoteService::Leader => "leader".into(),
    }
}

/// A key for the application, and the epoch that it is of.
#[pyclass(frozen, get_all, module = "quiver")]
struct ExportedKey {
    key: Vec<u8>,
    term: u64,
    counter: u64,
}

/// How a drone is doing.
#[pyclass(frozen, get_all, module = "quiver")]
struct Status {
    standing: &'static str,
    name: Option<String>,
    group: Option<String>,
    term: Option<u64>,
    counter: Option<u64>,
    digest: Option<Vec<u8>>,
    slot: Option<u32>,
    valid_until: Option<u64>,
    leaders: u32,
    dropped: u64,
}

impl From<quiver_edge::Status> for Status {
    fn from(status: quiver_edge::Status) -> Self {
        let (term, counter) = status.epoch.unzip();
        Self {
            standing: match status.standing {
                MembershipStanding::Enrolling => "enrolling",
                MembershipStanding::Joining => "joining",
                MembershipStanding::Member => "member",
                MembershipStanding::Left => "left",
                MembershipStanding::Evicted => "evicted",
                MembershipStanding::Revoked => "revoked",
                _ => "other",
            },
            name: status.name,
            group: status.group,
            term,
            counter,
            digest: status.digest.map(Vec::from),
            slot: status.slot,
            valid_until: status.valid_until,
            leaders: status.leaders,
            dropped: status.dropped,
        }
    }
}

/// The extension module.
#[pymodule]
mod _quiver {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{Edge, Event, ExportedKey, Status, set_errors};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MAX_MESSAGE", super::MAX_MESSAGE)
    }
}
