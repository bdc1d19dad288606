//! A leader's gate on a node of its own, and drones that come before it without a name: for every run a node that nobody has seen.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use quiver_ainq::Suite;
use quiver_net::{Host, HostError, Multiaddr, NodeConfig, NodeKey};
use quiver_role::Route;
use quiver_role::admission::gate::GateCommand;
use quiver_role::admission::{AdmissionError, Ledger};
use quiver_world::admission::{
    Checkpoint, Guard, GuardEvent, Outcome, Place, RUNS, Shown, Visit, Visitor, VisitorEvent,
};
use tokio::sync::oneshot;

use super::drone_name;
use super::happening::Reports;
use super::host::Disk;
use super::node::Node;
use super::services::Founder;
use super::setting::Setting;
use super::world::first_address;
use crate::measure::{CpuMeter, CpuProbe};
use crate::plan::Plan;
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// What a visitor came to, and all that it said.
type Over = (Outcome, Vec<Vec<u8>>);

/// Founds what drones are to show, if they are to.
pub(super) fn checkpoint<S: Suite>(
    plan: &Plan,
    founder: &Founder<S>,
    setting: &Setting<S>,
) -> Result<Option<Checkpoint<S>>> {
    let Some(policy) = &plan.admission else { return Ok(None) };
    let treasury = &*founder.treasury;
    let (deployment, group, seed) = (&setting.deployment, &setting.group, plan.seed);
    let place = Place { deployment, treasury, group, seed, now: unix_time() };
    Checkpoint::found(&place, policy).map(Some).map_err(refused)
}

pub(super) fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("--admission: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "credentials are of the period that it is")]
fn unix_time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A gate on the network.
pub(super) struct Gatehouse<S: Suite> {
    node: Node<Guard<S>>,
    address: Multiaddr,
    admitted: Arc<Mutex<Vec<Shown>>>,
    pub(super) meter: CpuMeter,
}

impl<S: Suite> Gatehouse<S> {
    /// Starts it and tells it the period's slot keys.
    pub(super) async fn open(
        plan: &Plan,
        setting: &Setting<S>,
        checkpoint: &Checkpoint<S>,
        listen: Multiaddr,
    ) -> Result<Self> {
        let who = "gate".to_string();
        let key = node_key(setting, Player::Gate, 0)?;
        let room = plan.drones.saturating_mul(RUNS) as usize;
        let mut config = setting.lean(NodeConfig::hub(key, setting.transport(), room));
        config.listen = vec![listen];
        let (admitted, meter) = (Arc::default(), CpuMeter::default());
        let host = Porter {
            admitted: Arc::clone(&admitted),
            reports: setting.reports.clone(),
            probe: CpuProbe::new(meter.clone()),
        };
        let rng = seeds::generator(setting.seed, Player::Gate, 0, 0);
        let node = Node::start(who, &config, checkpoint.guard(unix_time()).map_err(refused)?, host, rng)?;
        let address = first_address(&node, plan.timeout, "start of the gate").await?;
        node.command(GateCommand::SlotKeys(checkpoint.slot_keys())).await?;
        Ok(Self { node, address, admitted, meter })
    }

    /// Whom it let in so far.
    pub(super) fn admitted(&self) -> Vec<Shown> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Payload bytes that it sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.node.handle().metrics().bytes_sent.get()
    }

    /// A drone comes before it, as somebody new.
    pub(super) async fn visit(
        &self,
        plan: &Plan,
        setting: &Setting<S>,
        visitor: Visitor<S>,
        (drone, run): (u32, u32),
        ledger: Disk<Ledger>,
    ) -> Result<Visit> {
        let who = format!("{} without a name", drone_name(drone));
        let key = node_key(setting, Player::Visitor, drone.saturating_mul(RUNS).saturating_add(run))?;
        let peer = key.peer_id().to_bytes();
        let mut config = setting.lean(NodeConfig::spoke(key, setting.transport()));
        config.dial = vec![(Route::Leader, self.address.clone())];
        let (told, over) = oneshot::channel();
        let host = Listener { who: who.clone(), reports: setting.reports.clone(), ledger, told: Some(told) };
        let rng = seeds::generator(setting.seed, Player::Visitor, drone, run);
        let mut node = Node::start(who, &config, visitor, host, rng)?;
        let (outcome, mut seen) = match tokio::time::timeout(plan.timeout, over).await {
            Ok(over) => over.map_err(|_| node.stopped())?,
            Err(_) => (Err(AdmissionError::Silent), Vec::new()),
        };
        node.kill().await;
        // What the transport tells the leader.
        seen.push(peer);
        Ok(Visit { drone, run, outcome, seen })
    }
}

fn node_key<S: Suite>(setting: &Setting<S>, player: Player, index: u32) -> Result<NodeKey> {
    NodeKey::from_seed(seeds::node_key(setting.seed, player, index))
        .map_err(|source| SimError::Node { who: format!("{player:?} {index}"), source })
}

/// The side of the gate.
struct Porter {
    admitted: Arc<Mutex<Vec<Shown>>>,
    reports: Arc<dyn Reports>,
    probe: CpuProbe,
}

impl<S: Suite> Host<Guard<S>> for Porter {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Guard<S>, event: GuardEvent) {
        match event {
            GuardEvent::Admitted(shown) => {
                self.admitted.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
            }
            GuardEvent::Denied(why) => tracing::debug!(%why, "not let in"),
            GuardEvent::Blamed(offence) => self.reports.offence("gate", &offence),
        }
    }

    fn before_inputs(&mut self) {
        self.probe.start();
    }

    fn after_inputs(&mut self) {
        self.probe.stop();
    }
}

/// The side of a visitor.
struct Listener {
    who: String,
    reports: Arc<dyn Reports>,
    ledger: Disk<Ledger>,
    told: Option<oneshot::Sender<Over>>,
}

impl<S: Suite> Host<Visitor<S>> for Listener {
    fn persist(&mut self, records: &[Ledger]) -> std::result::Result<(), HostError> {
        if let Some(newest) = records.last() {
            self.ledger.with(|stored| stored.clone_from(newest));
        }
        Ok(())
    }

    fn event(&mut self, _: &Visitor<S>, event: VisitorEvent) {
        match event {
            VisitorEvent::Over(outcome, said) => {
                if let Some(told) = self.told.take() {
                    // Whoever waited may have given up.
                    let _ = told.send((outcome, said));
                }
            }
            VisitorEvent::Blamed(offence) => self.reports.offence(&self.who, &offence),
        }
    }
}
