//! Drones that come back while their old connection still seems to be there.

use std::net::SocketAddr;
use std::time::Duration;

use quiver_machine::Route;
use quiver_net::{Multiaddr, NodeConfig, Transport};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::toy::{Order, PATIENCE, Running, ToyEvent, hub, key, spoke, start, until};

/// Time that a message may take; a sign of life has a quarter of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(12);

/// A line to a node. Once it is cut it carries nothing, and neither end is told.
struct Line {
    address: Multiaddr,
    cut: watch::Sender<bool>,
}

impl Line {
    async fn to(node: &Multiaddr) -> Self {
        let port = node.to_string().rsplit('/').next().unwrap().parse().unwrap();
        let node = SocketAddr::from(([127, 0, 0, 1], port));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, is_cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut is_cut = is_cut.clone();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(node).await.unwrap();
                    let cut = async { is_cut.wait_for(|is_cut| *is_cut).await.is_ok() };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        true = cut => std::future::pending().await,
                        else => {}
                    }
                });
            }
        });
        Self { address: format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap(), cut }
    }
}

fn leader() -> NodeConfig {
    NodeConfig { request_timeout: REQUEST_TIMEOUT, ..hub(Transport::Tcp, 4) }
}

/// A drone that is always the same.
fn drone(leader: &Multiaddr) -> NodeConfig {
    NodeConfig { key: key(77), ..spoke(Transport::Tcp, leader) }
}

fn closed(node: &Running) -> u64 {
    node.handle.metrics().connections_superseded.get()
}

#[tokio::test]
async fn drone_that_comes_back_gets_all_messages_long_before_a_ping_ends_its_old_connection() {
    let mut leader = start(&leader()).unwrap();
    let address = leader.address().await;
    let line = Line::to(&address).await;
    let mut before = start(&drone(&line.address)).unwrap();
    before.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    before.order(Order::Tell(Route::Leader, b"hello".to_vec())).await;
    leader.receives_message(b"hello").await;
    line.cut.send(true).unwrap();
    before.kill().await;
    let mut drone = start(&drone(&address)).unwrap();
    drone.connects(Route::Leader).await;
    drone.order(Order::Tell(Route::Leader, b"back".to_vec())).await;
    leader.receives_message(b"back").await;
    let gone = async {
        while closed(&leader) == 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(REQUEST_TIMEOUT, gone)
        .await
        .expect("the dead connection is closed before a message expires there");
    for number in 0..4 {
        leader.order(Order::Tell(Route::Inbound, vec![number])).await;
        drone.receives_message(&[number]).await;
    }
    // The leader's subscriptions may have gone down the dead line.
    drone.order(Order::Shout(b"to all".to_vec())).await;
    let heard = async {
        while !leader
            .events()
            .iter()
            .any(|event| matches!(event, ToyEvent::Message(_, bytes) if bytes == b"to all"))
        {
            drone.order(Order::Shout(b"to all".to_vec())).await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, heard).await.expect("its messages to the group arrive");
    assert_eq!(closed(&leader), 1, "and no other");
}

#[tokio::test]
async fn drone_that_answers_over_two_connections_keeps_both() {
    let mut leader = start(&leader()).unwrap();
    let address = leader.address().await;
    let line = Line::to(&address).await;
    let mut config = drone(&address);
    config.dial.push((Route::Leader, line.address.clone()));
    let mut drone = start(&config).unwrap();
    drone.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    until("two connections", || leader.handle.metrics().connections_opened.get() == 2).await;
    sleep(REQUEST_TIMEOUT / 4 + Duration::from_millis(500)).await;
    let metrics = leader.handle.metrics();
    assert_eq!(
        (closed(&leader), metrics.connections_closed.get(), metrics.connections_opened.get()),
        (0, 0, 2)
    );
}
