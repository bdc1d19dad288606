//! State that the drone's threads and the application's share: standing, events, and how each learns of the
//! other.

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiver_ainq::Name;
use quiver_group::EdgeEvent;
use quiver_group::edge::EdgeStatus;
use quiver_machine::{Either, RefusalReason, Route};
use quiver_service::drone::feature::GroupEdgeEvent;

use super::queue::BoundedEventQueue;
use super::{Error, ErrorKind, Event, MembershipStanding, RemoteService, Result, Status, Wait};
use crate::service::{EdgeNodeEvent, Observer, RunningEdge};

/// The state that all share.
pub(super) struct BlockingState {
    state: Mutex<DroneState>,
    changed: Condvar,
    /// Holds one byte while there is something to take.
    signal: UnixStream,
    signalled: UnixStream,
}

#[derive(Default)]
struct DroneState {
    phase: Phase,
    standing: MembershipStanding,
    /// Reason for which a leader refuses for good, until the application was told, or it does not any more.
    refusal: Option<String>,
    name: Option<String>,
    group: Option<Name>,
    leaders: u32,
    queue: BoundedEventQueue,
    /// True if there is a byte in the channel.
    raised: bool,
}

#[derive(Default)]
enum Phase {
    /// The state file is not open yet.
    #[default]
    Opening,
    /// The drone enrols, or is about to join.
    Starting,
    /// The machine that joins runs.
    Running(Arc<dyn RunningEdge>),
    /// The drone's run is over, for this reason.
    Ended(Error),
}

impl DroneState {
    /// Queues an event, unless the drone was closed: then nobody takes events.
    fn push(&mut self, event: Event) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.queue.push(event);
        }
    }
}

impl BlockingState {
    pub(super) fn new() -> Result<Self> {
        let channel = || {
            let (signal, signalled) = UnixStream::pair()?;
            signal.set_nonblocking(true)?;
            signalled.set_nonblocking(true)?;
            Ok((signal, signalled))
        };
        let (signal, signalled) = channel().map_err(|error: std::io::Error| {
            Error::new(ErrorKind::Failed, format!("cannot make a file descriptor: {error}"))
        })?;
        Ok(Self { state: Mutex::default(), changed: Condvar::new(), signal, signalled })
    }

    fn lock(&self) -> MutexGuard<'_, DroneState> {
        // Every change is whole between two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and lets everybody know.
    fn change<T>(&self, change: impl FnOnce(&mut DroneState) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        self.signal(&mut state);
        drop(state);
        self.changed.notify_all();
        changed
    }

    /// Makes the descriptor readable or not, as the state has it.
    fn signal(&self, state: &mut DroneState) {
        let wanted = !state.queue.is_empty() || matches!(state.phase, Phase::Ended(_));
        if wanted && !state.raised {
            state.raised = (&self.signal).write(&[0]).is_ok();
        } else if !wanted && state.raised {
            let mut byte = [0];
            let taken = (&self.signalled).read(&mut byte);
            state.raised = taken.is_err_and(|error| error.kind() != IoErrorKind::WouldBlock);
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.signalled.as_fd()
    }

    /// Waits until `look` finds something.
    fn wait<T>(
        &self,
        wait: Wait<'_>,
        mut look: impl FnMut(&mut DroneState) -> Option<Result<T>>,
    ) -> Result<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                self.signal(&mut state);
                return found;
            }
            if wait.has_ended() {
                return Err(Error::timed_out());
            }
            state = match wait.step() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(step) => {
                    let waited = self.changed.wait_timeout(state, step);
                    drop(waited.unwrap_or_else(PoisonError::into_inner).0);
                    // Without the lock: it may run a signal handler that calls the drone.
                    if wait.is_stopped() {
                        return Err(Error::timed_out());
                    }
                    self.lock()
                }
            };
        }
    }

    pub(super) fn wait_until_open(&self) -> Result<()> {
        self.wait(Wait::FOR_EVER, |state| match &state.phase {
            Phase::Opening => None,
            Phase::Ended(error) => Some(Err(error.clone())),
            Phase::Starting | Phase::Running(_) => Some(Ok(())),
        })
    }

    /// The group to join anew, if the drone has left it.
    pub(super) fn begin_to_join(&self) -> Option<Name> {
        let mut state = self.lock();
        let group = state.group.clone().filter(|_| state.standing == MembershipStanding::Left)?;
        state.standing = MembershipStanding::Joining;
        Some(group)
    }

    pub(super) fn wait_until_member(&self, wait: Wait<'_>) -> Result<()> {
        let refused = |text: String| Some(Err(Error::new(ErrorKind::Refused, text)));
        self.wait(wait, |state| match (&state.phase, state.standing) {
            (Phase::Ended(error), _) => Some(Err(error.clone())),
            (Phase::Running(_), MembershipStanding::Member) => Some(Ok(())),
            (_, MembershipStanding::Evicted) => refused("this drone was evicted from the group".into()),
            (_, MembershipStanding::Revoked) => refused("this drone was revoked by the KGC".into()),
            // Told once: the leader is asked again.
            _ => state.refusal.take().map(|reason| {
                Err(Error::new(
                    ErrorKind::Refused,
                    format!("the leader refuses to admit this drone: {reason}"),
                ))
            }),
        })
    }

    pub(super) fn wait_until_left(&self, wait: Wait<'_>) -> Result<()> {
        self.wait(wait, |state| match (&state.phase, state.standing) {
            (Phase::Ended(error), _) => Some(Err(error.clone())),
            (_, MembershipStanding::Left | MembershipStanding::Evicted | MembershipStanding::Revoked) => {
                Some(Ok(()))
            }
            _ => None,
        })
    }

    /// Waits for so long, or until it is over.
    pub(super) fn pause(&self, pause: Duration, wait: Wait<'_>) -> Result<()> {
        let pause = wait.step().map_or(pause, |step| pause.min(step));
        let paused = self.wait(Wait::at_most(pause), |state| match &state.phase {
            Phase::Ended(error) => Some(Err(error.clone())),
            _ => None,
        });
        match paused {
            Err(error) if error.kind() == ErrorKind::TimedOut && !wait.has_ended() && !wait.is_stopped() => {
                Ok(())
            }
            paused => paused,
        }
    }

    pub(super) fn next_event(&self, wait: Wait<'_>) -> Result<Option<Event>> {
        let next = self.wait(wait, |state| match (state.queue.pop(), &state.phase) {
            (Some(event), _) => Some(Ok(event)),
            (None, Phase::Ended(error)) => Some(Err(error.clone())),
            (None, _) => None,
        });
        match next {
            Ok(event) => Ok(Some(event)),
            Err(error) if error.kind() == ErrorKind::TimedOut && !self.is_over() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.lock().phase, Phase::Ended(_))
    }

    /// The running machine; `None` before there is one.
    pub(super) fn running(&self) -> Result<Option<Arc<dyn RunningEdge>>> {
        match &self.lock().phase {
            Phase::Opening | Phase::Starting => Ok(None),
            Phase::Running(edge) => Ok(Some(Arc::clone(edge))),
            Phase::Ended(error) => Err(error.clone()),
        }
    }

    /// Reason why the run is over.
    pub(super) fn ended(&self) -> Error {
        self.running().err().unwrap_or_else(Error::closed)
    }

    pub(super) fn status(&self, machine: Option<&EdgeStatus>) -> Status {
        let state = self.lock();
        let text = |name: &Name| name.to_string();
        let standing = match (state.standing, machine) {
            // A key that is not known to be current is not used.
            (MembershipStanding::Member, Some(machine)) if !machine.synced => MembershipStanding::Joining,
            (standing, _) => standing,
        };
        let group = machine.and_then(|machine| machine.group.as_ref());
        Status {
            standing,
            name: state.name.clone(),
            group: group.or(state.group.as_ref()).map(text),
            epoch: machine.and_then(|machine| machine.epoch).map(|epoch| (epoch.term, epoch.counter)),
            digest: machine.and_then(|machine| machine.digest),
            slot: machine.and_then(|machine| machine.slot),
            valid_until: machine.and_then(|machine| machine.valid_until),
            leaders: state.leaders,
            dropped: state.queue.dropped(),
        }
    }

    /// A machine runs, of which nothing else is known.
    #[cfg(test)]
    pub(super) fn is_running(&self, edge: Arc<dyn RunningEdge>) {
        self.change(|state| state.phase = Phase::Running(edge));
    }

    /// The application has no more use for it.
    pub(super) fn close(&self) {
        self.change(|state| {
            state.queue.clear();
            state.phase = Phase::Ended(Error::closed());
        });
    }

    /// The drone has ended; `error` says why, unless it was told to.
    pub(super) fn end(&self, error: Option<Error>) {
        self.change(|state| {
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(error.unwrap_or_else(Error::closed));
            }
        });
    }
}

impl Observer for BlockingState {
    fn opened(&self) {
        self.change(|state| {
            if matches!(state.phase, Phase::Opening) {
                state.phase = Phase::Starting;
            }
        });
    }

    fn running(&self, status: EdgeStatus, edge: Arc<dyn RunningEdge>) {
        self.change(|state| {
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Running(edge);
            }
            if state.standing == MembershipStanding::Enrolling {
                state.standing = MembershipStanding::Joining;
            }
            state.name = status.name.map(|name| name.to_string());
            state.group = status.group;
        });
    }

    fn connected(&self, route: Route) {
        let Some(service) = RemoteService::of(route) else { return };
        self.change(|state| {
            state.leaders += u32::from(service == RemoteService::Leader);
            state.push(Event::Connected { service });
        });
    }

    fn disconnected(&self, route: Route) {
        let Some(service) = RemoteService::of(route) else { return };
        self.change(|state| {
            state.leaders -= u32::from(service == RemoteService::Leader);
            state.push(Event::Disconnected { service });
        });
    }

    fn event(&self, status: &EdgeStatus, event: &EdgeNodeEvent) {
        let Either::Left(GroupEdgeEvent::Edge(event)) = event else { return };
        if matches!(event, EdgeEvent::MembershipDropped { .. }) {
            return self.change(|state| state.standing = MembershipStanding::Joining);
        }
        let revoked = status.name.is_some() && *event == EdgeEvent::Refused(RefusalReason::Revoked);
        let Some(event) = Event::of(status, event) else { return };
        self.change(|state| {
            match &event {
                Event::Refused { .. } if revoked => state.standing = MembershipStanding::Revoked,
                Event::Enrolled { name } => {
                    (state.name, state.standing) = (Some(name.clone()), MembershipStanding::Joining);
                }
                Event::Epoch { .. } => (state.standing, state.refusal) = (MembershipStanding::Member, None),
                Event::Left => state.standing = MembershipStanding::Left,
                Event::Evicted => state.standing = MembershipStanding::Evicted,
                Event::Refused { service: RemoteService::Leader, reason, transient: false } => {
                    state.refusal = Some(reason.clone());
                }
                _ => {}
            }
            state.push(event);
        });
    }
}
