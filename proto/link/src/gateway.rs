//! The gateway's side, one for each board.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::datagram::{Datagram, is_fragment};
use crate::erasure::Confirmation;
use crate::hello::{GatewayWelcome, Hello, Wants};
use crate::limits::{EndpointLimits, PipeCounters};
use crate::pipe::{Broken, Outgoing, PeerLimits, Pipe};
use crate::{BoardReport, Destination, LinkError, ToBoard, ToGateway};

/// Events that may wait; beyond, nothing more is received.
const MAX_EVENTS: usize = 16;

/// Events for a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// A session with the board begins. It knows of no connection.
    Begun {
        /// The connections that it wants.
        wants: Wants,
        /// The longest encoded message it takes, in bytes.
        max_message: u32,
    },
    /// The board wants something else.
    Wants(Wants),
    /// The board wants this sent.
    Transmit {
        /// The receiver.
        to: Destination,
        /// The message; not empty.
        payload: Vec<u8>,
    },
    /// The board blocks this peer for the rest of the session.
    Block {
        /// The peer.
        peer: u64,
    },
    /// The board's counters.
    Report(BoardReport),
    /// The board takes coded broadcasts for as long as the session lasts.
    TakesBroadcasts {
        /// The longest message to send so, in bytes.
        max_message: u32,
    },
    /// The board has the broadcast with this digest in its frames.
    HasBroadcast {
        /// The digest.
        digest: [u8; 4],
    },
    /// The session is over: the board fell silent, or it did not take a message that it must have.
    Lost,
}

/// The gateway's side of a link with one board: waits for its hello.
#[derive(Debug)]
pub struct GatewayEndpoint {
    limits: EndpointLimits,
    next_session: u32,
    state: Option<BoardSession>,
    /// Answers that need nothing but themselves, the latest of each kind.
    welcome: bool,
    pong: bool,
    lost: Option<u32>,
    lost_at: Duration,
    events: VecDeque<GatewayEvent>,
    counters: PipeCounters,
    fragments: u64,
}

#[derive(Debug)]
struct BoardSession {
    hello: Hello,
    pipe: Pipe,
}

impl GatewayEndpoint {
    /// Waits for a board. `session` is random and distinguishes the sessions of this gateway from those of
    /// others before it.
    pub fn new(limits: EndpointLimits, session: u32) -> Self {
        Self {
            limits,
            next_session: session,
            state: None,
            welcome: false,
            pong: false,
            lost: None,
            lost_at: Duration::ZERO,
            events: VecDeque::new(),
            counters: PipeCounters::default(),
            fragments: 0,
        }
    }

    /// Returns true if there is a session with the board.
    pub fn has_session(&self) -> bool {
        self.state.is_some()
    }

    /// The counters so far.
    pub fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Fragments sent so far, repeats included: of those, [`PipeCounters::repeated`] were not acknowledged.
    pub fn fragments(&self) -> u64 {
        self.fragments
    }

    /// Queues a message for the board. It is sent when its turn comes, or dropped: silently if older than
    /// others that wait or not taken by the board after all repeats. If that befalls a message about a
    /// connection, the session ends.
    ///
    /// # Errors
    /// [`LinkError::NoSession`] and [`LinkError::MessageTooLong`]; both are counted.
    pub fn send(&mut self, message: &ToBoard) -> Result<(), LinkError> {
        let Some(BoardSession { pipe, .. }) = &mut self.state else {
            self.counters.dropped += 1;
            return Err(LinkError::NoSession);
        };
        let (bytes, max) = (message.encode(), pipe.longest());
        if bytes.len() > max {
            self.counters.too_long += 1;
            return Err(LinkError::MessageTooLong { len: bytes.len(), max });
        }
        // Without the list of connected peers a session makes no sense.
        let outgoing = Outgoing { bytes, vital: message.is_vital() };
        if pipe.send(outgoing, &mut self.counters) == Err(Broken) {
            self.lose();
            return Err(LinkError::NoSession);
        }
        Ok(())
    }

    /// Takes a datagram from the board.
    pub fn handle_datagram(&mut self, now: Duration, bytes: &[u8]) {
        if let Ok(confirmation) = Confirmation::decode(bytes) {
            return self.confirmed(&confirmation);
        }
        let Ok(datagram) = Datagram::decode(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        match datagram {
            Datagram::Hello(hello) => self.greeted(now, hello),
            Datagram::Ping { session } if self.is_ours(session) => {
                self.note_activity(now);
                self.pong = true;
            }
            // Not taken, so not acknowledged: the board repeats it.
            Datagram::Fragment { session, .. }
                if self.is_ours(session) && self.events.len() >= MAX_EVENTS =>
            {
                self.counters.refused += 1;
            }
            Datagram::Fragment { session, .. }
            | Datagram::Have { session, .. }
            | Datagram::Done { session, .. }
                if self.is_ours(session) =>
            {
                self.note_activity(now);
                let counters = &mut self.counters;
                let message =
                    self.state.as_mut().and_then(|state| state.pipe.handle(now, &datagram, counters));
                if let Some(message) = message {
                    self.received(&message);
                }
            }
            // A board of an unknown session begins anew at once when it is notified.
            Datagram::Ping { session } | Datagram::Fragment { session, .. } => {
                self.counters.stale += 1;
                self.lost = Some(session);
            }
            _ => self.counters.stale += 1,
        }
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        let Some(state) = &mut self.state else { return };
        // 65 s of silence, or a list of peers that cannot be delivered.
        if self.lost_at <= now || state.pipe.handle_timeout(now, &mut self.counters) == Err(Broken) {
            self.lose();
        }
    }

    /// The next datagram to send, if the medium can take one. `unix_time` is the answer to a ping of the
    /// board: seconds since 1970-01-01T00:00:00Z.
    pub fn poll_datagram(&mut self, now: Duration, unix_time: u64) -> Option<Vec<u8>> {
        if let Some(session) = self.lost.take() {
            return Some(Datagram::Lost { session }.encode());
        }
        let state = self.state.as_mut()?;
        let session = state.pipe.session();
        // Once more with each hello: the welcome before may be lost.
        if core::mem::take(&mut self.welcome) {
            let welcome = GatewayWelcome {
                boot: state.hello.boot,
                revision: state.hello.revision,
                session,
                max_message: u32::try_from(self.limits.max_message).unwrap_or(u32::MAX),
                window: self.limits.window,
                unix_time,
            };
            return Some(Datagram::Welcome(welcome).encode());
        }
        if core::mem::take(&mut self.pong) {
            return Some(Datagram::Pong { session, unix_time }.encode());
        }
        let datagram = state.pipe.poll(now, &mut self.counters)?;
        self.fragments += u64::from(is_fragment(&datagram));
        Some(datagram)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<GatewayEvent> {
        self.events.pop_front()
    }

    /// Time by which to call [`GatewayEndpoint::handle_timeout`] and then [`GatewayEndpoint::poll_datagram`].
    pub fn timeout(&self) -> Option<Duration> {
        let state = self.state.as_ref()?;
        Some(state.pipe.timeout().map_or(self.lost_at, |at| at.min(self.lost_at)))
    }

    fn is_ours(&self, session: u32) -> bool {
        self.state.as_ref().is_some_and(|state| state.pipe.session() == session)
    }

    fn note_activity(&mut self, now: Duration) {
        self.lost_at = now.saturating_add(self.limits.lost_after);
    }

    fn confirmed(&mut self, confirmation: &Confirmation) {
        if !self.is_ours(confirmation.session) {
            // A confirmation from before a reset would be taken for the new start's, which has nothing.
            self.counters.stale += 1;
        } else if self.events.len() < MAX_EVENTS {
            self.events.push_back(GatewayEvent::HasBroadcast { digest: confirmation.digest });
        }
    }

    fn greeted(&mut self, now: Duration, hello: Hello) {
        if self.events.len() >= MAX_EVENTS {
            self.counters.refused += 1;
            return;
        }
        self.note_activity(now);
        self.welcome = true;
        match &mut self.state {
            // The same start: its wants may have changed, the session stays.
            Some(state) if state.hello.boot == hello.boot => {
                // An older hello may come late.
                if (1..=0x80).contains(&hello.revision.wrapping_sub(state.hello.revision)) {
                    self.events.push_back(GatewayEvent::Wants(hello.wants.clone()));
                    state.hello = hello;
                }
            }
            // A new start gets a new session number: nothing from before fits it.
            _ => self.begin(hello),
        }
    }

    fn begin(&mut self, hello: Hello) {
        // One session for each board: the former ends with its connections, for which the application is
        // told.
        self.lose();
        let peer = PeerLimits { max_message: hello.max_message, window: hello.window };
        let pipe = Pipe::new(self.next_session, self.limits, peer);
        self.next_session = self.next_session.wrapping_add(1);
        self.welcome = true;
        let (wants, max_message) = (hello.wants.clone(), hello.max_message);
        self.events.push_back(GatewayEvent::Begun { wants, max_message });
        self.state = Some(BoardSession { hello, pipe });
    }

    fn lose(&mut self) {
        let Some(state) = self.state.take() else { return };
        self.counters.dropped += state.pipe.unsent();
        self.counters.sessions_lost += 1;
        self.welcome = false;
        self.pong = false;
        self.events.push_back(GatewayEvent::Lost);
    }

    fn received(&mut self, message: &[u8]) {
        self.events.push_back(match ToGateway::decode(message) {
            Ok(ToGateway::Transmit { to, payload }) => GatewayEvent::Transmit { to, payload },
            Ok(ToGateway::Block { peer }) => GatewayEvent::Block { peer },
            Ok(ToGateway::Report(report)) => GatewayEvent::Report(report),
            Ok(ToGateway::TakesBroadcasts { max_message }) => GatewayEvent::TakesBroadcasts { max_message },
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        });
    }
}
