//! A drone that collects keys of conditions from the quorum over real connections.

use std::convert::Infallible;
use std::time::Duration;

use quiver_ainq::{DroneKeypair, Ristretto255};
use quiver_delivery::Standalone;
use quiver_ibe::{Condition, IdentityKey};
use quiver_key_release::{
    CollectCommand, CollectEvent, CollectTiming, Collector, ReleaseAuthority, Shortfall,
};
use quiver_machine::Route;
use quiver_net::{Driver, Host, HostError, NodeConfig, NodeKey, Transport};
use quiver_service::armour::{self, ArmourKind};
use rand::rngs::OsRng;
use tokio::sync::{mpsc, oneshot};

use crate::bench::Bench;
use crate::drones::{Fleet, copy};

type S = Ristretto255;

/// Maximum duration of one collection without a refusal.
const PATIENCE: Duration = Duration::from_secs(120);

/// Result of a collection: the key, or the shortfall; and the statement that the drone knows after it.
pub(crate) type Outcome = (Result<IdentityKey, Shortfall>, Option<ReleaseAuthority<S>>);

/// The master key as `kgc ibe publish` wrote it.
pub(crate) fn published(bench: &Bench, fleet: &Fleet, file: &str) -> ReleaseAuthority<S> {
    let statement = armour::read(&bench.path(file), ArmourKind::IbeAuthority).expect("authority file");
    ReleaseAuthority::decode(&fleet.deployment, &statement).expect("signed by the quorum")
}

/// Asks all KGCs once for the key of a condition.
pub(crate) fn collect(
    fleet: &Fleet,
    keypair: &DroneKeypair<S>,
    known: Option<&ReleaseAuthority<S>>,
    condition: &Condition,
) -> Outcome {
    collect_within(PATIENCE, fleet, keypair, known, condition)
}

/// The same with less patience.
pub(crate) fn collect_within(
    patience: Duration,
    fleet: &Fleet,
    keypair: &DroneKeypair<S>,
    known: Option<&ReleaseAuthority<S>>,
    condition: &Condition,
) -> Outcome {
    let (deployment, keypair) = (fleet.deployment.clone(), copy(&fleet.deployment, keypair));
    let timing = CollectTiming { retry: Duration::from_millis(500), ahead: u16::MAX, ..Default::default() };
    let authority = known.cloned();
    let collector = Standalone::client(deployment, keypair, Collector::new(authority, timing));
    let mut node = NodeConfig::spoke(NodeKey::random(&mut OsRng).expect("key"), Transport::Tcp);
    let addresses = fleet.kgc_addresses().into_iter();
    node.dial = addresses.map(|address| (Route::Kgc, address.parse().expect("address"))).collect();
    fleet.runtime.block_on(async {
        let (events, mut heard) = mpsc::unbounded_channel();
        let (driver, handle) = Driver::new(&node, collector, EventSink(events), OsRng).expect("driver");
        let (end, ended) = oneshot::channel::<()>();
        let running = tokio::spawn(driver.run(async move {
            // A dropped sender ends it as well.
            let _ = ended.await;
        }));
        let condition = Some(condition.clone());
        let command = CollectCommand::Collect { condition, patience, wait: false };
        handle.command(command).await.expect("running");
        let key = loop {
            match heard.recv().await.expect("the drone runs") {
                CollectEvent::Collected { key, .. } => break Ok(*key),
                CollectEvent::NotCollected(shortfall) => break Err(shortfall),
                CollectEvent::Culprit { kgc, .. } => panic!("KGC {kgc} sent a wrong share"),
                _ => {}
            }
        };
        let known =
            handle.inspect(|machine: &Standalone<S, Collector<S>>| machine.authority().cloned()).await;
        drop(end);
        running.await.expect("task").expect("driver");
        (key, known.expect("running"))
    })
}

struct EventSink(mpsc::UnboundedSender<CollectEvent>);

impl Host<Standalone<S, Collector<S>>> for EventSink {
    fn persist(&mut self, _: &[Infallible]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Standalone<S, Collector<S>>, event: CollectEvent) {
        // The test may have heard enough.
        let _ = self.0.send(event);
    }
}
