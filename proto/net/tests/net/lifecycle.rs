//! Starting, failing, coming back, stopping.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quiver_machine::Route;
use quiver_net::{NetError, NodeConfig, Stopped, Transport};
use tokio::time::sleep;

use crate::toy::{Order, ToyEvent, hub, key, pair, spoke, start, until};

async fn spokes_come_back_after_the_hub_restarts(transport: Transport) {
    let mut config = hub(transport, 4);
    let mut leader = start(&config).unwrap();
    let address = leader.address().await;
    let mut edge = start(&spoke(transport, &address)).unwrap();
    let before = edge.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    leader.kill().await;
    assert_eq!(edge.disconnects().await, before);
    config.listen = vec![address];
    let mut leader = start(&config).unwrap();
    let after = edge.connects(Route::Leader).await;
    assert_ne!(before, after, "handles are not reused");
    let told = edge.connections.lock().unwrap().clone();
    let connected = |peer| ToyEvent::Connected(peer, Route::Leader);
    assert_eq!(told, [connected(before), ToyEvent::Disconnected(before), connected(after)]);
    leader.connects(Route::Inbound).await;
    edge.order(Order::Tell(Route::Leader, b"still there?".to_vec())).await;
    leader.receives_message(b"still there?").await;
}

#[tokio::test]
async fn spokes_come_back_after_the_hub_restarts_over_memory() {
    spokes_come_back_after_the_hub_restarts(Transport::Memory).await;
}

#[tokio::test]
async fn spokes_come_back_after_the_hub_restarts_over_tcp() {
    spokes_come_back_after_the_hub_restarts(Transport::Tcp).await;
}

#[tokio::test]
async fn spoke_that_starts_before_its_hub_finds_it() {
    let address = "/memory/771177".parse().unwrap();
    let mut edge = start(&spoke(Transport::Memory, &address)).unwrap();
    sleep(Duration::from_millis(300)).await;
    let mut config = hub(Transport::Memory, 4);
    config.listen = vec![address];
    let _leader = start(&config).unwrap();
    edge.connects(Route::Leader).await;
    assert!(edge.handle.metrics().dial_failures.get() > 0);
}

pub(crate) async fn busy_port_is_named(transport: Transport) {
    let leader = start(&hub(transport, 4)).unwrap();
    let address = leader.address().await;
    let mut config = hub(transport, 4);
    config.listen = vec![address.clone()];
    let error = start(&config).err().expect("the port is taken");
    assert!(matches!(error, NetError::AddressInUse { .. }), "{error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn busy_port_is_named_over_tcp() {
    busy_port_is_named(Transport::Tcp).await;
}

#[tokio::test]
async fn busy_port_is_named_over_memory() {
    busy_port_is_named(Transport::Memory).await;
}

#[tokio::test]
async fn address_of_another_transport_is_refused_with_an_example() {
    let mut config = NodeConfig::spoke(key(1), Transport::Quic);
    config.dial.push((Route::Leader, "/ip4/127.0.0.1/tcp/7000".parse().unwrap()));
    let message = start(&config).err().expect("refused").to_string();
    assert!(message.contains("quic-v1"), "{message}");
}

#[tokio::test]
async fn nothing_is_sent_until_it_is_persisted() {
    let (mut leader, mut edge) = pair(Transport::Memory).await;
    edge.disk.full.store(true, Ordering::SeqCst);
    edge.order(Order::Record(Route::Leader, b"precious".to_vec())).await;
    leader.order(Order::Tell(Route::Inbound, b"not now".to_vec())).await;
    let failures = edge.handle.metrics().persist_failures.clone();
    until("it tries again", || failures.get() >= 2).await;
    sleep(Duration::from_millis(500)).await;
    assert!(
        leader.events().iter().all(|event| !matches!(event, ToyEvent::Message(..))),
        "sent before it was stored"
    );
    assert!(
        edge.events().iter().all(|event| !matches!(event, ToyEvent::Message(..))),
        "took an input meanwhile"
    );
    assert_eq!(edge.handle.inspect(|toy| toy.peers.len()).await, Ok(1), "status is served meanwhile");
    edge.disk.full.store(false, Ordering::SeqCst);
    leader.receives_message(b"precious").await;
    edge.receives_message(b"not now").await;
    assert_eq!(*edge.disk.records.lock().unwrap(), [b"precious".to_vec()], "stored once");
}

#[tokio::test]
async fn node_that_cannot_persist_still_stops() {
    let (mut leader, edge) = pair(Transport::Memory).await;
    edge.disk.full.store(true, Ordering::SeqCst);
    edge.order(Order::Record(Route::Leader, b"precious".to_vec())).await;
    sleep(Duration::from_millis(100)).await;
    edge.stop().await;
    leader.disconnects().await;
    assert!(leader.events().iter().all(|event| !matches!(event, ToyEvent::Message(..))));
}

#[tokio::test]
async fn command_is_carried_out_when_its_records_are_durable_and_not_before() {
    let (_leader, edge) = pair(Transport::Memory).await;
    edge.disk.full.store(true, Ordering::SeqCst);
    let handle = edge.handle.clone();
    let carried_out = handle.carry_out(Order::Record(Route::Leader, b"precious".to_vec()));
    tokio::pin!(carried_out);
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut carried_out).await.is_err());
    assert_eq!(edge.handle.inspect(|toy| toy.peers.len()).await, Ok(1), "looks are answered meanwhile");
    edge.disk.full.store(false, Ordering::SeqCst);
    assert_eq!(carried_out.await, Ok(()));
    assert_eq!(*edge.disk.records.lock().unwrap(), [b"precious".to_vec()]);
    edge.stop().await;
    assert_eq!(handle.carry_out(Order::Shout(vec![])).await, Err(Stopped));
}

#[tokio::test]
async fn alarm_rings_when_the_machine_asked_for_it() {
    let mut node = start(&NodeConfig::spoke(key(1), Transport::Memory)).unwrap();
    let asked = tokio::time::Instant::now();
    node.order(Order::Alarm(Duration::from_millis(120))).await;
    node.receives("the alarm", |event| (*event == ToyEvent::Alarm).then_some(())).await;
    assert!(asked.elapsed() >= Duration::from_millis(120));
    let inputs = node.handle.inspect(|toy| toy.inputs).await.unwrap();
    assert!(inputs < 10, "the loop spins: {inputs} inputs");
}

#[tokio::test]
async fn last_words_are_sent_before_the_node_stops() {
    for _ in 0..10 {
        let (mut leader, edge) = pair(Transport::Tcp).await;
        sleep(Duration::from_millis(100)).await;
        edge.order(Order::Tell(Route::Leader, b"farewell".to_vec())).await;
        edge.order(Order::Shout(b"goodbye all".to_vec())).await;
        // Commands are taken before the shutdown is looked at only if the node ran in between.
        edge.handle.inspect(|_| ()).await.unwrap();
        let stopping = edge.handle.clone();
        edge.stop().await;
        leader.receives_message(b"farewell").await;
        assert_eq!(stopping.command(Order::Shout(vec![])).await, Err(Stopped));
    }
}

#[tokio::test]
async fn node_that_both_sides_dial_is_one_peer_with_the_better_route() {
    let mut one = hub(Transport::Memory, 4);
    one.listen = vec!["/memory/881188".parse().unwrap()];
    let mut two = hub(Transport::Memory, 4);
    two.listen = vec!["/memory/881189".parse().unwrap()];
    one.dial.push((Route::Leader, "/memory/881189".parse().unwrap()));
    two.dial.push((Route::Leader, "/memory/881188".parse().unwrap()));
    let mut one = start(&one).unwrap();
    let mut two = start(&two).unwrap();
    one.connects(Route::Leader).await;
    two.connects(Route::Leader).await;
    sleep(Duration::from_millis(200)).await;
    for node in [&one, &two] {
        let peers = node.handle.inspect(|toy| toy.peers.clone()).await.unwrap();
        assert_eq!(peers.len(), 1, "{peers:?}");
        assert_eq!(peers[0].1, Route::Leader);
    }
    one.order(Order::Tell(Route::Leader, b"ask".to_vec())).await;
    two.receives_message(b"ask").await;
    one.receives_message(b"answer").await;
}

#[tokio::test]
async fn penalised_peer_is_cut_off_for_a_while_and_comes_back() {
    let (mut leader, mut edge) = pair(Transport::Tcp).await;
    edge.order(Order::Tell(Route::Leader, b"penalize me".to_vec())).await;
    leader.disconnects().await;
    edge.disconnects().await;
    let kind = quiver_net::Misconduct { kind: "forgery" };
    assert_eq!(leader.handle.metrics().penalties.get_or_create(&kind).get(), 1);
    // It dials on, in vain until the penalty is over.
    leader.connects(Route::Inbound).await;
    assert!(edge.handle.metrics().dials.get() > 2);
}

#[tokio::test]
async fn forgers_that_change_their_identity_spend_the_allowance_of_their_address() {
    let mut leader = start(&hub(Transport::Tcp, 10)).unwrap();
    let address = leader.address().await;
    let known = spoke(Transport::Tcp, &address);
    let mut drone = start(&known).unwrap();
    drone.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    let kind = quiver_net::Misconduct { kind: "forgery" };
    let (penalties, refused) = {
        let metrics = leader.handle.metrics();
        (metrics.penalties.get_or_create(&kind).clone(), metrics.connections_refused.clone())
    };
    for count in 1..=16 {
        assert_eq!(refused.get(), 0);
        let mut forger = start(&spoke(Transport::Tcp, &address)).unwrap();
        forger.connects(Route::Leader).await;
        forger.order(Order::Tell(Route::Leader, b"penalize me".to_vec())).await;
        forger.disconnects().await;
        assert_eq!(penalties.get(), count);
        forger.stop().await;
    }
    // Nobody new is admitted, whatever it would say.
    let _stranger = start(&spoke(Transport::Tcp, &address)).unwrap();
    until("a stranger from the address is refused", || refused.get() >= 3).await;
    assert_eq!(leader.handle.inspect(|toy| toy.peers.len()).await, Ok(1), "the drone, and nobody else");
    // A peer that has proven itself comes again from the same address.
    leader.events();
    drone.kill().await;
    leader.disconnects().await;
    let drone = start(&known).unwrap();
    leader.connects(Route::Inbound).await;
    drone.order(Order::Tell(Route::Leader, b"here I am".to_vec())).await;
    leader.receives_message(b"here I am").await;
    assert_eq!(leader.handle.inspect(|toy| toy.peers.len()).await, Ok(1));
    assert_eq!(penalties.get(), 16);
}

#[tokio::test]
async fn connections_without_an_address_spend_no_allowance() {
    let leader = start(&hub(Transport::Memory, 10)).unwrap();
    let address = leader.address().await;
    for _ in 0..20 {
        let mut forger = start(&spoke(Transport::Memory, &address)).unwrap();
        forger.connects(Route::Leader).await;
        forger.order(Order::Tell(Route::Leader, b"penalize me".to_vec())).await;
        forger.disconnects().await;
        forger.stop().await;
    }
    let mut stranger = start(&spoke(Transport::Memory, &address)).unwrap();
    stranger.connects(Route::Leader).await;
    assert_eq!(leader.handle.metrics().connections_refused.get(), 0);
}

#[tokio::test]
async fn who_was_dialled_is_not_penalised() {
    let (mut leader, mut edge) = pair(Transport::Tcp).await;
    leader.order(Order::TellAll(b"penalize me".to_vec())).await;
    edge.receives_message(b"penalize me").await;
    edge.order(Order::Tell(Route::Leader, b"still here".to_vec())).await;
    leader.receives_message(b"still here").await;
    assert_eq!(edge.handle.metrics().connections_closed.get(), 0);
}
