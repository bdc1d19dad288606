//! The board's side.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::datagram::Datagram;
use crate::hello::{GatewayWelcome, Hello, Wants};
use crate::limits::{EndpointLimits, PipeCounters};
use crate::pipe::{Broken, Outgoing, PeerLimits, Pipe};
use crate::{LinkError, Route, ToBoard, ToGateway, Via};

/// The longest time between two hellos.
const SLOWEST_HELLO: Duration = Duration::from_secs(8);
/// Number of times that the patience is doubled.
const MOST_PATIENT: u8 = 3;
/// Events that may wait; beyond, nothing more is received.
const MAX_EVENTS: usize = 16;

/// Events for a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardEvent {
    /// A session with the gateway begins. No peer is connected yet.
    Begun {
        /// Seconds since 1970-01-01T00:00:00Z, as the gateway claims.
        unix_time: u64,
    },
    /// The current time.
    Time {
        /// Seconds since 1970-01-01T00:00:00Z, as the gateway claims.
        unix_time: u64,
    },
    /// A connection is up.
    Connected {
        /// The partner; numbers are not used twice in a session.
        peer: u64,
        /// Route of the connection.
        route: Route,
    },
    /// The connection is gone.
    Disconnected {
        /// The partner.
        peer: u64,
    },
    /// A message came.
    Received {
        /// The peer that sent it.
        from: u64,
        /// Way of the message.
        via: Via,
        /// The message; not empty.
        bytes: Vec<u8>,
    },
    /// The gateway is gone, and all peers with it.
    Lost,
}

/// The board's side of a link: sends a hello until a gateway answers, and again once that gateway is lost.
#[derive(Debug)]
pub struct BoardEndpoint {
    limits: EndpointLimits,
    boot: u32,
    revision: u8,
    wants: Wants,
    pipe: Option<Pipe>,
    /// True if the gateway has confirmed the present wants.
    understood: bool,
    next_hello: Duration,
    hello_wait: Duration,
    next_ping: Duration,
    lost_at: Duration,
    /// True while the board is served; if it is not, the session ends at `give_up_at`.
    served: bool,
    give_up_at: Duration,
    /// Sessions given up in a row, as far as they count.
    given_up: u8,
    events: VecDeque<BoardEvent>,
    counters: PipeCounters,
}

impl BoardEndpoint {
    /// Begins to send a hello. `boot` is random and distinguishes this start from others.
    pub fn new(limits: EndpointLimits, boot: u32, wants: Wants) -> Self {
        Self {
            limits,
            boot,
            revision: 0,
            wants,
            pipe: None,
            understood: false,
            next_hello: Duration::ZERO,
            hello_wait: limits.repeat_after,
            next_ping: Duration::ZERO,
            lost_at: Duration::ZERO,
            served: true,
            give_up_at: Duration::ZERO,
            given_up: 0,
            events: VecDeque::new(),
            counters: PipeCounters::default(),
        }
    }

    /// Returns true if a gateway has answered and is not lost.
    pub fn has_session(&self) -> bool {
        self.pipe.is_some()
    }

    /// The session with the gateway, if there is one.
    pub fn session(&self) -> Option<u32> {
        self.pipe.as_ref().map(Pipe::session)
    }

    /// The counters so far.
    pub fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Wants something else from now on.
    pub fn set_wants(&mut self, wants: Wants) {
        if self.wants != wants {
            self.wants = wants;
            // Another revision: it distinguishes hellos for the gateway, which confirms it in its welcome.
            self.revision = self.revision.wrapping_add(1);
            self.understood = false;
            self.next_hello = Duration::ZERO;
            self.hello_wait = self.limits.repeat_after;
        }
    }

    /// Sets whether the board is served. A session without service for [`EndpointLimits::patience`] is ended, and
    /// another begun: wrong reports of the gateway about connections, and its wrong beliefs about the board's
    /// state, end with it. Before the first call, the board counts as served.
    pub fn set_served(&mut self, now: Duration, served: bool) {
        if served {
            // The next loss of service is given the shortest patience again.
            self.given_up = 0;
        } else if self.served {
            // A gateway's wrong report keeps the board out no longer than its patience.
            self.give_up_at = now.saturating_add(self.patience());
        }
        self.served = served;
    }

    /// Queues a message for the gateway. It is sent when its turn comes, or dropped: silently if older than
    /// others that wait or not taken by the gateway after all repeats.
    ///
    /// # Errors
    /// [`LinkError::NoSession`] and [`LinkError::MessageTooLong`]; both are counted.
    pub fn send(&mut self, message: &ToGateway) -> Result<(), LinkError> {
        let Some(pipe) = &mut self.pipe else {
            self.counters.dropped += 1;
            return Err(LinkError::NoSession);
        };
        let (bytes, max) = (message.encode(), pipe.longest());
        if bytes.len() > max {
            self.counters.too_long += 1;
            return Err(LinkError::MessageTooLong { len: bytes.len(), max });
        }
        // Only vital messages can break a session here, and a board has none.
        let _ = pipe.send(Outgoing { bytes, vital: false }, &mut self.counters);
        Ok(())
    }

    /// Takes a datagram from the gateway.
    pub fn handle_datagram(&mut self, now: Duration, bytes: &[u8]) {
        let Ok(datagram) = Datagram::decode(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        match datagram {
            Datagram::Welcome(welcome) => self.welcomed(now, welcome),
            Datagram::Pong { session, unix_time } if self.is_ours(session) => {
                self.note_activity(now);
                // Pongs that are not polled are not kept.
                if self.events.len() < MAX_EVENTS {
                    self.events.push_back(BoardEvent::Time { unix_time });
                }
            }
            // The gateway knows no such session: another begins at once.
            Datagram::Lost { session } if self.is_ours(session) => self.lose(now),
            // Not taken, so not acknowledged: the gateway repeats it.
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
                let message = self.pipe.as_mut().and_then(|pipe| pipe.handle(now, &datagram, counters));
                if let Some(message) = message {
                    self.received(&message);
                }
            }
            // Of another session: nothing from before a reset passes for news.
            _ => self.counters.stale += 1,
        }
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        let Some(pipe) = &mut self.pipe else { return };
        // After 3 minutes without service, then 6, 12 and 24.
        if !self.served && self.give_up_at <= now {
            self.given_up = self.given_up.saturating_add(1).min(MOST_PATIENT);
            self.lose(now);
        } else if self.lost_at <= now || pipe.handle_timeout(now, &mut self.counters) == Err(Broken) {
            // 65 s of silence, or messages that nobody takes.
            self.lose(now);
        }
    }

    /// The next datagram to send, if the medium can take one.
    pub fn poll_datagram(&mut self, now: Duration) -> Option<Vec<u8>> {
        // Repeated until a welcome confirms the present wants.
        if !self.understood && self.next_hello <= now {
            self.next_hello = now.saturating_add(self.hello_wait);
            self.hello_wait = self.hello_wait.saturating_mul(2).min(SLOWEST_HELLO);
            return Some(Datagram::Hello(self.hello()).encode());
        }
        let pipe = self.pipe.as_mut()?;
        if self.next_ping <= now {
            self.next_ping = now.saturating_add(self.limits.ping_every);
            return Some(Datagram::Ping { session: pipe.session() }.encode());
        }
        pipe.poll(now, &mut self.counters)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<BoardEvent> {
        self.events.pop_front()
    }

    /// Time by which to call [`BoardEndpoint::handle_timeout`] and then [`BoardEndpoint::poll_datagram`].
    pub fn timeout(&self) -> Option<Duration> {
        let hello = (!self.understood).then_some(self.next_hello);
        let alive = self.pipe.as_ref().map(|_| self.next_ping.min(self.lost_at));
        let give_up = self.pipe.as_ref().filter(|_| !self.served).map(|_| self.give_up_at);
        let pipe = self.pipe.as_ref().and_then(Pipe::timeout);
        [hello, alive, give_up, pipe].into_iter().flatten().min()
    }

    fn hello(&self) -> Hello {
        Hello {
            boot: self.boot,
            revision: self.revision,
            max_message: u32::try_from(self.limits.max_message).unwrap_or(u32::MAX),
            window: self.limits.window,
            wants: self.wants.clone(),
        }
    }

    fn is_ours(&self, session: u32) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| pipe.session() == session)
    }

    fn note_activity(&mut self, now: Duration) {
        self.lost_at = now.saturating_add(self.limits.lost_after);
    }

    fn welcomed(&mut self, now: Duration, welcome: GatewayWelcome) {
        if welcome.boot != self.boot {
            self.counters.stale += 1;
            return;
        }
        if self.pipe.is_some() && !self.is_ours(welcome.session) {
            // The gateway began anew. This start's numbers are used up with the old session.
            return self.lose(now);
        }
        self.note_activity(now);
        // They may have changed since the hello that this answers.
        self.understood |= welcome.revision == self.revision;
        if self.pipe.is_none() {
            let peer = PeerLimits { max_message: welcome.max_message, window: welcome.window };
            self.pipe = Some(Pipe::new(welcome.session, self.limits, peer));
            self.next_ping = now.saturating_add(self.limits.ping_every);
            self.give_up_at = now.saturating_add(self.patience());
            self.events.push_back(BoardEvent::Begun { unix_time: welcome.unix_time });
        }
    }

    fn patience(&self) -> Duration {
        self.limits.patience.saturating_mul(1 << self.given_up)
    }

    /// Ends the session and begins to say hello again, as another start.
    fn lose(&mut self, now: Duration) {
        let Some(pipe) = self.pipe.take() else { return };
        self.counters.dropped += pipe.unsent();
        // Waiting messages are for peers that the next session does not know.
        self.counters.sessions_lost += 1;
        // As another start, so that nothing of this session fits the next.
        self.boot = self.boot.wrapping_add(1);
        self.understood = false;
        self.next_hello = now;
        self.hello_wait = self.limits.repeat_after;
        self.events.push_back(BoardEvent::Lost);
    }

    fn received(&mut self, message: &[u8]) {
        self.events.push_back(match ToBoard::decode(message) {
            Ok(ToBoard::Connected { peer, route }) => BoardEvent::Connected { peer, route },
            Ok(ToBoard::Disconnected { peer }) => BoardEvent::Disconnected { peer },
            Ok(ToBoard::Received { from, via, bytes }) => BoardEvent::Received { from, via, bytes },
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        });
    }
}
