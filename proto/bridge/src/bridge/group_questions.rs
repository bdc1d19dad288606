//! Questions of a bridge to the group's machine, and its answers.

use quiver_ainq::{DronePublicKey, Signature, Slot, Suite};
use quiver_datagram::SigningRequest;

use crate::group_inputs::GroupServices;

/// Question to the group's machine, which the bridge does not wait for.
pub(super) enum GroupQuestion<S: Suite> {
    /// Signature under a statement of the datagrams' machine.
    Sign(SigningRequest),
    /// Permission of this drone to sign datagrams from this slot (§20.4).
    MaySign(Slot, Box<DronePublicKey<S>>),
    /// A newer epoch, because datagrams of one come (§20.8).
    WantEpoch,
    /// A connection with the leader, because this end lacks something that the leader alone has.
    ReachLeader,
    /// A new key, because tags are guessed under that of the epoch with this digest (§20.10).
    Forgeries([u8; 32]),
}

/// Answer of the group's machine.
pub(super) enum GroupAnswer<S: Suite> {
    /// The signature for the request with this number; `None` if the machine cannot sign.
    Signed(u64, Option<Signature<S>>),
    /// True if the drone may sign from the slot.
    MaySign(Slot, Box<DronePublicKey<S>>, bool),
    /// The question needed no answer.
    Done,
}

impl<S: Suite> GroupQuestion<S> {
    /// Asks it.
    pub(super) async fn ask(self, group: impl GroupServices<S>) -> GroupAnswer<S> {
        match self {
            Self::Sign(request) => GroupAnswer::Signed(request.id, group.sign(request.statement).await),
            Self::MaySign(slot, drone) => {
                let may = group.may_sign(slot, (*drone).clone()).await;
                GroupAnswer::MaySign(slot, drone, may)
            }
            Self::WantEpoch => {
                group.want_epoch().await;
                GroupAnswer::Done
            }
            Self::ReachLeader => {
                group.reach_leader().await;
                GroupAnswer::Done
            }
            Self::Forgeries(digest) => {
                group.forgeries(digest).await;
                GroupAnswer::Done
            }
        }
    }
}
