//! Dials the configured addresses, and again whenever a connection is lost.
//!
//! Every address is in one of four states: waiting for its next attempt, being prepared (a permit is taken
//! and its name is looked up), being dialled, or up. Every failure leads back to waiting, twice as long as
//! before.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use quiver_machine::Route;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::config::NodeConfig;

/// The wait after a first failure; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait of a node that hurries; jitter makes it up to half as long.
const HURRIED_WAIT: Duration = Duration::from_secs(2);
/// A connection that lived this long forgives the failures before it.
const PROVEN: Duration = Duration::from_secs(5);

type Preparation = Pin<Box<dyn Future<Output = (usize, io::Result<PreparedDial>)> + Send>>;

/// An address looked up, and the permit to dial it.
struct PreparedDial {
    address: Multiaddr,
    permit: Option<OwnedSemaphorePermit>,
}

enum DialState {
    Waiting { until: Instant },
    Preparing,
    Dialling { connection: ConnectionId, _permit: Option<OwnedSemaphorePermit> },
    Up { connection: ConnectionId, since: Instant },
}

struct DialEntry {
    route: Route,
    address: Multiaddr,
    state: DialState,
    failures: u32,
    /// True if the node that answered there last was of no use, and no other has introduced itself since.
    objectionable: bool,
}

/// A configured address to which there is no connection although it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The role expected at this address.
    pub route: Route,
    /// The address as configured.
    pub address: Multiaddr,
    /// The latest failure.
    pub reason: String,
}

impl std::fmt::Display for Unreached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (partner, place) = (partner(self.route), readable(&self.address));
        write!(f, "no connection to the {partner} at {place}: {}", self.reason)
    }
}

/// An attempt that may be made now. It must be answered by [`Dialler::dialling`] or [`Dialler::refused`].
pub(crate) struct DialAttempt {
    pub(crate) index: usize,
    pub(crate) address: Multiaddr,
    permit: Option<OwnedSemaphorePermit>,
}

/// The configured addresses.
pub(crate) struct Dialler {
    entries: Vec<DialEntry>,
    preparing: FuturesUnordered<Preparation>,
    permits: Option<Arc<Semaphore>>,
    patience: Duration,
    ceiling: Duration,
    rng: SmallRng,
    unreached: watch::Sender<Vec<Unreached>>,
}

impl Dialler {
    pub(crate) fn new(config: &NodeConfig, now: Instant) -> Self {
        let entry = |(route, address): &(Route, Multiaddr)| DialEntry {
            route: *route,
            address: address.clone(),
            state: DialState::Waiting { until: now },
            failures: 0,
            objectionable: false,
        };
        Self {
            entries: config.dial.iter().map(entry).collect(),
            preparing: FuturesUnordered::new(),
            permits: config.dial_permits.clone(),
            patience: config.handshake_timeout,
            ceiling: config.redial_ceiling,
            rng: SmallRng::from_entropy(),
            unreached: watch::Sender::default(),
        }
    }

    /// Watches which addresses cannot be reached.
    pub(crate) fn unreached(&self) -> watch::Receiver<Vec<Unreached>> {
        self.unreached.subscribe()
    }

    /// The next attempt to make.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<DialAttempt> {
        self.prepare_due(now);
        while let Poll::Ready(Some((index, prepared))) = self.preparing.poll_next_unpin(cx) {
            match prepared {
                Ok(PreparedDial { address, permit }) => {
                    return Poll::Ready(DialAttempt { index, address, permit });
                }
                // A name that is not found now may be found later.
                Err(error) => self.fail(index, now, &error),
            }
        }
        Poll::Pending
    }

    /// Time at which the next address is due.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let due = self.entries.iter().filter_map(|entry| match entry.state {
            DialState::Waiting { until } => Some(until),
            _ => None,
        });
        due.min()
    }

    /// Waits no longer than a second or two for any address.
    pub(crate) fn hurry(&mut self, now: Instant) {
        for entry in &mut self.entries {
            if let DialState::Waiting { until } = &mut entry.state {
                // Jitter, so that all who lack the same do not come in step.
                let soon = now + HURRIED_WAIT.mul_f64(self.rng.gen_range(0.5..1.0));
                *until = soon.min(*until);
            }
        }
    }

    /// The attempt is under way.
    pub(crate) fn dialling(&mut self, attempt: DialAttempt, connection: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(attempt.index) {
            entry.state = DialState::Dialling { connection, _permit: attempt.permit };
        }
    }

    /// The attempt could not even begin.
    pub(crate) fn refused(&mut self, attempt: &DialAttempt, now: Instant, error: &dyn std::fmt::Display) {
        self.fail(attempt.index, now, error);
    }

    /// A connection stands. Returns the route if it is one of ours.
    pub(crate) fn established(&mut self, connection: ConnectionId, now: Instant) -> Option<Route> {
        let index = self.position(connection)?;
        let entry = self.entries.get_mut(index)?;
        // This gives the permit back, which bounds handshakes and no connections.
        entry.state = DialState::Up { connection, since: now };
        // A node that was the wrong one before counts as reached once it has introduced itself as the right
        // one.
        if !entry.objectionable {
            reached(&self.unreached, entry);
        }
        Some(entry.route)
    }

    /// Notes that the node at the other end of a connection has introduced itself: `accepted` says if it is
    /// the node that was looked for. Otherwise the connection is about to be closed.
    pub(crate) fn introduced(&mut self, connection: ConnectionId, accepted: bool) {
        let Some(index) = self.position(connection) else { return };
        if let Some(entry) = self.entries.get_mut(index) {
            entry.objectionable = !accepted;
            if accepted {
                reached(&self.unreached, entry);
            }
        }
    }

    /// An attempt failed, or a connection is gone. Returns whether it is one of ours.
    pub(crate) fn lost(
        &mut self,
        connection: ConnectionId,
        now: Instant,
        reason: &dyn std::fmt::Display,
    ) -> bool {
        let Some(index) = self.position(connection) else { return false };
        if let Some(entry) = self.entries.get_mut(index)
            && let DialState::Up { since, .. } = entry.state
            && now.saturating_duration_since(since) >= PROVEN
        {
            // A connection that stood for 5 s was no failure: the waits begin anew.
            entry.failures = 0;
        }
        self.fail(index, now, reason);
        true
    }

    /// The role expected at the other end of a connection that this node opened.
    pub(crate) fn route(&self, connection: ConnectionId) -> Option<Route> {
        Some(self.entries.get(self.position(connection)?)?.route)
    }

    fn position(&self, wanted: ConnectionId) -> Option<usize> {
        self.entries.iter().position(|entry| match entry.state {
            DialState::Dialling { connection, .. } | DialState::Up { connection, .. } => connection == wanted,
            DialState::Waiting { .. } | DialState::Preparing => false,
        })
    }

    fn prepare_due(&mut self, now: Instant) {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if matches!(entry.state, DialState::Waiting { until } if until <= now) {
                entry.state = DialState::Preparing;
                // Another of the name's addresses at each attempt: the first may be the one that is down.
                let choice = entry.failures as usize;
                let job = prepare(entry.address.clone(), choice, self.permits.clone(), self.patience);
                self.preparing.push(Box::pin(async move { (index, job.await) }));
            }
        }
    }

    fn fail(&mut self, index: usize, now: Instant, reason: &dyn std::fmt::Display) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let wait = FIRST_WAIT.saturating_mul(1 << entry.failures.min(16)).min(self.ceiling);
        // Jitter, so that the drones of a restarted leader do not return in step.
        let wait = wait.mul_f64(self.rng.gen_range(0.5..1.0));
        entry.failures = entry.failures.saturating_add(1);
        entry.state = DialState::Waiting { until: now + wait };
        let (address, route, failures) = (&entry.address, entry.route, entry.failures);
        let reason = plain(&reason.to_string());
        let (lost, wait) = (Unreached { route, address: address.clone(), reason }, wait.as_secs_f64());
        // Told ever more seldom, because a leader may be away for days.
        if failures.is_power_of_two() {
            tracing::warn!("{lost}, next try in {wait:.1} s");
        } else {
            tracing::debug!("{lost}, next try in {wait:.1} s");
        }
        note(&self.unreached, lost);
    }
}

/// The role expected behind an address, for people.
pub(crate) fn partner(route: Route) -> String {
    match route {
        Route::Leader => "leader".into(),
        Route::Kgc => "KGC".into(),
        Route::Member(kgc) => format!("KGC {kgc}"),
        Route::Inbound => "peer".into(),
        Route::Relay => "relay".into(),
    }
}

/// An address as people write it: `127.0.0.1:7302`, for QUIC with a word more. One of another form as it is.
#[must_use]
pub fn readable(address: &Multiaddr) -> String {
    let (mut host, mut port) = (None, None);
    for part in address {
        match part {
            Protocol::Ip4(ip) => host = Some(ip.to_string()),
            Protocol::Ip6(ip) => host = Some(format!("[{ip}]")),
            Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name) => host = Some(name.into()),
            Protocol::Tcp(number) => port = Some(number.to_string()),
            Protocol::Udp(number) => port = Some(format!("{number} (QUIC)")),
            _ => {}
        }
    }
    match (host, port) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => address.to_string(),
    }
}

/// Words of libp2p's error for an address at which this node itself listens, which it leaves out.
const OWN: &str = "no addresses for peer";

/// The cause at the end of libp2p's chain of errors, which repeats addresses and causes.
fn plain(reason: &str) -> String {
    if reason.contains(OWN) {
        return "this is an address of this process itself".into();
    }
    let inner = reason.trim_end_matches([')', ']', ' ']);
    let closed = inner.rfind("(os error ").map_or(inner, |at| &inner[..at]);
    let last = closed.rsplit(": ").find(|part| !part.trim().is_empty()).unwrap_or(reason).trim();
    let mut letters = last.chars();
    match (letters.next(), letters.clone().next()) {
        // A word, and no abbreviation.
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(letters).collect(),
        _ => last.into(),
    }
}

/// Notes an address as reached.
fn reached(unreached: &watch::Sender<Vec<Unreached>>, entry: &DialEntry) {
    unreached.send_modify(|unreached| {
        unreached.retain(|other| (other.route, &other.address) != (entry.route, &entry.address));
    });
}

/// Notes an address as not reached.
fn note(unreached: &watch::Sender<Vec<Unreached>>, lost: Unreached) {
    unreached.send_modify(|unreached| {
        match unreached.iter_mut().find(|other| (other.route, &other.address) == (lost.route, &lost.address))
        {
            Some(known) => *known = lost,
            None => unreached.push(lost),
        }
    });
}

/// Takes a permit and resolves the name. Of several results, each attempt takes the next.
async fn prepare(
    address: Multiaddr,
    choice: usize,
    permits: Option<Arc<Semaphore>>,
    patience: Duration,
) -> io::Result<PreparedDial> {
    // Without a deadline, because waiting for other nodes of this process is no failure of the address.
    let permit = match permits {
        Some(permits) => Some(permits.acquire_owned().await.map_err(io::Error::other)?),
        None => None,
    };
    let address = timeout(patience, resolve(address, choice)).await??;
    Ok(PreparedDial { address, permit })
}

/// Replaces a name in front of the address by the operating system's result for it.
pub(crate) async fn resolve(address: Multiaddr, choice: usize) -> io::Result<Multiaddr> {
    let mut parts = address.iter();
    let (name, v4, v6) = match parts.next() {
        Some(Protocol::Dns(name)) => (name.into_owned(), true, true),
        Some(Protocol::Dns4(name)) => (name.into_owned(), true, false),
        Some(Protocol::Dns6(name)) => (name.into_owned(), false, true),
        _ => return Ok(address),
    };
    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
    let ips: Vec<_> = found.map(|found| found.ip()).filter(|ip| if ip.is_ipv4() { v4 } else { v6 }).collect();
    let ip = choice.checked_rem(ips.len()).and_then(|choice| ips.get(choice));
    let ip =
        ip.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name} has no such address")))?;
    Ok(std::iter::once(Protocol::from(*ip)).chain(parts).collect())
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::config::Transport;
    use crate::key::NodeKey;

    fn dialler(address: &str, now: Instant) -> Dialler {
        let mut config = NodeConfig::spoke(NodeKey::from_seed([1; 32]).unwrap(), Transport::Tcp);
        config.dial.push((Route::Leader, address.parse().unwrap()));
        Dialler::new(&config, now)
    }

    #[tokio::test]
    async fn name_is_replaced_by_its_address_and_the_rest_stays() {
        let resolved = resolve("/dns4/localhost/tcp/7000".parse().unwrap(), 3).await.unwrap();
        assert_eq!(resolved, "/ip4/127.0.0.1/tcp/7000".parse().unwrap());
        let plain: Multiaddr = "/memory/7".parse().unwrap();
        assert_eq!(resolve(plain.clone(), 0).await.unwrap(), plain);
    }

    #[tokio::test]
    async fn name_that_does_not_resolve_is_an_error_and_not_the_end() {
        let now = Instant::now();
        let mut dialler = dialler("/dns4/no-such-host.invalid/tcp/7000", now);
        let attempt = async {
            while dialler.poll(&mut Context::from_waker(Waker::noop()), now).is_pending() {
                if dialler.wake_at().is_some() {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            false
        };
        let other_is_due = timeout(Duration::from_secs(30), attempt).await;
        assert_eq!(other_is_due, Ok(true), "there is nothing to dial, but another attempt is due");
    }

    #[test]
    fn reason_is_the_last_cause_and_nothing_twice() {
        let reason = "Failed to negotiate transport protocol(s): [(/ip4/127.0.0.1/tcp/7205/p2p/12D3: : Connection \
                      refused (os error 111): Connection refused (os error 111))]";
        assert_eq!(plain(reason), "connection refused");
        assert_eq!(plain("closed"), "closed");
        assert_eq!(plain("I/O"), "I/O");
        assert_eq!(plain("Dial error: no addresses for peer."), "this is an address of this process itself");
        assert_eq!(plain(""), "");
    }

    #[test]
    fn address_is_written_as_people_write_it() {
        let text = |address: &str| readable(&address.parse().unwrap());
        assert_eq!(text("/ip4/127.0.0.1/tcp/7302"), "127.0.0.1:7302");
        assert_eq!(text("/ip6/::1/udp/7302/quic-v1"), "[::1]:7302 (QUIC)");
        assert_eq!(text("/dns4/leader.example/tcp/1"), "leader.example:1");
        assert_eq!(text("/memory/7"), "/memory/7");
    }

    #[test]
    fn waits_double_up_to_the_ceiling() {
        let now = Instant::now();
        let mut dialler = dialler("/ip4/127.0.0.1/tcp/1", now);
        let mut longest = Duration::ZERO;
        for failures in 0..40_u32 {
            dialler.fail(0, now, &"refused");
            let wait = dialler.wake_at().unwrap() - now;
            let nominal = FIRST_WAIT.saturating_mul(1 << failures.min(16)).min(dialler.ceiling);
            assert!(wait >= nominal / 2 && wait <= nominal, "{failures}: {wait:?}");
            longest = longest.max(wait);
        }
        assert!(longest > dialler.ceiling / 2);
    }

    #[tokio::test]
    async fn node_that_hurries_dials_within_two_seconds_however_often_it_failed() {
        let now = Instant::now();
        let mut dialler = dialler("/ip4/127.0.0.1/tcp/1", now);
        for _ in 0..20 {
            dialler.fail(0, now, &"refused");
        }
        assert!(dialler.wake_at().unwrap() - now > HURRIED_WAIT);
        dialler.hurry(now);
        let due = dialler.wake_at().unwrap();
        assert!((HURRIED_WAIT / 2..=HURRIED_WAIT).contains(&(due - now)), "{:?}", due - now);
        // Saying so again puts nothing off.
        dialler.hurry(due - Duration::from_millis(1));
        assert_eq!(dialler.wake_at(), Some(due));
        // An attempt under way goes on.
        let Poll::Ready(attempt) = dialler.poll(&mut Context::from_waker(Waker::noop()), due) else {
            panic!("due")
        };
        dialler.dialling(attempt, ConnectionId::new_unchecked(5));
        dialler.hurry(due);
        assert_eq!(dialler.wake_at(), None);
    }

    #[tokio::test]
    async fn address_is_unreached_with_the_last_reason_until_a_connection_stands() {
        let now = Instant::now();
        let mut dialler = dialler("/ip4/127.0.0.1/tcp/1", now);
        let unreached = dialler.unreached();
        assert!(unreached.borrow().is_empty());
        dialler.fail(0, now, &"refused");
        dialler.fail(0, now, &"timed out");
        let reasons: Vec<_> = unreached.borrow().iter().map(|other| other.reason.clone()).collect();
        assert_eq!(reasons, ["timed out"]);
        let later = now + Duration::from_secs(60);
        let connection = ConnectionId::new_unchecked(5);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(attempt) = dialler.poll(&mut cx, later) else { panic!("due") };
        dialler.dialling(attempt, connection);
        dialler.established(connection, later);
        assert!(unreached.borrow().is_empty());
        dialler.lost(connection, later, &"closed");
        assert_eq!(unreached.borrow().len(), 1);
    }

    #[tokio::test]
    async fn address_of_another_stays_unreached_until_the_right_one_answers() {
        let mut now = Instant::now();
        let mut dialler = dialler("/ip4/127.0.0.1/tcp/1", now);
        let unreached = dialler.unreached();
        let mut cx = Context::from_waker(Waker::noop());
        for (number, accepted, lost) in [(1, false, 0), (2, false, 1), (3, true, 1)] {
            let connection = ConnectionId::new_unchecked(number);
            let Poll::Ready(attempt) = dialler.poll(&mut cx, now) else { panic!("due") };
            dialler.dialling(attempt, connection);
            dialler.established(connection, now);
            assert_eq!(unreached.borrow().len(), lost, "connection {number}");
            dialler.introduced(connection, accepted);
            if accepted {
                assert!(unreached.borrow().is_empty());
            } else {
                dialler.lost(connection, now, &"a KGC answers there");
            }
            now += Duration::from_secs(60);
        }
    }

    #[tokio::test]
    async fn connection_that_lasted_forgives_earlier_failures() {
        let now = Instant::now();
        let mut dialler = dialler("/ip4/127.0.0.1/tcp/1", now);
        let connection = ConnectionId::new_unchecked(5);
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..6 {
            dialler.fail(0, now, &"refused");
        }
        let later = now + Duration::from_secs(60);
        let Poll::Ready(attempt) = dialler.poll(&mut cx, later) else { panic!("due") };
        dialler.dialling(attempt, connection);
        assert_eq!(dialler.established(connection, later), Some(Route::Leader));
        let end = later + PROVEN;
        dialler.lost(connection, end, &"closed");
        assert!(dialler.wake_at().unwrap() <= end + FIRST_WAIT);
    }
}
