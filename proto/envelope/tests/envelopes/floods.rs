//! Strangers that name unknown sessions, or request openings without end.

use std::time::Duration;

use quiver_abe::envelope::{EnvelopeHeader, Following, SessionId};
use quiver_envelope::{Envelope, EnvelopeMessage, OpeningRequest};
use quiver_message::Message;
use quiver_testbed::Packet;

use crate::authority::{last_envelope, opened, order, swarm};
use crate::world::{Node, S, World, decode};

/// A message of a session that there is not.
fn stray(world: &World, session: u8) -> Vec<u8> {
    let header = EnvelopeHeader::Following(Following { session: SessionId([session; 32]), number: 1 });
    encoded(world, Envelope { sealed: header.encode() })
}

fn encoded(world: &World, message: impl Into<EnvelopeMessage>) -> Vec<u8> {
    Message::<S>::from(message.into()).encode(&world.deployment)
}

/// The envelope or the request in a packet.
fn read(world: &World, packet: &Packet<Node>) -> Option<EnvelopeMessage> {
    decode(world, packet).extension().transpose().unwrap()
}

fn request(world: &World, session: [u8; 32]) -> Vec<u8> {
    encoded(world, OpeningRequest { session })
}

/// Openings that edge 0 asked the group for.
fn asked(world: &World) -> usize {
    let packets = world.recorded.iter().filter(|f| f.from == Node::Edge(0) && f.to == Node::Leader);
    packets.filter(|packet| matches!(read(world, packet), Some(EnvelopeMessage::OpeningRequest(_)))).count()
}

#[test]
fn sessions_that_nobody_began_neither_make_a_drone_flood_its_group_nor_shut_it_up() {
    let (mut world, authority) = swarm(31, &["scout"]);
    world.isolated.insert(Node::Edge(0));
    order(&mut world, &authority, "scout", b"zero");
    world.isolated.clear();
    for second in 0..100u8 {
        for of_it in [0, 100] {
            let stray = stray(&world, second + of_it);
            world.inject(Node::Leader, Node::Edge(0), &stray);
        }
        world.run_for(Duration::from_secs(1));
    }
    let questions = asked(&world);
    assert!((100..=109).contains(&questions), "eight at once and one a second, not {questions}");
    world.run_for(Duration::from_secs(3));
    order(&mut world, &authority, "scout", b"one");
    assert_eq!(asked(&world), questions + 1);
    assert_eq!(opened(&world, 0).len(), 2);
}

#[test]
fn who_hears_another_ask_waits_for_the_answer_but_only_once() {
    let (mut world, _) = swarm(32, &["scout"]);
    let (request, stray) = (request(&world, [7; 32]), stray(&world, 7));
    world.inject(Node::Leader, Node::Edge(0), &request);
    world.inject(Node::Leader, Node::Edge(0), &stray);
    world.run_for(Duration::from_millis(900));
    assert_eq!(asked(&world), 0);
    world.inject(Node::Leader, Node::Edge(0), &request);
    world.run_for(Duration::from_millis(200));
    world.inject(Node::Leader, Node::Edge(0), &stray);
    world.run_for(Duration::from_millis(100));
    assert_eq!(asked(&world), 1);
}

#[test]
fn openings_of_all_sessions_together_are_said_again_eight_at_once_and_one_a_second() {
    let (mut world, authority) = swarm(33, &["scout"]);
    let mut requests = Vec::new();
    for other in 0..8 {
        order(&mut world, &authority, &format!("scout or other{other}"), b"");
        let sealed = last_envelope(&world, Node::Leader);
        let at = sealed.windows(4).position(|window| window == b"QvE\x01").unwrap();
        let (header, _) = EnvelopeHeader::decode(&sealed[at..]).unwrap();
        requests.push(request(&world, header.session().0));
    }
    let said = |world: &World| {
        let packets = world.recorded.iter().filter(|f| f.from == Node::Leader && f.to == Node::Edge(0));
        packets.filter(|packet| matches!(read(world, packet), Some(EnvelopeMessage::Envelope(_)))).count()
    };
    world.run_for(Duration::from_secs(20));
    let mut repeated = Vec::new();
    for _ in 0..4 {
        let before = said(&world);
        for request in &requests {
            world.inject(Node::Edge(0), Node::Leader, request);
        }
        world.run_for(Duration::from_secs(1));
        repeated.push(said(&world) - before);
    }
    assert_eq!(repeated[0], 8);
    assert!(repeated[1..].iter().all(|count| *count <= 1), "{repeated:?}");
    assert!(repeated.iter().sum::<usize>() >= 10, "{repeated:?}");
}
