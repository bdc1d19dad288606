//! The local socket through which a command line talks to the running service.
//!
//! A Unix domain socket in the data directory, for the user that the service runs as and root; one JSON
//! document per line each way, one request per connection, everything bounded: length of a line, time to send it, time to
//! answer, connections at once.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::geteuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::private_file::refuse_if_no_directory;
use crate::{Error, Result};

/// The longest line, in bytes.
pub const LINE_LIMIT: u64 = 1 << 20;
/// The longest answer, in bytes: 20,000 system ids of long names are 2.6 million.
const ANSWER_LIMIT: u64 = 4 << 20;
/// Connections served at once; more wait.
const CONNECTIONS: usize = 32;
/// Connections among them that have not said what they want; of more the oldest ends.
const SILENT: usize = 16;
/// Requests waiting for the service.
const QUEUE: usize = 16;
/// Time to send or read a line.
const LINE_TIME: Duration = Duration::from_secs(5);
/// Time the service has to answer most requests.
pub const USUAL_TIME: Duration = Duration::from_secs(30);
/// Linux's and the BSDs' room for a socket's path (104 on the latter), less the terminating zero.
const PATH_LIMIT: usize = 103;

/// Characters of a role that are repeated.
const ROLE_SHOWN: usize = 20;

/// Path of the control socket of a data directory.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join("control.sock")
}

/// Time limit of the answer to a request.
pub trait TimeLimit {
    /// The time. Half a minute, unless the work depends on the length of something.
    fn time_limit(&self) -> Duration {
        USUAL_TIME
    }
}

/// A request and where its answer goes. An error is a refusal in words.
#[derive(Debug)]
pub struct Call<Q> {
    /// A request about keys of conditions.
    pub request: Q,
    /// Channel of the answer; dropping it says that the service is ending.
    pub answer: oneshot::Sender<std::result::Result<Value, String>>,
}

/// Request as it is written: with the role of the service that is to do it, because several services can do some of
/// the same, and none must do it in the place of another.
#[derive(Serialize)]
struct WrittenRequest<'a, Q> {
    role: &'a str,
    request: &'a Q,
}

/// The same as it is read.
#[derive(Deserialize)]
struct ReadRequest {
    role: String,
    request: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlResponse {
    Ok(Value),
    Error(String),
}

/// The listening socket; removed when this is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Server {
    /// Listens in the data directory. The caller holds the directory's lock, so a socket that is already
    /// there was left by a process that is gone. Requests to another `role` are refused. Must be called within a tokio
    /// runtime.
    pub fn start<Q>(data_dir: &Path, role: &'static str) -> Result<(Self, mpsc::Receiver<Call<Q>>)>
    where
        Q: DeserializeOwned + TimeLimit + Send + 'static,
    {
        let path = socket_path(data_dir);
        let listener = listen(&path)?;
        let (calls, receiver) = mpsc::channel(QUEUE);
        let task = tokio::spawn(accept(listener, calls, role));
        Ok((Self { path, task }, receiver))
    }
}

/// Refuses a data directory whose path is too long for the sockets in it, before anything is asked for or made.
///
/// # Errors
/// [`Error::Config`] with the lengths and the remedy.
pub fn refuse_long_path(data_dir: &Path) -> Result<()> {
    refuse_long(&socket_path(data_dir))
}

fn refuse_long(path: &Path) -> Result<()> {
    let length = path.as_os_str().len();
    if length <= PATH_LIMIT {
        return Ok(());
    }
    Err(Error::Config(format!(
        "{} has {length} bytes, and the path of a socket has at most {PATH_LIMIT}: give a shorter --data-dir, or change to a \
         directory above it and give a relative one",
        path.display()
    )))
}

/// Listens on a socket that only its owner may connect to, in place of one that was left there. Must be called
/// within a tokio runtime.
pub(crate) fn listen(path: &Path) -> Result<UnixListener> {
    refuse_long(path)?;
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(|source| Error::io("listen on", path, source))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(|source| Error::io("chmod", path, source))?;
    Ok(listener)
}

/// Accepts the next connection of this user or of root. Another user's may have come before the socket had its
/// mode.
pub(crate) async fn accept_own(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        let user = stream.peer_cred()?.uid();
        if user == geteuid().as_raw() || user == 0 {
            return Ok(stream);
        }
        tracing::warn!(user, "another user connected to a socket in the data directory, and is not served");
    }
}

/// Connects to a service's socket; `None` if no service listens there.
///
/// # Errors
/// Those of the system, such as that this user may not.
pub(crate) async fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(socket).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            // The last: too long for a socket, so that no service has it.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

async fn accept<Q: DeserializeOwned + TimeLimit + Send + 'static>(
    listener: UnixListener,
    calls: mpsc::Sender<Call<Q>>,
    role: &'static str,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut silent: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match accept_own(&listener).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        silent.retain(|one| !one.is_finished());
        // An operator's command does not wait for programs that connect and say nothing.
        if silent.len() >= SILENT
            && let Some(oldest) = silent.pop_front()
        {
            oldest.abort();
        }
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let calls = calls.clone();
        let listening = tokio::spawn(async move {
            let mut stream = stream;
            let line = read_line(&mut stream).await;
            // A task of its own, which nobody ends: the service may have begun what it was asked for.
            tokio::spawn(async move {
                answer_one(stream, line, calls, role).await;
                drop(permit);
            });
        });
        silent.push_back(listening.abort_handle());
    }
}

async fn answer_one<Q: DeserializeOwned + TimeLimit>(
    mut stream: UnixStream,
    line: std::result::Result<Vec<u8>, String>,
    calls: mpsc::Sender<Call<Q>>,
    role: &str,
) {
    let answer = match line {
        Ok(line) => match read_request(&line, role) {
            Ok(request) => ask(request, &calls).await,
            Err(reason) => ControlResponse::Error(reason),
        },
        Err(reason) => ControlResponse::Error(reason),
    };
    let Ok(mut line) = serde_json::to_vec(&answer) else {
        return;
    };
    line.push(b'\n');
    let _ = timeout(LINE_TIME, stream.write_all(&line)).await;
}

/// The request of a line, if it is one to a service of this role; otherwise the reason why it is none.
fn read_request<Q: DeserializeOwned>(line: &[u8], role: &str) -> std::result::Result<Q, String> {
    let other_version = |error: serde_json::Error| {
        tracing::debug!("request not understood: {error}");
        format!(
            "the running {role} is of another version than this program, and does nothing of the kind: start it anew"
        )
    };
    let asked: ReadRequest = serde_json::from_slice(line).map_err(other_version)?;
    if asked.role != role {
        let (found, wanted) = (with_article(role), with_article(&asked.role));
        return Err(format!("{found} runs with this data directory, and not {wanted}: check --data-dir"));
    }
    serde_json::from_value(asked.request).map_err(other_version)
}

/// A role as people speak of it: `an edge`.
pub(crate) fn with_article(role: &str) -> String {
    let article = if role.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {}", role.chars().filter(|c| !c.is_control()).take(ROLE_SHOWN).collect::<String>())
}

async fn ask<Q: TimeLimit>(request: Q, calls: &mpsc::Sender<Call<Q>>) -> ControlResponse {
    let time_limit = request.time_limit();
    let (sender, receiver) = oneshot::channel();
    let asked = async {
        calls.send(Call { request, answer: sender }).await.ok()?;
        receiver.await.ok()
    };
    match timeout(time_limit, asked).await {
        Ok(Some(Ok(value))) => ControlResponse::Ok(value),
        Ok(Some(Err(reason))) => ControlResponse::Error(reason),
        Ok(None) => ControlResponse::Error("the service is ending".into()),
        Err(_) => ControlResponse::Error("the service is too busy to answer".into()),
    }
}

async fn read_line(stream: &mut UnixStream) -> std::result::Result<Vec<u8>, String> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream).take(LINE_LIMIT);
    let read = timeout(LINE_TIME, reader.read_until(b'\n', &mut line)).await;
    match read {
        Err(_) => Err("no full line in time".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(_)) if line.ends_with(b"\n") => Ok(line),
        Ok(Ok(_)) if line.len() as u64 >= LINE_LIMIT => Err(format!("a line longer than {LINE_LIMIT} bytes")),
        Ok(Ok(_)) => Err("the line has no end".into()),
    }
}

/// Calls the service that runs with `data_dir`; `None` if no service runs, for commands that also work
/// without it.
///
/// # Errors
/// Those of [`call`] but [`Error::NotRunning`].
pub async fn call_if_running<Q: Serialize + TimeLimit, A: DeserializeOwned>(
    data_dir: &Path,
    role: &str,
    request: &Q,
) -> Result<Option<A>> {
    match call(data_dir, role, "", request).await {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::NotRunning { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks the service of this `role` that runs with `data_dir`. `verb` is for the message that says how to start it.
///
/// # Errors
/// [`Error::NotRunning`] if nobody listens, [`Error::Refused`] with the service's reason, also if it has another role, [`Error::Hangs`] if it does
/// not answer in time, [`Error::Io`] if this user may not ask, [`Error::NotADirectory`], [`Error::Control`] otherwise.
pub async fn call<Q: Serialize + TimeLimit, A: DeserializeOwned>(
    data_dir: &Path,
    role: &str,
    verb: &'static str,
    request: &Q,
) -> Result<A> {
    let socket = socket_path(data_dir);
    let failed = |reason: String| Error::Control { socket: socket.clone(), reason };
    refuse_if_no_directory(data_dir)?;
    let unreachable = |error| Error::io("connect to", &socket, error);
    let Some(mut stream) = connect(&socket).await.map_err(unreachable)? else {
        return Err(Error::NotRunning { role: role.into(), directory: data_dir.into(), socket, verb });
    };
    let mut line =
        serde_json::to_vec(&WrittenRequest { role, request }).map_err(|error| failed(error.to_string()))?;
    line.push(b'\n');
    if line.len() as u64 > LINE_LIMIT {
        return Err(Error::Refused(format!("the request is longer than {LINE_LIMIT} bytes")));
    }
    let exchange = async {
        stream.write_all(&line).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        let mut reader = BufReader::new(&mut stream).take(ANSWER_LIMIT);
        reader.read_until(b'\n', &mut answer).await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer).map_err(|error| error.to_string())
    };
    let within = request.time_limit() + LINE_TIME;
    let answered = timeout(within, exchange).await;
    let hangs = |_| Error::Hangs { place: socket.display().to_string(), seconds: within.as_secs() };
    match answered.map_err(hangs)?.map_err(failed)? {
        ControlResponse::Ok(value) => {
            serde_json::from_value(value).map_err(|error| failed(error.to_string()))
        }
        ControlResponse::Error(reason) => Err(Error::Refused(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TimeLimit for String {}
    impl TimeLimit for &str {}

    fn echo(data_dir: &Path) -> Server {
        let (server, mut calls) = Server::start::<String>(data_dir, "edge").expect("start");
        tokio::spawn(async move {
            while let Some(Call { request, answer }) = calls.recv().await {
                let reply = if request == "no" { Err("because".into()) } else { Ok(Value::String(request)) };
                let _ = answer.send(reply);
            }
        });
        server
    }

    async fn ask(data_dir: &Path, text: &str) -> Result<String> {
        call(data_dir, "edge", "run", &text).await
    }

    #[tokio::test]
    async fn request_is_answered_or_refused_in_words() {
        let directory = tempfile::tempdir().expect("tempdir");
        let _server = echo(directory.path());
        assert_eq!(ask(directory.path(), "hello").await.expect("answer"), "hello");
        assert!(
            matches!(ask(directory.path(), "no").await, Err(Error::Refused(reason)) if reason == "because")
        );
        let mode = std::fs::metadata(socket_path(directory.path())).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn request_to_another_role_is_refused_although_this_one_could_do_it() {
        let directory = tempfile::tempdir().expect("tempdir");
        let _server = echo(directory.path());
        let told = call::<_, String>(directory.path(), "leader", "serve", &"evict").await;
        let told = told.expect_err("refused");
        assert_eq!(told.exit(), crate::Exit::Refused);
        assert!(
            told.to_string().starts_with("an edge runs with this data directory, and not a leader"),
            "{told}"
        );
    }

    #[tokio::test]
    async fn request_that_is_not_understood_is_of_another_version() {
        let directory = tempfile::tempdir().expect("tempdir");
        let _server = echo(directory.path());
        // No text, as the echo wants.
        struct Number(u32);
        impl TimeLimit for Number {}
        impl Serialize for Number {
            fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_u32(self.0)
            }
        }
        let told = call::<_, String>(directory.path(), "edge", "run", &Number(7)).await;
        let told = told.expect_err("refused").to_string();
        assert!(
            told.starts_with("the running edge is of another version") && !told.contains("invalid type"),
            "{told}"
        );
    }

    #[tokio::test]
    async fn service_that_hangs_is_told_from_one_that_fails() {
        struct Hasty;
        impl TimeLimit for Hasty {
            fn time_limit(&self) -> Duration {
                Duration::ZERO
            }
        }
        impl Serialize for Hasty {
            fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_unit()
            }
        }
        let directory = tempfile::tempdir().expect("tempdir");
        // It listens, and nobody accepts.
        let _listener = listen(&socket_path(directory.path())).expect("listen");
        let error = call::<_, String>(directory.path(), "leader", "serve", &Hasty).await.expect_err("hangs");
        assert_eq!(error.exit(), crate::Exit::TimedOut, "{error}");
        assert!(error.to_string().contains("did not answer within 5 s"), "{error}");
    }

    #[tokio::test]
    async fn nothing_running_is_said_so_with_the_way_to_start_it() {
        let directory = tempfile::tempdir().expect("tempdir");
        let error = ask(directory.path(), "hello").await.expect_err("nobody there");
        assert!(error.to_string().contains("start it with `edge run`"), "{error}");
        drop(echo(directory.path()));
        assert!(matches!(ask(directory.path(), "hello").await, Err(Error::NotRunning { .. })));
    }

    #[tokio::test]
    async fn only_nothing_running_is_no_answer() {
        let directory = tempfile::tempdir().expect("tempdir");
        let asked =
            async |text: &str| call_if_running::<_, String>(directory.path(), "edge", &text.to_owned()).await;
        assert_eq!(asked("hello").await.expect("no error"), None);
        let _server = echo(directory.path());
        assert_eq!(asked("hello").await.expect("answer").as_deref(), Some("hello"));
        assert!(matches!(asked("no").await, Err(Error::Refused(reason)) if reason == "because"));
    }

    #[tokio::test]
    async fn socket_left_by_a_killed_process_is_taken_over() {
        let directory = tempfile::tempdir().expect("tempdir");
        drop(std::os::unix::net::UnixListener::bind(socket_path(directory.path())).expect("bind"));
        assert!(matches!(ask(directory.path(), "hello").await, Err(Error::NotRunning { .. })));
        let _server = echo(directory.path());
        assert_eq!(ask(directory.path(), "hello").await.expect("answer"), "hello");
    }

    #[tokio::test]
    async fn garbage_and_endless_lines_are_refused_and_the_service_goes_on() {
        let directory = tempfile::tempdir().expect("tempdir");
        let _server = echo(directory.path());
        for bytes in [b"not json\n".to_vec(), vec![b'x'; LINE_LIMIT as usize + 1]] {
            let mut stream = UnixStream::connect(socket_path(directory.path())).await.expect("connect");
            // The far side may stop reading in the middle of an endless line.
            let _ = stream.write_all(&bytes).await;
            let mut answer = String::new();
            let _ = BufReader::new(&mut stream).read_line(&mut answer).await;
            assert!(answer.is_empty() || answer.contains("error"), "{answer}");
        }
        assert_eq!(ask(directory.path(), "hello").await.expect("answer"), "hello");
    }

    #[tokio::test]
    async fn path_too_long_for_a_socket_is_explained() {
        let directory = tempfile::tempdir().expect("tempdir");
        let long = directory.path().join("x".repeat(120));
        std::fs::create_dir(&long).expect("mkdir");
        let error = Server::start::<String>(&long, "edge").expect_err("too long");
        assert!(error.to_string().contains("shorter --data-dir"), "{error}");
        refuse_long_path(&long).expect_err("too long");
        refuse_long_path(Path::new(&"x".repeat(PATH_LIMIT - "/control.sock".len()))).expect("just not");
    }
}
