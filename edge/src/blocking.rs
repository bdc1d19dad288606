//! A drone within another program: the service of `edge run` on threads of its own, blocking calls, a queue of
//! events and a file descriptor to poll.

mod error;
mod event;
mod options;
mod process;
mod queue;
mod shared;
mod status;
mod unconfirmed;
mod wait;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::SigSet;
use quiver_ainq::Name;
use quiver_crypto::Secret;
use quiver_group::EdgeCommand;
use quiver_service::shutdown::{Shutdown, ShutdownRequest};
use tokio::runtime::{Builder, Handle, Runtime};

pub use self::error::{Error, ErrorKind, Result};
pub use self::event::{Event, MessageSender, ReceivedMessage, RemoteService};
pub use self::options::{Options, Token, Unlock};
use self::process::ProcessIdentity;
use self::shared::BlockingState;
pub use self::status::{MembershipStanding, Status};
use self::unconfirmed::Unconfirmed;
pub use self::wait::Wait;
use crate::service::{self, RunningEdge, Start, Task};

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 65_536;
/// Interval at which it is checked whether a drone that has joined is in step.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time that the drone takes to say how it is doing.
const STATUS_TIME: Duration = Duration::from_secs(5);
/// Time that a drone that ends waits for what its threads are at.
const FAREWELL: Duration = Duration::from_secs(1);
/// Threads for disk and names besides the one that works; more wait for each other.
const BLOCKING_THREADS: usize = 8;

/// A drone. See the crate's documentation.
///
/// Any thread may call, several at once. The drone works on threads of its own, on which all signals are
/// blocked; it installs no signal handler and no logger, and prints nothing. A process that was forked has no
/// drone: its calls fail with [`ErrorKind::Forked`]. Dropping it closes it.
///
/// A call waits for a [`Duration`] at most, or for a [`Wait`], which something else can end as well.
pub struct Edge {
    shared: Arc<BlockingState>,
    runtime: Handle,
    shutdown: ShutdownRequest,
    thread: Mutex<Option<JoinHandle<()>>>,
    unconfirmed: Arc<Mutex<Unconfirmed>>,
    /// The process that opened it.
    process: ProcessIdentity,
}

/// A key for the application, and the epoch that it is of.
#[derive(Debug)]
pub struct ExportedKey {
    /// 32 bytes, erased when dropped.
    pub key: Secret<32>,
    /// Term of the epoch.
    pub term: u64,
    /// Counter of the epoch.
    pub counter: u64,
}

impl Edge {
    /// Opens the state in the data directory, and starts the drone: it enrols if it has not, joins its group
    /// and stays in it. Returns once the state file is open and everything that was given fits together, and
    /// does not wait for any other service: that is [`Self::join`].
    ///
    /// # Errors
    /// What is wrong with which option or file: [`ErrorKind::Usage`], [`ErrorKind::Busy`],
    /// [`ErrorKind::Locked`] (passphrase, permissions), [`ErrorKind::BadState`].
    pub fn open(options: Options) -> Result<Self> {
        let (config, unlock, token) = options.into_parts()?;
        let shared = Arc::new(BlockingState::new()?);
        let runtime = runtime()?;
        let handle = runtime.handle().clone();
        let (request, shutdown) = Shutdown::by_request();
        let observer = Arc::clone(&shared);
        let obtain = move |new| unlock.obtain(new);
        let work = move || {
            let start = Start { obtain, token, observer: observer.clone(), shutdown };
            let run = || runtime.block_on(service::run(&config, start, Task::Run));
            // It shares the queue alone with this thread, which panics leave whole.
            let ended = catch_unwind(AssertUnwindSafe(run)).map_or_else(
                |_| Err(Error::new(ErrorKind::Panicked, "the drone has panicked: this is a bug in Quiver")),
                |ended| ended.map_err(Error::from),
            );
            observer.end(ended.err());
            // Its tasks hold the state file. A name that is being looked up keeps nobody waiting for long.
            runtime.shutdown_timeout(FAREWELL);
        };
        let thread = spawn(work)?;
        let edge = Self {
            shared,
            runtime: handle,
            shutdown: request,
            thread: Mutex::new(Some(thread)),
            unconfirmed: Arc::default(),
            process: ProcessIdentity::current(),
        };
        edge.shared.wait_until_open()?;
        Ok(edge)
    }

    /// Waits until the drone is a member of its group, in step with it. One that has left the group joins it
    /// again.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], [`ErrorKind::Refused`] with the reason (by the KGC, which ends the drone; by
    /// the leader, which is asked again now and then), [`ErrorKind::Closed`].
    pub fn join<'a>(&self, timeout: impl Into<Wait<'a>>) -> Result<()> {
        self.check_process()?;
        let wait = timeout.into();
        if let Some(group) = self.shared.begin_to_join() {
            self.call(wait, |edge| async move { edge.command(EdgeCommand::Join(group)).await })??;
        }
        loop {
            self.shared.wait_until_member(wait)?;
            if self.call(wait, |edge| async move { edge.status().await })??.synced {
                return Ok(());
            }
            self.shared.pause(LOOK, wait)?;
        }
    }

    /// The next event; `None` if there is none in this time.
    ///
    /// # Errors
    /// After the last event, why there will be no more: [`ErrorKind::Closed`], or what has ended the drone.
    pub fn next_event<'a>(&self, timeout: impl Into<Wait<'a>>) -> Result<Option<Event>> {
        self.check_process()?;
        self.shared.next_event(timeout.into())
    }

    /// Sends a message to the group: at most [`MAX_MESSAGE`] bytes, on a channel of the application's (1 to 64
    /// characters out of `A-Z a-z 0-9 . _ -`); `signed` if the others shall know who sent it. Returns once
    /// it was handed to the connection of the leader, without waiting for an answer: [`Self::flush`] waits for
    /// one for all messages before. Nothing is queued, and members do not acknowledge messages.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for channel or length, [`ErrorKind::NotJoined`], [`ErrorKind::Failed`] with the
    /// reason why it was not sent, such as that no leader is connected, [`ErrorKind::TimedOut`] if that is not
    /// known.
    pub fn send<'a>(
        &self,
        channel: &str,
        data: &[u8],
        signed: bool,
        timeout: impl Into<Wait<'a>>,
    ) -> Result<()> {
        self.check_process()?;
        let channel = name("channel", channel)?;
        if data.len() > MAX_MESSAGE {
            let text = format!("the message has {} bytes, more than {MAX_MESSAGE}", data.len());
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let wait = timeout.into();
        let (data, unconfirmed) = (data.to_vec(), Arc::clone(&self.unconfirmed));
        self.call(wait, |edge| async move {
            if !edge.status().await?.synced {
                return Err(Error::not_joined());
            }
            let handed = edge.send(channel, data, signed).await;
            let handed = handed.map_err(|reason| Error::new(ErrorKind::Failed, reason))?;
            unconfirmed.lock().unwrap_or_else(PoisonError::into_inner).note(handed);
            Ok(())
        })?
    }

    /// Waits until the leader has answered after every message that was [sent](Self::send) since the last call, and
    /// has proven that the key that they were sealed under is the current one: it was there, and passes on what it
    /// took. A leader that dies in that instant may take a message with it. Two round trips, at most ten seconds,
    /// however many messages.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if some of them may be lost, because the leader does not answer, its connection was
    /// lost, or the group's key has changed since; [`ErrorKind::Closed`], or what has ended the drone; [`ErrorKind::TimedOut`].
    pub fn flush<'a>(&self, timeout: impl Into<Wait<'a>>) -> Result<()> {
        self.check_process()?;
        self.shared.running()?;
        let taken = self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(handed) = taken? else { return Ok(()) };
        let wait = timeout.into();
        self.call(wait, |edge| async move { edge.confirm(handed).await })?.map_err(|reason| {
            let text = format!("{reason}: messages sent since the last answer may be lost");
            Error::new(ErrorKind::Failed, text)
        })
    }

    /// A key of 32 bytes that every member that is in step derives under this name, and nobody else: another
    /// one for each name and each epoch. A name is 1 to 64 characters out of `A-Z a-z 0-9 . _ -`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for the name, [`ErrorKind::NotJoined`], [`ErrorKind::TimedOut`].
    pub fn export_key<'a>(&self, label: &str, timeout: impl Into<Wait<'a>>) -> Result<ExportedKey> {
        self.check_process()?;
        let label = name("name", label)?;
        let exported = self.call(timeout.into(), |edge| async move { edge.export(label).await })??;
        let (epoch, key) = exported.ok_or_else(Error::not_joined)?;
        Ok(ExportedKey { key, term: epoch.term, counter: epoch.counter })
    }

    /// State of the drone.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`], or what has ended the drone; [`ErrorKind::TimedOut`] after five seconds.
    pub fn status(&self) -> Result<Status> {
        self.status_within(STATUS_TIME)
    }

    /// The same, within another time.
    ///
    /// # Errors
    /// Errors of [`Self::status`].
    pub fn status_within<'a>(&self, timeout: impl Into<Wait<'a>>) -> Result<Status> {
        self.check_process()?;
        let machine = match self.shared.running()? {
            Some(_) => Some(self.call(timeout.into(), |edge| async move { edge.status().await })??),
            None => None,
        };
        Ok(self.shared.status(machine.as_ref()))
    }

    /// Leaves the group, and waits until the leader has made a key without this drone, or none can be told.
    /// [`Self::join`] joins again.
    ///
    /// # Errors
    /// [`ErrorKind::NotJoined`] before it has enrolled, [`ErrorKind::TimedOut`]; it goes on leaving.
    pub fn leave<'a>(&self, timeout: impl Into<Wait<'a>>) -> Result<()> {
        self.check_process()?;
        let wait = timeout.into();
        self.call(wait, |edge| async move { edge.command(EdgeCommand::Leave).await })??;
        self.shared.wait_until_left(wait)
    }

    /// Stops the drone, as SIGTERM stops `edge run`: it stays a member, and the next start goes on. Takes two
    /// seconds at most, after which the data directory is free. Calls that wait end with
    /// [`ErrorKind::Closed`], as all later ones do; events that are queued are dropped.
    pub fn close(&self) {
        if self.check_process().is_err() {
            return;
        }
        self.shared.close();
        self.shutdown.request();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It reports a panic by itself.
            let _ = thread.join();
        }
    }

    /// Has the running machine do something, and waits for the answer.
    fn call<T, F>(&self, wait: Wait<'_>, what: impl FnOnce(Arc<dyn RunningEdge>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let edge = self.shared.running()?.ok_or_else(Error::not_joined)?;
        let (answer, answered) = sync_channel(1);
        let work = what(edge);
        self.runtime.spawn(async move {
            // The caller may have stopped waiting.
            let _ = answer.send(work.await);
        });
        loop {
            let answer = match wait.step() {
                None => answered.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(step) => answered.recv_timeout(step),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(self.shared.ended()),
                Err(RecvTimeoutError::Timeout) if wait.has_ended() || wait.is_stopped() => {
                    return Err(Error::timed_out());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn check_process(&self) -> Result<()> {
        if self.process.is_current() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            format!(
                "the drone belongs to process {}, of which this one is a fork: open another",
                self.process.number()
            ),
        ))
    }
}

impl AsFd for Edge {
    /// Readable while an event is queued, and once the drone has ended. For `poll` and the like: not to be
    /// read, written or closed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

/// One thread that works, and a few that wait for disk and names. Signals are the application's.
fn runtime() -> Result<Runtime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("quiver-work")
        .on_thread_start(block_signals)
        .enable_all()
        .build();
    runtime.map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start threads: {error}")))
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("quiver-edge".into());
    let spawned = thread.spawn(|| {
        block_signals();
        work();
    });
    spawned.map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start a thread: {error}")))
}

/// Blocks signals in this thread, because they are for the application's threads. A peer that is gone is an
/// error of a write, no SIGPIPE.
fn block_signals() {
    // It fails for wrong arguments alone.
    let _ = SigSet::all().thread_block();
}

fn name(what: &str, text: &str) -> Result<Name> {
    Name::new(text).map_err(|error| {
        Error::new(
            ErrorKind::Usage,
            format!("{what} `{}`: {error}", text.chars().take(80).collect::<String>()),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use async_trait::async_trait;
    use quiver_ainq::Epoch;
    use quiver_group::edge::EdgeStatus;
    use quiver_net::Stopped;
    use quiver_service::drone::send::Handed;

    use super::*;

    /// A machine that answers nothing, as one whose disk is full.
    struct Stuck;

    #[async_trait]
    impl RunningEdge for Stuck {
        async fn status(&self) -> std::result::Result<EdgeStatus, Stopped> {
            pending().await
        }

        async fn command(&self, _: EdgeCommand) -> std::result::Result<(), Stopped> {
            pending().await
        }

        async fn send(&self, _: Name, _: Vec<u8>, _: bool) -> std::result::Result<Handed, String> {
            pending().await
        }

        async fn confirm(&self, _: Handed) -> std::result::Result<(), &'static str> {
            pending().await
        }

        async fn export(&self, _: Name) -> std::result::Result<Option<(Epoch, Secret<32>)>, Stopped> {
            pending().await
        }
    }

    /// A drone of such a machine, and what its calls run on.
    fn stuck() -> (Edge, Runtime) {
        let runtime = runtime().expect("threads");
        let shared = Arc::new(BlockingState::new().expect("a descriptor"));
        shared.is_running(Arc::new(Stuck));
        let unconfirmed: Arc<Mutex<Unconfirmed>> = Arc::default();
        unconfirmed.lock().expect("a lock").note(Handed { connections: 1, leader: None, epoch: None });
        let edge = Edge {
            shared,
            runtime: runtime.handle().clone(),
            shutdown: Shutdown::by_request().0,
            thread: Mutex::new(None),
            unconfirmed,
            process: ProcessIdentity::current(),
        };
        (edge, runtime)
    }

    #[expect(clippy::disallowed_methods, reason = "the test measures real time")]
    fn now() -> Instant {
        Instant::now()
    }

    /// A call that waits.
    type Call<'a> = &'a dyn Fn(Wait<'_>) -> Result<()>;

    #[test]
    fn every_call_that_waits_ends_when_it_is_told_to() {
        let (edge, _runtime) = stuck();
        let calls: [(&str, Call<'_>); 7] = [
            ("send", &|wait| edge.send("chat", b"hello", true, wait)),
            ("flush", &|wait| edge.flush(wait)),
            ("export_key", &|wait| edge.export_key("map", wait).map(drop)),
            ("status", &|wait| edge.status_within(wait).map(drop)),
            ("leave", &|wait| edge.leave(wait)),
            ("join", &|wait| edge.join(wait)),
            ("next_event", &|wait| match edge.next_event(wait)? {
                Some(event) => panic!("{event:?}"),
                None => Err(Error::timed_out()),
            }),
        ];
        for (name, call) in calls {
            let (asked, begun) = (AtomicU32::new(0), now());
            let stop = || asked.fetch_add(1, Ordering::Relaxed) == 1;
            let error = call(Wait::from(Duration::MAX).until(&stop)).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{name}");
            assert_eq!(asked.load(Ordering::Relaxed), 2, "{name}: it went on until it was told to stop");
            assert!(begun.elapsed() < Duration::from_secs(10), "{name}");
        }
    }

    #[test]
    fn call_without_an_end_lasts_until_the_drone_is_over() {
        let (edge, runtime) = stuck();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| edge.send("chat", b"hello", true, Duration::MAX));
            let taker = scope.spawn(|| edge.next_event(Duration::MAX));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!sender.is_finished() && !taker.is_finished());
            edge.close();
            // The thread that would have answered is gone.
            runtime.shutdown_timeout(FAREWELL);
            assert_eq!(sender.join().expect("no panic").expect_err("closed").kind(), ErrorKind::Closed);
            assert_eq!(taker.join().expect("no panic").expect_err("closed").kind(), ErrorKind::Closed);
        });
    }

    #[test]
    fn another_process_has_no_drone() {
        let (mut edge, _runtime) = stuck();
        edge.process = ProcessIdentity::current().fork_in_another_namespace();
        let error = edge.send("chat", b"hello", true, Duration::MAX).expect_err("not this process's");
        assert_eq!(error.kind(), ErrorKind::Forked);
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        edge.close();
        edge.process = ProcessIdentity::current();
        assert!(edge.shared.running().expect("it was not closed by the other").is_some());
    }
}
