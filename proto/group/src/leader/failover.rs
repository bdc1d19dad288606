//! Failover: a leader that does not lead stands by for the one that does, and takes over when it is silent.
//! docs/protocol.md §10.
//!
//! | module | what it does |
//! |---|---|
//! | [`standby`] | questions to the active leader, and when to take over |
//! | [`replication_sink`] | the active leader's answers |
//! | [`replica`] | a deputy's replica of the group |
//! | [`replication_source`] | at the active leader: answers deputies |
//! | [`competing_leaders`] | headers of other leaders, and proofs against them |
//! | [`eviction_notices`] | signed notices of who was evicted |
//! | [`peer_hints`] | where members are connected, for a leader that does not lead |

pub(super) mod competing_leaders;
pub(super) mod eviction_notices;
pub(super) mod peer_hints;
mod replica;
pub(super) mod replication_sink;
pub(super) mod replication_source;
pub(super) mod standby;

use core::time::Duration;

use quiver_ainq::{Epoch, Header, Suite};
use quiver_machine::Peer;

use self::competing_leaders::{StaleHeaders, TermPacer};
use self::peer_hints::PeerHints;
use self::standby::StandbySession;
use super::clock_check::RanOut;

/// State about the other leaders of the group.
#[derive(Debug)]
pub(super) struct Failover<S: Suite> {
    session: Option<StandbySession<S>>,
    /// Time of the latest proof that the active leader is alive; at first, the start of standing by.
    alive: Duration,
    /// Time of the next question.
    next: Option<Duration>,
    /// Number of times in a row that this leader led and was overruled without a message from the other: two
    /// leaders that cannot reach each other, but whose members reach both, must not take turns for ever.
    overruled: u32,
    /// The newest header of another leader, verified.
    seen: Option<Header<S>>,
    /// True if most others are known to have our time.
    pub(super) clock_confirmed: bool,
    /// The leader that answered last had a key that had run out long before, by our clock.
    pub(super) ran_out: Option<RanOut>,
    /// True if the active leader is proven to be none: then there is nothing to wait for but one's turn.
    void: bool,
    /// The connection to try first.
    prefer: Option<Peer>,
    /// Time at which the keys run out of the term that made this leader step down, if it is alone.
    vacant: Option<Duration>,
    pub(super) hints: PeerHints,
    pacer: TermPacer,
    stale: StaleHeaders,
}

impl<S: Suite> Failover<S> {
    pub(super) fn new() -> Self {
        Self {
            session: None,
            alive: Duration::ZERO,
            next: None,
            overruled: 0,
            seen: None,
            clock_confirmed: false,
            ran_out: None,
            void: false,
            prefer: None,
            vacant: None,
            hints: PeerHints::default(),
            pacer: TermPacer::default(),
            stale: StaleHeaders::default(),
        }
    }
}

/// Action of the leader that failover requires.
#[derive(Debug)]
pub(super) enum FailoverAction {
    /// Announce the newest epoch to deputies and other leaders.
    Announce,
    /// Open a term, because no other leader leads.
    OpenTerm,
    /// Takes over from a leader that is silent. `from` is the newest epoch known.
    TakeOver { from: Option<Epoch>, silent: Duration },
}
