//! Messages to single peers.

use quiver_machine::{MAX_MESSAGE_LEN, Route};
use quiver_net::Transport;

use crate::toy::{Order, pair};

pub(crate) async fn messages_travel_both_ways(transport: Transport) {
    let (mut leader, mut edge) = pair(transport).await;
    edge.order(Order::Tell(Route::Leader, b"hello".to_vec())).await;
    leader.receives_message(b"hello").await;
    leader.order(Order::Tell(Route::Inbound, b"welcome".to_vec())).await;
    edge.receives_message(b"welcome").await;
    edge.stop().await;
    leader.disconnects().await;
    leader.stop().await;
}

#[tokio::test]
async fn messages_travel_both_ways_over_memory() {
    messages_travel_both_ways(Transport::Memory).await;
}

#[tokio::test]
async fn messages_travel_both_ways_over_plain_memory() {
    messages_travel_both_ways(Transport::PlainMemory).await;
}

#[tokio::test]
async fn messages_travel_both_ways_over_tcp() {
    messages_travel_both_ways(Transport::Tcp).await;
}

#[tokio::test]
async fn answer_rides_on_the_response() {
    let (mut leader, mut edge) = pair(Transport::Memory).await;
    edge.order(Order::Tell(Route::Leader, b"ask the way".to_vec())).await;
    let from = leader.receives_message(b"ask the way").await;
    edge.receives_message(b"answer the way").await;
    // The leader opened no stream of its own: had it, the edge's answer would have ended that stream's
    // request.
    assert_eq!(leader.handle.metrics().messages_sent.get(), 1);
    assert_eq!(edge.handle.metrics().messages_received.get(), 1);
    assert_eq!(leader.handle.inspect(|toy| toy.peers.clone()).await.unwrap(), [(from, Route::Inbound)]);
}

#[tokio::test]
async fn messages_to_one_peer_keep_their_order() {
    let (leader, mut edge) = pair(Transport::Tcp).await;
    for number in 0..50_u8 {
        leader.order(Order::TellAll(vec![number])).await;
    }
    let mut expected = 0;
    while expected < 50 {
        let number = edge
            .receives("a number", |event| match event {
                crate::toy::ToyEvent::Message(_, bytes) => bytes.first().copied(),
                _ => None,
            })
            .await;
        assert_eq!(number, expected);
        expected += 1;
    }
}

pub(crate) async fn longest_message_passes_and_longer_is_never_sent(transport: Transport) {
    let (mut leader, edge) = pair(transport).await;
    let longest = vec![7; MAX_MESSAGE_LEN];
    edge.order(Order::Tell(Route::Leader, vec![7; MAX_MESSAGE_LEN + 1])).await;
    edge.order(Order::Tell(Route::Leader, longest.clone())).await;
    leader.receives_message(&longest).await;
    assert_eq!(leader.handle.metrics().messages_received.get(), 1);
    assert_eq!(edge.handle.metrics().dropped.get(), 1);
}

#[tokio::test]
async fn longest_message_passes_and_longer_is_never_sent_over_tcp() {
    longest_message_passes_and_longer_is_never_sent(Transport::Tcp).await;
}

#[tokio::test]
async fn queue_to_a_peer_is_bounded() {
    let mut config = crate::toy::hub(Transport::Memory, 10);
    config.limits.queued = 4;
    let mut leader = crate::toy::start(&config).unwrap();
    let mut edge = crate::toy::start(&crate::toy::spoke(Transport::Memory, &leader.address().await)).unwrap();
    edge.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    // Commands of one batch are carried out before the network moves again.
    let burst: Vec<_> = (0..12_u8).map(|number| Order::TellAll(vec![number])).collect();
    for order in burst {
        leader.handle.try_command(order).unwrap();
    }
    edge.receives_message(&[11]).await;
    let metrics = leader.handle.metrics();
    assert_eq!(metrics.messages_sent.get() + metrics.dropped.get(), 12);
    assert!(metrics.dropped.get() > 0, "the oldest gave way");
}
