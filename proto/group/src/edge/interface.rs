//! Settings, commands, events and status of an edge.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Epoch, Error, IssuedToken, Name, Slot, Suite, UnixTime};
use quiver_kem::KemSetting;
use quiver_message::RefusalReason;
use zeroize::Zeroizing;

use crate::MessageOrigin;
use quiver_enrolment::{EnrolmentTrouble, Kgcs};
use quiver_machine::{Backoff, Offence, Peer};

/// Configuration of an edge.
#[derive(Debug)]
pub struct EdgeConfig<S: Suite> {
    /// The deployment it belongs to.
    pub deployment: Deployment<S>,
    /// The group to join as soon as it is enrolled and a leader is connected; `None` to wait for
    /// [`EdgeCommand::Join`].
    pub group: Option<Name>,
    /// The token to enrol with, if it has not enrolled yet.
    pub token: Option<IssuedToken<S>>,
    /// The KGCs to enrol with.
    pub kgcs: Kgcs<S>,
    /// Times of the edge.
    pub timing: EdgeTiming,
}

impl<S: Suite> EdgeConfig<S> {
    /// An edge in a deployment of one KGC.
    pub fn new(deployment: Deployment<S>, group: Option<Name>, token: Option<IssuedToken<S>>) -> Self {
        Self { deployment, group, token, kgcs: Kgcs::single(), timing: EdgeTiming::default() }
    }
}

/// Times of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeTiming {
    /// Time to wait for an answer before the first retry; doubles from there.
    pub retry: Duration,
    /// The longest wait between retries.
    pub retry_max: Duration,
    /// Time to wait for admission after the request to join; doubles after each request that was not
    /// answered, up to eight times as long.
    pub admission: Duration,
    /// Time for which the former key still receives after a re-key that removed nobody.
    pub overlap: Duration,
    /// Time without an answer from a leader before it is asked whether the epoch held is still current.
    /// `None` for edges that notice at once when a connection breaks: they ask only after a gap.
    pub probe: Option<Duration>,
}

impl Default for EdgeTiming {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(2),
            retry_max: Duration::from_secs(30),
            admission: Duration::from_secs(15),
            overlap: Duration::from_secs(2),
            probe: None,
        }
    }
}

impl EdgeTiming {
    /// The waits between attempts.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.retry, self.retry_max)
    }
}

/// Command of the application to an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeCommand {
    /// Join this group (and leave the present one without a word).
    Join(Name),
    /// Leave the group.
    Leave,
    /// Ask a leader which epoch is current, unless a question is under way: what came under another key says
    /// that there may be a newer one.
    CatchUp,
    /// Send something to the group.
    Send {
        /// The application's channel.
        channel: Name,
        /// Content of at most 65,536 bytes.
        data: Vec<u8>,
        /// True to vouch for it with a signature.
        signed: bool,
    },
}

/// State of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeStatus {
    /// Name of the drone, once enrolled.
    pub name: Option<Name>,
    /// The group it is in or wants to be in.
    pub group: Option<Name>,
    /// The epoch held.
    pub epoch: Option<Epoch>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Slot of the drone.
    pub slot: Option<Slot>,
    /// True if it holds the key of an epoch that it knows to be current.
    pub synced: bool,
    /// End of the key's validity.
    pub valid_until: Option<UnixTime>,
    /// Time on the monotonic clock of the last question that a leader answered, so that the answer cannot be
    /// older than it.
    pub answered: Option<Duration>,
    /// Number of questions which epoch is current that this member has sent ([`EdgeCommand::CatchUp`]).
    pub asked: u32,
    /// Number of the latest of them whose answer proved it.
    pub proven: u32,
    /// The connected leader that last proved to lead the group, of which this drone is a member.
    pub leader: Option<Peer>,
    /// The newest revocation list held, 0 for none.
    pub revocation_number: u64,
    /// Time at which that list becomes stale; `None` without a list.
    pub revocations_next_update: Option<UnixTime>,
    /// Number of starts.
    pub boot_no: u32,
}

/// Event of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeEvent {
    /// The KGC issued this drone's key.
    Enrolled {
        /// The drone's name.
        name: Name,
    },
    /// A new group key is in use.
    KeyActivated {
        /// The epoch.
        epoch: Epoch,
        /// D of that epoch.
        digest: [u8; 32],
        /// Slot of this member.
        slot: Slot,
    },
    /// A message to the group.
    Message {
        /// The application's channel.
        channel: Name,
        /// The plaintext.
        data: Zeroizing<Vec<u8>>,
        /// The sender.
        source: MessageOrigin,
    },
    /// A message could not be sent.
    SendFailed(&'static str),
    /// The drone is no longer a member, as it asked.
    Left,
    /// The drone was evicted from the group.
    Evicted,
    /// A service refuses; the edge tries again only if the reason is transient.
    Refused(RefusalReason),
    /// KGCs of a quorum do not do their part; enrolment goes on.
    EnrolmentTrouble(EnrolmentTrouble),
    /// The revocation list is past its next update, and this edge does not join under such a list: it asked
    /// the leader for a newer one.
    RevocationsStale,
    /// A newer revocation list is in force.
    RevocationList {
        /// Number of the list.
        number: u64,
    },
    /// The stored membership cannot be restored, or is of another parameter set of ML-KEM than the deployment
    /// says, and is dropped. The drone keeps its key and what it knows of
    /// its groups, and joins anew.
    MembershipDropped {
        /// The error.
        error: Error,
    },
    /// A leader signed two different headers for one epoch. It is refused for good.
    Equivocation {
        /// The leader.
        leader: Name,
        /// Epoch of the two headers.
        epoch: Epoch,
    },
    /// The leader's deployment says another parameter set of ML-KEM, or none: the edge does not join.
    KemDiffers {
        /// Setting of this edge's deployment.
        own: KemSetting,
        /// Setting of the leader's.
        leader: KemSetting,
    },
    /// A peer did something wrong.
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}
