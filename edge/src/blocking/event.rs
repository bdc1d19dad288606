//! Events of a drone within another program.

use quiver_ainq::{Name, Role};
use quiver_group::edge::EdgeStatus;
use quiver_group::{EdgeEvent, MessageOrigin};
use quiver_machine::Route;
use zeroize::Zeroizing;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The KGC has issued this drone's key.
    Enrolled {
        /// The drone's name.
        name: String,
    },
    /// A connection with a service exists.
    Connected {
        /// Service at the other end.
        service: RemoteService,
    },
    /// A connection with a service is lost. A leader is dialled again.
    Disconnected {
        /// Service at the other end.
        service: RemoteService,
    },
    /// The key of this epoch is in use. The first one says that the drone has joined.
    Epoch {
        /// Term of the epoch.
        term: u64,
        /// Counter of the epoch.
        counter: u64,
        /// D of the epoch, equal at all members.
        digest: [u8; 32],
        /// Slot of this drone.
        slot: u32,
    },
    /// A message to the group.
    Message(ReceivedMessage),
    /// A service has refused the drone.
    Refused {
        /// Service that refused.
        service: RemoteService,
        /// The reason.
        reason: String,
        /// True if the same request may succeed later. A leader is asked again in any case, but less often.
        transient: bool,
    },
    /// The drone has left the group, as it was told.
    Left,
    /// The drone was evicted from the group.
    Evicted,
    /// A leader has signed two headers for one epoch, and is refused for good.
    LeaderRefused {
        /// Name of the leader.
        name: String,
    },
}

/// A message to the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The application's channel.
    pub channel: String,
    /// The plaintext.
    pub data: Zeroizing<Vec<u8>>,
    /// The sender.
    pub sender: MessageSender,
}

/// Sender of a message, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageSender {
    /// This drone signed it.
    Signed {
        /// Name of the signer.
        name: String,
        /// True if it is a leader.
        leader: bool,
    },
    /// A member of the group: which, it only claims.
    Unauthenticated {
        /// The slot claimed.
        slot: u32,
    },
}

/// A service that a drone talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteService {
    /// A key generation centre.
    Kgc,
    /// A leader or a deputy.
    Leader,
}

impl RemoteService {
    /// The one that is dialled by this route.
    pub(super) const fn of(route: Route) -> Option<Self> {
        match route {
            Route::Kgc => Some(Self::Kgc),
            Route::Leader => Some(Self::Leader),
            Route::Inbound | Route::Member(_) | Route::Relay => None,
        }
    }
}

impl Event {
    /// The machine's event, if the application is told of it.
    pub(super) fn of(status: &EdgeStatus, event: &EdgeEvent) -> Option<Self> {
        Some(match event {
            EdgeEvent::Enrolled { name } => Self::Enrolled { name: name.to_string() },
            EdgeEvent::KeyActivated { epoch, digest, slot } => {
                Self::Epoch { term: epoch.term, counter: epoch.counter, digest: *digest, slot: *slot }
            }
            EdgeEvent::Message { channel, data, source } => Self::Message(ReceivedMessage {
                channel: channel.to_string(),
                data: data.clone(),
                sender: MessageSender::of(source),
            }),
            EdgeEvent::Left => Self::Left,
            EdgeEvent::Evicted => Self::Evicted,
            EdgeEvent::Refused(reason) => Self::Refused {
                service: if status.name.is_some() { RemoteService::Leader } else { RemoteService::Kgc },
                reason: reason.to_string(),
                transient: reason.is_transient(),
            },
            EdgeEvent::Equivocation { leader, .. } => Self::LeaderRefused { name: leader.to_string() },
            EdgeEvent::SendFailed(_)
            | EdgeEvent::EnrolmentTrouble(_)
            | EdgeEvent::RevocationsStale
            | EdgeEvent::RevocationList { .. }
            | EdgeEvent::MembershipDropped { .. }
            | EdgeEvent::KemDiffers { .. }
            | EdgeEvent::Blamed { .. } => return None,
        })
    }

    /// Bytes of a message's content; `None` for another event.
    pub(super) fn message_len(&self) -> Option<usize> {
        match self {
            Self::Message(message) => Some(message.data.len()),
            _ => None,
        }
    }
}

impl MessageSender {
    fn of(source: &MessageOrigin) -> Self {
        let text = |name: &Name| name.to_string();
        match source {
            MessageOrigin::Signed { name, role } => {
                Self::Signed { name: text(name), leader: matches!(role, Role::Leader { .. }) }
            }
            MessageOrigin::Unauthenticated { slot } => Self::Unauthenticated { slot: *slot },
        }
    }
}
