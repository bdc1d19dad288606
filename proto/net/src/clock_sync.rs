//! Compares this machine's clock with its peers': nodes ask one another for the time, and report a clock that
//! is off.
//!
//! No protocol decision depends on the answers here. A node answers with the time of its clock; a node that
//! the asker dialled is believed to be the one dialled. Anybody may connect to a KGC or a leader, so there an
//! answer counts only if a drone of the deployment signed it, and only once for each drone: strangers can
//! neither raise an alarm nor outvote one. The signature covers both ends and a fresh nonce, so an answer is
//! of no use elsewhere or later.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::request_response::{self, Codec, OutboundRequestId, ProtocolSupport};
use libp2p::{PeerId, StreamProtocol};
use quiver_machine::{CLOCK_TOLERANCE, Route};
use tokio::time::Instant;

use crate::peers::Peers;
use crate::poll_schedule::PollSchedule;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/quiver/1/clock");
/// Bytes of the number that an answer is for.
pub(crate) const NONCE_LEN: usize = 16;
/// The longest signature of a drone, its identity included.
const MAX_VOUCHER_LEN: u64 = 16 * 1024;
/// Time between two questions to one peer.
const PAUSE: Duration = Duration::from_secs(60);
/// Delay of the first question after a connection was set up: the peer may have to be admitted first, and
/// more peers arrive together.
const SOON: Duration = Duration::from_secs(1);
/// Number of inbound peers that are asked at a time.
const SAMPLE: usize = 32;
/// Delays after which an inbound peer is asked that has not proven who it is: its answer may do that, and it may have
/// to enrol first.
const INTRODUCTIONS: [Duration; 3] = [SOON, Duration::from_secs(8), Duration::from_secs(25)];
/// Time between two rounds of these questions: a stranger's signature costs a verification.
const ROUND: Duration = Duration::from_secs(1);
/// Maximum number of inbound peers that wait to be asked.
const WAITING: usize = 8192;

/// Peers that a node asks for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// No peers, and questions of others are not answered: for machines that share a clock, and for nodes
    /// that must not be linkable by their clocks.
    Off,
    /// Peers that it dialled.
    Dialled,
    /// Also inbound peers, as far as they [vouch](crate::Host::vouch) for their time.
    Everybody,
}

/// Summary of other nodes' clocks, by their last answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherClocks {
    /// Number of peers that answered.
    pub answered: usize,
    /// Number of them that are further off than [`CLOCK_TOLERANCE`].
    pub apart: usize,
    /// Number of seconds by which the middle one of these is ahead of this machine's clock.
    pub ahead: i64,
}

impl OtherClocks {
    /// Returns true if most of the others have another time than this machine.
    #[must_use]
    pub fn differ(&self) -> bool {
        self.apart * 2 > self.answered
    }

    /// Returns true if there are others and most of them have this machine's time.
    #[must_use]
    pub fn agree(&self) -> bool {
        self.answered > 0 && !self.differ()
    }

    fn of(offsets: impl Iterator<Item = i64>) -> Self {
        let (mut answered, mut apart) = (0, Vec::new());
        for offset in offsets {
            answered += 1;
            if is_apart(offset) {
                apart.push(offset);
            }
        }
        apart.sort_unstable();
        // The middle one: a few wrong clocks hardly move it.
        let ahead = apart.get(apart.len() / 2).copied().unwrap_or_default();
        Self { answered, apart: apart.len(), ahead }
    }
}

const fn is_apart(offset: i64) -> bool {
    offset.unsigned_abs() > CLOCK_TOLERANCE
}

/// A difference of clocks as people read it, in two units: `1 h 3 min`.
pub(crate) fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let units = UNITS.iter().skip(first).take(2).filter_map(|(unit, name)| {
        let count = rest / unit;
        rest %= unit;
        (count > 0 || seconds == 0).then(|| format!("{count} {name}"))
    });
    units.collect::<Vec<_>>().join(" ")
}

/// A node's answer: the time of its clock, and a drone's signature if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockReply {
    /// Seconds since 1970.
    pub(crate) unix: u64,
    pub(crate) voucher: Vec<u8>,
}

/// The signed bytes: nonce of the question, asker, answerer, time.
pub(crate) fn statement(nonce: &[u8; NONCE_LEN], asker: &PeerId, teller: &PeerId, unix: u64) -> Vec<u8> {
    // §16.1: the asker's number, both ends' transport names, the time.
    let mut bytes = nonce.to_vec();
    for peer in [asker, teller] {
        let peer = peer.to_bytes();
        // Some forty bytes.
        bytes.extend_from_slice(&u32::try_from(peer.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(&peer);
    }
    bytes.extend_from_slice(&unix.to_be_bytes());
    bytes
}

pub(crate) type Behaviour = request_response::Behaviour<ClockCodec>;

pub(crate) fn behaviour(timeout: Duration) -> Behaviour {
    let settings =
        request_response::Config::default().with_request_timeout(timeout).with_max_concurrent_streams(2);
    Behaviour::with_codec(ClockCodec, [(PROTOCOL, ProtocolSupport::Full)], settings)
}

/// The last answer of a peer.
struct PeerClock {
    /// The drone that signed it; `None` for a peer that this node dialled.
    drone: Option<String>,
    ahead: i64,
}

/// Schedule of questions for the time, and the answers.
pub(crate) struct ClockPoll {
    whom: Clocks,
    round: PollSchedule,
    /// The numbers asked with, until they are answered.
    open: HashMap<OutboundRequestId, [u8; NONCE_LEN]>,
    clocks: HashMap<PeerId, PeerClock>,
    /// The inbound peer that was asked last: the next round continues behind it.
    last: Option<PeerId>,
    /// Inbound peers that are to be asked who they are, by when, and how often they were.
    unproven: BTreeSet<(Instant, PeerId, usize)>,
    /// Earliest time of the next round of these.
    next: Option<Instant>,
}

impl ClockPoll {
    pub(crate) fn new(whom: Clocks) -> Self {
        Self {
            whom,
            round: PollSchedule::default(),
            open: HashMap::new(),
            clocks: HashMap::new(),
            last: None,
            unproven: BTreeSet::new(),
            next: None,
        }
    }

    /// A peer that can be asked has connected.
    pub(crate) fn connected(&mut self, peer: PeerId, route: Route, now: Instant) {
        let asks = match self.whom {
            Clocks::Off => false,
            Clocks::Dialled => !route.is_inbound(),
            Clocks::Everybody => true,
        };
        if asks {
            self.round.by(now + SOON);
        }
        if self.whom == Clocks::Everybody && route == Route::Inbound {
            self.introduce(peer, 0, now);
        }
    }

    /// Has an inbound peer asked that was asked so often.
    fn introduce(&mut self, peer: PeerId, times: usize, now: Instant) {
        if let Some(delay) = INTRODUCTIONS.get(times)
            && self.unproven.len() < WAITING
        {
            self.unproven.insert((now + *delay, peer, times));
        }
    }

    /// Inbound peers to be asked now because they have not proven who they are.
    fn unproven(&mut self, peers: &Peers, is_proven: impl Fn(&PeerId) -> bool, now: Instant) -> Vec<PeerId> {
        let mut asked = Vec::new();
        if self.next.is_some_and(|next| now < next) {
            return asked;
        }
        while asked.len() < SAMPLE
            && let Some((_, peer, times)) = self.unproven.first().copied().filter(|(due, ..)| *due <= now)
        {
            self.unproven.pop_first();
            // It may have left or proven itself.
            if peers.handle(&peer).is_some() && !is_proven(&peer) {
                asked.push(peer);
                self.introduce(peer, times + 1, now);
            }
        }
        if !asked.is_empty() {
            self.next = Some(now + ROUND);
        }
        asked
    }

    pub(crate) fn disconnected(&mut self, peer: &PeerId) -> bool {
        self.clocks.remove(peer).is_some()
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let unproven = self.unproven.first().map(|(due, ..)| self.next.map_or(*due, |next| next.max(*due)));
        self.round.wake_at().into_iter().chain(unproven).min()
    }

    /// Asks whom it is time to ask.
    pub(crate) fn tick(
        &mut self,
        peers: &Peers,
        behaviour: Option<&mut Behaviour>,
        is_proven: impl Fn(&PeerId) -> bool,
        now: Instant,
    ) {
        let (due, unproven) = (self.round.begins(now), self.unproven(peers, is_proven, now));
        let Some(behaviour) = behaviour else { return };
        // §13.8: whoever signs its time is known.
        for peer in unproven {
            self.ask(peer, behaviour);
        }
        if !due {
            return;
        }
        let mut asked = peers.dialled();
        if self.whom == Clocks::Everybody {
            // Inbound peers in turn: there may be thousands.
            let sample = peers.inbound_after(self.last.as_ref(), SAMPLE);
            self.last = sample.last().copied();
            asked.extend(sample);
        }
        if !asked.is_empty() {
            self.round.by(now + PAUSE);
        }
        for peer in asked {
            self.ask(peer, behaviour);
        }
    }

    fn ask(&mut self, peer: PeerId, behaviour: &mut Behaviour) {
        // §16.1: a number of 16 random bytes, which the signature covers.
        let nonce = rand::random();
        self.open.insert(behaviour.send_request(&peer, nonce), nonce);
    }

    /// The number that this answer is for, if it was asked for.
    pub(crate) fn answered(&mut self, request: OutboundRequestId) -> Option<[u8; NONCE_LEN]> {
        self.open.remove(&request)
    }

    /// Records the time of a peer's clock. `drone`: the signer, for an inbound peer. Returns by how many
    /// seconds it is ahead, if it is off and was not when it was asked before.
    pub(crate) fn note(
        &mut self,
        peer: PeerId,
        drone: Option<String>,
        theirs: u64,
        ours: u64,
    ) -> Option<i64> {
        let ahead = i64::try_from(theirs.abs_diff(ours)).unwrap_or(i64::MAX);
        let ahead = if theirs < ours { -ahead } else { ahead };
        let known = self.clocks.insert(peer, PeerClock { drone, ahead });
        (is_apart(ahead) && known.is_none_or(|known| !is_apart(known.ahead))).then_some(ahead)
    }

    /// The drone that signed this peer's time.
    pub(crate) fn drone(&self, peer: &PeerId) -> Option<String> {
        self.clocks.get(peer)?.drone.clone()
    }

    /// All of it. A drone has one voice, however many connections.
    pub(crate) fn others(&self) -> OtherClocks {
        // §16.1: whom this node dialled is known by the transport, others by the drone's signature.
        let dialled = self.clocks.values().filter(|clocks| clocks.drone.is_none()).map(|clocks| clocks.ahead);
        let drones: BTreeMap<&str, i64> = self
            .clocks
            .values()
            .filter_map(|clocks| Some((clocks.drone.as_deref()?, clocks.ahead)))
            .collect();
        OtherClocks::of(dialled.chain(drones.into_values()))
    }
}

/// Sixteen bytes there; eight of time and a signature, or none, back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockCodec;

impl Codec for ClockCodec {
    type Protocol = StreamProtocol;
    type Request = [u8; NONCE_LEN];
    type Response = ClockReply;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Self::Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut nonce = [0; NONCE_LEN];
        io.read_exact(&mut nonce).await?;
        Ok(nonce)
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<ClockReply>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut unix = [0; 8];
        io.read_exact(&mut unix).await?;
        // §16.1: a signature of at most 16 KB, empty if the asker dialled.
        let mut voucher = Vec::new();
        io.take(MAX_VOUCHER_LEN + 1).read_to_end(&mut voucher).await?;
        if voucher.len() as u64 > MAX_VOUCHER_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the signature is too long"));
        }
        Ok(ClockReply { unix: u64::from_be_bytes(unix), voucher })
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        nonce: Self::Request,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&nonce).await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, reply: ClockReply) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        // §16.1: seconds since 1970, then the signature.
        let mut bytes = reply.unix.to_be_bytes().to_vec();
        bytes.extend_from_slice(&reply.voucher);
        io.write_all(&bytes).await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;

    use super::*;

    const NOW: u64 = 1_769_860_800;
    const HOUR: u64 = 3600;

    fn poll() -> ClockPoll {
        ClockPoll::new(Clocks::Everybody)
    }

    #[test]
    fn nobody_heard_neither_agrees_nor_differs() {
        let others = poll().others();
        assert!(!others.agree() && !others.differ());
    }

    #[test]
    fn clock_is_doubted_when_most_others_have_another_time() {
        let mut poll = poll();
        poll.note(PeerId::random(), None, NOW + CLOCK_TOLERANCE, NOW);
        assert!(poll.others().agree());
        poll.note(PeerId::random(), None, NOW - HOUR, NOW);
        assert!(poll.others().agree(), "one of two is no majority");
        poll.note(PeerId::random(), Some("edge-1".into()), NOW - HOUR - 5, NOW);
        let others = poll.others();
        assert!(others.differ());
        assert_eq!((others.answered, others.apart, others.ahead), (3, 2, -(HOUR as i64)));
    }

    #[test]
    fn clock_that_is_off_is_told_once_and_again_after_it_was_right() {
        let (mut poll, peer) = (poll(), PeerId::random());
        assert_eq!(poll.note(peer, None, NOW, NOW), None);
        assert_eq!(poll.note(peer, None, NOW - HOUR, NOW), Some(-(HOUR as i64)));
        assert_eq!(poll.note(peer, None, NOW - HOUR, NOW), None);
        assert_eq!(poll.note(peer, None, NOW, NOW), None);
        assert_eq!(poll.note(peer, None, NOW + HOUR, NOW), Some(HOUR as i64));
    }

    #[test]
    fn strangers_are_asked_who_they_are_until_they_have_proven_it_and_few_at_a_time() {
        let (mut poll, mut peers, start) = (poll(), Peers::default(), Instant::now());
        let strangers: Vec<_> = (0..40).map(|_| PeerId::random()).collect();
        for stranger in &strangers {
            peers.arrived(*stranger, Route::Inbound);
            poll.connected(*stranger, Route::Inbound, start);
        }
        let proven = strangers[0];
        let mut asked: HashMap<PeerId, usize> = HashMap::new();
        for second in 0..120 {
            let round = poll.unproven(&peers, |peer| *peer == proven, start + ROUND * second);
            assert!(round.len() <= SAMPLE);
            round.into_iter().for_each(|peer| *asked.entry(peer).or_default() += 1);
        }
        assert!(!asked.contains_key(&proven));
        assert!(strangers.iter().skip(1).all(|peer| asked[peer] == INTRODUCTIONS.len()));
        assert!(poll.unproven.is_empty());
        poll.connected(PeerId::random(), Route::Leader, start);
        assert!(poll.unproven.is_empty(), "whom this node dialled is no stranger");
    }

    #[test]
    fn difference_is_told_in_two_units() {
        let spans = [0, 59, 192, 3600, 86_399, 90_061].map(span);
        assert_eq!(spans, ["0 s", "59 s", "3 min 12 s", "1 h", "23 h 59 min", "1 d 1 h"]);
    }

    #[test]
    fn drone_with_many_connections_has_one_voice() {
        let mut poll = poll();
        poll.note(PeerId::random(), Some("edge-1".into()), NOW, NOW);
        for _ in 0..5 {
            poll.note(PeerId::random(), Some("edge-2".into()), NOW + HOUR, NOW);
        }
        assert!(poll.others().agree());
    }

    #[test]
    fn who_left_is_not_heard_any_more() {
        let (mut poll, peer) = (poll(), PeerId::random());
        poll.note(peer, None, u64::MAX, 0);
        assert!(poll.others().differ());
        assert!(poll.disconnected(&peer));
        assert_eq!(poll.others(), OtherClocks::default());
    }

    #[test]
    fn answer_reads_back_and_one_that_is_too_long_is_refused() {
        for length in [0, 200, MAX_VOUCHER_LEN as usize] {
            let reply = ClockReply { unix: NOW, voucher: vec![7; length] };
            let mut io = Cursor::new(Vec::new());
            block_on(ClockCodec.write_response(&PROTOCOL, &mut io, reply.clone())).unwrap();
            let bytes = io.into_inner();
            assert_eq!(
                block_on(ClockCodec.read_response(&PROTOCOL, &mut Cursor::new(&bytes))).unwrap(),
                reply
            );
            let short = ClockCodec.read_response(&PROTOCOL, &mut Cursor::new(&bytes[..7])).await_error();
            assert_eq!(short, io::ErrorKind::UnexpectedEof);
        }
        let long = vec![0; 8 + MAX_VOUCHER_LEN as usize + 1];
        let refused = ClockCodec.read_response(&PROTOCOL, &mut Cursor::new(&long)).await_error();
        assert_eq!(refused, io::ErrorKind::InvalidData);
    }

    trait AwaitError {
        fn await_error(self) -> io::ErrorKind;
    }

    impl<F: Future<Output = io::Result<ClockReply>>> AwaitError for F {
        fn await_error(self) -> io::ErrorKind {
            block_on(self).unwrap_err().kind()
        }
    }

    #[test]
    fn what_is_signed_differs_with_each_of_its_parts() {
        let (a, b) = (PeerId::random(), PeerId::random());
        let one = statement(&[1; 16], &a, &b, NOW);
        for other in [
            statement(&[2; 16], &a, &b, NOW),
            statement(&[1; 16], &b, &a, NOW),
            statement(&[1; 16], &a, &a, NOW),
            statement(&[1; 16], &a, &b, NOW + 1),
        ] {
            assert_ne!(one, other);
        }
    }
}
