//! Messages to the group.

use std::time::Duration;

use quiver_machine::Route;
use quiver_net::{Rate, Transport};
use tokio::time::{Instant, sleep, timeout};

use crate::toy::{Order, PATIENCE, Running, ToyEvent, hub, pair, spoke, start, until};

async fn star(transport: Transport, spokes: usize) -> (Running, Vec<Running>) {
    let mut leader = start(&hub(transport, spokes)).unwrap();
    let address = leader.address().await;
    let mut edges: Vec<_> = (0..spokes).map(|_| start(&spoke(transport, &address)).unwrap()).collect();
    for edge in &mut edges {
        edge.connects(Route::Leader).await;
        leader.connects(Route::Inbound).await;
    }
    everybody_listens(&mut leader, &mut edges).await;
    (leader, edges)
}

/// Subscriptions travel right after the connection; a first message tells when all are known.
async fn everybody_listens(leader: &mut Running, edges: &mut [Running]) {
    let mut waiting: Vec<_> = edges.iter_mut().collect();
    let mut waited = Duration::ZERO;
    while !waiting.is_empty() && waited < PATIENCE {
        leader.order(Order::Shout(b"anybody there?".to_vec())).await;
        sleep(Duration::from_millis(100)).await;
        waited += Duration::from_millis(100);
        waiting.retain_mut(|edge| edge.events().is_empty());
    }
    assert!(waiting.is_empty(), "{} never listened", waiting.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_message_of_the_hub_and_of_a_spoke_reaches_all_200_spokes() {
    let (mut leader, mut edges) = star(Transport::Memory, 200).await;
    leader.order(Order::Shout(b"from the hub".to_vec())).await;
    for edge in &mut edges {
        edge.receives_message(b"from the hub").await;
    }
    let mut speaker = edges.pop().unwrap();
    speaker.order(Order::Shout(b"from a spoke".to_vec())).await;
    leader.receives_message(b"from a spoke").await;
    for edge in &mut edges {
        edge.receives_message(b"from a spoke").await;
    }
    sleep(Duration::from_millis(200)).await;
    let echo = speaker
        .events()
        .into_iter()
        .any(|event| matches!(event, ToyEvent::Message(_, bytes) if bytes == b"from a spoke"));
    assert!(!echo, "a speaker does not hear itself");
    for edge in &mut edges {
        let again = edge.events().into_iter().filter(|event| matches!(event, ToyEvent::Message(..))).count();
        assert_eq!(again, 0, "nobody receives a message twice");
    }
}

#[tokio::test]
async fn same_group_message_can_be_said_twice() {
    let (mut leader, mut edges) = star(Transport::Tcp, 2).await;
    for _ in 0..2 {
        leader.order(Order::Shout(b"again".to_vec())).await;
        for edge in &mut edges {
            edge.receives_message(b"again").await;
        }
    }
    edges[0].order(Order::Shout(b"and I".to_vec())).await;
    edges[0].order(Order::Shout(b"and I".to_vec())).await;
    leader.receives_message(b"and I").await;
    leader.receives_message(b"and I").await;
    edges[1].receives_message(b"and I").await;
    edges[1].receives_message(b"and I").await;
}

#[tokio::test]
async fn spoke_of_two_hubs_relays_nothing_between_them() {
    let mut one = start(&hub(Transport::Memory, 4)).unwrap();
    let mut two = start(&hub(Transport::Memory, 4)).unwrap();
    let mut config = spoke(Transport::Memory, &one.address().await);
    config.dial.push((Route::Leader, two.address().await));
    let mut edge = start(&config).unwrap();
    edge.connects(Route::Leader).await;
    edge.connects(Route::Leader).await;
    let both_hear = async {
        let mut deaf: Vec<_> = [&mut one, &mut two].into();
        while !deaf.is_empty() {
            edge.order(Order::Shout(b"to both".to_vec())).await;
            sleep(Duration::from_millis(100)).await;
            let is_it = |event: ToyEvent| matches!(event, ToyEvent::Message(_, bytes) if bytes == b"to both");
            deaf.retain_mut(|hub| !hub.events().into_iter().any(is_it));
        }
    };
    timeout(PATIENCE, both_hear).await.expect("both hear it");
    one.order(Order::Shout(b"from one".to_vec())).await;
    edge.receives_message(b"from one").await;
    sleep(Duration::from_millis(300)).await;
    let leaked = two
        .events()
        .into_iter()
        .any(|event| matches!(event, ToyEvent::Message(_, bytes) if bytes == b"from one"));
    assert!(!leaked);
}

#[tokio::test]
async fn hub_relays_for_each_member_within_its_rate() {
    let mut config = hub(Transport::Memory, 4);
    config.limits.group_rate = Rate { messages: 1, bytes: 1 << 16, burst: 5 };
    let mut leader = start(&config).unwrap();
    let address = leader.address().await;
    let mut loud = start(&spoke(Transport::Memory, &address)).unwrap();
    let mut quiet = start(&spoke(Transport::Memory, &address)).unwrap();
    loud.connects(Route::Leader).await;
    quiet.connects(Route::Leader).await;
    let mut edges = [loud, quiet];
    everybody_listens(&mut leader, &mut edges).await;
    let [loud, mut quiet] = edges;
    let begun = Instant::now();
    for number in 0..30_u8 {
        loud.order(Order::Shout(vec![b'n', number])).await;
    }
    let passed = |events: Vec<ToyEvent>| {
        events
            .iter()
            .filter(|event| matches!(event, ToyEvent::Message(_, bytes) if bytes.first() == Some(&b'n')))
            .count()
    };
    let (mut relayed, mut delivered) = (0, 0);
    let all = async {
        loop {
            relayed += passed(quiet.events());
            delivered += passed(leader.events());
            let throttled = leader.handle.metrics().group_throttled.get() as usize;
            if relayed + throttled == 30 && delivered == relayed {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, all).await.expect("each message is relayed to both or throttled");
    let refilled = usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!((5..=7 + refilled).contains(&relayed), "{relayed}");
    quiet.order(Order::Shout(b"me too".to_vec())).await;
    leader.receives_message(b"me too").await;
}

#[tokio::test]
async fn bytes_of_group_messages_are_counted_once_for_each_recipient() {
    let (leader, mut edges) = star(Transport::Memory, 3).await;
    let before = leader.handle.metrics().bytes_sent.get();
    leader.order(Order::Shout(vec![1; 1000])).await;
    for edge in &mut edges {
        edge.receives_message(&[1; 1000]).await;
    }
    assert_eq!(leader.handle.metrics().bytes_sent.get() - before, 3000);
}

#[tokio::test]
async fn group_message_without_listeners_is_no_error() {
    let (leader, mut edge) = pair(Transport::Memory).await;
    let mut alone = start(&hub(Transport::Memory, 4)).unwrap();
    alone.order(Order::Shout(b"anybody?".to_vec())).await;
    alone.order(Order::Alarm(Duration::from_millis(5))).await;
    alone.receives("the alarm", |event| (*event == ToyEvent::Alarm).then_some(())).await;
    leader.order(Order::TellAll(b"still here".to_vec())).await;
    edge.receives_message(b"still here").await;
}

/// Two spokes, the first of which the hub's machine does not know.
async fn stranger_and_member(transport: Transport) -> (Running, Running, Running) {
    let (mut leader, mut edges) = star(transport, 2).await;
    let (member, stranger) = (edges.pop().unwrap(), edges.pop().unwrap());
    stranger.order(Order::Tell(Route::Leader, b"do not know me".to_vec())).await;
    leader.receives_message(b"do not know me").await;
    (leader, stranger, member)
}

#[tokio::test]
async fn group_messages_of_a_stranger_are_neither_relayed_nor_taken() {
    let (mut leader, stranger, mut member) = stranger_and_member(Transport::Tcp).await;
    let relayed = leader.handle.metrics().group_relayed.get();
    for number in 0..20_u8 {
        stranger.order(Order::Shout(vec![b's', number])).await;
    }
    let ignored = leader.handle.metrics().group_ignored.clone();
    until("all are ignored", || ignored.get() >= 20).await;
    sleep(Duration::from_millis(500)).await;
    let strange = |events: Vec<ToyEvent>| {
        let strange =
            |event: &&ToyEvent| matches!(event, ToyEvent::Message(_, bytes) if bytes.first() == Some(&b's'));
        events.iter().filter(strange).count()
    };
    assert_eq!((strange(leader.events()), strange(member.events())), (0, 0));
    assert_eq!(leader.handle.metrics().group_relayed.get(), relayed);
    assert_eq!(ignored.get(), 20);
    // It still listens, and members are still heard by it.
    let mut stranger = stranger;
    member.order(Order::Shout(b"a member".to_vec())).await;
    leader.receives_message(b"a member").await;
    stranger.receives_message(b"a member").await;
}
