//! The KGCs of a quorum know one another by their transport identities.

use quiver_machine::Route;
use quiver_net::{NodeConfig, Transport};

use crate::toy::{Order, ToyEvent, key, listen_address, random_key, spoke, start};

fn listener(seed: u8, transport: Transport) -> NodeConfig {
    let mut config = NodeConfig::registry(key(seed), transport, 4);
    config.listen.push(listen_address(transport));
    config
}

pub(crate) async fn members_know_each_other_whoever_dialled(transport: Transport) {
    let mut second = listener(2, transport);
    second.members.push((1, key(1).peer_id()));
    let mut second = start(&second).unwrap();
    let mut first = NodeConfig::registry(key(1), transport, 4);
    first.members.push((2, key(2).peer_id()));
    first.dial.push((Route::Member(2), second.address().await));
    let mut first = start(&first).unwrap();
    first.connects(Route::Member(2)).await;
    second.connects(Route::Member(1)).await;
    second.order(Order::Tell(Route::Member(1), b"well met".to_vec())).await;
    first.receives_message(b"well met").await;
}

#[tokio::test]
async fn members_know_each_other_whoever_dialled_over_tcp() {
    members_know_each_other_whoever_dialled(Transport::Tcp).await;
}

#[tokio::test]
async fn stranger_is_no_member_even_at_a_members_address() {
    let stranger = start(&listener(9, Transport::Tcp)).unwrap();
    let mut member = listener(1, Transport::Tcp);
    member.members.push((2, key(2).peer_id()));
    member.dial.push((Route::Member(2), stranger.address().await));
    let mut member = start(&member).unwrap();
    member.connects(Route::Inbound).await;
    let pretending = start(&spoke(Transport::Tcp, &member.address().await)).unwrap();
    member.connects(Route::Inbound).await;
    drop(pretending);
    let routes =
        member.events().into_iter().filter(|heard| matches!(heard, ToyEvent::Connected(_, Route::Member(_))));
    assert_eq!(routes.count(), 0);
}

#[tokio::test]
async fn crowd_of_strangers_keeps_no_member_out() {
    let mut config = listener(1, Transport::Tcp);
    config.limits.inbound = 1;
    config.members.push((2, key(2).peer_id()));
    let mut full = start(&config).unwrap();
    let address = full.address().await;
    let _stranger = start(&spoke(Transport::Tcp, &address)).unwrap();
    full.connects(Route::Inbound).await;
    let mut late = NodeConfig::spoke(random_key(), Transport::Tcp);
    late.dial.push((Route::Kgc, address.clone()));
    let late = start(&late).unwrap();
    let mut member = NodeConfig::registry(key(2), Transport::Tcp, 4);
    member.members.push((1, key(1).peer_id()));
    member.dial.push((Route::Member(1), address));
    let mut member = start(&member).unwrap();
    member.connects(Route::Member(1)).await;
    full.connects(Route::Member(2)).await;
    let kept_out = full.events().iter().all(|heard| !matches!(heard, ToyEvent::Connected(_, Route::Inbound)));
    assert!(kept_out, "the second stranger found no room");
    drop(late);
}
