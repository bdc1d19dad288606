//! Leaves a group, and recognises a leader's notice of eviction.

use core::time::Duration;

use quiver_ainq::{Error, GroupMembership, Label, Role, Suite};
use quiver_machine::{Context, Offence, due};
use quiver_message::{EvictionNotice, Leave, Message};

use crate::edge::{EdgeContext, EdgeEvent, StateChanged};
use crate::statements;

/// A member's request to be removed: signed under its key, or with a tag if it has none.
pub type LeaveMessage<S> =
    fn(&mut Context<'_, S, EdgeEvent, StateChanged>, &GroupMembership<S>) -> Option<Message<S>>;

/// State of a member that is leaving: the time of its next request.
#[derive(Debug, Default)]
pub(in crate::edge) struct Leaving(Option<Duration>);

impl Leaving {
    /// Leaves, and repeats the request at this time.
    pub(in crate::edge) fn again_at(&mut self, deadline: Duration) {
        self.0 = Some(deadline);
    }

    pub(super) const fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        due(self.0, now)
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.0
    }
}

/// §12.1: A leave is signed and names D of the epoch held.
pub fn signed_leave<S: Suite>(
    cx: &mut Context<'_, S, EdgeEvent, StateChanged>,
    membership: &GroupMembership<S>,
) -> Option<Message<S>> {
    let keypair = cx.keypair?;
    let (group, held) = (membership.group().clone(), *membership.digest());
    let statement = statements::leave(&group, keypair.public(), &held);
    let signature = keypair.sign(cx.deployment, Label::Leave, &statement, cx.rng);
    Some(Message::Leave(Leave { group, slot: membership.slot(), held, signature }))
}

/// §12.2: Whether a notice names this drone, and a leader of its group signed it for a later epoch.
pub(super) fn evicts<S: Suite>(
    cx: &EdgeContext<'_, S>,
    membership: &GroupMembership<S>,
    notice: &EvictionNotice<S>,
) -> Result<bool, Offence> {
    let (group, leader) = (membership.group(), &notice.leader);
    // §12.2: a notice names drones by serial, so that every key of theirs is out.
    let named = cx.keypair.map(|keypair| keypair.public().identity.serial);
    if notice.group != *group || !named.is_some_and(|serial| notice.serials.contains(&serial)) {
        return Ok(false);
    }
    // §12.2: the signer leads this group under the ordinal of the epoch, and is neither over, revoked nor
    // refused.
    let leads = match &leader.identity.role {
        Role::Leader { group: led, ordinal } => led == group && *ordinal == notice.epoch.ordinal(),
        Role::Edge => false,
    };
    let ended = cx.now.unix >= leader.identity.not_after;
    if !leads || ended || cx.revocations.names(leader) || cx.leaders.refuses(leader) {
        return Err(Error::NotALeader.into());
    }
    // §12.2: a recorded notice ends no later membership.
    if notice.epoch <= membership.epoch() {
        return Err(Error::Stale.into());
    }
    let statement = statements::evict(group, notice.epoch, &notice.serials);
    notice.signature.verify(cx.deployment, leader, Label::Evict, &statement)?;
    Ok(true)
}
