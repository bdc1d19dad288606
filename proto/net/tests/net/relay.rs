//! A relay of drones between a leader and strangers, over TCP.

use std::time::Duration;

use quiver_machine::{Machine, Route};
use quiver_net::{Driver, Handle, Host, HostError, NodeConfig, Transport};
use quiver_relay::{Relay, RelayLimits, RelayTiming, WithRelays};
use quiver_strangers::acts::nothing;
use quiver_strangers::{MESSAGES, Stranger};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::toy::{Order, PATIENCE, Toy, hub, key, spoke, start};

/// A host that keeps nothing.
struct Quiet;

impl<M: Machine> Host<M> for Quiet {
    fn persist(&mut self, _: &[M::Record]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &M, _: M::Event) {}
}

/// A node that runs until it is dropped.
struct Node<M: Machine> {
    handle: Handle<M>,
    task: JoinHandle<()>,
}

impl<M: Machine> Drop for Node<M> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn run<M>(config: &NodeConfig, machine: M) -> Node<M>
where
    M: Machine + Send + 'static,
    M::Command: Send,
    M::Event: Send,
    M::Record: Send,
{
    let (driver, handle) = Driver::new(config, machine, Quiet, ChaCha20Rng::from_seed([0; 32])).unwrap();
    let task = tokio::spawn(async move { driver.run(std::future::pending()).await.unwrap() });
    Node { handle, task }
}

/// Waits until it holds of a relay.
async fn until(relay: &Node<Relay>, holds: impl Fn(&Relay) -> bool + Copy + Send + 'static) {
    let holds = async {
        while !relay.handle.inspect(holds).await.unwrap() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, holds).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_strangers_keep_no_drone_out_of_a_relay() {
    const DRONES: usize = 4;
    let relay_key = key(9);
    let mut config = hub(Transport::Tcp, 10);
    config.relays.push(relay_key.peer_id());
    let leader = run(&config, WithRelays::new(Toy::cautious(), RelayLimits::default()));
    let at = leader.handle.listening().await.unwrap().remove(0);
    let mut config = NodeConfig { key: relay_key, ..hub(Transport::Tcp, DRONES) };
    config.dial.push((Route::Leader, at));
    let relay = run(&config, Relay::new(DRONES, RelayTiming::default()));
    until(&relay, Relay::has_leader).await;
    let at = relay.handle.listening().await.unwrap().remove(0);
    let config = spoke(Transport::Tcp, &at);
    let mut drone = start(&config).unwrap();
    drone.connects(Route::Leader).await;
    drone.order(Order::Tell(Route::Leader, b"i am a drone".to_vec())).await;
    drone.order(Order::Tell(Route::Leader, b"ask for an answer".to_vec())).await;
    drone.receives_message(b"answer for an answer").await;
    // More than there are places for drones, and whoever is turned away comes back at once.
    let strangers: Vec<_> =
        (0..30).map(|_| Stranger::start(&at, &[(MESSAGES, 0, &nothing())], true)).collect();
    until(&relay, |relay| relay.drones() >= DRONES).await;
    drone.kill().await;
    sleep(Duration::from_millis(200)).await;
    let mut again = start(&config).unwrap();
    again.connects(Route::Leader).await;
    again.order(Order::Tell(Route::Leader, b"ask whether i am back".to_vec())).await;
    again.receives_message(b"answer whether i am back").await;
    assert!(strangers.iter().any(Stranger::is_connected));
}
