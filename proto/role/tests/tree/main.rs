//! The roles when a leader keeps a tree of keys.

mod catching_up;
mod dealing;
mod leaving;

#[path = "../roles/main.rs"]
mod roles;

use quiver_ainq::{Part, PathMessage, StrategyKind};
use quiver_message::Message;
use roles::world;

use self::world::{Flight, Node, S, World, decode};

/// How group keys travel in these tests.
const STRATEGY: StrategyKind = StrategyKind::Tree;

/// Whether the leader tells everybody a new epoch.
fn is_delta(world: &World, flight: &Flight) -> bool {
    matches!(decode(world, flight), Message::Rekey(rekey) if matches!(rekey.part, Some(Part::Delta(_))))
}

/// A path that nobody asked for.
fn pushed_path(world: &World, flight: &Flight) -> Option<PathMessage> {
    match decode(world, flight) {
        Message::Rekey(quiver_message::Rekey { part: Some(Part::Path(path)), .. }) => Some(path),
        _ => None,
    }
}

/// A path that answers a question.
fn answered_path(world: &World, flight: &Flight) -> Option<PathMessage> {
    match decode(world, flight) {
        Message::CatchUpReply(quiver_message::CatchUpReply { part: Some(Part::Path(path)), .. }) => {
            Some(path)
        }
        _ => None,
    }
}

/// How often an edge asked since `mark`.
fn questions(world: &World, edge: usize, mark: usize) -> usize {
    let sent = world.recorded[mark..].iter().filter(|flight| flight.from == Node::Edge(edge));
    sent.filter(|flight| matches!(decode(world, flight), Message::CatchUpRequest(_))).count()
}

/// Keeps from an edge what `hidden` picks, and puts it aside.
fn withhold(
    world: &mut World,
    edge: usize,
    hidden: impl Fn(&Message<S>) -> bool + 'static,
) -> std::rc::Rc<std::cell::RefCell<Vec<Flight>>> {
    let aside = std::rc::Rc::<std::cell::RefCell<Vec<Flight>>>::default();
    let (keep, deployment) = (aside.clone(), world.deployment.clone());
    world.tamper = Some(Box::new(move |flight| {
        let message = Message::<S>::decode(&deployment, &flight.bytes).unwrap();
        if flight.to == Node::Edge(edge) && hidden(&message) {
            keep.borrow_mut().push(flight);
            return vec![];
        }
        vec![flight]
    }));
    aside
}

/// Delivers what was put aside.
fn deliver(world: &mut World, flights: impl IntoIterator<Item = Flight>) {
    for flight in flights {
        world.inject(flight.from, flight.to, &flight.bytes);
    }
}
