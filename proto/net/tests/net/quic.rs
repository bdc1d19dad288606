//! The same over QUIC, in a build that has it.

use quiver_machine::MAX_MESSAGE_LEN;
use quiver_net::Transport;

use crate::duplicate_identity::{asking, has_duplicate};
use crate::lifecycle::busy_port_is_named;
use crate::members::members_know_each_other_whoever_dialled;
use crate::messages::{longest_message_passes_and_longer_is_never_sent, messages_travel_both_ways};
use crate::toy::{Order, hub, pair, spoke, start, until};

#[tokio::test]
async fn two_of_one_identity_are_told_over_quic() {
    let leader = start(&asking(hub(Transport::Quic, 10))).unwrap();
    let config = asking(spoke(Transport::Quic, &leader.address().await));
    let (first, second) = (start(&config).unwrap(), start(&config).unwrap());
    until("both are told", || has_duplicate(&first) && has_duplicate(&second)).await;
}

#[tokio::test]
async fn busy_port_is_named_over_quic() {
    busy_port_is_named(Transport::Quic).await;
}

#[tokio::test]
async fn members_know_each_other_whoever_dialled_over_quic() {
    members_know_each_other_whoever_dialled(Transport::Quic).await;
}

#[tokio::test]
async fn messages_travel_both_ways_over_quic() {
    messages_travel_both_ways(Transport::Quic).await;
}

#[tokio::test]
async fn messages_travel_both_ways_over_tcp_beside_quic() {
    messages_travel_both_ways(Transport::TcpAndQuic).await;
}

#[tokio::test]
async fn longest_message_passes_and_longer_is_never_sent_over_quic() {
    longest_message_passes_and_longer_is_never_sent(Transport::Quic).await;
}

#[tokio::test]
async fn windows_of_a_quic_connection_are_granted_again_as_messages_are_read() {
    let (leader, mut edge) = pair(Transport::Quic).await;
    // More than a connection may have unread.
    for number in 0..6 {
        leader.order(Order::TellAll(vec![number; MAX_MESSAGE_LEN])).await;
        edge.receives_message(&vec![number; MAX_MESSAGE_LEN]).await;
    }
}
