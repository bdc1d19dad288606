//! Sizes of a tree's epochs, and their bounds.

use quiver_ainq::{Batch, Join, Leadership, Ristretto255, Roster, StrategyKind};

use crate::swarm::{Swarm, context_of, times};

#[test]
fn one_of_2000_leaves_with_one_broadcast_of_at_most_1200_bytes() {
    let mut swarm = Swarm::<Ristretto255>::keyed_by(StrategyKind::Tree, 117, 1);
    let one = &swarm.edges[0].keypair;
    let joins = (0..2000u32).map(|number| {
        let mut public = one.public().clone();
        public.identity.serial[..4].copy_from_slice(&number.to_be_bytes());
        Join::with_implicit(public, one.implicit(), *swarm.edges[0].spare.point()).unwrap()
    });
    let joins = Batch { joins: joins.collect(), ..Batch::default() };
    let rng = &mut swarm.rng;
    let output = swarm.leadership.rekey(&swarm.leader, joins, &times(), rng).unwrap();
    // There is no earlier member to tell, and next to nothing is said of newcomers among themselves.
    let told = output.wraps.unwrap().whole().as_bytes().len();
    assert!(told <= 30, "{told} bytes");
    let leave = Batch { removals: vec![700], ..Batch::default() };
    let output = swarm.leadership.rekey(&swarm.leader, leave, &times(), rng).unwrap();
    let header = output.header.encode(&swarm.deployment).len();
    let bytes = header + output.wraps.unwrap().whole().as_bytes().len();
    assert!(bytes <= 1200, "{bytes} bytes, of which {header} are the header's");
    let path = swarm.leadership.path_message(0, &[0; 16]).unwrap().encode();
    assert_eq!(path.len(), 4 + 16 + (11 + 1) * 32 + 16);
}

#[test]
fn any_number_of_members_is_removed_in_one_epoch() {
    let mut swarm = Swarm::<Ristretto255>::keyed_by(StrategyKind::Tree, 114, 0);
    let edge = swarm.enrol(quiver_ainq::Role::Edge).public().clone();
    let mut roster = Roster::new();
    for slot in 0..3000_u32 {
        let mut public = edge.clone();
        public.identity.serial[..4].copy_from_slice(&slot.to_be_bytes());
        roster.insert(slot, public).unwrap();
    }
    let (none, at) = (Default::default(), times());
    let context = context_of(&swarm.deployment, &swarm.leader);
    let (term, rng) = (2 << 16 | 1, &mut swarm.rng);
    let kind = StrategyKind::Tree;
    let (mut leadership, _) =
        Leadership::open_term(context, &swarm.leader, roster, &none, term, [0; 32], &at, kind, rng).unwrap();
    let batch = Batch { removals: (0..3000).step_by(2).collect(), ..Default::default() };
    let output = leadership.rekey(&swarm.leader, batch, &at, rng).unwrap();
    // The header has their digest: with a part of 66 bytes for each of 20 levels, 2 kB for any number.
    let header = output.header.encode(&swarm.deployment).len();
    assert!(header <= 2000 - (20 * 66 + 1), "{header} bytes of header");
    assert_eq!(
        (output.dropped.len(), leadership.epoch().counter, leadership.roster().len()),
        (1500, 2, 1500)
    );
}
