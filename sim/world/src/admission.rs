//! Anonymous admission in the world: certified fields of drones, policies of leaders, and what leaders may
//! learn.
//!
//! A [`Checkpoint`] is a certification authority and a policy that the KGCs signed. With it leaders are
//! [demanding](quiver_admission::AdmittingLeader::demanding) and edges
//! [anonymous](quiver_admission::AnonymousEdge): the machines that the services run. Every drone has fields
//! that follow from the seed: where it is, and how much battery it has left.
//!
//! | module | what it has |
//! |---|---|
//! | `checkpoint` | the authority, the policy, the drones' fields |
//! | `anonymous_drone` | the state of an anonymous drone |
//! | `anonymous_machine` | its machine, in the place of an edge |
//! | `gated_leader` | a leader with the gate before it |
//! | `exposed_run` | a run of a drone, as the adversary that computes discrete logarithms has it |
//! | `sightings` | all that leaders receive and send, by drone and life |
//! | `links` | looking for what two lives of one drone have in common |
//! | `invariant` | what must hold of anonymous drones and their leaders |
//! | `membership` | anonymous drones of a world: when they start, what they show, when they return |
//! | `phases` | their part of a run |
//! | `tags` | a leader that writes something into a drone in one life and looks for it in the next |

mod anonymous_drone;
mod anonymous_machine;
mod checkpoint;
mod exposed_run;
mod gated_leader;
mod invariant;
mod links;
mod membership;
mod phases;
mod sightings;
mod tags;

use self::anonymous_drone::{AnonymousDrone, Return, Showing};
use self::anonymous_machine::AnonymousMachine;
pub use self::checkpoint::{
    ANSWERS, CertifiedFields, Checkpoint, CheckpointContext, CheckpointError, FENCE, FIELDS, PERIOD, Rules,
    check,
};
pub(crate) use self::exposed_run::ExposedRun;
pub(crate) use self::gated_leader::GatedLeader;
pub(crate) use self::invariant::{AnonymousAdmission, Pseudonyms, out_of_place};
pub use self::links::{COMPARED, EVERYBODY, STRETCH, Sighting, linked};
pub(crate) use self::membership::AnonymousDrones;
pub(crate) use self::phases::AnonymousMembers;
pub use self::sightings::Sightings;
pub use self::tags::distinguish;

pub use quiver_admission::certifying::{MAX_PERIOD, MIN_PERIOD};
use quiver_admission::{AdmissionError, AdmissionMessage, AnonymousEdge, AnonymousEvent, Ending};
use quiver_ainq::{Deployment, Suite};
pub use quiver_garble::policy::MAX_TEXT;
use quiver_machine::Peer;
use quiver_message::Message;

use crate::feature_event::FeatureEvent;
use crate::step::{MachineEnd, StandInProgress};
use crate::{DroneRole, Fleet};

/// An event of a node that admits anonymous drones, or is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionNodeEvent {
    /// A leader's gate did not admit the drone on this connection.
    Denied {
        /// The connection.
        peer: Peer,
        /// Reason.
        why: AdmissionError,
    },
    /// An anonymous edge.
    Anonymous(AnonymousEvent),
}

impl FeatureEvent for AdmissionNodeEvent {
    fn describe(&self) -> Option<String> {
        Some(match self {
            Self::Denied { why, .. } => format!("does not admit a drone: {why}"),
            Self::Anonymous(AnonymousEvent::Admitted { .. }) => "is admitted anonymously".into(),
            Self::Anonymous(AnonymousEvent::Ended(why)) => match why {
                Ending::Denied(error) => format!("is not admitted: {error}"),
                Ending::PeriodOver => "is out: the period of its credential is over".into(),
                Ending::Dropped => "is out: the leader knows it no more".into(),
                Ending::Evicted => "is evicted".into(),
                _ => "is out, as it asked".into(),
            },
            Self::Anonymous(AnonymousEvent::Edge(_)) => return None,
        })
    }

    fn progress(&self) -> Option<StandInProgress> {
        match self {
            Self::Anonymous(AnonymousEvent::Admitted { .. }) => Some(StandInProgress::Admitted),
            Self::Anonymous(AnonymousEvent::Ended(why)) => Some(StandInProgress::Ended(match why {
                Ending::Left => MachineEnd::Left,
                why if why.is_final() => MachineEnd::Final,
                _ => MachineEnd::Passing,
            })),
            Self::Denied { .. } | Self::Anonymous(AnonymousEvent::Edge(_)) => None,
        }
    }

    fn is_expiry(&self) -> bool {
        matches!(self, Self::Anonymous(AnonymousEvent::Ended(Ending::PeriodOver)))
    }
}

impl<S: Suite> Fleet<S> {
    /// Admission checkpoint of the leaders, if they demand a policy.
    pub fn checkpoint(&self) -> Option<&Checkpoint<S>> {
        self.features.admission.as_ref()
    }
}

/// The machine of an anonymous drone; `None` for an edge under its name.
pub(crate) fn anonymous_edge<S: Suite>(drone: &DroneRole<S>) -> Option<&AnonymousEdge<S>> {
    drone.stand_in::<AnonymousMachine<S>>().map(|machine| &**machine)
}

/// The message of admission in these bytes, if they are one.
pub(crate) fn read<S: Suite>(deployment: &Deployment<S>, bytes: &[u8]) -> Option<AdmissionMessage<S>> {
    Message::decode(deployment, bytes).ok()?.extension()?.ok()
}

/// A message of admission in full; `None` if it is none.
pub(crate) fn described<S: Suite>(message: &Message<S>) -> Option<String> {
    let read: AdmissionMessage<S> = message.extension()?.ok()?;
    Some(format!("{read:?}"))
}

/// Returns true if a drone's membership never began because it does not satisfy the policy.
pub fn is_unsatisfied(why: &Ending) -> bool {
    *why == Ending::Denied(AdmissionError::Exchange(quiver_abke::Error::Unsatisfied))
}

/// The most drones that may want in: each of their lives is two exchanges' worth of computing.
pub const MAX_ANONYMOUS: u32 = 10_000;
/// Drones that apply at a time, where it is for the simulator to say: a leader's gate has room for twice as
/// many.
pub const AT_ONCE: usize = 128;
