//! Support of tests of trees on links and on a shared medium: members' questions, and wraps that change on
//! their way.

use quiver_ainq::{Delta, EpochPart};
use quiver_message::{Message, Rekey, ShortRekey};

use crate::world::{Node, S, World, decode};

/// Number of an edge's questions since `mark`.
pub(crate) fn questions(world: &World, edge: usize, mark: usize) -> usize {
    let sent = world.recorded[mark..].iter().filter(|packet| packet.from == Node::Edge(edge));
    sent.filter(|packet| matches!(decode(world, packet), Message::CatchUpRequest(_))).count()
}

/// Wraps with another last bit.
fn changed(wraps: &Delta) -> Delta {
    let mut bytes = wraps.encode();
    *bytes.last_mut().unwrap() ^= 1;
    Delta::decode(&bytes).unwrap()
}

/// Changes the last bit of all wraps on their way to an edge, from now on.
pub(crate) fn change_wraps(world: &mut World, edge: usize) {
    let deployment = world.deployment.clone();
    world.change_with(move |packet| {
        if packet.to != Node::Edge(edge) {
            return;
        }
        let message = match Message::<S>::decode(&deployment, &packet.bytes) {
            Ok(Message::Rekey(Rekey { header, part: Some(EpochPart::Delta(delta)), .. })) => {
                Message::Rekey(Rekey::new(header, Some(EpochPart::Delta(changed(&delta)))))
            }
            Ok(Message::ShortRekey(ShortRekey { header, wraps })) => {
                Message::ShortRekey(ShortRekey { header, wraps: changed(&wraps) })
            }
            _ => return,
        };
        packet.bytes = message.encode(&deployment);
    });
}
