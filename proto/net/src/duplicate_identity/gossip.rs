//! Detects a second process under this node's transport key while both run, by asking the peers it dialled.
//!
//! Each process draws a number when it starts and sends it to the peers that it dialled, which answer whether
//! others under the same identity sent another one lately ([`Sightings`](super::Sightings)). Only a holder of
//! an identity's transport key can send under it, so nobody can fake a duplicate of another node; a dialled
//! peer can claim one, which costs readiness and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::request_response::{self, Codec, ProtocolSupport};
use libp2p::{PeerId, StreamProtocol};
use quiver_machine::Route;
use tokio::time::Instant;

use crate::peers::Peers;
use crate::poll_schedule::PollSchedule;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/quiver/1/instance");
/// Bytes of a process's number.
const INSTANCE_LEN: usize = 16;
/// Time between two questions without suspicion.
pub(super) const PAUSE: Duration = Duration::from_secs(60);
/// Delay of the next question after a connection, or after an answer that another process may run.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// Delay of the first question after a connection was set up.
const FIRST: Duration = Duration::from_secs(1);

/// Number that a process has drawn at its start.
pub(crate) type Instance = [u8; INSTANCE_LEN];
pub(crate) type Behaviour = request_response::Behaviour<InstanceCodec>;
pub(crate) type GossipEvent = request_response::Event<Instance, IdentityVerdict>;

pub(crate) fn behaviour(timeout: Duration) -> Behaviour {
    let settings =
        request_response::Config::default().with_request_timeout(timeout).with_max_concurrent_streams(2);
    Behaviour::with_codec(InstanceCodec, [(PROTOCOL, ProtocolSupport::Full)], settings)
}

/// Answer about an identity (§16.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentityVerdict {
    /// No other process asked.
    Alone,
    /// Another process asked under the same identity, and may have ended since.
    Perhaps,
    /// Two processes asked in turns.
    Duplicate,
}

impl IdentityVerdict {
    const fn byte(self) -> u8 {
        match self {
            Self::Alone => 0,
            Self::Perhaps => 1,
            Self::Duplicate => 2,
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Alone),
            1 => Some(Self::Perhaps),
            2 => Some(Self::Duplicate),
            _ => None,
        }
    }
}

/// A peer that reports two processes under this node's transport key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateReport {
    /// The peer's role for this node.
    pub route: Route,
    /// Name of the peer on the transport.
    pub peer: PeerId,
}

impl fmt::Display for DuplicateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { route, peer } = self;
        match route {
            Route::Member(kgc) => write!(f, "KGC {kgc}"),
            Route::Kgc => write!(f, "the KGC {peer}"),
            Route::Leader => write!(f, "the leader {peer}"),
            Route::Inbound => write!(f, "{peer}"),
            Route::Relay => write!(f, "the relay {peer}"),
        }
    }
}

/// Schedules the questions to dialled peers, and keeps the reports of duplicates.
pub(crate) struct InstancePoll {
    own: Instance,
    round: PollSchedule,
    /// Time between the next round and the one after it.
    pause: Duration,
    reports: BTreeMap<PeerId, Route>,
}

impl InstancePoll {
    pub(crate) fn new(own: Instance) -> Self {
        Self { own, round: PollSchedule::default(), pause: PAUSE, reports: BTreeMap::new() }
    }

    /// Takes another number, because this process may be a copy of one that still runs.
    pub(crate) const fn renew(&mut self, own: Instance) {
        // §13.9: a copy goes on under the former number.
        self.own = own;
    }

    /// A peer that may have to be asked has connected.
    pub(crate) fn connected(&mut self, route: Route, now: Instant) {
        if !route.is_inbound() {
            // §16.2: 1 s and 6 s after a connection, and then every minute.
            self.pause = SOON;
            self.round.by(now + FIRST);
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.round.wake_at()
    }

    /// Asks whom it is time to ask.
    pub(crate) fn tick(&mut self, peers: &Peers, behaviour: Option<&mut Behaviour>, now: Instant) {
        if !self.round.begins(now) {
            return;
        }
        let Some(behaviour) = behaviour else { return };
        let asked = peers.dialled();
        // §16.2: every minute, and sooner after a connection.
        let pause = std::mem::replace(&mut self.pause, PAUSE);
        if !asked.is_empty() {
            self.round.by(now + pause);
        }
        for peer in asked {
            // §16.2: the number that the process drew when it started.
            behaviour.send_request(&peer, self.own);
        }
    }

    /// Notes an answer. Returns whether the reports are others than before.
    pub(crate) fn answered(
        &mut self,
        peer: PeerId,
        route: Route,
        answer: IdentityVerdict,
        now: Instant,
    ) -> bool {
        if answer != IdentityVerdict::Alone {
            // §16.2: an answer of 1 or 2 makes it ask again after 5 s.
            self.round.by(now + SOON);
        }
        match answer {
            IdentityVerdict::Duplicate => self.reports.insert(peer, route) != Some(route),
            // §16.2: two numbers, A and B, prove nothing: the process may have been started again.
            IdentityVerdict::Alone | IdentityVerdict::Perhaps => self.silent(&peer),
        }
    }

    /// Forgets the report of a peer. Returns whether the reports are others than before.
    pub(crate) fn silent(&mut self, peer: &PeerId) -> bool {
        self.reports.remove(peer).is_some()
    }

    pub(crate) fn reports(&self) -> Vec<DuplicateReport> {
        self.reports.iter().map(|(peer, route)| DuplicateReport { route: *route, peer: *peer }).collect()
    }
}

/// Sixteen bytes there, one back, and nothing behind them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstanceCodec;

/// Reads exactly so many bytes.
async fn read_all<const N: usize>(io: &mut (impl AsyncRead + Unpin + Send)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    io.read_exact(&mut bytes).await?;
    // §16.2: nothing behind the number.
    if io.read(&mut [0]).await? != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long"));
    }
    Ok(bytes)
}

impl Codec for InstanceCodec {
    type Protocol = StreamProtocol;
    type Request = Instance;
    type Response = IdentityVerdict;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Instance>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_all(io).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<IdentityVerdict>
    where
        T: AsyncRead + Unpin + Send,
    {
        let [byte] = read_all(io).await?;
        IdentityVerdict::of(byte).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no answer"))
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, instance: Instance) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&instance).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        answer: IdentityVerdict,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&[answer.byte()]).await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;

    use super::*;

    fn request(bytes: &[u8]) -> io::Result<Instance> {
        block_on(InstanceCodec.read_request(&PROTOCOL, &mut Cursor::new(bytes)))
    }

    fn response(bytes: &[u8]) -> io::Result<IdentityVerdict> {
        block_on(InstanceCodec.read_response(&PROTOCOL, &mut Cursor::new(bytes)))
    }

    #[test]
    fn number_and_answers_read_back() {
        let mut io = Cursor::new(Vec::new());
        block_on(InstanceCodec.write_request(&PROTOCOL, &mut io, [7; 16])).unwrap();
        assert_eq!(request(io.get_ref()).unwrap(), [7; 16]);
        for answer in [IdentityVerdict::Alone, IdentityVerdict::Perhaps, IdentityVerdict::Duplicate] {
            let mut io = Cursor::new(Vec::new());
            block_on(InstanceCodec.write_response(&PROTOCOL, &mut io, answer)).unwrap();
            assert_eq!(response(io.get_ref()).unwrap(), answer);
        }
    }

    #[test]
    fn anything_but_a_number_and_an_answer_is_refused() {
        let kind = |bytes: &[u8]| request(bytes).unwrap_err().kind();
        assert_eq!(kind(&[]), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&[7; 15]), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&[7; 17]), io::ErrorKind::InvalidData);
        let kind = |bytes: &[u8]| response(bytes).unwrap_err().kind();
        assert_eq!(kind(&[]), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&[3]), io::ErrorKind::InvalidData);
        assert_eq!(kind(&[2, 0]), io::ErrorKind::InvalidData);
    }

    #[test]
    fn who_is_told_of_a_duplicate_asks_sooner_until_nobody_says_so_any_more() {
        let (mut poll, peer, start) = (InstancePoll::new([1; 16]), PeerId::random(), Instant::now());
        poll.round.by(start + PAUSE);
        assert!(!poll.answered(peer, Route::Kgc, IdentityVerdict::Perhaps, start));
        assert_eq!(poll.wake_at(), Some(start + SOON));
        assert!(poll.answered(peer, Route::Kgc, IdentityVerdict::Duplicate, start));
        assert!(!poll.answered(peer, Route::Kgc, IdentityVerdict::Duplicate, start));
        assert_eq!(poll.reports(), [DuplicateReport { route: Route::Kgc, peer }]);
        assert!(poll.answered(peer, Route::Kgc, IdentityVerdict::Perhaps, start));
        assert_eq!(poll.reports(), []);
        assert!(poll.answered(peer, Route::Kgc, IdentityVerdict::Duplicate, start));
        assert!(poll.silent(&peer));
        assert!(!poll.silent(&peer));
    }

    #[test]
    fn whoever_dialled_us_is_not_asked() {
        let (mut poll, now) = (InstancePoll::new([1; 16]), Instant::now());
        poll.connected(Route::Inbound, now);
        assert_eq!(poll.wake_at(), None);
        poll.connected(Route::Leader, now);
        assert_eq!(poll.wake_at(), Some(now + FIRST));
    }

    #[test]
    fn node_that_asks_nobody_is_not_woken_for_it() {
        let (mut poll, now) = (InstancePoll::new([1; 16]), Instant::now());
        poll.connected(Route::Leader, now);
        poll.tick(&Peers::default(), None, now + FIRST);
        assert_eq!(poll.wake_at(), None);
    }
}
