//! `strict-paper` works, is a world of its own, and has the weaknesses it is there to show.

use quiver_ainq::{Error, Header, Ristretto255, StrictPaper, Suite};

use crate::adversary::Adversary;
use crate::swarm::Swarm;

type Strict = StrictPaper<Ristretto255>;

fn history<S: Suite>() -> Swarm<S> {
    let mut swarm = Swarm::<S>::formed(91, 2);
    swarm.expire();
    swarm.add_edge();
    swarm.join(&[2]);
    swarm.expire();
    assert!((0..3).all(|index| swarm.agrees(index)));
    swarm
}

#[test]
fn members_agree_and_one_point_serves_a_term() {
    let mut swarm = history::<Strict>();
    let points: Vec<_> = swarm.broadcasts.iter().filter_map(|epoch| epoch.header.core.point).collect();
    assert_eq!(points.len(), 2);
    assert_eq!(points[0], points[1]);
    let opened = swarm.open(&[0, 1, 2]);
    assert!((0..3).all(|index| swarm.agrees(index)));
    assert_ne!(opened.header.core.point, Some(points[0]));
    let standard = history::<Ristretto255>();
    let points: Vec<_> = standard.broadcasts.iter().filter_map(|epoch| epoch.header.core.point).collect();
    assert_ne!(points[0], points[1]);
}

#[test]
fn it_has_its_own_suite_id_and_nothing_crosses_over() {
    assert_eq!(Strict::ID, "QUIVER-AINQ-RISTRETTO255-SHA512-v1-strict-paper");
    let (strict, standard) = (history::<Strict>(), history::<Ristretto255>());
    let bytes = strict.last().header.encode(&strict.deployment);
    assert_eq!(Header::decode(&bytes, &standard.deployment).unwrap_err(), Error::WrongSuite);
    let state = strict.edges[0].membership.as_ref().unwrap().encode();
    assert_eq!(quiver_ainq::Membership::<Ristretto255>::restore(&state).unwrap_err(), Error::WrongSuite);
}

#[test]
fn what_the_paper_leaves_open_is_open_here_and_closed_in_the_protocol() {
    fn opened<S: Suite>(take: impl Fn(&mut Adversary<S>, &Swarm<S>)) -> usize {
        let swarm = history::<S>();
        let mut adversary = Adversary::outside(&swarm);
        take(&mut adversary, &swarm);
        let all = &swarm.broadcasts;
        all.iter().filter(|epoch| adversary.opens(epoch, all)).count()
    }
    fn stolen_y<S: Suite>(adversary: &mut Adversary<S>, swarm: &Swarm<S>) {
        adversary.takes_scalars(&[swarm.edges[0].keypair.to_bytes().to_vec()]);
    }
    fn captured<S: Suite>(adversary: &mut Adversary<S>, swarm: &Swarm<S>) {
        adversary.captures(&swarm.edges[0]);
    }
    // Four epochs had the drone as a member.
    assert_eq!((opened::<Strict>(stolen_y), opened::<Ristretto255>(stolen_y)), (4, 0));
    assert_eq!((opened::<Strict>(captured), opened::<Ristretto255>(captured)), (4, 0));
}
