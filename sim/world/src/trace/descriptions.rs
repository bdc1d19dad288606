//! Describes in words what a trace has: events of nodes, actions, how long faults last.

use quiver_ainq::{Epoch, EpochKind};
use quiver_enrolment::KgcEvent;
use quiver_group::{EdgeEvent, LeaderEvent};

use super::EventKind;
use crate::{Action, NodeEvent, NodeId};

/// Describes an event of a node, without the node's name; `None` if it is no part of a story.
pub(crate) fn describe(event: &NodeEvent) -> Option<String> {
    Some(match event {
        NodeEvent::Edge(event) => edge(event)?,
        NodeEvent::Leader(event) => leader(event)?,
        NodeEvent::Kgc(event) => kgc(event)?,
        NodeEvent::Feature(event) => event.describe()?,
    })
}

fn edge(event: &EdgeEvent) -> Option<String> {
    Some(match event {
        EdgeEvent::Enrolled { .. } => "is enrolled".into(),
        EdgeEvent::SendFailed(why) => format!("cannot send: {why}"),
        EdgeEvent::Left => "is out, as it asked".into(),
        EdgeEvent::Evicted => "is evicted".into(),
        EdgeEvent::Refused(reason) => format!("is refused: {reason}"),
        EdgeEvent::EnrolmentTrouble(trouble) => trouble.to_string(),
        EdgeEvent::RevocationsStale => "does not join under a stale revocation list".into(),
        EdgeEvent::KemDiffers { own, leader } => format!("joins nobody with kem {leader}: its own is {own}"),
        EdgeEvent::MembershipDropped { error } => format!("drops its membership: {error}"),
        EdgeEvent::Equivocation { leader, epoch } => {
            format!("refuses {leader}, which signed epoch {epoch} twice")
        }
        EdgeEvent::Blamed { offence, .. } => format!("blames a peer: {offence}"),
        EdgeEvent::KeyActivated { .. } | EdgeEvent::Message { .. } | EdgeEvent::RevocationList { .. } => {
            return None;
        }
    })
}

fn leader(event: &LeaderEvent) -> Option<String> {
    Some(match event {
        LeaderEvent::Enrolled { .. } => "is enrolled".into(),
        LeaderEvent::Delivered { epoch, members } => {
            format!("knows that all {members} members have epoch {epoch}")
        }
        LeaderEvent::Removed { name, revoked: true, .. } => format!("puts out {name}, which is revoked"),
        LeaderEvent::Removed { name, evicted: true, .. } => format!("evicts {name}"),
        LeaderEvent::Removed { name, .. } => format!("lets {name} leave"),
        LeaderEvent::Barred(name) => format!("evicts {name}, which was away"),
        LeaderEvent::EnrolmentRefused(reason) => format!("is refused: {reason}"),
        LeaderEvent::EnrolmentTrouble(trouble) => trouble.to_string(),
        LeaderEvent::SecondKey { name, .. } => format!("refuses a second key of {name}"),
        LeaderEvent::RekeyFailed(error) => format!("cannot make an epoch: {error}"),
        LeaderEvent::SteppedDown { .. } => "leads no more".into(),
        LeaderEvent::StandingBy { leader, epoch, members } => {
            format!("stands by for {leader}, with {members} members of epoch {epoch}")
        }
        LeaderEvent::TookOver { .. } => "takes over".into(),
        LeaderEvent::Equivocation { leader, epoch } => {
            format!("refuses {leader}, which signed epoch {epoch} twice")
        }
        LeaderEvent::OwnHeader { .. } => "sees a copy of itself, and opens the next term".into(),
        LeaderEvent::Blamed { offence, .. } => format!("blames a peer: {offence}"),
        _ => return None,
    })
}

fn kgc(event: &KgcEvent) -> Option<String> {
    Some(match event {
        KgcEvent::Issued { name, .. } => format!("issues the key of {name}"),
        KgcEvent::Contributed { name, .. } => format!("does its part of the key of {name}"),
        KgcEvent::Refused { reason, .. } => format!("refuses a request: {reason}"),
        KgcEvent::RevocationListSigned { number } => format!("signs revocation list {number}"),
        _ => return None,
    })
}

/// A new epoch: who makes it, how many members it has, and how many of them are new or gone.
pub(super) fn epoch(
    leader: NodeId,
    epoch: Epoch,
    kind: EpochKind,
    (members, added, removed): (usize, usize, usize),
) -> String {
    let makes = if kind == EpochKind::Open { "opens a term with" } else { "makes" };
    let mut text = format!("{leader} {makes} epoch {epoch}, {members} members");
    for (count, what) in [(added, "added"), (removed, "removed")] {
        if count > 0 && kind != EpochKind::Open {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// The node that an action is about, if it is one.
pub(super) fn subject(action: &Action) -> Option<NodeId> {
    Some(match action {
        Action::Start(node)
        | Action::Stop(node)
        | Action::Crash { node, .. }
        | Action::Talk { node, .. }
        | Action::LinksOf(node, _)
        | Action::Skew { node, .. }
        | Action::Disk(node, _)
        | Action::Replay { to: node, .. } => *node,
        Action::Join(edge)
        | Action::Leave(edge)
        | Action::Evict(edge)
        | Action::Revoke(edge)
        | Action::Certify { edge, .. }
        | Action::Decertify(edge)
        | Action::Capture(edge)
        | Action::Usurp { edge, .. }
        | Action::Forge { by: edge, .. } => NodeId::Edge(*edge),
        Action::Subvert { relay, .. } => NodeId::Relay(*relay),
        Action::Seize(kgc) | Action::Lie { kgc, .. } | Action::Approve(kgc) => NodeId::Kgc(*kgc),
        Action::Rekey
        | Action::RenewKem(_)
        | Action::Links(_)
        | Action::Radio(_)
        | Action::Part(_)
        | Action::Heal
        | Action::Calm
        | Action::Order(_)
        | Action::DoubleTerm { .. } => return None,
    })
}

/// The kind of an action's event.
pub(super) fn kind(action: &Action) -> EventKind {
    match action {
        Action::Stop(_)
        | Action::Crash { .. }
        | Action::Links(_)
        | Action::LinksOf(..)
        | Action::Part(_)
        | Action::Skew { .. }
        | Action::Disk(..) => EventKind::Fault,
        Action::Capture(_)
        | Action::Seize(_)
        | Action::Lie { .. }
        | Action::Subvert { .. }
        | Action::Replay { .. }
        | Action::Usurp { .. }
        | Action::Forge { .. }
        | Action::DoubleTerm { .. } => EventKind::Adversary,
        _ => EventKind::Command,
    }
}

/// A fault that lasts: its name, and the node that has it.
pub(super) type Lasting = (&'static str, Option<NodeId>);

/// The lasting faults that an action ends, and the one that it begins.
pub(super) fn lasting(action: &Action) -> (Vec<Lasting>, Option<Lasting>) {
    let ends_and_begins = |key: Lasting, begins: bool| (vec![key], begins.then_some(key));
    match action {
        Action::Start(node) => ends_and_begins(("power", Some(*node)), false),
        Action::Stop(node) | Action::Crash { node, .. } => (Vec::new(), Some(("power", Some(*node)))),
        Action::Links(_) => ends_and_begins(("links", None), true),
        Action::LinksOf(node, faults) => ends_and_begins(("links", Some(*node)), faults.is_some()),
        Action::Part(_) => (Vec::new(), Some(("partition", None))),
        Action::Heal => ends_and_begins(("partition", None), false),
        Action::Skew { node, seconds } => ends_and_begins(("clock", Some(*node)), *seconds != 0),
        Action::Disk(node, state) => {
            ends_and_begins(("disk", Some(*node)), *state != crate::DiskState::Sound)
        }
        Action::Lie { kgc, lies } => ends_and_begins(("lies", Some(NodeId::Kgc(*kgc))), *lies),
        Action::Subvert { relay, hostile } => {
            ends_and_begins(("hostile", Some(NodeId::Relay(*relay))), *hostile)
        }
        _ => (Vec::new(), None),
    }
}
