//! The roles when a leader keeps a tree of keys.

mod catching_up;
mod leader_messages;
mod leaves;
mod short_headers;
mod wraps;

#[path = "../roles/beside.rs"]
mod beside;
#[path = "../roles/main.rs"]
mod roles;

use quiver_ainq::{EpochPart, PathMessage, StrategyKind};
use quiver_message::Message;
use roles::world;

use self::world::{Node, Packet, S, World, decode};

/// Re-key strategy of these tests.
const STRATEGY: StrategyKind = StrategyKind::Tree;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;

/// Returns true if the leader tells everybody a new epoch.
fn is_delta(world: &World, packet: &Packet) -> bool {
    matches!(decode(world, packet), Message::Rekey(rekey) if matches!(rekey.part, Some(EpochPart::Delta(_))))
}

/// Returns true if a message brings an epoch to a member that did not ask.
fn is_epoch(message: &Message<S>) -> bool {
    matches!(message, Message::Rekey(_) | Message::ShortRekey(_))
}

/// A path that nobody asked for.
fn pushed_path(world: &World, packet: &Packet) -> Option<PathMessage> {
    match decode(world, packet) {
        Message::Rekey(quiver_message::Rekey { part: Some(EpochPart::Path(path)), .. }) => Some(path),
        _ => None,
    }
}

/// A path that answers a question.
fn answered_path(world: &World, packet: &Packet) -> Option<PathMessage> {
    match decode(world, packet) {
        Message::CatchUpReply(quiver_message::CatchUpReply { part: Some(EpochPart::Path(path)), .. }) => {
            Some(path)
        }
        _ => None,
    }
}

/// Keeps from an edge what `hidden` picks, and puts it aside.
fn withhold(
    world: &mut World,
    edge: usize,
    hidden: impl Fn(&Message<S>) -> bool + 'static,
) -> std::rc::Rc<std::cell::RefCell<Vec<Packet>>> {
    let aside = std::rc::Rc::<std::cell::RefCell<Vec<Packet>>>::default();
    let (keep, deployment) = (aside.clone(), world.deployment.clone());
    world.tamper = Some(Box::new(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        if packet.to == Node::Edge(edge) && hidden(&message) {
            keep.borrow_mut().push(packet);
            return vec![];
        }
        vec![packet]
    }));
    aside
}

/// Delivers what was put aside.
fn deliver(world: &mut World, packets: impl IntoIterator<Item = Packet>) {
    for packet in packets {
        world.inject(packet.from, packet.to, &packet.bytes);
    }
}
