//! Two processes of one identity, and what strangers make of the question whether there are.

use futures::StreamExt;
use libp2p::request_response::{self, Message};
use libp2p::swarm::SwarmEvent;
use quiver_machine::Route;
use quiver_net::{NodeConfig, Transport};
use tokio::time::{Duration, sleep, timeout};

use crate::hostile::hostile_node;
use crate::toy::{Order, PATIENCE, Running, hub, key, spoke, start, until};

const PROTOCOL: &str = "/quiver/1/instance";

pub(crate) fn asking(mut config: NodeConfig) -> NodeConfig {
    config.detect_duplicates = true;
    config
}

pub(crate) fn has_duplicate(node: &Running) -> bool {
    let told = node.handle.duplicate_identity().is_some_and(|text| text.contains("both asked the leader"));
    assert_eq!(told, node.handle.metrics().duplicate_identity_reports.get() == 1);
    told
}

#[tokio::test]
async fn two_of_one_identity_are_told_until_one_ends() {
    let leader = start(&asking(hub(Transport::Tcp, 10))).unwrap();
    let address = leader.address().await;
    let mut config = asking(spoke(Transport::Tcp, &address));
    let (first, second) = (start(&config).unwrap(), start(&config).unwrap());
    config.key = key(9);
    let other = start(&config).unwrap();
    until("both are told", || has_duplicate(&first) && has_duplicate(&second)).await;
    assert_eq!(
        leader.handle.metrics().duplicated_peers.get(),
        0,
        "a stranger's duplicates count for nothing"
    );
    first.order(Order::Tell(Route::Leader, b"i am edge-1".to_vec())).await;
    until("the leader knows who it is", || leader.handle.metrics().duplicated_peers.get() == 1).await;
    assert!(!has_duplicate(&other) && !has_duplicate(&leader));
    second.kill().await;
    // Two that ask in turns are told so for 15 s after the last time, and it may be asked five seconds later.
    until("the other is told that it is alone", || !has_duplicate(&first)).await;
    until("the leader knows that, too", || leader.handle.metrics().duplicated_peers.get() == 0).await;
    assert!(!has_duplicate(&other));
}

#[tokio::test]
async fn member_that_runs_twice_is_told_by_the_others_and_named_by_its_number() {
    let mut second = asking(hub(Transport::Tcp, 4));
    second.members.push((1, key(1).peer_id()));
    let pinned = second.key.peer_id();
    let second = start(&second).unwrap();
    let mut first = asking(NodeConfig::registry(key(1), Transport::Tcp, 4));
    first.members.push((2, pinned));
    first.dial.push((Route::Member(2), second.address().await));
    let (first, copy) = (start(&first).unwrap(), start(&first).unwrap());
    let told = |node: &Running| {
        node.handle.duplicate_identity().is_some_and(|text| text.contains("both asked KGC 2; end the copy"))
    };
    until("both are told", || told(&first) && told(&copy)).await;
    assert_eq!(second.handle.metrics().duplicated_peers.get(), 1);
    assert_eq!(second.handle.duplicate_identity(), None);
}

#[tokio::test]
async fn node_that_is_started_again_and_again_has_no_duplicate() {
    let mut leader = start(&asking(hub(Transport::Tcp, 10))).unwrap();
    let config = asking(spoke(Transport::Tcp, &leader.address().await));
    for _ in 0..2 {
        let mut edge = start(&config).unwrap();
        edge.connects(Route::Leader).await;
        edge.order(Order::Tell(Route::Leader, b"i am edge-1".to_vec())).await;
        leader.receives_message(b"i am edge-1").await;
        // It has asked twice.
        sleep(Duration::from_secs(7)).await;
        assert!(!has_duplicate(&edge));
        assert_eq!(leader.handle.metrics().duplicated_peers.get(), 0);
        edge.kill().await;
    }
}

/// A successor connects before the leader has noticed that the first process is gone.
#[tokio::test]
async fn node_that_comes_before_its_predecessor_is_seen_to_be_gone_has_no_duplicate() {
    let leader = start(&asking(hub(Transport::Tcp, 10))).unwrap();
    let config = asking(spoke(Transport::Tcp, &leader.address().await));
    let mut first = start(&config).unwrap();
    first.connects(Route::Leader).await;
    // It has asked twice, and asks again only after a minute.
    sleep(Duration::from_secs(10)).await;
    let mut second = start(&config).unwrap();
    second.connects(Route::Leader).await;
    sleep(Duration::from_secs(2)).await;
    first.kill().await;
    sleep(Duration::from_secs(10)).await;
    assert!(!has_duplicate(&second));
}

#[tokio::test]
async fn node_that_does_not_know_the_question_raises_no_alarm() {
    let leader = start(&hub(Transport::Memory, 4)).unwrap();
    let config = asking(spoke(Transport::Memory, &leader.address().await));
    let (mut first, second) = (start(&config).unwrap(), start(&config).unwrap());
    first.connects(Route::Leader).await;
    sleep(Duration::from_secs(7)).await;
    assert!(!has_duplicate(&first) && !has_duplicate(&second));
    first.order(Order::Tell(Route::Leader, b"ask".to_vec())).await;
    first.receives_message(b"answer").await;
}

#[tokio::test]
async fn numbers_of_a_wrong_length_and_far_too_many_harm_nobody() {
    let mut leader = start(&asking(hub(Transport::Memory, 4))).unwrap();
    let address = leader.address().await;
    let mut edge = start(&asking(spoke(Transport::Memory, &address))).unwrap();
    edge.connects(Route::Leader).await;
    let mut stranger = hostile_node(PROTOCOL);
    stranger.dial(address).unwrap();
    let mut questions: Vec<Vec<u8>> = [0, 1, 15, 17, 1 << 20].map(|length| vec![7; length]).into();
    let wrong = questions.len();
    questions.extend((0..100).map(|number| vec![number % 10; 16]));
    questions.reverse();
    let (mut refused, mut answers, mut to) = (0, Vec::new(), None);
    while refused + answers.len() < wrong + 100 {
        match stranger.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, .. } => to = Some(peer_id),
            SwarmEvent::Behaviour(request_response::Event::Message {
                message: Message::Response { response, .. },
                ..
            }) if !response.is_empty() => answers.push(response),
            SwarmEvent::Behaviour(
                request_response::Event::OutboundFailure { .. } | request_response::Event::Message { .. },
            ) => refused += 1,
            _ => continue,
        }
        if let (Some(to), Some(question)) = (to, questions.pop()) {
            stranger.behaviour_mut().send_request(&to, question);
        }
    }
    assert_eq!(refused, wrong);
    assert!(answers.iter().all(|answer| matches!(answer[..], [0..=2])), "{answers:?}");
    edge.order(Order::Tell(Route::Leader, b"all well?".to_vec())).await;
    leader.receives_message(b"all well?").await;
    assert_eq!(leader.handle.metrics().duplicated_peers.get(), 0);
    assert!(!has_duplicate(&edge) && !has_duplicate(&leader));
}

#[tokio::test]
async fn answers_that_are_none_raise_no_alarm() {
    for (answer, alarm) in [(vec![], false), (vec![9], false), (vec![2, 0], false), (vec![2], true)] {
        let mut stranger = hostile_node(PROTOCOL);
        stranger.listen_on("/memory/0".parse().unwrap()).unwrap();
        let address = loop {
            if let SwarmEvent::NewListenAddr { address, .. } = stranger.select_next_some().await {
                break address;
            }
        };
        let edge = start(&asking(spoke(Transport::Memory, &address))).unwrap();
        let mut asked = 0;
        let serving = async {
            // The second question comes after the first answer was read.
            while asked < 2 {
                if let SwarmEvent::Behaviour(request_response::Event::Message {
                    message: Message::Request { channel, .. },
                    ..
                }) = stranger.select_next_some().await
                {
                    asked += 1;
                    stranger.behaviour_mut().send_response(channel, answer.clone()).unwrap();
                }
            }
        };
        timeout(PATIENCE, serving).await.expect("it asks");
        assert_eq!(has_duplicate(&edge), alarm, "{answer:?}");
    }
}
